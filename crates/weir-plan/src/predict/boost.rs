//! Gradient boosting for a quantile (Friedman, Annals of Statistics 29, 2001): each tree is grown for the gradient of the
//! pinball loss, and its leaves say the quantile of what is left there, as LightGBM does, which Pond takes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tree::{Columns, Growth, Tree, grow};
use weir_model::random::Random;

/// How a model is trained. The usual values are those of LightGBM (100 rounds at a rate of 0.1, 31 leaves of 20 rows): Pond
/// names no other. A depth of 5 allows 32 leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boosting {
    /// Trees.
    pub rounds: u32,
    /// Part of a leaf's answer that is taken.
    pub rate: f64,
    /// Questions from the root of a tree to a leaf.
    pub depth: u32,
    /// Rows of a leaf.
    pub least: usize,
    /// A value that is above the sum by no more than this counts as below it. Without it nothing is learned where more rows than
    /// the quantile have one lowest value: none of them is below it, and all gradients are equal.
    pub tolerance: f64,
}

impl Default for Boosting {
    fn default() -> Self {
        Self {
            rounds: 100,
            rate: 0.1,
            depth: 5,
            least: 20,
            // Traces have untouched memory in whole percents.
            tolerance: 0.005,
        }
    }
}

/// A model of a quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boosted {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// Where the sum begins.
    pub start: f64,
    /// What is added to it.
    pub trees: Vec<Tree>,
}

impl Boosted {
    /// Trains a model for values that are wanted by row.
    pub fn train(columns: &Columns, wanted: &[f64], quantile: f64, how: Boosting) -> Self {
        let start = low_quantile(&mut wanted.to_vec(), quantile);
        let mut said = vec![start; wanted.len()];
        let mut rows: Vec<u32> = (0..wanted.len() as u32).collect();
        let growth = Growth {
            depth: how.depth,
            least: how.least,
            tried: columns.columns(),
        };
        // All columns are tried, so that nothing is drawn.
        let mut random = Random::new(0);
        let mut trees = Vec::new();
        for _ in 0..how.rounds {
            let below = |(wanted, said): (&f64, &f64)| match *wanted <= said + how.tolerance {
                true => quantile - 1.0,
                false => quantile,
            };
            let gradient: Vec<f64> = wanted.iter().zip(&said).map(below).collect();
            let tree = grow(
                columns,
                &mut rows,
                &gradient,
                growth,
                &mut random,
                &mut |rows| {
                    let left = |&row: &u32| wanted[row as usize] - said[row as usize];
                    let mut left: Vec<f64> = rows.iter().map(left).collect();
                    let value = how.rate * low_quantile(&mut left, quantile);
                    rows.iter().for_each(|&row| said[row as usize] += value);
                    value
                },
            );
            trees.push(tree);
        }
        Self {
            quantile,
            start,
            trees,
        }
    }

    /// What it says of a row.
    pub fn value(&self, of: impl Fn(usize) -> f64) -> f64 {
        let added: f64 = self.trees.iter().map(|tree| tree.value(&of)).sum();
        self.start + added
    }

    /// How much each column lowers the errors, as shares of the whole.
    pub fn shares_of_gain(&self, columns: usize) -> Vec<f64> {
        let mut gains = vec![0.0; columns];
        self.trees
            .iter()
            .for_each(|tree| tree.add_gains(&mut gains));
        let all: f64 = gains.iter().sum();
        gains.iter().map(|gain| gain / all.max(1e-300)).collect()
    }
}

/// The largest value below which no more than this share of the values is; 0 of none.
fn low_quantile(values: &mut [f64], quantile: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    let at = ((quantile * values.len() as f64) as usize).min(last);
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trained(x: &[f64], y: &[f64], quantile: f64) -> Boosted {
        let columns = Columns::of(x.len(), 1, |row, _| x[row]);
        Boosted::train(&columns, y, quantile, Boosting::default())
    }

    /// Noise whose width grows with `x`: 0 to 10 at 0, 0 to 110 at 1.
    fn widening(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let point = |_| {
            let x = random.share();
            (x, (10.0 + 100.0 * x) * random.share())
        };
        (0..n).map(point).unzip()
    }

    #[test]
    fn a_quantile_is_that_of_each_place() {
        let (x, y) = widening(8000, 1);
        for quantile in [0.1, 0.5, 0.9] {
            let model = trained(&x, &y, quantile);
            for at in [0.25, 0.5, 0.75] {
                let wanted = quantile * (10.0 + 100.0 * at);
                let found = model.value(|_| at);
                assert!(
                    (found - wanted).abs() < 0.2 * wanted + 2.0,
                    "{quantile} at {at}: {found}"
                );
            }
        }
    }

    #[test]
    fn so_many_held_out_rows_are_below_the_quantile() {
        let (x, y) = widening(8000, 1);
        let (other, wanted) = widening(4000, 2);
        for quantile in [0.02, 0.1, 0.5] {
            let model = trained(&x, &y, quantile);
            let below = other
                .iter()
                .zip(&wanted)
                .filter(|(x, y)| **y < model.value(|_| **x))
                .count();
            let share = below as f64 / wanted.len() as f64;
            assert!(
                (share - quantile).abs() < 0.02 + 0.1 * quantile,
                "{quantile}: {share}"
            );
        }
    }

    #[test]
    fn groups_are_distinguished_where_many_rows_have_the_lowest_value() {
        let x: Vec<f64> = (0..300).map(|row| f64::from(row % 3)).collect();
        let y: Vec<f64> = x.iter().map(|x| [0.0, 0.6, 0.85][*x as usize]).collect();
        let model = trained(&x, &y, 0.02);
        for (at, wanted) in [(0.0, 0.0), (1.0, 0.6), (2.0, 0.85)] {
            assert!((model.value(|_| at) - wanted).abs() < 0.01, "{at}");
        }
    }

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let (x, y) = widening(100, 1);
        let model = trained(&x, &y, 0.25);
        let text = serde_json::to_string(&model).unwrap();
        let read: Boosted = serde_json::from_str(&text).unwrap();
        assert!((read.value(|_| 0.4) - model.value(|_| 0.4)).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn a_quantile_of_values_has_no_more_than_its_share_below(
            values in prop::collection::vec(-100.0..100.0f64, 1..200), quantile in 0.0..1.0f64,
        ) {
            let found = low_quantile(&mut values.clone(), quantile);
            let below = values.iter().filter(|value| **value < found).count() as f64;
            prop_assert!(below <= quantile * values.len() as f64);
            let up_to = values.iter().filter(|value| **value <= found).count() as f64;
            prop_assert!(up_to >= quantile * values.len() as f64);
        }
    }
}
