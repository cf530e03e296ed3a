//! `weir interplay` with programs: what is asked, what the rows mean, and how they are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::interplay::ChangeClass;
use weir_model::machine::MachineKind;
use weir_model::tenant::Tenant;

use super::pair::{Made, Pace, ProgramPair, pace};
use super::party::{Party, What};
use super::together::{Together, TogetherRun};
use crate::study::{About, Outcome, Study};
use crate::view::{View, col};
use crate::{Lab, LabError, Severity, Verdict};

/// Programs beside each other and beside streams.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramPairs {
    /// Whose work is watched.
    pub victims: Vec<Party>,
    /// Who runs beside them; with none, the victims are alone.
    pub aggressors: Vec<Party>,
    /// Threads of a stream; 0 for as many as the other side leaves, 16 at most.
    pub threads: u32,
    /// Requests a second of victims that answer requests, each in turn; empty for what their descriptions say.
    pub rates: Vec<f64>,
    /// Requests that a victim answers while it is observed.
    pub requests: u64,
    /// Lines that each thread of another victim touches meanwhile.
    pub accesses: u64,
}

/// Threads of a stream at most, unless they are asked for: those of the papers.
const STREAMS: u32 = 16;

/// The rows of `interplay` with programs: the own part of a `weir/interplay-programs/1` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramTable {
    /// One for each victim alone, and beside each aggressor.
    pub pairs: Vec<ProgramPair>,
}

/// A victim at one rate, with its phases.
struct Side {
    party: Party,
    threads: u32,
    phases: Vec<Party>,
}

impl ProgramPairs {
    /// The victims at every rate.
    fn victims(&self) -> Vec<Party> {
        let at = |party: &Party| match &party.what {
            What::Program(work, tiers) if work.requests.is_some() && !self.rates.is_empty() => {
                let rates = self.rates.iter().map(|&rate| {
                    let mut work = work.clone();
                    if let Some(requests) = &mut work.requests {
                        requests.per_second = Some(rate);
                        requests.think = weir_model::units::Nanos(0.0);
                    }
                    Party {
                        name: party.name.clone(),
                        what: What::Program(work, tiers.clone()),
                    }
                });
                rates.collect()
            }
            _ => vec![party.clone()],
        };
        self.victims.iter().flat_map(at).collect()
    }

    fn side(&self, lab: &Lab<'_>, party: Party, taken: u32) -> Result<Side, LabError> {
        let cores = lab.topology().cores.len() as u32;
        let left = cores.saturating_sub(taken);
        let streams = match self.threads {
            0 => STREAMS
                .min(left.saturating_sub(u32::from(taken == 0)))
                .max(1),
            threads => threads,
        };
        let threads = party.threads(streams);
        if threads > left {
            return Err(LabError::Nothing(format!(
                "`{}` has {threads} threads, and of {cores} cores {left} are left for it",
                party.name
            )));
        }
        let phases = party.phases();
        Ok(Side {
            party,
            threads,
            phases,
        })
    }
}

