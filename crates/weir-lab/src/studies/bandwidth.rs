//! `weir bench bandwidth`: how many bytes a second threads move, by instruction, thread count and
//! tier (MEMO §4.3.1).
//!
//! Every thread goes through its own working set line by line, again and again. The curve over
//! threads shows what one core can have in flight, where the tier saturates (the *knee*), and
//! whether more threads than that do harm.

use weir_model::access::{Op, Pattern};
use weir_model::document::Point;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;

use super::mix::Mix;
use super::point_study::{About, PointStudy};
use crate::curve::Curve;
use crate::plan::{Load, check_threads, check_working_set, choose_tiers, doubling};
use crate::room::working_set;
use crate::verdict::trust::from_caches;
use crate::verdict::{ALIKE, are_apart, best, with_interval};
use crate::view::{Axis, Limit, Medium, Only, View};
use crate::{LabError, PointSpec, Severity, Threads, Verdict};

const NAME: &str = "bandwidth";

/// The instructions of a quick run: one of each kind of traffic.
const QUICK_OPS: [Op; 3] = [Op::Ld, Op::St, Op::NtSt];

/// How many bytes a second threads move, by instruction and thread count.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = "\
Examples:
  weir bench bandwidth --op ld --threads 1,2,4
  weir bench bandwidth --on spr2s+2xcxl-a --tier cxl0,cxl1 --threads 1..32
  weir bench bandwidth --no-prefetch --size 256M --format json")]
pub struct Bandwidth {
    /// Tiers, as `weir topo` names them [default: all].
    #[arg(long = "tier", value_delimiter = ',', value_name = "TIER")]
    pub tiers: Vec<TierName>,
    /// Instructions: ld, st, st_clwb, nt_st, movdir64b, cas [default: these]; nt_ld.
    #[arg(long = "op", value_delimiter = ',', value_name = "OP")]
    pub ops: Vec<Op>,
    /// Thread counts and ranges: 1,2,4 or 1..32 [default: up to all cores].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub threads: Vec<Threads>,
    /// Bytes that one thread touches [default: enough to leave the caches].
    #[arg(long = "size", value_name = "SIZE")]
    pub working_set: Option<Bytes>,
    /// Switch the hardware prefetchers off.
    #[arg(long)]
    pub no_prefetch: bool,
    /// Fewer instructions and thread counts.
    #[arg(long)]
    pub quick: bool,
}

impl PointStudy for Bandwidth {
    const NAME: &'static str = NAME;
    const VERB: &'static str = "bench bandwidth";
    const TITLE: &'static str = "Bandwidth";
    const WORDS: &'static str = "Bytes of the program, all threads together. An ordinary store also reads its line first, so the memory moves twice what is shown.";

    fn plan(&self, topology: &Topology) -> Result<Vec<PointSpec>, LabError> {
        let cores = topology.cores.len();
        check_threads(&Threads::all(&self.threads), topology, 0)?;
        if let Some(size) = self.working_set {
            check_working_set(size)?;
        }
        let threads = if self.threads.is_empty() {
            thread_series(cores as u32, self.quick)
        } else {
            Threads::all(&self.threads)
        };
        let ops = match (self.ops.as_slice(), self.quick) {
            ([], false) => &Op::ALL[..],
            ([], true) => &QUICK_OPS[..],
            (given, _) => given,
        };

        let mut points = Vec::new();
        for tier in choose_tiers(topology, &self.tiers)? {
            for &op in ops {
                for &threads in &threads {
                    let size = self
                        .working_set
                        .unwrap_or_else(|| working_set(topology, tier, threads));
                    let load = Load::new(&tier.name, op, Pattern::Sequential, threads, size);
                    points.push(PointSpec::alone(NAME, load.prefetch(!self.no_prefetch)));
                }
            }
        }
        Ok(points)
    }

    fn asked(&self) -> Vec<Op> {
        self.ops.clone()
    }

    fn case(point: &Point) -> Option<String> {
        Some(Mix::named(point.op, point.read_share?))
    }

    fn answer(points: &[Point], topology: &Topology) -> Vec<Verdict> {
        let cached = |point: &Point| from_caches(point, topology);
        let mut all = Vec::new();
        for tier in topology.tiers.iter().map(|t| &t.name) {
            for prefetch in [true, false] {
                let curve = |op| thread_curve(points, tier, op, prefetch, &cached);
                all.extend(Op::ALL.into_iter().filter_map(curve));
                all.extend(stores(points, tier, prefetch));
            }
        }
        all
    }

    fn views(_: &[Point], about: About<'_>) -> Vec<View> {
        vec![
            View::grid(
                "points",
                "Bandwidth of {tier} by threads{prefetch}",
                "threads",
                &["op"],
                "gbps",
            )
            .each(&["tier", "prefetch"])
            .only(Only::Lacks("read_share"))
            .with_limits()
            .on(Medium::Text),
            View::grid(
                "points",
                "Bandwidth of {tier} by mix of reads and writes",
                "case",
                &["op"],
                "gbps",
            )
            .each(&["tier"])
            .only(Only::Has("read_share")),
            View::lines(
                "points",
                "Bandwidth of {tier} by threads",
                ("threads", "threads"),
                ("gbps", "bandwidth [GB/s]"),
                &["op", "prefetch"],
            )
            .only(Only::Lacks("read_share"))
            .each(&["tier"])
            .axes(Axis::Counts, Axis::Linear)
            .limits(Limit::of_reads(about.topology, false)),
        ]
    }

