//! A window as it is written down: in documents, in the decision log, for `status` and for `top`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{GbPerSec, Nanos};

use crate::control_loop::Step;
use crate::controller::Why;
use crate::limit::Limit;
use crate::plant::TenantOf;
use crate::readings::{Readings, Role, TenantReadings};

/// One window: what was seen, what was decided, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRecord {
    /// When the window ended, in seconds from the start.
    pub t_s: f64,
    /// Its length in seconds.
    pub window_s: f64,
    /// Bandwidth of each tier. A tier whose traffic was not counted is absent.
    pub gbps: BTreeMap<String, GbPerSec>,
    /// How long a request for each tier stayed in the Table of Requests; `all` is the mean of them all. What
    /// was not counted is absent.
    pub tor_ns: BTreeMap<String, Nanos>,
    /// How long a load from the fast tier took whoever steers, where that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_ns: Option<Nanos>,
    /// The controller's level after it; 0 is free.
    pub level: u32,
    /// What those who may be held were left during the window, in percent of their running; 100 is all.
    pub quota_pct: f64,
    /// Why it was decided so.
    pub why: Why,
    /// What was changed at its end.
    pub actions: Vec<ActionRecord>,
    /// The tenants.
    pub tenants: Vec<TenantRecord>,
    /// What could not be seen, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// A hold that was asked for, and what is in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionRecord {
    /// Whose.
    pub tenant: String,
    /// What was asked for.
    pub requested: Limit,
    /// What is in force, read back.
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
    /// What it is to the controller.
    pub role: Role,
    /// Cores that it has when nobody holds it.
    pub cores: u32,
    /// Whether it had anything to run.
    pub busy: bool,
    /// Bandwidth that it drew, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<GbPerSec>,
    /// To what it was held during the window.
    pub held: Limit,
}

/// What tiers are called: the fast one, and the slow ones together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TierNames {
    /// `dram`.
    pub fast: String,
    /// `cxl0`, or `cxl0+cxl1` where they are counted together.
    pub slow: String,
}

impl WindowRecord {
    /// A step, written down. `before` are the holds in force before its actions.
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
        };
        record.look(readings, tiers);
        for (i, (tenant, seen)) in tenants.iter().zip(&readings.tenants).enumerate() {
            let held = step.held.get(i).copied().unwrap_or(Limit::FREE);
            record.tenants.push(tenant_record(tenant, seen, held));
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

    /// Bandwidth of all tenants of a role together; nothing where one that was busy cannot be told.
    pub fn drew(&self, role: Role) -> Option<GbPerSec> {
        let busy = self.tenants.iter().filter(|t| t.role == role && t.busy);
        busy.map(|tenant| tenant.gbps).sum::<Option<GbPerSec>>()
    }
}

fn tenant_record(tenant: &TenantOf, seen: &TenantReadings, held: Limit) -> TenantRecord {
    TenantRecord {
        name: tenant.name.clone(),
        role: seen.role,
        cores: seen.cores,
        busy: seen.busy,
        gbps: seen.drew.clone().ok(),
        held,
    }
}

/// Running that those who may be held were left, in percent; all of it where there is nobody.
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
