//! The output of a process: text, with JSON documents in it, each passed on as it comes.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

/// The most bytes that are kept of the text, and of one line.
const MOST_OUTPUT: u64 = 1 << 20;

/// One pipe, which a thread of its own reads to the end, so that the process never waits for a full pipe.
pub(super) struct ProcessOutput {
    words: JoinHandle<String>,
    documents: Receiver<String>,
}

impl ProcessOutput {
    /// Reads until the pipe is closed.
    pub fn on(pipe: Option<impl Read + Send + 'static>) -> Self {
        let (tell, documents) = mpsc::channel();
        let words = std::thread::spawn(move || {
            let mut sorter = Sorter::default();
            let Some(pipe) = pipe else {
                return String::new();
            };
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            loop {
                line.clear();
                match pipe.by_ref().take(MOST_OUTPUT).read_until(b'\n', &mut line) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    // A broken pipe has no more output.
                    _ => return sorter.words,
                }
                if let Some(document) = sorter.take(&String::from_utf8_lossy(&line)) {
                    // The receiver has gone; the rest is read all the same.
                    let _ = tell.send(document);
                }
            }
        });
        Self { words, documents }
    }

    /// Drops the documents that came until now.
    pub fn forget(&self) {
        while self.documents.try_recv().is_ok() {}
    }

    /// The next document, if one comes in time.
    pub fn next(&self, patience: Duration) -> Option<String> {
        self.documents.recv_timeout(patience).ok()
    }

    /// Everything to the end of the pipe: the text, and the last document.
    pub fn finish(self) -> (String, Option<String>) {
        let words = self.words.join().unwrap_or_default();
        (words, self.documents.try_iter().last())
    }
}

/// Separates documents from text, line by line: a document begins with a line that begins with `{`, and ends
/// with a line `}`, or is one line.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    words: String,
    open: Option<String>,
}

impl Sorter {
    /// Takes a line, and returns the document that ends with it.
    pub fn take(&mut self, line: &str) -> Option<String> {
        let end = line.trim_end();
        let whole = match &mut self.open {
            Some(open) => {
                open.push_str(line);
                end == "}" || open.len() as u64 > MOST_OUTPUT
            }
            None if line.starts_with('{') => {
                self.open = Some(line.to_owned());
                end.ends_with('}')
            }
            None => {
                if self.words.len() as u64 + line.len() as u64 <= MOST_OUTPUT {
                    self.words.push_str(line);
                }
                false
            }
        };
        whole.then(|| self.open.take()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sort(text: &str) -> (String, Vec<String>) {
        let mut sorter = Sorter::default();
        let lines = text.split_inclusive('\n');
        let documents = lines.filter_map(|line| sorter.take(line)).collect();
        (sorter.words, documents)
    }

    #[test]
    fn documents_are_distinguished_from_words() {
        let text =
            "fio: hello\n{\n  \"a\" : {\n    \"b\" : 1\n  }\n}\n\nbye\n{\"c\": 2}\n{\n \"cut\"\n";
        let (words, documents) = sort(text);
        assert_eq!(words, "fio: hello\n\nbye\n");
        let whole = ["{\n  \"a\" : {\n    \"b\" : 1\n  }\n}\n", "{\"c\": 2}\n"];
        assert_eq!(documents, whole);
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let long = format!("{}\n{{\n}}\n", "x".repeat(3 << 20));
        let said = ProcessOutput::on(Some(io::Cursor::new(long)));
        assert_eq!(
            said.next(Duration::from_secs(60)).as_deref(),
            Some("{\n}\n")
        );
        let (words, last) = said.finish();
        assert!(words.len() as u64 <= MOST_OUTPUT && last.is_none());
    }

    proptest! {
        #[test]
        fn every_line_is_a_word_or_in_a_document_or_cut(text in "(?s)([{}a\" \n]|.){0,80}") {
            let (words, documents) = sort(&text);
            let kept: usize = words.len() + documents.iter().map(String::len).sum::<usize>();
            prop_assert!(kept <= text.len());
            if !text.contains('{') {
                prop_assert_eq!(words, text);
            }
        }
    }
}