    fn in_all(tiers: &[TierName], quick: bool) -> Option<Self> {
        Some(Self {
            tiers: tiers.to_vec(),
            quick,
            ..Self::default()
        })
    }
}

/// 1 to 4, then steps that widen, and every core at last.
fn thread_series(cores: u32, quick: bool) -> Vec<u32> {
    if quick {
        return doubling(cores);
    }
    let widening = std::iter::successors(Some(1_u32), |&n| {
        Some(
            n + match n {
                0..4 => 1,
                4..8 => 2,
                8..32 => 4,
                32..64 => 8,
                _ => 16,
            },
        )
    });
    let mut series: Vec<u32> = widening.take_while(|&n| n <= cores).collect();
    if series.last().is_some_and(|&last| last < cores) {
        series.push(cores);
    }
    series
}

/// A curve declines if it falls below its peak by more than this share.
const DECLINE: f64 = 0.10;

/// Peak, knee, and what happens past them.
fn thread_curve(
    points: &[Point],
    tier: &TierName,
    op: Op,
    prefetch: bool,
    cached: &dyn Fn(&Point) -> bool,
) -> Option<Verdict> {
    let curve = Curve::of(points, tier, op, prefetch);
    let (&[first, .., last], Some((at, peak)), Some(knee)) =
        (curve.points(), curve.peak(), curve.knee())
    else {
        return None;
    };
    // A difference within the noise of its two ends does not count.
    let differ = |one, other| {
        let of = |threads| of_curve(points, tier, op, prefetch).find(|p| p.threads == threads);
        (of(one).zip(of(other))).is_some_and(|(one, other)| are_apart(one, other))
    };
    let plural = if knee == 1 { "" } else { "s" };
    let tried = format!("{} to {} tried", first.0, last.0);
    let mut text = format!("peak {peak:.1} GB/s, reached with {knee} thread{plural} ({tried})");
    match curve.low_beyond_peak() {
        // What the caches give says nothing of the tier's threads.
        _ if of_curve(points, tier, op, prefetch).any(cached) => {
            text += ", from caches in part";
        }
        Some((threads, low)) if low < peak * (1.0 - DECLINE) && differ(at, threads) => {
            let left = curve.last_at_peak().unwrap_or(knee);
            let loss = (1.0 - low / peak) * 100.0;
            let fewer = if left == 1 { "" } else { " or fewer" };
            text += &format!(
                "; declines past {left}, to {low:.1} GB/s at {threads} (-{loss:.0} %): keep to \
                 {left}{fewer}"
            );
        }
        _ if knee == last.0 && rises_to_its_end(&curve, &differ) => {
            text += ": still rising, so that the tier may give more than these cores ask for";
        }
        _ => {}
    }
    Some(Verdict::new(Severity::Note, format!("{tier} {op}"), text))
}

/// Whether the last thread count gives more than the one before.
fn rises_to_its_end(curve: &Curve, differ: &dyn Fn(u32, u32) -> bool) -> bool {
    match curve.points() {
        [.., before, last] => differ(before.0, last.0),
        _ => false,
    }
}

/// The points of a curve.
pub(super) fn of_curve<'p>(
    points: &'p [Point],
    tier: &TierName,
    op: Op,
    prefetch: bool,
) -> impl Iterator<Item = &'p Point> {
    (points.iter())
        .filter(|p| p.experiment == NAME)
        // Mixes and figures of other tools that do not say their threads make no curve.
        .filter(|p| p.read_share.is_none() && p.threads > 0)
        .filter(move |p| (&p.tier, p.op, p.prefetch) == (tier, op, prefetch))
}

/// Ordinary against non-temporal stores, where they stream.
fn stores(points: &[Point], tier: &TierName, prefetch: bool) -> Option<Verdict> {
    let peak = |op| best(of_curve(points, tier, op, prefetch));
    let ((ordinary, by_st), (posted, by_nt_st)) = (peak(Op::St)?, peak(Op::NtSt)?);
    let ratio = posted / ordinary;
    let text = if (1.0 - ALIKE..=1.0 + ALIKE).contains(&ratio) {
        format!("ordinary and non-temporal stores are alike ({ordinary:.1} / {posted:.1} GB/s)")
    } else if !are_apart(by_st, by_nt_st) {
        format!(
            "whether ordinary or non-temporal stores move more is not known: the intervals of {} \
             and {} GB/s overlap",
            with_interval(by_st),
            with_interval(by_nt_st)
        )
    } else if ratio > 1.0 {
        format!(
            "non-temporal stores move {ratio:.1}x what ordinary ones do ({posted:.1} / \
             {ordinary:.1} GB/s), which read every line first: move data here with nt_st"
        )
    } else {
        format!(
            "ordinary stores move {:.1}x what non-temporal ones do ({ordinary:.1} / {posted:.1} \
             GB/s)",
            1.0 / ratio
        )
    };
    Some(Verdict::new(Severity::Note, format!("{tier} stores"), text))
}
