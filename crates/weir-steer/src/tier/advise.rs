//! `weir tier advise`: what tiering would gain, from a profile alone.
//!
//! | file | content |
//! |---|---|
//! | `rebuild` | a workload that would have the profile |
//! | `check` | how far the gains of a workload and of one rebuilt from its profile differ |
//! | `document` | what is found |
//! | `outcome` | in words and tables |

mod check;
mod document;
mod outcome;
mod rebuild;

pub use document::{Advised, Assumed, PolicyGain, SizeLoss};
pub use rebuild::{OfRegion, Span, Unknown, rebuild};

use weir_lab::levels::allowed_loss;
use weir_lab::{Lab, LabError, Study};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_pages::{Memory, PagedWorkload, TierCurve};

use super::curves::curves_of_two;
use super::profile::{Looked, Profile};
use super::replay::{Replay, Replayed};
use super::trial::{Ratio, each_once, lasts};
use check::Gains;
use rebuild::{MLP, WRITES, unknown_share};

/// Sizes of the fast tier, as shares of the workload's memory.
const SIZES: [f64; 7] = [0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95];
const FIRST: &str = "first-touch";
/// Seeds of replays are so far from those of the workloads' own.
const RETURN: u64 = 1000;

/// What tiering would gain, from a profile.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
A range such as 1.2..8 is varied; a value is taken as it is. --mlp and --writes
may be of one region of the profile: --mlp heap=1.5..3.

Examples:
  weir tier profile --on emr2s+cxl-a --workload cache1 --sampler events
  weir tier advise last --on emr2s+cxl-a --ratio 1:4
  weir tier advise profile.json --on emr2s+cxl-a --stalled 0.4 --mlp 2..3")]
pub struct Advise {
    /// A profile: a run's number, `last`, or a JSON file that `weir tier profile` wrote.
    #[arg(value_name = "PROFILE")]
    pub source: String,
    /// Capacities of the fast to the slow tier, which together hold the workload.
    #[arg(long, value_name = "FAST:SLOW", default_value = "1:1")]
    pub ratio: Ratio,
    /// Memory of the fast tier, in place of --ratio.
    #[arg(long, value_name = "SIZE", conflicts_with = "ratio")]
    pub fast_memory: Option<Bytes>,
    /// The loss against all memory in the fast tier that is accepted, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, allow_negative_numbers = true, value_parser = allowed_loss)]
    pub loss: f64,
    /// Policies.
    #[arg(
        long = "policy",
        value_delimiter = ',',
        value_name = "POLICY",
        default_value = "first-touch,tpp,interleave:4:1,interleave:2:1,interleave:1:1,payback"
    )]
    pub policies: Vec<String>,
    /// Accesses that a thread has outstanding at once [default: 1..16].
    #[arg(long, value_name = "[REGION=]N", value_delimiter = ',')]
    pub mlp: Vec<OfRegion>,
    /// The share of time in which threads wait for memory, all of it in the fast tier.
    #[arg(long, value_name = "SHARE", default_value = "0.1..0.9", value_parser = share)]
    pub stalled: Span,
    /// The share of accesses that write [default: 0..0.5].
    #[arg(long, value_name = "[REGION=]SHARE", value_delimiter = ',')]
    pub writes: Vec<OfRegion>,
    /// Threads, where the profile does not tell the accesses in a second.
    #[arg(long, value_name = "N", default_value = "4..32")]
    pub threads: Span,
    /// Workloads that would have the profile.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub variations: u32,
    /// Simulated time.
    #[arg(long = "for", value_name = "TIME", default_value = "150s", value_parser = lasts)]
    pub lasts: Nanos,
    /// The tier of the fast node.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub fast: TierName,
    /// The tier of the slow node.
    #[arg(long, value_name = "TIER", default_value = "cxl0")]
    pub slow: TierName,
    /// The profile that was named.
    #[arg(skip)]
    pub profile: Option<Box<Profile>>,
}

/// Reads a share of time above 0, or a range of some.
fn share(text: &str) -> Result<Span, String> {
    let span = text.parse().ok();
    span.filter(|span: &Span| span.low > 0.0 && span.high <= 1.0)
        .ok_or_else(|| {
            format!("`{text}` is no share such as 0.4, and no range of shares such as 0.1..0.9")
        })
}

/// The middle of figures, and their ends.
fn middle(mut figures: Vec<f64>) -> [f64; 3] {
    figures.sort_by(f64::total_cmp);
    let at = |n: usize| figures.get(n).copied().unwrap_or(0.0);
    let last = figures.len().saturating_sub(1);
    [(at(last / 2) + at(last.div_ceil(2))) / 2.0, at(0), at(last)]
}

