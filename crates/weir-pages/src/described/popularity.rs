//! How unequally items of memory are touched, and what a cache leaves of it.

/// Shares of touches by shares of items, the most popular items first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Popularity {
    /// Items so far, and their touches; the last point is (1, 1).
    points: Vec<(f64, f64)>,
    /// Whether popular items are anywhere; if not, they are the first ones.
    scattered: bool,
}

/// Ranks of a Zipf law are divided into this many classes, each wider than the one before.
const CLASSES: u32 = 96;
/// Halvings of a range.
const STEPS: u32 = 60;

impl Popularity {
    /// All items alike.
    pub(super) fn equal() -> Self {
        Self {
            points: vec![(1.0, 1.0)],
            scattered: true,
        }
    }

    /// By Zipf's law: the share of the item of rank n is proportional to n to the power of -`skew`. Sums are by their
    /// integral from a half, as the simulator draws ranks.
    pub(super) fn zipf(items: f64, skew: f64) -> Self {
        if items < 2.0 || skew <= 0.0 {
            return Self::equal();
        }
        let sum = |n: f64| match (skew - 1.0).abs() < 1e-6 {
            true => ((n + 0.5) / 0.5).ln(),
            false => ((n + 0.5).powf(1.0 - skew) - 0.5f64.powf(1.0 - skew)) / (1.0 - skew),
        };
        let at = |class: u32| items.powf(f64::from(class) / f64::from(CLASSES));
        let mut points: Vec<(f64, f64)> = (0..=CLASSES)
            .map(|class| (at(class) / items, sum(at(class)) / sum(items)))
            .collect();
        points[CLASSES as usize] = (1.0, 1.0);
        Self {
            points,
            scattered: true,
        }
    }

    /// As Apex-Map draws them: the first part x of the items has the share x^`alpha` of the touches.
    pub(super) fn apex(items: f64, alpha: f64) -> Self {
        if items < 2.0 || alpha >= 1.0 {
            return Self::equal();
        }
        let at = |class: u32| items.powf(f64::from(class) / f64::from(CLASSES) - 1.0);
        Self {
            points: (0..=CLASSES)
                .map(|class| (at(class), at(class).powf(alpha)))
                .collect(),
            scattered: false,
        }
    }

    /// Of groups of `of` items that lie together, where popular items are scattered: a group stands where its most popular
    /// item does. Of groups the share 1 - (1 - x)^of has one of the first x items. Touches of those are all there, and a
    /// touch of another item is there if one of the other items of its group is among the first.
    pub(super) fn grouped(&self, of: f64) -> Self {
        let group = |&(items, touches): &(f64, f64)| {
            let others = |n: f64| 1.0 - (1.0 - items).max(0.0).powf(n);
            (others(of), touches + (1.0 - touches) * others(of - 1.0))
        };
        match of > 1.0 && self.scattered {
            true => Self {
                points: self.points.iter().map(group).collect(),
                scattered: true,
            },
            false => self.clone(),
        }
    }

    /// What misses a cache that serves all but a share `missed` of the touches: a cache of least-recent use has the items
    /// that were touched within its characteristic time (Che, Tung and Wang, IEEE JSAC 2002), which follows from the
    /// share. Points are those of the touches.
    pub(super) fn missed(&self, missed: f64) -> Self {
        let classes: Vec<(f64, f64)> = self.classes().collect();
        let misses = |time: f64| -> Vec<f64> {
            let of = |(items, touches): &(f64, f64)| touches * (-touches / items * time).exp();
            classes.iter().map(of).collect()
        };
        let share = |time: f64| misses(time).iter().sum::<f64>();
        let (mut low, mut high) = (0.0, 1.0);
        while share(high) > missed && high < 1e12 {
            (low, high) = (high, high * 4.0);
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            match share(middle) > missed {
                true => low = middle,
                false => high = middle,
            }
        }
        let misses = misses(low);
        let all = misses.iter().sum::<f64>();
        if all <= 0.0 {
            return self.clone();
        }
        let mut sum = 0.0;
        let points = self.points.iter().zip(misses).map(|((items, _), miss)| {
            sum += miss / all;
            (*items, sum)
        });
        let mut points: Vec<(f64, f64)> = points.collect();
        if let Some(last) = points.last_mut() {
            last.1 = 1.0;
        }
        Self {
            points,
            scattered: self.scattered,
        }
    }

