//! Units as types: a latency never meets a bandwidth as a bare number.
//!
//! Bandwidth is decimal (1 GB/s = 10^9 bytes a second), capacity is binary (1 GiB = 2^30 bytes), as
//! the field prints them. Conversions that cross units are methods here and nowhere else.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Div, Mul, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes in one cache line, the unit of every memory request (CXL 1.1, SupMario §2).
pub const LINE_BYTES: u64 = 64;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(extend("x-unit" = $unit))]
        pub struct $name(pub f64);

        impl $name {
            /// The bare number, in this type's unit.
            pub fn get(self) -> f64 {
                self.0
            }

            /// The smaller of two quantities.
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// The larger of two quantities.
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match f.precision() {
                    Some(p) => write!(f, "{:.*} {}", p, self.0, $unit),
                    None => write!(f, "{} {}", self.0, $unit),
                }
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        /// The ratio of two quantities of one kind has no unit.
        impl Div<$name> for $name {
            type Output = f64;
            fn div(self, divisor: Self) -> f64 {
                self.0 / divisor.0
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                Self(items.map(|q| q.0).sum())
            }
        }
    };
}

quantity!(
    /// A duration in nanoseconds.
    Nanos, "ns"
);
quantity!(
    /// A bandwidth in GB/s, 10^9 bytes a second.
    GbPerSec, "GB/s"
);
quantity!(
    /// A clock frequency in GHz.
    Gigahertz, "GHz"
);
quantity!(
    /// A transfer rate in 10^9 transfers a second, of one lane or one data pin.
    GigaTransfers, "GT/s"
);
quantity!(
    /// Clock cycles of the clock that the context names.
    Cycles, "clk"
);

quantity!(
    /// Money in US dollars.
    Usd, "USD"
);

impl Nanos {
    /// From microseconds.
    pub fn from_micros(us: f64) -> Self {
        Self(us * 1e3)
    }

    /// In seconds.
    pub fn as_secs(self) -> f64 {
        self.0 / 1e9
    }
}

impl GbPerSec {
    /// The mean rate of `bytes` moved in `time`; zero time gives zero.
    pub fn from_bytes_in(bytes: Bytes, time: Nanos) -> Self {
        // Bytes per nanosecond and GB/s are the same number.
        if time.0 > 0.0 {
            Self(bytes.0 as f64 / time.0)
        } else {
            Self(0.0)
        }
    }

    /// The time one cache line takes at this rate.
    pub fn line_time(self) -> Nanos {
        Nanos(LINE_BYTES as f64 / self.0)
    }
}

impl Gigahertz {
    /// The length of `cycles` at this clock.
    pub fn time(self, cycles: Cycles) -> Nanos {
        Nanos(cycles.0 / self.0)
    }
}

/// A number of bytes.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
#[schemars(extend("x-unit" = "B"))]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` × 2^10 bytes.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` × 2^20 bytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` × 2^30 bytes.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The bare count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In GB of memory as it is sold, which are 2^30 bytes.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / (1u64 << 30) as f64
    }

    /// Whole cache lines in this many bytes, rounded down.
    pub const fn lines(self) -> u64 {
        self.0 / LINE_BYTES
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        Self(items.map(|b| b.0).sum())
    }
}

/// Binary and short: `48 KiB`, `2 MiB`, `13.8 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            n if n >= 1 << 40 => (1u64 << 40, "TiB"),
            n if n >= 1 << 30 => (1 << 30, "GiB"),
            n if n >= 1 << 20 => (1 << 20, "MiB"),
            n if n >= 1 << 10 => (1 << 10, "KiB"),
            _ => (1, "B"),
        };
        if self.0.is_multiple_of(divisor) {
            write!(f, "{} {unit}", self.0 / divisor)
        } else {
            write!(f, "{:.1} {unit}", self.0 as f64 / divisor as f64)
        }
    }
}

