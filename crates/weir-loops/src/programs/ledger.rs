//! Which versions of each key a server may answer with.
//!
//! Writes of one key that are under way at the same time may be carried out in any order. So a read may see any version
//! of the last such group that is complete, or a newer one; an older version is a lost write.

use super::protocol::{Answer, names};
use super::values;

/// Versions of every key.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    /// Keys that were there at first; later ones are inserted.
    loaded: u64,
    issued: Vec<u32>,
    /// The first version of the last complete group of writes.
    oldest: Vec<u32>,
    /// The first version of the group that is under way.
    group: Vec<u32>,
    under_way: Vec<u32>,
}

impl Ledger {
    /// Every key has version 0.
    pub fn new(keys: u64) -> Self {
        let zeros = || vec![0; keys as usize];
        Self {
            loaded: keys,
            issued: zeros(),
            oldest: zeros(),
            group: zeros(),
            under_way: zeros(),
        }
    }

    /// The number of keys.
    pub fn keys(&self) -> u64 {
        self.issued.len() as u64
    }

    /// A new key, whose first write begins with version 1.
    pub fn insert(&mut self) -> u64 {
        let key = self.keys();
        for list in [&mut self.issued, &mut self.group, &mut self.under_way] {
            list.push(1);
        }
        self.oldest.push(0);
        key
    }

    /// A write begins; its version.
    pub fn write(&mut self, key: u64) -> u32 {
        let key = key as usize;
        self.issued[key] = self.issued[key].wrapping_add(1);
        if self.under_way[key] == 0 {
            self.group[key] = self.issued[key];
        }
        self.under_way[key] += 1;
        self.issued[key]
    }

    /// A write is carried out, or was given up.
    pub fn written(&mut self, key: u64) {
        let key = key as usize;
        self.under_way[key] = self.under_way[key].saturating_sub(1);
        if self.under_way[key] == 0 {
            self.oldest[key] = self.group[key];
        }
    }

    /// The oldest version that a read which begins now may see.
    pub fn oldest(&self, key: u64) -> u32 {
        self.oldest[key as usize]
    }

    /// The keys of a scan, if they are right: all that were loaded from this one on, and some that were inserted, in order.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_scan(&self, from: u64, most: usize, found: &[u8]) -> Result<Vec<u64>, String> {
        let report =
            |what: &str| format!("a scan of {most} keys from {} {what}", values::name(from));
        let mut keys: Vec<u64> = Vec::with_capacity(most);
        for name in names(found) {
            let key = values::number(name).ok_or_else(|| report("finds what is no key"))?;
            let next = keys.last().map_or(from, |last| last + 1);
            if key < next || key >= self.keys() {
                return Err(report("finds keys that are not in order"));
            }
            if key > next && next < self.loaded {
                return Err(report(&format!("lacks {}", values::name(next))));
            }
            keys.push(key);
        }
        let next = keys.last().map_or(from, |last| last + 1);
        if keys.len() > most || (keys.len() < most && next < self.loaded) {
            return Err(report(&format!("finds {}", keys.len())));
        }
        Ok(keys)
    }

    /// Whether an answer is right: of a write with its version, or of a read that may see no version before this.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &mut self,
        key: u64,
        version: u32,
        writes: bool,
        answer: Answer<'_>,
    ) -> Result<(), String> {
        let name = values::name(key);
        if writes {
            self.written(key);
        }
        match answer {
            Answer::Refused(why) => Err(format!("{name}: the server refuses: {why}")),
            Answer::Stored if writes => Ok(()),
            Answer::Value(bytes) if !writes => {
                let (of, found) = values::check(bytes).map_err(|why| format!("{name}: {why}"))?;
                let newest = self.issued[key as usize];
                if of != key {
                    Err(format!("{name} has the value of {}", values::name(of)))
                } else if found < version || found > newest {
                    Err(format!(
                        "{name} has version {found}, not one from {version} to {newest}"
                    ))
                } else {
                    Ok(())
                }
            }
            // A new key may be read before its first write is carried out.
            Answer::Nothing if !writes && version == 0 && key >= self.loaded => Ok(()),
            Answer::Nothing if !writes => Err(format!("{name} has no value")),
            _ => Err(format!("{name}: the server answers another question")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(ledger: &mut Ledger, oldest: u32, version: u32) -> bool {
        let mut value = Vec::new();
        values::make(0, version, 30, &mut value);
        ledger
            .check(0, oldest, false, Answer::Value(&value))
            .is_ok()
    }

    #[test]
    fn a_lost_write_is_seen() {
        let mut ledger = Ledger::new(1);
        let first = ledger.write(0);
        ledger.check(0, first, true, Answer::Stored).unwrap();
        let oldest = ledger.oldest(0);
        assert!(read(&mut ledger, oldest, 1));
        assert!(!read(&mut ledger, oldest, 0), "the write was lost");
        assert!(!read(&mut ledger, oldest, 2), "nobody wrote it");
        assert!(ledger.check(0, 0, false, Answer::Nothing).is_err());
    }

    #[test]
    fn a_new_key_may_lack_its_value_only_until_its_first_write_is_complete() {
        let mut ledger = Ledger::new(1);
        let key = ledger.insert();
        let before = ledger.oldest(key);
        ledger.check(key, 1, true, Answer::Stored).unwrap();
        let after = ledger.oldest(key);
        // The read was sent before the write was answered, and is answered later.
        assert!(ledger.check(key, before, false, Answer::Nothing).is_ok());
        assert!(ledger.check(key, after, false, Answer::Nothing).is_err());
    }

    #[test]
    fn a_scan_lacks_no_key_that_was_loaded() {
        let mut ledger = Ledger::new(4);
        ledger.insert();
        ledger.insert();
        let list = |keys: &[u64]| {
            let name =
                |&key: &u64| format!("${}\r\n{}\r\n", values::name(key).len(), values::name(key));
            keys.iter().map(name).collect::<String>().into_bytes()
        };
        let scan = |most, keys: &[u64]| ledger.check_scan(1, most, &list(keys));
        assert_eq!(scan(3, &[1, 2, 3]), Ok(vec![1, 2, 3]));
        assert_eq!(
            scan(9, &[1, 2, 3, 5]),
            Ok(vec![1, 2, 3, 5]),
            "4 may be under way"
        );
        for odd in [&[1, 3][..], &[2, 3], &[1, 2], &[1, 2, 2], &[1, 2, 3, 6]] {
            assert!(scan(9, odd).is_err(), "{odd:?}");
        }
        assert!(scan(2, &[1, 2, 3]).is_err());
        assert!(ledger.check_scan(1, 2, b"$3\r\nodd\r\n").is_err());
    }

    proptest! {
        /// A server that carries out each write at some time between its begin and its answer is always right.
        #[test]
        fn no_correct_server_is_called_wrong(steps in proptest::collection::vec((0_u8..3, any::<prop::sample::Index>()), 1..200)) {
            let mut ledger = Ledger::new(1);
            let (mut stored, mut pending, mut carried) = (0_u32, Vec::new(), Vec::new());
            for (what, which) in steps {
                match what {
                    0 => pending.push(ledger.write(0)),
                    1 if !pending.is_empty() => {
                        stored = pending.remove(which.index(pending.len()));
                        carried.push(stored);
                    }
                    2 if !carried.is_empty() => {
                        let version = carried.remove(which.index(carried.len()));
                        ledger.check(0, version, true, Answer::Stored).unwrap();
                    }
                    _ => {}
                }
                let oldest = ledger.oldest(0);
                prop_assert!(read(&mut ledger, oldest, stored), "{stored} from {oldest}");
            }
        }
    }
}
