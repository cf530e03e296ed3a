//! Laws first; then what the kernel counts, failing media, kills, and C.

mod c;
mod faults;
mod kernel;
mod kill;
mod laws;
mod media;
mod replay;
mod threads;
