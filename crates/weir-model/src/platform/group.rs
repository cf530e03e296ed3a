//! Groups of keys as structs.
//!
//! A key is declared once, by [`keys!`]: its field, type, path, example, bounds and meaning, and the machines
//! for which it matters. Reading, checks, parameter rows, digests and `docs/platforms.md` all use that
//! declaration.

use schemars::JsonSchema;
use serde::Serialize;

use super::key::{Key, When};
use super::scalar::{Parameter, Scalar};
use super::source_file::Values;
use super::{Provenance, Sourced};

/// A group of keys as a struct.
pub(crate) trait Group: Sized {
    /// Adds its keys, in the order of the reference.
    fn add_keys(keys: &mut Vec<Key>);
    /// Takes it from a file and its defaults; `None` where a key that it needs is not there.
    fn take(values: &Values<'_>) -> Option<Self>;
    /// Adds a row for each key that has a value.
    fn add_rows(&self, rows: &mut Rows);
}

/// Declares groups of keys as structs.
///
/// A field is `name: FORM TYPE = "path", "example", LOW to HIGH, when WHEN;` where FORM is `required`,
/// `defaulted`, `derived`, `optional` (an `Option`), or `paired` (of a group that may be absent). `group` is a
/// struct of further keys, `maybe` one that may be absent, `header` something that is not a key.
macro_rules! keys {
    (@type header $type:ty) => { $type };
    (@type group $type:ty) => { $type };
    (@type maybe $type:ty) => { Option<$type> };
    (@type optional $type:ty) => { Option<$crate::platform::Sourced<$type>> };
    (@type $form:ident $type:ty) => { $crate::platform::Sourced<$type> };

    (@need required) => { $crate::platform::Need::Required };
    (@need defaulted) => { $crate::platform::Need::Defaulted };
    (@need derived) => { $crate::platform::Need::Derived };
    (@need $form:ident) => { $crate::platform::Need::Optional };

    (@when) => { $crate::platform::When::Always };
    (@when $when:ident) => { $crate::platform::When::$when };

    (@bounds) => { None };
    (@bounds $low:literal $high:literal) => { Some(($low as f64, $high as f64)) };

    (@keys $keys:ident [$doc:expr] header $type:ty) => {};
    (@keys $keys:ident [$doc:expr] group $type:ty) => { <$type as $crate::platform::Group>::add_keys($keys) };
    (@keys $keys:ident [$doc:expr] maybe $type:ty) => { <$type as $crate::platform::Group>::add_keys($keys) };
    (@keys $keys:ident [$doc:expr] $form:ident $type:ty = $path:literal, $example:literal [$($bounds:tt)*] [$($when:tt)*]) => {
        $keys.push($crate::platform::Key {
            path: $path,
            kind: <$type as $crate::platform::Parameter>::KIND,
            bounds: $crate::platform::keys!(@bounds $($bounds)*),
            need: $crate::platform::keys!(@need $form),
            when: $crate::platform::keys!(@when $($when)*),
            example: $example,
            meaning: $doc.trim_ascii_start(),
        })
    };

    (@take $values:ident $field:ident header) => { $values.file().$field.clone() };
    (@take $values:ident $field:ident group) => { $crate::platform::Group::take($values)? };
    (@take $values:ident $field:ident maybe) => { $crate::platform::Group::take($values) };
    (@take $values:ident $field:ident optional $path:literal) => { $values.get($path) };
    (@take $values:ident $field:ident $form:ident $path:literal) => { $values.get($path)? };

    (@rows $rows:ident $value:expr, header) => {};
    (@rows $rows:ident $value:expr, group) => { $crate::platform::Group::add_rows($value, $rows) };
    (@rows $rows:ident $value:expr, maybe) => {
        if let Some(group) = $value { $crate::platform::Group::add_rows(group, $rows) }
    };
    (@rows $rows:ident $value:expr, optional $key:expr) => {
        if let Some(value) = $value { $rows.add($key, value) }
    };
    (@rows $rows:ident $value:expr, $form:ident $key:expr) => { $rows.add($key, $value) };

    ($($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident: $form:ident $type:ty
            $(= $path:literal, $example:literal $(, $low:literal to $high:literal)? $(, when $when:ident)?)?;)+
    })+) => {$(
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $crate::platform::keys!(@type $form $type),)+
        }

        impl $crate::platform::Group for $name {
            fn add_keys(keys: &mut Vec<$crate::platform::Key>) {
                $($crate::platform::keys!(@keys keys [concat!($($doc),+)] $form $type
                    $(= $path, $example [$($low $high)?] [$($when)?])?);)+
            }

            fn take(values: &$crate::platform::Values<'_>) -> Option<Self> {
                Some(Self {
                    $($field: $crate::platform::keys!(@take values $field $form $($path)?),)+
                })
            }

            fn add_rows(&self, rows: &mut $crate::platform::Rows) {
                $($crate::platform::keys!(@rows rows &self.$field, $form $($path)?);)+
            }
        }
    )+};
}

pub(crate) use keys;

/// One parameter with its value and where that comes from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ParameterRow {
    /// The tier or part it belongs to: the host's name, or `cxl0: cxl-a`.
    pub part: String,
    /// The dotted key, as in the file.
    pub key: String,
    /// The value with its unit.
    pub value: String,
    /// What the key means.
    pub meaning: String,
    /// Where the value comes from.
    pub provenance: Provenance,
    /// The machines for which the value matters.
    #[serde(skip)]
    pub(super) when: When,
    /// The bare value, for the digest.
    #[serde(skip)]
    pub(super) scalar: Scalar,
}

impl ParameterRow {
    /// Whether the value has no public source.
    pub fn is_assumed(&self) -> bool {
        matches!(self.provenance, Provenance::Assumed { .. })
    }
}

/// Collects the rows of one part.
pub(crate) struct Rows {
    keys: &'static [Key],
    part: String,
    rows: Vec<ParameterRow>,
}

impl Rows {
    pub(super) fn of(keys: &'static [Key], part: String, group: &impl Group) -> Vec<ParameterRow> {
        let rows = Vec::new();
        let mut rows = Self { keys, part, rows };
        group.add_rows(&mut rows);
        rows.rows
    }

    pub(crate) fn add<T: Parameter>(&mut self, path: &str, sourced: &Sourced<T>) {
        let key = self.keys.iter().find(|key| key.path == path);
        let scalar = sourced.value.to_scalar();
        self.rows.push(ParameterRow {
            part: self.part.clone(),
            key: path.to_string(),
            value: T::KIND.show(&scalar),
            meaning: key.map_or("", |key| key.meaning).into(),
            provenance: sourced.provenance.clone(),
            when: key.map_or(When::Always, |key| key.when),
            scalar,
        });
    }
}
