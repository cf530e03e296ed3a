//! Reading runs back.

use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Map, Value};

use super::error::Located;
use super::{RunId, RunState, RunSummary, Store, StoreError, StoredRun};

const SUMMARY: &str = "
    SELECT id, datetime(started_s, 'unixepoch'), verb, machine, machine_kind, digest, seed, weir,
           (SELECT count(*) FROM results WHERE run = id), planned, state, elapsed_s
    FROM runs";

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let state: String = row.get(10)?;
    Ok(RunSummary {
        id: RunId(row.get(0)?),
        started: row.get(1)?,
        verb: row.get(2)?,
        machine: row.get(3)?,
        machine_kind: row.get(4)?,
        digest: row.get(5)?,
        seed: row.get::<_, i64>(6)?.cast_unsigned(),
        weir: row.get(7)?,
        kept: row.get(8)?,
        planned: row.get(9)?,
        state: if state == RunState::Done.name() {
            RunState::Done
        } else {
            RunState::Partial
        },
        elapsed_s: row.get(11)?,
    })
}

impl Store {
    /// Every run, newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        let sql = format!("{SUMMARY} ORDER BY id DESC");
        let mut query = self.db.prepare(&sql).at(&self.path)?;
        let rows = query.query_map([], summary).at(&self.path)?;
        rows.collect::<rusqlite::Result<_>>().at(&self.path)
    }

    /// The run that a user means by its number, by `last`, or by the beginning of its machine's
    /// name, of which it is the newest run.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<RunId, StoreError> {
        let runs = self.list()?;
        let found = match name.parse::<i64>() {
            Ok(number) => runs.iter().find(|run| run.id == RunId(number)),
            Err(_) if name == "last" => runs.first(),
            Err(_) => runs.iter().find(|run| run.machine == name).or_else(|| {
                runs.iter()
                    .find(|run| !name.is_empty() && run.machine.starts_with(name))
            }),
        };
        found
            .map(|run| run.id)
            .ok_or_else(|| StoreError::NoSuchRun {
                path: self.path.clone(),
                name: name.into(),
                known: match runs.first() {
                    Some(newest) => {
                        format!("its newest run is {}; see `weir runs list`", newest.id)
                    }
                    None => "it has no runs yet; `weir bench` makes one".into(),
                },
            })
    }

    /// A run with everything that was kept of it.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn load(&self, run: RunId) -> Result<StoredRun, StoreError> {
        let path = &self.path;
        let sql = format!("{SUMMARY} WHERE id = ?1");
        let summary = self
            .db
            .query_row(&sql, params![run.0], summary)
            .optional()
            .at(path)?
            .ok_or_else(|| StoreError::NoSuchRun {
                path: path.clone(),
                name: run.to_string(),
                known: "see `weir runs list`".into(),
            })?;
        let (arguments, host, document, list_key, warnings): (
            String,
            String,
            String,
            String,
            String,
        ) = self
            .db
            .query_row(
                "SELECT arguments, host, document, list_key, warnings FROM runs WHERE id = ?1",
                params![run.0],
                |row| {
                    Ok((
                        row.get(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get(3)?,
                        row.get(4)?,
                    ))
                },
            )
            .at(path)?;
        let mut bodies = Vec::new();
        let mut records = Vec::new();
        let mut warnings: Vec<String> = self.value(&warnings)?;
        let mut query = self
            .db
            .prepare("SELECT body, record, warnings FROM results WHERE run = ?1 ORDER BY seq")
            .at(path)?;
        let mut rows = query.query(params![run.0]).at(path)?;
        while let Some(row) = rows.next().at(path)? {
            bodies.push(self.value::<Value>(&row.get::<_, String>(0).at(path)?)?);
            if let Some(record) = row.get::<_, Option<String>>(1).at(path)? {
                records.push(self.value(&record)?);
            }
            for warning in self.value::<Vec<String>>(&row.get::<_, String>(2).at(path)?)? {
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        let mut document: Map<String, Value> = self.value(&document)?;
        document.insert(list_key, Value::Array(bodies));
        document.insert("warnings".into(), warnings.into());
        document.insert("partial".into(), (summary.state != RunState::Done).into());
        document.insert("elapsed_s".into(), summary.elapsed_s.into());
        Ok(StoredRun {
            summary,
            arguments: self.value(&arguments)?,
            host: self.value(&host)?,
            document: Value::Object(document),
            records,
        })
    }

    fn value<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|cause| StoreError::Damaged {
            path: self.path.clone(),
            cause: cause.to_string(),
        })
    }
}
