//! The order in which designs of a space are tried: all, at random, or where good ones are expected.

use std::collections::BTreeSet;
use std::convert::Infallible;

use rand::rand_core::TryRng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tpe::{TpeOptimizer, categorical_range, histogram_estimator, parzen_estimator, range};
use weir_model::random::Random;

weir_model::named! {
    /// How a space is searched.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Method {
        /// Every design.
        Full = "full",
        /// Designs at random, none twice.
        Random = "random",
        /// A Tree-structured Parzen Estimator (Bergstra and others, NIPS 2011) for each axis, none twice.
        Bayesian = "bayesian",
    }
}

/// Designs that a Bayesian search draws at random before it learns.
pub const FIRST: usize = 12;
/// Designs that it then chooses at once. They do not depend on the number of threads.
pub const AT_ONCE: usize = 4;
/// Draws of a design that was not tried before, until one is taken at random.
const DRAWS: usize = 32;

/// An axis of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Its values.
    pub values: usize,
    /// Whether values that are near each other are alike.
    pub ordered: bool,
}

/// How many designs a space has.
pub fn count(sizes: &[Size]) -> u128 {
    sizes.iter().map(|size| size.values as u128).product()
}

/// The values of a design by its number, the last axis first.
pub fn values(sizes: &[Size], mut number: u128) -> Vec<usize> {
    let mut values: Vec<usize> = (sizes.iter().rev())
        .map(|size| {
            let of = (size.values as u128).max(1);
            let value = number % of;
            number /= of;
            value as usize
        })
        .collect();
    values.reverse();
    values
}

/// A search: which designs are next.
#[derive(Debug)]
pub struct Search {
    method: Method,
    sizes: Vec<Size>,
    points: u128,
    tried: BTreeSet<Vec<usize>>,
    generator: Generator,
}

impl Search {
    /// A search of this many designs at most; all of them for a full one.
    pub fn new(method: Method, sizes: Vec<Size>, points: u64, seed: u64) -> Self {
        let all = count(&sizes);
        Self {
            points: match method {
                Method::Full => all,
                _ => all.min(u128::from(points)),
            },
            method,
            sizes,
            tried: BTreeSet::new(),
            generator: Generator(Random::new(seed)),
        }
    }

    /// How many designs it tries.
    pub fn points(&self) -> u128 {
        self.points
    }

    /// The next designs; none at the end. `tried` has the values of what was tried, with a score of which less is better.
    pub fn next(&mut self, tried: &[(Vec<usize>, f64)]) -> Vec<Vec<usize>> {
        let left = self.points.saturating_sub(self.tried.len() as u128);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let batch: Vec<Vec<usize>> = match self.method {
            Method::Full => (0..left as u128)
                .map(|at| values(&self.sizes, at))
                .collect(),
            Method::Random => return self.at_random(left),
            Method::Bayesian if self.tried.is_empty() => return self.at_random(left.min(FIRST)),
            Method::Bayesian => return self.expected(left.min(AT_ONCE), tried),
        };
        self.tried.extend(batch.iter().cloned());
        batch
    }

    fn at_random(&mut self, most: usize) -> Vec<Vec<usize>> {
        let all = count(&self.sizes);
        let mut batch = Vec::new();
        while batch.len() < most {
            let drawn = self.generator.below(all);
            // The next design that was not tried: there is one, since no more are asked for than there are.
            let mut next = (0..all).map(|step| values(&self.sizes, (drawn + step) % all));
            let Some(own) = next.find(|own| !self.tried.contains(own)) else {
                break;
            };
            self.tried.insert(own.clone());
            batch.push(own);
        }
        batch
    }

    fn expected(&mut self, most: usize, tried: &[(Vec<usize>, f64)]) -> Vec<Vec<usize>> {
        let mut axes: Vec<_> = (self.sizes.iter().enumerate())
            .filter_map(|(axis, size)| {
                let (of, built) = match size.ordered {
                    true => (parzen_estimator(), range(0.0, size.values as f64)),
                    false => (histogram_estimator(), categorical_range(size.values)),
                };
                let mut estimator = TpeOptimizer::new(of, built.ok()?);
                for (values, score) in tried {
                    let value = *values.get(axis)? as f64;
                    let middle = if size.ordered { value + 0.5 } else { value };
                    // A score that is no number says nothing.
                    let _ = estimator.tell(middle, *score);
                }
                Some(estimator)
            })
            .collect();
        let mut batch = Vec::new();
        while batch.len() < most {
            let mut drawn = (0..DRAWS).filter_map(|_| {
                let asked = axes.iter_mut().zip(&self.sizes).map(|(axis, size)| {
                    let asked = axis.ask(&mut self.generator).ok()?;
                    Some((asked as usize).min(size.values.saturating_sub(1)))
                });
                let own: Vec<usize> = asked.collect::<Option<_>>()?;
                (!self.tried.contains(&own)).then_some(own)
            });
            let own = drawn.next();
            match own {
                Some(own) => {
                    self.tried.insert(own.clone());
                    batch.push(own);
                }
                None => match self.at_random(1).pop() {
                    Some(own) => batch.push(own),
                    None => break,
                },
            }
        }
        batch
    }
}

