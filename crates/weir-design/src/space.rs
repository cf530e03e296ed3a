//! A space of servers: what varies, what runs, and what designs are compared by.

use weir_model::interplay::TierOp;
use weir_model::machine::Testbed;
use weir_model::platform::Platform;
use weir_model::workload::Workload;
use weir_steer::registry::Policy;

use crate::axis::Axis;
use crate::objective::{Constraint, Objective};
use crate::search::{Method, Size};

/// How platforms and workloads are found.
#[derive(Debug, Clone, Copy)]
pub struct Models {
    /// The platform of an expression.
    pub compose: fn(&str) -> Result<Platform, String>,
    /// Its model.
    pub open: fn(&str) -> Result<Box<dyn Testbed>, String>,
    /// Its model for long experiments, whose windows are sampled.
    pub sampled: fn(&str) -> Result<Box<dyn Testbed>, String>,
    /// A workload of the library, or of a file.
    pub workload: fn(&str) -> Result<Workload, String>,
    /// Where the file of a workload has its largest region.
    pub largest_region: fn(&str) -> Option<String>,
}

/// A workload and how much it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// What runs.
    pub workload: Workload,
    /// Its share, in any unit.
    pub weight: f64,
    /// Where its file has its largest region.
    pub largest_region: Option<String>,
}

/// A tenant that runs with the workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// Its name, as written: `cxl0:nt_st`, or `cxl:redis-ycsb-a`.
    pub name: String,
    /// What it does.
    pub does: Does,
    /// Where its pages are; `cxl` is every CXL tier of the design.
    pub pages: Vec<(String, u32)>,
    /// Its threads.
    pub threads: u32,
}

/// What a tenant does.
#[derive(Debug, Clone, PartialEq)]
pub enum Does {
    /// It repeats one instruction.
    Stream(TierOp),
    /// It runs a described program.
    Program(Box<Workload>),
}

/// The parts of a platform in place of those of its file, for pins, area and power.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PartsOf {
    /// The expression, as it is written in the space.
    pub on: String,
    /// Cores.
    pub cores: Option<f64>,
    /// Last-level cache, in MB.
    pub llc_mb: Option<f64>,
    /// DDR channels of the package.
    pub ddr: Option<f64>,
    /// Lanes of the package.
    pub lanes: Option<f64>,
    /// All DDR channels, also those behind links.
    pub channels: Option<f64>,
}

/// A space of servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// The platform, unless an axis chooses it.
    pub base: String,
    /// Where pages are, unless an axis says it.
    pub policy: String,
    /// What varies.
    pub axes: Vec<Axis>,
    /// What runs.
    pub workloads: Vec<Weighted>,
    /// What runs with each workload.
    pub tenants: Vec<Neighbour>,
    /// What limits them, unless an axis says it.
    pub controller: Policy,
    /// What designs are compared by.
    pub objectives: Vec<Objective>,
    /// What they must meet.
    pub constraints: Vec<Constraint>,
    /// Parts that platform files do not have.
    pub parts: Vec<PartsOf>,
    /// How the space is searched.
    pub method: Method,
    /// How many designs are tried.
    pub points: u64,
    /// The seed of the search.
    pub seed: u64,
}

impl Space {
    /// The axes as a search has them.
    pub fn sizes(&self) -> Vec<Size> {
        let size = |axis: &Axis| Size {
            values: axis.values.len(),
            ordered: axis.is_ordered(),
        };
        self.axes.iter().map(size).collect()
    }

    /// The objectives and what constraints are of.
    pub fn figures(&self) -> Vec<Objective> {
        let bound = self.constraints.iter().map(|own| own.objective);
        let mut all: Vec<Objective> = self.objectives.iter().copied().chain(bound).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether workloads must run.
    pub fn runs(&self) -> bool {
        let needs = |objective: &Objective| {
            use Objective::{Edp, Neighbour, P99, Speed, Watts};
            matches!(objective, Speed | Neighbour | P99 | Watts | Edp)
        };
        self.figures().iter().any(needs)
    }
}
