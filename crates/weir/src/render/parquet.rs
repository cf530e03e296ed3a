//! Frames as Parquet: typed columns, units and docs as metadata, absent values as nulls.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::{Value, json};
use weir_model::frame::{Column, Frame, Kind, words};

/// Columns of UTC times, written as milliseconds since 1970.
const TIMES: &[&str] = &["began_utc"];

/// A frame as the bytes of a file of one row group, compressed by Snappy.
///
/// The file's metadata has `weir.columns`: a JSON object with the unit and the doc of each column.
///
/// # Errors
/// A value is not what its column holds.
pub fn to_parquet(frame: &Frame) -> anyhow::Result<Vec<u8>> {
    let fields = (frame.columns.iter())
        .map(|column| field(column).map(Arc::new))
        .collect::<parquet::errors::Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("weir")
        .with_fields(fields)
        .build()?;
    let about: serde_json::Map<String, Value> = (frame.columns.iter())
        .map(|c| (c.name.clone(), json!({ "unit": c.unit, "doc": c.doc })))
        .collect();
    let settings = WriterProperties::builder()
        .set_created_by(concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "weir.columns".into(),
            Value::Object(about).to_string(),
        )]))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(settings))?;
    let mut group = file.next_row_group()?;
    for (at, column) in frame.columns.iter().enumerate() {
        let mut writer = (group.next_column()?)
            .ok_or_else(|| anyhow!("the file has no column `{}`", column.name))?;
        let values = frame.rows.iter().map(|row| row.get(at));
        match column.kind {
            _ if TIMES.contains(&column.name.as_str()) => {
                write::<Int64Type>(&mut writer, values, |value| milliseconds(value.as_str()?))
            }
            Kind::Text => write::<ByteArrayType>(&mut writer, values, |value| {
                Some(ByteArray::from(words(value).as_str()))
            }),
            // The bits of an unsigned number, which its logical type says it is.
            Kind::Count => write::<Int64Type>(&mut writer, values, |value| {
                Some(value.as_u64()?.cast_signed())
            }),
            Kind::Number => write::<DoubleType>(&mut writer, values, Value::as_f64),
            Kind::Flag => write::<BoolType>(&mut writer, values, Value::as_bool),
        }
        .with_context(|| format!("column `{}`", column.name))?;
        writer.close()?;
    }
    group.close()?;
    Ok(file.into_inner()?)
}

fn field(column: &Column) -> parquet::errors::Result<Type> {
    let (physical, logical) = match column.kind {
        _ if TIMES.contains(&column.name.as_str()) => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
        ),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

fn write<'v, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<&'v Value>>,
    read: impl Fn(&Value) -> Option<T::T>,
) -> anyhow::Result<()> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
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

/// Milliseconds since 1970 of `2026-03-01 14:05:09`, which is UTC (days from civil dates, Hinnant).
fn milliseconds(text: &str) -> Option<i64> {
    let mut parts = text
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<i64>);
    let mut next = || parts.next()?.ok();
    let (year, month, day, hour, minute, second) =
        (next()?, next()?, next()?, next()?, next()?, next()?);
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let of_era = year - era * 400;
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use proptest::prelude::*;
    use schemars::JsonSchema;
    use serde::Serialize;

    use super::*;

    #[derive(Debug, Clone, Serialize, JsonSchema)]
    struct Row {
        tier: Option<String>,
        seed: Option<u64>,
        gbps: Option<f64>,
        prefetch: Option<bool>,
    }

    fn row() -> impl Strategy<Value = Row> {
        let number = any::<f64>().prop_filter("JSON has no other", |f| f.is_finite());
        (
            prop::option::of(".*"),
            prop::option::of(any::<u64>()),
            prop::option::of(number),
            prop::option::of(any::<bool>()),
        )
            .prop_map(|(tier, seed, gbps, prefetch)| Row {
                tier,
                seed,
                gbps,
                prefetch,
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
            let frame = Frame::of("rows", &rows);
            let bytes = to_parquet(&frame).unwrap();
            let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
            let read: Vec<Vec<Value>> = (file.get_row_iter(None).unwrap())
                .map(|row| row.unwrap().get_column_iter().map(|(_, field)| as_json(field)).collect())
                .collect();
            prop_assert_eq!(read, frame.rows);
        }
    }

    #[test]
    fn units_are_metadata_and_a_wrong_value_names_its_column() {
        let frame = Frame::of(
            "rows",
            &[Row {
                tier: None,
                seed: Some(1),
                gbps: None,
                prefetch: None,
            }],
        );
        let file =
            SerializedFileReader::new(bytes::Bytes::from(to_parquet(&frame).unwrap())).unwrap();
        let metadata = file
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap();
        let about = metadata
            .iter()
            .find(|pair| pair.key == "weir.columns")
            .unwrap();
        let about: Value = serde_json::from_str(about.value.as_ref().unwrap()).unwrap();
        assert_eq!(about["gbps"]["unit"], "GB/s");

        let mut wrong = frame;
        wrong.rows[0][1] = "many".into();
        let error = format!("{:#}", to_parquet(&wrong).unwrap_err());
        assert!(
            error.contains("`seed`") && error.contains("many"),
            "{error}"
        );
    }

    #[test]
    fn times_are_milliseconds_of_utc() {
        assert_eq!(milliseconds("1970-01-01 00:00:00"), Some(0));
        assert_eq!(milliseconds("2026-03-01 14:05:09"), Some(1_772_373_909_000));
        assert_eq!(milliseconds("soon"), None);
    }
}
