//! Sentences that fit the terminal.

use unicode_width::UnicodeWidthStr;

/// The widest line that tables and sentences on standard output have, in columns.
pub const WIDTH: usize = 80;

/// Breaks text at spaces so that no line is wider than [`WIDTH`]; lines after the first are
/// indented. Words that are wider than a line are broken anywhere.
pub fn wrap(text: &str, first: &str, indent: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        let gap = usize::from(!empty);
        if !empty && line.width() + gap + word.width() > WIDTH {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        for c in word.chars() {
            let mut utf8 = [0; 4];
            let c = c.encode_utf8(&mut utf8);
            if line.width() + c.width() > WIDTH {
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

/// Sentences that differ in their numbers alone, such as one warning of many figures: the first of
/// each kind, with how many more there are.
pub fn alike<'a>(sentences: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    for sentence in sentences {
        let shape = sentence.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        match kinds.iter_mut().find(|(known, ..)| *known == shape) {
            Some((_, _, more)) => *more += 1,
            None => kinds.push((shape, sentence, 0)),
        }
    }
    let told = kinds.into_iter().map(|(_, first, more)| match more {
        0 => first.to_owned(),
        more => format!("{first} (and {more} more like it)"),
    });
    told.collect()
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
    fn warnings_that_differ_in_numbers_alone_are_told_once() {
        let told = alike([
            "CPU 0 ran 94 % of the time",
            "no memory",
            "CPU 1 ran 8.5 % of the time",
        ]);
        assert_eq!(
            told,
            [
                "CPU 0 ran 94 % of the time (and 1 more like it)",
                "no memory"
            ]
        );
        assert!(alike([]).is_empty());
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(text in ".{0,400}") {
            for line in wrap(&text, "- ", "  ").lines() {
                prop_assert!(line.width() <= WIDTH, "{line:?}");
            }
        }

        #[test]
        fn no_word_is_lost(words in proptest::collection::vec("[a-z]{1,30}", 0..40)) {
            let text = wrap(&words.join(" "), "", "");
            prop_assert_eq!(text.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
