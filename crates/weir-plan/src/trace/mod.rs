//! Traces of virtual machines as columns.
//!
//! | module | content |
//! |---|---|
//! | [`mod@read`] | lines of CSV: our own columns, and the Azure VM traces of 2017 and 2019 |
//! | [`intake`] | what every importer does with a VM that it has read |
//! | [`google`] | the Borg traces of Google of 2019: events of instances |
//! | [`problems`] | what was wrong with which line, and what was done about it |
//! | [`generate`] | a trace whose marginals are published or assumed |

pub mod generate;
pub mod google;
pub mod intake;
pub mod problems;
pub mod read;

use std::io::{self, Write};

use weir_model::units::Bytes;

use crate::packing::bins::{Kind, Shape, kinds};
use problems::{Problem, Problems};

/// MiB in a GiB.
pub const GIB: u32 = 1024;
/// A touched share that is not known.
pub const UNKNOWN: u8 = u8::MAX;
/// Departure of a VM that was still there when the trace ended.
pub const STAYS: u32 = u32::MAX;

/// One VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vm {
    /// When it arrived, in seconds; 0 where it was there before.
    pub arrival: u32,
    /// When it left, in seconds; [`STAYS`] where it did not.
    pub departure: u32,
    /// Thousandths of a core.
    pub millicores: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Whose it is, by a number.
    pub customer: u32,
    /// Its type, by a number.
    pub kind: u16,
    /// Part of its memory that it ever touches, in percent; [`UNKNOWN`] where the trace does not say.
    pub touched_pct: u8,
    /// Whether it stays within the margin with all its memory in the pool.
    pub insensitive: Option<bool>,
}

impl Vm {
    /// What it takes of a machine: thousandths of cores, and MiB.
    pub fn shape(&self) -> Shape {
        Shape {
            cores: u64::from(self.millicores),
            memory: u64::from(self.memory_mib),
        }
    }
}

/// The size of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Thousandths of a core.
    pub millicores: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
}

impl Machine {
    /// Whole cores and memory; `None` where the numbers are zero or too large.
    pub fn of(cores: u32, memory: Bytes) -> Option<Self> {
        let millicores = cores
            .checked_mul(1000)
            .filter(|millicores| *millicores > 0)?;
        let memory_mib = u32::try_from(memory.get() >> 20)
            .ok()
            .filter(|mib| *mib > 0)?;
        Some(Self {
            millicores,
            memory_mib,
        })
    }

    /// As what is packed into.
    pub fn shape(&self) -> Shape {
        Shape {
            cores: u64::from(self.millicores),
            memory: u64::from(self.memory_mib),
        }
    }

    /// Thousandths of cores and MiB of shares of the machine. They are rounded up, so that what fills a machine by its shares
    /// never overfills it; a millionth of a unit is rounding of the shares.
    pub fn share(&self, cores: f64, memory: f64) -> (u32, u32) {
        let part = |share: f64, whole: u32| {
            (share * f64::from(whole) - 1e-6)
                .ceil()
                .clamp(0.0, f64::from(u32::MAX)) as u32
        };
        (part(cores, self.millicores), part(memory, self.memory_mib))
    }

    /// Words: `96 cores, 768 GiB`.
    pub fn words(&self) -> String {
        let memory = Bytes::mib(u64::from(self.memory_mib));
        format!("{} cores, {memory}", f64::from(self.millicores) / 1000.0)
    }
}

/// VMs in the order of their arrival, a column for each field: 24 bytes a VM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    arrival: Vec<u32>,
    departure: Vec<u32>,
    millicores: Vec<u32>,
    memory_mib: Vec<u32>,
    customer: Vec<u32>,
    kind: Vec<u16>,
    touched_pct: Vec<u8>,
    insensitive: Vec<u8>,
}

impl Trace {
    /// How many VMs there are.
    pub fn len(&self) -> usize {
        self.arrival.len()
    }

    /// Whether there is no VM.
    pub fn is_empty(&self) -> bool {
        self.arrival.is_empty()
    }

    /// Adds a VM; [`Trace::sort`] comes after the last.
    pub fn push(&mut self, vm: Vm) {
        self.arrival.push(vm.arrival);
        self.departure.push(vm.departure);
        self.millicores.push(vm.millicores);
        self.memory_mib.push(vm.memory_mib);
        self.customer.push(vm.customer);
        self.kind.push(vm.kind);
        self.touched_pct.push(vm.touched_pct);
        self.insensitive.push(match vm.insensitive {
            None => UNKNOWN,
            Some(is) => u8::from(is),
        });
    }

    /// Says when the VM of a place left.
    pub fn depart(&mut self, at: usize, departure: u32) {
        if let Some(known) = self.departure.get_mut(at) {
            *known = departure;
        }
    }

    /// Lets all that happens happen this many seconds earlier.
    pub fn earlier(&mut self, seconds: u32) {
        for arrival in &mut self.arrival {
            *arrival = arrival.saturating_sub(seconds);
        }
        for departure in self.departure.iter_mut().filter(|at| **at != STAYS) {
            *departure = departure.saturating_sub(seconds);
        }
    }

