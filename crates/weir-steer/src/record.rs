//! The record of a window: in documents, in the decision log, for `status` and for `top`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::metric::OwnMetric;
use weir_model::sampled::Sampled;
use weir_model::tiering::TieringRecord;
use weir_model::units::{GbPerSec, Nanos};

use crate::control_loop::{Step, metric};
use crate::controller::Why;
use crate::limit::Limit;
use crate::readings::{Readings, Role, TenantReadings};
use crate::steered::TenantOf;

/// One window: the readings, the decision, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRecord {
    /// When the window ended, in seconds from the start.
    pub t_s: f64,
    /// Its length in seconds.
    pub window_s: f64,
    /// Bandwidth of each tier. A tier whose traffic was not counted is absent.
    pub gbps: BTreeMap<String, GbPerSec>,
    /// How long a request for each tier stayed in the Table of Requests; `all` is the mean of all requests. A
    /// tier that was not counted is absent.
    pub tor_ns: BTreeMap<String, Nanos>,
    /// How long a load from the fast tier by the controller's process took, if it was probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_ns: Option<Nanos>,
    /// The controller's level after the window; 0 is free.
    pub level: u32,
    /// The running that was left to tenants which may be limited, in percent; 100 is all.
    pub quota_pct: f64,
    /// The reason of the decision.
    pub why: Why,
    /// The changes at its end.
    pub actions: Vec<ActionRecord>,
    /// The tenants.
    pub tenants: Vec<TenantRecord>,
    /// Readings that are not available, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// What of the window was simulated, if only parts of it were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledRecord>,
    /// The kernel's tiering since the record before, once a second, if `[tier]` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiering: Option<TieringRecord>,
}

/// The parts of a window that were simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledRecord {
    /// How many there are.
    pub parts: u32,
    /// Their length, all together, in seconds.
    pub simulated_s: f64,
    /// The sampling error of each tier's bandwidth: half of its 95 % interval, in percent of the bandwidth. A tier
    /// without traffic is absent.
    pub error_pct: BTreeMap<String, f64>,
    /// Whether an error was asked for and not reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missed: bool,
}

/// A limit that was requested, and the limit in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionRecord {
    /// The tenant.
    pub tenant: String,
    /// The requested limit.
    pub requested: Limit,
    /// The limit in force, read back.
    pub applied: Limit,
    /// What was refused, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// A tenant in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantRecord {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Cores that it has without a limit.
    pub cores: u32,
    /// Whether it had anything to run.
    pub busy: bool,
    /// Bandwidth that it drew, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// The sampling error of that, in percent of it, if only parts of the window were simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_pct: Option<f64>,
    /// What it got done in its own metric, if it is a described program; latencies of the requests in what was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<OwnMetric>,
    /// Its limit at the end of the window, as read back.
    pub held: Limit,
}

/// The names of the tiers: the fast one, and the slow ones together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TierNames {
    /// `dram`.
    pub fast: String,
    /// `cxl0`, or `cxl0+cxl1` if they are counted together.
    pub slow: String,
}

impl WindowRecord {
    /// The record of a step. `before` are the limits in force before its actions.
    pub fn of(step: &Step, tenants: &[TenantOf], tiers: &TierNames) -> Self {
        let readings = &step.readings;
        let mut record = Self {
            t_s: step.at.as_secs(),
            window_s: readings.length.as_secs(),
            gbps: BTreeMap::new(),
            tor_ns: BTreeMap::new(),
            probe_ns: readings.probe.as_ref().ok().copied(),
            level: step.decision.why.level,
            quota_pct: left(readings, &step.held),
            why: step.decision.why.clone(),
            actions: Vec::new(),
            tenants: Vec::new(),
            unseen: Vec::new(),
            tiering: None,
            sampled: (readings.sampled.as_ref()).map(|sampled| sampled_record(sampled, tiers)),
        };
        record.look(readings, tiers);
        let errors = (readings.sampled.iter()).flat_map(|sampled| &sampled.tenants);
        let mut errors = errors.map(|error| error.map(|share| 100.0 * share));
        for (i, (tenant, seen)) in tenants.iter().zip(&readings.tenants).enumerate() {
            let held = step.held.get(i).copied().unwrap_or(Limit::FREE);
            record.tenants.push(TenantRecord {
                error_pct: errors.next().flatten(),
                metric: metric(std::slice::from_ref(step), i),
                ..tenant_record(tenant, seen, held)
            });
            let Some(after) = step.applied.get(i) else {
                continue;
            };
            if after.applied != held || !after.refused.is_empty() {
                record.actions.push(ActionRecord {
                    tenant: tenant.name.clone(),
                    requested: after.requested,
                    applied: after.applied,
                    refused: after.refused.clone(),
                });
            }
        }
        record
    }

