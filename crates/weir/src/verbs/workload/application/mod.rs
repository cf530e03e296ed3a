//! `weir workload run` on this host: the real application, started, driven, checked, and ended.

mod placing;
mod running;
mod serving;

use weir_lab::workload::PageSize;
use weir_lab::workload::application::{ApplicationFigure, ApplicationRun, VERB};
use weir_lab::{Outcome as _, RunAlone};
use weir_linux::application::Trouble;
use weir_linux::application::program::ready;
use weir_linux::application::server::installed;
use weir_linux::application::table::entry;
use weir_linux::memory::ProgramPages;
use weir_linux::pin::allowed_cpus;
use weir_model::document::Document;
use weir_model::tenant::Placement;
use weir_model::topology::{TierName, Topology};
use weir_model::workload::RealProgram;

use super::options::Real;
use super::size::{PART_OF_FREE, size};
use crate::context::Context;
use crate::disturbance;
use crate::driver::header;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::nodes::{all_here, here};
use crate::progress::Progress;
use crate::system::System;

/// A run on this host.
struct OnHost<'a> {
    context: &'a Context,
    real: &'a Real,
    host: System,
    topology: Topology,
    /// What runs, with the bytes and threads that it has here.
    program: RealProgram,
    /// Processors of the application, and that of the generator.
    cpus: Vec<u32>,
    generator: Option<u32>,
    progress: Progress,
    done: usize,
    of: usize,
    run: ApplicationRun,
    /// The digest of the answer of each figure.
    checks: Vec<String>,
}

/// Runs the application of a workload, keeps and prints what it did.
///
/// # Errors
/// It is not installed, the request does not fit it, a figure could not be taken, or answers or pages are wrong.
pub fn run(
    args: &RunAlone,
    real: &Real,
    mut program: RealProgram,
    context: &Context,
) -> Result<()> {
    let application = program.application;
    let needs = entry(application);
    let host = here(context)?;
    let topology = host.view.topology()?;
    real.check(application)?;
    if args.no_prefetch {
        return Err(Failure::request(
            "--no-prefetch is of a model: the prefetchers of this host are switched for all that runs on it",
        ));
    }
    if !args.place.is_empty() {
        return Err(Failure::request(
            "--place is of a model: what a program of this host has in its memory is not known by object",
        ));
    }
    if !needs.threads && args.threads.is_some_and(|threads| threads > 1) {
        return Err(Failure::request(format!(
            "{application} works on one thread; leave --threads out"
        )));
    }
    if application.is_server() {
        ready(&program).map_err(failure)?;
    }
    let _small = match args.pages {
        Some(PageSize::Base) => Some(ProgramPages::base().map_err(anyhow::Error::new)?),
        Some(PageSize::Huge) => {
            let has = ProgramPages::huge(&host.root);
            has.map_err(|why| Failure::Missing(why.into()))?;
            None
        }
        None => None,
    };
    program.threads = args.threads.unwrap_or(program.threads);
    let version = match application.is_server() {
        true => installed(application).map_err(failure)?,
        false => String::new(),
    };
    let names: Vec<TierName> = args.tier.iter().map(|(tier, _)| tier.clone()).collect();
    all_here(&host, &topology, &names)?;
    let placements: Vec<Placement> = match real.each {
        true => names.into_iter().map(Placement::Bind).collect(),
        false => vec![args.placement()],
    };
    let mut cpus = allowed_cpus().map_err(|why| Failure::Missing(why.into()))?;
    let local: Vec<u32> = cpus
        .iter()
        .copied()
        .filter(|&cpu| topology.local_tier(cpu) == TierName::dram())
        .collect();
    if !local.is_empty() {
        cpus = local;
    }
    let generator = match application.is_server() && cpus.len() > 1 {
        true => cpus.pop(),
        false => None,
    };
    let processors = cpus.len() as u32 + u32::from(generator.is_some());
    let (bytes, reduced) = size(
        real.size,
        &program,
        &host,
        &topology,
        (&placements, PART_OF_FREE),
    )?;
    program.bytes = bytes;
    let steps = match application.is_server() {
        true => real.rate.len().max(1) as u32,
        false => needs.steps.0 + needs.steps.1 * real.trials(),
    };
    let of = placements.len() * steps as usize;
    let keeping = Keeping::begin(context, VERB)?;
    let mut head = header(ApplicationRun::SCHEMA, context, &topology.processor);
    head.machine = host.identity.clone();
    head.capabilities = host.view.capabilities();
    head.topology = topology.clone();
    head.warnings.extend(reduced);
    head.warnings.extend(disturbance::before_measuring(context));
    let title = format!("{} on host", program.name);
    let mut on = OnHost {
        context,
        real,
        cpus,
        generator,
        progress: Progress::begin(&title, of, context.global.quiet),
        done: 0,
        of,
        run: ApplicationRun {
            workload: program.name.clone(),
            application,
            version,
            threads: program.threads,
            processors,
            bytes,
            connections: application.is_server().then(|| real.connections()),
            figures: Vec::new(),
            memory: Vec::new(),
        },
        checks: Vec::new(),
        program,
        host,
        topology,
    };
    for placement in &placements {
        match on.on(placement) {
            Ok(()) => {}
            Err(Ended::Stopped) => {
                head.partial = true;
                break;
            }
            Err(Ended::Failed(why)) => return Err(why),
        }
    }
    on.progress.end();
    let mut run = on.run;
    if head.partial && run.figures.is_empty() {
        return Err(Failure::Partial(
            "stopped before the first figure: no run is kept".into(),
        ));
    }
    run.compare_answers(&on.checks);
    let end = verdict(&run, head.partial);
    keeping.put(
        Document {
            header: head,
            output: run,
        },
        None,
    )?;
    end
}

