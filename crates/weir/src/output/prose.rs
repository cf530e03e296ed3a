//! Sentences that fit the terminal.

use std::borrow::Cow;
use std::sync::OnceLock;

use unicode_width::UnicodeWidthStr;

/// The widest line on standard output where it is no terminal, in columns.
pub const WIDTH: usize = 80;

/// Units that stay on the line of their number.
const UNITS: [&str; 15] = [
    "%", "ns", "us", "µs", "ms", "s", "min", "B", "KiB", "MiB", "GiB", "TiB", "MB/s", "GB/s", "GHz",
];

/// The widest line that tables and sentences have: the terminal's width between 60 and 200 columns.
pub fn width() -> usize {
    static WIDE: OnceLock<usize> = OnceLock::new();
    *WIDE.get_or_init(|| {
        let terminal = console::Term::stdout();
        let columns = (terminal.is_term().then(|| terminal.size_checked())).flatten();
        columns.map_or(WIDTH, |(_, columns)| usize::from(columns).clamp(60, 200))
    })
}

/// Whether the locale's characters are UTF-8 (`LC_ALL`, `LC_CTYPE`, `LANG`; the first that is set decides).
pub fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var);
    let locale = set.into_iter().flatten().find(|locale| !locale.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Text in ASCII alone, for terminals whose locale is not UTF-8.
pub fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        '─' | '–' | '—' => "-".into(),
        '±' => "+-".into(),
        '·' => "-".into(),
        '×' => "x".into(),
        '…' => "...".into(),
        '’' | '‘' => "'".into(),
        'µ' => "u".into(),
        '≤' => "<=".into(),
        '≥' => ">=".into(),
        _ => "?".into(),
    };
    text.chars().map(plain).collect()
}

/// Breaks text at spaces so that no line is wider than [`width`]; lines after the first are
/// indented. Words that are wider than a line are broken anywhere.
pub fn wrap(text: &str, first: &str, indent: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words(text) {
        let gap = usize::from(!empty);
        if !empty && line.width() + gap + word.width() > width() {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        for c in word.chars() {
            let mut utf8 = [0; 4];
            let c = c.encode_utf8(&mut utf8);
            if line.width() + c.width() > width() {
                lines.push(std::mem::replace(&mut line, indent.to_owned()));
            }
            line.push_str(c);
        }
        empty = false;
    }
    lines.push(line);
    let mut all = lines.join("\n");
    all.push('\n');
    all
}

/// Its words; a number and its unit are one.
fn words(text: &str) -> Vec<Cow<'_, str>> {
    let mut all: Vec<Cow<'_, str>> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', ';', '.', ':', ')']);
        match all.last_mut() {
            Some(last) if last.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit) => {
                *last = format!("{last} {word}").into();
            }
            _ => all.push(word.into()),
        }
    }
    all
}

/// Sentences that differ in their numbers alone, such as one warning of many figures: of each kind the one with the
/// largest percentage, with how many more there are.
pub fn alike<'a>(sentences: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    for sentence in sentences {
        let shape = sentence.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        match kinds.iter_mut().find(|(known, ..)| *known == shape) {
            Some((_, worst, more)) => {
                *more += 1;
                if percentage(sentence) > percentage(worst) {
                    *worst = sentence;
                }
            }
            None => kinds.push((shape, sentence, 0)),
        }
    }
    let sentences = kinds.into_iter().map(|(_, worst, more)| match more {
        0 => worst.to_owned(),
        more => format!("{worst} (and {more} more like it)"),
    });
    sentences.collect()
}

/// The largest percentage in a sentence, whatever its sign; zero if there is none.
fn percentage(sentence: &str) -> f64 {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let numbers = words.windows(2).filter(|pair| pair[1].starts_with('%'));
    let numbers = numbers.map(|pair| pair[0].trim_start_matches(['(', '+', '-', '±']));
    numbers
        .filter_map(|number| number.parse().ok())
        .fold(0.0, f64::max)
}

/// A word as a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn later_lines_are_indented() {
        let text = wrap(&"word ".repeat(20), "- ", "  ");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"));
    }

    #[test]
    fn a_number_and_its_unit_are_on_one_line() {
        for before in 60..width() {
            let text = wrap(
                &format!("{} 28.0 %, then 3 GB/s.", "a".repeat(before)),
                "",
                "  ",
            );
            let whole = |line: &str| line.contains("28.0 %,") || !line.contains("28.0");
            assert!(text.lines().all(whole), "{text}");
            assert!(text.contains("3 GB/s."), "{text}");
        }
    }

    #[test]
    fn warnings_that_differ_in_numbers_alone_are_printed_once() {
        let kept = alike([
            "CPU 0 waited 8.5 % of the time",
            "no memory",
            "CPU 1 waited 94 % of the time",
        ]);
        assert_eq!(
            kept,
            [
                "CPU 1 waited 94 % of the time (and 1 more like it)",
                "no memory"
            ]
        );
        assert!(alike([]).is_empty());
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(text in ".{0,400}") {
            for line in wrap(&text, "- ", "  ").lines() {
                prop_assert!(line.width() <= width(), "{line:?}");
            }
        }

        #[test]
        fn no_word_is_lost(words in proptest::collection::vec("[a-z]{1,30}", 0..40)) {
            let text = wrap(&words.join(" "), "", "");
            prop_assert_eq!(text.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
