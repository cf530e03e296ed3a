//! Published rows about slowdown and interleaving, answered on models (`weir reproduce`).
//!
//! The papers' own programs are not run: a population that spans the space stands for them, or presets
//! that resemble those that are named. What a row is about is in [`rules`], how it is found in
//! `slowdown`, `shots` and `climbs`.

mod climbs;
pub mod rules;
mod shots;
mod slowdown;

use std::collections::BTreeMap;

use weir_lab::reproduce::{Answer, Answers, Beyond, Open};
use weir_model::machine::{Identity, Testbed};
use weir_model::published::Published;
use weir_model::topology::{TierName, Topology};

use crate::two_tiers::{GoOn, TierRunError, Tiers};
use rules::{Pair, Question, Rule};

/// Workloads that stand for a paper's.
pub const POPULATION: usize = 300;

/// Answers them.
pub struct Insight<'a> {
    /// Asked before each workload whether to go on.
    pub go_on: GoOn<'a>,
    /// Workloads that stand for a paper's; [`POPULATION`] unless it has to be quick.
    pub workloads: usize,
}

/// A platform that is open, with the two tiers that are compared.
struct Opened {
    testbed: Box<dyn Testbed>,
    identity: Identity,
    topology: Topology,
    tiers: Tiers,
}

impl Opened {
    fn of(pair: Pair, open: &Open<'_>, seed: u64) -> Result<Self, String> {
        let testbed = open(pair.platform)?;
        let machine = testbed.open(seed).map_err(|error| error.to_string())?;
        let (identity, topology) = (machine.identity(), machine.topology().clone());
        let tiers = Tiers {
            from: TierName::dram(),
            to: TierName::named(pair.to),
        };
        let missing = [&tiers.from, &tiers.to]
            .map(|name| topology.tier(name).is_none().then(|| name.clone()));
        if let Some(tier) = missing.into_iter().flatten().next() {
            return Err(format!("platform {} has no tier {tier}", pair.platform));
        }
        Ok(Self {
            testbed,
            identity,
            topology,
            tiers,
        })
    }
}

/// What was found on a pair, or why nothing was.
type Found<T> = BTreeMap<Pair, Result<T, String>>;

/// Everything that some rules need, each found once.
#[derive(Default)]
struct Studies {
    populations: Found<slowdown::Study>,
    presets: BTreeMap<(Pair, &'static str), Result<slowdown::Preset, String>>,
    without_prefetch: Found<f64>,
    shots: Found<Vec<crate::best_shot::Shot>>,
    climbs: Found<climbs::Climbs>,
}

impl Beyond for Insight<'_> {
    fn knows(&self, id: &str) -> bool {
        rules::find(id).is_some()
    }

    fn answer(&self, rows: &[&Published], open: &Open<'_>, seed: u64) -> Answers {
        let rules: Vec<&Rule> = rows.iter().filter_map(|row| rules::find(&row.id)).collect();
        let mut answers = Answers::default();
        let mut opened: Found<Opened> = Found::new();
        let mut studies = Studies::default();
        for rule in &rules {
            for pair in rule.question.pairs() {
                let on = opened
                    .entry(pair)
                    .or_insert_with(|| Opened::of(pair, open, seed));
                if self
                    .study(&mut studies, rule.question, pair, on, seed)
                    .is_err()
                {
                    return answers;
                }
                if let Ok(on) = on {
                    let digest = on.identity.digest.clone();
                    answers.platforms.insert(pair.platform.into(), digest);
                }
            }
            let answer = Answer {
                ours: self.value(rule.question, &studies),
                note: rule.note.into(),
                replayed: matches!(rule.question, Question::Path(_)),
            };
            answers.rows.insert(rule.id.into(), answer);
        }
        answers
    }
}

/// Nobody wants to know any more.
struct Stopped;

impl Insight<'_> {
    /// Finds what a question needs of a pair, unless it has been found.
    fn study(
        &self,
        studies: &mut Studies,
        question: Question,
        pair: Pair,
        on: &Result<Opened, String>,
        seed: u64,
    ) -> Result<(), Stopped> {
        match question {
            Question::Population(..) => keep(&mut studies.populations, pair, on, |on| {
                slowdown::study(on, self.workloads, seed, self.go_on)
            }),
            Question::Presets(_, presets, ..) => {
                for &name in presets {
                    keep(&mut studies.presets, (pair, name), on, |on| {
                        if !(self.go_on)(presets.len()) {
                            return Err(TierRunError::Stopped);
                        }
                        slowdown::preset(on, name, seed)
                    })?;
                }
                Ok(())
            }
            Question::CacheWithoutPrefetch(_) => {
                keep(&mut studies.without_prefetch, pair, on, |on| {
                    slowdown::cache_without_prefetch(on, self.workloads, seed, self.go_on)
                })
            }
            Question::Shots(..) => keep(&mut studies.shots, pair, on, |on| {
                shots::study(on, seed, self.go_on)
            }),
            Question::Climbs(..) => keep(&mut studies.climbs, pair, on, |on| {
                climbs::study(on, seed, self.go_on)
            }),
            Question::Path(_) => Ok(()),
        }
    }

    fn value(&self, question: Question, studies: &Studies) -> Result<f64, String> {
        fn found<K: Ord, T>(all: &BTreeMap<K, Result<T, String>>, key: &K) -> Result<T, String>
        where
            T: Clone,
        {
            let found = all.get(key).cloned();
            found.unwrap_or_else(|| Err("it was not run".into()))
        }
        match question {
            Question::Population(pairs, end, figure) => end.of(pairs.iter().map(|pair| {
                let study = found(&studies.populations, pair)?;
                slowdown::figure(&study, figure)
            })),
            Question::Presets(pairs, presets, figure, end) => {
                let each = pairs
                    .iter()
                    .flat_map(|&pair| presets.iter().map(move |&p| (pair, p)));
                end.of(each.map(|key| Ok(found(&studies.presets, &key)?.figure(figure))))
            }
            Question::CacheWithoutPrefetch(pair) => found(&studies.without_prefetch, &pair),
            Question::Shots(pair, figure, end) => {
                shots::figure(&found(&studies.shots, &pair)?, figure, end)
            }
            Question::Climbs(pair, figure, end) => {
                climbs::figure(&found(&studies.climbs, &pair)?, figure, end)
            }
            Question::Path(step) => Ok(climbs::step_of_path(step)),
        }
    }
}

/// Finds something once; an error is what was found.
fn keep<K: Ord, T>(
    all: &mut BTreeMap<K, Result<T, String>>,
    key: K,
    on: &Result<Opened, String>,
    find: impl FnOnce(&Opened) -> Result<T, TierRunError>,
) -> Result<(), Stopped> {
    if all.contains_key(&key) {
        return Ok(());
    }
    let found = match on {
        Err(why) => Err(why.clone()),
        Ok(on) => match find(on) {
            Err(TierRunError::Stopped) => return Err(Stopped),
            found => found.map_err(|error| error.to_string()),
        },
    };
    all.insert(key, found);
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_model::published::{PublishedKind, builtin_rows};

    use super::rules;

    #[test]
    fn every_rule_is_of_a_published_result() {
        let rows = builtin_rows();
        for rule in rules::RULES {
            let row = rows.iter().find(|row| row.id == rule.id);
            let row = row.unwrap_or_else(|| panic!("{} is not published", rule.id));
            assert_eq!(row.kind, PublishedKind::Result, "{}", rule.id);
            assert_eq!(row.unit, rule.question.unit(), "{}", rule.id);
        }
        let mut ids: Vec<&str> = rules::RULES.iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rules::RULES.len());
    }
}
