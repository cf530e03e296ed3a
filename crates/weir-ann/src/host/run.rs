//! All searches of a variant, with a thread for each device.

use std::any::Any;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use weir_model::units::Nanos;

use crate::candidates::Met;
use crate::graph::MOST_NEIGHBOURS;
use crate::ladder::Parts;
use crate::vectors::{Metric, Near, SHARD, Vectors};

use super::ring::{Command, Gone, Host, Ring, Waits};
use super::timed::{Data, How, Laps, Searcher, Ticks, by_rows};

/// Looks at a clock and passes over vectors of which the median counts.
const LOOKS: usize = 1001;
/// Vectors in the first cache whose distances are timed: 16 KiB of the longest.
const ROWS: u32 = 16;

/// Puts the calling thread where the device of this number is, until what it returns is dropped.
pub type Pin<'p> = &'p (dyn Fn(usize) -> Result<Box<dyn Any>, String> + Sync);

/// Searches of one variant.
#[derive(Debug)]
pub struct Run<'r> {
    /// Where data are.
    pub data: Data<'r>,
    /// What the variant adds.
    pub how: How,
    /// Shards of the vectors, where devices compute distances.
    pub shards: &'r [&'r [f32]],
    /// What is searched for.
    pub queries: &'r Vectors,
    /// Length of the candidate array.
    pub most: usize,
    /// Whether a set of the nodes that were met spares distances.
    pub once: bool,
    /// How threads wait for each other.
    pub waits: Waits,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The work was stopped.
    Stopped,
    /// The thread of a device could not begin, or failed.
    Device(String),
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Self {
        Self::Device("the thread of a device has ended".into())
    }
}

/// What all searches of a variant took, in ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// All searches without a look at the clock within them.
    pub whole: u64,
    /// The parts of the same searches.
    pub laps: Laps,
    /// The arithmetic of a distance on vectors in the first cache; of each device's part of one where there are devices.
    pub arithmetic: Vec<f64>,
    /// What each found.
    pub found: Vec<Vec<Near>>,
}

impl Measured {
    /// The parts of all searches, and of them the time without anything to do. A clock cannot tell reads of vectors from
    /// arithmetic, which overlap: arithmetic is what it takes on vectors in the first cache, and reads are the rest.
    pub fn parts(&self, ticks: Ticks) -> (Parts, Nanos) {
        let laps = &self.laps;
        let of = |all: i64, distances: u64, each: f64| {
            let all = all as f64;
            let arithmetic = (distances as f64 * each).min(all.max(0.0));
            (all - arithmetic, arithmetic)
        };
        let devices = laps.device.iter().zip(&laps.device_distances);
        let mut split = devices
            .zip(&self.arithmetic)
            .map(|((&all, &distances), &each)| of(all, distances, each))
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        if let ([], Some(&each)) = (laps.device.as_slice(), self.arithmetic.first()) {
            split = of(laps.distances, laps.computed, each);
        }
        let parts = Parts {
            traverse: ticks.tick * (laps.traverse as f64),
            distance_memory: ticks.tick * (split.0),
            distance_compute: ticks.tick * (split.1),
            update: ticks.tick * (laps.update as f64),
            interface: ticks.tick * (laps.interface as f64),
        };
        (parts, ticks.tick * (laps.idle as f64))
    }
}

/// What a look at a clock takes, in its ticks.
pub fn cost(ticks: Ticks) -> u64 {
    median(|| {
        let begin = (ticks.now)();
        (ticks.now)().wrapping_sub(begin)
    })
}

fn median(sample: impl Fn() -> u64) -> u64 {
    let mut all: Vec<u64> = (0..LOOKS).map(|_| sample()).collect();
    all.sort_unstable();
    all.get(LOOKS / 2).copied().unwrap_or(0)
}

/// Ticks of a distance between vectors in the first cache.
fn arithmetic(ticks: Ticks, metric: Metric, dims: usize, cost: u64) -> f64 {
    let (vectors, query) = (vec![0.5; ROWS as usize * dims], vec![1.0; dims]);
    let ids: Vec<u32> = (0..ROWS).collect();
    let all = median(|| {
        let mut to = Vec::with_capacity(ids.len());
        let begin = (ticks.now)();
        by_rows(metric, &query, black_box(&vectors), &ids, &mut to);
        black_box(&to);
        (ticks.now)().wrapping_sub(begin)
    });
    all.saturating_sub(cost) as f64 / f64::from(ROWS)
}

