//! Commands and applications of a host with streams and each other: the plan, and the rows.

use super::commands::{CommandRun, CommandTime, Kept, Load};
use super::pair::ProgramPair;
use super::participant::What;
use super::study::{ProgramPairs, Side};
use super::table::ProgramTable;
use crate::{Lab, LabError};

impl ProgramPairs {
    /// Commands and applications of this host, and streams with them.
    pub(super) fn on_host(&self, lab: &Lab<'_>) -> Result<ProgramTable, LabError> {
        self.notes.iter().for_each(|note| lab.warn(note.clone()));
        if !self.rates.is_empty() {
            return Err(LabError::Nothing(
                "--rate is of described programs on a model; on a host `weir workload run NAME --rate` has p99 by load".into(),
            ));
        }
        for participant in self.victims.iter().chain(&self.aggressors) {
            if let What::Program(..) = participant.what {
                return Err(LabError::Nothing(format!(
                    "`{}` is the description of a program, which runs on models only; name one with --on, give the \
                     program's command with --command, or name a workload whose program this host runs (`weir workload \
                     list`)",
                    participant.name
                )));
            }
        }
        let cores = &lab.topology().cores;
        let load = |side: &Side, from: u32| -> Result<Load, LabError> {
            let cores = cores.iter().skip(from as usize).take(side.threads as usize);
            let cores: Vec<u32> = cores.copied().collect();
            Ok(
                match side.participant.real(lab.topology(), &cores, lab.seed())? {
                    Some(application) => Load::Application(application),
                    None => Load::Tenant(side.participant.tenant(lab.topology(), &cores)?),
                },
            )
        };
        let kept = Kept::default();
        let mut sides = Vec::new();
        let mut plan: Vec<CommandRun> = Vec::new();
        for participant in &self.victims {
            let own = self.side(lab, participant.clone(), 0)?;
            let victim = load(&own, 0)?;
            let mut beside = Vec::new();
            for aggressor in &self.aggressors {
                let other = self.side(lab, aggressor.clone(), own.threads)?;
                let load = load(&other, own.threads)?;
                // Alone it has another name, by which its runs are known apart.
                let [by_itself, load] = ["alone", "beside"].map(|how| {
                    load.clone()
                        .named(format!("{} {how}", other.participant.name))
                });
                beside.push((other, load, by_itself));
            }
            sides.push((own, victim, beside));
        }
        for round in 0..self.rounds {
            for (_, victim, beside) in &sides {
                let run = |victim: &Load, beside: Option<&Load>| CommandRun {
                    victim: victim.clone(),
                    beside: beside.cloned(),
                    round,
                    kept: kept.clone(),
                };
                plan.push(run(victim, None));
                for (_, other, by_itself) in beside {
                    plan.extend([run(victim, Some(other)), run(by_itself, None)]);
                }
            }
        }
        let ran = lab.ask(&plan)?;
        if ran.len() < plan.len() {
            return Err(LabError::Stopped);
        }
        lab.lose(ran.iter().filter_map(|run| run.failed.clone()));
        let of = |victim: &Load, beside: Option<&Load>| -> Vec<CommandTime> {
            let same = |run: &CommandRun| run.victim == *victim && run.beside.as_ref() == beside;
            let runs = plan.iter().zip(&ran).filter(|(run, _)| same(run));
            runs.map(|(_, time)| time.clone()).collect()
        };
        let mut table = ProgramTable::default();
        for (own, victim, beside) in &sides {
            let alone = of(victim, None);
            let side = (&own.participant, own.threads);
            if beside.is_empty() {
                table
                    .pairs
                    .push(ProgramPair::of_command(side, None, &alone, None, &[]));
            }
            for (other, tenant, by_itself) in beside {
                let aggressor = Some((&other.participant, other.threads));
                let (both, other) = (of(victim, Some(tenant)), of(by_itself, None));
                table.pairs.push(ProgramPair::of_command(
                    side,
                    aggressor,
                    &alone,
                    Some(&both),
                    &other,
                ));
            }
        }
        Ok(table)
    }
}
