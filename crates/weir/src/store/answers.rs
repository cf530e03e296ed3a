//! Answers by their address: what a study asked before, in this run or in another, is not measured again.

use rusqlite::{OptionalExtension, params};

use super::error::Located;
use super::{RunId, Store, StoreError};

/// A stored answer to a point, as text.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The run that measured it.
    pub run: RunId,
    /// The point.
    pub body: String,
    /// Its raw record.
    pub record: Option<String>,
    /// What makes it less than trustworthy, as a JSON list.
    pub warnings: String,
}

impl Store {
    /// The answer to a point: from this run, or from any run where `shared`. A figure of this run that was kept
    /// before addresses were is found by its place, where the run is `resumed`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn answer(
        &self,
        run: RunId,
        seq: usize,
        address: &str,
        shared: bool,
        resumed: bool,
    ) -> Result<Option<Answer>, StoreError> {
        let mut query = self
            .db
            .prepare_cached(
                "SELECT run, body, record, warnings FROM results
                 WHERE (address = ?1 AND (run = ?2 OR ?3))
                    OR (?4 AND run = ?2 AND seq = ?5 AND address IS NULL)
                 ORDER BY run = ?2 DESC LIMIT 1",
            )
            .at(&self.path)?;
        query
            .query_row(params![address, run.0, shared, resumed, seq], |row| {
                Ok(Answer {
                    run: RunId(row.get(0)?),
                    body: row.get(1)?,
                    record: row.get(2)?,
                    warnings: row.get(3)?,
                })
            })
            .optional()
            .at(&self.path)
    }

    /// The answer to another ask, as JSON: of one run, or of any.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn recall(&self, address: &str, only: Option<RunId>) -> Result<Option<String>, StoreError> {
        let mut query = self
            .db
            .prepare_cached(
                "SELECT body FROM answers WHERE address = ?1 AND (?2 IS NULL OR run = ?2) LIMIT 1",
            )
            .at(&self.path)?;
        query
            .query_row(params![address, only.map(|run| run.0)], |row| row.get(0))
            .optional()
            .at(&self.path)
    }

    /// Keeps the answer to another ask.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(
        &mut self,
        run: RunId,
        kind: &str,
        address: &str,
        body: &str,
    ) -> Result<(), StoreError> {
        self.db
            .execute(
                "INSERT OR REPLACE INTO answers (address, run, kind, body) VALUES (?1, ?2, ?3, ?4)",
                params![address, run.0, kind, body],
            )
            .at(&self.path)
            .map(drop)
    }
}