/// Why a piece of text is not the quantity that was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// No number at the front.
    #[error("`{text}` does not start with a number; write for example `{example}`")]
    NoNumber {
        /// What was read.
        text: String,
        /// A value that would do.
        example: &'static str,
    },
    /// A number without its unit.
    #[error("`{text}` has no unit; write for example `{example}`")]
    NoUnit {
        /// What was read.
        text: String,
        /// A value that would do.
        example: &'static str,
    },
    /// A unit of another kind of quantity, or none at all.
    #[error("`{unit}` is {found}, but {wanted} is wanted here; write for example `{example}`")]
    WrongUnit {
        /// The unit that was read.
        unit: String,
        /// What that unit measures.
        found: &'static str,
        /// What is wanted.
        wanted: &'static str,
        /// A value that would do.
        example: &'static str,
    },
    /// Negative, infinite, or beyond what the type can hold.
    #[error("`{text}` is out of range for {wanted}")]
    OutOfRange {
        /// What was read.
        text: String,
        /// What is wanted.
        wanted: &'static str,
    },
}

/// Splits `"214 ns"` into its number and its unit, both trimmed.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text
        .char_indices()
        .find(|&(i, c)| {
            let exponent_sign = matches!(c, '+' | '-')
                && i > 0
                && text.as_bytes()[i - 1].eq_ignore_ascii_case(&b'e');
            let exponent = c.eq_ignore_ascii_case(&'e')
                && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
            !(c.is_ascii_digit()
                || c == '.'
                || c == '_'
                || exponent
                || exponent_sign
                || (i == 0 && matches!(c, '+' | '-')))
        })
        .map_or(text.len(), |(i, _)| i);
    let number: f64 = text[..digits].replace('_', "").parse().ok()?;
    Some((number, text[digits..].trim()))
}

/// How a unit is compared: in lower case, except that `Gb/s` is bits and not bytes.
fn spelled(unit: &str) -> String {
    match unit {
        "Gb/s" | "Mb/s" | "Kb/s" | "Gib/s" | "Mib/s" => unit.to_owned(),
        _ => unit.to_ascii_lowercase(),
    }
}

/// What a unit measures, for the sentence that explains a wrong one.
fn kind_of(unit: &str) -> &'static str {
    match spelled(unit).as_str() {
        "Gb/s" | "Mb/s" | "Kb/s" | "Gib/s" | "Mib/s" => "bits a second, eight to a byte",
        "ps" | "ns" | "us" | "µs" | "ms" | "s" => "a time",
        "gb/s" | "mb/s" | "kb/s" | "gib/s" | "mib/s" => "a bandwidth",
        "hz" | "khz" | "mhz" | "ghz" => "a frequency",
        "mt/s" | "gt/s" => "a transfer rate",
        "clk" | "cycles" => "a number of cycles",
        "b" | "k" | "m" | "g" | "t" | "kib" | "mib" | "gib" | "tib" | "kb" | "mb" | "gb" | "tb" => {
            "a size"
        }
        "%" => "a share",
        _ => "not a unit that is known here",
    }
}

macro_rules! parse_quantity {
    ($name:ident, $wanted:literal, $example:literal, { $($unit:pat => $scale:expr),+ $(,)? }) => {
        impl FromStr for $name {
            type Err = ParseQuantityError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (number, unit) = split(text).ok_or_else(|| ParseQuantityError::NoNumber {
                    text: text.into(),
                    example: $example,
                })?;
                let scale: f64 = match spelled(unit).as_str() {
                    $($unit => $scale,)+
                    "" => return Err(ParseQuantityError::NoUnit {
                        text: text.into(),
                        example: $example,
                    }),
                    _ => return Err(ParseQuantityError::WrongUnit {
                        unit: unit.into(),
                        found: kind_of(unit),
                        wanted: $wanted,
                        example: $example,
                    }),
                };
                let value = number * scale;
                let is_one = value.is_finite() && value >= 0.0;
                let scaled = is_one.then(|| $name::from_scaled(value)).flatten();
                scaled.ok_or_else(|| ParseQuantityError::OutOfRange {
                    text: text.into(),
                    wanted: $wanted,
                })
            }
        }
    };
}

macro_rules! from_scaled {
    ($($name:ident),+) => {
        $(impl $name {
            fn from_scaled(value: f64) -> Option<Self> {
                Some(Self(value))
            }
        })+
    };
}
from_scaled!(GbPerSec, Gigahertz, GigaTransfers, Cycles);

impl Nanos {
    /// The longest time that text may name, a century: 64 bits count its nanoseconds.
    const LONGEST: f64 = 100.0 * 365.25 * 86_400.0 * 1e9;

