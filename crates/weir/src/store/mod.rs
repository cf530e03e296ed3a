//! The store: every run in one SQLite file, each finished figure in a transaction of its own, so
//! that whatever ends a run leaves its finished figures behind.

mod answers;
mod error;
mod list;
mod merge;
mod plan;
mod read;
mod run;
mod schema;

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, params};
use serde::Serialize;
use serde_json::Value;

pub use error::StoreError;
pub use list::{Filter, Metric};
pub use merge::Merged;
pub use plan::{KeptPlan, Plan};
pub use run::{NewRun, RunId, RunLine, RunState, StoredRun, understood};

use error::Located;

use crate::session::say;

/// How long one Weir waits for another that writes to the same store.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it rests before it tries a busy file again.
const AGAIN: Duration = Duration::from_millis(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    path: PathBuf,
    /// The file that was opened.
    file: Option<FileNumber>,
}

/// Device and inode number of a file: another file at the same path has others.
type FileNumber = (u64, u64);

/// One figure to keep.
#[derive(Debug)]
pub struct Figure<'a, B: Serialize, R: Serialize> {
    /// Its place in the run's plan.
    pub seq: usize,
    /// The figure, as documents carry it.
    pub body: &'a B,
    /// What was seen, before any statistics.
    pub record: Option<&'a R>,
    /// What makes it less than trustworthy.
    pub warnings: &'a [String],
    /// Seconds since the run began.
    pub elapsed_s: f64,
    /// What the answer depends on, hashed, where it answers an ask.
    pub address: Option<&'a str>,
}

