//! `weir interplay` with programs: what is asked, what the rows mean, and how they are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::interplay::ChangeClass;
use weir_model::machine::MachineKind;
use weir_model::tenant::Tenant;

use super::commands::{CommandRun, CommandTime};
use super::pair::{Made, Pace, ProgramPair, pace};
use super::party::{Party, What};
use super::together::{Together, TogetherRun};
use crate::study::{About, Outcome, Study};
use crate::view::{Axis, View, col};
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
    /// Repetitions of a command of a host.
    pub rounds: u32,
}

/// Threads of a stream at most, unless they are asked for: those of the papers.
const STREAMS: u32 = 16;

/// The rows of `interplay` with programs: the own part of a `weir/interplay-programs/1` document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramTable {
    /// One for each victim alone, and beside each aggressor.
    pub pairs: Vec<ProgramPair>,
    /// The latency of victims whose requests arrive by themselves, by how many do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadPoint>,
}

/// The latency of requests at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// The victim, and what runs beside it.
    pub who: String,
    /// Thousands of requests that arrive in a second.
    pub offered_k_per_s: f64,
    /// 99 % are answered within so many microseconds.
    pub p99_us: f64,
    /// The mean, in microseconds.
    pub mean_us: f64,
}

impl LoadPoint {
    /// Every victim at each load, alone, and beside each aggressor.
    fn all(pairs: &[ProgramPair]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for pair in pairs {
            let beside = pair
                .aggressor
                .as_ref()
                .map(|other| format!("{} beside {other}", pair.victim));
            let alone = (Some(pair.victim.clone()), pair.ns_alone);
            for (who, ns) in [alone, (beside, pair.ns_beside)] {
                let (Some(who), Some(offered), Some(ns)) = (who, pair.offered_per_s, ns) else {
                    continue;
                };
                let Some(p99) = ns.p99 else { continue };
                let point = Self {
                    who,
                    offered_k_per_s: offered / 1e3,
                    p99_us: p99.get() / 1e3,
                    mean_us: ns.mean.get() / 1e3,
                };
                // A victim is alone once, whatever it is set beside.
                if !all.contains(&point) {
                    all.push(point);
                }
            }
        }
        all
    }
}

/// A victim, and where the asks of it are: alone, and for each aggressor that one alone, and both.
struct PlannedRow<'a> {
    victim: &'a Side,
    own: usize,
    beside: Vec<(Side, usize, usize)>,
}

/// A party with its phases.
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

    /// Commands of this host, and streams beside them.
    fn on_host(&self, lab: &Lab<'_>) -> Result<ProgramTable, LabError> {
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
                beside.push((other, tenant));
            }
            sides.push((own, victim, beside));
        }
        for round in 0..self.rounds {
            for (_, victim, beside) in &sides {
                let others = beside.iter().map(|(_, tenant)| Some(tenant.clone()));
                plan.extend(
                    std::iter::once(None)
                        .chain(others)
                        .map(|beside| CommandRun {
                            victim: victim.clone(),
                            beside,
                            round,
                        }),
                );
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
                    .push(ProgramPair::of_command(side, None, &alone, None, None));
            }
            for (other, tenant) in beside {
                let both = of(victim, Some(tenant));
                let other = Some((&other.party, other.threads));
                table.pairs.push(ProgramPair::of_command(
                    side,
                    other,
                    &alone,
                    Some(&both),
                    None,
                ));
            }
        }
        Ok(table)
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
        // Half of the cores are for what runs beside a command.
        let commands = match taken {
            0 => (cores / 2).max(1),
            _ => left.max(1),
        };
        let threads = party.threads(streams, commands);
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
            return self.on_host(lab);
        }
        let commands = self.victims.iter().chain(&self.aggressors);
        if let Some(party) = commands
            .into_iter()
            .find(|p| matches!(p.what, What::Command(..)))
        {
            return Err(LabError::Nothing(format!(
                "`{}` is a command, which runs on a host and on no model",
                party.name
            )));
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
        let mut table = ProgramTable::default();
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
        table.loads = LoadPoint::all(&table.pairs);
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
                (0, _) if beside.iter().any(|pair| pair.is_lost_in_spread()) => format!(
                    "uncertain: repetitions of {} pairs differ by more than the change; repeat with --repeat 7 on a \
                     quiet host",
                    beside
                        .iter()
                        .filter(|pair| pair.is_lost_in_spread())
                        .count()
                ),
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
        let runs = self.pairs.iter().any(|pair| pair.run_s_alone.is_some());
        let served = self.pairs.iter().any(|pair| pair.ns_alone.is_some());
        let rates = self.pairs.iter().any(|pair| pair.offered_per_s.is_some());
        let several = self.pairs.iter().any(|pair| pair.aggressor.is_some());
        let mut columns = Vec::new();
        if several {
            columns.push(col("aggressor").head("beside").empty("alone"));
        } else {
            columns.push(col("victim"));
        }
        if rates {
            columns.push(
                col("offered_per_s")
                    .head("arrive\na second")
                    .places(0)
                    .if_any(),
            );
        }
        if runs {
            columns.push(col("run_s_alone").head("run\nalone"));
            if several {
                columns.push(col("run_s_beside").head("run\nbeside"));
            }
            columns.push(col("spread_pct").head("spread"));
        }
        columns.push(col("alone"));
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
        // A table for each victim leaves room for its figures.
        let (title, each): (_, &[&str]) = match several {
            true => (
                "{victim} alone and beside others, in {unit}",
                &["victim", "unit"],
            ),
            false => ("What programs get done, in {unit}", &["unit"]),
        };
        let mut views = vec![View::table("pairs", title, columns).each(each)];
        if !self.loads.is_empty() {
            let curve = View::lines(
                "loads",
                "Latency of requests by how many arrive: p99",
                (
                    "offered_k_per_s",
                    "thousands of requests that arrive a second",
                ),
                ("p99_us", "us"),
                &["who"],
            );
            views.push(curve.axes(Axis::Linear, Axis::Auto));
        }
        // Of several loads the curve says more.
        if several && !rates {
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
