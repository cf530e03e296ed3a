//! `weir place neighbours` on this host: graph and vectors are placed by variant, and threads near them stand in for devices.

use std::any::Any;

use anyhow::anyhow;
use weir_ann::AnnError;
use weir_ann::candidates::Met;
use weir_ann::datasets::Dataset;
use weir_ann::graph::Graph;
use weir_ann::host::layout::{Lists, shard};
use weir_ann::host::ring::Waits;
use weir_ann::host::run::{Ended, Measured, Run, cost};
use weir_ann::host::timed::{Data, How, Ticks};
use weir_ann::ladder::Variant;
use weir_ann::outcome::{LadderRow, Neighbours, OnHost, Pool};
use weir_ann::search::{FromRow, ordered};
use weir_ann::study::{NeighbourSearch, budget_of, capacity_share};
use weir_ann::vectors::{Metric, Near, Vectors};
use weir_ann::walked::{SCALED, Searches, walk};
use weir_lab::plan::caches_in_reach;
use weir_lab::{Outcome as _, Study as _};
use weir_linux::clock::{Clock, raw_nanos};
use weir_linux::memory::{Number, Pages, Placed, Policy, Share, free_memory};
use weir_linux::pin::{Pinned, allowed_cpus};
use weir_model::document::Document;
use weir_model::machine::MachineError;
use weir_model::topology::{Tier, TierKind, Topology};
use weir_model::units::Bytes;

use crate::context::Context;
use crate::disturbance;
use crate::driver::header_of;
use crate::failure::{Failure, Result};
use crate::keeping::Keeping;
use crate::machine;
use crate::nodes::all_here;
use crate::progress::Progress;
use crate::system::{self, System};

/// How often each variant is placed and measured, with all other variants between.
const REPETITIONS: usize = 5;
/// Data that are fewer times as large as the caches are partly read from there.
const TIMES_CACHES: u64 = 4;

/// The clock by which searches are timed.
fn ticks() -> Ticks {
    // A counter is read in the same way whatever the length of its tick.
    fn counter() -> u64 {
        Clock::Counter { tick: 1.0 }.stop()
    }
    let clock = Clock::best();
    Ticks {
        now: match clock {
            Clock::Counter { .. } => counter,
            Clock::Raw => raw_nanos,
        },
        tick: clock.time(1),
    }
}

/// Measures, keeps and prints.
///
/// # Errors
/// The arguments do not fit this host, it has no such tier or no room, or a search found other neighbours.
pub fn run(study: &NeighbourSearch, context: &Context) -> Result<()> {
    let on = &context.global.on;
    let chosen = machine::choose(on)?;
    let system = system::find(on)?.ok_or_else(|| Failure::request("this host cannot be read"))?;
    let topology = &chosen.topology;
    let host = Host::of(study, context, &system, topology)?;
    let datasets = match study.datasets.is_empty() {
        true => Dataset::ALL.to_vec(),
        false => study.datasets.clone(),
    };
    if study.devices.is_some() {
        return Err(Failure::request(
            "--devices is of a model; on a host each shard of 256 B of a vector has a device",
        ));
    }
    if study.vectors.is_some() && datasets.len() != 1 {
        return Err(Failure::request(
            "--vectors has the vectors of one dataset; name it with --dataset",
        ));
    }
    let keeping = Keeping::begin(context, NeighbourSearch::VERB)?;
    let mut head = header_of(Neighbours::SCHEMA, context, &chosen);
    head.warnings.extend(disturbance::before_measuring(context));
    let most = datasets
        .iter()
        .map(|one| one.published().shards() as usize)
        .max()
        .unwrap_or(1);
    let ticks = ticks();
    let mut found = Neighbours::none(
        host.pool.tier.clone(),
        host.near.tier.clone(),
        study.nodes,
        host.budget,
    );
    let mut about = OnHost {
        cpu: host.cpu,
        near_cpus: host.near_cpus.first(most),
        pool_cpus: host.pool_cpus.first(most),
        is_at_pool: host.pool_cpus.are_own,
        shares_cpus: host.shares(most),
        is_verified: true,
        candidates: SCALED as u32,
        queries: study.queries,
        repetitions: 0,
        clock_ns: (ticks.tick * cost(ticks) as f64).get(),
        differing: 0,
    };
    let of = datasets.len() * REPETITIONS * Variant::ALL.len();
    let mut progress = Progress::begin("place neighbours on host", of, context.global.quiet);
    let mut done = 0;
    for dataset in datasets {
        let step = &mut || {
            done += 1;
            progress.step(done, of, done as f64 / of as f64);
            context
                .stop
                .waits_for("a repetition of a variant".to_owned());
        };
        match host.dataset(dataset, ticks, step, (&mut found, &mut about)) {
            Ok(warning) => head.warnings.extend(warning),
            Err(Stopped::ByUser) => {
                head.partial = true;
                break;
            }
            Err(Stopped::By(why)) => return Err(why),
        }
    }
    progress.end();
    let end = match (head.partial, about.differing) {
        (true, _) => Err(Failure::Partial(
            "stopped: what was finished is kept".into(),
        )),
        (false, 0) => Ok(()),
        (false, n) => Err(Failure::work(format!(
            "{n} searches found other neighbours than Algorithm 1 in ordinary memory"
        ))),
    };
    found.on_host = Some(about);
    let document = Document {
        header: head,
        output: found,
    };
    keeping.put(document, None)?;
    end
}

