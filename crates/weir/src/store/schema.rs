//! The tables, their version, and the way from older versions.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;
use super::error::Located;

/// Marks the file as ours: "Weir" in ASCII, in SQLite's `application_id`.
const APPLICATION: i64 = 0x5765_6972;

/// Each step takes a store from the version of its index to the next; version 0 is an empty file.
pub(super) const STEPS: &[&str] = &[
    "
    CREATE TABLE runs (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        started_s    INTEGER NOT NULL,
        verb         TEXT NOT NULL,
        machine      TEXT NOT NULL,
        machine_kind TEXT NOT NULL,
        digest       TEXT NOT NULL,
        seed         INTEGER NOT NULL,
        weir         TEXT NOT NULL,
        arguments    TEXT NOT NULL,
        host         TEXT NOT NULL,
        document     TEXT NOT NULL,
        list_key     TEXT NOT NULL,
        planned      INTEGER NOT NULL,
        state        TEXT NOT NULL,
        elapsed_s    REAL NOT NULL DEFAULT 0,
        warnings     TEXT NOT NULL DEFAULT '[]'
    );
    CREATE TABLE results (
        run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        seq      INTEGER NOT NULL,
        body     TEXT NOT NULL,
        record   TEXT,
        warnings TEXT NOT NULL DEFAULT '[]',
        PRIMARY KEY (run, seq)
    );
",
    "
    -- How many figures are kept, so that a list of runs need not count them.
    ALTER TABLE runs ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
    UPDATE runs SET kept = (SELECT count(*) FROM results WHERE run = runs.id);

    -- What the run set out to do, so that it can be taken up again: the machine as it was named,
    -- how often each point is measured, and the points of the plan with the digest of them all.
    -- Earlier runs have none.
    ALTER TABLE runs ADD COLUMN machine_as TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN plan TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN rounds INTEGER NOT NULL DEFAULT 1;
    CREATE TABLE plans (
        run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        seq   INTEGER NOT NULL,
        point TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;

    -- What a query asks of figures, taken from their documents and kept in one index next to them:
    -- no query over many runs reads a document.
    ALTER TABLE results ADD COLUMN experiment TEXT
        GENERATED ALWAYS AS (json_extract(body, '$.experiment')) VIRTUAL;
    ALTER TABLE results ADD COLUMN tier TEXT
        GENERATED ALWAYS AS (json_extract(body, '$.tier')) VIRTUAL;
    ALTER TABLE results ADD COLUMN gbps REAL
        GENERATED ALWAYS AS (json_extract(body, '$.gbps')) VIRTUAL;
    ALTER TABLE results ADD COLUMN mean_ns REAL
        GENERATED ALWAYS AS (json_extract(body, '$.ns.mean')) VIRTUAL;
    CREATE INDEX results_by_what ON results (run, experiment, tier, gbps, mean_ns);
    CREATE INDEX runs_by_machine ON runs (machine, id);
    -- Lines of lists, newest last, apart from the documents that make runs long.
    CREATE INDEX runs_lines ON runs (id, started_s, verb, machine, machine_kind, digest, seed, weir,
                                     kept, planned, state, elapsed_s);
    CREATE INDEX runs_by_plan ON runs (plan, id) WHERE plan <> '';
",
    "
    -- What an answer depends on, hashed, so that runs share answers. Earlier figures have none.
    ALTER TABLE results ADD COLUMN address TEXT;
    CREATE INDEX results_by_address ON results (address) WHERE address IS NOT NULL;
    -- Answers to asks other than points.
    CREATE TABLE answers (
        address TEXT NOT NULL,
        run     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        kind    TEXT NOT NULL,
        body    TEXT NOT NULL,
        PRIMARY KEY (address, run)
    ) WITHOUT ROWID;
",
];

/// The version that this Weir writes.
pub(super) const VERSION: i64 = STEPS.len() as i64;

/// Checks whose file this is.
fn version(db: &mut Connection, path: &Path) -> Result<i64, StoreError> {
    let (application, version, tables) = look(db).at(path)?;
    // A store has a version from its first byte on, and none below zero.
    let is_ours = application == APPLICATION && version > 0;
    if version < 0 || (tables > 0 && !is_ours) {
        return Err(StoreError::Foreign { path: path.into() });
    }
    if version > VERSION {
        return Err(StoreError::Newer {
            path: path.into(),
            found: version,
            known: VERSION,
        });
    }
    Ok(version)
}

/// Checks that a store can be read as it is.
pub(super) fn check(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    match version(db, path)? {
        VERSION => Ok(()),
        older => Err(StoreError::Older {
            path: path.into(),
            found: older,
        }),
    }
}

/// Checks whose file this is and brings it to this version.
pub(super) fn prepare(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if version(db, path)? < VERSION {
        upgrade(db).at(path)?;
    }
    // Readers do not wait for a writer, and a commit costs no disk flush; a killed process loses
    // nothing, only a power cut may lose the last figures.
    let mode: String = db
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .at(path)?;
    if mode == "wal" {
        db.pragma_update(None, "synchronous", "NORMAL").at(path)?;
    }
    db.pragma_update(None, "foreign_keys", true).at(path)
}

/// All in one transaction, so that another process cannot make the tables between two looks.
fn look(db: &mut Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let snapshot = db.transaction()?;
    let tables = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let (application, version) = identity(&snapshot)?;
    Ok((application, version, tables))
}

fn identity(db: &Connection) -> rusqlite::Result<(i64, i64)> {
    let read = |pragma| db.pragma_query_value(None, pragma, |row| row.get(0));
    Ok((read("application_id")?, read("user_version")?))
}

fn upgrade(db: &mut Connection) -> rusqlite::Result<()> {
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let (_, version) = identity(&step)?;
    for sql in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        step.execute_batch(sql)?;
    }
    step.pragma_update(None, "application_id", APPLICATION)?;
    step.pragma_update(None, "user_version", VERSION)?;
    step.commit()
}
