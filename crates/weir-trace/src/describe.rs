//! A description of the program whose accesses were watched.
//!
//! Accesses that hit L1 because their line was used just before are not described: their time is in `cpi`. Where lines follow
//! each other, accesses to one line belong to its run and are; where popularity alone explains the times, all are.

use weir_model::units::{Bytes, LINE_BYTES};
use weir_model::workload::{Order, Phase, Region, Within, Workload};

use crate::fit::{Component, Popular, Times, cycles, random};
use crate::l1;
use crate::regions::{MOST, Part, parts};
use crate::watch::Watch;

/// Sizes of caches, in lines, whose misses a description should have: 1, 8 and 32 MiB.
pub const CACHES: [u64; 3] = [1 << 14, 1 << 17, 1 << 19];
/// Lines in a row from which a part is a run, and not made of long elements.
const RUN: f64 = 24.0;
/// Uses that a model of a part may have too many or too few, as a share.
const ERROR: f64 = 0.03;
/// The part of all uses against which those of a small part are taken.
const SMALL: f64 = 0.1;
/// Lines that stay in L1 whatever else is used: a sixteenth of it.
const IN_L1: f64 = (l1::LINES / 16) as f64;
/// The exponent below which Zipf's law is not told from equal chances.
const EVEN: f64 = 0.2;
/// The error from which lines may be used in the same order each time.
const SHARP: f64 = 0.1;
/// Regions that a part is described by, at most.
const KINDS: usize = 4;
/// Regions that a phase may have.
const REGIONS: usize = 16;
/// Accesses in a thousand instructions where a trace has no instructions.
pub const USUAL_ACCESSES: f64 = 300.0;

/// What a trace does not say, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// The name of the workload.
    pub name: String,
    /// What ran, or the file.
    pub of: String,
    /// The format.
    pub format: crate::Format,
    /// Whether instructions are counted in the trace.
    pub has_instructions: bool,
    /// Whether it says which load an address comes from.
    pub has_dependences: bool,
    /// Core cycles of an instruction while everything hits L1.
    pub cpi: f64,
}

/// A description, and what each of its regions is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The description.
    pub workload: Workload,
    /// Parts of the address space.
    pub parts: Vec<Part>,
    /// The part of each region.
    pub of: Vec<usize>,
    /// The addresses of each region, in words.
    pub remarks: Vec<String>,
    /// Instructions of a window of the trace.
    pub instructions: f64,
    /// Accesses of a window that the regions have.
    pub accesses: f64,
    /// The largest error of the times of a part that was taken because no model had a smaller one.
    pub error: f64,
}

/// One part, described.
struct Described {
    order: Order,
    components: Vec<Component>,
    skew: f64,
    element: u64,
    stride: u64,
    /// Accesses of a line on each visit.
    each: f64,
    stores: f64,
    error: f64,
}

/// The power of two next to a number, within bounds.
fn power(of: f64, least: u64, most: u64) -> u64 {
    let power = of.max(1.0).log2().round().clamp(0.0, 40.0);
    (1_u64 << power as u32).clamp(least, most)
}

/// So many digits that matter.
fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * unit).round() / unit
}

