//! Runs of another store in this one: what workers measured side by side, each into a store of its own.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::error::Located;
use super::{RunId, Store, StoreError, uri};

/// What a merge did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Runs that were not here.
    pub added: u64,
    /// Runs that were here with fewer figures.
    pub continued: u64,
    /// Runs that were here as they are there.
    pub known: u64,
    /// Figures and other answers of the added runs that a run here has as well.
    pub shared: u64,
    /// Of those, figures that differ. A host never repeats itself to the last digit, and a model always does.
    pub differ: u64,
}

/// Every column of a run but its number.
const RUN: &str = "started_s, verb, machine, machine_kind, digest, seed, weir, arguments, host, document, list_key,
                   planned, state, elapsed_s, warnings, kept, machine_as, plan, rounds";
/// What is the same for a run wherever it is kept.
const SAME: &str = "started_s, verb, machine, digest, seed, weir, arguments, host, plan";

impl Store {
    /// Adds the runs of another store, all of them or none. Runs get new numbers, in their order; one that was
    /// merged before is left as it is, or continued. The other store is only read.
    ///
    /// # Errors
    /// The other file is no store of this version, is this store, or a file cannot be read or written.
    pub fn merge(&mut self, other: &Path) -> Result<Merged, StoreError> {
        let real = |path: &Path| std::fs::canonicalize(path);
        if let (Ok(own), Ok(theirs)) = (real(&self.path), real(other))
            && own == theirs
        {
            return Err(StoreError::Same { path: own });
        }
        // Its version and its kind are checked before anything is attached.
        drop(Self::read_only(other).map_err(StoreError::of_another)?);
        let plain = format!("{}?mode=ro", uri(other));
        let fixed = format!("{plain}&immutable=1");
        attach(&self.db, &plain)
            .at(other)
            .or_else(|error| match error {
                StoreError::Open { .. } => attach(&self.db, &fixed).at(other),
                error => Err(error),
            })
            .map_err(StoreError::of_another)?;
        let path = self.path.clone();
        let done = (self.db)
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .at(&path)
            .and_then(|step| {
                let merged = all(&step).at(&path)?;
                step.commit().at(&path)?;
                Ok(merged)
            });
        let detached = self.db.execute("DETACH other", []).at(&path);
        let merged = done?;
        detached?;
        Ok(merged)
    }
}

fn attach(db: &Connection, uri: &str) -> rusqlite::Result<()> {
    db.execute("ATTACH ?1 AS other", [uri])?;
    let readable = db.query_row("SELECT count(*) FROM other.runs", [], |_| Ok(()));
    if readable.is_err() {
        let _ = db.execute("DETACH other", []);
    }
    readable
}

fn all(step: &Transaction<'_>) -> rusqlite::Result<Merged> {
    let mut merged = Merged::default();
    let theirs = ids(step, "SELECT id FROM other.runs ORDER BY id", &[])?;
    let alike = format!(
        "SELECT id FROM main.runs WHERE ({SAME}) = (SELECT {SAME} FROM other.runs WHERE id = ?1)"
    );
    for run in theirs {
        let mut here = None;
        // Two runs of one command may begin in the same second.
        for own in ids(step, &alike, &[run])? {
            let theirs = (("other", run), ("main", own));
            here = match (
                within(step, theirs.0, theirs.1)?,
                within(step, theirs.1, theirs.0)?,
            ) {
                (true, true) if ended(step, "other", run)? && !ended(step, "main", own)? => {
                    Some((own, true))
                }
                (true, _) => Some((own, false)),
                (false, true) => Some((own, true)),
                (false, false) => continue,
            };
            break;
        }
        match here {
            Some((_, false)) => merged.known += 1,
            Some((own, true)) => {
                step.execute("DELETE FROM main.runs WHERE id = ?1", [own])?;
                copy(step, run, Some(RunId(own)))?;
                merged.continued += 1;
            }
            None => {
                let (shared, differ) = in_both(step, run)?;
                merged.shared += shared;
                merged.differ += differ;
                copy(step, run, None)?;
                merged.added += 1;
            }
        }
    }
    Ok(merged)
}

fn ids(step: &Transaction<'_>, sql: &str, of: &[i64]) -> rusqlite::Result<Vec<i64>> {
    let mut query = step.prepare(sql)?;
    let rows = query.query_map(rusqlite::params_from_iter(of), |row| row.get(0))?;
    rows.collect()
}

/// A run of one of the two stores.
type Of<'a> = (&'a str, i64);

/// Whether every figure and every other answer of a run is in another.
fn within(
    step: &Transaction<'_>,
    (from, run): Of<'_>,
    (to, whole): Of<'_>,
) -> rusqlite::Result<bool> {
    let sql = format!(
        "SELECT NOT EXISTS (
             SELECT 1 FROM {from}.results AS part WHERE part.run = ?1 AND NOT EXISTS (
                 SELECT 1 FROM {to}.results AS whole
                 WHERE whole.run = ?2 AND whole.seq = part.seq AND whole.body = part.body))
             AND NOT EXISTS (
             SELECT 1 FROM {from}.answers AS part WHERE part.run = ?1 AND NOT EXISTS (
                 SELECT 1 FROM {to}.answers AS whole
                 WHERE whole.run = ?2 AND whole.address = part.address AND whole.body = part.body))"
    );
    step.query_row(&sql, [run, whole], |row| row.get(0))
}

fn ended(step: &Transaction<'_>, store: &str, run: i64) -> rusqlite::Result<bool> {
    let sql = format!("SELECT state = 'done' FROM {store}.runs WHERE id = ?1");
    step.query_row(&sql, [run], |row| row.get(0))
}

/// How many answers of a run of the other store a run here has, and how many of those differ.
fn in_both(step: &Transaction<'_>, theirs: i64) -> rusqlite::Result<(u64, u64)> {
    let mut both = (0, 0);
    for table in ["results", "answers"] {
        let sql = format!(
            "SELECT count(*), coalesce(sum(differs), 0) FROM (
                 SELECT min(here.body <> there.body) AS differs
                 FROM other.{table} AS there JOIN main.{table} AS here ON here.address = there.address
                 WHERE there.run = ?1 GROUP BY there.address)"
        );
        let of: (u64, u64) =
            step.query_row(&sql, [theirs], |row| Ok((row.get(0)?, row.get(1)?)))?;
        both = (both.0 + of.0, both.1 + of.1);
    }
    Ok(both)
}

fn copy(step: &Transaction<'_>, theirs: i64, id: Option<RunId>) -> rusqlite::Result<()> {
    step.execute(
        &format!(
            "INSERT INTO main.runs (id, {RUN}) SELECT ?2, {RUN} FROM other.runs WHERE id = ?1"
        ),
        params![theirs, id.map(|id| id.0)],
    )?;
    let id = step.last_insert_rowid();
    for (table, columns) in [
        ("results", "seq, body, record, warnings, address"),
        ("plans", "seq, point"),
        ("answers", "address, kind, body"),
    ] {
        step.execute(
            &format!(
                "INSERT INTO main.{table} (run, {columns}) SELECT ?2, {columns} FROM other.{table} WHERE run = ?1"
            ),
            [theirs, id],
        )?;
    }
    Ok(())
}
