//! How published rows of pools are answered: by the calculators, and by replays and packings of generated clusters.

use std::sync::OnceLock;

use weir_lab::reproduce::rule::{Figure, Rule};
use weir_model::stop;
use weir_model::units::Nanos;

use crate::PlanError;
use crate::cost::break_even::{Case, Reading, equal_prices};
use crate::cost::dimms::Fleet;
use crate::latency::{Build, Latency};
use crate::packing::{Packing, PackingRow};
use crate::pool::split::{Predictions, SLOWED};
use crate::pool::stranding::percentile;
use crate::pool::verdict::Saving;
use crate::pool::{PoolPlan, Pools, SOCKETS, Traced};
use crate::prices::Prices;
use crate::trace::generate::{DAY, Generate, INSENSITIVE, MACHINE, touched_pct};

/// Clusters that are replayed for the rows of traces, as many as Pond has (section 3.1).
const CLUSTERS: u64 = 100;
/// Those of them for which the least memory is searched.
const SEARCHED: u64 = 8;
/// The seed of the first.
const SEED: u64 = 1;
/// Growths of VMs that are packed.
const GROWTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Clusters that are packed, each with the machines of a small zone: pools of 16 are then so many that it matters little
/// how full the last is.
const ZONES: u64 = 8;
/// Their machines.
const OF_ZONE: u32 = 1024;
/// Machines of the pools that they are packed into.
const POOLS: [u32; 4] = [2, 4, 8, 16];
/// A gain above this is one.
const GAIN: f64 = 1.01;
/// Bytes of a cache line.
const LINE: f64 = 64.0;

const ON_GENERATED: &str = "on generated clusters of 1024 machines";
const STRANDED: &str = "the memory of a generated machine, and how much clusters differ, were set so that these three rows are near";
const KEPT: &str = "on 100 generated clusters; each VM stays on its machine, and each machine and pool has its own peak; own form, on 8: VMs are \
     placed anew, on equal machines with equal pools that have the least memory with which they find room, with and without a pool";
const KEPT_POND: &str = "on 8 generated clusters, placed by a scheduler that sees both memories, as Pond's does; own form: VMs stay on their \
     machines, which must hold the most local memory that ever meets there, since three VMs of ten are in the pool as a whole";
const PROGRAMS: &str =
    "needs the paper's programs; `weir plan insensitive` marks those of a population";
const SPANNING: &str = "on generated clusters; a machine with room on one socket comes first, and a VM of 256 GiB is larger than a socket";
const PORTS: &str =
    "a device with a port for each of 16 sockets (Pond, Figure 6), and two sockets a host";
const SHARED: &str = "two sets for each server (VMD-007); what shared sets save depends on the load of the rack, which is not stated";
const RELEASES: &str = "on 100 generated clusters; VMs stay on their machines with all that is predicted in pools of 16 sockets, which have their \
     peaks and no buffer; speeds of 1, 2, 5, 10 MB/s and so on were tried";
const GOOGLE: &str = "needs the Google trace of 2019, which is not here";
const MARKED: &str = "the mispredictions of the replay were set so that it is near";
const CAPTION: &str = "the caption says less than the components of its figure sum up to";
const TOUCHING: &str = "the generator has the untouched memory of PON-087, evenly below 20 %; own form: slices of 1 GiB, of which 15 % of a small VM is none";
const SIX_BITS: &str = "six bits name 64 hosts and leave none for a free slice";
const TERABYTES: &str = "38,500 USD at 3 USD/GB are 12.8 TB of 1000 GB and 12.5 TB of 1024 GB; all that follows inherits it";
const READING_A: &str =
    "reading A of a formula that is not printed; reading B, that of the text, gives 33.4";
const READING_A_8: &str =
    "reading A of a formula that is not printed; reading B, that of the text, gives 24.6";
const NOMINAL: &str = "the paper rounds 768, 1152 and 1536 GB";

/// Every rule for rows of pools.
pub fn rules() -> Vec<Rule> {
    let mut rules = latency();
    rules.extend(cost());
    rules.extend(loop_of_loads());
    rules.extend(racks());
    rules.extend(traces());
    rules.extend(crate::predict::published::rules());
    rules.extend(unanswered());
    rules
}

fn figure(
    unit: &'static str,
    of: impl Fn() -> Result<f64, String> + Send + Sync + 'static,
) -> Figure {
    Figure::new(unit, move |_| of())
}

