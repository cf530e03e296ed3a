//! What an earlier run left in a pool, after its undo logs are applied.

use std::collections::BTreeMap;

use weir_model::durable::Durable;

use super::Pool;
use super::layout::{LOGS, READY};
use super::stream::{FIRST, MOST_TIMES, STEPS, after};

/// What a pool had when it was opened again.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// The durability of the run that wrote it; `None` where its arrays had not got their first values.
    pub durable: Option<Durable>,
    /// Blocks that an undo log had, which are old again.
    pub undone: u64,
    /// Blocks of the array under way that have the values before the kernel.
    pub old: u64,
    /// Blocks of all arrays that have the newest values.
    pub new: u64,
    /// Blocks that are neither as a whole.
    pub torn: u64,
}

impl Left {
    /// Whether it is what the durability promises.
    pub fn is_kept(&self) -> bool {
        self.torn == 0 || self.durable != Some(Durable::Transaction)
    }
}

/// Blocks of an array by their value, where all elements have the same, and the others.
struct Values {
    of: BTreeMap<u64, u64>,
    mixed: u64,
}

impl Pool {
    /// Undoes transactions that did not end, and looks at every block.
    pub fn recover(&self) -> Left {
        let undone = (0..LOGS).map(|thread| u64::from(self.undo(thread))).sum();
        let header = self.header();
        if header.ready != READY {
            return Left {
                durable: None,
                undone,
                old: 0,
                new: 0,
                torn: 0,
            };
        }
        let durable = Durable::ALL.get(header.durable as usize).copied();
        let arrays = [0, 1, 2].map(|array| self.values(array));
        let (old, new) = split(&arrays).unwrap_or_default();
        Left {
            durable: Some(durable.unwrap_or_default()),
            undone,
            old,
            new,
            torn: 3 * self.layout.blocks() - old - new,
        }
    }

    /// Writes the old bytes of a thread's log back, if they are valid.
    fn undo(&self, thread: u64) -> bool {
        let (log, old) = self.log(thread);
        // SAFETY: the log is inside the mapping, and no thread runs.
        let entry = unsafe { log.read_volatile() };
        if entry.valid != 1 || entry.array > 2 || entry.block >= self.layout.blocks() {
            return false;
        }
        let (first, count) = self.layout.block(entry.block);
        let to = self.array(entry.array).wrapping_add(first as usize);
        // SAFETY: the block is inside its array, and the log holds as much.
        unsafe {
            to.copy_from_nonoverlapping(old, count as usize);
            self.write_back.persist(to.cast(), count as usize * 8);
        }
        self.forget_old(thread);
        true
    }

    fn values(&self, array: u64) -> Values {
        let elements = self.elements(array);
        let mut values = Values {
            of: BTreeMap::new(),
            mixed: 0,
        };
        for block in elements.chunks(self.layout.block as usize) {
            let first = block[0].to_bits();
            match block.iter().all(|element| element.to_bits() == first) {
                true => *values.of.entry(first).or_default() += 1,
                false => values.mixed += 1,
            }
        }
        values
    }
}

/// Blocks before and after the kernel that was under way: of the moments of a run, the one at which most blocks are one
/// or the other.
fn split(arrays: &[Values; 3]) -> Option<(u64, u64)> {
    let mut before = FIRST;
    let steps = (0..MOST_TIMES).flat_map(|_| STEPS);
    let moments = steps.map(|step| {
        let next = after(before, step);
        let count = |array: usize, value: f64| {
            (arrays[array].of.get(&value.to_bits()).copied()).unwrap_or_default()
        };
        let to = step.to as usize;
        let new: u64 = (0..3).map(|array| count(array, next[array])).sum();
        let old = match before[to].to_bits() == next[to].to_bits() {
            true => 0,
            false => count(to, before[to]),
        };
        before = next;
        (old, new)
    });
    moments.max_by_key(|(old, new)| (old + new, *new))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::units::Bytes;

    use super::super::stream::Run;
    use super::super::{Mapping, Wanted};
    use super::*;

    fn wanted(folder: &tempfile::TempDir, elements: u64) -> Wanted {
        Wanted {
            path: folder.path().to_owned(),
            elements,
            block: Bytes(512),
        }
    }

    fn run(pool: &Pool, durable: Durable, times: u32) {
        let cpus = crate::pin::allowed_cpus().unwrap();
        let run = Run {
            cpus: &cpus[..cpus.len().min(2)],
            durable,
            times,
        };
        let timed = pool.stream(&run, &|| false).unwrap();
        assert!(
            timed
                .iter()
                .all(|timed| timed.seconds.len() == times as usize)
        );
    }

    #[test]
    fn a_second_run_finds_what_the_first_left() {
        let folder = tempfile::tempdir().unwrap();
        for (at, durable) in Durable::ALL.into_iter().enumerate() {
            let pool = Pool::open(&wanted(&folder, 1000)).unwrap();
            assert_eq!(pool.existed(), at > 0);
            run(&pool, durable, 3);
            drop(pool);
            let left = Pool::open(&wanted(&folder, 1000)).unwrap().recover();
            // 1000 elements are 16 blocks of 64.
            let whole = (left.durable, left.new, left.undone, left.torn);
            assert_eq!(whole, (Some(durable), 48, 0, 0));
        }
    }

    #[test]
    fn one_process_has_a_pool_and_other_arrays_or_other_data_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::open(&wanted(&folder, 1000)).unwrap();
        assert!(matches!(pool.mapping(), Mapping::Shared | Mapping::Sync));
        let error = |wanted: &Wanted| Pool::open(wanted).err().unwrap().to_string();
        assert!(error(&wanted(&folder, 1000)).contains("in use"));
        drop(pool);
        let other = Wanted {
            block: Bytes(1024),
            ..wanted(&folder, 1000)
        };
        assert!(error(&other).contains("arrays of 1000 elements and blocks of 512 B"));
        assert!(error(&wanted(&folder, 900_000)).contains("remove it"));
        let mut notes = wanted(&folder, 1000);
        notes.path = folder.path().join("notes");
        let bytes = std::fs::metadata(folder.path().join("weir-stream.pool")).unwrap();
        std::fs::write(&notes.path, vec![7; bytes.len() as usize]).unwrap();
        assert!(error(&notes).contains("no pool of Weir"));
        assert!(
            std::fs::read(&notes.path)
                .unwrap()
                .iter()
                .all(|&byte| byte == 7)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever part of a block was written when the program ended, the log makes the block old again.
        #[test]
        fn a_transaction_that_did_not_end_is_undone(block in 0_u64..16, written in 0_usize..40, ended: bool) {
            let folder = tempfile::tempdir().unwrap();
            let pool = Pool::open(&wanted(&folder, 1000)).unwrap();
            run(&pool, Durable::Transaction, 2);
            let before: Vec<f64> = pool.elements(2).to_vec();
            pool.keep_old(1, 2, block);
            for i in 0..written {
                // SAFETY: a block has at least 40 elements, the last one too.
                unsafe { *pool.array(2).add(block as usize * 64 + i) = -1.0 };
            }
            if ended {
                pool.forget_old(1);
            }
            drop(pool);
            let pool = Pool::open(&wanted(&folder, 1000)).unwrap();
            let left = pool.recover();
            prop_assert_eq!(left.undone, u64::from(!ended));
            prop_assert_eq!(left.torn, u64::from(ended && written > 0));
            prop_assert_eq!(left.is_kept(), left.torn == 0);
            prop_assert_eq!(!ended || written == 0, pool.elements(2) == before);
        }
    }
}
