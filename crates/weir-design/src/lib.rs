//! Design studies: a space of servers, and the designs in it that no other dominates.
//!
//! | module | content |
//! |---|---|
//! | [`space`], [`space_file`] | a space of servers, and the file that describes it |
//! | [`axis`] | what an axis may vary |
//! | [`colocated`] | tenants that run with the workloads, and the controller that limits them |
//! | [`candidate`] | the server that values of axes make |
//! | [`silicon`] | pins, die area and power of parts |
//! | [`objective`] | what designs are compared by, and constraints |
//! | [`search`] | the order in which designs are tried |
//! | [`measure`] | the figures of a design |
//! | [`pareto`] | designs that no other dominates |
//! | [`effects`] | what each axis does |
//! | [`study`], [`outcome`] | the study, and what it finds |
//! | [`published`] | rows of papers that the calculators answer |

pub mod axis;
pub mod candidate;
pub mod colocated;
pub mod effects;
pub mod measure;
pub mod objective;
pub mod outcome;
pub mod pareto;
pub mod published;
pub mod search;
pub mod silicon;
pub mod space;
pub mod space_file;
pub mod study;
