//! Which share of a region's lines a cache holds after a program has run for long (Che's approximation).
//!
//! A cache with least-recently-used replacement keeps the lines that were accessed within its *characteristic
//! time*: the time in which as many different lines are accessed as the cache holds (Che, Tung and Wang,
//! "Hierarchical Web caching systems", IEEE JSAC 2002; exact for a cyclic order, close for random orders). So
//! a last-level cache of millions of lines is warm at once, and a run need not be long enough to fill it.

/// How the lines of a region are accessed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// With equal probability.
    Uniform,
    /// By rank.
    Ranked(Ranking),
    /// One after the other, in a cycle.
    Cyclic,
    /// Once and never again.
    Once,
}

/// How often lines are accessed by their rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ranking {
    /// By Zipf's law with this exponent.
    Zipf(f64),
    /// The first part x of the lines has the share x^alpha of the accesses.
    Apex(f64),
}

/// The accesses to one region.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// Its lines.
    pub lines: f64,
    /// Lines accessed per unit of time.
    pub rate: f64,
    /// In which order.
    pub law: Law,
}

/// Ranks are divided into this many classes, each wider than the one before.
const CLASSES: u32 = 48;

impl Flow {
    /// Share of the accesses that hit in a cache of this characteristic time.
    pub fn hits(&self, time: f64) -> f64 {
        match self.law {
            Law::Uniform => 1.0 - (-self.rate * time / self.lines).exp(),
            Law::Cyclic => f64::from(self.lines <= self.rate * time),
            Law::Once => 0.0,
            Law::Ranked(_) => mean(&self.classes(), |popularity| {
                popularity * (1.0 - (-self.rate * popularity * time / self.lines).exp())
            }),
        }
    }

    /// The same for one line: `popularity` is how often it is accessed, relative to the mean of the region.
    pub fn hits_of(&self, popularity: f64, time: f64) -> f64 {
        match self.law {
            Law::Ranked(_) => 1.0 - (-self.rate * popularity * time / self.lines).exp(),
            _ => self.hits(time),
        }
    }

    /// Lines that are in the cache.
    pub fn occupies(&self, time: f64) -> f64 {
        self.occupies_of(&self.classes(), time)
    }

    /// The same with its [`classes`](Self::classes), which are the same at all times.
    pub fn occupies_of(&self, classes: &[Class], time: f64) -> f64 {
        match self.law {
            Law::Uniform => self.lines * self.hits(time),
            Law::Cyclic => self.lines.min(self.rate * time),
            Law::Once => self.rate * time,
            Law::Ranked(_) => {
                self.lines
                    * mean(classes, |popularity| {
                        1.0 - (-self.rate * popularity * time / self.lines).exp()
                    })
            }
        }
    }

    /// Its lines in classes of about the same popularity, if that goes by rank.
    pub fn classes(&self) -> Vec<Class> {
        let Law::Ranked(ranking) = self.law else {
            return Vec::new();
        };
        let ratio = self.lines.max(2.0).powf(1.0 / f64::from(CLASSES));
        let popularity = Popularity::new(self.lines, ranking);
        let mut classes = Vec::with_capacity(CLASSES as usize + 1);
        let mut from = 0.0;
        let mut to = 1.0;
        for _ in 0..=CLASSES {
            let to_here: f64 = f64::min(to, self.lines);
            let share = (to_here - from) / self.lines;
            if share > 0.0 {
                classes.push(Class {
                    share,
                    popularity: popularity.between(from, to_here),
                });
            }
            from = to_here;
            to *= ratio;
        }
        classes
    }
}

/// Lines of about the same popularity.
pub struct Class {
    /// The share of the region that they are.
    share: f64,
    /// How often each is accessed, relative to the mean of the region.
    popularity: f64,
}

/// The mean over the lines of classes of a function of their popularity.
fn mean(classes: &[Class], f: impl Fn(f64) -> f64) -> f64 {
    let add = |total: f64, class: &Class| total + class.share * f(class.popularity);
    classes.iter().fold(0.0, add)
}

/// How often the lines of a region are accessed, by their rank.
#[derive(Debug, Clone, Copy)]
pub struct Popularity {
    lines: f64,
    ranking: Ranking,
    /// Of Zipf's law the integral of rank^-skew from a half to the end, so that the first rank is finite; else lines^alpha.
    whole: f64,
}

impl Popularity {
    /// Of a region of this many lines.
    pub fn new(lines: f64, ranking: Ranking) -> Self {
        let (low, high): (f64, f64) = (0.5, lines + 0.5);
        let whole = match ranking {
            Ranking::Zipf(skew) if (skew - 1.0).abs() < 1e-6 => (high / low).ln(),
            Ranking::Zipf(skew) => (high.powf(1.0 - skew) - low.powf(1.0 - skew)) / (1.0 - skew),
            Ranking::Apex(alpha) => lines.powf(alpha),
        };
        Self {
            lines,
            ranking,
            whole,
        }
    }

