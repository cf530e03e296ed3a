//! A request to stop, which is one for the whole process: so this file has one test.

use std::sync::atomic::Ordering;

mod common;

use common::*;
use weir_model::access::Op;
use weir_model::machine::{Machine as _, MachineError};
use weir_model::units::Nanos;
use weir_sim::SimMachine;

#[test]
fn a_window_that_would_take_long_is_given_up_when_a_stop_is_requested() {
    let mut machine = SimMachine::new(&bed_of(&platform("emr2s")), 1);
    machine.start(&[stream(Op::Ld, "dram", 0..32)]).unwrap();
    machine.observe(Nanos::from_micros(1.0)).unwrap();
    weir_model::stop::flag().store(true, Ordering::Relaxed);
    // A minute of such a machine takes hours to compute.
    let given_up = machine.observe(Nanos(60e9));
    assert!(
        matches!(given_up, Err(MachineError::Interrupted)),
        "{given_up:?}"
    );
}
