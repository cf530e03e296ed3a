//! A program with all its objects on local memory, and with all on the slower tier; and what lies between.
//!
//! ```text
//! T(x) = c(x) + sum (1 - x_o) w_o g(u) + x_o w'_o g'(v)       run time with a share x_o of each object over
//! u = sum (1 - x_o) b_o / (T C),  v = sum x_o b_o / (T C')     utilisation of local memory, and of the slower tier
//! g(u) = Q(u) / Q(u0),  Q(u) = 1 + q u / (1 - u)               how latency grows with it
//! ```
//!
//! `w_o` and `w'_o` are how long the cores waited for lines of an object in either run, `b_o` what it read and wrote, `c`
//! the rest of the time, and `C` what a tier gives to streams with as many writes. `q` follows from the latency that was
//! counted in the run, over that of a lone chase. The run time stands on both sides: what runs faster presses harder. The
//! right side falls as it grows, so that there is one solution.
//!
//! What one object waits while another waits too belongs to the older load, as processors sample it. So the model takes
//! objects to add up, and is exact where all of them are on one tier. Objects that hide each other's latency do not add up:
//! [`Ends::alone`] takes runs with one object on the slower tier each, and is exact for those, too.

use weir_lab::{Lab, LabError, PhaseRun, Placed, WorkloadOptions, WorkloadRun};
use weir_model::region::RegionUse;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Cycles, GbPerSec, LINE_BYTES, Nanos};
use weir_model::workload::{Order, Workload};

use crate::Run;
use crate::interleave::best_shot::Load;
use crate::micro;
use crate::two_tiers::{Tiers, unloaded};

/// A program at both ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends {
    /// Its objects, in the order of [`Workload::objects`].
    pub objects: Vec<Object>,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// By how much each object alone on the slower tier costs more than its phases tell, as a share of run time; empty
    /// before it was measured.
    pub beyond: Vec<f64>,
}

/// A part of a program's memory that is placed on its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: Bytes,
    /// The regions of memory that it has.
    pub regions: Vec<String>,
    /// In which orders it is touched.
    pub orders: Vec<Order>,
}

/// One phase of it. Pairs are of the run on local memory, and of the run on the slower tier.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// How long it took.
    pub time: [Nanos; 2],
    /// How long a thread waited for each object, in the mean.
    pub waited: Vec<[Nanos; 2]>,
    /// What each object read, and what it wrote, in the run on local memory and in the other.
    pub traffic: Vec<[Crossed; 2]>,
    /// How the latency of each tier grows.
    pub queues: [Queue; 2],
}

/// Bytes that cross the memory interface.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Crossed {
    /// Those that are read.
    pub read: Bytes,
    /// Those that are written.
    pub written: Bytes,
}

impl Crossed {
    /// Either way.
    fn all(self) -> f64 {
        (self.read.get() + self.written.get()) as f64
    }
}

/// How the latency of a tier grows with what is drawn from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// What it gives at most.
    pub capacity: GbPerSec,
    /// The factor `q` of the queue.
    pub factor: f64,
    /// Its utilisation in the run that had everything there.
    pub busy: f64,
}

/// No run has a tier fuller than this, and none emptier.
const FULL: f64 = 0.99;
const IDLE: f64 = 1e-6;

impl Queue {
    /// Of a run with this traffic, whose latency had grown this many times.
    fn of(capacity: GbPerSec, traffic: GbPerSec, grown: f64) -> Self {
        let capacity = capacity.max(traffic * (1.0 / FULL));
        let busy = (traffic / capacity).clamp(IDLE, FULL);
        Self {
            capacity,
            factor: (grown.max(1.0) - 1.0) * (1.0 - busy) / busy,
            busy,
        }
    }

    /// Its latency at a utilisation, over that in the run.
    fn growth(&self, utilisation: f64) -> f64 {
        let at = |u: f64| 1.0 + self.factor * u / (1.0 - u);
        at(utilisation) / at(self.busy)
    }
}

