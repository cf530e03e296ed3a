//! Address ranges with a meaning: what a load or a store of a range does is a kernel of the device.
//!
//! | module | content |
//! |---|---|
//! | [`kernel`] | what a kernel is: a range, its handlers, what they may use |
//! | [`media`] | SRAM, DRAM and flash of the device, with their times |
//! | [`kernels`] | the kernels |
//! | [`device`] | a device on a clock of its own, behind the protocol of `weir-coherence` |
//! | [`standin`] | the same kernels in a thread of the host |
//!
//! After Lee, Lerner, Bonnet and Cudré-Mauroux, *Database Kernels: Seamless Integration of Database Systems and Fast
//! Storage via CXL*, CIDR 2024. The paper has no measurements of kernels; what is measured here is of this model.

pub mod device;
pub mod kernel;
pub mod kernels;
pub mod media;
pub mod standin;

pub use device::{Device, Mode};
pub use kernel::{Fault, Io, Kernel, LINE, Line};