/// What gives the results of what is asked for, in its order.
pub type Runner<'a, A, G> = &'a dyn Fn(&[A]) -> Result<Vec<G>, LabError>;

/// What gives the results of replays and of profiles.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// Of replays.
    pub replay: Runner<'a, Replay, Replayed>,
    /// Of profiles.
    pub look: Runner<'a, Looked, Profile>,
}

impl Advise {
    fn check(&self) -> Result<&Profile, LabError> {
        let wrong = |text: &str| Err(LabError::Nothing(text.into()));
        let Some(profile) = &self.profile else {
            return wrong("name a profile: a run, or a file that `weir tier profile` wrote");
        };
        let memory: u64 = profile
            .regions
            .iter()
            .map(|region| region.memory.get())
            .sum();
        if profile.bands.is_empty() || profile.intervals.is_empty() || memory == 0 {
            return wrong(
                "the profile has no memory by region; make it again with this version of `weir tier profile`",
            );
        }
        if !(profile.interval_s > 0.0 && profile.seconds >= 2.0 * profile.interval_s) {
            return wrong("the profile is shorter than two of its intervals; make a longer one");
        }
        if !(self.stalled.low > 0.0 && self.stalled.high <= 1.0) {
            return wrong("--stalled must be above 0 and at most 1");
        }
        if self.mlp.iter().any(|of| of.span.low < 1.0) {
            return wrong("--mlp must be 1 or more");
        }
        if self.writes.iter().any(|of| of.span.high > 1.0) {
            return wrong("--writes must be between 0 and 1");
        }
        if self.threads.low < 1.0 {
            return wrong("--threads must be 1 or more");
        }
        if !(self.loss > 0.0 && self.loss < 100.0) {
            return wrong("--loss must be above 0 and below 100");
        }
        for of in self.mlp.iter().chain(&self.writes) {
            let known = |name: &String| profile.regions.iter().any(|region| region.region == *name);
            if let Some(name) = of.region.as_ref().filter(|name| !known(name)) {
                let names: Vec<&str> = profile.regions.iter().map(|r| r.region.as_str()).collect();
                let text = format!(
                    "the profile has no region `{name}`; there are {}",
                    names.join(", ")
                );
                return Err(LabError::Nothing(text));
            }
        }
        each_once(&self.policies)?;
        Ok(profile)
    }

    fn unknown(&self) -> Unknown {
        Unknown {
            mlp: self.mlp.clone(),
            stalled: self.stalled,
            writes: self.writes.clone(),
            threads: self.threads,
        }
    }

    fn assumed(&self) -> Vec<Assumed> {
        let row = |what: String, span: Span| Assumed {
            what,
            low: span.low,
            high: span.high,
        };
        let mut all = vec![row(
            "share of time that threads wait for memory".into(),
            self.stalled,
        )];
        for (what, list, usual) in [
            ("accesses at once", &self.mlp, MLP),
            ("share of writes", &self.writes, WRITES),
        ] {
            let of = |of: &OfRegion| match &of.region {
                Some(region) => row(format!("{what}, {region}"), of.span),
                None => row(what.into(), of.span),
            };
            all.extend(list.iter().map(of));
            if list.is_empty() {
                all.push(row(what.into(), usual));
            } else if list.iter().all(|of| of.region.is_some()) {
                all.push(row(format!("{what}, of others"), usual));
            }
        }
        all
    }

