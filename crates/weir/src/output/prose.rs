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
