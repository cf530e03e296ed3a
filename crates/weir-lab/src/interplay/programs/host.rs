//! Commands of a host beside streams and other commands: the plan, and the rows.

use weir_model::tenant::Tenant;

use super::commands::{CommandRun, CommandTime};
use super::pair::ProgramPair;
use super::party::What;
use super::study::{ProgramPairs, Side};
use super::table::ProgramTable;
use crate::{Lab, LabError};

impl ProgramPairs {
    /// Commands of this host, and streams beside them.
    pub(super) fn on_host(&self, lab: &Lab<'_>) -> Result<ProgramTable, LabError> {
        for party in self.victims.iter().chain(&self.aggressors) {
            if let What::Program(..) = party.what {
                return Err(LabError::Nothing(format!(
                    "`{}` is the description of a program, which runs on models only; name one with --on, or give the \
                     program's command with --command",
                    party.name
                )));
            }
        }
        if let Some(stream) = self
            .victims
            .iter()
            .find(|p| matches!(p.what, What::Stream(_)))
        {
            return Err(LabError::Nothing(format!(
                "`{}` is a stream: on a host streams are victims of streams, and commands of both",
                stream.name
            )));
        }
        let cores = &lab.topology().cores;
        let tenant = |side: &Side, from: u32| {
            let cores = cores.iter().skip(from as usize).take(side.threads as usize);
            side.party
                .tenant(lab.topology(), &cores.copied().collect::<Vec<_>>())
        };
        let mut sides = Vec::new();
        let mut plan: Vec<CommandRun> = Vec::new();
        for party in &self.victims {
            let own = self.side(lab, party.clone(), 0)?;
            let victim = tenant(&own, 0)?;
            let mut beside = Vec::new();
            for aggressor in &self.aggressors {
                let other = self.side(lab, aggressor.clone(), own.threads)?;
                let mut tenant = tenant(&other, own.threads)?;
                tenant.name = format!("{} beside", tenant.name);
                // Alone it has another name, by which its runs are known apart.
                let by_itself = Tenant {
                    name: format!("{} alone", other.party.name),
                    ..tenant.clone()
                };
                beside.push((other, tenant, by_itself));
            }
            sides.push((own, victim, beside));
        }
        for round in 0..self.rounds {
            for (_, victim, beside) in &sides {
                let run = |victim: &Tenant, beside: Option<&Tenant>| CommandRun {
                    victim: victim.clone(),
                    beside: beside.cloned(),
                    round,
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
        let of = |victim: &Tenant, beside: Option<&Tenant>| -> Vec<CommandTime> {
            let same = |run: &CommandRun| run.victim == *victim && run.beside.as_ref() == beside;
            let runs = plan.iter().zip(&ran).filter(|(run, _)| same(run));
            runs.map(|(_, time)| time.clone()).collect()
        };
        let mut table = ProgramTable::default();
        for (own, victim, beside) in &sides {
            let alone = of(victim, None);
            let side = (&own.party, own.threads);
            if beside.is_empty() {
                table
                    .pairs
                    .push(ProgramPair::of_command(side, None, &alone, None, &[]));
            }
            for (other, tenant, by_itself) in beside {
                let aggressor = Some((&other.party, other.threads));
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
