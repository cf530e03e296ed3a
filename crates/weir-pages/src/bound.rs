//! What the best placement would give: a bound that no policy reaches.

use weir_model::units::LINE_BYTES;

use crate::simulation::Host;
use crate::traffic::{Demand, Flow, Part, Split};
use crate::workload::PagedWorkload;

/// Pages of a band, or of a region without bands.
#[derive(Debug, Clone, Copy)]
struct Item {
    share: f64,
    bytes: f64,
    writes: f64,
    mlp: f64,
}

/// Rounds of a search at most. Each improves the placement, or ends it.
const ROUNDS: u32 = 100;
/// A round tries to go all the way to its aim, and then half as far, this often.
const HALVINGS: u32 = 12;
/// Weights of an access's traffic, to begin a search with, and parts of the pages that fill the fast tier.
const TRAFFIC: [f64; 7] = [-0.3, -0.15, -0.1, -0.05, 0.0, 0.2, 1.0];
const PARTS: u32 = 20;
/// Searches, from the best placements to begin with.
const SEARCHES: usize = 8;
/// Steps in which single items are moved at the end of a search.
const STEPS: [f64; 3] = [0.25, 0.05, 0.01];
/// Seconds between two placements.
const STEP_S: f64 = 0.25;

/// Accesses in a second, in millions, if at each time each page were where all accesses together go fastest: rates are known,
/// moves cost nothing and take no time. Placements are searched, by steps along the gradient (Frank and Wolfe) and then of
/// single bands: where the curves have dents, the best one may be missed.
pub fn most(workload: &PagedWorkload, host: &Host, seconds: f64) -> f64 {
    let (mut all, mut steps) = (0.0, 0.0);
    let mut last: Option<(Now, f64)> = None;
    while steps * STEP_S < seconds {
        let t = steps * STEP_S;
        let regions = (workload.regions.iter().enumerate())
            .map(|(n, region)| (workload.share_at(n, t), region.growth.share_at(t)))
            .collect();
        let now = (workload.compute_ns(&host.fast, t), regions);
        let speed = match &last {
            Some((before, speed)) if *before == now => *speed,
            _ => at(workload, host, &now),
        };
        all += speed;
        last = Some((now, speed));
        steps += 1.0;
    }
    all / f64::max(steps, 1.0)
}

/// Computing before each access, and of each region the share of accesses, and of memory that is allocated.
type Now = (f64, Vec<(f64, f64)>);

fn at(workload: &PagedWorkload, host: &Host, (compute_ns, now): &Now) -> f64 {
    let mut items: Vec<Item> = Vec::new();
    for (region, (accesses, grown)) in workload.regions.iter().zip(now) {
        let pages = (region.bytes.get() / region.page.get()).max(1) as f64;
        let (mut share, mut from) = (0.0, 0.0);
        for band in &region.bands {
            share += band.pages;
            // Whole pages, as the simulation has them: a band without a page has no accesses.
            let to = (share * pages).round();
            if to > from {
                items.push(Item {
                    share: accesses * grown * band.accesses,
                    bytes: (to - from) * region.page.get() as f64 * grown,
                    writes: region.writes,
                    mlp: region.mlp,
                });
            }
            from = to;
        }
    }
    let sum: f64 = items.iter().map(|item| item.share).sum();
    for item in &mut items {
        item.share /= sum.max(f64::MIN_POSITIVE);
    }
    let problem = Problem {
        compute_ns: *compute_ns,
        threads: f64::from(workload.threads),
        items,
        host,
    };
    let mut starts = problem.starts();
    starts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = starts.into_iter().take(SEARCHES);
    best.map(|(speed, from)| problem.search(speed, from))
        .fold(0.0, f64::max)
        * 1e9
        / 1e6
}

struct Problem<'a> {
    items: Vec<Item>,
    host: &'a Host,
    compute_ns: f64,
    threads: f64,
}

