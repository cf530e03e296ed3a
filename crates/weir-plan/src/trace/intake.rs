//! What every importer does with a VM that it has read: it is taken, or counted with the line that names it.

use super::problems::{Problem, Problems};
use super::{GIB, Machine, Trace, Vm};

/// Seconds without an arrival that are a gap, and of a day.
const DAY: u32 = 86_400;

/// VMs of a trace that is being read.
#[derive(Debug)]
pub struct Intake {
    machine: Machine,
    /// Those that were taken, in the order of their lines.
    pub trace: Trace,
    /// What was wrong, with lines of VMs and others.
    pub problems: Problems,
    /// GiB a core of VMs that were left out because they are larger than a machine.
    larger: Vec<f64>,
    /// The latest arrival.
    latest: Option<u32>,
    /// The earliest arrival, and its line.
    earliest: Option<(u32, u64)>,
}

impl Intake {
    /// Of a cluster of such machines.
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            trace: Trace::default(),
            problems: Problems::default(),
            larger: Vec::new(),
            latest: None,
            earliest: None,
        }
    }

    /// Takes a VM. Returns its place in the trace until it is sorted; `None` where it is left out.
    pub fn take(&mut self, vm: Vm, line: u64) -> Option<usize> {
        let left_out = if vm.millicores == 0 || vm.memory_mib == 0 {
            Some(Problem::Empty)
        } else if vm.departure <= vm.arrival {
            Some(Problem::EndsBeforeBeginning)
        } else if !vm.shape().fits(self.machine.shape()) {
            self.larger.push(per_core(vm));
            Some(Problem::LargerThanMachine)
        } else {
            None
        };
        if let Some(problem) = left_out {
            self.problems.note(problem, line);
            return None;
        }
        if self
            .latest
            .is_some_and(|latest| vm.arrival.saturating_sub(latest) > DAY)
        {
            self.problems.note(Problem::Gap, line);
        }
        self.latest = self.latest.max(Some(vm.arrival));
        if self
            .earliest
            .is_none_or(|(arrival, _)| vm.arrival < arrival)
        {
            self.earliest = Some((vm.arrival, line));
        }
        if !vm.memory_mib.is_multiple_of(GIB) {
            self.problems.note(Problem::UnevenMemory, line);
        }
        self.trace.push(vm);
        Some(self.trace.len() - 1)
    }

    /// GiB a core of every VM with a size, those that are larger than a machine too.
    pub fn gib_per_core(&self) -> Vec<f64> {
        self.trace
            .vms()
            .map(per_core)
            .chain(self.larger.iter().copied())
            .collect()
    }

    /// Whether no VM had a size and a time.
    pub fn is_empty(&self) -> bool {
        self.trace.is_empty() && self.larger.is_empty()
    }

    /// The trace in the order of arrival. It begins with its first VM, since times may count from a year long ago.
    pub fn end(mut self) -> (Trace, Problems) {
        self.trace.sort();
        if let Some((arrival, line)) = self.earliest.filter(|(arrival, _)| *arrival > DAY) {
            self.problems.note(Problem::LateBeginning, line);
            self.trace.earlier(arrival);
        }
        (self.trace, self.problems)
    }
}

fn per_core(vm: Vm) -> f64 {
    f64::from(vm.memory_mib) / f64::from(GIB) / (f64::from(vm.millicores) / 1000.0)
}
