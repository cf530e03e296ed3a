//! `weir tier simulate`: policies of page placement side by side on a workload.

use weir_lab::view::{Axis, View, col};
use weir_lab::{About, Lab, LabError, Outcome, Severity, Study, Verdict};
use weir_model::number::slower;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Workload;
use weir_pages::{Memory, PagedWorkload, TierCurve, presets};

use super::curves::curves_of_two;
use super::described::{self, RequestShape};
use super::document::{PolicyAt, PolicyOutcome, RequestLatency, Simulated};
use super::trial::{
    Ratio, SETTLED, Trial, TrialResult, bad, capacities, each_once, lasts, preset, sized,
};

/// The length of an interval in seconds.
pub(super) const INTERVAL_S: f64 = 0.25;
/// Memory of a workload that is no described program.
pub(super) const USUAL_SIZE: Bytes = Bytes::gib(16);
/// The share of demoted pages above which those that are promoted again are said to go back and forth.
const RETURNED: f64 = 0.1;
/// Why requests have no latency here.
const NO_LATENCY: &str = "p50 and p99 of its requests are unknown: they depend on when requests arrive, on a client that thinks, \
                          or on a lock, of which the model of pages knows nothing";

/// Policies of page placement on a workload.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Workloads: web1, cache1, cache2, data-warehouse, stream, bc-twitter, bc-urand,
tc-kron, tc-twitter, gpt2; and any of `weir workload list`, or its file: what
caches serve, and how it waits, is counted on the model first. Of a name that
is both, described:NAME is the one of that list.
Policies: first-touch, numa-balancing, tiering, autotiering, tpp, tpp-coupled,
tpp-unfiltered, tpp-all-sampled, tpp-cache-to-slow, alto, alto:POLICY, colloid,
nomad, tmo, tmo:POLICY, neomem, caption, best-shot, payback, interleave,
interleave:FAST:SLOW.

Examples:
  weir tier simulate --on emr2s+cxl-a --workload web1
  weir tier simulate --on emr2s+cxl-a --workload cache1 --ratio 1:4 \\
      --policy first-touch,tpp,interleave:4:1
  weir tier simulate --on emr2s+cxl-a --workload redis-ycsb-a --for 150s
  weir tier simulate --on skx2s --slow remote --workload cache2")]
pub struct Simulate {
    /// The shape of the workload, or a described program.
    #[arg(long, value_name = "NAME|FILE", default_value = "web1")]
    pub workload: String,
    /// Capacities of the fast to the slow tier.
    #[arg(long, value_name = "FAST:SLOW", default_value = "2:1")]
    pub ratio: Ratio,
    /// Policies [default: first-touch, numa-balancing, tiering, autotiering, tpp, interleave, payback].
    #[arg(
        long = "policy",
        value_delimiter = ',',
        value_name = "POLICY",
        default_value = "first-touch,numa-balancing,tiering,autotiering,tpp,interleave,payback",
        hide_default_value = true
    )]
    pub policies: Vec<String>,
    /// Simulated time.
    #[arg(long = "for", value_name = "TIME", default_value = "900s", value_parser = lasts)]
    pub lasts: Nanos,
    /// Memory that the workload has; larger takes as much longer to settle [default: 16GiB; of a described program, its
    /// own].
    #[arg(long, value_name = "SIZE", value_parser = sized)]
    pub size: Option<Bytes>,
    /// Threads of a described program [default: those of its description].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The tier of the fast node.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub fast: TierName,
    /// The tier of the slow node.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub slow: TierName,
    /// The description of the workload, where it is a program.
    #[arg(skip)]
    pub described: Option<Workload>,
}

/// What is simulated.
struct Load {
    workload: PagedWorkload,
    requests: Option<RequestShape>,
    assumed: String,
    /// Why the latency of its requests is unknown, where it has some.
    no_latency: Option<String>,
}

impl Simulate {
    /// Refuses a ratio that leaves a tier without the least that it may have.
    fn has_room(&self, workload: &PagedWorkload) -> Result<(), LabError> {
        let has = capacities(workload, Some(self.ratio)).map(|bytes| Bytes(bytes as u64));
        for (tier, has) in [&self.fast, &self.slow].into_iter().zip(has) {
            if has < Memory::LEAST {
                return Err(LabError::Nothing(format!(
                    "{tier} would have {has} at --ratio {}, which is too small; a tier has {} or more: take another ratio, or \
                     more memory with --size",
                    self.ratio,
                    Memory::LEAST
                )));
            }
        }
        Ok(())
    }

