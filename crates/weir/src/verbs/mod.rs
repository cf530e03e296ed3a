//! The verbs, one file each: arguments with their help, and what the verb does.

pub mod bench;
pub mod calibrate;
pub mod completions;
pub mod counters;
pub mod doctor;
pub mod explain;
pub mod interplay;
pub mod man;
pub mod place;
pub mod platforms;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod runs;
pub mod steer;
pub mod topo;
pub mod tour;
pub mod tune;
pub mod workload;
