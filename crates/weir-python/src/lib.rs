//! `weir._weir`: the verbs of the command for Python, run by the command's own driver.
//!
//! The package around it (`python/weir`) makes functions from the list of commands, and classes from what is returned here.
//! No study is in this crate, and no figure is computed in it.

mod arrow;
mod commands;
mod running;

use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use weir::embed;
use weir::failure::Failure;

use arrow::Table;

create_exception!(_weir, Failed, PyException, "An exit code and a message.");

/// A failure as Python's exception.
fn failed(failure: &Failure) -> PyErr {
    Failed::new_err((failure.code(), failure.message().unwrap_or_default()))
}

/// A run from a store.
#[pyclass(frozen)]
struct Opened(embed::Opened);

#[pymethods]
impl Opened {
    /// Its line in the list of runs, as JSON.
    fn summary(&self) -> String {
        self.0.summary().to_string()
    }

    /// Its document, as JSON.
    fn document(&self) -> PyResult<String> {
        Ok(self.0.document().map_err(|f| failed(&f))?.to_string())
    }

    /// Its lists of rows, the main one first.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<Table>> {
        py.detach(|| arrow::tables(&self.0.frames()?))
            .map_err(|f| failed(&f))
    }

    /// Raw samples and latencies.
    fn samples(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| arrow::samples(&self.0.samples()?))
            .map_err(|f| failed(&f))
    }

    /// What the command prints of it.
    fn text(&self) -> String {
        self.0.text()
    }

    /// What it means, its charts and its figures, as a part of a page.
    fn html(&self) -> PyResult<String> {
        self.0.html().map_err(|f| failed(&f))
    }
}

/// Opens a run: from this store, or from the user's.
#[pyfunction]
#[pyo3(signature = (name, store=None))]
fn open(py: Python<'_>, name: &str, store: Option<PathBuf>) -> PyResult<Opened> {
    py.detach(|| embed::Opened::open(store.as_deref(), name))
        .map(Opened)
        .map_err(|f| failed(&f))
}

/// The lists of rows of a document that is kept in no store.
#[pyfunction]
fn tables(document: &str) -> PyResult<Vec<Table>> {
    arrow::tables(&embed::frames(&parsed(document))).map_err(|f| failed(&f))
}

/// The same as HTML, one after the other.
#[pyfunction]
fn html(document: &str) -> String {
    let frames = embed::frames(&parsed(document));
    frames.iter().map(embed::table).collect()
}

/// Text that is no JSON has no rows.
fn parsed(document: &str) -> serde_json::Value {
    serde_json::from_str(document).unwrap_or_default()
}

/// The module.
#[pymodule(name = "_weir")]
mod module {
    #[pymodule_export]
    use super::arrow::Table;
    #[pymodule_export]
    use super::commands::commands;
    #[pymodule_export]
    use super::running::{Ran, run};
    #[pymodule_export]
    use super::{Failed, Opened, html, open, tables};
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
