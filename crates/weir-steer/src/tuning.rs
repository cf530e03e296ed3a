//! Constants that can be varied, so that a study can halve and double each one.

/// A number that can be halved and doubled.
pub(crate) trait Constant: Copy {
    /// The number, `by` times as large.
    fn times(self, by: f64) -> Self;
}

impl Constant for f64 {
    fn times(self, by: f64) -> Self {
        self * by
    }
}

impl Constant for u32 {
    fn times(self, by: f64) -> Self {
        (f64::from(self) * by).round().max(1.0) as u32
    }
}

/// The distance of a factor from 1, `by` times as large: 1.04 becomes 1.02 or 1.08, and 0.9 becomes 0.95 or
/// 0.8. Halving the factor itself would reverse its meaning.
pub(crate) fn margin(factor: f64, by: f64) -> f64 {
    1.0 + (factor - 1.0) * by
}

/// The number itself, `by` times as large.
pub(crate) fn plain<T: Constant>(value: T, by: f64) -> T {
    value.times(by)
}

/// A structure of constants, each with its value and the way in which it is varied ([`plain`] or [`margin`]).
macro_rules! constants {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$doc:meta])* $field:ident: $of:ty = $value:expr, $vary:ident;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $of,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $value,)+ }
            }
        }

        impl $name {
            /// The names of the constants.
            pub const NAMES: &[&str] = &[$(stringify!($field)),+];

            /// The same with one constant `by` times as large; of a factor near 1, its distance from 1. `None`
            /// if there is no constant of this name.
            pub fn varied(self, name: &str, by: f64) -> Option<Self> {
                match name {
                    $(stringify!($field) => Some(Self {
                        $field: $crate::tuning::$vary(self.$field, by),
                        ..self
                    }),)+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use constants;
