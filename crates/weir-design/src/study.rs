//! `weir design`: the search of a space, design by design.

use std::path::PathBuf;

use weir_lab::{Lab, LabError, Study, WorkloadOptions, side_by_side};

use crate::effects;
use crate::measure::{Measured, measure, speed};
use crate::objective::Objective;
use crate::outcome::{Design, Designs, Effect};
use crate::pareto::{Ranks, front};
use crate::search::{Method, Search, Size, count, values};
use crate::space::{Models, Space};

/// Search a space of servers for the designs that no other dominates.
///
/// A file describes the space: what varies, what runs, what designs are compared by and what they must meet (docs/design.md).
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = "\
Objectives:
  speed      instructions a second, relative to the first design that can be
  neighbour  bandwidth of the tenants that run with the workloads
  p99        99th percentile of loads from memory under the workloads
  watts      power of the server
  edp        power times the square of cycles per instruction
  area       die area, in units of 1 MB of last-level cache
  pins       pins of the package for memory
  dollars    price of memory and cards

Examples:
  weir design --file space.toml
  weir design --file space.toml --format csv
  weir design --file space.toml --accesses 5000
  weir design --file space.toml --engine ray --workers 8")]
pub struct DesignStudy {
    /// The space.
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// Lines that each thread accesses in a phase of a workload while it is counted.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub accesses: u64,
    /// The space as it was read, and the models.
    #[arg(skip)]
    pub space: Option<(Space, Models)>,
}

/// Designs, of the first of the space, among which the one is looked for that speed is compared with.
const MOST_FIRST: u128 = 1_000;

/// A design that was tried.
struct Tried {
    values: Vec<usize>,
    on: String,
    measured: Result<Measured, LabError>,
}

impl Tried {
    /// Whether another worker measures it.
    fn is_of_others(&self) -> bool {
        matches!(self.measured, Err(LabError::Part))
    }
}

impl Study for DesignStudy {
    const VERB: &'static str = "design";
    type Output = Designs;

    fn run(&self, lab: &Lab<'_>) -> Result<Designs, LabError> {
        let (space, models) = (self.space.as_ref())
            .ok_or_else(|| LabError::Nothing("a design study needs a space".into()))?;
        if lab.is_dry() {
            return Err(LabError::Dry);
        }
        let options = WorkloadOptions {
            accesses: self.accesses,
            seed: lab.seed(),
            ..WorkloadOptions::default()
        };
        if lab.is_shared() && space.method == Method::Bayesian {
            let why = "a Bayesian search decides by what it has tried, and workers cannot share it; use search = \"full\" or \"random\"";
            return Err(LabError::Nothing(why.into()));
        }
        let work = Work {
            space,
            models,
            options,
            lab,
        };
        work.search()
    }
}

/// What measures designs.
struct Work<'a> {
    space: &'a Space,
    models: &'a Models,
    options: WorkloadOptions,
    lab: &'a Lab<'a>,
}