/// Halvings of the interval in which the run time lies.
const HALVINGS: u32 = 40;

impl Phase {
    /// Its run time with these shares of the objects on the slower tier.
    pub fn time(&self, shares: &[f64]) -> Nanos {
        let [near, far] = self.ends();
        let each = || self.waited.iter().zip(shares);
        let stay: f64 = each().map(|(w, x)| (1.0 - x) * w[0].get()).sum();
        let gone: f64 = each().map(|(w, x)| x * w[1].get()).sum();
        let all_gone: f64 = self.waited.iter().map(|w| w[1].get()).sum();
        let part = if all_gone > 0.0 { gone / all_gone } else { 0.0 };
        let rest = near + (far - near) * part;
        let drawn = self
            .traffic
            .iter()
            .zip(shares)
            .fold([0.0, 0.0], |sum, (b, x)| {
                let bytes = f64::midpoint(b[0].all(), b[1].all());
                [sum[0] + (1.0 - x) * bytes, sum[1] + x * bytes]
            });
        // A GB/s is a byte in a nanosecond.
        let busy = [0, 1].map(|tier| drawn[tier] / self.queues[tier].capacity.get());
        let follows = |time: f64| {
            let [near, far] = [0, 1].map(|tier| self.queues[tier].growth(busy[tier] / time));
            rest + stay * near + gone * far
        };
        // Below this one of the tiers could not follow; above, what follows falls.
        let mut least = busy[0].max(busy[1]);
        let mut most = 2.0 * least.max(self.time[0].get());
        while follows(most) > most {
            most *= 2.0;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(least, most);
            if follows(middle) > middle {
                least = middle;
            } else {
                most = middle;
            }
        }
        Nanos(most)
    }

    /// The time of either run in which no object was waited for.
    fn ends(&self) -> [f64; 2] {
        [0, 1].map(|end| {
            let waited: f64 = self.waited.iter().map(|w| w[end].get()).sum();
            (self.time[end].get() - waited).max(0.0)
        })
    }
}

impl Ends {
    /// The run time of a period with these shares of the objects on the slower tier.
    pub fn time(&self, shares: &[f64]) -> Nanos {
        self.phases.iter().map(|phase| phase.time(shares)).sum()
    }

    /// The run time of a period with none there.
    pub fn local(&self) -> Nanos {
        self.phases.iter().map(|phase| phase.time[0]).sum()
    }

    /// How much longer it is than with none there, as a share.
    pub fn loss(&self, shares: &[f64]) -> f64 {
        let expected = self.time(shares) / self.local() - 1.0;
        if self.beyond.is_empty() {
            return expected;
        }
        let each = self.beyond.iter().zip(shares);
        let beyond: f64 = each.map(|(beyond, share)| beyond * share).sum();
        let all: f64 = self.beyond.iter().sum();
        expected + beyond - all * self.together(shares)
    }

    /// How far these shares are from one object alone, 0, to all of them, 1: of the pairs of waits those whose objects are
    /// both on the slower tier.
    fn together(&self, shares: &[f64]) -> f64 {
        let waited = |o: usize| -> f64 {
            let of = |phase: &Phase| phase.waited.get(o).map_or(0.0, |ends| ends[1].get());
            self.phases.iter().map(of).sum()
        };
        let each: Vec<f64> = (0..shares.len()).map(waited).collect();
        let pairs = |x: &dyn Fn(usize) -> f64| {
            let gone = || each.iter().enumerate().map(|(o, w)| w * x(o));
            gone().sum::<f64>().powi(2) - gone().map(|w| w * w).sum::<f64>()
        };
        let all = pairs(&|_| 1.0);
        match all > 0.0 {
            true => (pairs(&|o| shares[o]) / all).clamp(0.0, 1.0),
            false => 0.0,
        }
    }

    /// The loss with one object on the slower tier, as a share.
    pub fn loss_alone(&self, object: usize) -> f64 {
        self.loss(&self.only(object))
    }

