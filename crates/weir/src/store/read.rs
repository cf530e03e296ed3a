//! Reading runs back.

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};

use super::error::Located;
use super::list::{LINE, line};
use super::{RunId, Store, StoreError, StoredRun};
use crate::driver::POINTS;

impl Store {
    /// A run with everything that was kept of it.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn load(&self, run: RunId) -> Result<StoredRun, StoreError> {
        let path = &self.path;
        let sql = format!("{LINE}, NULL, NULL FROM runs WHERE id = ?1");
        let summary = self
            .db
            .query_row(&sql, params![run.0], line)
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
        let mut places = Vec::new();
        let mut warnings: Vec<String> = self.value(&warnings)?;
        let mut query = self
            .db
            .prepare("SELECT body, record, warnings, seq FROM results WHERE run = ?1 ORDER BY seq")
            .at(path)?;
        let mut rows = query.query(params![run.0]).at(path)?;
        while let Some(row) = rows.next().at(path)? {
            let seq: usize = row.get(3).at(path)?;
            // Behind the rows of a document that was kept as a whole are the points that it was made from.
            if list_key == POINTS || seq < summary.planned {
                bodies.push(self.value::<Value>(&row.get::<_, String>(0).at(path)?)?);
                places.push(seq);
            }
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
        document.insert("partial".into(), summary.partial.into());
        document.insert("elapsed_s".into(), summary.elapsed_s.into());
        Ok(StoredRun {
            summary,
            places,
            arguments: self.value(&arguments)?,
            host: self.value(&host)?,
            document: Value::Object(document),
            records,
        })
    }

    pub(super) fn value<T: serde::de::DeserializeOwned>(
        &self,
        text: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|cause| StoreError::Damaged {
            path: self.path.clone(),
            cause: cause.to_string(),
        })
    }
}
