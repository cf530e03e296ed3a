//! A profile of a workload on the model of pages.

use serde::Serialize;
use weir_lab::{Ask, Lab, LabError, Study};
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::Workload;
use weir_pages::policy::Thresholds;
use weir_pages::{
    Costs, Host, Memory, Options, PagedWorkload, Sampler, Scan, Simulation, TierCurve, VERSION,
    by_name,
};

use super::{History, Profile, ProfileOf, ProfileSource, ProfileTimes, Times};
use crate::tier::curves;
use crate::tier::described::{counted, with_another};
use crate::tier::study::USUAL_SIZE;
use crate::tier::trial::{bad, preset};

/// How long a profile of a model is, in seconds.
const USUAL_S: f64 = 600.0;
/// The simulation's interval in seconds.
const STEP_S: f64 = 0.25;
/// Pages whose accessed bits are read: a share of memory is known to 0.2 points (one standard deviation).
const PAGES: u64 = 1 << 16;
/// Pages of which accesses are sampled. With fewer, chance decides how many of the few hottest pages of a small region are among
/// them, and so how often it is accessed.
const EVENT_PAGES: u64 = 1 << 18;
/// Memory of the fast tier beyond what the workload has allocated: pages never move.
const SPARE: f64 = 1.1;
/// Accesses of which one is sampled.
const PERIOD: u32 = 200;
/// Time between two readings of accessed bits, in seconds.
const SCAN_S: f64 = 1.0;

weir_model::named! {
    /// What looks at pages on a model.
    #[derive(Serialize)]
    pub enum SamplerName {
        /// See [`Sampler::AccessedBits`].
        Bits = "bits",
        /// See [`Sampler::Events`].
        Events = "events",
    }
}

/// Which pages a workload touches how often, on a model.
#[derive(Debug, Clone, clap::Args)]
pub struct ProfileModel {
    /// On a model: the shape of the workload, or a described program [default: cache1].
    #[arg(long, value_name = "NAME|FILE")]
    pub workload: Option<String>,
    /// On a model: memory that the workload has [default: 16GiB; of a described program, its own].
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// On a model: the tier of its memory.
    #[arg(long, value_name = "TIER", default_value = "dram")]
    pub tier: TierName,
    /// On a model: `bits` reads accessed bits, `events` samples accesses.
    #[arg(long, value_name = "NAME", default_value = "bits",
          value_parser = clap::builder::PossibleValuesParser::new(SamplerName::ALL.map(SamplerName::name)))]
    pub sampler: String,
    /// On a model, with --sampler events: one access in this many is sampled [default: 200].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub period: Option<u32>,
    /// On a model, with --sampler bits: the time between two readings.
    #[arg(long, value_name = "TIME")]
    pub scan: Option<Nanos>,
    /// Lengths and thresholds.
    #[command(flatten)]
    pub times: ProfileTimes,
    /// The description of the workload, where it is a program.
    #[arg(skip)]
    pub described: Option<Workload>,
}

/// A profile of a simulation, as it is asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Looked {
    /// The workload.
    pub workload: PagedWorkload,
    /// What looks at its pages.
    pub sampler: SamplerName,
    /// Of accesses for events, of seconds for bits.
    pub every: f64,
    /// Pages that are looked at.
    pub pages: u64,
    /// Lengths.
    pub times: Times,
    /// The tier of its memory.
    pub curve: TierCurve,
    /// Of random choices.
    pub seed: u64,
    /// As in [`crate::tier::Trial`].
    pub version: u32,
}

impl ProfileModel {
    /// The tier of its memory, and the workload, of a described program as counted there.
    fn load(&self, lab: &Lab<'_>, name: &str) -> Result<(TierCurve, PagedWorkload), LabError> {
        let Some(program) = &self.described else {
            let [curve, _] = curves(lab, &[self.tier.clone(), self.tier.clone()])?;
            return Ok((curve, preset(name, self.size.unwrap_or(USUAL_SIZE))?));
        };
        let tiers = with_another(lab, &self.tier)?;
        let both = curves(lab, &tiers)?;
        let counted = counted(lab, program, &tiers, &both)?;
        let workload = weir_pages::described(program, &counted, both[0].idle(), self.size);
        let [curve, _] = both;
        Ok((curve, workload))
    }
}

impl Study for ProfileModel {
    const VERB: &'static str = "tier profile";
    type Output = Profile;

