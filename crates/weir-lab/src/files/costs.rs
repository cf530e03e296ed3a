//! What file systems and page tables cost a kernel, as data: `costs.toml` has the source or the range of each figure.

use weir_model::diagnostic::Mistakes;
use weir_model::toml::{self, Table};
use weir_model::units::{Bytes, Nanos};

use crate::sourced::value;

/// The figures that come with Weir.
pub const BUILTIN: &str = include_str!("costs.toml");

/// Times of one system call, or of one page, by what the kernel does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A system call that finds its file.
    pub enter: Nanos,
    /// What ext4-DAX adds to a write.
    pub ext4_dax: Nanos,
    /// What it adds to one that has no blocks yet.
    pub ext4_dax_new: Nanos,
    /// What NOVA adds to a write.
    pub nova: Nanos,
    /// What NOVA adds for each page that is written.
    pub nova_page: Nanos,
    /// The page cache, for a page that is read.
    pub read: Nanos,
    /// The page cache, for a page that is written.
    pub write: Nanos,
    /// A page that was not in the cache.
    pub insert: Nanos,
    /// A page that was flushed since it was last written.
    pub redirty: Nanos,
    /// Bytes that a flush holds at one time.
    pub held: Bytes,
    /// Time between flushes.
    pub period: Nanos,
    /// One entry of a page table that moves.
    pub entry: Nanos,
    /// Reference counts of a frame.
    pub count: Nanos,
    /// One entry of this core's TLB.
    pub invalidate: Nanos,
    /// All entries of it.
    pub invalidate_all: Nanos,
    /// Interrupts of other cores for their TLBs.
    pub shootdown: Nanos,
    /// The first store into an attached page, without its copy.
    pub fault: Nanos,
    /// Bytes that tar reads and writes at once.
    pub record: Bytes,
    /// What tar takes whatever it archives.
    pub start: Nanos,
    /// What tar itself takes for a record.
    pub of_record: Nanos,
}

impl Costs {
    /// The figures that come with Weir.
    ///
    /// # Errors
    /// None; a test reads them.
    pub fn builtin() -> Result<Self, Mistakes> {
        Self::read("costs.toml", BUILTIN)
    }

    /// Reads a file of costs; `file` names it in messages.
    ///
    /// # Errors
    /// Every mistake in the text, at its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Mistakes> {
        toml::read(file, text, "a file of costs", read)
    }
}

fn read(root: &Table<'_>) -> Option<Costs> {
    root.expect_kind("file-costs", "a file of costs")?;
    let [call, cache, attach, tar] =
        ["call", "cache", "attach", "tar"].map(|key| root.section(key));
    let time = |of: &Table<'_>, key| value(of, key, "100 ns", Nanos(0.0)..=Nanos(1e9));
    let costs = (
        ["enter", "ext4_dax", "ext4_dax_new", "nova", "nova_page"].map(|key| time(&call, key)),
        ["read", "write", "insert", "redirty", "period"].map(|key| time(&cache, key)),
        value(&cache, "held", "8 MiB", Bytes::kib(4)..=Bytes(1 << 50)),
        [
            "entry",
            "count",
            "invalidate",
            "invalidate_all",
            "shootdown",
            "fault",
        ]
        .map(|key| time(&attach, key)),
        value(&tar, "record", "10 KiB", Bytes(512)..=Bytes::mib(64)),
        ["start", "of_record"].map(|key| time(&tar, key)),
    );
    for table in [&call, &cache, &attach, &tar, root] {
        table.done("a file of costs");
    }
    let ([enter, ext4_dax, ext4_dax_new, nova, nova_page], cache, held, attach, record, tar) =
        costs;
    let [read, write, insert, redirty, period] = cache;
    let [start, of_record] = tar;
    let [entry, count, invalidate, invalidate_all, shootdown, fault] = attach;
    Some(Costs {
        enter: enter?,
        ext4_dax: ext4_dax?,
        ext4_dax_new: ext4_dax_new?,
        nova: nova?,
        nova_page: nova_page?,
        read: read?,
        write: write?,
        insert: insert?,
        redirty: redirty?,
        held: held?,
        period: period?,
        entry: entry?,
        count: count?,
        invalidate: invalidate?,
        invalidate_all: invalidate_all?,
        shootdown: shootdown?,
        fault: fault?,
        record: record?,
        start: start?,
        of_record: of_record?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_that_come_with_weir_are_read() {
        let costs = Costs::builtin().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert!(costs.read < costs.write && costs.entry < costs.invalidate);
    }

    #[test]
    fn a_cost_without_a_source_or_outside_its_range_is_a_mistake_that_names_its_key() {
        let wrong = [
            (
                ", why = \"not published; a write of CR3, and walks for the pages in use\"",
                "",
                "why",
            ),
            ("\"13.3 ns\"", "\"-1 ns\"", "entry"),
            ("\"270 ns\", assumed", "\"900 ns\", assumed", "enter"),
            ("[\"5 ns\", \"40 ns\"]", "[\"5 ns\"]", "count"),
            ("[attach]", "[atach]", "atach"),
        ];
        for (from, to, names) in wrong {
            let text = BUILTIN.replace(from, to);
            assert_ne!(text, BUILTIN, "{from}");
            let error = Costs::read("mine.toml", &text).unwrap_err().to_string();
            assert!(
                error.contains(names) && error.contains("mine.toml"),
                "{error}"
            );
        }
    }
}