    /// The shares of which one object is on the slower tier, and no other.
    pub fn only(&self, object: usize) -> Vec<f64> {
        let share = |o: usize| f64::from(u8::from(o == object));
        (0..self.objects.len()).map(share).collect()
    }

    /// With the measured losses of objects alone on the slower tier, as shares of run time.
    #[must_use]
    pub fn alone(mut self, measured: &[(usize, f64)]) -> Self {
        self.beyond.clear();
        let mut beyond = vec![0.0; self.objects.len()];
        for &(object, loss) in measured {
            if let Some(beyond) = beyond.get_mut(object) {
                *beyond = loss - self.loss_alone(object);
            }
        }
        if !measured.is_empty() {
            self.beyond = beyond;
        }
        self
    }

    /// Whether an object was measured alone on the slower tier.
    pub fn is_measured(&self, object: usize) -> bool {
        self.beyond.get(object).is_some_and(|beyond| *beyond != 0.0)
    }

    /// Whether what was measured tells the loss of these shares: they are one of both ends, or one object alone.
    pub fn is_known(&self, shares: &[f64]) -> bool {
        let mut moved = (0..shares.len()).filter(|&o| shares[o] > 0.0);
        let is_single = match (moved.next(), moved.next()) {
            (Some(o), None) => shares[o] >= 1.0 && self.is_measured(o),
            (first, _) => first.is_none(),
        };
        is_single || shares.iter().all(|share| *share >= 1.0)
    }

    /// Bytes that an object reads and writes in a period, with everything on local memory.
    pub fn drawn(&self, object: usize) -> f64 {
        let of = |phase: &Phase| phase.traffic.get(object).map_or(0.0, |ends| ends[0].all());
        self.phases.iter().map(of).sum()
    }

    /// Bytes of these shares.
    pub fn bytes(&self, shares: &[f64]) -> f64 {
        let each = self.objects.iter().zip(shares);
        each.map(|(object, share)| object.bytes.get() as f64 * share)
            .sum()
    }

    /// Bytes of all objects.
    pub fn all(&self) -> f64 {
        self.bytes(&vec![1.0; self.objects.len()])
    }

    /// Runs a workload at both ends.
    ///
    /// # Errors
    /// The machine refuses, or does not say what objects are waited for.
    pub fn measure(
        lab: &Lab<'_>,
        workload: &Workload,
        tiers: &Tiers,
        options: &WorkloadOptions,
    ) -> Result<Self, LabError> {
        let unloaded = unloaded(lab, tiers, options)?;
        // The losses of objects are of a move to a slower tier.
        LabError::unless_slower([&tiers.from, &tiers.to], unloaded.map(Cycles::get))?;
        let on = |tier: &TierName| Placed {
            placement: Placement::Bind(tier.clone()),
            ..Placed::local(workload, options)
        };
        let runs = lab.ask_all(&[on(&tiers.from), on(&tiers.to)])?;
        let [near, far] = runs.as_slice() else {
            return Err(LabError::Stopped);
        };
        let capacity = capacity(lab, tiers, options, writes(near))?;
        let objects: Vec<Object> = (workload.objects().into_iter())
            .map(|(name, bytes, regions)| Object {
                name: name.to_owned(),
                bytes,
                orders: orders(workload, &regions),
                regions: regions.into_iter().map(str::to_owned).collect(),
            })
            .collect();
        let phases =
            near.phases.iter().zip(&far.phases).map(|(near, far)| {
                phase(&objects, workload.threads, [near, far], unloaded, capacity)
            });
        Ok(Self {
            phases: phases.collect::<Result<_, _>>()?,
            objects,
            beyond: Vec::new(),
        })
    }
}

fn orders(workload: &Workload, names: &[&str]) -> Vec<Order> {
    let regions = workload.phases.iter().flat_map(|phase| &phase.regions);
    let mut orders: Vec<Order> = Vec::new();
    for region in regions.filter(|region| names.contains(&region.name.as_str())) {
        if !orders.contains(&region.order) {
            orders.push(region.order);
        }
    }
    orders
}

