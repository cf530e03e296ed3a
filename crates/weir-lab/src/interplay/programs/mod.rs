//! Programs as tenants: what a described program, alone and beside others, gets done, in its own metric.
//!
//! | step | from | to |
//! |---|---|---|
//! | `party` | a name as a user writes it | what runs, and where its pages are |
//! | `together` | tenants | what each got done, and what was counted |
//! | `commands` | commands of a host | how long one runs, alone and beside others |
//! | `pair` | runs alone and beside | a row: rate, latency of requests, lost cycles by cause, why |
//! | `study` | victims and aggressors | rows, their meaning, their views |
//!
//! A program without requests is run phase by phase, since a phase is much longer than a run; the phases of an
//! aggressor count by the time that it spends in them alone.

mod commands;
mod pair;
mod party;
mod study;
mod together;

pub use pair::{LostCycles, ProgramPair};
pub use party::{Party, PlacedName, What};
pub use study::{LoadPoint, ProgramPairs, ProgramTable};
pub use together::{TenantRun, Together, TogetherRun};
