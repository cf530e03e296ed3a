use super::*;
use proptest::prelude::*;

fn mean_tree(x: &[f64], y: &[f64], growth: Growth) -> Tree {
    let columns = Columns::of(x.len(), 1, |row, _| x[row]);
    let mut rows: Vec<u32> = (0..x.len() as u32).collect();
    grow(
        &columns,
        &mut rows,
        y,
        growth,
        &mut Random::new(1),
        &mut |rows| rows.iter().map(|row| y[*row as usize]).sum::<f64>() / rows.len() as f64,
    )
}

const WHOLE: Growth = Growth {
    depth: 32,
    least: 1,
    tried: 1,
};

#[test]
fn a_step_is_cut_halfway_between_its_neighbours() {
    let tree = mean_tree(&[1.0, 2.0, 6.0, 7.0], &[0.0, 0.0, 1.0, 1.0], WHOLE);
    assert_eq!(tree.nodes.len(), 3);
    assert!(matches!(
        tree.nodes[0],
        Node::Split {
            at: 4.0,
            gain: 1.0,
            ..
        }
    ));
    assert_eq!((tree.value(|_| 4.0), tree.value(|_| 4.1)), (0.0, 1.0));
}

#[test]
fn more_values_than_bins_fill_bins_evenly() {
    let columns = Columns::of(10_000, 1, |row, _| (row as f64).sqrt());
    let mut counts = [0; BINS];
    columns.bins[0]
        .iter()
        .for_each(|bin| counts[usize::from(*bin)] += 1);
    assert!(
        counts.iter().all(|count| (35..=45).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_tree_is_read_as_it_was_written() {
    let tree = mean_tree(&[1.0, 2.0, 6.0, 7.5], &[0.0, 3.0, 1.0, 1.5], WHOLE);
    let text = serde_json::to_string(&tree).unwrap();
    assert!(text.contains("\"split\""), "{text}");
    assert_eq!(serde_json::from_str::<Tree>(&text).unwrap(), tree);
}

#[test]
fn a_damaged_tree_ends_in_an_answer() {
    let split = |low, high| Node::Split {
        feature: 0,
        at: 0.0,
        gain: 1.0,
        low,
        high,
    };
    for nodes in [vec![], vec![split(0, 0)], vec![split(7, 9)]] {
        assert_eq!(Tree { nodes }.value(|_| 1.0), 0.0);
    }
}

proptest! {
    #[test]
    fn a_whole_tree_knows_the_mean_of_every_value_and_a_stump_keeps_its_leaves(
        points in prop::collection::vec((0..20i32, -5..5i32), 1..300), least in 1..40usize,
    ) {
        let (x, y): (Vec<f64>, Vec<f64>) =
            points.iter().map(|(x, y)| (f64::from(*x), f64::from(*y))).unzip();
        let tree = mean_tree(&x, &y, WHOLE);
        for at in 0..x.len() {
            let same: Vec<f64> = (0..x.len()).filter(|i| x[*i] == x[at]).map(|i| y[i]).collect();
            let mean = same.iter().sum::<f64>() / same.len() as f64;
            // Neighbours with one mean may share a leaf.
            prop_assert!((tree.value(|_| x[at]) - mean).abs() < 1e-2);
        }
        let mut leaves = Vec::new();
        let columns = Columns::of(x.len(), 1, |row, _| x[row]);
        let mut rows: Vec<u32> = (0..x.len() as u32).collect();
        let growth = Growth { least, ..WHOLE };
        grow(&columns, &mut rows, &y, growth, &mut Random::new(1), &mut |rows| {
            leaves.push(rows.len());
            0.0
        });
        prop_assert_eq!(leaves.iter().sum::<usize>(), x.len());
        prop_assert!(leaves.len() == 1 || leaves.iter().all(|leaf| *leaf >= least));
    }
}