/// Every phase of one side beside every phase of the other; alone without another.
fn asks(
    lab: &Lab<'_>,
    study: &ProgramPairs,
    own: &Side,
    other: Option<&Side>,
) -> Result<Vec<Together>, LabError> {
    let cores = &lab.topology().cores;
    let tenant = |phase: &Party, from: u32, threads: u32| -> Result<Tenant, LabError> {
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
            seed: lab.seed(),
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
    pace(&side.party, &runs, &[1.0], 0)
}

impl Study for ProgramPairs {
    const VERB: &'static str = "interplay programs";
    type Output = ProgramTable;

    fn run(&self, lab: &Lab<'_>) -> Result<ProgramTable, LabError> {
        if lab.machine().kind == MachineKind::Host {
            return Err(LabError::Nothing(
                "descriptions of programs run on models only; name one with --on".into(),
            ));
        }
        let mut victims = Vec::new();
        for party in self.victims() {
            victims.push(self.side(lab, party, 0)?);
        }
        // All asks in one list, so that progress knows its end: each side alone, then the pairs.
        let mut plan: Vec<Together> = Vec::new();
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut ask = |asks: Vec<Together>| {
            places.push((plan.len(), asks.len()));
            plan.extend(asks);
            places.len() - 1
        };
        let mut rows: Vec<(usize, usize, Vec<(Side, usize, usize)>)> = Vec::new();
        for (v, victim) in victims.iter().enumerate() {
            let own = ask(asks(lab, self, victim, None)?);
            let mut beside = Vec::new();
            for aggressor in &self.aggressors {
                let other = self.side(lab, aggressor.clone(), victim.threads)?;
                let by_itself = ask(asks(lab, self, &other, None)?);
                let both = ask(asks(lab, self, victim, Some(&other))?);
                beside.push((other, by_itself, both));
            }
            rows.push((v, own, beside));
        }
        let ran = lab.ask(&plan)?;
        if ran.len() < plan.len() {
            return Err(LabError::Stopped);
        }
        let of = |place: usize| {
            let (from, n) = places[place];
            &ran[from..from + n]
        };
        let mut table = ProgramTable::default();
        for (v, own, beside) in &rows {
            let victim = &victims[*v];
            let by_itself = alone(victim, of(*own));
            let others: Vec<Pace> = (beside.iter())
                .map(|(other, by_itself, _)| alone(other, of(*by_itself)))
                .collect();
            let made = |aggressor, together, corun| Made {
                topology: lab.topology(),
                victim: (&victim.party, victim.threads, &by_itself),
                aggressor,
                together,
                counted: (&of(*own)[0], corun),
            };
            if beside.is_empty() {
                table.pairs.push(ProgramPair::of(&made(None, None, None)));
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
                    pace(&victim.party, &by_victim, &other_alone.shares, 0),
                    pace(&other.party, &by_other, &by_itself.shares, 1),
                );
                let row = made(
                    Some((&other.party, other.threads, other_alone)),
                    Some(together),
                    both.first(),
                );
                table.pairs.push(ProgramPair::of(&row));
            }
        }
        Ok(table)
    }
}

impl Outcome for ProgramTable {
    const SCHEMA: &'static str = "weir/interplay-programs/1";
    const TITLE: &'static str = "Programs beside each other";
    const WORDS: &'static str = "Each row has what a program gets done alone and beside another tenant, in its own metric. \
        The latency of a request is from its arrival to its answer, with the time that it waits for a free thread.";