/// The share of a run's lines that it writes.
fn writes(run: &WorkloadRun) -> f64 {
    let uses = run.phases.iter().flat_map(|phase| &phase.uses);
    let (read, written) = uses.fold((0, 0), |sum, own| (sum.0 + own.read, sum.1 + own.written));
    written as f64 / (read + written).max(1) as f64
}

/// What either tier gives to streams on all cores that write such a share of their lines.
fn capacity(
    lab: &Lab<'_>,
    tiers: &Tiers,
    options: &WorkloadOptions,
    writes: f64,
) -> Result<[GbPerSec; 2], LabError> {
    let cores = lab.topology().cores.len() as u32;
    // A line that is stored to is read first. In tenths, so that programs that are much alike have the same streams.
    let stores = ((writes / (1.0 - writes).max(0.5)) * 10.0).round() / 10.0;
    let stream = micro::stream(cores, stores.min(0.9), 1.0)
        .ok_or_else(|| LabError::Failed("there is no stream to run".into()))?;
    let on = |tier: &TierName| Placed {
        placement: Placement::Bind(tier.clone()),
        ..Placed::local(&stream, options)
    };
    let runs = lab.ask_all(&[on(&tiers.from), on(&tiers.to)])?;
    let given = |run: &WorkloadRun| {
        let lines: u64 = run
            .phases
            .iter()
            .flat_map(|phase| &phase.uses)
            .map(|u| u.read + u.written)
            .sum();
        GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), run.time)
    };
    match runs.as_slice() {
        [near, far] => Ok([given(near), given(far)]),
        _ => Err(LabError::Stopped),
    }
}

/// What the regions of an object read, wrote and were waited for in a run.
fn used(run: &PhaseRun, object: &Object) -> RegionUse {
    let own = |of: &&RegionUse| object.regions.contains(&of.region);
    (run.uses.iter().filter(own)).fold(RegionUse::default(), |sum, one| RegionUse {
        read: sum.read + one.read,
        written: sum.written + one.written,
        waited: sum.waited + one.waited,
        waits: sum.waits + one.waits,
        ..sum
    })
}

fn phase(
    objects: &[Object],
    threads: u32,
    runs: [&PhaseRun; 2],
    unloaded: [Cycles; 2],
    capacity: [GbPerSec; 2],
) -> Result<Phase, LabError> {
    let used = |object: &Object| runs.map(|run| used(run, object));
    if runs.iter().any(|run| run.uses.is_empty()) {
        return Err(LabError::Failed(
            "this machine does not say for which objects a program waits".into(),
        ));
    }
    let uses: Vec<_> = objects.iter().map(used).collect();
    let mut queues = Vec::new();
    for ((run, unloaded), capacity) in runs.into_iter().zip(unloaded).zip(capacity) {
        let lines: u64 = run.uses.iter().map(|own| own.read + own.written).sum();
        let traffic = GbPerSec::from_bytes_in(Bytes(lines * LINE_BYTES), run.time);
        // A phase that reads nothing has no latency, and waits for none.
        let latency = Run::of(&run.counters)
            .and_then(|counted| Load::of(&counted, run.time))
            .map_or(unloaded, |load| load.latency);
        queues.push(Queue::of(capacity, traffic, latency / unloaded));
    }
    let [near, far] = queues.as_slice() else {
        return Err(LabError::Stopped);
    };
    Ok(Phase {
        time: runs.map(|run| run.time),
        waited: (uses.iter())
            .map(|ends| [0, 1].map(|end| ends[end].waited * (1.0 / f64::from(threads.max(1)))))
            .collect(),
        traffic: (uses.iter())
            .map(|ends| {
                [0, 1].map(|end| Crossed {
                    read: Bytes(ends[end].read * LINE_BYTES),
                    written: Bytes(ends[end].written * LINE_BYTES),
                })
            })
            .collect(),
        queues: [*near, *far],
    })
}
