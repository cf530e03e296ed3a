//! The real program of a workload on this host: started, observed over windows, ended, and explained.

use std::time::Duration;

use weir_insight::documents::Explained;
use weir_insight::explain::{COUNTERS, CountedRun};
use weir_insight::studies::explain::Explain;
use weir_lab::interplay::{Participant, PlacedName};
use weir_lab::{Outcome as _, Study as _};
use weir_linux::Root;
use weir_linux::application::residency::{descendants, memory};
use weir_linux::application::table::entry;
use weir_model::application_tenant::{ApplicationDone, ApplicationTenant};
use weir_model::counter_file::CountersDocument;
use weir_model::document::Header;
use weir_model::metric::OwnMetric;
use weir_model::topology::TierName;
use weir_model::units::{Bytes, Nanos};
use weir_model::workload::RealProgram;

use super::super::participants::prepare;
use super::host::{Neighbour, document, unloaded};
use super::options::Args;
use crate::context::Context;
use crate::counting::Count;
use crate::driver;
use crate::driver::header_of;
use crate::failure::{Failure, Result};
use crate::insight;
use crate::keeping::Keeping;
use crate::machine::{self, Chosen};
use crate::nodes::{all_here, here};
use crate::progress::Progress;

/// How long it is observed, unless asked for.
const LASTS: Nanos = Nanos(5e9);
/// By then the client of a server that has died has said so (half a second, and its own look).
const NOTICED: Duration = Duration::from_secs(1);
/// Windows of that, unless asked for.
const WINDOW: Duration = Duration::from_secs(1);

/// Starts, observes, ends, explains, keeps and prints.
///
/// # Errors
/// It is not installed, a tier is no node here, it failed while it was observed, or nothing is known of it.
pub(super) fn explain(args: &Args, mut program: RealProgram, context: &Context) -> Result<()> {
    let study = &args.study;
    if study.no_prefetch {
        return Err(Failure::request(
            "--no-prefetch is of a model: the prefetchers of this host are switched for all that runs on it",
        ));
    }
    if study.rate.is_some() {
        return Err(Failure::request(
            "--rate is of a model: on this host a server is asked as fast as it answers; `weir workload run --rate` measures it at a rate",
        ));
    }
    if study.threads.is_some_and(|threads| threads > 1) && !entry(program.application).threads {
        return Err(Failure::request(format!(
            "{} works on one thread; leave --threads out",
            program.application
        )));
    }
    let lasts = args.lasts.unwrap_or(LASTS).as_secs();
    if !(0.1..=86_400.0).contains(&lasts) {
        return Err(Failure::request("--for is from 100 ms to a day"));
    }
    program.threads = study.threads.unwrap_or(program.threads);
    let chosen = machine::choose(&context.global.on)?;
    let tiers = match study.tiers.as_slice() {
        [] => vec![TierName::dram()],
        [from, to] => {
            all_here(&here(context)?, &chosen.topology, &study.tiers)?;
            insight::tiers(&chosen.topology, from, to)?;
            study.tiers.clone()
        }
        [_] => study.tiers.clone(),
        _ => return Err(Failure::request("name one tier, or two to compare")),
    };
    let neighbour = Neighbour::of(args, context)?;
    if neighbour.is_some() && tiers.len() > 1 {
        return Err(Failure::request(
            "with another tenant a program runs on one tier; name one with --tier",
        ));
    }
    args.check_idle(neighbour.as_ref().map_or(tiers.len(), |_| 2), "run")?;
    let mut head = header_of(Explained::SCHEMA, context, &chosen);
    let own = Observed::prepared(
        args,
        &program,
        &chosen,
        (tiers.as_slice(), neighbour.as_ref()),
        context,
    )?;
    head.warnings
        .extend(neighbour.iter().flat_map(|other| other.warnings.clone()));
    head.warnings.extend(own.notes.clone());
    let keeping = Keeping::begin(context, Explain::VERB)?;
    let mut seen = Vec::new();
    // Alone and with the other tenant, or on each tier.
    let runs = match &neighbour {
        Some(other) => vec![(&own.tenants[0], None), (&own.tenants[0], Some(other))],
        None => own.tenants.iter().map(|tenant| (tenant, None)).collect(),
    };
    // Of each run its start, with its data, and the time for which it is observed.
    let (mut done, of) = (0, 2 * runs.len());
    let title = format!("{} on host", program.name);
    let mut progress = Progress::begin(&title, of, context.global.quiet);
    let mut step = || {
        done += 1;
        progress.step(done, of, done as f64 / of as f64);
    };
    for (index, (tenant, other)) in runs.iter().enumerate() {
        let beside = other.map(|other| other.start(context)).transpose()?;
        let (counted, done, bytes) =
            own.observe(tenant, Duration::from_secs_f64(lasts), context, &mut step)?;
        if let Some(beside) = beside {
            head.warnings.extend(beside.end()?);
        }
        let tier = tiers.get(index).unwrap_or(&tiers[0]);
        let run = CountedRun {
            name: program.name.clone(),
            tier: Some(tier.clone()),
            beside: other.map(|other| other.name.clone()),
            metric: done.map(metric),
            memory: bytes.as_ref().ok().copied(),
            unloaded: (args.idle.get(index)).and_then(|&ns| unloaded(&counted, Nanos(ns))),
            ..CountedRun::of_file(&counted)
        };
        say_what_is_seen(&mut head, &run, &counted, bytes);
        seen.push(run);
        if context.stop.requested() {
            head.partial = true;
            break;
        }
    }
    progress.end();
    if let [one, two] = seen.as_slice()
        && one.difference(two).is_err()
    {
        return Err(Failure::work(format!(
            "the runs cannot be compared: cycles were not counted, and no part of the work was complete within {lasts} s; observe it for \
             longer (--for)"
        )));
    }
    let partial = head.partial;
    keeping.put(document(&seen, head)?, args.out.as_deref())?;
    match partial {
        true => Err(Failure::Partial(
            "stopped: what was observed until then is explained".into(),
        )),
        false => Ok(()),
    }
}

