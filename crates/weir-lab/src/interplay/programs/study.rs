//! `weir interplay` with programs: what is asked of a model.

use weir_model::machine::MachineKind;
use weir_model::tenant::Tenant;

use super::pace::{CountedProgram, Pace, pace};
use super::pair::{Made, ProgramPair};
use super::participant::{Participant, What};
use super::table::{LoadPoint, ProgramTable};
use super::together::{Together, TogetherRun};
use crate::study::Study;
use crate::{Lab, LabError};

/// Programs together and with streams.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramPairs {
    /// Whose work is watched.
    pub victims: Vec<Participant>,
    /// What runs with them; with none, the victims are alone.
    pub aggressors: Vec<Participant>,
    /// Threads of a stream; 0 for as many as the other side leaves, 16 at most.
    pub threads: u32,
    /// Requests a second of victims that answer requests, each in turn; empty for what their descriptions say.
    pub rates: Vec<f64>,
    /// Requests that a victim answers while it is observed.
    pub requests: u64,
    /// Lines that each thread of another victim touches meanwhile.
    pub accesses: u64,
    /// Repetitions of a command or an application of a host.
    pub rounds: u32,
    /// What is worth knowing of applications before they run.
    pub notes: Vec<String>,
    /// The programs as they were named.
    pub programs: Vec<String>,
}

/// Lines that each thread of a program without requests touches while it is observed, if nothing else is asked for.
pub const ACCESSES: u64 = 20_000;
/// Threads of a stream at most, unless they are asked for: those of the papers.
const STREAMS: u32 = 16;

/// A row, and the victim as it was counted for it.
#[derive(Debug, Clone)]
pub struct CountedPair {
    /// The row.
    pub pair: ProgramPair,
    /// The victim alone.
    pub alone: CountedProgram,
    /// The same with the aggressor.
    pub beside: Option<CountedProgram>,
}

impl CountedPair {
    fn of(made: &Made<'_>) -> Self {
        let (victim, _, alone) = made.victim;
        Self {
            pair: ProgramPair::of(made),
            alone: CountedProgram::of(victim, alone),
            beside: (made.together.as_ref()).map(|(beside, _)| CountedProgram::of(victim, beside)),
        }
    }
}

/// A victim, and where the asks of it are: alone, and for each aggressor that one alone, and both.
struct PlannedRow<'a> {
    victim: &'a Side,
    own: usize,
    beside: Vec<(Side, usize, usize)>,
}

/// A participant with its phases.
pub(super) struct Side {
    pub participant: Participant,
    pub threads: u32,
    phases: Vec<Participant>,
}

impl ProgramPairs {
    /// The victims at every rate.
    fn victims(&self) -> Vec<Participant> {
        let at = |participant: &Participant| match &participant.what {
            What::Program(work, tiers) if work.requests.is_some() && !self.rates.is_empty() => {
                let rates = self.rates.iter().map(|&rate| {
                    let mut work = work.clone();
                    // It answers requests.
                    let _ = work.at_rate(rate);
                    Participant {
                        name: participant.name.clone(),
                        what: What::Program(work, tiers.clone()),
                    }
                });
                rates.collect()
            }
            _ => vec![participant.clone()],
        };
        self.victims.iter().flat_map(at).collect()
    }

