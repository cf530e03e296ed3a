//! `weir workload run` on this host: the real application, started, driven, checked, and ended.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_lab::workload::application::{ApplicationFigure, ApplicationMemory, ApplicationRun, VERB};
use weir_lab::{Outcome as _, RunAlone};
use weir_linux::application::client::{Client, Drive, Mix, Seen};
use weir_linux::application::keys::{Keys, Popular};
use weir_linux::application::program::Task;
use weir_linux::application::server::{Server, installed};
use weir_linux::application::{Trouble, Where, residency, values};
use weir_linux::pin::{Pinned, allowed_cpus};
use weir_model::document::Document;
use weir_model::tenant::Placement;
use weir_model::topology::{TierName, Topology};
use weir_model::units::Bytes;
use weir_model::workload::{Application, Order, Workload};

use super::options::Real;
use super::size::{PER_RECORD, size};
use crate::context::Context;
use crate::disturbance;
use crate::failure::{Failure, Result};
use crate::insight::header;
use crate::keeping::Keeping;
use crate::nodes::{Held, all_here, here, node_of, spread};
use crate::progress::Progress;
use crate::system::System;

/// Where the pages of one run are to be.
struct Place {
    name: String,
    /// The share of each node; empty where the kernel has no nodes.
    nodes: Vec<(u32, f64)>,
    place: Where,
    /// The weights of the system, while they are changed.
    held: Option<Held>,
}