    fn load(&self, lab: &Lab<'_>, curves: &[TierCurve; 2]) -> Result<Load, LabError> {
        let Some(program) = &self.described else {
            return Ok(Load {
                workload: preset(&self.workload, self.size.unwrap_or(USUAL_SIZE))?,
                requests: None,
                assumed: presets::assumed(&self.workload).into(),
                no_latency: None,
            });
        };
        let counted = described::counted(
            lab,
            program,
            &[self.fast.clone(), self.slow.clone()],
            curves,
        )?;
        let requests = described::requests(program, &counted);
        let of_program = program.assumed.iter().map(|own| format!("; {own}"));
        Ok(Load {
            no_latency: (program.requests.is_some() && requests.is_none())
                .then(|| NO_LATENCY.into()),
            requests,
            assumed: std::iter::once(described::ASSUMED.to_owned())
                .chain(of_program)
                .collect(),
            workload: weir_pages::described(program, &counted, curves[0].idle(), self.size),
        })
    }
}

impl PolicyOutcome {
    /// Whether many of the pages that it promotes had been demoted, and many of those that it demotes come back: a few of
    /// either are pages that became hot.
    fn goes_back_and_forth(&self) -> bool {
        let again = self.vmstat.pgpromote_candidate_demoted;
        let returned = again.min(self.promoted_pages) as f64;
        self.ping_pong_pct.is_some_and(|pct| pct > 30.0)
            && returned > RETURNED * self.demoted_pages as f64
    }

    fn of(policy: &str, trial: &Trial, local: &TrialResult, own: &TrialResult) -> Self {
        let counters = own.whole.counters;
        let longer = |a: f64, b: f64| (a / b.max(1e-12) - 1.0) * 100.0;
        let speeds = |of: &TrialResult| (of.whole.maccesses_per_s, of.settled.maccesses_per_s);
        let ((all, settled_all), (whole, settled)) = (speeds(local), speeds(own));
        Self {
            policy: policy.into(),
            runtime_ns: trial.time_of(local, own),
            vs_all_local_pct: longer(all, whole),
            settled_vs_all_local_pct: longer(settled_all, settled),
            settled_throughput_pct: settled / settled_all.max(1e-12) * 100.0,
            local_pct: own.whole.local_pct,
            settled_local_pct: own.settled.local_pct,
            anon_local_pct: own.whole.anon_local_pct,
            promoted_pages: counters.promoted(),
            demoted_pages: counters.demoted(),
            hint_faults: counters.numa_hint_faults,
            ping_pong_pct: counters.ping_pong().map(|share| share * 100.0),
            swapped_pages: counters.pswpout,
            kernel_pct: own.whole.kernel_pct,
            fixed_point_error: own.whole.fixed_point_error,
            requests: own.latency.map(RequestLatency::of),
            vmstat: counters,
        }
    }
}

impl Study for Simulate {
    const VERB: &'static str = "tier simulate";
    type Output = Simulated;

    fn run(&self, lab: &Lab<'_>) -> Result<Simulated, LabError> {
        if self.described.is_none() {
            let size = self.size.unwrap_or(USUAL_SIZE);
            let workload = preset(&self.workload, size)?;
            workload.check().map_err(bad)?;
            self.has_room(&workload)?;
        }
        each_once(&self.policies)?;
        let tiers = [self.fast.clone(), self.slow.clone()];
        if self.described.is_some() && self.fast != self.slow {
            described::misses(lab, &tiers)?;
        }
        let curves = curves_of_two(lab, &tiers)?;
        let load = self.load(lab, &curves)?;
        self.has_room(&load.workload)?;
        let trial = |policy: Option<&String>| Trial {
            workload: load.workload.clone(),
            requests: load.requests,
            policy: policy.cloned(),
            ratio: self.ratio,
            seconds: self.lasts.as_secs(),
            interval_s: INTERVAL_S,
            curves: curves.clone(),
            version: weir_pages::VERSION,
        };
        let trials: Vec<Trial> = std::iter::once(None)
            .chain(self.policies.iter().map(Some))
            .map(trial)
            .collect();
        let results = lab.ask_all(&trials)?;
        let Some((local, rest)) = results.split_first() else {
            return Err(LabError::Stopped);
        };
        let rows = self.policies.iter().zip(&trials[1..]).zip(rest);
        let at = |policy: &str, own: &TrialResult| {
            let of = |interval: &_| PolicyAt {
                policy: policy.into(),
                interval: *interval,
            };
            own.over_time.iter().map(of).collect::<Vec<_>>()
        };
        let grows_s = Some(load.workload.grows_until())
            .filter(|grows| *grows > self.lasts.as_secs() * SETTLED);
        Ok(Simulated {
            policies: (rows.clone())
                .map(|((policy, trial), own)| PolicyOutcome::of(policy, trial, local, own))
                .collect(),
            over_time: rows
                .flat_map(|((policy, _), own)| at(policy, own))
                .collect(),
            workload: self.workload.clone(),
            size_bytes: match self.described.is_some() {
                true => load.workload.peak(),
                false => self.size.unwrap_or(USUAL_SIZE),
            },
            about: load.workload.about,
            assumed: load.assumed,
            grows_s,
            local_requests: local.latency.map(RequestLatency::of),
            no_latency: load.no_latency,
            fast: self.fast.clone(),
            slow: self.slow.clone(),
            ratio: self.ratio.to_string(),
            seconds: self.lasts.as_secs(),
            interval_s: INTERVAL_S,
            curves,
        })
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(vec![&self.workload])
    }
}