fn latency() -> Vec<Rule> {
    let published = Latency::default;
    let load = move |sockets: u32| published().load("", sockets, Build::of(sockets));
    let total = move |sockets| figure("ns", move || Ok(load(sockets).total.get()));
    let added = move |sockets| figure("ns", move || Ok(load(sockets).added.get()));
    let against_switch = figure("%", move || {
        let switched = published().load("", 16, Build::switched(16));
        Ok(100.0 * (load(16).total / switched.total - 1.0))
    });
    vec![
        Rule::identity(
            "PON-041",
            figure("ns", move || Ok(published().local().get())),
        ),
        Rule::identity("PON-042", total(8)),
        Rule::identity("PON-043", total(16)),
        Rule::identity("PON-044", total(32)).noting("stated as a bound"),
        Rule::identity("PON-008a", added(8)),
        Rule::identity("PON-008b", added(16)).noting(CAPTION),
        Rule::identity("PON-009", added(64)).noting("stated as a bound"),
        Rule::identity("PON-039", added(8)),
        Rule::identity("PON-050", against_switch),
        Rule::identity("PON-051a", added(8)).noting(
            "the caption says more than the components of its figure for the smallest pool",
        ),
        Rule::identity("PON-051b", added(16)).noting(CAPTION),
        Rule::identity("PON-053", figure("B", || Ok(1024.0 * 6.0 / 8.0))).noting(SIX_BITS),
        Rule::identity("PON-012", figure("%", || Ok(26.0 + 17.0))),
        Rule::identity("PON-013", figure("%", || Ok(23.0 + 14.0))),
        Rule::identity("PON-102", figure("%", || Ok(0.07 * 50.0)))
            .noting("half of a server's cost is DRAM (PON-001)"),
    ]
}

fn builtin() -> Result<Prices, String> {
    Prices::builtin().map_err(|mistakes| mistakes.to_string())
}

fn cost() -> Vec<Rule> {
    let step = |unit: &'static str, at: usize| {
        figure(unit, move || {
            let steps = equal_prices(&builtin()?, 0.09, 32.0, 384.0);
            steps
                .get(at)
                .map(|step| step.value)
                .ok_or_else(|| "no such step".into())
        })
    };
    let servers = |gb_per_core, price_ratio| {
        figure("servers", move || {
            let case = Case {
                reading: Reading::A,
                gb_per_core,
                vcpus: 384.0,
                price_ratio,
                cut: 0.25,
                saved: 0.09,
            };
            case.servers(&builtin()?)
                .ok_or_else(|| "no number of servers pays".into())
        })
    };
    let fleet = |saved| Fleet {
        servers: 32,
        sockets: 1,
        channels: 12,
        dimm: 128,
        pool_channels: 12,
        saved,
        price_ratio: 1.0,
    };
    let socket = move |dimm| figure("GB", move || Ok(fleet(0.09).server_gb(dimm) as f64));
    let cut = move |saved, of: fn(&crate::cost::dimms::Cut) -> f64| {
        figure("%", move || {
            let cuts = fleet(saved).cuts(&builtin()?);
            cuts.first().map(of).ok_or_else(|| "no smaller DIMM".into())
        })
    };
    vec![
        Rule::identity("AGP-031", step("TB", 0)).noting(TERABYTES),
        Rule::identity("AGP-033", step("TB", 2)).noting(TERABYTES),
        Rule::identity("AGP-034", step("TB", 3)).noting(TERABYTES),
        Rule::identity("AGP-035", step("TB", 4)),
        Rule::identity("AGP-036", step("GB", 5)).noting("stated as a bound"),
        Rule::identity("AGP-037", servers(4.0, 0.0)).noting(READING_A),
        Rule::identity("AGP-038", servers(8.0, 0.5)).noting(READING_A_8),
        Rule::identity("AGP-025a", socket(64)).noting(NOMINAL),
        Rule::identity("AGP-025b", socket(96)).noting(NOMINAL),
        Rule::identity("AGP-025c", socket(128)).noting(NOMINAL),
        Rule::identity("AGP-026", cut(0.09, |cut| cut.cut_pct)),
        Rule::identity("AGP-066a", cut(0.09, |cut| cut.need_pool_pct)),
        Rule::identity("AGP-066b", cut(0.07, |cut| cut.need_pool_pct)),
        Rule::identity("AGP-028", figure("Tb/s", || Ok(16.0 * 480.0 / 1000.0))),
    ]
}

