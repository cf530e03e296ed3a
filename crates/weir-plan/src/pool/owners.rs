//! The owners of a pool's slices, as a manager writes them down.
//!
//! A slice goes through the stages of [`super::slices`], whose checker has all interleavings of them. Here a stage can
//! only be left for one that the checker knows, so that a manager cannot give a slice away too early. The one step that
//! is here and not there is [`Owners::kept`]: a guest may refuse to return a slice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done with a slice.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It has no owner and is zero.
    Free,
    /// A VM is permitted to use it, and perhaps does already.
    Adding,
    /// A VM uses it.
    Owned,
    /// The VM was asked to take it offline.
    Releasing,
    /// The VM uses it no longer, but may still have it mapped.
    Clearing,
    /// No VM has it mapped, and it has the data of its last owner.
    Scrubbing,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 6] = [
        Stage::Free,
        Stage::Adding,
        Stage::Owned,
        Stage::Releasing,
        Stage::Clearing,
        Stage::Scrubbing,
    ];

    /// What tables and documents call it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Free => "free",
            Stage::Adding => "adding",
            Stage::Owned => "owned",
            Stage::Releasing => "releasing",
            Stage::Clearing => "clearing",
            Stage::Scrubbing => "scrubbing",
        }
    }

    /// Whether a manager has begun something with the slice that it has not finished.
    pub const fn is_under_way(self) -> bool {
        !matches!(self, Stage::Free | Stage::Owned)
    }
}

/// A VM: a process, by the socket at which its QEMU takes commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vm {
    /// The absolute path of the socket.
    pub socket: String,
    /// The process of QEMU.
    pub pid: u32,
    /// When the process began, in clock ticks since the host did: another process may have the number later.
    pub started: u64,
    /// The guest's node to which slices are added.
    pub node: u32,
}

/// A slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// What is done with it.
    pub stage: Stage,
    /// The VM that is permitted to use it; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<Vm>,
}

/// Every slice of a pool, by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Owners(Vec<Slice>);

/// A step that a slice cannot take now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongStep {
    /// Another stage comes before.
    #[error("slice {slice} is {}, and {step} is a step of a slice that is {wanted}", stage.name())]
    Stage {
        /// Its number.
        slice: usize,
        /// What is done with it.
        stage: Stage,
        /// The step.
        step: &'static str,
        /// What must be done with it then.
        wanted: &'static str,
    },
    /// There is no such slice.
    #[error("there is no slice {slice}; the pool has {slices}, from 0 on")]
    NoSuchSlice {
        /// The number.
        slice: usize,
        /// How many there are.
        slices: usize,
    },
}

impl Owners {
    /// Slices that are free and zero.
    pub fn free(slices: usize) -> Self {
        Self::all(slices, Stage::Free)
    }

    /// Slices whose content is unknown, and which any process may have mapped.
    pub fn unknown(slices: usize) -> Self {
        Self::all(slices, Stage::Clearing)
    }

    fn all(slices: usize, stage: Stage) -> Self {
        Self(vec![Slice { stage, vm: None }; slices])
    }

    /// All of them.
    pub fn slices(&self) -> &[Slice] {
        &self.0
    }

    /// The numbers of those of which something holds.
    pub fn which(&self, of: impl Fn(&Slice) -> bool) -> Vec<usize> {
        let slices = self.0.iter().enumerate();
        slices.filter(|(_, s)| of(s)).map(|(at, _)| at).collect()
    }

    /// Whether a table that was read can be one that this wrote: which VM may use a slice is known if, and only if, one may.
    pub fn is_sound(&self) -> bool {
        self.0.iter().all(|slice| match slice.stage {
            Stage::Free | Stage::Scrubbing => slice.vm.is_none(),
            Stage::Adding | Stage::Owned | Stage::Releasing => slice.vm.is_some(),
            // A pool that was made over an old file has owners that are unknown.
            Stage::Clearing => true,
        })
    }

    /// A VM is permitted to use a free slice. It may bring it online only after this is on disk.
    ///
    /// # Errors
    /// The slice is not free.
    pub fn permit(&mut self, slice: usize, vm: &Vm) -> Result<(), WrongStep> {
        self.go(slice, "permitting", "free", &[Stage::Free], Stage::Adding)?;
        self.0[slice].vm = Some(vm.clone());
        Ok(())
    }

    /// The VM has brought it online.
    ///
    /// # Errors
    /// No VM is permitted to, or it did so before.
    pub fn online(&mut self, slice: usize) -> Result<(), WrongStep> {
        let from = [Stage::Adding];
        self.go(slice, "bringing online", "adding", &from, Stage::Owned)
    }