    /// How often the line of a rank (from 0) is accessed, relative to the mean of the region.
    pub fn of(&self, rank: f64) -> f64 {
        match self.ranking {
            Ranking::Zipf(skew) => (rank + 0.5).powf(-skew) / self.whole * self.lines,
            Ranking::Apex(_) => self.between(rank, rank + 1.0),
        }
    }

    /// The same of the lines between two ranks.
    fn between(&self, from: f64, to: f64) -> f64 {
        match self.ranking {
            Ranking::Zipf(_) => self.of(f64::max(f64::midpoint(from, to), 0.5)),
            Ranking::Apex(alpha) => {
                // to^alpha - from^alpha, of which most digits cancel where the two are close.
                let share = match from > 0.0 {
                    true => from.powf(alpha) * (alpha * (to / from).ln()).exp_m1(),
                    false => to.powf(alpha),
                };
                share / self.whole / (to - from) * self.lines
            }
        }
    }
}

/// The characteristic time of a cache of `lines` lines that these flows share.
pub fn characteristic_time(flows: &[Flow], lines: f64) -> f64 {
    let classes: Vec<_> = flows.iter().map(Flow::classes).collect();
    let occupied = |time: f64| {
        let each = flows.iter().zip(&classes);
        each.map(|(flow, classes)| flow.occupies_of(classes, time))
            .sum()
    };
    time_of(occupied, lines)
}

/// The time in which as many different lines are accessed as the cache holds.
pub fn time_of(occupied: impl Fn(f64) -> f64, lines: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while occupied(high) < lines {
        low = high;
        high *= 4.0;
        if high > 1e18 {
            // Everything fits.
            return f64::INFINITY;
        }
    }
    for _ in 0..48 {
        let middle = f64::midpoint(low, high);
        if occupied(middle) < lines {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flow(law: Law, lines: f64, rate: f64) -> Flow {
        Flow { lines, rate, law }
    }

    #[test]
    fn equal_chances_fill_a_cache_with_an_equal_share() {
        let one = flow(Law::Uniform, 1e6, 3.0);
        let time = characteristic_time(&[one], 2.5e5);
        assert!((one.hits(time) - 0.25).abs() < 1e-3);
    }

    #[test]
    fn a_round_fits_or_is_never_found() {
        for (lines, hit) in [(9e4, 1.0), (1.1e5, 0.0)] {
            let one = flow(Law::Cyclic, lines, 1.0);
            let time = characteristic_time(&[one], 1e5);
            assert_eq!(one.hits(time), hit);
        }
    }

    proptest! {
        #[test]
        fn a_larger_cache_never_hits_less_and_skew_only_helps(
            lines in 1e3f64..1e7,
            skew in 0.1f64..1.4,
            share in 0.01f64..0.5,
        ) {
            let drawn = flow(Law::Ranked(Ranking::Zipf(skew)), lines, 1.0);
            let hits = |share: f64| drawn.hits(characteristic_time(&[drawn], share * lines));
            prop_assert!(hits(share * 1.5) >= hits(share) - 1e-9);
            prop_assert!(hits(share) > share * 0.9);
            prop_assert!(hits(share) <= 1.0 + 1e-6);
        }

        #[test]
        fn touches_of_all_ranks_are_all_touches(lines in 1e3f64..1e8, skew in 0.1f64..1.4) {
            let drawn = flow(Law::Ranked(Ranking::Zipf(skew)), lines, 1.0);
            let whole = mean(&drawn.classes(), |popularity| popularity);
            prop_assert!((whole - 1.0).abs() < 0.15, "{whole}");
        }

        #[test]
        fn a_cache_answers_of_apex_map_about_what_the_first_lines_are_asked_for(
            lines in 1e5f64..1e9,
            alpha in 0.001f64..1.0,
            held in 0.001f64..0.5,
        ) {
            let drawn = flow(Law::Ranked(Ranking::Apex(alpha)), lines, 1.0);
            let whole = mean(&drawn.classes(), |popularity| popularity);
            prop_assert!((whole - 1.0).abs() < 1e-9, "{whole}");
            // No cache of this many lines answers more than one that keeps the most popular ones.
            let hits = drawn.hits(characteristic_time(&[drawn], held * lines));
            let first = held.powf(alpha);
            prop_assert!(hits < first + 0.01, "{hits} of {first}");
            prop_assert!(1.0 - hits < 2.0 * (1.0 - first) + 0.01, "{hits} of {first}");
        }
    }
}
