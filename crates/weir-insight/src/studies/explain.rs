//! `weir explain`: runs a workload whose lost cycles are explained, on one memory or two, alone or with another tenant.

use weir_lab::interplay::{
    ACCESSES, CoRunners, CountedPair, Participant, PlacedName, ProgramPair, ProgramPairs,
    per_second,
};
use weir_lab::{Lab, LabError, Placed, Study, WorkloadOptions, check_threads};
use weir_model::latency::LatencyHistogram;
use weir_model::metric::OwnMetric;
use weir_model::tenant::Placement;
use weir_model::topology::TierName;
use weir_model::units::Cycles;
use weir_model::workload::Workload;

use crate::documents::Explained;
use crate::explain::CountedRun;
use crate::two_tiers::{Tiers, lone_chases, options};

/// Where a workload, a command or a process loses its cycles.
#[derive(Debug, Clone, clap::Args)]
pub struct Explain {
    /// A workload: on a model its description, on this host its real program.
    #[arg(
        required_unless_present_any = ["counters", "command", "pid"],
        conflicts_with_all = ["counters", "command", "pid"]
    )]
    pub workload: Option<String>,
    /// The tier that its pages lie on, and one to compare with [default: the first two of a model; of a
    /// command, where the kernel puts them; of a program of this host dram].
    #[arg(
        long = "tier",
        alias = "tiers",
        value_delimiter = ',',
        value_name = "TIER",
        conflicts_with = "counters"
    )]
    pub tiers: Vec<TierName>,
    /// Run with the hardware prefetchers off.
    #[arg(long, conflicts_with = "counters")]
    pub no_prefetch: bool,
    /// Threads of the workload in place of those that it says.
    #[arg(long, value_name = "N", requires = "workload", conflicts_with_all = ["command", "counters", "pid"],
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// A stream or a workload that runs with it, as TIER:OP or TIER:PROGRAM: compared with alone; on this host
    /// a workload is its real program.
    #[arg(long, value_name = "TENANT", conflicts_with_all = ["counters", "pid", "no_prefetch", "interval"])]
    pub beside: Option<CoRunners>,
    /// Requests a second that arrive at a workload which answers requests [default: what its description says].
    #[arg(long, value_name = "N", requires = "workload", value_parser = per_second)]
    pub rate: Option<f64>,
    /// Requests that such a workload answers while it is observed.
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub requests: u64,
    /// The description of the workload.
    #[arg(skip)]
    pub described: Option<Workload>,
    /// What runs with it.
    #[arg(skip)]
    pub aggressor: Option<Participant>,
}

impl Explain {
    /// The workload as a tenant on each of these tiers, alone and with another.
    fn pairs(
        &self,
        lab: &Lab<'_>,
        workload: &Workload,
        tiers: &[TierName],
    ) -> Result<Vec<CountedPair>, LabError> {
        let on = |tier: &TierName| {
            let placed = PlacedName {
                tiers: vec![(tier.clone(), 1)],
                program: workload.name.clone(),
            };
            Participant::program(&placed, workload.clone())
        };
        let made = ProgramPairs {
            victims: tiers.iter().map(on).collect(),
            aggressors: self.aggressor.iter().cloned().collect(),
            threads: 0,
            rates: Vec::new(),
            requests: self.requests,
            accesses: ACCESSES,
            rounds: 1,
            notes: Vec::new(),
            programs: Vec::new(),
        }
        .counted(lab)?;
        // No more of them queue than there are clients.
        let open = |pair: &&ProgramPair| {
            let requests = workload.requests.as_ref();
            pair.saturated && requests.is_some_and(|requests| requests.clients.is_none())
        };
        for pair in made.iter().map(|made| &made.pair).filter(open) {
            let beside = pair.aggressor.as_ref();
            lab.warn(format!(
                "{}{}: {:.0} {} are answered of {:.0} that arrive: the queue grows without end, and the latency of requests \
                 with their number",
                pair.victim,
                beside.map_or_else(String::new, |other| format!(" with {other}")),
                pair.beside.or(pair.alone).unwrap_or_default(),
                pair.unit,
                pair.offered_per_s.unwrap_or_default(),
            ));
        }
        Ok(made)
    }