    fn run(&self, lab: &Lab<'_>) -> Result<Profile, LabError> {
        let name = self.workload.as_deref().unwrap_or("cache1");
        let times = self.times.check(USUAL_S, STEP_S)?;
        // A look is at the end of a step of the simulation.
        let steps = |what: &str, seconds: f64| {
            let steps = seconds / STEP_S;
            match (steps - steps.round()).abs() < 1e-6 && steps > 0.5 {
                true => Ok(steps.round() * STEP_S),
                false => Err(LabError::Nothing(format!(
                    "{what} is a multiple of {STEP_S} s on a model, not {seconds} s"
                ))),
            }
        };
        let interval_s = steps("--interval", times.interval_s)?;
        let sampler = SamplerName::named(&self.sampler).unwrap_or(SamplerName::Bits);
        let other = |option: &str, of: SamplerName| {
            Err(LabError::Nothing(format!(
                "{option} is for --sampler {}",
                of.name()
            )))
        };
        let every = match sampler {
            SamplerName::Events if self.scan.is_some() => {
                return other("--scan", SamplerName::Bits);
            }
            SamplerName::Bits if self.period.is_some() => {
                return other("--period", SamplerName::Events);
            }
            SamplerName::Events => f64::from(self.period.unwrap_or(PERIOD)),
            SamplerName::Bits => {
                let scan = self
                    .scan
                    .map_or(SCAN_S.min(interval_s), |scan| scan.as_secs());
                let scan = steps("--scan", scan)?;
                if scan > interval_s {
                    let text =
                        format!("--scan must be at most --interval, which is {interval_s} s");
                    return Err(LabError::Nothing(text));
                }
                scan
            }
        };
        let (curve, workload) = self.load(lab, name)?;
        let usual = || match &self.described {
            Some(program) => program.footprint(),
            None => USUAL_SIZE,
        };
        let workload = PagedWorkload {
            name: format!("{name} of {}", self.size.unwrap_or_else(usual)),
            ..workload
        };
        let looked = Looked {
            workload,
            sampler,
            every,
            pages: match sampler {
                SamplerName::Bits => PAGES,
                SamplerName::Events => EVENT_PAGES,
            },
            times: Times {
                interval_s,
                ..times
            },
            curve,
            seed: lab.seed(),
            version: VERSION,
        };
        let mut all = lab.ask_all(&[looked])?;
        all.pop().ok_or(LabError::Stopped)
    }
}

impl Looked {
    /// Runs it. `go_on` is asked before each interval.
    ///
    /// # Errors
    /// The workload is not in order, or it was stopped.
    pub fn run(&self, go_on: impl Fn() -> bool) -> Result<Profile, LabError> {
        let capacity = Bytes((self.workload.peak().get() as f64 * SPARE) as u64);
        let memory = |capacity| Memory {
            capacity,
            curve: self.curve.clone(),
        };
        let host = Host {
            fast: memory(capacity.max(Bytes::mib(16))),
            // Every node has some memory; none of the workload is on this one.
            slow: memory(Bytes::mib(16)),
            swap: true,
            costs: Costs::default(),
            thresholds: Thresholds::default(),
        };
        let options = Options {
            seconds: self.times.intervals as f64 * self.times.interval_s,
            interval_s: STEP_S,
            seed: self.seed,
        };
        let policy = by_name("first-touch").map_err(bad)?;
        let mut simulation =
            Simulation::new(&self.workload, &host, policy, options).map_err(bad)?;
        let mut scan = Scan::new(&simulation, self.sampler(), self.pages, self.seed);
        let mut history = History::new(self.times.interval_s);
        let steps = |seconds: f64| ((seconds / STEP_S).round() as usize).max(1);
        let interval = steps(self.times.interval_s);
        let look = match self.sampler {
            SamplerName::Bits => steps(self.every),
            SamplerName::Events => interval,
        };
        for n in 1..=simulation.length() {
            if !go_on() {
                return Err(LabError::Stopped);
            }
            simulation.step();
            // An interval that is no multiple of the looks ends with one of its own.
            if n % interval % look == 0 {
                scan.look(&simulation)
                    .iter()
                    .for_each(|seen| history.add(seen));
            }
            if n % interval == 0 {
                history.next_interval();
            }
        }
        Ok(history.profile(ProfileOf {
            source: ProfileSource::Model,
            of: self.workload.name.clone(),
            how: self.how(scan.pages()),
            hot_s: self.times.hot_s,
            warm_s: self.times.warm_s,
            granule: Bytes::kib(4),
            most_per_s: (self.sampler == SamplerName::Bits).then(|| 1.0 / self.every),
        }))
    }

    fn sampler(&self) -> Sampler {
        match self.sampler {
            SamplerName::Bits => Sampler::AccessedBits,
            SamplerName::Events => Sampler::Events(self.every),
        }
    }

    fn how(&self, pages: u64) -> String {
        match self.sampler {
            SamplerName::Bits => format!(
                "accessed bits of {pages} pages, chosen at random, read every {} s: a share of memory is known to 0.2 \
                 points (one standard deviation), and of pages touched more often than once in a reading no more is \
                 known",
                self.every
            ),
            SamplerName::Events => format!(
                "one of {0} accesses to {pages} pages, chosen at random: a page with fewer than {0} accesses in an interval \
                 may be seen as not touched",
                self.every
            ),
        }
    }
}

impl Ask for Looked {
    type Got = Profile;
    const KIND: &'static str = "a profile of pages";

    fn ask(&self, lab: &Lab<'_>) -> Result<Profile, LabError> {
        self.run(|| !lab.stopped())
    }
}
