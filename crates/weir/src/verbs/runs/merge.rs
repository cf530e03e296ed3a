//! `weir runs merge`: the runs of other stores in this one.

use std::path::PathBuf;

use crate::context::{Context, Format};
use crate::documents::{MergeDocument, MergedStore};
use crate::failure::{Failure, Result};
use crate::output::{Column, Table, print_as, to_csv, to_json};
use crate::store::Store;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir runs merge worker-1.sqlite worker-2.sqlite
  weir runs merge /mnt/lab/runs.sqlite --store all.sqlite

A run that was merged before is not added again. Figures that several runs have
are kept by each of them; the other stores are only read.")]
pub struct Args {
    /// Stores whose runs are added to this one.
    #[arg(required = true, value_name = "STORE")]
    stores: Vec<PathBuf>,
}

/// Merges and says what became of each store.
///
/// # Errors
/// A store cannot be read or written; those before it are merged then.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let path = context.store_path()?;
    if let Some(missing) = args.stores.iter().find(|store| !store.is_file()) {
        return Err(Failure::request(format!(
            "there is no store {}",
            missing.display()
        )));
    }
    let mut store = Store::open(&path)?;
    let mut stores = Vec::new();
    for file in &args.stores {
        let merged = store.merge(file)?;
        if merged.differ > 0 {
            context.note(&format!(
                "{} of {} figures that {} shares with this store differ; each run keeps its own",
                merged.differ,
                merged.shared,
                file.display()
            ));
        }
        stores.push(MergedStore {
            file: file.display().to_string(),
            added: merged.added,
            continued: merged.continued,
            known: merged.known,
            shared: merged.shared,
            differ: merged.differ,
        });
    }
    print_as(
        context.global.format,
        &match context.global.format {
            Format::Table => table(&stores),
            Format::Csv => to_csv(&stores)?,
            Format::Json => to_json(&MergeDocument {
                schema: MergeDocument::SCHEMA.into(),
                weir: env!("CARGO_PKG_VERSION").into(),
                stores,
            })?,
        },
    )
}

fn table(stores: &[MergedStore]) -> String {
    let mut table = Table::new(&[
        Column::words("store"),
        Column::number("added"),
        Column::number("continued"),
        Column::number("known"),
        Column::number("figures in both"),
        Column::number("differ"),
    ]);
    for one in stores {
        let numbers = [one.added, one.continued, one.known, one.shared, one.differ];
        let cells = numbers.map(|number| number.to_string());
        table.row(std::iter::once(one.file.clone()).chain(cells));
    }
    format!("{table}")
}
