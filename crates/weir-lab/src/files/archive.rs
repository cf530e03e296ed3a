//! An archive of one file, as tar writes it: the file is read and the archive is written record by record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::units::{Bytes, Nanos};

use super::costs::Costs;
use super::io::{Access, Copies, PAGE, State, System, io};

/// Sizes of files, those of figure 3c of FLAC.
const FILES: [Bytes; 6] = [
    Bytes::kib(4),
    Bytes::kib(64),
    Bytes::mib(1),
    Bytes::mib(4),
    Bytes::mib(16),
    Bytes::mib(64),
];

/// The time of an archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveRow {
    /// The file system, of file and archive.
    pub system: System,
    /// Whether a cache has the file.
    pub state: State,
    /// Bytes of the file.
    pub file_bytes: Bytes,
    /// All of it.
    pub total: Nanos,
    /// What reads and writes take, the program itself not counted.
    pub in_calls: Nanos,
}

/// The time of archives, with the copies of one thread that take this long for `size` bytes.
pub fn archives(copies: &Copies, size: Bytes, costs: &Costs) -> Vec<ArchiveRow> {
    let mut rows = Vec::new();
    for system in [System::Ext4, System::Ext4Dax, System::Nova, System::Flac] {
        let states = match system.has_cache() {
            true => &State::ALL[..],
            false => &State::ALL[..1],
        };
        // A page is attached as a whole.
        let record = match system.attaches() {
            true => Bytes(costs.record.get().next_multiple_of(PAGE.get())),
            false => costs.record,
        };
        let copies = copies.part(record.get() as f64 / size.get() as f64);
        let new = new_pages(system, record, costs);
        for &state in states {
            let of = |access, state| io(system, access, state, record, &copies, costs).total();
            let each = of(Access::Read, state) + of(Access::Write, State::Warm) + new;
            rows.extend(FILES.iter().map(|&file| {
                let records = file.get().div_ceil(record.get()) as f64;
                let in_calls = each * records;
                ArchiveRow {
                    system,
                    state,
                    file_bytes: file,
                    total: costs.start + costs.of_record * records + in_calls,
                    in_calls,
                }
            }));
        }
    }
    rows
}

/// What a record adds since the archive has no pages there yet.
fn new_pages(system: System, record: Bytes, costs: &Costs) -> Nanos {
    let pages = record.get() as f64 / PAGE.get() as f64;
    match system {
        System::Ext4 | System::Ext4Unflushed => costs.insert * pages,
        System::Ext4Dax => costs.ext4_dax_new - costs.ext4_dax,
        // Every write has new blocks, or brings its frames.
        System::Nova | System::Flac | System::FlacBatched | System::FlacThreads => Nanos(0.0),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::units::GbPerSec;

    use super::*;

    fn rows() -> Vec<ArchiveRow> {
        let copies = Copies {
            threads: 1,
            cached: Nanos(200e3),
            while_flushing: Nanos(230e3),
            to_medium: Nanos(900e3),
            from_medium: Nanos(300e3),
            flush: GbPerSec(2.3),
        };
        archives(&copies, Bytes::mib(2), &Costs::builtin().unwrap())
    }

    fn time(rows: &[ArchiveRow], system: System, state: State, file: Bytes) -> f64 {
        let is =
            |row: &&ArchiveRow| (row.system, row.state, row.file_bytes) == (system, state, file);
        rows.iter().find(is).unwrap().total.get()
    }

    #[test]
    fn an_archive_takes_its_start_and_the_same_for_each_record() {
        let rows = rows();
        let start = Costs::builtin().unwrap().start.get();
        for system in [System::Ext4, System::Ext4Dax, System::Nova, System::Flac] {
            let of = |file| time(&rows, system, State::Warm, file) - start;
            let ratio = of(Bytes::mib(64)) / of(Bytes::mib(16));
            assert!((ratio - 4.0).abs() < 0.01, "{system}: {ratio}");
            assert!(of(Bytes::kib(4)) > 0.0);
        }
    }

    #[test]
    fn attached_pages_save_more_of_a_larger_file_and_a_cold_cache_costs_more() {
        let rows = rows();
        for system in [System::Ext4, System::Ext4Dax, System::Nova] {
            let sooner = FILES.map(|file| {
                let of = |system| time(&rows, system, State::Warm, file);
                of(System::Flac) / of(system)
            });
            assert!(sooner.is_sorted_by(|a, b| a > b), "{system}: {sooner:?}");
        }
        let ext4 = State::ALL.map(|state| time(&rows, System::Ext4, state, Bytes::mib(4)));
        assert!(ext4[1] > ext4[0] * 1.1, "{ext4:?}");
    }

    /// What is moved for a page is not less where a record ends within one.
    #[test]
    fn pages_are_attached_as_a_whole() {
        let flac = |record| {
            let costs = Costs {
                record,
                ..Costs::builtin().unwrap()
            };
            let copies = Copies {
                threads: 1,
                cached: Nanos(1.0),
                while_flushing: Nanos(1.0),
                to_medium: Nanos(1.0),
                from_medium: Nanos(1.0),
                flush: GbPerSec(1.0),
            };
            let rows = archives(&copies, PAGE, &costs);
            time(&rows, System::Flac, State::Warm, Bytes::mib(1))
        };
        assert_eq!(flac(Bytes::kib(10)), flac(Bytes::kib(12)));
    }
}
