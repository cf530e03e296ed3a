//! What holds for every platform, and for those that come with Weir.

mod devices;
mod expressions;
mod files;
mod sources;
mod storage;

use weir_model::platform::{Library, Platform};

/// A device in ten lines.
const TEN_LINES: &str = "\
kind = \"cxl\"
summary = \"Our new card\"
source = \"vendor datasheet rev 3\"
lanes = 8
media = \"ddr5-4800\"
channels = 2
capacity = \"128 GiB\"
idle = \"240 ns\"
read = \"26 GB/s\"
";

fn compose(expression: &str) -> Platform {
    Library::builtin().compose(expression).unwrap()
}
