//! Reading TOML past its mistakes, so that one look at a file tells all of them.

use std::ops::Range;

use toml_edit::Document;

use crate::diagnostic::Collector;

/// A text with more broken lines than this is no TOML, and what remains of it says nothing.
const MOST_BROKEN_LINES: usize = 5;

/// A document, perhaps without some of its lines.
#[derive(Debug)]
pub struct Parsed {
    /// What could be read, with the place of every key.
    pub document: Document<String>,
    /// Whether every line could be read; where not, what seems to be missing may be there.
    pub is_whole: bool,
}

/// Parses a text. Lines that are not TOML are reported and left out.
///
/// `None` where too little can be read.
pub fn parse(text: &str, mistakes: &Collector<'_>) -> Option<Parsed> {
    let mut rest = text.to_string();
    for broken in 0..=MOST_BROKEN_LINES {
        let error = match Document::parse(rest.clone()) {
            Ok(document) => {
                let is_whole = broken == 0;
                return Some(Parsed { document, is_whole });
            }
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let line = line_around(&rest, span.start);
        if broken > 0 && rest[line.clone()].trim().is_empty() {
            // Something opened and never closed: the parser complains at the end of the text.
            return None;
        }
        let message = error.message().trim().replace('\n', "; ");
        mistakes.report(span, None, format!("this is not TOML: {message}"), None);
        // As many bytes as before, so that every other place stays where it is.
        let blank = " ".repeat(line.len());
        rest.replace_range(line, &blank);
    }
    None
}

/// The line that holds this byte, without its end.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let at = at.min(bytes.len());
    let start = bytes[..at]
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |n| n + 1);
    let end = bytes[at..]
        .iter()
        .position(|&b| b == b'\n')
        .map_or(bytes.len(), |n| at + n);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broken_line_is_told_and_the_others_are_read() {
        let text = "a = 1\nb = \"open\nc = = 3\n[d\ne = 5\n";
        let mistakes = Collector::new("x.toml", text);
        let parsed = parse(text, &mistakes).unwrap();
        assert!(!parsed.is_whole);
        assert!(parsed.document.contains_key("a") && parsed.document.contains_key("e"));
        let shown = mistakes.finish::<()>(None).unwrap_err();
        let lines: Vec<usize> = shown.shown.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    #[test]
    fn what_is_no_toml_at_all_is_given_up() {
        let text = "%PDF-1.7\n%\u{fffd}\n1 0 obj\n<< /Type >>\nendobj\nxref\ntrailer\n";
        let mistakes = Collector::new("x.toml", text);
        assert!(parse(text, &mistakes).is_none());
        let found = mistakes.finish::<()>(None).unwrap_err();
        assert!(found.shown.len() <= MOST_BROKEN_LINES + 1);
    }
}
