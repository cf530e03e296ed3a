//! Why a plan cannot be made.

use weir_model::number::figure;

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// An argument is outside its bounds.
    #[error("{what} is {found}, but must be {wanted}")]
    OutOfBounds {
        /// The argument.
        what: &'static str,
        /// What was given.
        found: String,
        /// What is allowed.
        wanted: std::borrow::Cow<'static, str>,
    },
    /// The user gave the work up.
    #[error("it was stopped")]
    Stopped,
    /// A replay has more or less memory than its VMs.
    #[error(
        "after {second} s, {found} MiB are local or in pools, and VMs have {expected} MiB: please report this mistake of weir"
    )]
    NotConserved {
        /// The second.
        second: u32,
        /// Memory of the VMs that are there, in MiB.
        expected: u64,
        /// Local and pool memory, in MiB.
        found: u64,
    },
}

/// Refuses a number that is not finite or outside its bounds. Where what is allowed is in percent, a number of at most 1 is a
/// share.
///
/// # Errors
/// It is.
pub fn within(
    what: &'static str,
    found: f64,
    (low, high): (f64, f64),
    wanted: &'static str,
) -> Result<(), PlanError> {
    match found.is_finite() && (low..=high).contains(&found) {
        true => Ok(()),
        false => {
            let found = match (wanted.contains('%'), high <= 1.0) {
                (true, true) => format!("{} %", figure(found * 100.0)),
                (true, false) => format!("{} %", figure(found)),
                (false, _) => found.to_string(),
            };
            Err(PlanError::OutOfBounds {
                what,
                found,
                wanted: wanted.into(),
            })
        }
    }
}