/// A loop of two bytes a cycle at 3 GHz whose loads take 280 ns (A Case Against CXL Memory Pooling, section 4.2).
fn loop_of_loads() -> Vec<Rule> {
    const CYCLES: f64 = 280.0 * 3.0;
    vec![
        Rule::identity("AGP-048", figure("clk", || Ok(CYCLES))),
        Rule::identity("AGP-049", figure("B", || Ok(2.0 * CYCLES))),
        Rule::identity("AGP-050", figure("lines", || Ok(2.0 * CYCLES / LINE))),
        Rule::identity("AGP-016", figure("ns", || Ok(Nanos(256.0 / 62.0).get()))),
    ]
}

/// Hosts and power of a rack (Memory disaggregation: why now and what are the challenges, sections 2.3 and 3).
fn racks() -> Vec<Rule> {
    let hosts = figure("hosts", || {
        let most = (SOCKETS..=64).take_while(|sockets| !Build::of(*sockets).switch);
        Ok(f64::from(most.last().unwrap_or(0) / SOCKETS))
    });
    vec![
        Rule::identity("VMD-005b", hosts).noting(PORTS),
        Rule::identity("VMD-006", figure("sets", || Ok(40.0 * 2.0))).noting(SHARED),
    ]
}

/// Generated clusters, replayed and packed once.
struct Generated {
    plan: PoolPlan,
    packings: Vec<PackingRow>,
}

fn generated() -> Result<&'static Generated, String> {
    static DONE: OnceLock<Result<Generated, String>> = OnceLock::new();
    let done = DONE.get_or_init(|| generate(&builtin()?).map_err(|error| error.to_string()));
    done.as_ref().map_err(Clone::clone)
}

fn generate(prices: &Prices) -> Result<Generated, PlanError> {
    let pools = Pools {
        sockets: vec![8, 16, 32, 64],
        machines: Generate::default().machines,
        machine: MACHINE,
        fixed: vec![0.15, 0.50],
        predictions: Predictions::default(),
        release_ms: 100,
        price_ratio: 1.0,
        seed: SEED,
    };
    let go_on = || !stop::requested();
    let (mut clusters, mut replayed) = (Vec::new(), Vec::new());
    for at in 0..CLUSTERS {
        // What a stopped replay has is not the answer of a row.
        if !go_on() {
            return Err(PlanError::Stopped);
        }
        let traced = cluster(at, Generate::default())?;
        let on = &mut |_| go_on();
        replayed.push(match at < SEARCHED {
            true => pools.replay(&traced.trace, on)?,
            false => pools.keep(&traced.trace, on)?,
        });
        clusters.push(traced);
    }
    let packing = Packing {
        inflate: GROWTHS.to_vec(),
        pools: POOLS.to_vec(),
    };
    let mut packings = Vec::new();
    for at in 0..ZONES {
        let zone = Generate {
            machines: OF_ZONE,
            days: 1.0,
            ..Generate::default()
        };
        let zone = cluster(at, zone)?;
        packings.extend(packing.of(
            &zone.name,
            &zone.trace.snapshot(DAY as u32 / 2),
            MACHINE.shape(),
            &go_on,
        )?);
    }
    let plan = pools.conclude(&clusters, &replayed, prices)?;
    Ok(Generated { plan, packings })
}

/// A generated cluster.
fn cluster(at: u64, generate: Generate) -> Result<Traced, PlanError> {
    let generate = Generate {
        seed: SEED.wrapping_mul(1_000_003).wrapping_add(at),
        insensitive: INSENSITIVE,
        ..generate
    };
    Ok(Traced {
        name: format!("generated {}", at + 1),
        trace: generate.run()?,
        problems: Vec::new(),
        unit: "VM",
        drawn: 0,
    })
}

