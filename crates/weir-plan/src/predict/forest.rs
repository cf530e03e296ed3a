//! A random forest (Breiman, Machine Learning 45, 2001), with the usual parameters of scikit-learn, which Pond takes: trees
//! that are grown to the end on samples drawn with replacement, the root of the number of columns tried for each split.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tree::{Columns, Growth, Tree, grow};
use weir_model::random::Random;

/// Deeper than trees of any population grow; it bounds the depth of a recursion.
const DEPTH: u32 = 64;

/// Trees that vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forest {
    /// The trees.
    pub trees: Vec<Tree>,
}

/// A forest, and what it says of the rows that it was grown from.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// The forest.
    pub forest: Forest,
    /// The votes for each row of the trees whose sample does not have it; 0 where every sample has.
    pub out_of_bag: Vec<f64>,
}

impl Forest {
    /// Grows trees for labels 0 and 1. `value` has the columns of a row, as they were when the columns were made.
    pub fn grow(
        columns: &Columns,
        labels: &[f64],
        trees: u32,
        random: &mut Random,
        value: impl Fn(usize, usize) -> f64,
    ) -> Grown {
        let rows = columns.rows();
        let growth = Growth {
            depth: DEPTH,
            least: 1,
            tried: ((columns.columns() as f64).sqrt() as usize).max(1),
        };
        let mut forest = Self { trees: Vec::new() };
        let (mut votes, mut voters) = (vec![0.0; rows], vec![0u32; rows]);
        for _ in 0..trees {
            let draw = |_| ((random.share() * rows as f64) as usize).min(rows.max(1) - 1) as u32;
            let mut sample: Vec<u32> = (0..rows).map(draw).collect();
            let mut seen = vec![false; rows];
            sample.iter().for_each(|&row| seen[row as usize] = true);
            let tree = grow(columns, &mut sample, labels, growth, random, &mut |rows| {
                let sum: f64 = rows.iter().map(|&row| labels[row as usize]).sum();
                sum / rows.len().max(1) as f64
            });
            for row in (0..rows).filter(|&row| !seen[row]) {
                votes[row] += tree.value(|column| value(row, column));
                voters[row] += 1;
            }
            forest.trees.push(tree);
        }
        let share = |(votes, voters): (f64, u32)| votes / f64::from(voters.max(1));
        Grown {
            forest,
            out_of_bag: votes.into_iter().zip(voters).map(share).collect(),
        }
    }

    /// Share of the trees that vote for a row.
    pub fn votes(&self, value: impl Fn(usize) -> f64) -> f64 {
        let sum: f64 = self.trees.iter().map(|tree| tree.value(&value)).sum();
        sum / self.trees.len().max(1) as f64
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of noise, of which the first two columns say the label together and none alone.
    fn rows(n: usize, seed: u64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut random = Random::new(seed);
        let rows: Vec<Vec<f64>> = (0..n)
            .map(|_| (0..6).map(|_| random.share()).collect())
            .collect();
        let label = |row: &Vec<f64>| f64::from(u8::from((row[0] > 0.5) == (row[1] > 0.5)));
        let labels = rows.iter().map(label).collect();
        (rows, labels)
    }

    fn grown(rows: &[Vec<f64>], labels: &[f64], seed: u64) -> Grown {
        let columns = Columns::of(rows.len(), rows[0].len(), |row, column| rows[row][column]);
        let random = &mut Random::new(seed);
        Forest::grow(&columns, labels, 100, random, |row, column| {
            rows[row][column]
        })
    }

    fn right(votes: &[f64], labels: &[f64]) -> f64 {
        let pairs = votes.iter().zip(labels);
        pairs
            .filter(|(vote, label)| (**vote > 0.5) == (**label > 0.5))
            .count() as f64
            / labels.len() as f64
    }

    #[test]
    fn a_forest_learns_what_no_column_says_alone() {
        let (train, labels) = rows(600, 1);
        let grown = grown(&train, &labels, 7);
        let (test, wanted) = rows(400, 2);
        let votes: Vec<f64> = test
            .iter()
            .map(|row| grown.forest.votes(|c| row[c]))
            .collect();
        assert!(right(&votes, &wanted) > 0.9, "{}", right(&votes, &wanted));
        assert!(right(&grown.out_of_bag, &labels) > 0.9);
        let gains = grown.forest.shares_of_gain(6);
        assert!(gains[0] + gains[1] > 0.6, "{gains:?}");
    }

    #[test]
    fn labels_that_nothing_says_are_not_learned_and_votes_out_of_bag_know_it() {
        let (train, _) = rows(600, 1);
        let mut random = Random::new(9);
        let labels: Vec<f64> = (0..600)
            .map(|_| f64::from(u8::from(random.share() < 0.5)))
            .collect();
        let grown = grown(&train, &labels, 7);
        assert!((right(&grown.out_of_bag, &labels) - 0.5).abs() < 0.1);
        // The trees themselves know every row that they were grown from.
        let votes: Vec<f64> = train
            .iter()
            .map(|row| grown.forest.votes(|c| row[c]))
            .collect();
        assert!(right(&votes, &labels) > 0.95);
    }

    #[test]
    fn a_seed_gives_one_forest_and_another_seed_another() {
        let (train, labels) = rows(80, 1);
        assert_eq!(grown(&train, &labels, 3), grown(&train, &labels, 3));
        assert_ne!(grown(&train, &labels, 3), grown(&train, &labels, 4));
    }
}