/// Describes what was watched.
///
/// # Errors
/// Nothing was accessed, or nothing left L1.
pub fn describe(watch: &Watch, origin: &Origin) -> Result<Description, String> {
    let length = watch.length();
    if length < 1.0 {
        return Err("there are no accesses in it".into());
    }
    let windows = watch.accesses() as f64 / length;
    let (granules, size) = watch.granules();
    let parts = parts(&granules, size);
    let beyond_l1: f64 = parts.iter().map(|part| part.all.beyond_l1()).sum();
    if beyond_l1 < 1.0 {
        return Err("nothing of it leaves a cache of 32 KiB: there is nothing to describe".into());
    }
    let instructions = match origin.has_instructions && watch.instructions() > 0 {
        true => watch.instructions() as f64,
        false => watch.accesses() as f64 * 1000.0 / USUAL_ACCESSES,
    } / windows;
    let cut = watch.time_of(l1::LINES).unwrap_or(1.0);
    let times: Vec<Times> = parts
        .iter()
        .map(|part| Times::of(&part.all, windows, length, cut))
        .collect();
    let mut checks: Vec<f64> = CACHES
        .iter()
        .filter_map(|&lines| watch.time_of(lines))
        .collect();
    checks.insert(0, cut);
    let all: Vec<f64> = checks
        .iter()
        .map(|&at| times.iter().map(|times| times.beyond(at)).sum())
        .collect();
    let context = Context {
        checks: &checks,
        all: &all,
        first: times.iter().map(|times| times.first).sum(),
        windows,
    };
    let candidates: Vec<Vec<Described>> = (parts.iter().zip(&times))
        .map(|(part, times)| context.part(part, times))
        .collect();
    let weights: Vec<f64> = times.iter().map(Times::total).collect();
    let mut described = chosen(candidates, &weights);
    // The time of what would never leave L1 is in cpi.
    let stays = |component: &Component| component.lines < IN_L1;
    if !described.iter().all(|d| d.components.iter().all(stays)) {
        for d in &mut described {
            d.components.retain(|component| !stays(component));
        }
    }
    let accesses: f64 = described
        .iter()
        .flat_map(|d| d.components.iter().map(|c| c.visits * d.each))
        .sum();
    let names = names(&parts);
    let mut regions = Vec::new();
    let (mut of, mut remarks) = (Vec::new(), Vec::new());
    for (n, d) in described.iter().enumerate() {
        let count = d.components.len();
        for (k, component) in d.components.iter().enumerate() {
            let name = match (count, k) {
                (1, _) => names[n].clone(),
                (_, 0) => format!("{}-hot", names[n]),
                (_, k) if k + 1 == count => format!("{}-cold", names[n]),
                (3, _) => format!("{}-warm", names[n]),
                (_, k) => format!("{}-warm{k}", names[n]),
            };
            regions.push(region(name, d, component, accesses));
            of.push(n);
            let part = &parts[n];
            remarks.push(format!("{:#x}-{:#x}", part.from, part.to));
        }
    }
    regions.truncate(REGIONS);
    if origin.has_dependences {
        depend(&mut regions, &of, &parts, size);
    }
    let phase = Phase {
        name: "all".into(),
        instructions: (instructions as u64).clamp(1000, 1_000_000_000_000),
        cpi: origin.cpi,
        apki: rounded(accesses / instructions * 1000.0, 4).clamp(0.01, 1000.0),
        slice: 0.3,
        vector: 0.0,
        mispredicts: 0.0,
        regions,
    };
    Ok(Description {
        workload: Workload {
            name: origin.name.clone(),
            summary: format!("{}, from a trace", origin.of),
            source: format!(
                "{} accesses of a {} trace of {}",
                watch.accesses(),
                origin.format,
                origin.of
            ),
            assumed: Some(assumed(origin)),
            threads: 1,
            application: None,
            variant: None,
            requests: None,
            phases: vec![phase],
        },
        error: described.iter().map(|d| d.error).fold(0.0, f64::max),
        parts,
        of,
        remarks,
        instructions,
        accesses,
    })
}

/// What the trace does not say.
fn assumed(origin: &Origin) -> String {
    let mut all = vec![
        format!("cpi {}", origin.cpi),
        "slice, vector, mispredicts and mispredicted, of which a trace has nothing".to_owned(),
        "one thread and one phase".into(),
    ];
    if !origin.has_instructions {
        all.push(format!("{USUAL_ACCESSES} accesses in 1000 instructions"));
    }
    if !origin.has_dependences {
        all.push(
            "no address is loaded: which load an address comes from is not in the trace".into(),
        );
    }
    all.join("; ")
}

/// Names by address; what was put together is `others`.
fn names(parts: &[Part]) -> Vec<String> {
    let name =
        |(n, part): (usize, &Part)| match n + 1 == parts.len() && (part.parts > 1 || n == MOST) {
            true if n > 0 && part.from < parts[n - 1].to => "others".to_owned(),
            _ => format!("m{}", n + 1),
        };
    parts.iter().enumerate().map(name).collect()
}

