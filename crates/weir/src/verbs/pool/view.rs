//! What is printed of a pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_model::number::count;
use weir_model::units::Bytes;
use weir_plan::pool::owners::{Stage, Vm};

use super::steps::Did;
use super::table::Pool;
use crate::context::{Context, Format};
use crate::failure::Result;
use crate::output::{Column, Table, print_text, to_csv, to_json, wrap};

/// A `pool` document: `weir/pool/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolDocument {
    /// `weir/KIND/VERSION`.
    pub schema: String,
    /// The version of Weir that wrote this.
    pub weir: String,
    /// Its file or device.
    pub file: String,
    /// Bytes of a slice.
    pub slice_bytes: u64,
    /// What this command did, in its order; slices on which it found no work are absent.
    pub did: Vec<Did>,
    /// Every slice.
    pub slices: Vec<PoolSlice>,
}

/// A slice of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolSlice {
    /// Its number.
    pub slice: usize,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// What is done with it.
    pub stage: Stage,
    /// The socket of the VM that may use it; absent if none may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// The process of that VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The guest's node that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Whether that VM runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<bool>,
}

impl PoolDocument {
    /// The value of `schema` in documents that this version writes.
    pub const SCHEMA: &'static str = "weir/pool/1";
}

/// Prints a pool, after what was done with it.
///
/// # Errors
/// Standard output is closed.
pub fn print_pool(
    context: &Context,
    pool: &Pool,
    did: Vec<Did>,
    runs: &dyn Fn(&Vm) -> bool,
) -> Result<()> {
    let slices = pool.owners().slices().iter().enumerate();
    let slices = slices.map(|(at, slice)| PoolSlice {
        slice: at,
        offset: pool.range(at).start,
        stage: slice.stage,
        vm: slice.vm.as_ref().map(|vm| vm.socket.clone()),
        pid: slice.vm.as_ref().map(|vm| vm.pid),
        node: slice.vm.as_ref().map(|vm| vm.node),
        runs: slice.vm.as_ref().map(runs),
    });
    let document = PoolDocument {
        schema: PoolDocument::SCHEMA.into(),
        weir: env!("CARGO_PKG_VERSION").into(),
        file: pool.file.path().display().to_string(),
        slice_bytes: pool.slice.get(),
        slices: slices.collect(),
        did,
    };
    print_text(&match context.global.format {
        Format::Json => to_json(&document)?,
        Format::Csv => to_csv(document.slices)?,
        Format::Table => table(&document),
    })
}

/// What was done, or else every slice.
fn table(document: &PoolDocument) -> String {
    let at = |stage| document.slices.iter().filter(|s| s.stage == stage).count();
    let (free, owned) = (at(Stage::Free), at(Stage::Owned));
    let under_way = document.slices.len() - free - owned;
    let title = format!(
        "{}: {} of {}, {free} free, {owned} owned{}",
        document.file,
        count(document.slices.len() as u64, "slice"),
        Bytes(document.slice_bytes),
        match under_way {
            0 => String::new(),
            n => format!(", {n} under way"),
        }
    );
    let mut text = wrap(&title, "", "  ");
    if !document.did.is_empty() {
        text += &format!("\n{}", done(document));
    } else {
        text += &format!("\n{}", owners(document));
    }
    let gone = document
        .slices
        .iter()
        .any(|slice| slice.runs == Some(false));
    if gone || under_way > 0 {
        text += "\n";
        text += &wrap(
            "VMs that have ended and steps that were interrupted are settled by `weir pool recover`, and before any other \
             change",
            "",
            "  ",
        );
    }
    text
}

fn done(document: &PoolDocument) -> String {
    let mut table = Table::new(&[
        Column::number("slice"),
        Column::words(""),
        Column::number("guest s"),
        Column::number("scrub s"),
        Column::number("whole s"),
        Column::words("now of"),
    ]);
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |s| format!("{s:.3}"));
    for did in &document.did {
        table.row([
            did.slice.to_string(),
            did.what.clone(),
            seconds(did.guest_s),
            seconds(did.scrub_s),
            seconds(Some(did.total_s)),
            did.vm.clone().unwrap_or("-".into()),
        ]);
    }
    table.to_string()
}

fn owners(document: &PoolDocument) -> String {
    let mut table = Table::new(&[
        Column::number("slice"),
        Column::number("at MiB"),
        Column::words("stage"),
        Column::number("node"),
        Column::number("process"),
        Column::words("VM"),
    ]);
    let number = |number: Option<u32>| number.map_or("-".to_owned(), |n| n.to_string());
    for slice in &document.slices {
        table.row([
            slice.slice.to_string(),
            (slice.offset >> 20).to_string(),
            slice.stage.name().to_owned(),
            number(slice.node),
            match slice.runs {
                Some(false) => format!("{} (ended)", number(slice.pid)),
                _ => number(slice.pid),
            },
            slice.vm.clone().unwrap_or("-".into()),
        ]);
    }
    table.to_string()
}
