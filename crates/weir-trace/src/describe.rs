//! A description of the program whose accesses were watched.
//!
//! Accesses that hit L1 because their line was used just before are not described: their time is in `cpi`. Where lines follow
//! each other, accesses to one line belong to its run and are; where popularity alone explains the times, all are.

use weir_model::units::{Bytes, LINE_BYTES};
use weir_model::workload::{Order, Phase, Region, Within, Workload};

use crate::candidates::{Context, Described, chosen, is_l1};
use crate::fit::{Component, Times};
use crate::granule::Granule;
use crate::l1;
use crate::mappings::Mappings;
use crate::origins::Origins;
use crate::regions::{MOST, Part, parts};
use crate::segments::Segment;
use crate::watch::{INTERVAL, REACH, REACH_OF_ACCESSES, Watch};

/// Sizes of caches, in lines, whose misses a description should have: 1, 8 and 32 MiB.
pub const CACHES: [u64; 3] = [1 << 14, 1 << 17, 1 << 19];
/// Accesses in a thousand instructions where a trace has no instructions.
pub const USUAL_ACCESSES: f64 = 300.0;
/// What is added to the name of a part for its regions, from the largest.
const RANKS: [&str; 5] = ["", "-warm", "-hot", "-hotter", "-hottest"];

/// The share of loaded addresses below which none is said to be.
const FEW: f64 = 0.01;

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
    /// The files that it had mapped, as far as they are known.
    pub mappings: Mappings,
}

/// A description, and what each of its regions is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The description.
    pub workload: Workload,
    /// Parts of the address space.
    pub parts: Vec<Part>,
    /// The part of each region, by the name of the region.
    pub of: Vec<(String, usize)>,
    /// The addresses of each region of the first phase, in words.
    pub remarks: Vec<String>,
    /// Instructions of a window of the trace.
    pub instructions: f64,
    /// Accesses of a window that the regions of each phase have.
    pub accesses: Vec<f64>,
    /// The largest error of the times of a part that was taken because no model had a smaller one.
    pub error: f64,
}

/// This many digits that matter.
fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10_f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * unit).round() / unit
}

/// Describes what was watched, as one phase or as several if the program did several things.
///
/// # Errors
/// Nothing was accessed, or nothing left L1.
pub fn describe(watch: &Watch, origin: &Origin, phases: bool) -> Result<Description, String> {
    let (mut segments, whole) = watch.segments();
    segments.truncate(if phases { segments.len() } else { 1 });
    if whole.length() < 1.0 {
        return Err("there are no accesses in it".into());
    }
    let (granules, size) = whole.granules.sorted();
    let parts = parts(&granules, size, &origin.mappings);
    if parts.iter().map(|part| part.all.beyond_l1()).sum::<f64>() < 1.0 {
        return Err("nothing of it leaves a cache of 32 KiB: there is nothing to describe".into());
    }
    let names = names(&parts);
    let threads = watch.threads();
    let count = segments.len();
    let mut made = Made::default();
    match segments.as_slice() {
        [] | [_] => made.phase("all".into(), &whole, &parts, &names, threads, origin),
        several => {
            for (n, segment) in several.iter().enumerate() {
                let (granules, size) = segment.granules.sorted();
                let own: Vec<Part> = parts
                    .iter()
                    .map(|part| part.within(&granules, size))
                    .collect();
                made.phase(
                    format!("phase {}", n + 1),
                    segment,
                    &own,
                    &names,
                    threads,
                    origin,
                );
            }
        }
    }
    if origin.has_dependences {
        for (phase, of) in made.phases.iter_mut().zip(&made.of_phase) {
            depend(&mut phase.regions, of, &parts, &whole.origins);
        }
    }
    // A stretch in which nothing leaves L1 is none to describe.
    if made.phases.is_empty() {
        return Err("nothing of it leaves a cache of 32 KiB for long enough".into());
    }
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
            assumed: Some(assumed(origin, threads, count)),
            threads,
            application: None,
            variant: None,
            core_ipc: None,
            requests: None,
            phases: made.phases,
        },
        error: made.error,
        parts,
        of: made.of,
        remarks: made.remarks,
        instructions: made.instructions,
        accesses: made.accesses,
    })
}

/// What is described so far.
#[derive(Default)]
struct Made {
    phases: Vec<Phase>,
    /// The parts of the regions of each phase.
    of_phase: Vec<Vec<usize>>,
    /// The part of each region, by name.
    of: Vec<(String, usize)>,
    remarks: Vec<String>,
    instructions: f64,
    accesses: Vec<f64>,
    error: f64,
}