    /// Every pair on a model, with what was counted of its victim.
    ///
    /// # Errors
    /// A tenant does not fit the machine, or the work failed.
    pub fn counted(&self, lab: &Lab<'_>) -> Result<Vec<CountedPair>, LabError> {
        let commands = self.victims.iter().chain(&self.aggressors);
        if let Some(participant) = commands
            .into_iter()
            .find(|p| matches!(p.what, What::Command(..) | What::Application(..)))
        {
            return Err(LabError::Nothing(format!(
                "`{}` is a command, which runs on a host and on no model",
                participant.name
            )));
        }
        let mut victims = Vec::new();
        for participant in self.victims() {
            victims.push(self.side(lab, participant, 0)?);
        }
        // All asks in one list, so that progress knows its end: each side alone, then the pairs.
        let mut plan: Vec<Together> = Vec::new();
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut ask = |asks: Vec<Together>| {
            places.push((plan.len(), asks.len()));
            plan.extend(asks);
            places.len() - 1
        };
        let mut rows: Vec<PlannedRow<'_>> = Vec::new();
        for victim in &victims {
            let own = ask(asks(lab, self, victim, None)?);
            let mut beside = Vec::new();
            for aggressor in &self.aggressors {
                let other = self.side(lab, aggressor.clone(), victim.threads)?;
                let by_itself = ask(asks(lab, self, &other, None)?);
                let both = ask(asks(lab, self, victim, Some(&other))?);
                beside.push((other, by_itself, both));
            }
            rows.push(PlannedRow {
                victim,
                own,
                beside,
            });
        }
        let ran = lab.ask(&plan)?;
        if ran.len() < plan.len() {
            return Err(LabError::Stopped);
        }
        let of = |place: usize| {
            let (from, n) = places[place];
            &ran[from..from + n]
        };
        let mut pairs = Vec::new();
        for PlannedRow {
            victim,
            own,
            beside,
        } in &rows
        {
            let by_itself = alone(victim, of(*own));
            let others: Vec<Pace> = (beside.iter())
                .map(|(other, by_itself, _)| alone(other, of(*by_itself)))
                .collect();
            let made = |aggressor, together, corun| Made {
                topology: lab.topology(),
                victim: (&victim.participant, victim.threads, &by_itself),
                aggressor,
                together,
                counted: (&of(*own)[0], corun),
            };
            if beside.is_empty() {
                pairs.push(CountedPair::of(&made(None, None, None)));
            }
            for ((other, _, both), other_alone) in beside.iter().zip(&others) {
                let both = of(*both);
                let n = other.phases.len();
                let by_victim: Vec<Vec<&TogetherRun>> =
                    both.chunks(n).map(|runs| runs.iter().collect()).collect();
                let by_other: Vec<Vec<&TogetherRun>> = (0..n)
                    .map(|q| both.iter().skip(q).step_by(n).collect())
                    .collect();
                let together = (
                    pace(&victim.participant, &by_victim, &other_alone.shares, 0),
                    pace(&other.participant, &by_other, &by_itself.shares, 1),
                );
                let row = made(
                    Some((&other.participant, other.threads, other_alone)),
                    Some(together),
                    both.first(),
                );
                pairs.push(CountedPair::of(&row));
            }
        }
        Ok(pairs)
    }

    pub(super) fn side(
        &self,
        lab: &Lab<'_>,
        participant: Participant,
        taken: u32,
    ) -> Result<Side, LabError> {
        let cores = lab.topology().cores.len() as u32;
        let left = cores.saturating_sub(taken);
        let streams = match self.threads {
            0 => STREAMS
                .min(left.saturating_sub(u32::from(taken == 0)))
                .max(1),
            threads => threads,
        };
        // Half of the cores are for what runs with a command.
        let commands = match taken {
            0 => (cores / 2).max(1),
            _ => left.max(1),
        };
        let threads = participant.threads(streams, commands);
        if threads > left {
            return Err(LabError::Nothing(format!(
                "`{}` has {threads} threads, and of {cores} cores {left} are left for it",
                participant.name
            )));
        }
        let phases = participant.phases();
        Ok(Side {
            participant,
            threads,
            phases,
        })
    }
}

/// Every phase of one side with every phase of the other; alone without another.
fn asks(
    lab: &Lab<'_>,
    study: &ProgramPairs,
    own: &Side,
    other: Option<&Side>,
) -> Result<Vec<Together>, LabError> {
    let cores = &lab.topology().cores;
    let tenant = |phase: &Participant, from: u32, threads: u32| -> Result<Tenant, LabError> {
        let cores = cores.iter().skip(from as usize).take(threads as usize);
        phase.tenant(lab.topology(), &cores.copied().collect::<Vec<_>>())
    };
    let mut asks = Vec::new();
    for phase in &own.phases {
        let first = tenant(phase, 0, own.threads)?;
        let together = |tenants| Together {
            tenants,
            requests: study.requests,
            accesses: study.accesses,
        };
        let Some(other) = other else {
            asks.push(together(vec![first]));
            continue;
        };
        for beside in &other.phases {
            let mut second = tenant(beside, own.threads, other.threads)?;
            second.name = format!("{} beside", second.name);
            asks.push(together(vec![first.clone(), second]));
        }
    }
    Ok(asks)
}

/// What a side does alone.
fn alone(side: &Side, runs: &[TogetherRun]) -> Pace {
    let runs: Vec<Vec<&TogetherRun>> = runs.iter().map(|run| vec![run]).collect();
    pace(&side.participant, &runs, &[1.0], 0)
}

impl Study for ProgramPairs {
    const VERB: &'static str = "interplay programs";
    type Output = ProgramTable;

    fn run(&self, lab: &Lab<'_>) -> Result<ProgramTable, LabError> {
        if lab.machine().kind == MachineKind::Host {
            return self.on_host(lab);
        }
        let pairs: Vec<ProgramPair> = (self.counted(lab)?.into_iter())
            .map(|counted| counted.pair)
            .collect();
        Ok(ProgramTable {
            loads: LoadPoint::all(&pairs),
            pairs,
        })
    }

    fn programs(&self) -> Option<Vec<&str>> {
        Some(self.programs.iter().map(String::as_str).collect())
    }
}