fn traces() -> Vec<Rule> {
    let row = |policy: &'static str, sockets, of: fn(&Saving) -> f64| {
        figure("%", move || {
            let row = generated()?.plan.saving(policy, sockets);
            row.map(of).ok_or_else(|| "no such policy".into())
        })
    };
    let saved = |id: &str, policy, sockets| Rule {
        own: Some(row(policy, sockets, |row| row.saved_pct)),
        ..Rule::predicted(id, row(policy, sockets, |row| row.kept_pct)).noting(KEPT)
    };
    let release = figure("GB/s", || {
        let row = generated()?.plan.saving("pond", 16);
        let speed = row.and_then(|row| row.release);
        Ok(speed.ok_or("no speed up to 1 TB/s is enough")?.get())
    });
    let untouched = figure("%", || {
        let quantiles = (0..1000).map(|n| (f64::from(n) + 0.5) / 1000.0);
        let less = quantiles
            .filter(|quantile| touched_pct(*quantile) < 50)
            .count();
        Ok(less as f64 / 10.0)
    });
    let gain = figure("%", || {
        let gains = POOLS.map(|pool| mean_gain(1, pool));
        let most = gains.into_iter().collect::<Result<Vec<f64>, String>>()?;
        Ok(100.0 * (most.into_iter().fold(1.0, f64::max) - 1.0))
    });
    let begins = || {
        figure("x", || {
            for growth in GROWTHS {
                for pool in POOLS {
                    if mean_gain(growth, pool)? >= GAIN {
                        return Ok(f64::from(growth));
                    }
                }
            }
            Err("no growth up to 64 gains 1 %".into())
        })
    };
    let mean = |from: f64, to: f64| {
        figure("%", move || {
            stranded(from, to, |days| {
                days.iter().sum::<f64>() / days.len() as f64
            })
        })
    };
    let p95 = figure("%", || stranded(85.0, 100.0, |days| percentile(days, 0.95)));
    let plan = |of: fn(&PoolPlan) -> f64| figure("%", move || Ok(of(&generated()?.plan)));
    vec![
        Rule::predicted(
            "PON-031",
            plan(|plan| 100.0 * plan.spanning as f64 / plan.placed.max(1) as f64),
        )
        .noting(SPANNING),
        Rule::predicted("PON-032", plan(|plan| plan.apart_pct)).noting(SPANNING),
        Rule::identity("PON-020", untouched)
            .noting("the generator has the untouched memory of PON-021 and PON-087"),
        Rule::identity("PON-023", mean(72.5, 77.5)).noting(STRANDED),
        Rule::identity("PON-024", mean(82.5, 87.5)).noting(STRANDED),
        Rule::identity("PON-025", p95).noting(STRANDED),
        saved("PON-033", "fixed 50 %", 32),
        saved("PON-034", "fixed 50 %", 64),
        saved("PON-035", "fixed 50 %", 16),
        Rule::identity("PON-093", row("pond", 16, |row| row.may_pct)).noting(MARKED),
        Rule {
            own: Some(row("pond", 16, |row| row.kept_pct)),
            ..Rule::predicted("PON-095", row("pond", 16, |row| row.saved_pct)).noting(KEPT_POND)
        },
        Rule::predicted("PON-099", release).noting(RELEASES),
        Rule {
            own: Some(row("fixed 15 %", 16, |row| row.slow_as_split_pct / SLOWED)),
            ..Rule::identity("PON-098a", row("fixed 15 %", 16, |row| row.touching_pct))
                .noting(TOUCHING)
        },
        Rule::identity(
            "PON-098b",
            row("fixed 15 %", 16, |row| row.touching_pct * SLOWED),
        )
        .noting("a quarter of PON-098a, as the paper says"),
        Rule::predicted("AGP-054b", gain).noting(ON_GENERATED),
        Rule::predicted("AGP-008", begins()).noting(ON_GENERATED),
        Rule::predicted("AGP-058", begins()).noting(ON_GENERATED),
    ]
}

/// The mean gain of packing over clusters.
fn mean_gain(growth: u32, pool: u32) -> Result<f64, String> {
    let rows = generated()?.packings.iter();
    let rows = rows.filter(|row| (row.inflate, row.pool) == (growth, pool));
    Ok(rows.map(|row| row.gain_fractional).sum::<f64>() / ZONES as f64)
}

/// A figure of the stranded memory on days with such a share of the cores rented, in percent.
fn stranded(from: f64, to: f64, of: impl Fn(&[f64]) -> f64) -> Result<f64, String> {
    let days = generated()?.plan.days.iter();
    let within = days.filter(|day| (from..to).contains(&day.cores_pct));
    let mut within: Vec<f64> = within.map(|day| day.stranded_pct).collect();
    within.sort_by(f64::total_cmp);
    match within.is_empty() {
        true => Err(format!(
            "no day of the generated clusters has {from} % to {to} % of the cores rented"
        )),
        false => Ok(of(&within)),
    }
}

fn unanswered() -> Vec<Rule> {
    let reasons = [
        (&["PON-083"][..], PROGRAMS),
        (&["AGP-007", "AGP-053", "AGP-054a", "AGP-056"], GOOGLE),
    ];
    let rules = reasons.into_iter().flat_map(|(ids, needs)| {
        ids.iter().flat_map(move |id| {
            let rules = Rule::not_modelled("", [0], needs);
            rules.map(|rule| Rule {
                id: (*id).to_owned(),
                ..rule
            })
        })
    });
    rules.collect()
}
