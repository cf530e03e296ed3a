//! Parts of a cluster with pools, and which VMs have memory behind one.

use super::Topology;
use crate::trace::Vm;
use weir_model::random::Random;

weir_model::named! {
    /// A part that fails.
    pub enum Part {
        /// A machine, with all that runs on it.
        Machine = "machine",
        /// A page of a machine's DIMMs, by an error that is not corrected. The kernel gives up the page, and the VM that
        /// has it is killed.
        Dimm = "DIMM",
        /// A device of a pool.
        Device = "pool device",
        /// The switch between the machines and the devices of a pool.
        Switch = "switch",
        /// A machine's link to a device, or to the switch.
        Link = "link",
        /// The process that gives slices of a pool away.
        Manager = "manager",
    }
}

impl Part {
    /// What files call it.
    pub fn key(self) -> &'static str {
        match self {
            Part::Dimm => "dimm",
            Part::Device => "device",
            other => other.name(),
        }
    }

    /// Whether it is part of a pool.
    pub fn of_pool(self) -> bool {
        !matches!(self, Part::Machine | Part::Dimm)
    }
}

/// A VM that is there at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// Its place in the trace.
    pub place: u32,
    /// Its size and times.
    pub vm: Vm,
    /// The machine that it is on.
    pub machine: usize,
    /// Its memory that is not in the pool, in MiB.
    pub local_mib: u32,
    /// The device that has its memory where a VM is on one.
    pub device: u32,
    /// Whether it goes on without what it has in the pool.
    pub optional: bool,
}

impl Running {
    /// A VM with this share of its memory in the pool.
    pub fn new((place, vm): (u32, Vm), machine: usize, topology: &Topology) -> Self {
        let mut random = Random::new(
            topology.seed ^ u64::from(place).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x6661_696c,
        );
        let (device, optional) = (random.share(), random.share());
        Self {
            place,
            vm,
            machine,
            // Rounded down, so that all VMs of a machine fit into what is left of its own memory.
            local_mib: (f64::from(vm.memory_mib) * (1.0 - topology.share)) as u32,
            device: (device * f64::from(topology.devices)) as u32,
            optional: optional < topology.optional,
        }
    }

    /// Memory in the pool, in MiB.
    pub fn pooled_mib(&self) -> u32 {
        self.vm.memory_mib - self.local_mib
    }
}

/// One part that fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Broken {
    /// What it is.
    pub part: Part,
    /// A machine: the one that fails, has the DIMM or the link, or is one of those of the pool.
    pub machine: usize,
    /// A device of the pool.
    pub device: u32,
    /// Where in a machine's memory the page is, from 0 to below 1.
    pub page: f64,
}

/// What a failure is to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Untouched,
    /// It loses what it had in the pool, is notified, and goes on.
    Told,
    /// It ends.
    Killed,
}

impl Broken {
    /// Whether a machine is of the pool.
    pub fn in_pool(&self, machine: usize, of_pool: usize) -> bool {
        machine / of_pool == self.machine / of_pool
    }

    /// Whether a machine reaches its pool no more, or not as a whole.
    pub fn without_pool(&self, machine: usize, of_pool: usize) -> bool {
        match self.part {
            Part::Device | Part::Switch => self.in_pool(machine, of_pool),
            Part::Link => machine == self.machine,
            Part::Machine | Part::Dimm | Part::Manager => false,
        }
    }

    /// What it is to a VM, but for the page of a DIMM.
    pub fn fate(&self, of: &Running, of_pool: usize, topology: &Topology) -> Fate {
        if self.part == Part::Machine {
            return match of.machine == self.machine {
                true => Fate::Killed,
                false => Fate::Untouched,
            };
        }
        let all_devices = match self.part {
            Part::Switch => true,
            Part::Link => topology.switched(of_pool),
            _ => false,
        };
        let has = of.pooled_mib() > 0
            && (all_devices || topology.interleaved || of.device == self.device);
        match self.without_pool(of.machine, of_pool) && has {
            true if of.optional => Fate::Told,
            true => Fate::Killed,
            false => Fate::Untouched,
        }
    }

    /// The VM that has the page of a DIMM, if one does: memory of a machine's own is given to its VMs from the first on.
    pub fn owner<'r>(&self, running: &'r [Running], own_mib: f64) -> Option<&'r Running> {
        let mut left = self.page * own_mib;
        running.iter().find(|one| {
            let here = one.machine == self.machine;
            let has = here && left < f64::from(one.local_mib);
            if here {
                left -= f64::from(one.local_mib);
            }
            has
        })
    }
}
