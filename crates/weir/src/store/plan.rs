//! What a run set out to do, kept next to it: an interrupted run is taken up where it stopped.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::Located;
use super::list::{LINE, line};
use super::{NewRun, RunId, RunLine, Store, StoreError, to_text};

/// The points that a run is to measure, and on what.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The machine as it was named: an expression, a path, `host`.
    pub machine_as: String,
    /// How often each point is measured.
    pub rounds: u32,
    /// Every point as text, in order.
    points: Vec<String>,
    /// Names the points and their order.
    pub(super) digest: String,
}

impl Plan {
    /// A plan of these points.
    ///
    /// # Errors
    /// A point cannot be written as text.
    pub fn new(
        machine_as: &str,
        rounds: u32,
        points: &[impl Serialize],
    ) -> serde_json::Result<Self> {
        let points: Vec<String> = (points.iter())
            .map(serde_json::to_string)
            .collect::<serde_json::Result<_>>()?;
        Ok(Self {
            machine_as: machine_as.into(),
            rounds,
            digest: digest(&points),
            points,
        })
    }
}

/// FNV-1a over every point with a mark behind each, in 16 hexadecimal digits. It tells a mistake
/// from a match; forging it gains nothing.
fn digest(points: &[String]) -> String {
    let bytes = points.iter().flat_map(|point| point.bytes().chain([b'\n']));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// What a run set out to do.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptPlan<P> {
    /// The machine as it was named.
    pub machine_as: String,
    /// How often each point is measured.
    pub rounds: u32,
    /// Every point, in order.
    pub points: Vec<P>,
}

impl Store {
    /// Enters a run that is about to begin, with its plan.
    ///
    /// # Errors
    /// The file cannot be written; nothing is entered then.
    pub fn begin_planned(&mut self, run: &NewRun, plan: &Plan) -> Result<RunId, StoreError> {
        let path = self.path.clone();
        let step = self
            .db
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .at(&path)?;
        let id = super::enter(&step, run).at(&path)?;
        step.execute(
            "UPDATE runs SET machine_as = ?2, plan = ?3, rounds = ?4 WHERE id = ?1",
            params![id.0, plan.machine_as, plan.digest, plan.rounds],
        )
        .at(&path)?;
        {
            let mut insert = step
                .prepare("INSERT INTO plans (run, seq, point) VALUES (?1, ?2, ?3)")
                .at(&path)?;
            for (seq, point) in plan.points.iter().enumerate() {
                insert.execute(params![id.0, seq, point]).at(&path)?;
            }
        }
        step.commit().at(&path)?;
        Ok(id)
    }

    /// The plan of a run; `None` where it was kept without one.
    ///
    /// # Errors
    /// There is no such run, or the file cannot be read.
    pub fn plan<P: DeserializeOwned>(&self, run: RunId) -> Result<Option<KeptPlan<P>>, StoreError> {
        let path = &self.path;
        let plan: Option<(String, u32)> = self
            .db
            .query_row(
                "SELECT machine_as, rounds FROM runs WHERE id = ?1 AND plan <> ''",
                params![run.0],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .at(path)?;
        let Some((machine_as, rounds)) = plan else {
            return Ok(None);
        };
        let mut query = self
            .db
            .prepare("SELECT point FROM plans WHERE run = ?1 ORDER BY seq")
            .at(path)?;
        let rows = query
            .query_map(params![run.0], |row| row.get::<_, String>(0))
            .at(path)?;
        let mut points = Vec::new();
        for row in rows {
            points.push(self.value(&row.at(path)?)?);
        }
        Ok(Some(KeptPlan {
            machine_as,
            rounds,
            points,
        }))
    }

    /// The newest run of this plan on this machine with this seed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn newest_of(
        &self,
        plan: &Plan,
        machine: &str,
        seed: u64,
    ) -> Result<Option<RunLine>, StoreError> {
        let sql = format!(
            "{LINE}, NULL, NULL FROM runs
             WHERE plan = ?1 AND plan <> '' AND digest = ?2 AND seed = ?3 AND rounds = ?4
             ORDER BY id DESC LIMIT 1"
        );
        self.db
            .query_row(
                &sql,
                params![plan.digest, machine, seed.cast_signed(), plan.rounds],
                line,
            )
            .optional()
            .at(&self.path)
    }

    /// Whether a run is of this plan, on this machine, with this seed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_of(
        &self,
        run: RunId,
        plan: &Plan,
        machine: &str,
        seed: u64,
    ) -> Result<bool, StoreError> {
        self.db
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND plan = ?2 AND digest = ?3
                                AND seed = ?4 AND rounds = ?5)",
                params![run.0, plan.digest, machine, seed.cast_signed(), plan.rounds],
                |row| row.get(0),
            )
            .at(&self.path)
    }

    /// Marks a run as under way again and adds to what makes it less than trustworthy.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn reopen(&mut self, run: RunId, warnings: &[String]) -> Result<(), StoreError> {
        let warnings = to_text(&warnings, &self.path)?;
        self.db
            .execute(
                "UPDATE runs SET state = 'running', warnings = ?2 WHERE id = ?1",
                params![run.0, warnings],
            )
            .at(&self.path)
            .map(drop)
    }
}