/// The generator that draws, as the estimators take it.
#[derive(Debug)]
struct Generator(Random);

impl Generator {
    fn below(&mut self, most: u128) -> u128 {
        let wide = u128::from(self.0.bits()) << 64 | u128::from(self.0.bits());
        wide % most.max(1)
    }
}

impl TryRng for Generator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.bits() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(8) {
            let drawn = self.0.bits().to_le_bytes();
            part.copy_from_slice(&drawn[..part.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(of: &[usize]) -> Vec<Size> {
        let size = |&values| Size {
            values,
            ordered: true,
        };
        of.iter().map(size).collect()
    }

    /// How many designs a search tries until it has the least of a function, and all that it tried.
    fn until_found(
        mut search: Search,
        figure: impl Fn(&[usize]) -> f64,
        least: f64,
    ) -> (usize, Vec<Vec<usize>>) {
        let mut tried: Vec<(Vec<usize>, f64)> = Vec::new();
        let mut found = None;
        loop {
            let batch = search.next(&tried);
            if batch.is_empty() {
                break;
            }
            for own in batch {
                let score = figure(&own);
                tried.push((own, score));
                if score <= least && found.is_none() {
                    found = Some(tried.len());
                }
            }
            if found.is_some() && search.method == Method::Bayesian {
                break;
            }
        }
        let all = tried.into_iter().map(|(own, _)| own).collect();
        (found.unwrap_or(usize::MAX), all)
    }

    #[test]
    fn a_full_search_is_a_random_one_of_all() {
        let sizes = sizes(&[3, 4, 2]);
        let all = |method, seed| {
            let search = Search::new(method, sizes.clone(), 24, seed);
            until_found(search, |_| 1.0, 0.0).1
        };
        let full = all(Method::Full, 1);
        assert_eq!(full.len(), 24);
        assert_eq!((&full[0], &full[1]), (&vec![0, 0, 0], &vec![0, 0, 1]));
        for method in [Method::Random, Method::Bayesian] {
            let mut other = all(method, 7);
            assert_ne!(other, full);
            other.sort();
            assert_eq!(other, full, "{method}");
        }
    }

    #[test]
    fn a_seed_gives_one_search_and_another_gives_another() {
        let of = |method, seed| {
            let search = Search::new(method, sizes(&[9, 9, 9]), 40, seed);
            until_found(search, |own| own[0] as f64, -1.0).1
        };
        for method in [Method::Random, Method::Bayesian] {
            assert_eq!(of(method, 3), of(method, 3));
            assert_ne!(of(method, 3), of(method, 4));
            assert_eq!(of(method, 3).len(), 40);
        }
    }

    #[test]
    fn no_design_is_tried_twice_and_no_more_than_there_are() {
        for method in Method::ALL {
            let search = Search::new(method, sizes(&[2, 2]), 1000, 1);
            assert_eq!(search.points(), 4);
            let mut all = until_found(search, |own| own[0] as f64, -1.0).1;
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 4, "{method}");
        }
        let vast = Search::new(Method::Random, sizes(&[64; 12]), 5, 1);
        assert_eq!(until_found(vast, |_| 1.0, 0.0).1.len(), 5);
    }

    #[test]
    fn a_bayesian_search_finds_a_known_least_in_fewer_designs_than_a_random_one() {
        // A bowl with one least, on ordered axes and one of words.
        let figure = |own: &[usize]| {
            let far = |at: usize, best: f64| (own[at] as f64 - best).powi(2);
            far(0, 4.0) + far(1, 1.0) + far(2, 3.0) + if own[3] == 2 { 0.0 } else { 9.0 }
        };
        let mut of = sizes(&[6, 6, 6, 4]);
        of[3].ordered = false;
        let mean = |method, points| {
            let runs = 8;
            let one = |seed| {
                let search = Search::new(method, of.clone(), points, seed);
                until_found(search, figure, 0.0).0.min(864)
            };
            (1..=runs).map(one).sum::<usize>() / runs as usize
        };
        let (bayesian, random) = (mean(Method::Bayesian, 300), mean(Method::Random, 864));
        assert!(2 * bayesian < random, "{bayesian} and {random}");
    }
}