    /// Items and touches of each class.
    fn classes(&self) -> impl Iterator<Item = (f64, f64)> {
        let before = std::iter::once(&(0.0, 0.0)).chain(&self.points);
        let classes = before
            .zip(&self.points)
            .map(|(from, to)| (to.0 - from.0, to.1 - from.1));
        classes.filter(|(items, _)| *items > 0.0)
    }

    /// Shares of pages, of their touches and of their misses in bands, each with about half as many pages as the one after
    /// it, and none with less than a page. Both have the same points.
    pub(super) fn bands(&self, misses: &Self, pages: f64) -> Vec<[f64; 3]> {
        let mut bands = Vec::new();
        let (mut from, mut half) = ([0.0; 3], 1.0 / pages.max(1.0));
        for (&(items, touches), &(_, missed)) in self.points.iter().zip(&misses.points) {
            if items >= half || items >= 1.0 {
                let to = [items, touches, missed];
                bands.push([0, 1, 2].map(|n| to[n] - from[n]));
                from = to;
                half = items * 2.0;
            }
        }
        // The last band ends with the last page, however wide it is.
        bands.retain(|band| band[0] > 1e-9);
        bands
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_touch_and_every_page_is_in_one_band(
            items in 2.0f64..1e9, skew in 0.0f64..1.4, of in 1.0f64..1024.0, missed in 0.001f64..1.0,
        ) {
            let pages = (items / of).max(1.0);
            let touched = Popularity::zipf(items, skew).grouped(of);
            let misses = Popularity::zipf(items, skew).missed(missed).grouped(of);
            let bands = touched.bands(&misses, pages);
            for n in 0..3 {
                let sum: f64 = bands.iter().map(|band| band[n]).sum();
                prop_assert!((sum - 1.0).abs() < 1e-6, "{n}: {bands:?}");
                prop_assert!(bands.iter().all(|band| band[n] > -1e-12), "{bands:?}");
            }
        }

        #[test]
        fn of_popular_items_that_lie_together_groups_are_as_unequal(
            items in 1e3f64..1e9, alpha in 0.001f64..1.0, of in 1.0f64..1024.0,
        ) {
            let touched = Popularity::apex(items, alpha);
            prop_assert_eq!(&touched.grouped(of), &touched);
            let bands = touched.bands(&touched, (items / of).max(1.0));
            let sum: f64 = bands.iter().map(|band| band[1]).sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{bands:?}");
            prop_assert!(bands[0][1] >= bands[0][0], "{bands:?}");
        }

        #[test]
        fn a_cache_serves_popular_items_more_than_others(items in 1e3f64..1e8, skew in 0.3f64..1.2, missed in 0.05f64..0.9) {
            let touched = Popularity::zipf(items, skew);
            let misses = touched.missed(missed);
            for (before, after) in touched.points.iter().zip(&misses.points) {
                prop_assert!(after.1 <= before.1 + 1e-9, "{before:?} {after:?}");
            }
        }
    }

    #[test]
    fn pages_of_many_items_are_alike_and_pages_of_one_are_not() {
        let items = Popularity::zipf(1e6, 0.8);
        let most = |of: f64| {
            let pages = items.grouped(of);
            let tenth = pages.points.iter().find(|(pages, _)| *pages >= 0.1);
            tenth.map_or(0.0, |(_, touches)| *touches)
        };
        assert!(most(1.0) > 0.55, "{}", most(1.0));
        assert!(most(1024.0) < 0.25, "{}", most(1024.0));
    }

    #[test]
    fn a_cache_that_serves_nothing_changes_nothing() {
        let items = Popularity::zipf(1e6, 0.99);
        for (a, b) in items.points.iter().zip(&items.missed(1.0).points) {
            assert!((a.1 - b.1).abs() < 1e-6);
        }
    }
}
