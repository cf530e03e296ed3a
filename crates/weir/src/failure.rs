//! How a command ends when it does not end well, and what the shell learns of it.

use std::io;

use weir_model::capability::Unavailable;
use weir_model::machine::MachineError;
use weir_model::stop;

/// What every verb returns.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command did not do all it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The request was right, but the work failed.
    Work(anyhow::Error),
    /// The request was wrong: an argument, or a file it names.
    Request(anyhow::Error),
    /// The machine lacks a capability that the request needs.
    Missing(anyhow::Error),
    /// Stopped before the end; what was finished is kept and has been shown.
    Partial(String),
    /// A command that was run failed with this exit code, of which it spoke itself.
    Command(u8),
    /// A check found what must not be, and it has been shown: an illegal state, a figure that is not as expected.
    Illegal,
    /// A part of the work was asked for, and is kept; the rest belongs to other workers.
    Part,
    /// Whoever read the results has gone away.
    Closed,
}

impl Failure {
    /// The exit code, as documented in `weir --help`.
    pub const fn code(&self) -> u8 {
        match self {
            Failure::Closed | Failure::Part => 0,
            Failure::Command(code) => *code,
            Failure::Work(_) | Failure::Partial(_) => 1,
            Failure::Request(_) => 2,
            Failure::Missing(_) => 3,
            Failure::Illegal => 4,
        }
    }

    /// What the user reads; nothing if no one reads it.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Work(error) | Failure::Request(error) | Failure::Missing(error) => {
                Some(format!("{error:#}"))
            }
            Failure::Partial(text) => Some(text.clone()),
            Failure::Closed | Failure::Part | Failure::Command(_) | Failure::Illegal => None,
        }
    }

    /// The same, of something by name.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        let name = name.to_owned();
        match self {
            Failure::Work(error) => Failure::Work(error.context(name)),
            Failure::Request(error) => Failure::Request(error.context(name)),
            Failure::Missing(error) => Failure::Missing(error.context(name)),
            other => other,
        }
    }

    /// A wrong request, in words.
    pub fn request(text: impl Into<String>) -> Self {
        Failure::Request(anyhow::Error::msg(text.into()))
    }

    /// A file that cannot be read, unless the work was stopped while it was.
    pub fn reading(error: anyhow::Error) -> Self {
        match stop::requested() {
            true => Failure::Partial(format!("{error:#}")),
            false => Failure::Request(error),
        }
    }

    /// Work that failed, in words.
    pub fn work(text: impl Into<String>) -> Self {
        Failure::Work(anyhow::Error::msg(text.into()))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Work(error)
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Request(_)
            | MachineError::NoSuchTier { .. }
            | MachineError::NoMemory { .. } => Failure::Request(error.into()),
            MachineError::Missing { .. } => Failure::Missing(error.into()),
            MachineError::Interrupted => Failure::Partial(error.to_string()),
            _ => Failure::Work(error.into()),
        }
    }
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Self {
        Failure::Missing(anyhow::anyhow!("{why}"))
    }
}

/// Errors of standard output: a reader that has seen enough is not an error of ours.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::Work(anyhow::Error::new(error).context("cannot write to standard output"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::capability::Feature;
    use weir_model::topology::TierName;
    use weir_model::units::Bytes;

    #[test]
    fn machine_errors_are_distinguished_by_whose_fault_they_are() {
        let unknown = MachineError::NoSuchTier {
            name: TierName::named("cxl9"),
            known: "dram".into(),
        };
        assert_eq!(Failure::from(unknown).code(), 2);
        let missing = MachineError::Missing {
            feature: Feature::Movdir64b,
            reason: "cpuid does not list it".into(),
        };
        assert_eq!(Failure::from(missing).code(), 3);
        let larger = MachineError::NoMemory {
            tier: TierName::named("dram"),
            free: Bytes::gib(128),
            wanted: Bytes::gib(900),
            within: None,
        };
        assert_eq!(Failure::from(larger).code(), 2);
        let system = MachineError::System {
            what: "mbind".into(),
            cause: "EPERM".into(),
        };
        assert_eq!(Failure::from(system).code(), 1);
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.code(), 0);
        assert_eq!(failure.message(), None);
    }
}