/// Why a dataset has no more figures.
enum Stopped {
    ByUser,
    By(Failure),
}

impl<F: Into<Failure>> From<F> for Stopped {
    fn from(why: F) -> Self {
        match why.into() {
            Failure::Partial(_) => Self::ByUser,
            why => Self::By(why),
        }
    }
}

/// Processors for the threads of devices of a node.
struct Cpus {
    all: Vec<u32>,
    /// Whether they are the node's own.
    are_own: bool,
}

impl Cpus {
    /// Those of a node without the searching thread's, as far as there are others; of the nearest node with any where it has
    /// none.
    fn near(system: &System, topology: &Topology, node: Option<u32>, search: u32) -> Result<Self> {
        let allowed = allowed_cpus().map_err(|why| Failure::Missing(anyhow!("{why}")))?;
        let nodes = system.view.nodes.known().map_or(&[][..], Vec::as_slice);
        let own = |at: usize| -> Vec<u32> {
            let cpus = nodes.get(at).and_then(|node| node.cpus.known());
            let cpus = cpus.map_or(&[][..], Vec::as_slice).iter().copied();
            cpus.filter(|cpu| allowed.contains(cpu)).collect()
        };
        let at = nodes.iter().position(|one| Some(one.id) == node);
        let distances = at.and_then(|at| nodes.get(at)?.distances.known());
        let nearest = (0..nodes.len())
            .filter(|&other| !own(other).is_empty())
            .min_by_key(|&other| distances.and_then(|all| all.get(other)));
        let are_own = at.is_none_or(|at| !own(at).is_empty());
        let mut all = match at.filter(|_| are_own).or(nearest.filter(|_| at.is_some())) {
            Some(at) => own(at),
            None => allowed,
        };
        // One thread of each core first.
        all.sort_by_key(|cpu| !topology.has_core(*cpu));
        if all.len() > 1 {
            all.retain(|&cpu| cpu != search);
        }
        Ok(Self { all, are_own })
    }

    fn first(&self, count: usize) -> Vec<u32> {
        self.all.iter().copied().cycle().take(count).collect()
    }
}

/// Where everything is on this host.
struct Host<'a> {
    study: &'a NeighbourSearch,
    context: &'a Context,
    system: &'a System,
    topology: &'a Topology,
    near: Share,
    pool: Share,
    near_cpus: Cpus,
    pool_cpus: Cpus,
    /// The processor of the searching thread.
    cpu: u32,
    budget: Bytes,
    pages: Pages,
    policy: Policy,
}

/// Searches of a dataset, and what they find in ordinary memory.
struct Searched<'d> {
    dataset: Dataset,
    vectors: &'d Vectors,
    queries: &'d Vectors,
    graph: &'d Graph,
    wanted: &'d [Vec<Near>],
    /// All lists in the pool, and those of inner hops in local memory.
    lists: [Lists; 2],
}

fn of_ann(error: AnnError) -> Failure {
    Failure::work(error.to_string())
}

impl<'a> Host<'a> {
    fn of(
        study: &'a NeighbourSearch,
        context: &'a Context,
        system: &'a System,
        topology: &'a Topology,
    ) -> Result<Self> {
        let has = topology
            .tiers
            .iter()
            .filter(|tier| tier.kind != TierKind::Ssd)
            .count();
        if has < 2 && topology.tier(&study.tier).is_none() && topology.tier(&study.from).is_some() {
            return Err(Failure::Missing(anyhow!(
                "this host has one memory node, and no tier `{}` for graph and vectors: of the variants only oracle and \
                 near_oracle need no other; --tier {} runs all of them on that node, and --on with a platform asks a model",
                study.tier,
                study.from
            )));
        }
        all_here(system, topology, &[study.from.clone(), study.tier.clone()])?;
        let tier = |name| {
            let found = topology.tier(name);
            found.ok_or_else(|| Failure::from(MachineError::no_such_tier(name, topology)))
        };
        let share = |tier: &Tier| Share {
            tier: tier.name.clone(),
            node: tier.node,
            weight: 1,
        };
        let (near, pool) = (tier(&study.from)?, tier(&study.tier)?);
        if [near, pool].iter().any(|tier| tier.kind == TierKind::Ssd) {
            return Err(Failure::request("loads do not reach a tier of storage"));
        }
        let cpus = Cpus::near(system, topology, near.node, u32::MAX)?;
        let cpu = cpus.first(1).first().copied();
        let cpu = cpu.ok_or_else(|| Failure::request("no processor may be used"))?;
        Ok(Self {
            study,
            context,
            system,
            topology,
            near_cpus: Cpus::near(system, topology, near.node, cpu)?,
            pool_cpus: Cpus::near(system, topology, pool.node, cpu)?,
            cpu,
            budget: study.budget.unwrap_or(budget_of(near.capacity)),
            near: share(near),
            pool: share(pool),
            pages: machine::host_pages(&context.global.on).unwrap_or_default(),
            policy: Policy::probe(),
        })
    }

