//! What is wrong with a request.

/// A workload or a machine that cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PagesError {
    /// A value of a workload.
    #[error("workload {workload}, {what}: {why}")]
    Workload {
        /// The workload's name.
        workload: String,
        /// Which value.
        what: String,
        /// What is wrong, and what is allowed.
        why: String,
    },
    /// A value of the machine or of the run.
    #[error("{what}: {why}")]
    Machine {
        /// Which value.
        what: &'static str,
        /// What is wrong, and what is allowed.
        why: String,
    },
    /// No policy has this name.
    #[error("there is no policy {name}; policies are: {known}")]
    Policy {
        /// The name that was given.
        name: String,
        /// All names.
        known: String,
    },
}
