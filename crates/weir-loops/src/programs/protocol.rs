//! The protocols of servers of keys and values: what is sent, and how answers are read.

use std::io::Write as _;

use super::values;

/// The longest line or value that is read; an answer with a longer one is none.
const LONGEST: usize = 64 << 20;
/// The longest first line of an answer.
const LONGEST_LINE: usize = 4096;

/// The most names of a list.
const MOST_KEYS: usize = 1 << 20;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// RESP 2, that of Redis.
    Resp,
    /// The text protocol of memcached.
    Text,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The value of a key.
    Value(&'a [u8]),
    /// The key has no value.
    Nothing,
    /// Names of keys, still in the form of the protocol.
    Keys(&'a [u8]),
    /// It was written.
    Stored,
    /// What the server refuses, in its words.
    Refused(&'a str),
}

impl Protocol {
    /// Asks for the value of a key.
    pub fn get(self, key: u64, out: &mut Vec<u8>) {
        let name = values::name(key);
        // Writing to a vector cannot fail.
        let _ = match self {
            Self::Resp => write!(out, "*2\r\n$3\r\nGET\r\n${}\r\n{name}\r\n", name.len()),
            Self::Text => write!(out, "get {name}\r\n"),
        };
    }

    /// Sets the value of a key.
    pub fn set(self, key: u64, version: u32, length: usize, out: &mut Vec<u8>) {
        let name = values::name(key);
        let length = length.max(values::LEAST);
        let _ = match self {
            Self::Resp => {
                let key = name.len();
                write!(out, "*3\r\n$3\r\nSET\r\n${key}\r\n{name}\r\n${length}\r\n")
            }
            Self::Text => write!(out, "set {name} 0 0 {length}\r\n"),
        };
        values::make(key, version, length, out);
        out.extend_from_slice(b"\r\n");
    }

    /// Puts a key into the sorted set of all keys, as YCSB's binding for Redis does.
    pub fn index(self, key: u64, out: &mut Vec<u8>) {
        let (name, score) = (values::name(key), key.to_string());
        let _ = write!(
            out,
            "*4\r\n$4\r\nZADD\r\n$4\r\nkeys\r\n${}\r\n{score}\r\n${}\r\n{name}\r\n",
            score.len(),
            name.len()
        );
    }

    /// Asks for this many keys in a row. Only Redis has a set of keys in order.
    pub fn scan(self, key: u64, most: usize, out: &mut Vec<u8>) {
        let (from, most) = (key.to_string(), most.to_string());
        let _ = write!(
            out,
            "*7\r\n$13\r\nZRANGEBYSCORE\r\n$4\r\nkeys\r\n${}\r\n{from}\r\n$4\r\n+inf\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n${}\r\n{most}\r\n",
            from.len(),
            most.len()
        );
    }

    /// Asks whether the server is there; any answer says so.
    pub fn hello(self) -> &'static [u8] {
        match self {
            Self::Resp => b"*1\r\n$4\r\nPING\r\n",
            Self::Text => b"version\r\n",
        }
    }

    /// Reads the first answer, with the number of its bytes; `None` if more bytes are needed.
    ///
    /// # Errors
    /// In words: the bytes are no answer.
    pub fn read(self, bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, String> {
        if self == Self::Resp && bytes.first() == Some(&b'*') {
            return keys(bytes);
        }
        self.read_one(bytes)
    }

    fn read_one(self, bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, String> {
        let Some((line, whole)) = first_line(bytes)? else {
            return Ok(None);
        };
        let answer = match (self, line.split_at_checked(1)) {
            (Self::Resp, Some(("$", "-1"))) => Answer::Nothing,
            (Self::Resp, Some(("$", length))) => return value(bytes, whole, length, b"\r\n"),
            (Self::Resp, Some(("+" | ":", _))) => Answer::Stored,
            (Self::Resp, Some(("-", why))) => Answer::Refused(why),
            (Self::Text, _) => match line.split(' ').next() {
                Some("VALUE") => {
                    let length = line.split(' ').nth(3).unwrap_or_default();
                    return value(bytes, whole, length, b"\r\nEND\r\n");
                }
                Some("END") => Answer::Nothing,
                Some("STORED" | "VERSION") => Answer::Stored,
                Some("ERROR" | "CLIENT_ERROR" | "SERVER_ERROR" | "NOT_STORED") => {
                    Answer::Refused(line)
                }
                _ => return Err(odd(bytes)),
            },
            _ => return Err(odd(bytes)),
        };
        Ok(Some((answer, whole)))
    }
}

/// A value of a length that was announced, and what follows it.
fn value<'a>(
    bytes: &'a [u8],
    from: usize,
    length: &str,
    after: &[u8],
) -> Result<Option<(Answer<'a>, usize)>, String> {
    let length = length
        .parse::<usize>()
        .ok()
        .filter(|&length| length <= LONGEST);
    let to = from + length.ok_or_else(|| odd(bytes))?;
    let end = to + after.len();
    if bytes.len() < end {
        return Ok(None);
    }
    if &bytes[to..end] != after {
        return Err(odd(&bytes[to..end]));
    }
    Ok(Some((Answer::Value(&bytes[from..to]), end)))
}

/// The first line, with the number of its bytes.
fn first_line(bytes: &[u8]) -> Result<Option<(&str, usize)>, String> {
    let end = bytes
        .windows(2)
        .take(LONGEST_LINE)
        .position(|two| two == b"\r\n");
    match end {
        None if bytes.len() > LONGEST_LINE => Err(odd(bytes)),
        None => Ok(None),
        Some(end) => {
            let line = std::str::from_utf8(&bytes[..end]).map_err(|_| odd(bytes))?;
            Ok(Some((line, end + 2)))
        }
    }
}

/// A list of names.
fn keys(bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, String> {
    let Some((line, from)) = first_line(bytes)? else {
        return Ok(None);
    };
    let count = line[1..].parse::<usize>().ok();
    let count = count.filter(|&count| count <= MOST_KEYS);
    let mut to = from;
    for _ in 0..count.ok_or_else(|| odd(bytes))? {
        match name(&bytes[to..])? {
            Some((_, length)) => to += length,
            None => return Ok(None),
        }
    }
    Ok(Some((Answer::Keys(&bytes[from..to]), to)))
}

/// The first name of a list, with the number of its bytes.
fn name(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    match Protocol::Resp.read_one(bytes)? {
        Some((Answer::Value(name), length)) => Ok(Some((name, length))),
        Some(_) => Err(odd(bytes)),
        None => Ok(None),
    }
}

/// The names of [`Answer::Keys`].
pub(super) fn names(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (name, length) = name(bytes).ok().flatten()?;
        bytes = &bytes[length..];
        Some(name)
    })
}

fn odd(bytes: &[u8]) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
    format!("the server answered {start:?}, which is no answer")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [Protocol; 2] = [Protocol::Resp, Protocol::Text];

    #[test]
    fn answers_of_both_servers_are_read() {
        let resp = |bytes| Protocol::Resp.read(bytes).unwrap();
        assert_eq!(resp(b"+OK\r\n"), Some((Answer::Stored, 5)));
        assert_eq!(resp(b"$-1\r\n"), Some((Answer::Nothing, 5)));
        assert_eq!(resp(b"$3\r\nabc\r\n+"), Some((Answer::Value(b"abc"), 9)));
        assert_eq!(resp(b"-OOM no\r\n"), Some((Answer::Refused("OOM no"), 9)));
        assert_eq!(resp(b"$3\r\nab"), None);
        assert!(Protocol::Resp.read(b"$3\r\nabcd\r\n").is_err());
        assert!(Protocol::Resp.read(b"HTTP/1.1 400\r\n").is_err());
        let list = b"*2\r\n$1\r\na\r\n$2\r\nbc\r\n";
        let Some((Answer::Keys(bytes), 19)) = resp(list) else {
            panic!("a list of two names");
        };
        assert_eq!(names(bytes).collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        assert!((0..19).all(|part| resp(&list[..part]).is_none()));
        let text = |bytes| Protocol::Text.read(bytes).unwrap();
        assert_eq!(
            text(b"VALUE user1 0 3\r\nabc\r\nEND\r\n"),
            Some((Answer::Value(b"abc"), 27))
        );
        assert_eq!(text(b"END\r\n"), Some((Answer::Nothing, 5)));
        assert_eq!(text(b"STORED\r\n"), Some((Answer::Stored, 8)));
        assert!(
            Protocol::Text
                .read(b"VALUE user1 0 99999999999\r\n")
                .is_err()
        );
    }

    proptest! {
        #[test]
        fn bytes_that_come_in_parts_give_the_same_answer(length in 24_usize..200, key: u64) {
            let mut value = Vec::new();
            values::make(key, 3, length, &mut value);
            for protocol in BOTH {
                let mut bytes = match protocol {
                    Protocol::Resp => format!("${length}\r\n"),
                    Protocol::Text => format!("VALUE {} 0 {length}\r\n", values::name(key)),
                }
                .into_bytes();
                bytes.extend(&value);
                bytes.extend_from_slice(b"\r\n");
                if protocol == Protocol::Text {
                    bytes.extend_from_slice(b"END\r\n");
                }
                for part in 0..bytes.len() {
                    prop_assert_eq!(protocol.read(&bytes[..part]), Ok(None));
                }
                prop_assert_eq!(protocol.read(&bytes), Ok(Some((Answer::Value(&value), bytes.len()))));
            }
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(prop_oneof![Just(b'$'), Just(b'*'), Just(b'\r'), Just(b'\n'), Just(b'9'), any::<u8>()], 0..60)) {
            for protocol in BOTH {
                if let Ok(Some((_, used))) = protocol.read(&bytes) {
                    prop_assert!(used <= bytes.len() && used > 0);
                }
            }
        }
    }
}
