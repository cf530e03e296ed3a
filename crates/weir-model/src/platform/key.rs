//! A key of a platform file, and the kinds of file.

use super::scalar::{Kind, Scalar};
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
}
