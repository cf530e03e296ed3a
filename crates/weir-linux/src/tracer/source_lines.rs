//! Source lines of instructions, by `addr2line` of binutils.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Source lines of the files that a program consists of. Without `addr2line`, or where a file has neither lines nor symbols, an
/// instruction is named after its place in the file.
#[derive(Debug, Default)]
pub struct SourceLines {
    modules: HashMap<String, Module>,
    known: HashMap<String, String>,
}

/// A running `addr2line`, and the segments of its file: offset, length, address.
#[derive(Debug)]
struct Module {
    tool: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    segments: Vec<(u64, u64, u64)>,
    /// Whether it has all its symbols: where there are only those for other files, the nearest one is often of another function.
    symbols: bool,
}

/// What is known of an instruction.
struct Found {
    symbol: Option<String>,
    line: Option<String>,
}

impl SourceLines {
    /// The name of an instruction, given as `FILE+0xOFFSET`: `list.c:10`, or its function, or the place in the file; for one in a
    /// library, the line of the call in the program that led there comes first: `list.c:10 (memcpy)`.
    pub fn of(&mut self, instruction: &str, caller: Option<&str>) -> String {
        let key = format!("{instruction}\t{}", caller.unwrap_or_default());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let (found, place) = (self.find(instruction), short(instruction));
        let text = match caller {
            None => found.line.or(found.symbol).unwrap_or(place),
            Some(caller) => {
                let from = self.find(caller).line.unwrap_or_else(|| short(caller));
                let within = found.symbol.or(found.line).unwrap_or(place);
                format!("{from} ({within})")
            }
        };
        self.known.insert(key, text.clone());
        text
    }

    fn find(&mut self, instruction: &str) -> Found {
        let nothing = Found {
            symbol: None,
            line: None,
        };
        let Some((file, offset)) = instruction.rsplit_once("+0x") else {
            return nothing;
        };
        let Ok(offset) = u64::from_str_radix(offset, 16) else {
            return nothing;
        };
        if !self.modules.contains_key(file) {
            self.modules.insert(file.to_owned(), Module::open(file));
        }
        let module = self.modules.get_mut(file);
        module
            .and_then(|module| module.ask(offset).ok())
            .unwrap_or(nothing)
    }
}

/// A place without the folder of its file.
fn short(place: &str) -> String {
    place
        .rsplit_once('/')
        .map_or(place, |(_, name)| name)
        .to_owned()
}

impl Module {
    fn open(file: &str) -> Self {
        let started = || -> Option<(Child, ChildStdin, BufReader<ChildStdout>)> {
            let mut child = Command::new("addr2line")
                .args(["-f", "-s", "-e", file])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let (input, output) = (child.stdin.take()?, child.stdout.take()?);
            Some((child, input, BufReader::new(output)))
        };
        let (segments, symbols) = parts(Path::new(file)).unwrap_or_default();
        Self {
            tool: started(),
            segments,
            symbols,
        }
    }

    fn ask(&mut self, offset: u64) -> io::Result<Found> {
        let (_, input, output) = self.tool.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let inside = |(from, length, _): &&(u64, u64, u64)| offset.wrapping_sub(*from) < *length;
        let (from, _, address) = self.segments.iter().find(inside).unwrap_or(&(0, 0, 0));
        writeln!(input, "{:#x}", offset - from + address)?;
        input.flush()?;
        let (mut symbol, mut line) = (String::new(), String::new());
        output.read_line(&mut symbol)?;
        output.read_line(&mut line)?;
        let line = line.split(" (").next().unwrap_or_default().trim();
        let known = |text: &str| !text.is_empty() && !text.contains('?');
        let line = Some(line.to_owned()).filter(|text| known(text) && !text.ends_with(":0"));
        let sure = self.symbols || line.is_some();
        Ok(Found {
            symbol: Some(symbol.trim().to_owned()).filter(|text| sure && known(text)),
            line,
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Some((mut child, input, _)) = self.tool.take() {
            drop(input);
            // It ends with its input; a zombie is all that could be left.
            let _ = child.wait();
        }
    }
}

/// Of an ELF file of 64 bits (elf(5)): the loaded segments, as offset in the file, length and address, and whether it has a table of
/// all its symbols.
#[expect(
    clippy::type_complexity,
    reason = "the segments are the field of one struct"
)]
fn parts(file: &Path) -> io::Result<(Vec<(u64, u64, u64)>, bool)> {
    const LOADED: u64 = 1;
    const SYMBOLS: u64 = 2;
    let file = File::open(file)?;
    let read = |at: u64, bytes: usize| -> io::Result<u64> {
        let mut word = [0; 8];
        file.read_exact_at(&mut word[..bytes], at)?;
        Ok(u64::from_le_bytes(word))
    };
    let headers = |table: u64, size: u64, count: u64| -> io::Result<Vec<u64>> {
        let (table, size, count) = (read(table, 8)?, read(size, 2)?, read(count, 2)?);
        Ok((0..count).map(|n| table.saturating_add(n * size)).collect())
    };
    let mut segments = Vec::new();
    for at in headers(32, 54, 56)? {
        if read(at, 4)? == LOADED {
            segments.push((read(at + 8, 8)?, read(at + 32, 8)?, read(at + 16, 8)?));
        }
    }
    let mut symbols = false;
    for at in headers(40, 58, 60)? {
        symbols |= read(at + 4, 4)? == SYMBOLS;
    }
    Ok((segments, symbols))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_that_nothing_is_known_of_is_named_after_its_place() {
        let mut lines = SourceLines::default();
        assert_eq!(lines.of("0x1234", None), "0x1234");
        assert_eq!(lines.of("/no/such/file+0x12", None), "file+0x12");
        assert_eq!(
            lines.of("/no/lib.so+0x12", Some("/no/a+0x3")),
            "a+0x3 (lib.so+0x12)"
        );
    }
}
