//! Sentences that fit the terminal.

use std::borrow::Cow;
use std::sync::OnceLock;

use unicode_width::UnicodeWidthStr;
use weir_model::number::percentage;

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
    let kinds = Spread::gather(sentences.into_iter().map(|sentence| (sentence, sentence)));
    let sentences = kinds.iter().filter_map(|kind| {
        // Of equals the first.
        let worst =
            (kind.of.iter().rev()).max_by(|a, b| f64::total_cmp(&percentage(a), &percentage(b)))?;
        Some(match kind.of.len() {
            1 => (*worst).to_owned(),
            all => format!("{worst} (and {} more like it)", all - 1),
        })
    });
    sentences.collect()
}

/// Sentences of one shape, with what each was said of: `timer 29.0–51.5 ns, subtracted`.
pub struct Spread<T> {
    /// What is between the numbers; one more than there are numbers.
    between: Vec<String>,
    /// The different numbers of each place, in the order in which they came.
    numbers: Vec<Vec<String>>,
    /// Of what they were said.
    pub of: Vec<T>,
}

impl<T> Spread<T> {
    /// Puts sentences that differ in their numbers alone together.
    pub fn gather<'a>(sentences: impl IntoIterator<Item = (&'a str, T)>) -> Vec<Self> {
        let mut kinds: Vec<Self> = Vec::new();
        for (sentence, of) in sentences {
            let (between, numbers) = apart(sentence);
            let known = kinds.iter().position(|kind| kind.between == between);
            let Some(kind) = known.and_then(|known| kinds.get_mut(known)) else {
                let numbers = numbers.into_iter().map(|number| vec![number]).collect();
                let of = vec![of];
                kinds.push(Self {
                    between,
                    numbers,
                    of,
                });
                continue;
            };
            for (seen, number) in kind.numbers.iter_mut().zip(numbers) {
                if !seen.contains(&number) {
                    seen.push(number);
                }
            }
            kind.of.push(of);
        }
        kinds
    }

    /// The sentence: up to three different numbers of a place are listed, of more the least and the largest.
    pub fn sentence(&self) -> String {
        let number = |seen: &Vec<String>| {
            let mut seen = seen.clone();
            let value = |number: &String| number.parse().unwrap_or(0.0);
            seen.sort_by(|a, b| f64::total_cmp(&value(a), &value(b)));
            match &seen[..] {
                [least, _, _, .., most] => format!("{least}–{most}"),
                few => few.join(", "),
            }
        };
        let mut all = self.between.first().cloned().unwrap_or_default();
        for (seen, after) in self.numbers.iter().zip(self.between.iter().skip(1)) {
            all += &number(seen);
            all += after;
        }
        all
    }
}

/// The numbers of a sentence, and what is before, between and behind them.
fn apart(sentence: &str) -> (Vec<String>, Vec<String>) {
    let (mut between, mut numbers) = (vec![String::new()], Vec::new());
    let mut left = sentence;
    while let Some(at) = left.find(|c: char| c.is_ascii_digit()) {
        let (before, rest) = left.split_at(at);
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let digits = number.trim_end_matches('.');
        if let Some(last) = between.last_mut() {
            *last += before;
        }
        numbers.push(digits.to_owned());
        between.push(number[digits.len()..].to_owned());
        left = rest;
    }
    if let Some(last) = between.last_mut() {
        *last += left;
    }
    (between, numbers)
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

    #[test]
    fn sentences_that_differ_in_numbers_alone_have_all_of_them() {
        let timer = [
            "timer 30 ns of 2.",
            "timer 9.5 ns of 2.",
            "on CPU 1",
            "timer 120 ns of 2.",
        ];
        let with = |more: &[&'static str]| {
            let all = timer.iter().chain(more).copied();
            let gathered = Spread::gather(all.zip(0..));
            gathered
                .iter()
                .map(|kind| (kind.sentence(), kind.of.len()))
                .collect::<Vec<_>>()
        };
        let on = ("on CPU 1".to_owned(), 1);
        let listed = ("timer 9.5, 30, 120 ns of 2.".to_owned(), 3);
        assert_eq!(with(&[]), [listed, on.clone()]);
        let range = ("timer 9.5–120 ns of 2.".to_owned(), 5);
        assert_eq!(
            with(&["timer 31 ns of 2.", "timer 30 ns of 2."]),
            [range, on]
        );
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(text in ".{0,400}") {
            for line in wrap(&text, "- ", "  ").lines() {
                prop_assert!(line.width() <= width(), "{line:?}");
            }
        }

        #[test]
        fn a_sentence_alone_is_as_it_was(text in ".{0,40}[0-9.]{0,9}.{0,9}") {
            let gathered = Spread::gather([(text.as_str(), ())]);
            prop_assert_eq!(gathered[0].sentence(), text);
        }

        #[test]
        fn no_word_is_lost(words in proptest::collection::vec("[a-z]{1,30}", 0..40)) {
            let text = wrap(&words.join(" "), "", "");
            prop_assert_eq!(text.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