impl Store {
    /// Where runs are kept by default: `weir/runs.sqlite` in the user's data
    /// directory (XDG base directory specification).
    ///
    /// # Errors
    /// Neither `XDG_DATA_HOME` nor the home directory is an absolute path.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        let data = std::env::var_os("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| {
                let home = std::env::home_dir().filter(|home| home.is_absolute());
                home.map(|home| home.join(".local/share"))
            })
            .ok_or(StoreError::NoHome)?;
        Ok(data.join("weir/runs.sqlite"))
    }

    /// Opens a store to add to it, and makes it where there is none.
    ///
    /// # Errors
    /// The file cannot be made or opened, is damaged, is something else, or comes from a newer
    /// Weir. It is left as it is then.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(|cause| StoreError::Open {
                path: path.into(),
                cause: cause.to_string(),
            })?;
        }
        Self::connect(path, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a store to read it, also one that may not be written; `None` where there is none yet. An empty file would
    /// become a store, which is for a command that keeps a run.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Ok(file) if file.is_file() && file.len() == 0 => return Ok(None),
            _ => {}
        }
        match Self::connect(path, OpenFlags::empty()) {
            Err(refused @ StoreError::Open { .. }) => {
                Self::read_only(path).map_err(|error| match error {
                    StoreError::Open { .. } => refused,
                    error => error,
                })
            }
            opened => opened,
        }
        .map(Some)
    }

    /// Opens a store that may not be written, and writes nothing next to it.
    fn read_only(path: &Path) -> Result<Self, StoreError> {
        refuse_fragment(path)?;
        let open = |uri: &str| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            let mut db = Connection::open_with_flags(uri, flags).at(path)?;
            schema::check(&mut db, path)?;
            Ok::<_, StoreError>(db)
        };
        // Without `immutable`, SQLite wants to make files next to the store; with it, what another process has not
        // moved from them to the store yet is not seen.
        let uri = uri(path);
        let db = match open(&uri) {
            Err(StoreError::Open { .. }) => {
                let db = open(&format!("{uri}?immutable=1"))?;
                unapplied(path).iter().for_each(|file| {
                    say(&format!(
                        "weir: warning: no file can be made in the folder of the store, so the changes in {} are not applied: what is read may be \
                         older or incomplete; copy both files to a folder that may be written",
                        file.display()
                    ));
                });
                db
            }
            opened => opened?,
        };
        Ok(Self {
            db,
            path: path.into(),
            file: number_of(path),
        })
    }

    fn connect(path: &Path, create: OpenFlags) -> Result<Self, StoreError> {
        refuse_fragment(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let mut db = Connection::open_with_flags(path, flags).at(path)?;
        db.busy_timeout(PATIENCE).at(path)?;
        // SQLite does not wait for others while it changes the journal's mode.
        let began = Instant::now();
        while let Err(error) = schema::prepare(&mut db, path) {
            if !matches!(error, StoreError::Busy { .. }) || began.elapsed() > PATIENCE {
                return Err(error);
            }
            std::thread::sleep(AGAIN);
        }
        Ok(Self {
            db,
            path: path.into(),
            file: number_of(path),
        })
    }

    /// Enters a run that is about to begin.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(&mut self, run: &NewRun) -> Result<RunId, StoreError> {
        enter(&self.db, run).at(&self.path)
    }

    /// Keeps one finished figure, in place of an earlier one of fewer repetitions.
    ///
    /// # Errors
    /// The file cannot be written; what was kept before stays.
    pub fn add<B: Serialize, R: Serialize>(
        &mut self,
        run: RunId,
        figure: &Figure<'_, B, R>,
    ) -> Result<(), StoreError> {
        self.add_all(run, std::slice::from_ref(figure))
    }

    /// Keeps several at once: all of them or none.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_all<B: Serialize, R: Serialize>(
        &mut self,
        run: RunId,
        figures: &[Figure<'_, B, R>],
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let step = self
            .db
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .at(&path)?;
        for figure in figures {
            put(&step, &path, run, figure)?;
        }
        step.commit().at(&path)?;
        self.is_there()
    }

    /// Gives a run its document, and the list in it that has its figures, once both are whole. Points that were measured
    /// for it stay behind its rows, where other runs find them.
    ///
    /// # Errors
    /// The file cannot be written; what was kept before stays.
    pub fn settle(
        &mut self,
        run: RunId,
        document: &impl Serialize,
        list: &str,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let mut document = serde_json::to_value(document).unwrap_or_default();
        let rows = document.as_object_mut().and_then(|d| d.remove(list));
        let rows = rows.as_ref().and_then(serde_json::Value::as_array);
        let rows = rows.map(Vec::as_slice).unwrap_or_default();
        let step = self
            .db
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .at(&path)?;
        step.execute(
            "UPDATE runs SET document = ?2, list_key = ?3, planned = ?4 WHERE id = ?1",
            params![run.0, document.to_string(), list, rows.len()],
        )
        .at(&path)?;
        // Rows of an earlier end of the run have no address. The detour keeps places unique at each step.
        for sql in [
            "DELETE FROM results WHERE run = ?1 AND address IS NULL AND ?2 >= 0",
            "UPDATE results SET seq = -1 - seq WHERE run = ?1 AND ?2 >= 0",
            "UPDATE results SET seq = ?2 - 1 - seq WHERE run = ?1",
            "UPDATE runs SET kept = 0 WHERE id = ?1 AND ?2 >= 0",
        ] {
            step.execute(sql, params![run.0, rows.len()]).at(&path)?;
        }
        for (seq, body) in rows.iter().enumerate() {
            let figure = Figure {
                seq,
                body,
                record: None::<&()>,
                warnings: &[],
                elapsed_s: 0.0,
                address: None,
            };
            put(&step, &path, run, &figure)?;
        }
        step.commit().at(&path)
    }

    /// Takes a run out again, with all that is kept of it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remove(&mut self, run: RunId) -> Result<(), StoreError> {
        (self.db)
            .execute("DELETE FROM runs WHERE id = ?1", [run.0])
            .at(&self.path)
            .map(drop)
    }

    /// Closes a run.
    ///
    /// # Errors
    /// The file cannot be written; the run then stays partial. It was removed, or another one is in its place.
    pub fn finish(
        &mut self,
        run: RunId,
        state: RunState,
        elapsed_s: f64,
        warnings: &[String],
    ) -> Result<(), StoreError> {
        let warnings = to_text(&warnings, &self.path)?;
        self.db
            .execute(
                "UPDATE runs SET state = ?2, elapsed_s = ?3, warnings = ?4 WHERE id = ?1",
                params![run.0, state.name(), elapsed_s, warnings],
            )
            .at(&self.path)?;
        self.is_there()
    }

    /// SQLite writes on to a file that was removed, and reports nothing.
    fn is_there(&self) -> Result<(), StoreError> {
        if number_of(&self.path) == self.file {
            return Ok(());
        }
        Err(StoreError::Gone {
            path: self.path.clone(),
        })
    }
}