/// A run on this host.
struct OnHost<'a> {
    context: &'a Context,
    real: &'a Real,
    host: System,
    topology: Topology,
    workload: &'a Workload,
    application: Application,
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
    workload: &Workload,
    application: Application,
    context: &Context,
) -> Result<()> {
    let host = here(context)?;
    let topology = host.view.topology()?;
    real.check(application)?;
    if args.no_prefetch {
        return Err(Failure::request(
            "--no-prefetch is of a model: the prefetchers of this host are switched for all that runs on it",
        ));
    }
    if application == Application::Redis && args.threads.is_some_and(|threads| threads > 1) {
        return Err(Failure::request(
            "redis answers requests on one thread; leave --threads out",
        ));
    }
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
    let (bytes, reduced) = size(real, workload, application, &host, &topology, &placements)?;
    let steps = match application {
        Application::Sqlite => 1 + 2 * real.trials(),
        Application::DuckDb => 1 + 4 * real.trials(),
        Application::PageRank | Application::Bfs => real.trials(),
        Application::Redis | Application::Memcached => real.rate.len().max(1) as u32,
    };
    let of = placements.len() * steps as usize;
    let keeping = Keeping::begin(context, VERB)?;
    let mut head = header(ApplicationRun::SCHEMA, context, &topology.processor);
    head.machine = host.identity.clone();
    head.capabilities = host.view.capabilities();
    head.topology = topology.clone();
    head.warnings.extend(reduced);
    head.warnings.extend(disturbance::before_measuring(context));
    let title = format!("{} on host", workload.name);
    let mut on = OnHost {
        context,
        real,
        workload,
        application,
        cpus,
        generator,
        progress: Progress::begin(&title, of, context.global.quiet),
        done: 0,
        of,
        run: ApplicationRun {
            workload: workload.name.clone(),
            application,
            version,
            threads: workload.threads,
            processors,
            bytes,
            connections: application.is_server().then(|| real.connections()),
            figures: Vec::new(),
            memory: Vec::new(),
        },
        checks: Vec::new(),
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

fn failure(why: Trouble) -> Failure {
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
        let ended = match self.application.is_server() {
            true => self.serve(&place),
            false => self.program(&place),
        };
        if let Some(held) = place.held {
            held.restore()?;
        }
        ended
    }

    /// The policy of a placement. A machine with one node needs none.
    fn place(&self, placement: &Placement) -> Result<Place> {
        let weights: Vec<(TierName, u32)> = match placement {
            Placement::Interleave(weights) => {
                weights.iter().filter(|(_, n)| *n > 0).cloned().collect()
            }
            other => other.tiers().map(|tier| (tier.clone(), 1)).collect(),
        };
        let name = match weights.as_slice() {
            [(tier, _)] => tier.to_string(),
            several => {
                let part = |(tier, pages): &(TierName, u32)| format!("{tier}={pages}");
                several.iter().map(part).collect::<Vec<_>>().join(",")
            }
        };
        let without = [TierName::dram()]
            == *weights
                .iter()
                .map(|(tier, _)| tier.clone())
                .collect::<Vec<_>>()
            && self
                .topology
                .tier(&TierName::dram())
                .is_some_and(|tier| tier.node.is_none());
        let mut place = Place {
            name,
            nodes: Vec::new(),
            place: Where {
                cpus: self.cpus.clone(),
                policy: None,
            },
            held: None,
        };
        if without {
            return Ok(place);
        }
        let node = |(tier, weight): &(TierName, u32)| Ok((node_of(&self.topology, tier)?, *weight));
        let nodes: Vec<(u32, u32)> = weights.iter().map(node).collect::<Result<_>>()?;
        let all: u32 = nodes.iter().map(|(_, weight)| weight).sum();
        if all == 0 {
            return Err(Failure::request("no tier has a weight in --tier"));
        }
        place.nodes = nodes
            .iter()
            .map(|&(node, weight)| (node, f64::from(weight) / f64::from(all)))
            .collect();
        let (policy, held) = spread(&self.host, &nodes)?;
        (place.place.policy, place.held) = (Some(policy), held);
        Ok(place)
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

    /// A server at each rate. One that ends is started again for the next.
    fn serve(&mut self, place: &Place) -> std::result::Result<(), Ended> {
        let rates: Vec<Option<f64>> = match self.real.rate.as_slice() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let mut running: Option<(Server, Client)> = None;
        for rate in rates {
            self.step();
            let mut figure = ApplicationFigure {
                placement: place.name.clone(),
                what: if rate.is_some() {
                    "open loop"
                } else {
                    "closed loop"
                }
                .into(),
                rate_per_s: rate,
                ..ApplicationFigure::default()
            };
            let began = match running.take() {
                Some(running) => Ok(running),
                None => self.loaded(place),
            };
            let seen = began.and_then(|(mut server, mut client)| {
                let seen = self
                    .drive(&mut client, rate)
                    .map_err(|why| server.why(why))?;
                let resident = residency::of_process(&self.host.root, server.process());
                running = Some((server, client));
                Ok((seen, resident))
            });
            match seen {
                Ok((seen, resident)) => {
                    fill(&mut figure, &seen);
                    self.memory(place, resident.ok());
                }
                Err(Trouble::Failed(why)) => figure.error = Some(why),
                Err(Trouble::Stopped) => return Err(Ended::Stopped),
                Err(other) => return Err(Ended::Failed(failure(other))),
            }
            self.put(figure, String::new());
        }
        Ok(())
    }

    fn loaded(&self, place: &Place) -> std::result::Result<(Server, Client), Trouble> {
        let Some(data) = self.workload.data() else {
            return Err(Trouble::Request("the workload describes no data".into()));
        };
        let value = (data.element.get() as usize).max(values::LEAST);
        let records = (self.run.bytes.get() / value as u64).max(2);
        let bytes = records * (value as u64 + PER_RECORD);
        let mut server = Server::start(self.application, self.run.threads, bytes, &place.place)?;
        let popular = if self.real.newest {
            Popular::Newest
        } else {
            Popular::Scattered
        };
        let skew = if data.order == Order::Zipf {
            data.skew
        } else {
            0.0
        };
        let mix = Mix {
            records,
            value,
            writes: self.workload.updates(),
            keys: Keys::new(popular, records, skew),
        };
        let (protocol, connections) = (server.protocol(), self.real.connections() as usize);
        let _pinned = self.pinned();
        let seed = self.context.global.seed;
        let client = Client::connect(protocol, server.socket(), connections, mix, seed)?;
        let mut client = client.alone(self.generator.is_some());
        client
            .load(&|| self.context.stop.requested())
            .map_err(|why| server.why(why))?;
        Ok((server, client))
    }

    fn drive(&self, client: &mut Client, rate: Option<f64>) -> std::result::Result<Seen, Trouble> {
        let seconds = self
            .real
            .lasts
            .map_or(10.0, |lasts| lasts.as_secs().clamp(0.01, 86_400.0));
        let length = Duration::from_secs_f64(seconds);
        let drive = Drive {
            rate,
            warm_up: (length / 5).min(Duration::from_secs(1)),
            length,
        };
        let _pinned = self.pinned();
        client.drive(&drive, &|| self.context.stop.requested())
    }

    /// Keeps this thread on the processor of the generator. Where that is refused, the kernel chooses.
    fn pinned(&self) -> Option<Pinned> {
        self.generator.and_then(|cpu| Pinned::to(cpu).ok())
    }

    fn program(&mut self, place: &Place) -> std::result::Result<(), Ended> {
        let task = Task {
            application: self.application,
            bytes: self.run.bytes.get(),
            record: self.workload.data().map_or(0, |data| data.element.get()),
            threads: self.run.threads,
            trials: self.real.trials(),
            seed: self.context.global.seed,
            weir: std::env::current_exe()
                .map_err(|error| Failure::work(format!("the path of this command: {error}")))?,
        };
        self.step();
        let (root, stop) = (self.host.root.clone(), self.context.stop.clone());
        let mut taken = Vec::new();
        let of = |what: &str| ApplicationFigure {
            placement: place.name.clone(),
            what: what.into(),
            ..ApplicationFigure::default()
        };
        let ran = task.run(&root, &place.place, &|| stop.requested(), &mut |step| {
            let figure = ApplicationFigure {
                time_ns: Some(step.time),
                rows: Some(step.rows),
                ..of(&step.name)
            };
            taken.push((figure, step.check.clone()));
            let done = self.done + taken.len();
            self.progress
                .step(done, self.of, done as f64 / self.of as f64);
        });
        let last = taken.len();
        for (figure, check) in taken {
            self.put(figure, check);
        }
        match ran {
            Ok(ran) => {
                self.run.version = ran.version;
                self.memory(place, ran.resident.ok());
                if let (Some(first), true) = (ran.wrong.first(), last > 0)
                    && let Some(figure) = self.run.figures.last_mut()
                {
                    figure.wrong += ran.wrong.len() as u64;
                    figure.first_wrong = Some(first.clone());
                }
                Ok(())
            }
            Err(Trouble::Failed(why)) => {
                let figure = ApplicationFigure {
                    error: Some(why),
                    ..of("what was left")
                };
                self.put(figure, String::new());
                Ok(())
            }
            Err(Trouble::Stopped) => Err(Ended::Stopped),
            Err(other) => Err(Ended::Failed(failure(other))),
        }
    }

    /// Keeps where the pages of a placement are, in place of what was known of it.
    fn memory(&mut self, place: &Place, resident: Option<BTreeMap<u32, Bytes>>) {
        let Some(mut resident) = resident else {
            return;
        };
        for (node, _) in &place.nodes {
            resident.entry(*node).or_insert(Bytes(0));
        }
        let all: u64 = resident.values().map(|bytes| bytes.get()).sum();
        self.run
            .memory
            .retain(|memory| memory.placement != place.name);
        for (node, bytes) in resident {
            let asked = place.nodes.iter().find(|(of, _)| *of == node);
            // Without a policy every node is right.
            let share = bytes.get() as f64 / all.max(1) as f64;
            let asked = if place.nodes.is_empty() {
                share
            } else {
                asked.map_or(0.0, |(_, share)| *share)
            };
            let tier = self
                .topology
                .tiers
                .iter()
                .find(|tier| tier.node == Some(node));
            self.run.memory.push(ApplicationMemory {
                placement: place.name.clone(),
                tier: tier.map(|tier| tier.name.clone()),
                node,
                resident_bytes: bytes,
                share,
                asked,
            });
        }
    }
}

fn fill(figure: &mut ApplicationFigure, seen: &Seen) {
    let seconds = seen.time.as_secs().max(1e-9);
    let summary = seen.latency.summary();
    figure.offered_per_s = Some(seen.offered as f64 / seconds);
    figure.answered_per_s = Some(seen.answered as f64 / seconds);
    figure.mean_ns = summary.map(|summary| summary.mean);
    figure.p50_ns = summary.map(|summary| summary.p50);
    figure.p99_ns = summary.and_then(|summary| summary.p99);
    figure.p999_ns = summary.and_then(|summary| summary.p999);
    figure.late_p99_ns = seen.late.summary().and_then(|late| late.p99);
    figure.unanswered = Some(seen.unanswered);
    figure.wrong = seen.wrong;
    figure.first_wrong.clone_from(&seen.first_wrong);
}
