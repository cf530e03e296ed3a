//! The main effect of each axis on a figure.
//!
//! The figure is fitted as a mean and a term for each value of each axis, by turns over the axes (backfitting, which is least
//! squares for this model). On a full grid the terms are the differences of plain means. The effect of an axis is the distance
//! from its lowest term to its highest.

/// Turns over all axes; on a full grid the first is exact.
const TURNS: usize = 100;

/// The terms of each value of each axis. `sizes` has the number of values of each axis, and each row the values of a design.
///
/// A value that no design has is `None`.
pub fn terms(sizes: &[usize], rows: &[(&[usize], f64)]) -> Vec<Vec<Option<f64>>> {
    let count = rows.len() as f64;
    let mean = rows.iter().map(|(_, figure)| figure).sum::<f64>() / count.max(1.0);
    let mut terms: Vec<Vec<f64>> = sizes.iter().map(|&size| vec![0.0; size]).collect();
    let mut left: Vec<f64> = rows.iter().map(|(_, figure)| figure - mean).collect();
    let mut met: Vec<Vec<f64>> = sizes.iter().map(|&size| vec![0.0; size]).collect();
    for (values, _) in rows {
        for (axis, &value) in values.iter().enumerate() {
            met[axis][value] += 1.0;
        }
    }
    for _ in 0..TURNS {
        let mut moved: f64 = 0.0;
        for axis in 0..sizes.len() {
            let mut sums = vec![0.0; sizes[axis]];
            for ((values, _), left) in rows.iter().zip(&left) {
                sums[values[axis]] += left;
            }
            for (value, sum) in sums.iter_mut().enumerate() {
                *sum /= met[axis][value].max(1.0);
                terms[axis][value] += *sum;
                moved = moved.max(sum.abs());
            }
            for ((values, _), left) in rows.iter().zip(&mut left) {
                *left -= sums[values[axis]];
            }
        }
        if moved <= 1e-9 * mean.abs().max(f64::MIN_POSITIVE) {
            break;
        }
    }
    let known = |(axis, own): (usize, Vec<f64>)| {
        let own = own.into_iter().enumerate();
        own.map(|(value, term)| (met[axis][value] > 0.0).then_some(term))
            .collect()
    };
    terms.into_iter().enumerate().map(known).collect()
}

/// The places of the lowest and of the highest term, and the distance between them.
pub fn range(terms: &[Option<f64>]) -> Option<(usize, usize, f64)> {
    let known = || {
        terms
            .iter()
            .enumerate()
            .filter_map(|(at, term)| Some((at, (*term)?)))
    };
    let low = known().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let high = known().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((low.0, high.0, high.1 - low.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[usize]) -> f64 {
        10.0 + 3.0 * values[0] as f64 - 7.0 * values[1] as f64
            + if values[2] == 1 { 5.0 } else { 0.0 }
    }

    fn grid() -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for a in 0..4 {
            for b in 0..3 {
                for c in 0..2 {
                    all.push(vec![a, b, c]);
                }
            }
        }
        all
    }

    fn ranges(rows: &[Vec<usize>], figure: impl Fn(&[usize]) -> f64) -> Vec<f64> {
        let rows: Vec<(&[usize], f64)> = rows
            .iter()
            .map(|row| (row.as_slice(), figure(row)))
            .collect();
        let terms = terms(&[4, 3, 2], &rows);
        terms
            .iter()
            .map(|own| range(own).map_or(0.0, |(_, _, far)| far))
            .collect()
    }

    #[test]
    fn a_full_grid_gives_ranges_of_means() {
        let product = |values: &[usize]| (1 + values[0]) as f64 * (1 + values[1]) as f64;
        let of_means = |axis: usize, size: usize| {
            let mean = |value| {
                let own: Vec<f64> = grid()
                    .iter()
                    .filter(|row| row[axis] == value)
                    .map(|row| product(row))
                    .collect();
                own.iter().sum::<f64>() / own.len() as f64
            };
            (0..size).map(mean).fold(f64::MIN, f64::max)
                - (0..size).map(mean).fold(f64::MAX, f64::min)
        };
        let found = ranges(&grid(), product);
        for (axis, size) in [(0, 4), (1, 3), (2, 2)] {
            assert!(
                (found[axis] - of_means(axis, size)).abs() < 1e-9,
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_sample_gives_the_terms_of_a_sum() {
        // An unbalanced sample, in which plain means would be wrong.
        let sample: Vec<Vec<usize>> = grid()
            .into_iter()
            .filter(|row| (row[0] + row[1]) % 3 != 1 || row[2] == 0)
            .collect();
        for (found, expected) in ranges(&sample, figure).into_iter().zip([9.0, 14.0, 5.0]) {
            assert!(
                (found - expected).abs() < 1e-3,
                "{found} and not {expected}"
            );
        }
    }

    #[test]
    fn values_that_no_design_has_have_no_term() {
        let rows: Vec<(&[usize], f64)> = vec![(&[0], 1.0), (&[2], 5.0)];
        let found = terms(&[3], &rows);
        assert_eq!(found[0][1], None);
        assert_eq!(
            range(&found[0]).map(|(low, high, _)| (low, high)),
            Some((0, 2))
        );
        assert_eq!(range(&[]), None);
    }
}
