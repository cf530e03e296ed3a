//! Linear least squares of few unknowns, by Householder's reflections.

/// Coefficients that bring `rows` times them closest to `wanted`; `None` if the rows do not determine
/// them.
pub(crate) fn solve<const N: usize>(rows: &[[f64; N]], wanted: &[f64]) -> Option<[f64; N]> {
    if rows.len() < N || rows.len() != wanted.len() {
        return None;
    }
    let mut rows = rows.to_vec();
    let mut wanted = wanted.to_vec();
    let scale = rows
        .iter()
        .flatten()
        .fold(0.0_f64, |most, x| most.max(x.abs()));
    for column in 0..N {
        reflect(&mut rows, &mut wanted, column);
        // A column that the ones before it explain leaves nothing on the diagonal.
        let diagonal = rows[column][column].abs();
        if diagonal.is_nan() || diagonal <= scale * 1e-12 {
            return None;
        }
    }
    let mut found = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|c| rows[row][c] * found[c]).sum();
        found[row] = (wanted[row] - known) / rows[row][row];
    }
    found.iter().all(|x| x.is_finite()).then_some(found)
}

/// Takes a column's part below the diagonal to zero, by a reflection that is applied to everything.
fn reflect<const N: usize>(rows: &mut [[f64; N]], wanted: &mut [f64], column: usize) {
    let norm = rows[column..]
        .iter()
        .map(|row| row[column] * row[column])
        .sum::<f64>()
        .sqrt();
    if norm == 0.0 {
        return;
    }
    let mut normal: Vec<f64> = rows[column..].iter().map(|row| row[column]).collect();
    normal[0] += norm.copysign(normal[0]);
    let length: f64 = normal.iter().map(|x| x * x).sum();
    let factor = |dot: f64| 2.0 * dot / length;
    for c in column..N {
        let dot: f64 = (normal.iter().zip(&rows[column..]))
            .map(|(n, row)| n * row[c])
            .sum();
        for (n, row) in normal.iter().zip(&mut rows[column..]) {
            row[c] -= factor(dot) * n;
        }
    }
    let dot: f64 = normal
        .iter()
        .zip(&wanted[column..])
        .map(|(n, w)| n * w)
        .sum();
    for (n, w) in normal.iter().zip(&mut wanted[column..]) {
        *w -= factor(dot) * n;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_mixed_is_found(
            truth in prop::array::uniform3(-5.0..5.0_f64),
            rows in prop::collection::vec(prop::array::uniform3(-1.0..1.0_f64), 12..30),
        ) {
            let wanted: Vec<f64> = (rows.iter())
                .map(|row| row.iter().zip(&truth).map(|(x, t)| x * t).sum())
                .collect();
            let found = solve(&rows, &wanted);
            prop_assume!(found.is_some());
            for (found, truth) in found.unwrap().iter().zip(&truth) {
                prop_assert!((found - truth).abs() < 1e-6, "{found} is not {truth}");
            }
        }

        /// What is left over is at right angles to every column; that is what least squares means.
        #[test]
        fn residuals_are_orthogonal_to_the_columns(
            rows in prop::collection::vec((prop::array::uniform2(-1.0..1.0_f64), -1.0..1.0_f64), 5..20),
        ) {
            let (rows, wanted): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
            let Some(found) = solve(&rows, &wanted) else { return Ok(()) };
            for column in 0..2 {
                let dot: f64 = (rows.iter().zip(&wanted))
                    .map(|(row, w)| row[column] * (w - row[0] * found[0] - row[1] * found[1]))
                    .sum();
                prop_assert!(dot.abs() < 1e-8, "{dot}");
            }
        }
    }

    #[test]
    fn columns_that_say_the_same_determine_nothing() {
        let rows = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]];
        assert_eq!(solve(&rows, &[1.0, 2.0, 3.0]), None);
        assert_eq!(solve::<2>(&[[1.0, 0.0]], &[1.0]), None);
        assert_eq!(solve(&[[f64::NAN], [1.0]], &[1.0, 2.0]), None);
        // A column that is on the diagonal already, of either sign.
        for sign in [1.0, -1.0] {
            assert_eq!(solve(&[[sign], [0.0]], &[2.0, 0.0]), Some([2.0 * sign]));
        }
    }
}