impl Made {
    /// Describes a stretch as a phase.
    fn phase(
        &mut self,
        name: String,
        segment: &Segment,
        parts: &[Part],
        names: &[String],
        threads: u32,
        origin: &Origin,
    ) {
        let length = segment.length();
        let windows = segment.accesses as f64 / length.max(1.0);
        let instructions = match origin.has_instructions && segment.instructions > 0 {
            true => segment.instructions as f64,
            false => segment.accesses as f64 * 1000.0 / USUAL_ACCESSES,
        } / windows;
        let cut = segment.time_of(l1::LINES).unwrap_or(1.0);
        let times: Vec<Times> = parts
            .iter()
            .map(|part| Times::of(&part.all, windows, length, cut))
            .collect();
        let at = CACHES.iter().filter_map(|&lines| segment.time_of(lines));
        let checks: Vec<f64> = std::iter::once(cut).chain(at).collect();
        let context = Context::new(checks, &times, windows);
        let candidates: Vec<Vec<Described>> = (parts.iter().zip(&times))
            .map(|(part, times)| context.part(part, times))
            .collect();
        let weights: Vec<f64> = times.iter().map(Times::total).collect();
        let mut described = chosen(candidates, &weights);
        // The time of what would never leave L1 is in cpi.
        if !described
            .iter()
            .all(|(_, d)| d.components.iter().all(is_l1))
        {
            for (_, d) in &mut described {
                d.components.retain(|component| !is_l1(component));
            }
        }
        let of_all = described.iter().map(|(_, d)| {
            let visits: f64 = d.components.iter().map(|c| c.visits).sum();
            visits * d.each
        });
        let accesses: f64 = of_all.sum();
        if accesses < 1.0 {
            return;
        }
        let usual = usual(segment, parts);
        let mut regions = Vec::new();
        let mut of = Vec::new();
        for (n, d) in &described {
            // Components are in the order of their sizes. Those of the same rank are the same memory in all phases.
            for (component, rank) in d.components.iter().rev().zip(RANKS) {
                let name = format!("{}{rank}", names[*n]);
                if !self.of.iter().any(|(known, _)| *known == name) {
                    self.of.push((name.clone(), *n));
                }
                let mut region = region(name, d, component, (&parts[*n], usual), accesses);
                let object = parts[*n].file.as_ref().unwrap_or(&names[*n]);
                region.object = (*object != region.name).then(|| object.clone());
                regions.push(region);
                of.push(*n);
                if self.phases.is_empty() {
                    let part = &parts[*n];
                    self.remarks
                        .push(format!("{:#x}-{:#x}", part.from, part.to));
                }
            }
        }
        self.of_phase.push(of);
        let each = (instructions / f64::from(threads)) as u64;
        self.phases.push(Phase {
            name,
            instructions: each.clamp(1000, 1_000_000_000_000),
            cpi: origin.cpi,
            apki: rounded(accesses / instructions * 1000.0, 4).clamp(0.01, 1000.0),
            slice: 0.3,
            vector: 0.0,
            mispredicts: 0.0,
            regions,
        });
        self.instructions += instructions;
        self.accesses.push(accesses);
        let worst = described.iter().map(|(_, d)| d.error);
        self.error = worst.fold(self.error, f64::max);
    }
}

/// What the trace does not say.
fn assumed(origin: &Origin, threads: u32, phases: usize) -> String {
    let mut all = vec![
        format!("cpi {}", origin.cpi),
        "slice, vector, mispredicts and mispredicted, of which a trace has nothing".to_owned(),
    ];
    if threads > 1 {
        all.push("all threads do the same".into());
    }
    if phases > 1 {
        all.push(format!(
            "phases are distinguished where they last {} million accesses and a quarter of what leaves L1 differs",
            2 * INTERVAL / 1_000_000
        ));
    }
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

/// Names: those of files, else by address; what was put together is `others`.
pub(crate) fn names(parts: &[Part]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        let is_last = n + 1 == parts.len() && (part.parts > 1 || n == MOST);
        let is_rest = is_last && n > 0 && part.file.is_none() && part.from < parts[n - 1].to;
        let name = match &part.file {
            _ if is_rest => "others".to_owned(),
            Some(file) => {
                let of_file = parts[..n].iter().filter(|one| one.file == part.file);
                match of_file.count() {
                    0 => file.clone(),
                    before => format!("{file}.{}", before + 1),
                }
            }
            None => format!("m{}", n + 1),
        };
        all.push(name);
    }
    all
}

/// Lines of a cache beyond which misses of one burst are worth telling.
const FAR: f64 = (1 << 14) as f64;
/// Lines that a core asks memory for at once, at most (Golden Cove: 16 fill buffers of L1).
const AT_ONCE: u64 = 16;