fn enter(db: &Connection, run: &NewRun) -> rusqlite::Result<RunId> {
    let newest: Option<i64> = db.query_row("SELECT max(id) FROM runs", [], |row| row.get(0))?;
    db.execute(
        "INSERT INTO runs (started_s, verb, machine, machine_kind, digest, seed, weir, arguments,
                           host, document, list_key, planned, state)
         VALUES (unixepoch() - CAST(?12 AS INTEGER), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'running')",
        params![
            run.verb,
            run.machine,
            run.machine_kind,
            run.digest,
            // SQLite's integers are signed; the bits are what matters.
            run.seed.cast_signed(),
            env!("CARGO_PKG_VERSION"),
            newest.map_or_else(|| run.arguments.clone(), |id| by_number(&run.arguments, id)).to_string(),
            run.host.to_string(),
            run.document.to_string(),
            run.list_key,
            run.planned,
            run.elapsed_s,
        ],
    )?;
    Ok(RunId(db.last_insert_rowid()))
}

/// A command's words with the number of the newest run in place of `last`, which means another one once this run is kept.
fn by_number(arguments: &Value, newest: i64) -> Value {
    let mut words = arguments.clone();
    let own = (words.as_array_mut().into_iter().flatten()).take_while(|word| *word != "--");
    // A file of this name is taken for one where a command reads both.
    for word in own.filter(|_| !Path::new("last").exists()) {
        match word.as_str().map(|text| text.strip_suffix("last")) {
            Some(Some(before)) if before.is_empty() || before.ends_with('=') => {
                *word = format!("{before}{newest}").into();
            }
            _ => {}
        }
    }
    words
}

/// Files beside a store from which SQLite would bring it up to date.
fn unapplied(path: &Path) -> Vec<PathBuf> {
    let beside = ["-wal", "-journal"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    });
    let has_content = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|file| file.len() > 0);
    beside.into_iter().filter(has_content).collect()
}

fn number_of(path: &Path) -> Option<FileNumber> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// SQLite takes a file that is too short to be a database for a new one, and writes over it.
fn refuse_fragment(path: &Path) -> Result<(), StoreError> {
    const LEAST_PAGE: u64 = 512;
    match std::fs::metadata(path) {
        Ok(file) if !file.is_file() => Err(StoreError::Open {
            path: path.into(),
            cause: match file.is_dir() {
                true => "it is a folder".into(),
                false => "it is a device or a pipe".into(),
            },
        }),
        Ok(file) if (1..LEAST_PAGE).contains(&file.len()) => Err(StoreError::Damaged {
            path: path.into(),
            cause: format!(
                "it has only {}",
                weir_model::number::count(file.len(), "byte")
            ),
        }),
        // What else is wrong with it SQLite tells.
        _ => Ok(()),
    }
}

/// A path as SQLite's URIs have it.
fn uri(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte);
    let bytes = path.as_os_str().as_bytes().iter();
    let text = bytes.map(|byte| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    format!("file:{}", text.collect::<String>())
}

/// Writes one figure as part of a transaction.
fn put<B: Serialize, R: Serialize>(
    step: &rusqlite::Transaction<'_>,
    path: &Path,
    run: RunId,
    figure: &Figure<'_, B, R>,
) -> Result<(), StoreError> {
    let body = to_text(figure.body, path)?;
    let record = figure.record.map(|r| to_text(r, path)).transpose()?;
    let warnings = to_text(&figure.warnings, path)?;
    let earlier: bool = step
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM results WHERE run = ?1 AND seq = ?2)",
            params![run.0, figure.seq],
            |row| row.get(0),
        )
        .at(path)?;
    step.execute(
        "INSERT OR REPLACE INTO results (run, seq, body, record, warnings, address)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![run.0, figure.seq, body, record, warnings, figure.address],
    )
    .at(path)?;
    step.execute(
        "UPDATE runs SET elapsed_s = ?2, kept = kept + ?3 WHERE id = ?1",
        params![run.0, figure.elapsed_s, usize::from(!earlier)],
    )
    .at(path)?;
    Ok(())
}

fn to_text(value: &impl Serialize, path: &Path) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|cause| StoreError::Other {
        path: path.into(),
        cause: cause.to_string(),
    })
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
