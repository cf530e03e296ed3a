//! Machines and tenants that are drawn at random from a seed.

use weir_model::access::{Dataflow, Op, Pattern};
use weir_model::platform::{Library, Platform};
use weir_model::tenant::{Placement, Reads, Tenant};
use weir_model::topology::{TierKind, TierName, Topology};
use weir_model::units::{Bytes, Nanos};
use weir_sim::rng::mix;
use weir_steer::Role;
use weir_steer::steered::SteeredTenant;

/// Phases of a scenario.
pub const PHASES: usize = 3;
/// The most cores of all tenants together: sixteen on either tier, as in the papers.
const MOST_CORES: u32 = 32;
/// What a thread touches: with few threads, too, far more than the largest cache.
const WORKING_SET: Bytes = Bytes::mib(512);
/// What a card gives the other socket at most, GB/s (SupMario Table 1).
const REMOTE_READ: f64 = 14.0;
/// Draws until one passes the checks of platform files.
const ATTEMPTS: u64 = 100;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// A number from `low` to `high`.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number from `low` to `high`, both possible.
    fn whole(&mut self, low: u32, high: u32) -> u32 {
        low + (self.next() % u64::from(high - low + 1)) as u32
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()]
    }

    /// Whether something is so that is so once in `of`.
    fn once_in(&mut self, of: u64) -> bool {
        self.next().is_multiple_of(of)
    }
}

/// A machine, and the tenants of each phase.
pub struct Drawn {
    pub platform: Platform,
    /// What was drawn, in words.
    pub words: String,
    pub phases: Vec<Vec<SteeredTenant>>,
    /// Whether the slow tier is measured alone first; otherwise the controller learns it.
    pub is_measured: bool,
}

impl Drawn {
    pub fn new(seed: u64) -> Self {
        let (platform, mut words) = (0..ATTEMPTS)
            .find_map(|attempt| platform(&mut Dice::new(seed * ATTEMPTS + attempt)))
            .expect("one of many draws passes the checks");
        let mut dice = Dice::new(!seed);
        let is_measured = dice.once_in(2);
        let phases = phases(&mut dice, &platform.topology());
        for participant in phases.iter().flatten() {
            let (tenant, stream) = (
                &participant.tenant,
                participant.tenant.work.stream().unwrap(),
            );
            let of = format!(
                "; {} {}x {:?} {} {:?} reads {} {:?}",
                tenant.name,
                tenant.cores.len(),
                stream.op,
                stream.pause,
                stream.pattern,
                stream.reads.is_some(),
                tenant.placement
            );
            if !words.contains(&of) {
                words.push_str(&of);
            }
        }
        Self {
            platform,
            words,
            phases,
            is_measured,
        }
    }
}

/// A machine of the library with other values; `None` if they contradict each other.
///
/// Ranges, with their sources in `platforms/`: Table of Requests 20 to 48 entries a slice (not public; the
/// assumed range of each microarchitecture). 16 to 32 of the Xeon's 8 to 64 cores a socket: more only add
/// tenants. DRAM 90 to 130 ns (microbenchmarks of Skylake to Genoa) and four to all of the host's channels at
/// 70 to 85 % of their rate for reads (servers reach 67 to 92 %), 55 to 70 % for posted stores (55 to 78 %). Cards
/// with eight and sixteen lanes at 200 to 320 ns (SupMario and MIKU: 214 to 300), programmable ones at 350 to
/// 600 ns (SupMario CXL-C: 394; MICRO 2023 CXL-C: 450 to 640) with 5 to 20 GB/s (5.1 to 20). Every processor
/// with CXL has bandwidth allocation; one machine in eight hides it, as virtual machines do. Its curve is
/// within the ranges of `platforms/defaults/host.toml`.
fn platform(dice: &mut Dice) -> Option<(Platform, String)> {
    let mut library = Library::builtin();
    let host = dice.one(&["emr2s", "spr2s", "spr8480", "skx2s", "miku-b"]);
    let is_amd = host == "miku-b";
    let bare = library.compose(host).ok()?.host;
    let channels = dice.whole(4.min(*bare.dram.channels), *bare.dram.channels);
    let peak = bare.dram.peak().get() * f64::from(channels) / f64::from(*bare.dram.channels);
    let tor = dice.whole(20, 48);
    let idle = dice.between(90.0, 130.0);
    let nt_write = peak * dice.between(0.55, 0.70);
    let read = peak * dice.between(0.70, 0.85);
    let mut keys = vec![
        ("uncore.tor", tor.to_string()),
        ("dram.idle", format!("{idle:.0} ns")),
        ("dram.nt_write", gbps(nt_write)),
        ("dram.read", gbps(read)),
        ("dram.channels", channels.to_string()),
        ("allocation.tenth", format!("{:.2}", dice.between(0.1, 0.3))),
        ("allocation.half", format!("{:.2}", dice.between(0.5, 0.85))),
    ];
    // The other socket gives no more than this one.
    if let Some(remote) = &bare.remote {
        keys.insert(0, ("remote.read", gbps(remote.read.get().min(read))));
    }
    if !is_amd {
        keys.push(("core.count", dice.whole(16, MOST_CORES).to_string()));
    }
    if dice.once_in(8) {
        keys.push(("allocation.step", "1".into()));
    }
    let card = dice.one(&["cxl-a", "cxl-a", "leo-x16", "cxl-c"]);
    let (idle, reads) = match card {
        "cxl-c" => ((350.0, 600.0), (5.0, 20.0)),
        "leo-x16" => ((200.0, 320.0), (30.0, 48.0)),
        _ => ((200.0, 320.0), (20.0, 26.0)),
    };
    let idle = dice.between(idle.0, idle.1);
    let read = dice.between(reads.0, reads.1);
    let of_card = [
        ("remote_read", gbps(read.min(REMOTE_READ))),
        ("idle", format!("{idle:.0} ns")),
        ("read", gbps(read)),
        ("reorder_window", dice.whole(8, 64).to_string()),
        (
            "write_buffer",
            dice.one(&[128u32, 256, 512, 1024]).to_string(),
        ),
    ];
    let cards = dice.one(&[1, 1, 2, 3]);
    let mut words = format!("{host}+{cards}x{card}");
    let of_host = keys.iter().map(|key| (host, key));
    for (name, (key, value)) in of_host.chain(of_card.iter().map(|key| (card, key))) {
        library.vary(name, key, value).ok()?;
        words.push_str(&format!(", {key} {value}"));
    }
    let platform = library.compose(&format!("{host}+{cards}x{card}")).ok()?;
    Some((platform, words))
}