    /// Whether some threads share a processor where there are this many devices.
    fn shares(&self, devices: usize) -> bool {
        let few = |cpus: &Cpus| cpus.all.len() < devices || cpus.all.contains(&self.cpu);
        few(&self.near_cpus) || few(&self.pool_cpus)
    }

    /// All variants of a dataset, in rounds. Returns what makes its figures less than trustworthy.
    fn dataset(
        &self,
        dataset: Dataset,
        ticks: Ticks,
        step: &mut dyn FnMut(),
        (found, about): (&mut Neighbours, &mut OnHost),
    ) -> std::result::Result<Option<String>, Stopped> {
        let (shape, seed) = (dataset.published(), self.context.global.seed);
        let searches = Searches {
            dataset,
            nodes: self.study.nodes as usize,
            queries: self.study.queries as usize,
            vectors: self.study.vectors.clone(),
        };
        let data = searches.data(seed);
        let (vectors, queries) = data.map_err(|error| Failure::request(error.to_string()))?;
        let go_on = || !self.context.stop.requested();
        let graph = searches.graph(&vectors, seed, &|_| go_on());
        let graph = graph.map_err(|error| {
            if go_on() {
                of_ann(error)
            } else {
                Failure::Partial(String::new())
            }
        })?;
        let walked = walk(shape.metric, &vectors, &queries, &graph).map_err(of_ann)?;
        let capacity = capacity_share(dataset, self.budget);
        // Local memory has the share of these lists that it has of the published ones.
        let budget = (capacity * graph.bytes() as f64) as u64;
        let searched = Searched {
            dataset,
            lists: [
                Lists::of(&graph, 0).map_err(of_ann)?,
                Lists::of(&graph, budget).map_err(of_ann)?,
            ],
            wanted: &wanted(&graph, &vectors, shape.metric, &queries),
            vectors: &vectors,
            queries: &queries,
            graph: &graph,
        };
        let bytes = self.check_room(&searched)?;
        let mut all: Vec<Vec<Measured>> = vec![Vec::new(); Variant::ALL.len()];
        let mut stopped = Ok(());
        'rounds: for _ in 0..REPETITIONS {
            for (variant, all) in Variant::ALL.into_iter().zip(&mut all) {
                match self.variant(&searched, variant, ticks, about) {
                    Ok(measured) => all.push(measured),
                    Err(why) => {
                        stopped = Err(why);
                        break 'rounds;
                    }
                }
                step();
            }
        }
        if let Err(Stopped::By(why)) = stopped {
            return Err(Stopped::By(why));
        }
        let hits = all
            .iter()
            .flatten()
            .map(|one| &one.laps)
            .filter(|laps| laps.inner > 0);
        let hits = hits
            .map(|laps| laps.inner as f64 / laps.steps as f64)
            .next()
            .unwrap_or(0.0);
        for (variant, all) in Variant::ALL.into_iter().zip(&all) {
            about.repetitions = about.repetitions.max(all.len() as u32);
            let pool = match (variant, self.pool_cpus.are_own) {
                (Variant::Oracle | Variant::NearOracle, _) => None,
                _ if self.pool.tier == self.near.tier => None,
                (_, true) => Some(Pool::WithCpus),
                (_, false) => Some(Pool::Far),
            };
            let asked = (ticks, queries.len());
            found
                .ladder
                .extend(LadderRow::measured((dataset, variant), all, asked, pool));
        }
        let rows = found.ladder.iter_mut().filter(|row| row.dataset == dataset);
        let rows: Vec<&mut LadderRow> = rows.collect();
        let oracle = rows.first().map_or(1.0, |row| row.query_us);
        rows.into_iter()
            .for_each(|row| row.of_oracle = row.query_us / oracle);
        found.put_walked(dataset, &walked, capacity, hits);
        stopped?;
        let caches = caches_in_reach(self.topology, 1);
        Ok((bytes < TIMES_CACHES * caches.get()).then(|| {
            format!(
                "{dataset}: graph and vectors take {}, and caches hold {caches}: much is read from them, and little from a \
                 tier; --nodes asks for more",
                Bytes(bytes)
            )
        }))
    }

    /// Bytes of graph and vectors, for which both tiers must have room.
    fn check_room(&self, searched: &Searched<'_>) -> Result<u64> {
        let [lists, _] = &searched.lists;
        let bytes =
            4 * (lists.pool.len() + searched.vectors.len() * searched.vectors.dims()) as u64;
        for share in [&self.near, &self.pool] {
            let room = free_memory(&self.system.root, share.node);
            if let Some(room) = room.filter(|room| room.free < Bytes(2 * bytes)) {
                return Err(room.refuses(share.tier.clone(), Bytes(2 * bytes)).into());
            }
        }
        Ok(bytes)
    }

    /// Places what a variant needs, and searches.
    fn variant(
        &self,
        searched: &Searched<'_>,
        variant: Variant,
        ticks: Ticks,
        about: &mut OnHost,
    ) -> std::result::Result<Measured, Stopped> {
        // Graphs are built on all processors before; what this thread keeps for itself is then near it.
        let _pinned = Pinned::to(self.cpu)?;
        let how = How::from(variant);
        let (pool, cpus) = match variant {
            Variant::Oracle | Variant::NearOracle => (&self.near, &self.near_cpus),
            _ => (&self.pool, &self.pool_cpus),
        };
        let [all, split] = &searched.lists;
        let lists = if how.has_inner { split } else { all };
        let mut verified = true;
        let inner = self.placed(
            lists.inner.len(),
            lists.inner.iter().copied(),
            &self.near,
            &mut verified,
        )?;
        let rest = self.placed(
            lists.pool.len(),
            lists.pool.iter().copied(),
            pool,
            &mut verified,
        )?;
        let vectors = searched.vectors;
        let shape = searched.dataset.published();
        let whole = if how.by_devices {
            0
        } else {
            vectors.len() * vectors.dims()
        };
        let rows = self.placed(
            whole,
            vectors.rows().flatten().copied(),
            pool,
            &mut verified,
        )?;
        let count = if how.by_devices {
            shape.shards() as usize
        } else {
            0
        };
        let columns = (0..count).map(|at| {
            let length = shard(vectors, at).count();
            self.placed(length, shard(vectors, at), pool, &mut verified)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let shards: Vec<&[f32]> = columns.iter().map(|column| &column[..]).collect();
        let on = cpus.first(shards.len());
        let pin = |device: usize| -> std::result::Result<Box<dyn Any>, String> {
            let cpu = on.get(device).copied().unwrap_or(self.cpu);
            let pinned = Pinned::to(cpu).map_err(|why| why.to_string())?;
            Ok(Box::new(pinned))
        };
        let run = Run {
            data: Data {
                entry: searched.graph.entry(),
                places: &lists.places,
                inner: &inner,
                pool: &rest,
                vectors: &rows,
                dims: vectors.dims(),
                metric: shape.metric,
            },
            how,
            shards: &shards,
            queries: searched.queries,
            most: SCALED,
            once: self.study.once,
            waits: match self.shares(shards.len()) {
                true => Waits::Sleeping,
                false => Waits::Looking,
            },
        };
        let measured = run.measure(ticks, &pin, &|| !self.context.stop.requested());
        let measured = measured.map_err(|why| match why {
            Ended::Stopped => Stopped::ByUser,
            Ended::Device(why) => Stopped::By(Failure::work(why)),
        })?;
        about.is_verified &= verified;
        let both = measured.found.iter().zip(searched.wanted);
        about.differing += both.filter(|(found, wanted)| found != wanted).count() as u32;
        Ok(measured)
    }

    fn placed<T: Number>(
        &self,
        length: usize,
        numbers: impl Iterator<Item = T>,
        share: &Share,
        verified: &mut bool,
    ) -> Result<Placed<T>> {
        let placed = Placed::copy(length, numbers, (share, self.pages, &self.policy))?;
        *verified &= placed.is_verified();
        Ok(placed)
    }
}

/// What Algorithm 1 finds in ordinary memory.
fn wanted(graph: &Graph, vectors: &Vectors, metric: Metric, queries: &Vectors) -> Vec<Vec<Near>> {
    let mut met = Met::new(graph.len());
    let from = |row| FromRow {
        vectors,
        metric,
        row,
    };
    let found = queries
        .rows()
        .map(|row| ordered(graph, from(row), SCALED, &mut met).nearest);
    found.collect()
}