fn region(name: String, d: &Described, component: &Component, accesses: f64) -> Region {
    // A run has a line on each step; everything else lies side by side.
    let order = if component.run {
        Order::Sequential
    } else {
        d.order
    };
    let bytes = match d.order.is_run() {
        true => component.lines * LINE_BYTES.max(d.stride) as f64,
        false => component.lines * LINE_BYTES as f64,
    };
    // What is used once each in other parts is described line by line.
    let (element, stride) = match component.run && !d.order.is_run() {
        true => (d.element.max(LINE_BYTES), d.element.max(LINE_BYTES)),
        false if d.order.is_run() => (d.element, d.stride),
        false => (d.element, d.element),
    };
    let unit = if bytes > 1e6 {
        4096.0
    } else {
        LINE_BYTES as f64
    };
    let bytes = ((bytes / unit).ceil() * unit).clamp(stride as f64, 1e15);
    Region {
        name,
        bytes: Bytes(bytes as u64),
        order,
        share: rounded(component.visits * d.each / accesses, 4).min(1.0),
        element: Bytes(element),
        within: Within::Sequential,
        stride: Bytes(stride),
        stores: rounded(d.stores, 3).min(1.0),
        non_temporal: 0.0,
        streams: 1,
        skew: if order == Order::Zipf {
            rounded(d.skew, 3)
        } else {
            0.99
        },
        dependent: 0.0,
        indexed_by: None,
        mispredicted: 0.0,
    }
}

/// What all parts are measured against.
struct Context<'a> {
    /// Times after which misses are compared.
    checks: &'a [f64],
    /// Uses of all parts after them.
    all: &'a [f64],
    /// First uses of all parts.
    first: f64,
    windows: f64,
}

/// Of each part the candidate that fits best, as long as there is room for all regions. Candidates of a part have more
/// components and smaller errors each.
fn chosen(candidates: Vec<Vec<Described>>, weights: &[f64]) -> Vec<Described> {
    let mut at = vec![0; candidates.len()];
    let count = |n: usize, at: usize| candidates[n].get(at).map(|d| d.components.len());
    loop {
        let used: usize = (0..at.len()).filter_map(|n| count(n, at[n])).sum();
        let fits = |&n: &usize| {
            let more = count(n, at[n] + 1).zip(count(n, at[n]));
            more.is_some_and(|(next, now)| used - now + next <= REGIONS)
                && candidates[n][at[n]].error >= ERROR
        };
        let gain = |n: usize| candidates[n][at[n]].error.min(1.0) * weights[n];
        let next = (0..at.len())
            .filter(fits)
            .max_by(|&a, &b| gain(a).total_cmp(&gain(b)));
        match next {
            Some(n) => at[n] += 1,
            None => break,
        }
    }
    let picked = candidates.into_iter().zip(at);
    picked
        .filter_map(|(all, at)| all.into_iter().nth(at))
        .collect()
}