    fn from_scaled(value: f64) -> Option<Self> {
        (value <= Self::LONGEST).then_some(Self(value))
    }
}

impl Bytes {
    fn from_scaled(value: f64) -> Option<Self> {
        // The first number that is none of 64 bits.
        (value < u64::MAX as f64).then(|| Self(value.round() as u64))
    }
}

parse_quantity!(Nanos, "a time", "214 ns", {
    "ps" => 1e-3, "ns" => 1.0, "us" | "µs" => 1e3, "ms" => 1e6, "s" => 1e9,
});
parse_quantity!(GbPerSec, "a bandwidth", "24 GB/s", {
    "gb/s" => 1.0, "mb/s" => 1e-3, "gib/s" => 1.073_741_824, "mib/s" => 1.048_576e-3,
});
parse_quantity!(Gigahertz, "a frequency", "2.1 GHz", { "ghz" => 1.0, "mhz" => 1e-3 });
parse_quantity!(GigaTransfers, "a transfer rate", "32 GT/s", { "gt/s" => 1.0, "mt/s" => 1e-3 });
parse_quantity!(Cycles, "a number of cycles", "14 clk", { "clk" | "cycles" => 1.0 });
// Capacities are binary whatever their spelling: a "48 KB" cache and a "128 GB" DIMM are 2^n bytes.
parse_quantity!(Bytes, "a size", "2 MiB", {
    "b" => 1.0,
    "k" | "kb" | "kib" => 1024.0,
    "m" | "mb" | "mib" => 1_048_576.0,
    "g" | "gb" | "gib" => 1_073_741_824.0,
    "t" | "tb" | "tib" => 1_099_511_627_776.0,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_bytes_per_nanosecond() {
        assert_eq!(
            GbPerSec::from_bytes_in(Bytes(64_000), Nanos(1000.0)),
            GbPerSec(64.0)
        );
        assert_eq!(
            GbPerSec::from_bytes_in(Bytes(64), Nanos(0.0)),
            GbPerSec(0.0)
        );
        assert_eq!(GbPerSec(32.0).line_time(), Nanos(2.0));
    }

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!("214 ns".parse(), Ok(Nanos(214.0)));
        assert_eq!("1.5us".parse(), Ok(Nanos(1500.0)));
        assert_eq!("24 GB/s".parse(), Ok(GbPerSec(24.0)));
        assert_eq!("4800 MT/s".parse(), Ok(GigaTransfers(4.8)));
        assert_eq!("13.8M".parse(), Ok(Bytes(14_470_349)));
        assert_eq!("1e3 ns".parse(), Ok(Nanos(1000.0)));
        assert_eq!("1_000 B".parse(), Ok(Bytes(1000)));
    }

    #[test]
    fn what_a_type_cannot_hold_is_out_of_range() {
        for text in ["1e30 GiB", "16777216 TiB", "-1 B"] {
            let wrong = text.parse::<Bytes>();
            assert!(
                matches!(wrong, Err(ParseQuantityError::OutOfRange { .. })),
                "{text}"
            );
        }
        for text in ["1e400 ns", "1e10 s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
        assert_eq!("8388608 TiB".parse(), Ok(Bytes(1 << 63)));
    }

    #[test]
    fn a_wrong_unit_is_explained_by_what_it_measures() {
        let error = "24 GB/s".parse::<Nanos>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`GB/s` is a bandwidth, but a time is wanted here; write for example `214 ns`"
        );
        assert!(
            "24".parse::<Nanos>()
                .unwrap_err()
                .to_string()
                .contains("no unit")
        );
        assert!(
            "fast"
                .parse::<Nanos>()
                .unwrap_err()
                .to_string()
                .contains("number")
        );
        assert!(
            "-3 ns"
                .parse::<Nanos>()
                .unwrap_err()
                .to_string()
                .contains("range")
        );
    }

    #[test]
    fn capacities_print_in_the_largest_whole_unit() {
        assert_eq!(Bytes::kib(48).to_string(), "48 KiB");
        assert_eq!(Bytes::mib(160).to_string(), "160 MiB");
        assert_eq!(Bytes(14_470_349).to_string(), "13.8 MiB");
        assert_eq!(Bytes(65).to_string(), "65 B");
    }
}
