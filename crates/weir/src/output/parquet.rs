//! Rows as Parquet: the columns of the CSV with their types, absent values as nulls.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

/// Rows under one head. Every value is at its column, or the row has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Names of the columns, in order.
    pub columns: Vec<&'static str>,
    /// Values by column.
    pub rows: Vec<Map<String, Value>>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Count,
    Number,
    Flag,
}

/// Columns of whole numbers above zero; seeds use all 64 bits.
const COUNTS: &[&str] = &[
    "run_id",
    "seq",
    "seed",
    "threads",
    "block_bytes",
    "wss_bytes",
    "batch",
    "beside_threads",
    "samples",
    "repetitions",
    "count",
];
/// Columns of true and false.
const FLAGS: &[&str] = &["prefetch"];
/// Columns of words. All others hold numbers.
const TEXTS: &[&str] = &[
    "began_utc",
    "verb",
    "machine_kind",
    "digest",
    "weir",
    "machine",
    "experiment",
    "tier",
    "op",
    "pattern",
    "cores",
    "source",
    "kernel",
    "beside_tier",
    "beside_op",
    "beside_pattern",
    "steadiness",
    "theory_basis",
    "conditions",
    "error",
    "kind",
    "id",
    "paper",
    "what",
    "condition",
    "unit",
    "note",
];

fn kind(column: &str) -> Kind {
    if COUNTS.contains(&column) {
        Kind::Count
    } else if FLAGS.contains(&column) {
        Kind::Flag
    } else if TEXTS.contains(&column) {
        Kind::Text
    } else {
        Kind::Number
    }
}

/// Rows as the bytes of a Parquet file of one row group.
///
/// # Errors
/// A value is not what its column holds.
pub fn to_parquet(rows: &Rows) -> anyhow::Result<Vec<u8>> {
    let fields = (rows.columns.iter())
        .map(|column| field(column).map(Arc::new))
        .collect::<parquet::errors::Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("weir")
        .with_fields(fields)
        .build()?;
    let settings = WriterProperties::builder()
        .set_created_by(concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(settings))?;
    let mut group = file.next_row_group()?;
    for column in &rows.columns {
        let mut writer = group
            .next_column()?
            .ok_or_else(|| anyhow!("the file has no column `{column}`"))?;
        let values = rows.rows.iter().map(|row| row.get(*column));
        match kind(column) {
            Kind::Text => write::<ByteArrayType>(&mut writer, values, |value| {
                Some(ByteArray::from(value.as_str()?))
            }),
            // The bits of an unsigned number, which its logical type says it is.
            Kind::Count => write::<Int64Type>(&mut writer, values, |value| {
                Some(value.as_u64()?.cast_signed())
            }),
            Kind::Number => write::<DoubleType>(&mut writer, values, Value::as_f64),
            Kind::Flag => write::<BoolType>(&mut writer, values, Value::as_bool),
        }
        .with_context(|| format!("column `{column}`"))?;
        writer.close()?;
    }
    group.close()?;
    Ok(file.into_inner()?)
}

fn field(column: &str) -> parquet::errors::Result<Type> {
    let (physical, logical) = match kind(column) {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(column, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

fn write<'v, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<&'v Value>>,
    read: impl Fn(&Value) -> Option<T::T>,
) -> anyhow::Result<()> {
    let mut present = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        match value {
            None | Some(Value::Null) => levels.push(0),
            Some(value) => {
                present.push(read(value).ok_or_else(|| anyhow!("does not hold {value}"))?);
                levels.push(1);
            }
        }
    }
    writer
        .typed::<T>()
        .write_batch(&present, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use proptest::prelude::*;

    fn row() -> impl Strategy<Value = Map<String, Value>> {
        let number = any::<f64>().prop_filter("JSON has no other", |f| f.is_finite());
        (
            prop::option::of(".*"),
            prop::option::of(any::<u64>()),
            prop::option::of(number),
            prop::option::of(any::<bool>()),
        )
            .prop_map(|(tier, seed, gbps, prefetch)| {
                let mut row = Map::new();
                row.insert("tier".into(), tier.into());
                row.insert("seed".into(), seed.into());
                row.insert("gbps".into(), gbps.into());
                row.insert("prefetch".into(), prefetch.into());
                row
            })
    }

    fn as_json(field: &Field) -> Value {
        match field {
            Field::Null => Value::Null,
            Field::Str(text) => text.clone().into(),
            Field::ULong(number) => (*number).into(),
            Field::Double(number) => (*number).into(),
            Field::Bool(flag) => (*flag).into(),
            other => panic!("no column is a {other:?}"),
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(rows in prop::collection::vec(row(), 0..20)) {
            let columns = vec!["tier", "seed", "gbps", "prefetch"];
            let bytes = to_parquet(&Rows { columns, rows: rows.clone() }).unwrap();
            let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
            let read: Vec<Map<String, Value>> = (file.get_row_iter(None).unwrap())
                .map(|row| {
                    let row = row.unwrap();
                    let fields = row.get_column_iter();
                    fields.map(|(name, field)| (name.clone(), as_json(field))).collect()
                })
                .collect();
            prop_assert_eq!(read, rows);
        }
    }

    #[test]
    fn a_value_of_another_kind_is_an_error_that_names_its_column() {
        let mut row = Map::new();
        row.insert("threads".into(), "many".into());
        let rows = Rows {
            columns: vec!["threads"],
            rows: vec![row],
        };
        let error = format!("{:#}", to_parquet(&rows).unwrap_err());
        assert!(
            error.contains("`threads`") && error.contains("many"),
            "{error}"
        );
    }
}