/// Jumps to far lines that a core makes at once.
struct Burst {
    /// Lines of one page.
    lines: u64,
    /// Pages, one after the other.
    pages: u64,
}

impl Burst {
    const NONE: Self = Self { lines: 1, pages: 1 };

    /// Of those jumps that came before each within the reach of a core, the ones beyond what would come if all were apart
    /// alike are of its burst. A line of a burst is preceded by half of it in the mean, and by half of its page's.
    fn of(noted: &Granule, usual: f64) -> Self {
        let before = (noted.before / noted.far.max(1.0) - usual).max(0.0);
        let near = (noted.near / noted.far.max(1.0)).min(before);
        let at_once = |before: f64| ((1.0 + 2.0 * before).round() as u64).clamp(1, AT_ONCE);
        let lines = at_once(near);
        Self {
            lines,
            pages: (at_once(before) as f64 / lines as f64).round() as u64,
        }
    }
}

/// Jumps to far lines within the reach of a core, if all are apart alike.
fn usual(segment: &Segment, parts: &[Part]) -> f64 {
    let far: f64 = parts.iter().map(|part| part.all.far).sum();
    match segment.instructions {
        0 => far / segment.accesses.max(1) as f64 * REACH_OF_ACCESSES as f64,
        counted => far / counted as f64 * REACH as f64,
    }
}

fn region(
    name: String,
    d: &Described,
    component: &Component,
    (part, usual): (&Part, f64),
    accesses: f64,
) -> Region {
    // A run has a line on each step; everything else lies side by side.
    let order = if component.run { d.run } else { d.order };
    let bytes = match order.is_run() && d.order.is_run() {
        true => component.lines * LINE_BYTES.max(d.stride) as f64,
        false => component.lines * LINE_BYTES as f64,
    };
    let (element, stride) = match (order.is_run(), d.order.is_run()) {
        // What is used once each in other parts is described line by line.
        (true, false) => (d.element.max(LINE_BYTES), d.element.max(LINE_BYTES)),
        (true, true) => (d.element, d.stride),
        (false, _) => (d.element, d.element),
    };
    let burst = match order {
        Order::Random | Order::Cycle if component.lines > FAR => {
            let burst = Burst::of(&part.all, usual);
            match element <= LINE_BYTES {
                true => burst,
                // Lines that follow its first are no jumps.
                false => Burst { lines: 1, ..burst },
            }
        }
        _ => Burst::NONE,
    };
    // Lines of a page are an element whose lines are found one by one. Only elements of one line are modified.
    let bytes_at_once = burst.lines * LINE_BYTES;
    let (element, stride, within) = match burst.lines > 1 {
        true => (bytes_at_once, bytes_at_once, Within::Random),
        false => (element, stride, Within::Sequential),
    };
    let (stores, modifies) = match burst.lines > 1 {
        true => ((d.stores + (1.0 - d.stores) * d.modifies).min(1.0), 0.0),
        false => (d.stores, d.modifies),
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
        within,
        stride: Bytes(stride),
        stores: rounded(stores, 3).min(1.0),
        modifies: rounded(modifies, 3).min(1.0),
        non_temporal: 0.0,
        streams: 1,
        batch: burst.pages.max(1) as u32,
        skew: if order == Order::Zipf {
            rounded(d.skew, 3)
        } else {
            0.99
        },
        dependent: 0.0,
        indexed_by: None,
        object: None,
        mispredicted: 0.0,
    }
}

/// Says which addresses are loaded, and from where.
fn depend(regions: &mut [Region], of: &[usize], parts: &[Part], origins: &Origins) {
    let first: Vec<Option<String>> = (0..parts.len())
        .map(|part| {
            let at = of.iter().position(|&one| one == part)?;
            Some(regions.get(at)?.name.clone())
        })
        .collect();
    // From each part (row) to each.
    let mut counts = vec![vec![0_u32; parts.len()]; parts.len()];
    for &(address, from) in origins.pairs() {
        let at = |address| parts.iter().position(|part| part.has(address));
        if let (Some(to), Some(from)) = (at(address), at(from)) {
            counts[from][to] += 1;
        }
    }
    for (region, &own) in regions.iter_mut().zip(of) {
        let noted = &parts[own].all;
        // The later lines of an element are where its first one is.
        let loaded = match region.order.is_run() {
            true => noted.loaded as f64 / noted.visits.max(1) as f64,
            false => noted.found as f64 / (noted.visits - noted.follows).max(1) as f64,
        };
        let share = match loaded < FEW {
            true => 0.0,
            false => rounded(loaded, 2).min(1.0),
        };
        let most = (0..parts.len()).max_by_key(|&from| counts[from][own]);
        match most.filter(|&from| counts[from][own] > 0) {
            Some(other) if other != own => {
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
