//! Measures every point that the rules want, once, on the platforms that they name.

use std::collections::{BTreeMap, HashMap, HashSet};

use weir_model::machine::Testbed;
use weir_model::topology::Topology;

use super::Open;
use super::statistic::{Results, Wanted};
use crate::sweep::{measure, side_by_side};
use crate::{Finished, PointSpec, Watcher};

/// A platform that is open, or the reason why not.
type Opened = Result<Platform, String>;

struct Platform {
    testbed: Box<dyn Testbed>,
    topology: Topology,
    digest: String,
}

/// Platforms and the points that were measured on them.
pub(super) struct Bench {
    platforms: BTreeMap<&'static str, Opened>,
    points: HashMap<Wanted, Finished>,
    /// Points that were wanted and could be planned.
    planned: usize,
}

impl Bench {
    /// Opens what is wanted and measures it, until the watcher says stop.
    pub(super) fn measure(
        wanted: &[Wanted],
        open: &Open<'_>,
        seed: u64,
        watcher: &dyn Watcher,
    ) -> Self {
        let mut platforms: BTreeMap<&'static str, Opened> = BTreeMap::new();
        for wanted in wanted {
            platforms
                .entry(wanted.platform)
                .or_insert_with_key(|name| opened(name, open, seed));
        }

        // Each point once, in the order in which rows want them.
        let mut seen = HashSet::new();
        let mut plan: Vec<(Wanted, &Platform, PointSpec)> = Vec::new();
        for &wanted in wanted {
            if let Some(Ok(platform)) = platforms.get(wanted.platform)
                && let Ok(spec) = wanted.on(&platform.topology)
                && seen.insert(wanted)
            {
                plan.push((wanted, platform, spec));
            }
        }

        let workers = plan
            .iter()
            .map(|(_, platform, _)| platform.testbed.parallelism())
            .min();
        let done = side_by_side(workers.unwrap_or(1), plan.len(), &|index| {
            let (wanted, platform, spec) = plan.get(index)?;
            let testbed = platform.testbed.as_ref();
            let done = measure(testbed, index, spec, seed, watcher)?;
            watcher.finished(&done, plan.len());
            Some((*wanted, done))
        });
        let planned = plan.len();
        Self {
            points: done.into_iter().collect(),
            planned,
            platforms,
        }
    }

    /// Whether the watcher ended it before every point was measured.
    pub(super) fn is_partial(&self) -> bool {
        self.points.len() < self.planned
    }

    /// Digests of the platforms that could be opened, by name.
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        let opened = self
            .platforms
            .iter()
            .filter_map(|(name, p)| Some((name, p.as_ref().ok()?)));
        opened
            .map(|(&name, platform)| (name.into(), platform.digest.clone()))
            .collect()
    }

    /// What makes points less than trustworthy: each sentence once, with its platform.
    pub(super) fn warnings(&self) -> Vec<String> {
        let said = self.points.iter().flat_map(|(wanted, done)| {
            done.warnings
                .iter()
                .map(move |warning| format!("{}: {warning}", wanted.platform))
        });
        let mut warnings: Vec<String> = said.collect();
        warnings.sort();
        warnings.dedup();
        warnings
    }

    /// Whether every point of a statistic that could be planned was also measured.
    pub(super) fn has_all(&self, wanted: &[Wanted]) -> bool {
        wanted
            .iter()
            .all(|wanted| match self.platforms.get(wanted.platform) {
                Some(Ok(platform)) if wanted.on(&platform.topology).is_ok() => {
                    self.points.contains_key(wanted)
                }
                _ => true,
            })
    }

    fn platform(&self, name: &str) -> Result<&Platform, String> {
        match self.platforms.get(name) {
            Some(Ok(platform)) => Ok(platform),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("platform {name} was not opened")),
        }
    }
}

impl Results for Bench {
    fn cores(&self, platform: &str) -> Result<usize, String> {
        Ok(self.platform(platform)?.topology.cores.len())
    }

    fn point(&self, wanted: &Wanted) -> Result<&Finished, String> {
        wanted.on(&self.platform(wanted.platform)?.topology)?;
        self.points.get(wanted).ok_or_else(|| "not measured".into())
    }
}

fn opened(name: &str, open: &Open<'_>, seed: u64) -> Opened {
    let named = |error: String| format!("platform {name}: {error}");
    let testbed = open(name).map_err(named)?;
    let machine = testbed
        .open(seed)
        .map_err(|error| named(error.to_string()))?;
    let topology = machine.topology().clone();
    let digest = machine.identity().digest;
    drop(machine);
    Ok(Platform {
        testbed,
        topology,
        digest,
    })
}
