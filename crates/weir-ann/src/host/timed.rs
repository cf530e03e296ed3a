//! A search in each variant, and what its time is spent on, by laps of a clock.

use weir_loops::distance::prefetch;
use weir_model::units::Nanos;

use crate::candidates::{Candidates, Met};
use crate::ladder::Variant;
use crate::vectors::{Metric, Near};

use super::layout::{Place, neighbours};
use super::ring::{Command, Gone, Host};

/// A clock, in ticks of its own.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// Now, once all before it is done.
    pub now: fn() -> u64,
    /// The length of one.
    pub tick: Nanos,
}

/// What a variant adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Devices compute distances.
    pub by_devices: bool,
    /// Lists of inner hops are in local memory.
    pub has_inner: bool,
    /// The next list is foreseen and prefetched.
    pub foresees: bool,
    /// Insertions wait until the next distances are under way.
    pub defers: bool,
}

impl From<Variant> for How {
    fn from(variant: Variant) -> Self {
        use Variant::{Base, Cache, Cxla, NearOracle, NoPrefetch, Oracle};
        Self {
            by_devices: !matches!(variant, Oracle | Base),
            has_inner: matches!(variant, NoPrefetch | Cache | Cxla),
            foresees: matches!(variant, Cache | Cxla | NearOracle),
            defers: matches!(variant, Cxla | NearOracle),
        }
    }
}

/// Data of a variant, wherever they are placed.
#[derive(Debug, Clone, Copy)]
pub struct Data<'m> {
    /// The node at which searches begin.
    pub entry: u32,
    /// Where lists are.
    pub places: &'m [Place],
    /// Lists of inner hops, in local memory.
    pub inner: &'m [u32],
    /// The other lists.
    pub pool: &'m [u32],
    /// Whole vectors, where the searching thread computes distances.
    pub vectors: &'m [f32],
    /// Elements of one.
    pub dims: usize,
    /// Their distance.
    pub metric: Metric,
}

/// What searches spent in ticks, the clock's own taken off, and what they counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Laps {
    /// Reads of lists.
    pub traverse: i64,
    /// Distances by the searching thread: reads of vectors and arithmetic.
    pub distances: i64,
    /// The same by the slowest device of each command.
    pub device: Vec<i64>,
    /// Distances of the commands for which a device was the slowest one.
    pub device_distances: Vec<u64>,
    /// The candidate array.
    pub update: i64,
    /// Commands and results, without what devices do.
    pub interface: i64,
    /// Waits with nothing to do.
    pub idle: i64,
    /// Readings of the clock, without the first of each search.
    pub laps: u64,
    /// Lists that were read.
    pub steps: u64,
    /// Of them, lists of inner hops in local memory.
    pub inner: u64,
    /// Words of lists that were read from the pool.
    pub pool_words: u64,
    /// Distances.
    pub computed: u64,
    /// Doorbells.
    pub doorbells: u64,
}

impl Laps {
    /// All of the time.
    pub fn total(&self) -> i64 {
        let devices: i64 = self.device.iter().sum();
        self.traverse + self.distances + devices + self.update + self.interface
    }
}

/// A clock that is looked at between parts, or none.
struct Stopwatch<const TIMED: bool> {
    now: fn() -> u64,
    cost: i64,
    last: u64,
    laps: u64,
}

impl<const TIMED: bool> Stopwatch<TIMED> {
    fn begin(ticks: Ticks, cost: u64) -> Self {
        Self {
            now: ticks.now,
            cost: cost as i64,
            last: if TIMED { (ticks.now)() } else { 0 },
            laps: 0,
        }
    }

    /// Ticks since the last look, less those of a look.
    #[inline(always)]
    fn lap(&mut self) -> i64 {
        if !TIMED {
            return 0;
        }
        let now = (self.now)();
        let since = now.wrapping_sub(self.last) as i64 - self.cost;
        self.last = now;
        self.laps += 1;
        since
    }
}

/// Searches of one variant.
#[derive(Debug)]
pub struct Searcher<'s> {
    /// Where data are.
    pub data: Data<'s>,
    /// What the variant adds.
    pub how: How,
    /// Length of the candidate array.
    pub most: usize,
    /// Whether a set of the nodes that were met spares distances.
    pub once: bool,
    /// The devices, where there are any.
    pub host: Option<Host<'s>>,
    /// The nodes that were met.
    pub met: Met,
    /// What they spent so far.
    pub laps: Laps,
    /// Numbers and distances of a step.
    pub ids: Vec<u32>,
    /// See `ids`.
    pub sums: Vec<f32>,
}