impl Problem<'_> {
    fn demand(&self, local: &[f64]) -> Demand {
        let items = self.items.iter().zip(local);
        let split = Split::of(items.map(|(item, local)| Part {
            accesses: [*local, 1.0 - local].map(|part| item.share * part),
            mlp: item.mlp,
            writes: item.writes,
        }));
        // An interval of a nanosecond: accesses are those in it.
        Demand::steady(self.threads, self.compute_ns, 1.0, split)
    }

    fn flow(&self, local: &[f64]) -> Flow {
        let curves = [&self.host.fast.curve, &self.host.slow.curve];
        self.demand(local).solve(curves)
    }

    /// Placements from which a search begins, with their speeds: one alone may stay in a dent of a curve. Accesses weigh by
    /// their wait, and by their traffic this much more or less; a part of what that fills is on the fast tier.
    fn starts(&self) -> Vec<(f64, Vec<f64>)> {
        let filled = TRAFFIC.map(|weight| {
            self.fill(|item| {
                item.share * (1.0 / item.mlp + weight * (1.0 + item.writes)) / item.bytes.max(1.0)
            })
        });
        let parts = (0..=PARTS).map(|n| f64::from(n) / f64::from(PARTS));
        parts
            .flat_map(|part| {
                filled
                    .iter()
                    .map(move |full| full.iter().map(|x| x * part).collect())
            })
            .map(|local: Vec<f64>| (self.flow(&local).accesses, local))
            .collect()
    }

    /// The largest speed that is found from a placement, which has this one.
    fn search(&self, mut best: f64, mut local: Vec<f64>) -> f64 {
        for _ in 0..ROUNDS {
            let aim = self.towards(&local);
            let tried = (0..HALVINGS).map(|n| 0.5f64.powi(n as i32)).map(|part| {
                let there: Vec<f64> = (local.iter().zip(&aim))
                    .map(|(from, to)| from + part * (to - from))
                    .collect();
                (self.flow(&there).accesses, there)
            });
            let Some((speed, there)) = tried.max_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            if speed <= best * (1.0 + 1e-6) {
                break;
            }
            (best, local) = (speed, there);
        }
        self.refine(best, local)
    }

    /// Moves a part of one item at a time, in smaller and smaller steps, while that helps.
    fn refine(&self, mut best: f64, mut local: Vec<f64>) -> f64 {
        let room = self.host.fast.capacity.get() as f64;
        for step in STEPS {
            let mut again = ROUNDS;
            while again > 0 {
                let before = best;
                for n in 0..local.len() {
                    for by in [-step, step] {
                        let old = local[n];
                        local[n] = (old + by).clamp(0.0, 1.0);
                        let used: f64 = (self.items.iter().zip(&local))
                            .map(|(item, part)| item.bytes * part)
                            .sum();
                        let speed = self.flow(&local).accesses;
                        match used <= room && speed > best {
                            true => best = speed,
                            false => local[n] = old,
                        }
                    }
                }
                again = if best > before * (1.0 + 1e-6) {
                    again - 1
                } else {
                    0
                };
            }
        }
        best
    }

    /// The placement that would be best if each page gained what it gains at this one.
    fn towards(&self, local: &[f64]) -> Vec<f64> {
        let demand = self.demand(local);
        let curves = [&self.host.fast.curve, &self.host.slow.curve];
        let flow = demand.solve(curves);
        let delay = |t: usize| {
            let read_share = 1.0 / (1.0 + demand.split.writes[t]);
            let slope = curves[t].slope(flow.gbps[t], read_share);
            slope * demand.split.waits[t] * flow.accesses
        };
        let extra = delay(1) - delay(0);
        let own = (flow.latency[1] - flow.latency[0]).get();
        self.fill(|item| {
            let lines = LINE_BYTES as f64 * (1.0 + item.writes);
            item.share * (own / item.mlp + extra * lines) / item.bytes.max(1.0)
        })
    }

    /// Those with the largest gain, as far as they gain and the fast tier has room.
    fn fill(&self, gain: impl Fn(&Item) -> f64) -> Vec<f64> {
        let gains: Vec<f64> = self.items.iter().map(gain).collect();
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by(|a, b| gains[*b].total_cmp(&gains[*a]));
        let mut room = self.host.fast.capacity.get() as f64;
        let mut there = vec![0.0; self.items.len()];
        for n in order {
            if gains[n] <= 0.0 || room <= 0.0 {
                break;
            }
            there[n] = (room / self.items[n].bytes.max(1.0)).min(1.0);
            room -= there[n] * self.items[n].bytes;
        }
        there
    }
}
