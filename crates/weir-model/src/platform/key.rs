//! The declaration of a key of a platform file, and the kinds of file.
//!
//! A key is declared once, by [`keys!`]: its field, type, path, example, bounds and meaning, and the machines
//! for which it matters. Reading, checks, parameter rows, digests and `docs/platforms.md` all use that
//! declaration.

use std::sync::LazyLock;

use super::assemble::Values;
use super::parameters::Rows;
use super::scalar::{Kind, Scalar};
use super::{Device, Host, StorageDevice};
use crate::diagnostic::quote;
use crate::toml::{Field, known};

/// Whether a file must have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every file of the kind must have it.
    Required,
    /// The defaults give it where a file leaves it out.
    Defaulted,
    /// It may be absent.
    Optional,
    /// It is calculated from other keys where a file leaves it out.
    Derived,
}

/// The machines for which a key matters. Where it does not matter, it is neither shown nor in the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Every machine.
    Always,
    /// Machines with several devices that are one tier.
    Interleaved,
    /// Machines with the device on the other socket.
    Remote,
    /// Machines with the device on the other socket, where its latency from there was not measured.
    RemoteUnmeasured,
    /// Machines with a device behind the switch.
    Switch,
    /// Machines with a storage device.
    Storage,
}

/// One key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The dotted path in the file: `core.count`.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Lowest and highest possible value, in the unit of the kind; `None` for words.
    pub bounds: Option<(f64, f64)>,
    /// Whether a file must have it.
    pub need: Need,
    /// The machines for which it matters.
    pub when: When,
    /// A possible value, without quotes.
    pub example: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Key {
    /// The part after the last dot.
    pub fn last(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The example as it is written in a file: `"240 ns"`.
    pub fn written_example(&self) -> String {
        self.kind.written(self.example)
    }

    /// Reads a value within the bounds of the key. `None` after a mistake.
    pub(crate) fn read(&self, field: &Field<'_>) -> Option<Scalar> {
        let help = format!(
            "write for example `{} = {}`",
            self.last(),
            self.written_example()
        );
        let Some(value) = field.value() else {
            let message = format!("`{}` must be a value", field.path());
            field.report(message, Some(help));
            return None;
        };
        match self.kind.read(value) {
            Ok(scalar) => {
                let wrong = self.out_of_bounds(&scalar, field.path());
                let Some((message, help)) = wrong else {
                    return Some(scalar);
                };
                field.report(message, Some(help));
            }
            Err(message) => {
                // The help has an example of this very key.
                let short = message.split("; write for example").next();
                let short = short.unwrap_or_default();
                let message = match short.strip_prefix("this is ") {
                    Some(found) => format!("`{}` is {found}", field.path()),
                    None => format!("`{}`: {short}", field.path()),
                };
                field.report(message, Some(help));
            }
        }
        None
    }

    /// What is wrong with a value of the key at `path`, and what to do; `None` where it is possible.
    pub(crate) fn out_of_bounds(&self, scalar: &Scalar, path: &str) -> Option<(String, String)> {
        let shown = |n: f64| self.kind.show(&Scalar::Number(n));
        match (scalar, self.bounds, self.kind.words()) {
            (Scalar::Number(n), Some((low, high)), _) if !(low..=high).contains(n) => Some((
                format!("`{path}` cannot be {}", shown(*n)),
                format!("it must be between {} and {}", shown(low), shown(high)),
            )),
            (Scalar::Word(word), _, Some(words)) if !words.contains(&word.as_str()) => Some((
                format!(
                    "`{}` is not {} that is known",
                    quote(word),
                    self.kind.describe()
                ),
                known(word, &words),
            )),
            _ => None,
        }
    }
}

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

crate::named! {
    /// What a file describes.
    pub enum FileKind {
        /// A server.
        Host = "host",
        /// A CXL device.
        Device = "cxl",
        /// A storage device.
        Storage = "ssd",
        /// What hosts of one microarchitecture, or all hosts, have in common.
        HostDefaults = "host-defaults",
        /// What devices with one kind of controller, or all devices, have in common.
        DeviceDefaults = "cxl-defaults",
    }
}

fn keys_of<G: Group>() -> Vec<Key> {
    let mut keys = Vec::new();
    G::add_keys(&mut keys);
    keys
}

static HOST_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<Host>);
static DEVICE_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<Device>);
static STORAGE_KEYS: LazyLock<Vec<Key>> = LazyLock::new(keys_of::<StorageDevice>);

impl FileKind {
    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            FileKind::Host => "a host",
            FileKind::Device => "a CXL device",
            FileKind::Storage => "a storage device",
            FileKind::HostDefaults => "the defaults of hosts",
            FileKind::DeviceDefaults => "the defaults of CXL devices",
        }
    }

    /// Its keys, in the order of the reference.
    pub fn keys(self) -> &'static [Key] {
        match self {
            FileKind::Host | FileKind::HostDefaults => &HOST_KEYS,
            FileKind::Device | FileKind::DeviceDefaults => &DEVICE_KEYS,
            FileKind::Storage => &STORAGE_KEYS,
        }
    }

    /// The key of this path.
    pub(crate) fn key(self, path: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.path == path)
    }

    /// The sections that its keys form.
    pub(crate) fn sections(self) -> impl Iterator<Item = &'static str> {
        let section = |key: &'static Key| Some(key.path.rsplit_once('.')?.0);
        self.keys().iter().filter_map(section)
    }
}
