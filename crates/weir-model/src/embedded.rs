//! The folders of data, compiled in, so that Weir knows them wherever it runs: `platforms/`, `workloads/`, `events/` and
//! `published/`. The build packs them, and each is unpacked when it is first read.

use std::ops::Range;
use std::sync::LazyLock;

/// A folder's files.
pub(crate) struct Folder {
    /// Their names in the folder, in order, and where their texts are.
    index: &'static [(&'static str, Range<usize>)],
    texts: LazyLock<String>,
}

impl Folder {
    /// The text of a file. A test reads each that is named; a file that is not there would be empty.
    pub(crate) fn text(&'static self, name: &str) -> &'static str {
        let found = self.index.binary_search_by_key(&name, |(name, _)| name);
        let range = found.ok().map(|i| self.index[i].1.clone());
        range
            .and_then(|range| self.texts.get(range))
            .unwrap_or_default()
    }

    /// The files right in a folder of it (`cores/`, or `` for itself): their names without what they end with, and texts.
    pub(crate) fn files(
        &'static self,
        within: &'static str,
    ) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.index.iter().filter_map(move |(name, _)| {
            let stem = name.strip_prefix(within)?.rsplit_once('.')?.0;
            (!stem.contains('/')).then(|| (stem, self.text(name)))
        })
    }
}

/// Texts by names. What cannot be unpacked would be a mistake of the build, and is no text.
fn unpack(packed: &[u8]) -> String {
    let bytes = miniz_oxide::inflate::decompress_to_vec(packed).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

macro_rules! folders {
    ($($(#[$about:meta])* $name:ident = $folder:literal;)+) => {$(
        $(#[$about])*
        pub(crate) static $name: Folder = Folder {
            index: &include!(concat!(env!("OUT_DIR"), "/", $folder, ".rs")),
            texts: LazyLock::new(|| {
                unpack(include_bytes!(concat!(env!("OUT_DIR"), "/", $folder, ".deflate")))
            }),
        };
    )+};
}

folders! {
    /// Hosts and devices, and what they have in common.
    PLATFORMS = "platforms";
    /// What programs do to memory.
    WORKLOADS = "workloads";
    /// What processors can count.
    EVENTS = "events";
    /// What papers measured.
    PUBLISHED = "published";
}
