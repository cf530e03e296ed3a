//! Traces of VMs as Parquet: the columns of our own CSV, typed.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read as _, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};

use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::data_type::{BoolType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::record::reader::TreeBuilder;
use parquet::schema::types::Type;
use weir_model::stop;
use weir_plan::trace::problems::Problems;
use weir_plan::trace::read::{self, HEAD, ReadError};
use weir_plan::trace::{GIB, Machine, STAYS, Trace, UNKNOWN, Vm};

use crate::failure::{Failure, Result};

/// What every such file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// VMs of a row group that is written.
const GROUP: usize = 1 << 20;

/// Whether a file is one of Parquet, by its first bytes.
pub(super) fn is(file: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    // A pipe is left alone: it would lose its first bytes.
    file.is_file()
        && File::open(file).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == *MAGIC
}

/// Reads a trace, a row group at a time.
///
/// # Errors
/// The file is damaged or compressed in another way than by Snappy, or no trace.
pub(super) fn read(file: &Path, machine: Machine) -> Result<(Trace, Problems)> {
    let name = file.display().to_string();
    let opened = File::open(file).map_err(anyhow::Error::from);
    let read = opened.map_err(Failed::File);
    let read = read.and_then(|file| unharmed(|| of(&name, file, machine)));
    read.map_err(|failed| match failed {
        Failed::Trace(error) => Failure::Request(error.into()),
        Failed::File(error) if stop::requested() => Failure::reading(error.context(name)),
        Failed::File(error) => Failure::Request(error.context(format!(
            "{name} is no Parquet file that can be read; it may be uncompressed or compressed by Snappy"
        ))),
    })
}

fn of<R: ChunkReader + 'static>(
    name: &str,
    file: R,
    machine: Machine,
) -> std::result::Result<(Trace, Problems), Failed> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns: Vec<String> = (schema.columns().iter())
        .map(|column| column.path().string())
        .collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let group = |at| TreeBuilder::new().as_iter(schema.clone(), &*reader.get_row_group(at)?);
    let rows = (0..reader.num_row_groups()).flat_map(|at| {
        let (rows, error) = match group(at) {
            Ok(rows) => (Some(rows), None),
            Err(error) => (None, Some(Err(error))),
        };
        rows.into_iter().flatten().chain(error)
    });
    let rows = rows.map(|row| match stop::requested() {
        true => Err(Failed::File(anyhow::anyhow!("a stop was requested"))),
        false => Ok(row?
            .get_column_iter()
            .map(|(_, field)| text(field))
            .collect()),
    });
    read::rows(name, &columns, machine, rows)
}

thread_local! {
    /// Whether this thread reads a file, so that a panic is no fault of ours and is not printed.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Reads with the library, which panics on some damaged files, such as one with a negative length.
fn unharmed<T>(
    read: impl FnOnce() -> std::result::Result<T, Failed>,
) -> std::result::Result<T, Failed> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |about| match READING.get() {
            true => {}
            false => before(about),
        }));
    });
    READING.set(true);
    // What `read` has changed is dropped with it.
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    read.unwrap_or_else(|_| Err(Failed::File(anyhow::anyhow!("it is damaged"))))
}

