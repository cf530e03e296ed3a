//! The kinds of value: how each is read, shown, and turned into a type of the model.

use std::str::FromStr;

use toml_edit::Value;

use super::media::Media;
use super::words::{ControllerKind, Medium, ReadLimit, Replacement, WritePolicy};
use crate::diagnostic::quote;
use crate::units::{Bytes, Cycles, GbPerSec, GigaTransfers, Gigahertz, Nanos, ParseQuantityError};

/// The kind of value that a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of things.
    Count,
    /// A share, 0 to 1.
    Share,
    /// A number that may have a fraction.
    Number,
    /// A time with its unit.
    Time,
    /// A bandwidth with its unit.
    Bandwidth,
    /// A clock frequency with its unit.
    Frequency,
    /// A transfer rate with its unit.
    TransferRate,
    /// A number of clock cycles.
    Cycles,
    /// A size in bytes with its unit.
    Size,
    /// A DRAM speed grade.
    Media,
    /// The name of a microarchitecture whose defaults are known.
    Microarchitecture,
    /// How a device controller is built.
    Controller,
    /// What limits a device's reads.
    ReadLimit,
    /// A medium behind a device's DRAM.
    Medium,
    /// Which page leaves a cache.
    Replacement,
    /// When a written page goes to the medium.
    WritePolicy,
}

/// A value in the unit of its kind, or a word.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Number(f64),
    Word(String),
}

impl Kind {
    /// In words: `a time`.
    pub const fn describe(self) -> &'static str {
        match self {
            Kind::Count => "a whole number",
            Kind::Share => "a share",
            Kind::Number => "a number",
            Kind::Time => "a time",
            Kind::Bandwidth => "a bandwidth",
            Kind::Frequency => "a frequency",
            Kind::TransferRate => "a transfer rate",
            Kind::Cycles => "a number of cycles",
            Kind::Size => "a size",
            Kind::Media => "a DRAM speed grade",
            Kind::Microarchitecture => "a microarchitecture",
            Kind::Controller => "a kind of controller",
            Kind::ReadLimit => "a limit",
            Kind::Medium => "a medium",
            Kind::Replacement => "a replacement policy",
            Kind::WritePolicy => "a write policy",
        }
    }

    /// The words that this kind takes; `None` for numbers, and for names that are known only
    /// when all files are.
    pub fn words(self) -> Option<Vec<&'static str>> {
        match self {
            Kind::Media => Some(Media::ALL.iter().map(|m| m.name()).collect()),
            Kind::Controller => Some(ControllerKind::ALL.iter().map(|c| c.name()).collect()),
            Kind::ReadLimit => Some(ReadLimit::ALL.iter().map(|l| l.name()).collect()),
            Kind::Medium => Some(Medium::ALL.iter().map(|m| m.name()).collect()),
            Kind::Replacement => Some(Replacement::ALL.iter().map(|r| r.name()).collect()),
            Kind::WritePolicy => Some(WritePolicy::ALL.iter().map(|w| w.name()).collect()),
            _ => None,
        }
    }

    /// A value as it is written in a file: in quotes, unless it is a bare number.
    pub(crate) fn written(self, value: &str) -> String {
        match self {
            Kind::Count | Kind::Share | Kind::Number
                if value.replace('_', "").parse::<f64>().is_ok() =>
            {
                value.to_owned()
            }
            _ => format!("{value:?}"),
        }
    }

    /// Reads a TOML value.
    pub(crate) fn read(self, value: &Value) -> Result<Scalar, String> {
        match (self, value) {
            (Kind::Count | Kind::Share | Kind::Number, Value::Integer(n)) => {
                Ok(Scalar::Number(*n.value() as f64))
            }
            (Kind::Share | Kind::Number, Value::Float(x)) if x.value().is_finite() => {
                Ok(Scalar::Number(*x.value()))
            }
            (Kind::Count | Kind::Share | Kind::Number, other) => Err(self.mismatch(other)),
            (_, Value::String(text)) => self.read_text(text.value()),
            (_, other) => Err(self.mismatch(other)),
        }
    }

    /// Reads an end of an `assumed` range, where numbers may also be in quotes.
    pub(crate) fn read_end(self, value: &Value) -> Result<Scalar, String> {
        match value {
            Value::String(text) => self.read_text(text.value()),
            other => self.read(other),
        }
    }

    fn read_text(self, text: &str) -> Result<Scalar, String> {
        fn quantity<Q: FromStr<Err = ParseQuantityError>>(
            text: &str,
            get: impl Fn(Q) -> f64,
        ) -> Result<Scalar, String> {
            // The text comes back in the message: keep it short and printable.
            quote(text)
                .parse()
                .map(|q| Scalar::Number(get(q)))
                .map_err(|error| error.to_string())
        }
        match self {
            Kind::Count | Kind::Share | Kind::Number => match text.trim().parse::<f64>() {
                Ok(n) if n.is_finite() && (self != Kind::Count || n.fract() == 0.0) => {
                    Ok(Scalar::Number(n))
                }
                _ => Err(format!("`{}` is not {}", quote(text), self.describe())),
            },
            Kind::Time => quantity(text, Nanos::get),
            Kind::Bandwidth => quantity(text, GbPerSec::get),
            Kind::Frequency => quantity(text, Gigahertz::get),
            Kind::TransferRate => quantity(text, GigaTransfers::get),
            Kind::Cycles => quantity(text, Cycles::get),
            Kind::Size => quantity(text, |bytes: Bytes| bytes.get() as f64),
            Kind::Media
            | Kind::Microarchitecture
            | Kind::Controller
            | Kind::ReadLimit
            | Kind::Medium
            | Kind::Replacement
            | Kind::WritePolicy => Ok(Scalar::Word(text.to_string())),
        }
    }

    /// The message for a value of another type.
    fn mismatch(self, value: &Value) -> String {
        let found = match value {
            Value::String(_) => "text in quotes",
            Value::Integer(_) => "a number without a unit",
            Value::Float(n) if !n.value().is_finite() => "no finite number",
            Value::Float(_) if matches!(self, Kind::Count) => "a number with a fraction",
            Value::Float(_) => "a number without a unit",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::InlineTable(_) => "a table",
        };
        format!("this is {found}, but must be {}", self.describe())
    }

    /// A value as it would be written, without quotes.
    pub(crate) fn show(self, scalar: &Scalar) -> String {
        let Scalar::Number(n) = scalar else {
            let Scalar::Word(word) = scalar else {
                return String::new();
            };
            return quote(word);
        };
        let n = *n;
        match self {
            Kind::Time => Nanos(n).to_string(),
            Kind::Bandwidth => GbPerSec(n).to_string(),
            Kind::Frequency => Gigahertz(n).to_string(),
            Kind::TransferRate => GigaTransfers(n).to_string(),
            Kind::Cycles => Cycles(n).to_string(),
            Kind::Size => show_size(n as u64),
            _ => n.to_string(),
        }
    }
}