impl Run<'_> {
    /// Searches for every query three times: to warm up, as a whole, and by parts.
    ///
    /// # Errors
    /// `go_on` said no, or a thread could not be put there or failed.
    pub fn measure(
        &self,
        ticks: Ticks,
        pin: Pin<'_>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Measured, Ended> {
        let cost = cost(ticks);
        let shards = if self.how.by_devices {
            self.shards
        } else {
            &[]
        };
        let words = self.data.dims.max(MOST_NEIGHBOURS);
        let ring = Ring::new(shards.len(), words, self.waits);
        let (metric, is_timed) = (self.data.metric, AtomicBool::default());
        let device = |at: usize, vectors: &[f32]| -> Result<f64, String> {
            let served = ring.device(at).ok_or("there is no such device")?;
            let _pinned = pin(at)?;
            let dims = self.data.dims.saturating_sub(at * SHARD).min(SHARD);
            let arithmetic = arithmetic(ticks, metric, dims, cost);
            let mut part = Vec::new();
            served.serve(|command, found| match command {
                Command::Query(query) => {
                    part.clear();
                    part.extend_from_slice(query.chunks(SHARD).nth(at).unwrap_or_default());
                    0
                }
                Command::Distances(ids) => {
                    let timed = is_timed.load(Relaxed);
                    let now = || if timed { (ticks.now)() } else { 0 };
                    let begin = now();
                    by_rows(metric, &part, vectors, ids, found);
                    now().wrapping_sub(begin).saturating_sub(cost)
                }
            });
            Ok(arithmetic)
        };
        thread::scope(|scope| {
            let host = ring.host();
            let device = &device;
            let threads: Vec<_> = (shards.iter().enumerate())
                .map(|(at, &vectors)| scope.spawn(move || device(at, vectors)))
                .collect();
            let host = (!shards.is_empty()).then_some(host);
            // The devices end with the host, which is gone when this returns or panics.
            let measured = self.passes(host, ticks, cost, &is_timed, go_on);
            let arithmetics: Result<Vec<f64>, String> = (threads.into_iter())
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or(Err("the thread of a device panicked".into()))
                })
                .collect();
            let arithmetics = arithmetics.map_err(Ended::Device)?;
            let mut measured = measured?;
            measured.arithmetic = match shards.is_empty() {
                true => vec![arithmetic(ticks, metric, self.data.dims, cost)],
                false => arithmetics,
            };
            Ok(measured)
        })
    }

    fn passes(
        &self,
        host: Option<Host<'_>>,
        ticks: Ticks,
        cost: u64,
        is_timed: &AtomicBool,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Measured, Ended> {
        let none = Laps {
            device: vec![0; self.shards.len() * usize::from(host.is_some())],
            device_distances: vec![0; self.shards.len() * usize::from(host.is_some())],
            ..Laps::default()
        };
        let mut searcher = Searcher {
            data: self.data,
            how: self.how,
            most: self.most,
            once: self.once,
            host,
            met: Met::new(self.data.places.len()),
            laps: none.clone(),
            ids: Vec::with_capacity(MOST_NEIGHBOURS),
            sums: Vec::with_capacity(MOST_NEIGHBOURS),
        };
        let mut whole = 0;
        for _ in 0..2 {
            let begin = (ticks.now)();
            for query in self.queries.rows() {
                if !go_on() {
                    return Err(Ended::Stopped);
                }
                black_box(searcher.search::<false>(query, ticks, 0)?);
            }
            whole = (ticks.now)().wrapping_sub(begin).saturating_sub(cost);
        }
        searcher.laps = none;
        is_timed.store(true, Relaxed);
        let mut found = Vec::with_capacity(self.queries.len());
        for query in self.queries.rows() {
            if !go_on() {
                return Err(Ended::Stopped);
            }
            found.push(searcher.search::<true>(query, ticks, cost)?);
        }
        Ok(Measured {
            whole,
            laps: searcher.laps,
            arithmetic: Vec::new(),
            found,
        })
    }
}