    /// The workload on one tier, alone and with another tenant.
    fn beside(
        &self,
        lab: &Lab<'_>,
        workload: &Workload,
        tier: &TierName,
        other: &Participant,
    ) -> Result<Explained, LabError> {
        let made = self.pairs(lab, workload, std::slice::from_ref(tier))?;
        let made = made.into_iter().next().ok_or(LabError::Stopped)?;
        let unloaded = lone_chase(lab, tier, &options(lab.seed()))?;
        let processor = &lab.topology().processor;
        let counted = [
            (Some(&made.alone), None),
            (made.beside.as_ref(), Some(&other.name)),
        ];
        let counted: Vec<CountedRun> = (counted.into_iter())
            .filter_map(|(run, beside)| {
                Some(CountedRun {
                    beside: beside.cloned(),
                    unloaded,
                    ..CountedRun::of_program(run?, &workload.name, tier, processor)
                })
            })
            .collect();
        let mut explained = Explained::of(&counted)?;
        if let Some(difference) = &mut explained.difference {
            difference.verdict = made.pair.verdict;
        }
        Ok(explained)
    }
}

/// What a lone chase takes on a tier, where it can be determined.
fn lone_chase(
    lab: &Lab<'_>,
    tier: &TierName,
    options: &WorkloadOptions,
) -> Result<Option<Cycles>, LabError> {
    match lone_chases(lab, &[tier], options) {
        Err(LabError::Stopped) => Err(LabError::Stopped),
        found => Ok(found.ok().and_then(|found| found.first().copied())),
    }
}

impl Study for Explain {
    const VERB: &'static str = "explain";
    type Output = Explained;

    fn run(&self, lab: &Lab<'_>) -> Result<Explained, LabError> {
        let workload = self.described.as_ref().ok_or_else(|| {
            LabError::Nothing("explain needs the description of a workload".into())
        })?;
        check_threads(workload, lab.topology())?;
        let first_two = lab.topology().tiers.iter().take(2);
        let names: Vec<TierName> = match self.tiers.as_slice() {
            [] => first_two.map(|tier| tier.name.clone()).collect(),
            named => named.to_vec(),
        };
        if let Some(other) = &self.aggressor {
            return match self.tiers.as_slice() {
                [] | [_] => self.beside(lab, workload, &names[0], other),
                _ => Err(LabError::Nothing(
                    "with another tenant a workload is on one tier; name one with --tier".into(),
                )),
            };
        }
        match names.as_slice() {
            [_] => {}
            [from, to] => drop(Tiers::of(lab.topology(), from, to)?),
            _ => {
                let why = "name one tier, or two to compare";
                return Err(LabError::Nothing(why.into()));
            }
        }
        let options = WorkloadOptions {
            prefetch: !self.no_prefetch,
            ..options(lab.seed())
        };
        let on = |tier: &TierName| Placed {
            placement: Placement::Bind(tier.clone()),
            ..Placed::local(workload, &options)
        };
        let runs = lab.ask_all(&names.iter().map(on).collect::<Vec<_>>())?;
        let processor = &lab.topology().processor;
        let mut served = match workload.requests {
            Some(_) if options.prefetch => self.pairs(lab, workload, &names)?.into_iter(),
            _ => Vec::new().into_iter(),
        };
        let mut counted = Vec::new();
        for (run, tier) in runs.iter().zip(&names) {
            let (unit, factor) = workload.unit();
            let rate = workload.done(run.instructions as f64) / run.time.get().max(1.0) * factor;
            let alone = OwnMetric::of(unit, rate, &LatencyHistogram::new());
            counted.push(CountedRun {
                unloaded: lone_chase(lab, tier, &options)?,
                metric: Some(served.next().map_or(alone, |pair| pair.alone.metric)),
                ..CountedRun::of_workload(run, tier, processor)
            });
        }
        Ok(Explained::of(&counted)?)
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(self.workload.as_deref().into_iter().collect())
    }
}
