//! Figures as people read them, in sentences and tables.

/// A figure to about three significant digits, never in exponents: `0.91`, `24.3`, `214`, `1250`.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        // A small negative number would otherwise print as `-0.00`.
        _ => format!("{value:.2}").replace("-0.00", "0.00"),
    }
}

/// The half-width of a figure's interval, to be written after it: ` ±0.42`; empty where it is not known.
pub fn interval(half: Option<f64>) -> String {
    half.map_or(String::new(), |half| format!(" ±{}", figure(half)))
}

/// A signed difference in percent with one decimal: `+1.3`, `-12.0`, `0.0`.
pub fn percent(value: f64) -> String {
    // A small negative number would otherwise print as `-0.0`.
    let rounded = (value * 10.0).round() / 10.0 + 0.0;
    if rounded == 0.0 {
        "0.0".into()
    } else {
        format!("{rounded:+.1}")
    }
}

/// The largest percentage in a sentence, whatever its sign; zero if there is none.
pub fn percentage(sentence: &str) -> f64 {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let numbers = words.windows(2).filter(|pair| pair[1].starts_with('%'));
    let numbers = numbers.map(|pair| pair[0].trim_start_matches(['(', '+', '-', '±']));
    numbers
        .filter_map(|number| number.parse().ok())
        .fold(0.0, f64::max)
}

/// A number of things: `1 state`, `2 states`.
pub fn count(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {one}{plural}")
}

/// A slowdown in words: `35.0 % slower`, `5.00 % faster`, `as fast` where it rounds to none.
pub fn slower(percent: f64) -> String {
    let size = figure(percent.abs());
    match percent {
        _ if percent.abs() < 0.005 => "as fast".into(),
        p if p < 0.0 => format!("{size} % faster"),
        _ => format!("{size} % slower"),
    }
}

/// A length of time: `0.4 s`, `12 s`, `3 min 20 s`.
pub fn seconds(value: f64) -> String {
    if value < 9.95 {
        format!("{value:.1} s")
    } else if value < 119.5 {
        format!("{value:.0} s")
    } else {
        let whole = value.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        let words = [0, 1, 2].map(|number| count(number, "VM"));
        assert_eq!(words, ["0 VMs", "1 VM", "2 VMs"]);
    }

    #[test]
    fn a_slowdown_has_its_direction_in_words() {
        assert_eq!(slower(35.0), "35.0 % slower");
        assert_eq!(slower(-5.0), "5.00 % faster");
        assert_eq!([slower(0.0), slower(-0.0), slower(0.004)], ["as fast"; 3]);
        assert_eq!(slower(f64::NAN), "- % slower");
    }

    #[test]
    fn figures_keep_three_digits() {
        assert_eq!(figure(0.914), "0.91");
        assert_eq!(figure(9.999), "10.0");
        assert_eq!(figure(99.96), "100");
        assert_eq!(figure(1250.4), "1250");
        assert_eq!(figure(f64::NAN), "-");
    }

    #[test]
    fn differences_carry_their_sign_but_zero_has_none() {
        assert_eq!(percent(1.26), "+1.3");
        assert_eq!(percent(-12.0), "-12.0");
        assert_eq!(percent(-0.01), "0.0");
    }

    #[test]
    fn long_times_are_in_minutes() {
        assert_eq!(seconds(0.42), "0.4 s");
        assert_eq!(seconds(59.6), "60 s");
        assert_eq!(seconds(200.0), "3 min 20 s");
    }
}
