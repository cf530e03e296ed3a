//! The accesses of a described program, one after the other.
//!
//! Regions are drawn by their shares, and elements in the order of the region. This is the address stream alone: what
//! overlaps and what waits is the matter of a machine's model.

use weir_model::units::LINE_BYTES;
use weir_model::workload::{Order, Phase, Region, Workload};

use crate::access::{Access, Sink};
use crate::reuse::hash;

/// Bytes between the first addresses of two regions.
pub const APART: u64 = 1 << 44;

/// A region at work.
#[derive(Debug)]
struct Part {
    order: Order,
    base: u64,
    elements: u64,
    /// Bytes of an access, accesses of an element, bytes from one element to the next.
    access: u32,
    accesses: u64,
    stride: u64,
    stores: f64,
    modifies: f64,
    skew: f64,
    scatter: u64,
    cursors: Vec<u64>,
    turn: usize,
}

/// A phase at work.
#[derive(Debug)]
struct Running {
    parts: Vec<Part>,
    /// The share up to each part, of elements.
    up_to: Vec<f64>,
    /// Instructions of an access.
    each: f64,
}

/// Draws the accesses of a workload.
#[derive(Debug)]
pub struct Replay {
    phases: Vec<Running>,
    now: usize,
    drawn: u64,
    seed: u64,
    instructions: f64,
}

fn part(number: usize, region: &Region) -> Part {
    let element = region.element.get().max(1);
    let accesses = region.lines_per_element();
    let (stride, elements) = match region.order.is_run() {
        true => {
            let stride = region.stride.get().max(element);
            (stride, region.bytes.get() / stride)
        }
        false => {
            let stride = accesses * LINE_BYTES;
            (stride, region.bytes.get() / stride)
        }
    };
    let elements = elements.max(1);
    let streams = u64::from(region.streams).clamp(1, elements);
    // A factor without common divisors scatters all elements.
    let mut scatter = (elements as f64 * 0.618_034) as u64 | 1;
    while divisor(scatter, elements) != 1 {
        scatter += 2;
    }
    Part {
        order: region.order,
        base: (number as u64 + 1) * APART,
        elements,
        access: element.min(LINE_BYTES) as u32,
        accesses,
        stride,
        stores: region.stores,
        modifies: region.modifies,
        skew: region.skew,
        scatter,
        cursors: (0..streams).map(|n| elements / streams * n).collect(),
        turn: 0,
    }
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Part {
    fn scattered(&self, element: u64) -> u64 {
        (u128::from(element) * u128::from(self.scatter) % u128::from(self.elements)) as u64
    }

    /// The element whose turn it is.
    fn next(&mut self, unit: f64) -> u64 {
        match self.order {
            Order::Sequential | Order::Fresh | Order::Cycle => {
                self.turn = (self.turn + 1) % self.cursors.len();
                let streams = self.cursors.len() as u64;
                let run = self.elements / streams;
                let from = run * self.turn as u64;
                let cursor = &mut self.cursors[self.turn];
                let element = *cursor;
                *cursor += 1;
                if self.order != Order::Fresh && *cursor >= from + run {
                    *cursor = from;
                }
                match self.order {
                    Order::Cycle => self.scattered(element),
                    _ => element,
                }
            }
            Order::Zipf => {
                let (low, high) = (0.5, self.elements as f64 + 0.5);
                let e = 1.0 - self.skew;
                let rank = match e.abs() < 1e-6 {
                    true => low * (high / low).powf(unit),
                    false => {
                        let (from, to) = (low.powf(e), high.powf(e));
                        (from + unit * (to - from)).powf(1.0 / e)
                    }
                };
                let rank = ((rank - 0.5) as u64).min(self.elements - 1);
                self.scattered(rank)
            }
            Order::Apex => {
                let element = unit.powf(1.0 / self.skew) * self.elements as f64;
                (element as u64).min(self.elements - 1)
            }
            Order::Random | Order::Chase => {
                ((unit * self.elements as f64) as u64).min(self.elements - 1)
            }
        }
    }
}

impl Replay {
    /// A workload from its start.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        let memory = workload.memory();
        let running = |phase: &Phase| {
            let of = |region: &Region| {
                let at = memory.iter().position(|(name, _)| *name == region.name);
                part(at.unwrap_or(0), region)
            };
            let parts: Vec<Part> = phase.regions.iter().map(of).collect();
            let mut sum = 0.0;
            let up_to = (phase.regions.iter().zip(&parts)).map(|(region, part)| {
                sum += region.share / part.accesses as f64;
                sum
            });
            Running {
                up_to: up_to.collect(),
                parts,
                each: 1000.0 / phase.apki,
            }
        };
        Self {
            phases: workload.phases.iter().map(running).collect(),
            now: 0,
            drawn: 0,
            seed: hash(seed),
            instructions: 0.0,
        }
    }

    /// Goes to a phase.
    pub fn begin(&mut self, phase: usize) {
        self.now = phase.min(self.phases.len() - 1);
    }

    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        (hash(self.seed ^ self.drawn) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The accesses of the next element; how many these are, without stores to what was just loaded.
    pub fn step(&mut self, sink: &mut impl Sink) -> u64 {
        let (unit, other) = (self.unit(), self.unit());
        let phase = &mut self.phases[self.now];
        let place = unit * phase.up_to.last().copied().unwrap_or(0.0);
        let at = phase.up_to.partition_point(|&up_to| up_to <= place);
        let each = phase.each;
        let Some(part) = phase.parts.get_mut(at) else {
            return 1;
        };
        let element = part.next(other);
        let (address, accesses) = (part.base + element * part.stride, part.accesses);
        let (bytes, stores, modifies) = (part.access, part.stores, part.modifies);
        for n in 0..accesses {
            self.instructions += each;
            let whole = self.instructions as u64;
            self.instructions -= whole as f64;
            sink.instructions(whole);
            let mut access = Access {
                address: address + n * LINE_BYTES,
                bytes,
                store: stores > 0.0 && self.unit() < stores,
                from: None,
            };
            sink.access(access);
            if modifies > 0.0 && !access.store && self.unit() < modifies {
                access.store = true;
                sink.access(access);
            }
        }
        accesses
    }
}
