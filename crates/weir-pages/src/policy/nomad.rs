//! Nomad (Xiang et al., OSDI 2024): pages stay mapped while they are copied.

use super::{Decision, Fault, Marks, Policy, Scan, Tpp};
use crate::tier::Watermarks;

/// TPP whose promotion is a transaction: a thread of the kernel copies the page, and the copy is given up if the page was
/// written meanwhile. No thread of the program waits. Shadow copies, by which Nomad demotes a clean page without a
/// copy, are not modelled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nomad(Tpp);

impl Policy for Nomad {
    fn scan(&self) -> Option<Scan> {
        self.0.scan()
    }

    fn marks(&self, watermarks: &Watermarks) -> Marks {
        self.0.marks(watermarks)
    }

    fn demotes(&self) -> bool {
        true
    }

    fn samples_demoted(&self) -> bool {
        self.0.samples_demoted()
    }

    fn transactional(&self) -> bool {
        true
    }

    fn fault(&mut self, fault: &Fault) -> Decision {
        self.0.fault(fault)
    }
}
