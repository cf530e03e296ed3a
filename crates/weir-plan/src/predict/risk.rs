//! How far predictions are turned down so that errors stay below a target on rows that were not seen.
//!
//! Conformal risk control (Angelopoulos et al., ICLR 2024): among settings that are ordered so that a stricter one makes no error
//! which a looser one does not make, take the loosest with (errors + 1) / (rows + 1) at most the target, on rows that trained nothing. If new rows are
//! drawn as these were, the expected share of errors is at most the target.

/// Whether this many errors in this many rows leave the target believable.
pub fn holds(errors: usize, rows: usize, target: f64) -> bool {
    (errors + 1) as f64 <= target * (rows + 1) as f64
}

/// The least score from which on rows are marked, so that marked rows which are errors stay below a target share of all
/// rows. Infinite where none may be.
pub fn threshold(scored: &[(f64, bool)], target: f64) -> f64 {
    lowest(scored, |errors| holds(errors, scored.len(), target))
}

/// The same, where the errors among these rows themselves may be the target: what could be marked in hindsight.
pub fn in_hindsight(scored: &[(f64, bool)], target: f64) -> f64 {
    lowest(scored, |errors| {
        errors as f64 <= target * scored.len() as f64
    })
}

/// The lowest score of which all rows at or above it have an admissible number of errors.
fn lowest(scored: &[(f64, bool)], may: impl Fn(usize) -> bool) -> f64 {
    let mut order: Vec<&(f64, bool)> = scored.iter().collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut errors, mut lowest) = (0, f64::INFINITY);
    for (at, (score, error)) in order.iter().enumerate() {
        errors += usize::from(*error);
        // Rows of one score are marked together.
        let last = order.get(at + 1).is_none_or(|next| next.0 < *score);
        match (last, may(errors)) {
            (true, true) => lowest = *score,
            (true, false) => break,
            (false, _) => {}
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_of_one_score_are_marked_together() {
        let scored = [(0.9, false), (0.5, false), (0.5, true), (0.1, false)];
        assert_eq!(in_hindsight(&scored, 0.0), 0.9);
        assert_eq!(in_hindsight(&scored, 0.25), 0.1);
        // One error in four rows can be chance: (1 + 1) / (4 + 1).
        assert_eq!(threshold(&scored, 0.25), 0.9);
        assert_eq!(threshold(&scored, 0.4), 0.1);
        assert_eq!(threshold(&[], 0.5), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn a_looser_target_marks_no_less_and_the_errors_are_within_it(
            scored in prop::collection::vec((0.0..1.0f64, any::<bool>()), 0..100), a in 0.0..1.0f64, b in 0.0..1.0f64,
        ) {
            let (strict, loose) = (a.min(b), a.max(b));
            prop_assert!(threshold(&scored, loose) <= threshold(&scored, strict));
            prop_assert!(in_hindsight(&scored, strict) <= threshold(&scored, strict));
            let from = threshold(&scored, strict);
            let errors = scored.iter().filter(|(score, error)| *score >= from && *error).count();
            prop_assert!(from.is_infinite() || holds(errors, scored.len(), strict));
        }
    }
}