/// Notes by what a run is explained, and what of it is not known.
fn say_what_is_seen(
    head: &mut Header,
    run: &CountedRun,
    counted: &CountersDocument,
    memory: std::result::Result<Bytes, String>,
) {
    let mut notes = counted.notes.clone();
    notes.extend(
        memory
            .err()
            .map(|why| format!("its memory is not known: {why}")),
    );
    if run.metric.is_none() {
        notes.push("no part of its work was complete while it was observed, so what it gets done is not known; observe it for longer (--for)".into());
    }
    weir_lab::lab::add_new(&mut head.warnings, notes);
}

/// An application that is started for each run.
struct Observed<'a> {
    args: &'a Args,
    chosen: &'a Chosen,
    /// It on each tier.
    tenants: Vec<ApplicationTenant>,
    /// What is worth knowing of its size.
    notes: Vec<String>,
}

impl<'a> Observed<'a> {
    /// On the cores that a neighbour leaves, or those whose local memory is `dram`.
    fn prepared(
        args: &'a Args,
        program: &RealProgram,
        chosen: &'a Chosen,
        (tiers, neighbour): (&[TierName], Option<&Neighbour>),
        context: &Context,
    ) -> Result<Self> {
        let topology = &chosen.topology;
        let near = |cpu: &u32| topology.local_tier(*cpu) == TierName::dram();
        let cores: Vec<u32> = match neighbour {
            Some(other) => other.left.clone(),
            None => topology.cores.iter().copied().filter(near).collect(),
        };
        let cores = if cores.is_empty() {
            topology.cores.clone()
        } else {
            cores
        };
        let on = |tier: &TierName| {
            let placed = PlacedName {
                tiers: vec![(tier.clone(), 1)],
                program: program.name.clone(),
            };
            Participant::application(&placed, program.clone())
        };
        let mut participants: Vec<Participant> = tiers.iter().map(on).collect();
        let at_once = 1 + usize::from(neighbour.is_some());
        let notes = prepare(&mut participants, (args.size, at_once), chosen, context)?;
        let mut tenants = Vec::new();
        for participant in &participants {
            let real = participant.real(topology, &cores, context.global.seed);
            tenants.extend(real.map_err(|error| driver::refusal(error, chosen))?);
        }
        // The smaller data of one tier are those of both, so that both do the same work.
        let least = tenants.iter().map(|tenant| tenant.program.bytes).min();
        for tenant in &mut tenants {
            tenant.program.bytes = least.unwrap_or(tenant.program.bytes);
        }
        Ok(Self {
            args,
            chosen,
            tenants,
            notes,
        })
    }

    /// Counts while it works: what was counted, what it got done, and its memory. A step is done when it has started, and another
    /// when it was observed.
    fn observe(
        &self,
        tenant: &ApplicationTenant,
        lasts: Duration,
        context: &Context,
        step: &mut dyn FnMut(),
    ) -> Result<(
        CountersDocument,
        Option<ApplicationDone>,
        std::result::Result<Bytes, String>,
    )> {
        let root = Root::live();
        let own = std::process::id();
        let before = descendants(&root, own);
        let stop = || context.stop.requested();
        context.stop.waits_for(format!("`{}` to end", tenant.name));
        let mut application = self.chosen.testbed.application(tenant, &stop)?;
        application.begin(&stop)?;
        step();
        let mut processes = descendants(&root, own);
        processes.retain(|process| !before.contains(process));
        let counted = match processes.as_slice() {
            [] => Err(Failure::Missing(anyhow::anyhow!(
                "the processes of `{}` are not known: this kernel does not list children of a process (CONFIG_PROC_CHILDREN)",
                tenant.name
            ))),
            [first, others @ ..] => Count {
                command: &[],
                pid: Some(*first),
                others,
                lasts: Some(lasts),
                all: false,
                every: Some(self.args.interval.map_or(WINDOW, Duration::from_millis)),
                counters: &COUNTERS,
                policy: None,
            }
            .run(&context.stop),
        };
        step();
        let bytes = memory(&root, &processes).map_err(|why| why.reason);
        let seen = counted.as_ref().ok().and_then(|counted| counted.elapsed);
        let has_died = seen.is_some_and(|seen| seen.as_secs() < lasts.as_secs_f64()) && !stop();
        if has_died {
            // Its client notices that it has gone, and says how, unless it is ended first.
            std::thread::sleep(NOTICED);
        }
        // That it failed in that time says more than what could not be counted.
        let done = application.end()?;
        if has_died {
            return Err(Failure::work(format!(
                "`{}` ended while it was observed",
                tenant.name
            )));
        }
        Ok((counted?, done, bytes))
    }
}

fn metric(done: ApplicationDone) -> OwnMetric {
    OwnMetric {
        unit: done.unit,
        rate: done.per_s,
        ns: done.latency,
        p99: None,
    }
}