    fn answer(&self, _: About<'_>) -> Vec<Verdict> {
        let note = |about: String, text: String| Verdict::new(Severity::Note, about, text);
        let mut all = Vec::new();
        let mut beside: Vec<&ProgramPair> = self
            .pairs
            .iter()
            .filter(|p| p.aggressor.is_some())
            .collect();
        let harmed = |pair: &&&ProgramPair| pair.class.is_some_and(|c| c < ChangeClass::None);
        let change = |pair: &ProgramPair| pair.change_pct.unwrap_or(0.0);
        beside.sort_by(|a, b| {
            (a.class, change(a))
                .partial_cmp(&(b.class, change(b)))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(worst) = beside.first() {
            let harmed = beside.iter().filter(harmed).count();
            let lead = match (harmed, &worst.aggressor) {
                (0, _) => format!("of {} pairs, none loses more than 5 %", beside.len()),
                (_, aggressor) => format!(
                    "{} loses most, {:.1} % of its {} beside {}; {harmed} of {} pairs lose more than 5 % or wait \
                     that much longer",
                    worst.victim,
                    -change(worst),
                    worst.unit,
                    aggressor.as_deref().unwrap_or_default(),
                    beside.len()
                ),
            };
            all.push(note("programs".into(), lead));
        }
        for pair in &beside {
            let at = pair
                .offered_per_s
                .map_or_else(String::new, |rate| format!(" at {rate:.0}/s"));
            let about = format!(
                "{}{at} beside {}",
                pair.victim,
                pair.aggressor.as_deref().unwrap_or_default()
            );
            all.extend(pair.sentence().map(|text| note(about, text)));
        }
        for pair in self
            .pairs
            .iter()
            .filter(|p| p.saturated && p.aggressor.is_none())
        {
            let text = format!(
                "{:.0} {} are answered of {:.0} that arrive: the queue grows without end",
                pair.alone,
                pair.unit,
                pair.offered_per_s.unwrap_or(0.0)
            );
            all.push(note(pair.victim.clone(), text));
        }
        all
    }

    fn views(&self, _: About<'_>) -> Vec<View> {
        let served = self.pairs.iter().any(|pair| pair.ns_alone.is_some());
        let rates = self.pairs.iter().any(|pair| pair.offered_per_s.is_some());
        let several = self.pairs.iter().any(|pair| pair.aggressor.is_some());
        let mut columns = vec![col("victim")];
        if several {
            columns.push(col("aggressor").head("beside").empty("alone"));
        }
        if rates {
            columns.push(
                col("offered_per_s")
                    .head("arrive\na second")
                    .places(0)
                    .if_any(),
            );
        }
        columns.extend([col("alone"), col("unit")]);
        if several {
            columns.extend([col("beside"), col("change_pct").head("change").signed()]);
        }
        if served {
            columns.extend([
                col("ns_alone_p50").head("p50\nalone").if_any(),
                col("ns_alone_p99").head("p99\nalone").if_any(),
            ]);
            if several {
                columns.push(col("ns_beside_p99").head("p99\nbeside").if_any());
            }
        }
        let mut views = vec![View::table(
            "pairs",
            "What programs get done, alone and beside others",
            columns,
        )];
        if served && rates {
            let series: &[&str] = if several {
                &["victim", "aggressor"]
            } else {
                &["victim"]
            };
            let (y, title) = match several {
                true => (
                    "ns_beside_p99",
                    "p99 of requests beside others, by how many arrive",
                ),
                false => ("ns_alone_p99", "p99 of requests, by how many arrive"),
            };
            views.push(View::lines(
                "pairs",
                title,
                ("offered_per_s", "requests that arrive a second"),
                (y, "ns"),
                series,
            ));
        }
        if several {
            views.push(View::bars(
                "pairs",
                "Change of what a program gets done",
                &["victim"],
                "aggressor",
                ("change_pct", "%"),
            ));
        }
        let lost = |of: &str| -> Vec<crate::view::Col> {
            let name = |part: &'static str, of: &str| match (of, part) {
                ("alone", "cpi") => "lost_alone_cpi",
                ("alone", "stores") => "lost_alone_stores",
                ("alone", "l2") => "lost_alone_l2",
                ("alone", "l3") => "lost_alone_l3",
                ("alone", _) => "lost_alone_dram",
                (_, "cpi") => "lost_beside_cpi",
                (_, "stores") => "lost_beside_stores",
                (_, "l2") => "lost_beside_l2",
                (_, "l3") => "lost_beside_l3",
                _ => "lost_beside_dram",
            };
            let heads = [
                ("cpi", "CPI"),
                ("stores", "stores"),
                ("l2", "L2"),
                ("l3", "L3"),
                ("dram", "DRAM"),
            ];
            heads
                .into_iter()
                .map(|(part, head)| col(name(part, of)).head(head))
                .collect()
        };
        if self.pairs.iter().any(|pair| pair.lost_alone.is_some()) {
            let mut columns = vec![col("victim")];
            let (of, title) = match several {
                true => (
                    "beside",
                    "Cycles of an instruction lost beside others, by what they wait for",
                ),
                false => (
                    "alone",
                    "Cycles of an instruction lost, by what they wait for",
                ),
            };
            if several {
                columns.push(col("aggressor").head("beside"));
            }
            columns.extend(lost(of));
            views.push(View::table("pairs", title, columns));
        }
        views
    }
}