/// A size in the largest unit that holds it exactly with at most three decimals.
fn show_size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    units
        .into_iter()
        .map(|(bits, unit)| (1_u64 << bits, unit))
        .find(|&(size, _)| bytes >= size && (bytes % size * 1000).is_multiple_of(size))
        .map_or_else(
            || format!("{bytes} B"),
            |(size, unit)| format!("{} {unit}", bytes as f64 / size as f64),
        )
}

/// The type of the model for one kind of value.
pub(crate) trait Parameter: Sized {
    const KIND: Kind;
    fn from_scalar(scalar: &Scalar) -> Option<Self>;
    fn to_scalar(&self) -> Scalar;
}

macro_rules! number_parameter {
    ($($type:ty, $kind:ident, $from:expr, $to:expr;)+) => {
        $(impl Parameter for $type {
            const KIND: Kind = Kind::$kind;
            fn from_scalar(scalar: &Scalar) -> Option<Self> {
                let from: fn(f64) -> $type = $from;
                match scalar {
                    Scalar::Number(n) => Some(from(*n)),
                    Scalar::Word(_) => None,
                }
            }
            fn to_scalar(&self) -> Scalar {
                let to: fn($type) -> f64 = $to;
                Scalar::Number(to(*self))
            }
        })+
    };
}

number_parameter! {
    u32, Count, |n| n as u32, f64::from;
    f64, Share, |n| n, |n| n;
    Nanos, Time, Nanos, Nanos::get;
    GbPerSec, Bandwidth, GbPerSec, GbPerSec::get;
    Gigahertz, Frequency, Gigahertz, Gigahertz::get;
    GigaTransfers, TransferRate, GigaTransfers, GigaTransfers::get;
    Cycles, Cycles, Cycles, Cycles::get;
    Bytes, Size, |n| Bytes(n as u64), |b| b.get() as f64;
}

macro_rules! word_parameter {
    ($($type:ty, $kind:ident;)+) => {
        $(impl Parameter for $type {
            const KIND: Kind = Kind::$kind;
            fn from_scalar(scalar: &Scalar) -> Option<Self> {
                match scalar {
                    Scalar::Word(word) => <$type>::ALL.into_iter().find(|x| x.name() == word),
                    Scalar::Number(_) => None,
                }
            }
            fn to_scalar(&self) -> Scalar {
                Scalar::Word(self.name().into())
            }
        })+
    };
}

word_parameter! {
    Media, Media;
    ControllerKind, Controller;
    ReadLimit, ReadLimit;
    Medium, Medium;
    Replacement, Replacement;
    WritePolicy, WritePolicy;
}

impl Parameter for String {
    const KIND: Kind = Kind::Microarchitecture;

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        match scalar {
            Scalar::Word(word) => Some(word.clone()),
            Scalar::Number(_) => None,
        }
    }

    fn to_scalar(&self) -> Scalar {
        Scalar::Word(self.clone())
    }
}