impl Context<'_> {
    fn part(&self, part: &Part, times: &Times) -> Vec<Described> {
        let noted = &part.all;
        let visits = noted.visits.max(1) as f64;
        let bytes = noted.bytes as f64 / noted.accesses.max(1) as f64;
        let access = power(bytes, 1, LINE_BYTES);
        let jumps = (noted.visits - noted.follows).max(1) as f64;
        let run = visits / jumps;
        let written = (noted.written as f64 / visits).min(1.0);
        if run >= RUN {
            let step = (noted.steps as f64 / noted.follows.max(1) as f64)
                .round()
                .max(1.0);
            let seen = noted.accesses as f64 / visits;
            let (stride, each) = match step > 1.0 {
                true => (step as u64 * LINE_BYTES, 1.0),
                false => {
                    let stride = power(LINE_BYTES as f64 / seen, access, LINE_BYTES);
                    (stride, (LINE_BYTES / stride) as f64)
                }
            };
            let stores = match each > 1.0 {
                true => noted.stores as f64 / noted.accesses.max(1) as f64,
                false => written,
            };
            let plain = Described {
                order: Order::Sequential,
                components: Vec::new(),
                skew: 0.99,
                element: access.min(stride),
                stride,
                each,
                stores,
                error: f64::INFINITY,
            };
            return self.better(times, &plain, &|count| cycles(times, count));
        }
        let lines = if run >= 1.5 { run.round() as u64 } else { 0 };
        let element = if lines > 0 {
            lines * LINE_BYTES
        } else {
            access
        };
        let plain = Described {
            order: Order::Random,
            components: Vec::new(),
            skew: 0.99,
            element,
            stride: element,
            each: 1.0,
            stores: written,
            error: f64::INFINITY,
        };
        self.irregular(part, times, plain)
    }

    /// A part whose elements are drawn: equal ones, popular ones, or several kinds.
    fn irregular(&self, part: &Part, times: &Times, plain: Described) -> Vec<Described> {
        let span = (part.span / LINE_BYTES) as f64;
        let mut all = self.better(times, &plain, &|count| random(times, count, span));
        if all.first().is_some_and(|one| one.error >= ERROR)
            && let Some(popular) = self.popular(part, times, &plain)
        {
            // Lines that are about equally popular are random.
            if popular.skew < EVEN {
                all.truncate(1);
                return all;
            }
            return vec![popular];
        }
        // Lines that come again in the same order, whatever it is, come after the same time. No order of a description but
        // the sequential one does this.
        let last = all.last().map_or(f64::INFINITY, |last| last.error);
        if last > SHARP {
            let cycles = self.better(times, &plain, &|count| cycles(times, count));
            all.extend(cycles.into_iter().filter(|one| one.error < last / 2.0));
        }
        all
    }

    /// More and more components, as long as they are better.
    fn better(
        &self,
        times: &Times,
        plain: &Described,
        of: &dyn Fn(usize) -> Vec<Component>,
    ) -> Vec<Described> {
        let mut all: Vec<Described> = Vec::new();
        for count in 1..=KINDS {
            let components = of(count);
            let sum =
                |of: &dyn Fn(Component) -> f64| components.iter().map(|&c| of(c)).sum::<f64>();
            let error = self.error(
                times,
                &|at| sum(&|component| component.beyond(at, times.length)),
                sum(&|component| component.first(times.length)),
            );
            if all.last().is_none_or(|before| error < 0.9 * before.error) {
                all.push(Described {
                    components,
                    error,
                    ..*plain
                });
            }
        }
        all
    }

    fn popular(&self, part: &Part, times: &Times, plain: &Described) -> Option<Described> {
        let noted = &part.all;
        let uses =
            noted.uses as f64 / self.windows / (plain.element.div_ceil(LINE_BYTES) as f64).max(1.0);
        if plain.element > LINE_BYTES {
            return None;
        }
        let span = (part.span / LINE_BYTES) as f64;
        let (law, _) = Popular::fitted(times, uses, span, self.checks)?;
        let (_, first) = law.beyond(uses, &[], times.length);
        let error = self.error(
            times,
            &|at| law.beyond(uses, &[at], times.length).0[0],
            first,
        );
        if error > ERROR {
            return None;
        }
        Some(Described {
            order: Order::Zipf,
            components: vec![Component {
                visits: uses,
                lines: law.lines,
                run: false,
            }],
            skew: law.skew,
            stores: noted.stores as f64 / noted.accesses.max(1) as f64,
            error,
            ..*plain
        })
    }

    /// The largest error of uses after the times that matter, and of first uses, as a share.
    fn error(&self, times: &Times, found: &dyn Fn(f64) -> f64, first: f64) -> f64 {
        let error = |found: f64, wanted: f64, all: f64| {
            (found - wanted).abs() / wanted.max(SMALL * all).max(1.0)
        };
        let checks = self.checks.iter().zip(self.all);
        let worst = checks
            .map(|(&at, &all)| error(found(at), times.beyond(at), all))
            .fold(0.0, f64::max);
        worst.max(error(first, times.first, self.first))
    }
}

/// Says which addresses are loaded, and from where.
fn depend(regions: &mut [Region], of: &[usize], parts: &[Part], size: u64) {
    let first: Vec<Option<String>> = (0..parts.len())
        .map(|part| {
            let at = of.iter().position(|&one| one == part)?;
            Some(regions.get(at)?.name.clone())
        })
        .collect();
    for (region, &own) in regions.iter_mut().zip(of) {
        let noted = &parts[own].all;
        let loaded = (noted.dependent + noted.indexed) as f64 / noted.visits.max(1) as f64;
        let from = noted.index.saturating_mul(size);
        let other = parts
            .iter()
            .position(|part| (part.from..part.to).contains(&from));
        let share = rounded(loaded, 2).min(1.0);
        match other {
            Some(other) if other != own && noted.indexed > noted.dependent => {
                if share > 0.5 {
                    region.indexed_by.clone_from(&first[other]);
                }
            }
            _ if region.order == Order::Random && share > 0.9 && region.stores < 1.0 => {
                region.order = Order::Chase;
                region.dependent = 1.0;
            }
            _ => region.dependent = share,
        }
    }
}