fn gbps(rate: f64) -> String {
    format!("{rate:.1} GB/s")
}

/// Three to eight tenants, each of which begins and ends with some phase. In each phase there is one of both
/// sides at least.
fn phases(dice: &mut Dice, topology: &Topology) -> Vec<Vec<SteeredTenant>> {
    let count = dice.whole(3, 8);
    let protected = dice.whole(1, count - 1);
    let all = (topology.cores.len() as u32).min(MOST_CORES);
    // Neither side shares a last-level cache with the other, if there are several.
    let shared = topology.caches.last().map_or(1, |cache| cache.shared_by);
    let unit = if shared < all / 2 { shared } else { 1 };
    let wanted = (f64::from(all) * dice.between(0.3, 0.7)) as u32 / unit * unit;
    let restrained = count - protected;
    let at = wanted.clamp(protected.max(unit), all - restrained.max(unit));
    let (fast, slow) = topology.cores[..all as usize].split_at(at as usize);
    let cards: Vec<TierName> = (topology.tiers.iter())
        .filter(|tier| tier.kind == TierKind::Cxl)
        .map(|tier| tier.name.clone())
        .collect();
    let mut phases = vec![Vec::new(); PHASES];
    for (role, cores, count) in [
        (Role::Protected, fast, protected),
        (Role::Restrained, slow, restrained),
    ] {
        let parts = parts(dice, cores, count);
        let mut stays: Vec<(usize, usize)> = (parts.iter())
            .map(|_| {
                let begins = dice.whole(0, PHASES as u32 - 1) as usize;
                (
                    begins,
                    dice.whole(begins as u32, PHASES as u32 - 1) as usize,
                )
            })
            .collect();
        for phase in 0..PHASES {
            if !stays.iter().any(|&(from, to)| (from..=to).contains(&phase)) {
                let first = &mut stays[0];
                *first = (first.0.min(phase), first.1.max(phase));
            }
        }
        for (i, (cores, stay)) in parts.into_iter().zip(stays).enumerate() {
            let place = match (role, dice.once_in(3)) {
                (Role::Restrained, true) => Placement::Bind(cards[i % cards.len()].clone()),
                (Role::Restrained, false) => {
                    Placement::Interleave(cards.iter().map(|card| (card.clone(), 1)).collect())
                }
                _ => Placement::Bind(TierName::dram()),
            };
            let tenant = tenant(dice, format!("{role:?}{i}"), cores, place);
            for phase in &mut phases[stay.0..=stay.1] {
                let tenant = tenant.clone();
                phase.push(SteeredTenant { tenant, role });
            }
        }
    }
    phases
}

/// Divides cores among tenants, one at least for each.
fn parts(dice: &mut Dice, cores: &[u32], count: u32) -> Vec<Vec<u32>> {
    let mut parts: Vec<Vec<u32>> = cores
        .iter()
        .take(count as usize)
        .map(|&c| vec![c])
        .collect();
    for &core in cores.iter().skip(count as usize) {
        // Some tenants are large and some small.
        let to = dice.whole(0, count - 1).min(dice.whole(0, count - 1));
        parts[to as usize].push(core);
    }
    parts
}

/// A bandwidth test: loads, stores, posted stores, or a copy, in order or at random; one in five pauses between
/// lines.
fn tenant(dice: &mut Dice, name: String, cores: Vec<u32>, place: Placement) -> Tenant {
    let order = match dice.once_in(4) {
        true => Pattern::RandomLine,
        false => Pattern::Sequential,
    };
    let op = dice.one(&[Op::Ld, Op::St, Op::NtSt]);
    let is_copy = op == Op::NtSt && order == Pattern::Sequential && dice.once_in(2);
    let pause = match dice.once_in(5) {
        true => Nanos(dice.between(20.0, 400.0)),
        false => Nanos(0.0),
    };
    let tenant = Tenant {
        name,
        cores,
        placement: place.clone(),
        ..Tenant::on_first_cores(op, order, &TierName::dram(), 1, WORKING_SET)
    };
    tenant.with_stream(|stream| {
        stream.pause = pause;
        stream.reads = is_copy.then_some(Reads {
            lines: 1,
            per: 1,
            from: place,
            dataflow: Dataflow::Copy,
        });
    })
}
