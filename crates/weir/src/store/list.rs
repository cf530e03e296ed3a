//! The list of runs, narrowed by what was measured and when, and runs by name.
//!
//! A store may hold ten thousand runs with a hundred figures each. Every condition below is
//! answered from an index; no query here reads a figure's document.

use rusqlite::{OptionalExtension, Row, ToSql, named_params};
use weir_model::topology::TierName;

use super::error::Located;
use super::{RunId, RunLine, RunState, Store, StoreError};

/// Which runs to list; what is left out does not narrow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// The beginning of the machine's name.
    pub machine: Option<String>,
    /// Only runs with a figure of this experiment.
    pub experiment: Option<String>,
    /// Only runs with a figure of this tier; of the experiment too, where both are given.
    pub tier: Option<TierName>,
    /// Only runs that began at this time or later, in seconds since 1970 (UTC).
    pub since_s: Option<i64>,
    /// At most this many, the newest.
    pub limit: Option<u32>,
    /// The figure to show next to each run, over the experiment and tier above.
    pub metric: Option<Metric>,
}

/// One figure for a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Metric {
    /// The largest bandwidth, in GB/s.
    Gbps,
    /// The least mean latency, in ns.
    Ns,
}

/// The columns of a line, up to the metrics.
pub(super) const LINE: &str = "
    SELECT id, datetime(started_s, 'unixepoch'), verb, machine, machine_kind, digest, seed, weir,
           kept, planned, state, elapsed_s";

pub(super) fn line(row: &Row<'_>) -> rusqlite::Result<RunLine> {
    let state: String = row.get(10)?;
    Ok(RunLine {
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
        partial: state != RunState::Done.name(),
        elapsed_s: row.get(11)?,
        best_gbps: row.get(12)?,
        least_ns: row.get(13)?,
    })
}

impl Filter {
    /// The statement that answers it, with the conditions that are given.
    pub(super) fn sql(&self) -> String {
        let mut of_run = "FROM results INDEXED BY results_by_what WHERE run = runs.id".to_owned();
        if self.experiment.is_some() {
            of_run.push_str(" AND experiment = :experiment");
        }
        if self.tier.is_some() {
            of_run.push_str(" AND tier = :tier");
        }
        let (gbps, ns) = match self.metric {
            None => ("NULL".to_owned(), "NULL".to_owned()),
            Some(Metric::Gbps) => (format!("(SELECT max(gbps) {of_run})"), "NULL".to_owned()),
            Some(Metric::Ns) => ("NULL".to_owned(), format!("(SELECT min(mean_ns) {of_run})")),
        };
        let mut sql = format!("{LINE}, {gbps}, {ns} FROM runs INDEXED BY runs_lines");
        let mut conditions = Vec::new();
        if self.machine.is_some() {
            conditions.push("machine >= :machine AND machine < :beyond".to_owned());
        }
        if self.since_s.is_some() {
            conditions.push("started_s >= :since".to_owned());
        }
        if self.experiment.is_some() || self.tier.is_some() {
            conditions.push(format!("EXISTS (SELECT 1 {of_run})"));
        }
        if !conditions.is_empty() {
            sql.push_str(" WHERE ");
            sql.push_str(&conditions.join(" AND "));
        }
        sql.push_str(" ORDER BY id DESC");
        if self.limit.is_some() {
            sql.push_str(" LIMIT :limit");
        }
        sql
    }

    /// Calls `then` with a value for each name in the statement.
    pub(super) fn values<T>(&self, then: impl FnOnce(&[(&str, &dyn ToSql)]) -> T) -> T {
        // The last character there is: no name with this beginning comes after it.
        let beyond = self.machine.as_ref().map(|m| format!("{m}\u{10ffff}"));
        let experiment = self.experiment.as_deref();
        let tier = self.tier.as_ref().map(TierName::as_str);
        let all: [(&str, bool, &dyn ToSql); 6] = [
            (":machine", self.machine.is_some(), &self.machine),
            (":beyond", beyond.is_some(), &beyond),
            (":experiment", experiment.is_some(), &experiment),
            (":tier", tier.is_some(), &tier),
            (":since", self.since_s.is_some(), &self.since_s),
            (":limit", self.limit.is_some(), &self.limit),
        ];
        let given: Vec<(&str, &dyn ToSql)> = (all.into_iter())
            .filter(|(_, given, _)| *given)
            .map(|(name, _, value)| (name, value))
            .collect();
        then(&given)
    }
}

impl Store {
    /// Every run, newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<RunLine>, StoreError> {
        self.query(&Filter::default())
    }

    /// The runs that a filter lets through, newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn query(&self, filter: &Filter) -> Result<Vec<RunLine>, StoreError> {
        let mut query = self.db.prepare(&filter.sql()).at(&self.path)?;
        filter
            .values(|values| {
                query
                    .query_map(values, line)?
                    .collect::<rusqlite::Result<_>>()
            })
            .at(&self.path)
    }

    /// Seconds since 1970 of a time in words: `2026-03-01`, `2026-03-01 14:05` (UTC), or this many
    /// days, hours or minutes ago: `7d`, `12h`, `30m`. `None` if it is none of these.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn time(&self, words: &str) -> Result<Option<i64>, StoreError> {
        let ago = |unit: &str, suffix: char| {
            let count: u32 = words.strip_suffix(suffix)?.trim().parse().ok()?;
            Some(("now".to_owned(), format!("-{count} {unit}")))
        };
        let (time, change) = ago("days", 'd')
            .or_else(|| ago("hours", 'h'))
            .or_else(|| ago("minutes", 'm'))
            .unwrap_or((words.to_owned(), "+0 days".to_owned()));
        // SQLite takes a bare number for a Julian day, and `now` for what it says.
        if time == words && !(words.contains('-') && words.len() >= "2026-03-01".len()) {
            return Ok(None);
        }
        self.db
            .query_row(
                "SELECT unixepoch(:time, :change)",
                named_params! {":time": time, ":change": change},
                |row| row.get(0),
            )
            .at(&self.path)
    }

    /// The run that a user means by its number, by `last`, or by the beginning of its machine's
    /// name, of which it is the newest run.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<RunId, StoreError> {
        let newest = |condition: &str, value: &dyn ToSql| -> Result<Option<i64>, StoreError> {
            let sql = format!("SELECT id FROM runs WHERE {condition} ORDER BY id DESC LIMIT 1");
            self.db
                .query_row(&sql, &[(":it", value)], |row| row.get(0))
                .optional()
                .at(&self.path)
        };
        let of_machine = || {
            if name.is_empty() {
                return Ok(None);
            }
            match newest("machine = :it", &name)? {
                Some(id) => Ok(Some(id)),
                None => newest("machine >= :it AND machine < :it || char(0x10ffff)", &name),
            }
        };
        let found = match name.parse::<i64>() {
            Ok(number) => newest("id = :it", &number)?,
            Err(_) if name == "last" => newest("id > :it", &0)?,
            Err(_) => of_machine()?,
        };
        if let Some(id) = found {
            return Ok(RunId(id));
        }
        Err(StoreError::NoSuchRun {
            path: self.path.clone(),
            name: name.into(),
            known: match newest("id > :it", &0)? {
                Some(newest) => format!("its newest run is {newest}; see `weir runs list`"),
                None => "it has no runs yet; `weir bench` makes one".into(),
            },
        })
    }
}