    /// The VM is asked to take it offline.
    ///
    /// # Errors
    /// No VM has it.
    pub fn ask_back(&mut self, slice: usize) -> Result<(), WrongStep> {
        let from = [Stage::Owned];
        self.go(slice, "releasing", "owned", &from, Stage::Releasing)
    }

    /// The VM refuses, and goes on using it.
    ///
    /// # Errors
    /// It was not asked.
    pub fn kept(&mut self, slice: usize) -> Result<(), WrongStep> {
        let from = [Stage::Releasing];
        self.go(slice, "keeping", "releasing", &from, Stage::Owned)
    }

    /// The VM has taken it offline, never had it, or is gone.
    ///
    /// # Errors
    /// No VM is permitted to use it.
    pub fn offline(&mut self, slice: usize) -> Result<(), WrongStep> {
        let from = [Stage::Adding, Stage::Owned, Stage::Releasing];
        let wanted = "adding, owned or releasing";
        self.go(slice, "taking offline", wanted, &from, Stage::Clearing)
    }

    /// No VM has it mapped.
    ///
    /// # Errors
    /// It may still be online.
    pub fn cleared(&mut self, slice: usize) -> Result<(), WrongStep> {
        let from = [Stage::Clearing];
        self.go(slice, "clearing", "clearing", &from, Stage::Scrubbing)?;
        self.0[slice].vm = None;
        Ok(())
    }

    /// It was read, and is zero.
    ///
    /// # Errors
    /// Somebody may still write to it.
    pub fn scrubbed(&mut self, slice: usize) -> Result<(), WrongStep> {
        let from = [Stage::Scrubbing];
        self.go(slice, "freeing", "scrubbing", &from, Stage::Free)
    }

    fn go(
        &mut self,
        slice: usize,
        step: &'static str,
        wanted: &'static str,
        from: &[Stage],
        to: Stage,
    ) -> Result<(), WrongStep> {
        let slices = self.0.len();
        let at = self.0.get_mut(slice);
        let at = at.ok_or(WrongStep::NoSuchSlice { slice, slices })?;
        if !from.contains(&at.stage) {
            return Err(WrongStep::Stage {
                slice,
                stage: at.stage,
                step,
                wanted,
            });
        }
        at.stage = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::slices;
    use std::collections::BTreeSet;

    type Step = fn(&mut Owners) -> Result<(), WrongStep>;
    const STEPS: [Step; 7] = [
        |owners| owners.permit(0, &vm()),
        |owners| owners.online(0),
        |owners| owners.ask_back(0),
        |owners| owners.kept(0),
        |owners| owners.offline(0),
        |owners| owners.cleared(0),
        |owners| owners.scrubbed(0),
    ];

    fn vm() -> Vm {
        Vm {
            socket: "/run/a".into(),
            pid: 7,
            started: 1,
            node: 1,
        }
    }

    /// What may follow each stage, by trying every step.
    fn ours() -> BTreeSet<(&'static str, &'static str)> {
        let mut found = BTreeSet::new();
        for stage in Stage::ALL {
            for step in STEPS {
                let mut owners = Owners::all(1, stage);
                if step(&mut owners).is_ok() {
                    found.insert((stage.name(), owners.0[0].stage.name()));
                }
            }
        }
        found
    }

    #[test]
    fn a_slice_takes_the_steps_of_the_checked_protocol_and_may_be_kept() {
        let mut wanted = slices::stages();
        wanted.insert(("releasing", "owned"));
        assert_eq!(ours(), wanted);
    }

    #[test]
    fn an_owner_is_known_as_long_as_it_may_use_the_slice() {
        let mut owners = Owners::free(2);
        for step in STEPS {
            step(&mut owners).unwrap_or_else(|error| panic!("{error}"));
            assert!(owners.is_sound(), "{owners:?}");
        }
        assert_eq!(owners, Owners::free(2));
        assert!(Owners::unknown(1).is_sound());
        assert!(!Owners::all(1, Stage::Owned).is_sound());
        let mut freed = Owners::free(1);
        freed.permit(0, &vm()).unwrap();
        freed.0[0].stage = Stage::Free;
        assert!(!freed.is_sound());
    }

    #[test]
    fn a_wrong_step_says_which_one_it_would_be() {
        let mut owners = Owners::free(1);
        let text = owners.online(0).unwrap_err().to_string();
        assert_eq!(
            text,
            "slice 0 is free, and bringing online is a step of a slice that is adding"
        );
        let text = owners.permit(1, &vm()).unwrap_err().to_string();
        assert_eq!(text, "there is no slice 1; the pool has 1, from 0 on");
    }
}