impl Work<'_> {
    fn search(&self) -> Result<Designs, LabError> {
        let sizes = self.space.sizes();
        let mut search = Search::new(
            self.space.method,
            sizes.clone(),
            self.space.points,
            self.space.seed,
        );
        let total = usize::try_from(search.points()).unwrap_or(usize::MAX);
        let mut place = 0;
        let (first, lacks_first) = match self.first(&sizes) {
            Ok(first) => (first, false),
            Err(LabError::Part) => (None, true),
            Err(why) => return Err(why),
        };
        let workers = workers(self.space, self.models);
        let (mut tried, mut scores) = (Vec::new(), Vec::new());
        let mut ranks = Ranks::default();
        loop {
            let batch = search.next(&scores);
            if batch.is_empty() {
                break;
            }
            let began = place;
            place += batch.len();
            let wanted = batch.len();
            let done = side_by_side(workers, wanted, &|at| {
                let values = batch.get(at)?;
                match self.lab.step(total) {
                    true => self.one(began + at, values),
                    false => None,
                }
            });
            let ended = done.len() < wanted;
            let of_others = done.iter().any(|own| own.is_of_others());
            if !ended && (of_others || lacks_first) {
                return Err(LabError::Part);
            }
            for own in done {
                ranks.add(self.score(&own, first.as_deref()));
                tried.push(own);
            }
            if ended {
                self.lab.end_early();
                break;
            }
            let all = tried.iter().zip(ranks.all());
            scores = all
                .map(|(own, rank): (&Tried, _)| (own.values.clone(), *rank))
                .collect();
        }
        Ok(self.outcome(&tried, first.as_deref()))
    }

    /// What speed is compared with: the first design of the space that can be, if there is one. It is answered from the store
    /// where the search tries it as well.
    fn first(&self, sizes: &[Size]) -> Result<Option<Vec<f64>>, LabError> {
        if !self.space.figures().contains(&Objective::Speed) {
            return Ok(None);
        }
        let all = count(sizes);
        let mut last = String::new();
        for at in 0..all.min(MOST_FIRST) {
            let own = self.one(at as usize, &values(sizes, at));
            match own.ok_or(LabError::Stopped)?.measured {
                Ok(measured) => return Ok(Some(measured.rates)),
                Err(LabError::Part) => return Err(LabError::Part),
                Err(why) => last = why.to_string(),
            }
        }
        match all > MOST_FIRST {
            true => Err(LabError::Nothing(format!(
                "speed needs a design to be compared with, and none of the first {MOST_FIRST} can be: {last}"
            ))),
            false => Ok(None),
        }
    }

    /// A design at a place of the search; `None` where the work was stopped.
    fn one(&self, place: usize, values: &[usize]) -> Option<Tried> {
        let of = |on: String, measured| {
            Some(Tried {
                values: values.to_vec(),
                on,
                measured,
            })
        };
        let candidate = match self.space.design(values, self.models) {
            Ok(candidate) => candidate,
            Err(why) => return of(String::new(), Err(LabError::Nothing(why))),
        };
        let measured = (|| {
            let testbed = (self.models.open)(&candidate.on).map_err(LabError::Failed)?;
            let machine = testbed.open(self.options.seed)?;
            let (identity, topology) = (machine.identity(), machine.topology().clone());
            drop(machine);
            let lab = self.lab.on_share(place, &*testbed, &identity, &topology);
            measure(self.space, &candidate, &self.options, &lab, self.models)
        })();
        match measured {
            Err(LabError::Stopped) => None,
            measured => of(candidate.on, measured),
        }
    }

    /// The figure of each objective and constraint; speed as compared with the first design.
    fn figure(&self, own: &Tried, objective: Objective, first: Option<&[f64]>) -> Option<f64> {
        let measured = own.measured.as_ref().ok()?;
        match objective {
            Objective::Speed => speed(self.space, &measured.rates, first?),
            other => measured
                .figures
                .iter()
                .find(|(of, _)| *of == other)
                .map(|(_, figure)| *figure),
        }
    }

    /// By how much constraints are violated, all together.
    fn violation(&self, own: &Tried, first: Option<&[f64]>) -> f64 {
        let bounds = self.space.constraints.iter();
        bounds
            .map(|bound| {
                self.figure(own, bound.objective, first)
                    .map_or(0.0, |f| bound.violation(f))
            })
            .sum()
    }

    /// The costs by which a search ranks a design: those of the objectives where it is feasible; else all are higher, by
    /// how much it violates constraints.
    fn score(&self, own: &Tried, first: Option<&[f64]>) -> Vec<f64> {
        const INFEASIBLE: f64 = 1e30;
        let violation = match own.measured.is_ok() {
            true => self.violation(own, first),
            false => f64::MAX / INFEASIBLE / 4.0,
        };
        let objectives = self.space.objectives.iter();
        let cost = |&objective: &Objective| match violation > 0.0 {
            true => INFEASIBLE * (1.0 + violation),
            false => self
                .figure(own, objective, first)
                .map_or(INFEASIBLE, |figure| objective.cost(figure)),
        };
        objectives.map(cost).collect()
    }

    fn outcome(&self, tried: &[Tried], first: Option<&[f64]>) -> Designs {
        let space = self.space;
        let mut designs: Vec<Design> = tried.iter().map(|own| self.design(own, first)).collect();
        let feasible: Vec<usize> = (0..designs.len())
            .filter(|&at| designs[at].feasible)
            .collect();
        let costs: Vec<Vec<f64>> = feasible
            .iter()
            .map(|&at| self.score(&tried[at], first))
            .collect();
        let on = front(&costs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for (&at, on) in feasible.iter().zip(on) {
            designs[at].front = on;
        }
        for own in &mut designs {
            own.standing = match (own.front, own.feasible, own.why.is_some()) {
                (true, ..) => "front",
                (_, true, _) => "dominated",
                (_, _, true) => "impossible",
                _ => "infeasible",
            }
            .into();
        }
        Designs {
            effects: self.effects(tried, first),
            designs,
            axes: space.axes.iter().map(|axis| axis.name.clone()).collect(),
            varied: (space.axes.iter().filter(|axis| axis.values.len() > 1))
                .map(|axis| axis.name.clone())
                .collect(),
            objectives: space.objectives.clone(),
            constraints: space
                .constraints
                .iter()
                .map(|bound| bound.words())
                .collect(),
            search: space.method,
            search_seed: space.seed,
            space: count(&space.sizes()) as f64,
        }
    }

    fn design(&self, own: &Tried, first: Option<&[f64]>) -> Design {
        let axes = self.space.axes.iter().zip(&own.values);
        let values: Vec<String> = axes
            .filter_map(|(axis, &at)| axis.values.get(at).cloned())
            .collect();
        // What no design varies names none.
        let named = self.space.axes.iter().zip(&values);
        let named: Vec<String> = named
            .filter(|(axis, _)| axis.values.len() > 1)
            .map(|(axis, value)| format!("{} {value}", axis.name))
            .collect();
        let named = match named.is_empty() {
            true => "the only one".into(),
            false => named.join(", "),
        };
        let figure = |objective| self.figure(own, objective, first);
        Design {
            design: named,
            values,
            on: own.on.clone(),
            speed: figure(Objective::Speed),
            neighbour_gbps: figure(Objective::Neighbour),
            p99_ns: figure(Objective::P99),
            watts: figure(Objective::Watts),
            edp: figure(Objective::Edp),
            area: figure(Objective::Area),
            pins: figure(Objective::Pins),
            dollars: figure(Objective::Dollars),
            feasible: own.measured.is_ok() && self.violation(own, first) == 0.0,
            front: false,
            standing: String::new(),
            why: own.measured.as_ref().err().map(ToString::to_string),
        }
    }

    /// The main effect of each axis on each objective, over all designs that can be.
    fn effects(&self, tried: &[Tried], first: Option<&[f64]>) -> Vec<Effect> {
        let sizes: Vec<usize> = self
            .space
            .axes
            .iter()
            .map(|axis| axis.values.len())
            .collect();
        let mut all = Vec::new();
        for &objective in &self.space.objectives {
            let rows = tried.iter().filter_map(|own| {
                Some((own.values.as_slice(), self.figure(own, objective, first)?))
            });
            let rows: Vec<(&[usize], f64)> = rows.collect();
            let mean = rows.iter().map(|(_, f)| f).sum::<f64>() / (rows.len() as f64).max(1.0);
            let ranges = effects::terms(&sizes, &rows)
                .into_iter()
                .map(|own| effects::range(&own));
            let ranges: Vec<_> = ranges.collect();
            let sum: f64 = ranges.iter().flatten().map(|(.., far)| far).sum();
            for (axis, found) in self.space.axes.iter().zip(ranges) {
                let Some((low, high, range)) = found.filter(|_| axis.values.len() > 1) else {
                    continue;
                };
                let (best, worst) = match objective.more_is_better() {
                    true => (high, low),
                    false => (low, high),
                };
                all.push(Effect {
                    axis: axis.name.clone(),
                    objective,
                    best: axis.values[best].clone(),
                    worst: axis.values[worst].clone(),
                    range,
                    unit: objective.unit().into(),
                    of_mean_pct: 100.0 * range / mean.abs().max(f64::MIN_POSITIVE),
                    share_pct: if sum > 0.0 { 100.0 * range / sum } else { 0.0 },
                });
            }
        }
        all
    }
}

/// Designs that are measured at once: as many as their models allow.
fn workers(space: &Space, models: &Models) -> usize {
    let first = space.design(&vec![0; space.axes.len()], models);
    let opened = first.and_then(|first| (models.open)(&first.on));
    opened.map_or(1, |testbed| testbed.parallelism())
}
