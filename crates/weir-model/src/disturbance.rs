//! What else ran while a machine was measured, as the warnings of its run say it.

use crate::number::percentage;

const AT_FIRST: &str = "the machine was disturbed at first: ";
const THREAD: &str = "the thread on CPU ";

/// Work of others before the first figure: `other programs use 40 % of its processors`.
pub fn at_first(what: &str) -> String {
    format!("{AT_FIRST}{what}")
}

/// A thread that waited for its processor, for a share of the time.
pub fn waited(cpu: u32, share: f64) -> String {
    format!(
        "{THREAD}{cpu} waited for its processor {:.0} % of the time: another program ran there, or the limit of its control \
         group was reached (cpu.max)",
        share * 100.0
    )
}

/// The worst disturbance among the warnings of a run.
pub fn worst(warnings: &[String]) -> Option<&str> {
    let is_one = |text: &&String| text.starts_with(AT_FIRST) || text.starts_with(THREAD);
    let worst =
        (warnings.iter().filter(is_one)).max_by(|a, b| percentage(a).total_cmp(&percentage(b)))?;
    Some(worst.strip_prefix(AT_FIRST).unwrap_or(worst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_disturbance_has_the_largest_share() {
        let warnings = [
            at_first("other programs use 40 % of its processors"),
            waited(3, 0.31),
            waited(1, 0.62),
            "90 % of something else".to_owned(),
        ];
        assert_eq!(worst(&warnings), Some(warnings[2].as_str()));
        assert_eq!(
            worst(&warnings[..2]),
            Some("other programs use 40 % of its processors")
        );
        assert_eq!(worst(&warnings[3..]), None);
    }
}