    /// Takes out the VMs that are not wanted.
    pub fn keep(&mut self, wanted: impl Fn(Vm) -> bool) {
        if self.vms().all(&wanted) {
            return;
        }
        let mut kept = Self::default();
        for vm in self.vms().filter(|vm| wanted(*vm)) {
            kept.push(vm);
        }
        *self = kept;
    }

    /// The VM of a place; `None` beyond the last.
    pub fn get(&self, at: usize) -> Option<Vm> {
        Some(Vm {
            arrival: *self.arrival.get(at)?,
            departure: *self.departure.get(at)?,
            millicores: *self.millicores.get(at)?,
            memory_mib: *self.memory_mib.get(at)?,
            customer: *self.customer.get(at)?,
            kind: *self.kind.get(at)?,
            touched_pct: *self.touched_pct.get(at)?,
            insensitive: match *self.insensitive.get(at)? {
                UNKNOWN => None,
                is => Some(is == 1),
            },
        })
    }

    /// Every VM in the order of arrival.
    pub fn vms(&self) -> impl Iterator<Item = Vm> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Puts VMs into the order of arrival; equal ones keep theirs.
    pub fn sort(&mut self) {
        if self.arrival.is_sorted() {
            return;
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by_key(|&at| self.arrival[at as usize]);
        fn arranged<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
            *column = order.iter().map(|&at| column[at as usize]).collect();
        }
        arranged(&mut self.arrival, &order);
        arranged(&mut self.departure, &order);
        arranged(&mut self.millicores, &order);
        arranged(&mut self.memory_mib, &order);
        arranged(&mut self.customer, &order);
        arranged(&mut self.kind, &order);
        arranged(&mut self.touched_pct, &order);
        arranged(&mut self.insensitive, &order);
    }

    /// The second of the last arrival: later there are only departures.
    pub fn last_arrival(&self) -> u32 {
        self.arrival.last().copied().unwrap_or(0)
    }

    /// All that is known of its VMs, as bytes.
    pub fn bytes(&self) -> impl Iterator<Item = u8> {
        let wide = [
            &self.arrival,
            &self.departure,
            &self.millicores,
            &self.memory_mib,
            &self.customer,
        ];
        let wide = wide.into_iter().flatten();
        let narrow = [&self.touched_pct, &self.insensitive];
        wide.flat_map(|value| value.to_le_bytes())
            .chain(self.kind.iter().flat_map(|value| value.to_le_bytes()))
            .chain(narrow.into_iter().flatten().copied())
    }

    /// The VMs that are there at a second, counted by size.
    pub fn snapshot(&self, at: u32) -> Vec<Kind> {
        let alive = self
            .vms()
            .filter(|vm| vm.arrival <= at && at < vm.departure);
        kinds(alive.map(|vm| vm.shape()))
    }

    /// Those of its VMs that fit into a machine; the others are counted by their place.
    pub fn that_fit(mut self, machine: Machine) -> (Self, Problems) {
        let mut problems = Problems::default();
        let fits = |vm: Vm| vm.shape().fits(machine.shape());
        for (_, place) in self.vms().zip(1..).filter(|(vm, _)| !fits(*vm)) {
            problems.note(Problem::LargerThanMachine, place);
        }
        self.keep(fits);
        (self, problems)
    }

    /// Draws what the trace does not say, touched memory and insensitivity, from the published marginals. Returns for
    /// how many VMs.
    pub fn fill(&mut self, seed: u64, insensitive: f64) -> u64 {
        let mut random = weir_model::random::Random::new(seed ^ 0x66_69_6c_6c);
        let mut filled = 0_u64;
        for at in 0..self.len() {
            let drawn = (random.share(), random.share());
            let unknown = (
                self.touched_pct[at] == UNKNOWN,
                self.insensitive[at] == UNKNOWN,
            );
            if unknown.0 {
                self.touched_pct[at] = generate::touched_pct(drawn.0);
            }
            if unknown.1 {
                self.insensitive[at] = u8::from(drawn.1 < insensitive);
            }
            filled += u64::from(unknown.0 || unknown.1);
        }
        filled
    }

    /// Writes the trace in our own columns.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn write(&self, sink: &mut impl Write) -> io::Result<()> {
        writeln!(sink, "{}", read::HEAD)?;
        for vm in self.vms() {
            let departure = match vm.departure {
                STAYS => String::new(),
                at => at.to_string(),
            };
            let touched = match vm.touched_pct {
                UNKNOWN => String::new(),
                share => share.to_string(),
            };
            let insensitive = vm
                .insensitive
                .map_or("", |is| if is { "yes" } else { "no" });
            writeln!(
                sink,
                "{},{departure},{},{},{},{},{touched},{insensitive}",
                vm.arrival,
                f64::from(vm.millicores) / 1000.0,
                f64::from(vm.memory_mib) / f64::from(GIB),
                vm.customer,
                vm.kind
            )?;
        }
        Ok(())
    }
}

/// A second of a trace in words.
pub fn moment(second: u32) -> String {
    match f64::from(second) {
        seconds if seconds < 3600.0 => format!("{second} s"),
        seconds if seconds < 86_400.0 => format!("{:.1} h", seconds / 3600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}