/// Why nothing more is run.
enum Ended {
    Stopped,
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(why: Failure) -> Self {
        Self::Failed(why)
    }
}

/// Why an application has no figure, with the exit code that it means.
pub fn failure(why: Trouble) -> Failure {
    match why {
        Trouble::Lacks(text) => Failure::Missing(anyhow::anyhow!(text)),
        Trouble::Request(text) => Failure::request(text),
        Trouble::Failed(text) => Failure::work(text),
        Trouble::Stopped => Failure::Partial("stopped".into()),
    }
}

/// Whether all that was asked for was measured, and is right.
fn verdict(run: &ApplicationRun, stopped: bool) -> Result<()> {
    if stopped {
        return Err(Failure::Partial(
            "stopped: what was finished is kept".into(),
        ));
    }
    if let Some((first, failed)) = run.failed() {
        let of = run.figures.len();
        return Err(Failure::work(format!(
            "{failed} of {of} figures could not be taken, the first because {first}"
        )));
    }
    if run.wrong() > 0 {
        return Err(Failure::work(format!("{} answers are wrong", run.wrong())));
    }
    match run.misplaced() {
        Some(memory) => Err(Failure::work(format!(
            "the kernel did not place the pages as asked for: {:.1} % of those for {} are on node {}",
            memory.share * 100.0,
            memory.placement,
            memory.node
        ))),
        None => Ok(()),
    }
}

impl OnHost<'_> {
    /// Everything on one placement.
    fn on(&mut self, placement: &Placement) -> std::result::Result<(), Ended> {
        let place = self.place(placement)?;
        let ended = match self.program.application.is_server() {
            true => self.serve(&place),
            false => self.program(&place),
        };
        if let Some(held) = place.held {
            held.restore()?;
        }
        ended
    }

    fn step(&mut self) {
        let (done, of) = (self.done, self.of);
        self.progress.step(done, of, done as f64 / of.max(1) as f64);
        self.context
            .stop
            .waits_for(format!("figure {} of {of}", done + 1));
    }

    fn put(&mut self, figure: ApplicationFigure, check: String) {
        self.run.figures.push(figure);
        self.checks.push(check);
        self.done += 1;
        self.step();
    }
}