    /// Replays the profile's workloads under every policy, and tries sizes of the fast tier if `with_sizes`.
    ///
    /// # Errors
    /// The profile or an option is not in order, or that of a replay.
    pub fn advise(
        &self,
        curves: &[TierCurve; 2],
        seed: u64,
        with_sizes: bool,
        runs: Runs<'_>,
    ) -> Result<Advised, LabError> {
        let profile = self.check()?;
        let unknown = self.unknown();
        let workloads: Vec<PagedWorkload> = (0..self.variations)
            .map(|n| rebuild(profile, &unknown, &curves[0], n))
            .collect();
        for workload in &workloads {
            workload.check().map_err(|why| {
                LabError::Nothing(format!(
                    "the profile has too few accesses to rebuild a workload from it ({why}); make a longer one"
                ))
            })?;
        }
        let memory = workloads
            .iter()
            .map(PagedWorkload::peak)
            .max()
            .unwrap_or(Bytes(0));
        let share = |share: f64| Bytes((memory.get() as f64 * share) as u64);
        let Ratio { fast, slow } = self.ratio;
        let part = f64::from(fast) / f64::from(fast + slow);
        let fast_memory = self.fast_memory.unwrap_or_else(|| share(part));
        if fast_memory < Memory::LEAST {
            return Err(LabError::Nothing(format!(
                "{} would have {fast_memory} of the profile's {memory}, which is too small; give it {} or more with \
                 --fast-memory",
                self.fast,
                Memory::LEAST
            )));
        }
        let of = |variation: usize, policy: &str, fast: Option<Bytes>| Replay {
            workload: workloads[variation].clone(),
            policy: policy.into(),
            fast,
            seconds: self.lasts.as_secs(),
            curves: curves.clone(),
            seed: seed.wrapping_add(variation as u64),
            version: weir_pages::VERSION,
        };
        let mut policies: Vec<&str> = self.policies.iter().map(String::as_str).collect();
        if !policies.contains(&FIRST) {
            policies.insert(0, FIRST);
        }
        let mut asks = Vec::new();
        for variation in 0..workloads.len() {
            asks.push(of(variation, FIRST, None));
            asks.extend(
                policies
                    .iter()
                    .map(|policy| of(variation, policy, Some(fast_memory))),
            );
        }
        let got = (runs.replay)(&asks)?;
        let rows: Vec<&[Replayed]> = got.chunks(policies.len() + 1).collect();
        let first = policies
            .iter()
            .position(|policy| *policy == FIRST)
            .unwrap_or(0);
        let than = |a: f64, b: f64| (a / b.max(1e-12) - 1.0) * 100.0;
        let known: Vec<Vec<f64>> = (rows.iter())
            .map(|row| row[1..].iter().map(|of| of.maccesses_per_s).collect())
            .collect();
        let against = Gains {
            first,
            known: &known,
        };
        let spread = self.spread(
            profile,
            &unknown,
            &workloads,
            against,
            runs,
            &|n, workload, policy| Replay {
                workload,
                seed: seed.wrapping_add(RETURN + n as u64),
                ..of(n, policies[policy], Some(fast_memory))
            },
        )?;
        let gains: Vec<PolicyGain> = (policies.iter().enumerate())
            .map(|(n, policy)| {
                let speed = |row: &[Replayed], n: usize| row[n].maccesses_per_s;
                let against = |base: usize| {
                    let of = rows
                        .iter()
                        .map(|row| than(speed(row, n + 1), speed(row, base)));
                    middle(of.collect())
                };
                let [gain_pct, low_pct, high_pct] = against(first + 1);
                PolicyGain {
                    policy: (*policy).into(),
                    gain_pct,
                    low_pct: low_pct - spread[n],
                    high_pct: high_pct + spread[n],
                    rebuilt_pct: spread[n],
                    loss_pct: -against(0)[0],
                    local_pct: rows[0][n + 1].local_pct,
                }
            })
            .collect();
        let mut advised = Advised {
            policies: gains,
            sizes: Vec::new(),
            assumed: self.assumed(),
            of: profile.of.clone(),
            profile_s: profile.seconds,
            memory,
            unknown_pct: 100.0 * unknown_share(profile),
            fast: self.fast.clone(),
            slow: self.slow.clone(),
            fast_memory,
            loss_pct: self.loss,
            needed: None,
            variations: self.variations,
            seconds: self.lasts.as_secs(),
        };
        if !with_sizes {
            return Ok(advised);
        }
        let best = advised.best().map_or(FIRST, |best| &best.policy).to_owned();
        let sizes: Vec<f64> = (SIZES.into_iter())
            .filter(|size| share(*size) >= Memory::LEAST)
            .collect();
        let mut asks = Vec::new();
        let mut tried = vec![FIRST, &best];
        tried.dedup();
        for policy in tried {
            asks.extend(sizes.iter().map(|size| of(0, policy, Some(share(*size)))));
        }
        let all = rows[0][0].maccesses_per_s;
        advised.sizes = (asks.iter().zip((runs.replay)(&asks)?))
            .map(|(ask, got)| {
                let fast = ask.fast.unwrap_or(memory);
                SizeLoss {
                    policy: ask.policy.clone(),
                    fast,
                    fast_pct: 100.0 * fast.get() as f64 / memory.get() as f64,
                    loss_pct: -than(got.maccesses_per_s, all),
                }
            })
            .collect();
        let of_best = advised
            .sizes
            .iter()
            .rev()
            .filter(|row| row.policy == best)
            .take(sizes.len());
        advised.needed = of_best
            .take_while(|row| row.loss_pct <= self.loss)
            .last()
            .map(|row| row.fast);
        Ok(advised)
    }
}

impl Study for Advise {
    const VERB: &'static str = "tier advise";
    type Output = Advised;

    fn run(&self, lab: &Lab<'_>) -> Result<Advised, LabError> {
        self.check()?;
        let curves = curves_of_two(lab, &[self.fast.clone(), self.slow.clone()])?;
        let runs = Runs {
            replay: &|asks| lab.ask_all(asks),
            look: &|asks| lab.ask_all(asks),
        };
        self.advise(&curves, lab.seed(), true, runs)
    }
}
