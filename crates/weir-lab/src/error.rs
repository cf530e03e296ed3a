//! Requests that make no sense on the machine they were made for.

use weir_model::access::Pattern;
use weir_model::machine::MachineError;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use crate::verdict::ALIKE;

/// Why there is no plan for what was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LabError {
    /// A tier that the machine does not have.
    #[error("no tier `{name}` here; there {known}")]
    UnknownTier {
        /// What was asked for.
        name: TierName,
        /// What there is, in words: `is only dram`.
        known: String,
    },
    /// More threads than cores, or none.
    #[error("cannot run {threads} threads: experiments put one on a core, and can use {cores}")]
    Threads {
        /// What was asked for.
        threads: u32,
        /// What there is.
        cores: usize,
    },
    /// A working set too small to hold what is measured.
    #[error("a working set of {bytes} B is too small; take at least {least} B")]
    WorkingSet {
        /// What was asked for, in bytes.
        bytes: u64,
        /// The smallest that works, in bytes.
        least: u64,
    },
    /// A burst of more accesses than a core has under way.
    #[error("bursts of {lines} accesses are too long; {most} may be at once", most = Pattern::MOST_IN_BURST)]
    Burst {
        /// What was asked for.
        lines: u32,
    },
    /// A block that is no whole number of lines or does not fit.
    #[error("a block of {bytes} B cannot be: take whole lines of {line} B, and at most {most} B")]
    Block {
        /// What was asked for, in bytes.
        bytes: u64,
        /// Bytes in a line.
        line: u64,
        /// The largest that fits, in bytes.
        most: u64,
    },
    /// More memory than a tier has.
    #[error(
        "{what}: {wanted} of memory are wanted, and `{tier}` has {memory}; take a smaller working set or fewer threads"
    )]
    Room {
        /// The point.
        what: String,
        /// What it needs.
        wanted: Bytes,
        /// Where.
        tier: TierName,
        /// What there is, with the tiers that it reads from.
        memory: Bytes,
    },
    /// Options that leave nothing to measure.
    #[error("{0}")]
    Nothing(String),
    /// Everything that was asked for needs a feature that the machine lacks.
    #[error("{0}")]
    Lacks(String),
    /// The machine refused or failed.
    #[error(transparent)]
    Machine(MachineError),
    /// The machine answered, and nothing follows from what it said.
    #[error("{0}")]
    Failed(String),
    /// The user ended the work before the study had an answer.
    #[error("stopped before every question was answered")]
    Stopped,
    /// A dry lab counts what is asked, and answers nothing.
    #[error("a dry lab answers nothing")]
    Dry,
    /// The rest of the work belongs to other workers.
    #[error("the rest of the work belongs to other workers")]
    Part,
}

impl From<MachineError> for LabError {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Interrupted => LabError::Stopped,
            error => LabError::Machine(error),
        }
    }
}

impl LabError {
    /// A tier that this machine does not have.
    pub fn unknown_tier(name: &TierName, topology: &Topology) -> Self {
        let known: Vec<&str> = topology.tiers.iter().map(|t| t.name.as_str()).collect();
        Self::UnknownTier {
            name: name.clone(),
            known: match known.as_slice() {
                [] => "is none".into(),
                [one] => format!("is only {one}"),
                several => format!("are {}", several.join(", ")),
            },
        }
    }

    /// Two tiers that are to be compared are one.
    pub fn same_tier(name: &TierName) -> Self {
        Self::Nothing(format!(
            "{name} is not slower than itself; name another tier"
        ))
    }

    /// Refuses two tiers of which the second is to be slower, by what a lone load takes on each.
    ///
    /// # Errors
    /// The second is faster, by more than chance.
    pub fn unless_slower(
        [fast, slow]: [&TierName; 2],
        [of_fast, of_slow]: [f64; 2],
    ) -> Result<(), Self> {
        match of_slow < of_fast * (1.0 - ALIKE) {
            true => Err(Self::Nothing(format!(
                "{slow} is to be the slower tier, and a lone load of it takes {:.0} % less than one of {fast}; \
                 exchange the two",
                (1.0 - of_slow / of_fast) * 100.0
            ))),
            false => Ok(()),
        }
    }
}
