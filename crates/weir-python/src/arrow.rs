//! Frames as Arrow, by the PyCapsule interface (Arrow's documentation, "The Arrow PyCapsule Interface"): other
//! libraries read the columns where they are.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::anyhow;
use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Value, json};
use weir::failure::Result;
use weir::verbs::runs::Sample;
use weir_model::frame::{self, Column, Frame, Kind};

/// Rows of a batch. Offsets of text are 32 bits long: this many rows may have 2 KB of it each.
const BATCH: usize = 1 << 20;

/// A list of rows in columns. Each field has its unit and its meaning as metadata.
#[pyclass(frozen)]
pub struct Table {
    /// The name of the list in the document.
    #[pyo3(get)]
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// Name, type, unit and meaning of each column.
    fn columns(&self) -> Vec<(String, String, String, String)> {
        let of = |field: &Field, key: &str| field.metadata().get(key).cloned().unwrap_or_default();
        (self.schema.fields().iter())
            .map(|field| {
                let kind = field.data_type().to_string();
                (
                    field.name().clone(),
                    kind,
                    of(field, "unit"),
                    of(field, "doc"),
                )
            })
            .collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The schema, for readers of the PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|e| wrong(&e))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, for readers of the PyCapsule interface. Another schema than the own one is not made.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let rows = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(rows));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn wrong(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Frames as tables.
///
/// # Errors
/// A value is not what its column holds.
pub fn tables(frames: &[Frame]) -> Result<Vec<Table>> {
    frames.iter().map(table).collect()
}

fn table(frame: &Frame) -> Result<Table> {
    let schema = schema(&frame.columns);
    let batches = frame.rows.chunks(BATCH).map(|rows| {
        let arrays = (frame.columns.iter().enumerate())
            .map(|(at, column)| array(column, rows.iter().map(|row| row.get(at))))
            .collect::<Result<Vec<_>>>()?;
        batch(&schema, arrays)
    });
    Ok(Table {
        name: frame.name.clone(),
        batches: batches.collect::<Result<_>>()?,
        schema,
    })
}

fn batch(schema: &SchemaRef, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    let batch = RecordBatch::try_new(Arc::clone(schema), arrays);
    Ok(batch.map_err(anyhow::Error::new)?)
}

fn schema(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| {
        let kind = match column.kind {
            Kind::Text => DataType::Utf8,
            Kind::Count => DataType::UInt64,
            Kind::Number => DataType::Float64,
            Kind::Flag => DataType::Boolean,
        };
        let about = [("unit", &column.unit), ("doc", &column.doc)];
        let about = about.into_iter().filter(|(_, text)| !text.is_empty());
        let mut about: HashMap<String, String> = about
            .map(|(key, text)| (key.into(), text.clone()))
            .collect();
        if let Some(interval) = &column.interval {
            about.insert("interval".into(), interval.clone());
        }
        Field::new(&column.name, kind, true).with_metadata(about)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn array<'v>(
    column: &Column,
    values: impl ExactSizeIterator<Item = Option<&'v Value>>,
) -> Result<ArrayRef> {
    let rows = values.len();
    let values = values.map(|value| value.filter(|value| !value.is_null()));
    let odd = |value: &Value| anyhow!("column `{}` does not hold {value}", column.name);
    Ok(match column.kind {
        Kind::Text => {
            let mut array = StringBuilder::with_capacity(rows, 8 * rows);
            for value in values {
                match value {
                    Some(Value::String(text)) => array.append_value(text),
                    other => array.append_option(other.map(frame::words)),
                }
            }
            Arc::new(array.finish())
        }
        Kind::Count => {
            let mut array = UInt64Builder::with_capacity(rows);
            for value in values {
                let read = |value: &Value| value.as_u64().ok_or_else(|| odd(value));
                array.append_option(value.map(read).transpose()?);
            }
            Arc::new(array.finish())
        }
        Kind::Number => {
            let mut array = Float64Builder::with_capacity(rows);
            for value in values {
                let read = |value: &Value| value.as_f64().ok_or_else(|| odd(value));
                array.append_option(value.map(read).transpose()?);
            }
            Arc::new(array.finish())
        }
        Kind::Flag => {
            let mut array = BooleanBuilder::with_capacity(rows);
            for value in values {
                let read = |value: &Value| value.as_bool().ok_or_else(|| odd(value));
                array.append_option(value.map(read).transpose()?);
            }
            Arc::new(array.finish())
        }
    })
}

/// Raw samples, of which there may be millions: straight into their columns.
///
/// # Errors
/// None that is known.
pub fn samples(samples: &[Sample]) -> Result<Table> {
    let columns = frame::columns::<Sample>();
    let schema = schema(&columns);
    let batches = samples.chunks(BATCH).map(|rows| {
        let array = |column: &Column| -> Result<ArrayRef> {
            let number = |of: &dyn Fn(&Sample) -> Option<f64>| -> ArrayRef {
                let mut array = Float64Builder::with_capacity(rows.len());
                rows.iter().for_each(|row| array.append_option(of(row)));
                Arc::new(array.finish())
            };
            let count = |of: &dyn Fn(&Sample) -> Option<u64>| -> ArrayRef {
                let mut array = UInt64Builder::with_capacity(rows.len());
                rows.iter().for_each(|row| array.append_option(of(row)));
                Arc::new(array.finish())
            };
            Ok(match column.name.as_str() {
                "seq" => count(&|row| Some(row.seq as u64)),
                "count" => count(&|row| row.count),
                "run_id" => count(&|row| u64::try_from(row.run_id.0).ok()),
                "window_ns" => number(&|row| row.window_ns),
                "gbps" => number(&|row| row.gbps),
                "mean_ns" => number(&|row| row.mean_ns),
                "latency_ns" => number(&|row| row.latency_ns),
                "kind" => {
                    let mut array = StringBuilder::with_capacity(rows.len(), 8 * rows.len());
                    rows.iter().for_each(|row| array.append_value(row.kind));
                    Arc::new(array.finish())
                }
                // A column that is added to the type is slower, and not lost.
                name => {
                    let all: Vec<Value> = (rows.iter())
                        .map(|row| json!(row).get(name).cloned().unwrap_or_default())
                        .collect();
                    self::array(column, all.iter().map(Some))?
                }
            })
        };
        batch(&schema, columns.iter().map(array).collect::<Result<_>>()?)
    });
    Ok(Table {
        name: "samples".into(),
        batches: batches.collect::<Result<_>>()?,
        schema,
    })
}
