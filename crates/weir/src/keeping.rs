//! The store, opened before the work begins and told of it afterwards.

use serde::Serialize;
use serde_json::json;
use weir_model::insight::Origin;
use weir_model::machine::MachineKind;

use crate::context::Context;
use crate::failure::Result;
use crate::host;
use crate::store::{Figure, NewRun, RunId, RunState, Store};

/// Where a verb will keep its document. Minutes of work end in none that a mistyped path would lose.
#[derive(Debug)]
pub struct Keeping<'a> {
    context: &'a Context,
    verb: &'static str,
    store: Store,
}

impl<'a> Keeping<'a> {
    /// Opens the store for a verb.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn begin(context: &'a Context, verb: &'static str) -> Result<Keeping<'a>> {
        let store = Store::open(&context.store_path()?)?;
        Ok(Keeping {
            context,
            verb,
            store,
        })
    }

    /// Keeps a document and the list in it that has its figures, once `printed` has put it out: what the
    /// store refuses is on the screen all the same.
    ///
    /// # Errors
    /// It cannot be put out, or the store does not take it. Where both fail the first is told.
    pub fn keep<T: Serialize>(
        self,
        origin: &Origin,
        document: &impl Serialize,
        list: (&'static str, &[T]),
        printed: Result<()>,
    ) -> Result<RunId> {
        let kept = self.add(origin, document, list);
        printed?;
        kept
    }

    fn add<T: Serialize>(
        mut self,
        origin: &Origin,
        document: &impl Serialize,
        (list_key, list): (&'static str, &[T]),
    ) -> Result<RunId> {
        let machine = origin.machine.as_ref();
        let run = self.store.begin(&NewRun {
            verb: self.verb.into(),
            machine: machine.map_or_else(|| origin.processor.clone(), |m| m.name.clone()),
            machine_kind: match machine.map(|m| m.kind) {
                Some(MachineKind::Sim) => "sim".into(),
                _ => "host".into(),
            },
            digest: machine.map_or_else(String::new, |m| m.digest.clone()),
            seed: origin.seed,
            arguments: json!(self.context.typed),
            host: host::fingerprint(),
            document: json!(document),
            list_key,
            planned: list.len(),
        })?;
        let figure = |(seq, body)| Figure {
            seq,
            body,
            record: None::<&()>,
            warnings: &[],
            elapsed_s: origin.elapsed_s,
            address: None,
        };
        let figures: Vec<Figure<'_, T, ()>> = list.iter().enumerate().map(figure).collect();
        self.store.add_all(run, &figures)?;
        let state = if origin.partial {
            RunState::Partial
        } else {
            RunState::Done
        };
        self.store
            .finish(run, state, origin.elapsed_s, &origin.warnings)?;
        Ok(run)
    }
}