/// A field as it would be in CSV.
fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        // What is not known is no number in some tables.
        Field::Float(number) if number.is_nan() => String::new(),
        Field::Double(number) if number.is_nan() => String::new(),
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// Writes a trace, compressed by Snappy.
///
/// # Errors
/// The sink does not take it.
pub(super) fn write(trace: &Trace, sink: impl Write + Send) -> parquet::errors::Result<()> {
    let kinds = [
        Physical::INT64,
        Physical::INT64,
        Physical::DOUBLE,
        Physical::DOUBLE,
        Physical::INT64,
        Physical::INT64,
        Physical::INT64,
        Physical::BOOLEAN,
    ];
    let fields = HEAD.split(',').zip(kinds).map(|(name, kind)| {
        let field = Type::primitive_type_builder(name, kind);
        Ok(Arc::new(
            field.with_repetition(Repetition::OPTIONAL).build()?,
        ))
    });
    let fields = fields.collect::<parquet::errors::Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("trace")
        .with_fields(fields)
        .build()?;
    let settings = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(settings))?;
    for from in (0..trace.len()).step_by(GROUP) {
        let vms = || {
            (from..trace.len())
                .take(GROUP)
                .filter_map(|at| trace.get(at))
        };
        let known = |number: u32, unknown: u32| (number != unknown).then_some(i64::from(number));
        let mut group = file.next_row_group()?;
        column::<Int64Type>(&mut group, vms().map(|vm| Some(vm.arrival.into())))?;
        column::<Int64Type>(&mut group, vms().map(|vm| known(vm.departure, STAYS)))?;
        let cores = |vm: Vm| Some(f64::from(vm.millicores) / 1000.0);
        column::<DoubleType>(&mut group, vms().map(cores))?;
        let gib = |vm: Vm| Some(f64::from(vm.memory_mib) / f64::from(GIB));
        column::<DoubleType>(&mut group, vms().map(gib))?;
        column::<Int64Type>(&mut group, vms().map(|vm| Some(vm.customer.into())))?;
        column::<Int64Type>(&mut group, vms().map(|vm| Some(vm.kind.into())))?;
        let touched = |vm: Vm| known(vm.touched_pct.into(), UNKNOWN.into());
        column::<Int64Type>(&mut group, vms().map(touched))?;
        column::<BoolType>(&mut group, vms().map(|vm| vm.insensitive))?;
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Writes the next column of a row group.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = Option<T::T>>,
) -> parquet::errors::Result<()> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let present: Vec<T::T> = values.into_iter().flatten().collect();
    if let Some(mut writer) = group.next_column()? {
        writer
            .typed::<T>()
            .write_batch(&present, Some(&levels), None)?;
        writer.close()?;
    }
    Ok(())
}

/// Why a file was not read.
enum Failed {
    Trace(ReadError),
    File(anyhow::Error),
}

impl From<ReadError> for Failed {
    fn from(error: ReadError) -> Self {
        Self::Trace(error)
    }
}

impl From<ParquetError> for Failed {
    fn from(error: ParquetError) -> Self {
        Self::File(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_plan::trace::generate::{Generate, MACHINE};
    use weir_plan::trace::problems::Problem;

    fn generated() -> Trace {
        let generate = Generate {
            machines: 4,
            days: 1.0,
            ..Generate::default()
        };
        generate.run().unwrap()
    }

    fn written(trace: &Trace) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(trace, &mut bytes).unwrap();
        bytes
    }

    fn again(bytes: Vec<u8>) -> std::result::Result<(Trace, Problems), Failed> {
        unharmed(|| of("t.parquet", bytes::Bytes::from(bytes), MACHINE))
    }

    #[test]
    fn a_trace_is_read_as_it_was_written_and_bad_rows_are_counted() {
        let mut trace = generated();
        let stays = Vm {
            departure: STAYS,
            touched_pct: UNKNOWN,
            insensitive: None,
            memory_mib: 1792,
            arrival: trace.last_arrival(),
            ..trace.get(0).unwrap()
        };
        trace.push(stays);
        let (read, problems) = again(written(&trace)).unwrap_or_else(|_| panic!("not read"));
        let vms = |trace: &Trace| {
            // Customers and types are numbered as they come.
            let of = |vm: Vm| Vm {
                customer: 0,
                kind: 0,
                ..vm
            };
            trace.vms().map(of).collect::<Vec<_>>()
        };
        assert_eq!(vms(&read), vms(&trace));
        assert_eq!(problems.count(Problem::UnevenMemory), 1);
        let row = trace.len() as u64 + 1;
        trace.push(Vm {
            departure: 0,
            ..stays
        });
        trace.push(Vm {
            memory_mib: 1 << 30,
            ..stays
        });
        let (_, problems) = again(written(&trace)).unwrap_or_else(|_| panic!("not read"));
        let words = problems.words("t.parquet", "row").join("\n");
        assert!(
            words.contains(&format!(
                "ends before its beginning: 1 in all, first row {row}"
            )),
            "{words}"
        );
        assert!(
            words.contains(&format!(
                "larger than a machine: 1 in all, first row {}",
                row + 1
            )),
            "{words}"
        );
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_read_or_explained(at in any::<prop::sample::Index>(), byte: u8, end in any::<prop::sample::Index>(), cut: bool) {
            let mut bytes = written(&generated());
            let place = at.index(bytes.len());
            bytes[place] = byte;
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            match again(bytes) {
                Ok(_) => {}
                Err(Failed::Trace(error)) => prop_assert!(!error.to_string().is_empty()),
                Err(Failed::File(error)) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
