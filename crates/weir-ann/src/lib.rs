//! Approximate nearest-neighbour search over a pool of CXL memory, after *CXL-ANNS: Software-Hardware Collaborative Memory
//! Disaggregation and Computation for Billion-Scale Approximate Nearest Neighbor Search* (USENIX ATC 2023). It follows the
//! paper's description. The authors say that patents cover the work.
//!
//! | file | content |
//! |---|---|
//! | `vectors` | vectors, distances, shards of them |
//! | `files` | fvecs, bvecs, ivecs |
//! | `datasets` | what is published of six datasets, and generated data |
//! | `exact` | exact neighbours, recall, what hosts gather |
//! | `graph`, `build` | graphs, and how they are built |
//! | `candidates`, `search` | Algorithm 1, and the same with its update deferred |
//! | `hops` | hops from the entry, and lists that are kept in local DRAM |
//! | `arena` | where lists and vectors are in the memory of devices |
//! | `ladder`, `times`, `walked`, `study` | what a step costs on a model |
//! | `host` | the same searches on a host, timed, with threads in the place of devices |

pub mod arena;
pub mod build;
pub mod candidates;
pub mod datasets;
mod error;
pub mod exact;
pub mod files;
pub mod graph;
pub mod hops;
pub mod host;
pub mod ladder;
pub mod outcome;
pub mod published;
pub mod search;
pub mod study;
mod threads;
pub mod times;
pub mod vectors;
pub mod walked;

pub use error::AnnError;