    fn look(&mut self, readings: &Readings, tiers: &TierNames) {
        for (tier, traffic) in [(&tiers.fast, &readings.fast), (&tiers.slow, &readings.slow)] {
            match traffic {
                Ok(traffic) => {
                    self.gbps.insert(tier.clone(), traffic.total());
                }
                Err(why) => self.unseen.push(format!("bandwidth of {tier}: {why}")),
            }
        }
        let all = "all".to_owned();
        let queues = [
            (&tiers.fast, &readings.fast_table),
            (&tiers.slow, &readings.slow_table),
            (&all, &readings.table),
        ];
        for (of, table) in queues {
            match table {
                Ok(table) => {
                    self.tor_ns.insert(of.clone(), table.mean);
                }
                Err(why) => self.unseen.push(format!("residency of {of}: {why}")),
            }
        }
    }

    /// The largest sampling error of its bandwidths, in percent, if only parts of it were simulated.
    pub fn error_pct(&self) -> Option<f64> {
        let tiers = self
            .sampled
            .iter()
            .flat_map(|sampled| sampled.error_pct.values().copied());
        let tenants = self.tenants.iter().filter_map(|tenant| tenant.error_pct);
        tiers.chain(tenants).reduce(f64::max)
    }

    /// The sampling error of what a role drew, in its unit: half of its 95 % interval; `None` if nothing was sampled, or the
    /// error of a busy tenant is not known.
    pub fn error_of(&self, role: Role) -> Option<GbPerSec> {
        let busy = self.tenants.iter().filter(|t| t.role == role && t.busy);
        let errors = busy.map(|tenant| Some(tenant.gbps? * (tenant.error_pct? / 100.0)));
        together(errors)
    }

    /// Bandwidth of all tenants of a role together; `None` if the bandwidth of a busy one is not known.
    pub fn drew(&self, role: Role) -> Option<GbPerSec> {
        let busy = self.tenants.iter().filter(|t| t.role == role && t.busy);
        busy.map(|tenant| tenant.gbps).sum::<Option<GbPerSec>>()
    }
}

/// The error of a sum, of independent errors; `None` if one is not known.
pub(crate) fn together(errors: impl Iterator<Item = Option<GbPerSec>>) -> Option<GbPerSec> {
    let squares: Option<f64> = errors.map(|error| error.map(|e| e.get().powi(2))).sum();
    squares.map(|sum| GbPerSec(sum.sqrt()))
}

fn tenant_record(tenant: &TenantOf, seen: &TenantReadings, held: Limit) -> TenantRecord {
    TenantRecord {
        name: tenant.name.clone(),
        role: seen.role,
        cores: seen.cores,
        busy: seen.busy,
        gbps: seen.drew.clone().ok(),
        error_pct: None,
        metric: None,
        held,
    }
}

fn sampled_record(sampled: &Sampled, tiers: &TierNames) -> SampledRecord {
    let errors = [&tiers.fast, &tiers.slow].into_iter().zip(sampled.traffic);
    SampledRecord {
        parts: sampled.parts,
        simulated_s: sampled.simulated.as_secs(),
        error_pct: errors
            .filter_map(|(tier, error)| Some((tier.clone(), 100.0 * error?)))
            .collect(),
        missed: sampled.missed,
    }
}

/// Running that was left to tenants which may be limited, in percent; 100 if there are none.
fn left(readings: &Readings, held: &[Limit]) -> f64 {
    let (mut all, mut left) = (0.0, 0.0);
    for (tenant, limit) in readings.tenants.iter().zip(held) {
        if tenant.role == Role::Restrained && tenant.busy {
            all += f64::from(tenant.cores);
            left += limit.units(tenant.cores);
        }
    }
    if all > 0.0 { 100.0 * left / all } else { 100.0 }
}