impl Outcome for Simulated {
    const SCHEMA: &'static str = "weir/tier/1";
    const TITLE: &'static str = "Tiering";
    const WORDS: &'static str =
        "Policies of page placement on a workload that is simulated page by page, over time.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: &str, text: String| Verdict::new(Severity::Note, about, text);
        let settled = |p: &&PolicyOutcome| p.settled_vs_all_local_pct;
        let best = (self.policies.iter()).min_by(|a, b| settled(a).total_cmp(&settled(b)));
        let what = format!("{} at {}", self.workload, self.ratio);
        let mut all = Vec::new();
        if let Some(best) = best {
            let first = self.policies.iter().find(|p| p.policy == "first-touch");
            // What a table with one decimal does not tell apart.
            let alike = |p: &&PolicyOutcome| {
                p.settled_vs_all_local_pct - best.settled_vs_all_local_pct < 0.05
            };
            let alike = self.policies.iter().filter(alike);
            let names: Vec<&str> = alike.map(|p| p.policy.as_str()).collect();
            let (are, they) = match names.len() {
                1 => ("is", "it is"),
                _ => ("are", "they are"),
            };
            let best_of = match self.policies.len() {
                1 => String::new(),
                all => format!(" {are} the best of {all}"),
            };
            let compared = match slower(best.settled_vs_all_local_pct) {
                same if same == "as fast" => "as fast as".to_owned(),
                other => format!("{other} than"),
            };
            let mut text = format!(
                "{}{best_of}: once settled {they} {compared} with all memory in {}, and {} serves {:.1} % of accesses",
                names.join(", "),
                self.fast,
                self.fast,
                best.settled_local_pct
            );
            if let Some(first) = first.filter(|first| !names.contains(&first.policy.as_str())) {
                text.push_str(&format!(
                    "; without tiering it is {}",
                    slower(first.settled_vs_all_local_pct)
                ));
            }
            all.push(note(&what, text));
        }
        for policy in &self.policies {
            if policy.goes_back_and_forth() {
                let text = format!(
                    "{:.0} % of the pages that it would promote had been demoted before: pages go back and forth",
                    policy.ping_pong_pct.unwrap_or_default()
                );
                all.push(Verdict::new(Severity::Doubt, policy.policy.as_str(), text));
            }
        }
        if let Some(grows) = self.grows_s {
            let text = format!(
                "its memory grows or shrinks until {grows} s, and the last quarter begins at {} s: nothing is settled; give --for \
                 {:.0}s or more",
                self.seconds * SETTLED,
                (grows / SETTLED).ceil()
            );
            all.push(Verdict::new(Severity::Doubt, self.workload.as_str(), text));
        }
        if let Some(why) = &self.no_latency {
            all.push(note("requests", why.clone()));
        }
        let again = "candidates for promotion that had been demoted before";
        all.push(note("again", again.into()));
        all.push(note("assumed", self.assumed.clone()));
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let what = format!("{} at {}", self.workload, self.ratio);
        let line = |name: &str, y: &'static str, title: &str| {
            View::lines(
                "over_time",
                format!("{name}: {what}"),
                ("t_s", "time [s]"),
                (y, title),
                &["policy"],
            )
            .axes(Axis::Linear, Axis::Linear)
        };
        let mut views = vec![
            View::table(
                "policies",
                format!("Run time against all memory in {}: {what}", self.fast),
                vec![
                    col("policy"),
                    col("vs_all_local_pct").head("slower").signed(),
                    col("settled_vs_all_local_pct").head("settled").signed(),
                    col("settled_local_pct").head("local"),
                    col("promoted_pages").head("promoted"),
                    col("demoted_pages").head("demoted"),
                    col("hint_faults").head("faults"),
                    col("ping_pong_pct").head("again"),
                    col("swapped_pages").head("swapped"),
                ],
            ),
            line(
                "Accesses that the fast tier serves",
                "local_pct",
                "share [%]",
            ),
            line("Accesses", "maccesses", "millions in an interval"),
            line("Promotion", "promoted", "pages in an interval"),
        ];
        if let Some(local) = &self.local_requests {
            let table = View::table(
                "policies",
                format!(
                    "Latency of requests, with all memory in {} p50 {:.1} and p99 {:.1} us: {what}",
                    self.fast,
                    local.p50_ns.get() / 1e3,
                    local.p99_ns.get() / 1e3
                ),
                vec![
                    col("policy"),
                    col("requests_p50_ns").head("p50"),
                    col("requests_p99_ns").head("p99"),
                    col("requests_p999_ns").head("p99.9"),
                    col("requests_settled_p50_ns").head("settled p50"),
                    col("requests_settled_p99_ns").head("settled p99"),
                ],
            );
            views.insert(1, table);
        }
        views
    }
}