impl Searcher<'_> {
    /// The candidates nearest to a query; `TIMED` where the clock, a look at which takes `cost`, is looked at between parts.
    ///
    /// # Errors
    /// A device has gone.
    pub fn search<const TIMED: bool>(
        &mut self,
        query: &[f32],
        ticks: Ticks,
        cost: u64,
    ) -> Result<Vec<Near>, Gone> {
        let mut watch = Stopwatch::<TIMED>::begin(ticks, cost);
        let doorbells = self.host.as_ref().map_or(0, Host::doorbells);
        let mut array = Candidates::new(self.most);
        // Without a set of the nodes that were met, some are in the array.
        let once = self.once;
        let put = |array: &mut Candidates, near, visited| {
            if once || !array.has(near) {
                array.insert(near, visited);
            }
        };
        let (mut pending, mut chosen): (Vec<Near>, Option<u32>) = (Vec::new(), None);
        self.met.clear();
        self.met.meet(self.data.entry);
        self.ids.clear();
        self.ids.push(self.data.entry);
        self.laps.update += watch.lap();
        if let Some(host) = &mut self.host {
            host.post(Command::Query(query))?;
            self.laps.interface += watch.lap();
        }
        self.distances(query, &mut watch, |_| None)?;
        let mut current = self.fresh().next();
        if let Some(entry) = current {
            array.insert(entry, true);
        }
        self.laps.update += watch.lap();
        while let Some(near) = current {
            self.read_list(near.id);
            self.laps.traverse += watch.lap();
            if self.once {
                let met = &mut self.met;
                self.ids.retain(|&id| met.meet(id));
                self.laps.update += watch.lap();
            }
            let How {
                defers, foresees, ..
            } = self.how;
            self.distances(query, &mut watch, |places| {
                for near in pending.drain(..) {
                    put(&mut array, near, Some(near.id) == chosen);
                }
                let next = if foresees {
                    array.nearest_unvisited()
                } else {
                    None
                };
                places.get(next?.id as usize).copied()
            })?;
            if defers {
                let stale = array.nearest_unvisited();
                let mut best = None;
                for near in self.fresh() {
                    if best.or(stale).is_none_or(|old| near.order(&old).is_lt())
                        && array.admits(near)
                        && !array.has(near)
                    {
                        best = Some(near);
                    }
                    pending.push(near);
                }
                if best.is_none() {
                    array.visit_nearest();
                }
                chosen = best.map(|near| near.id);
                current = best.or(stale);
            } else {
                for near in self.fresh() {
                    put(&mut array, near, false);
                }
                current = array.nearest_unvisited();
                array.visit_nearest();
            }
            self.laps.update += watch.lap();
        }
        for near in pending {
            put(&mut array, near, false);
        }
        self.laps.update += watch.lap();
        self.laps.laps += watch.laps;
        self.laps.doorbells += self.host.as_ref().map_or(0, Host::doorbells) - doorbells;
        Ok(array.iter().collect())
    }

    /// What the last distances were.
    fn fresh(&self) -> impl Iterator<Item = Near> {
        let both = self.ids.iter().zip(&self.sums);
        both.map(|(&id, &distance)| Near::new(distance, id))
    }

    /// Copies the list of a node.
    fn read_list(&mut self, node: u32) {
        self.ids.clear();
        let Some(&place) = self.data.places.get(node as usize) else {
            return;
        };
        let lists = match place.is_inner {
            true => self.data.inner,
            false => self.data.pool,
        };
        self.ids.extend(neighbours(lists, place));
        self.laps.steps += 1;
        match place.is_inner {
            true => self.laps.inner += 1,
            false => self.laps.pool_words += u64::from(place.words),
        }
    }

    /// Distances of the nodes in `ids`. While devices compute them, `meanwhile` does other work, and may say which list is
    /// to be prefetched.
    fn distances<const TIMED: bool>(
        &mut self,
        query: &[f32],
        watch: &mut Stopwatch<TIMED>,
        meanwhile: impl FnOnce(&[Place]) -> Option<Place>,
    ) -> Result<(), Gone> {
        self.laps.computed += self.ids.len() as u64;
        let data = self.data;
        let Some(host) = &mut self.host else {
            by_rows(data.metric, query, data.vectors, &self.ids, &mut self.sums);
            self.laps.distances += watch.lap();
            return Ok(());
        };
        let command = host.post(Command::Distances(&self.ids))?;
        self.laps.interface += watch.lap();
        if let Some(place) = meanwhile(data.places).filter(|place| !place.is_inner) {
            let from = place.at as usize;
            prefetch(
                data.pool
                    .get(from..from + place.words as usize)
                    .unwrap_or_default(),
            );
        }
        let hidden = watch.lap();
        let at_once = host.wait(command)?;
        let waited = watch.lap();
        host.sums(command, &mut self.sums);
        if let Some((device, work)) = host.slowest(command) {
            let work = (work as i64).min(hidden + waited);
            let rest = hidden + waited - work;
            if let Some(own) = self.laps.device.get_mut(device) {
                *own += work;
            }
            if let Some(own) = self.laps.device_distances.get_mut(device) {
                *own += self.ids.len() as u64;
            }
            match at_once {
                // The devices had finished: the core's other work took longer.
                true => self.laps.update += rest,
                false => self.laps.interface += rest,
            }
        }
        if !at_once {
            self.laps.idle += waited;
        }
        self.laps.interface += watch.lap();
        Ok(())
    }
}

/// Distances of vectors that are one after the other, of whole ones or of a device's part of them.
pub fn by_rows(metric: Metric, query: &[f32], vectors: &[f32], ids: &[u32], to: &mut Vec<f32>) {
    let row = |id: u32| {
        let at = id as usize * query.len();
        vectors.get(at..at + query.len()).unwrap_or_default()
    };
    ids.iter().for_each(|&id| prefetch(row(id)));
    to.clear();
    to.extend(ids.iter().map(|&id| metric.distance(query, row(id))));
}
