//! Loops in real instructions, compiled for speed; what starts and places them is `weir-linux`.
//!
//! | module | content |
//! |---|---|
//! | [`kernels`] | loops of one memory instruction each, chosen at run time by the processor's features |
//! | [`programs`] | Weir's own programs: queries, graphs, searches, services; and the client of key-value servers |
//! | [`distance`] | distances of vectors, a part at a time |
//! | [`child`] | processes that end with the thread which started them |

pub mod child;
pub mod distance;
pub mod kernels;
pub mod programs;
