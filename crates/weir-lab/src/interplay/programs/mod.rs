//! Programs as tenants: what a described program, alone and with others, gets done, in its own metric.
//!
//! | step | from | to |
//! |---|---|---|
//! | `participant` | a name as a user writes it | what runs, and where its pages are |
//! | `together` | tenants | what each got done, and what was counted |
//! | `commands` | commands of a host | how long one runs, alone and with others |
//! | `pace` | runs, phase by phase | how fast its work goes, and where its cycles are lost |
//! | `pair` | paces alone and together | a row: rate, latency of requests, lost cycles by cause, why |
//! | `study`, `host` | victims and aggressors | rows, on a model and on a host |
//! | `table` | rows | their meaning, their views |
//!
//! A program without requests is run phase by phase, since a phase is much longer than a run; the phases of an
//! aggressor count by the time that it spends in them alone.

mod commands;
mod host;
mod pace;
mod pair;
mod participant;
mod study;
mod table;
mod together;

pub use pace::{CountedProgram, LostCycles};
pub use pair::ProgramPair;
pub use participant::{Participant, What};
pub use study::{ACCESSES, CountedPair, ProgramPairs};
pub use table::{LoadPoint, ProgramTable};
pub use together::{TenantRun, Together, TogetherRun};
