//! Reads the file and collects every mistake.

mod knee;
mod tenants;

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use toml_edit::{Item, TableLike, Value};
use weir_model::diagnostic::{Collector, closest, did_you_mean, quote};
use weir_model::recover;
use weir_model::units::{Bytes, Nanos};

use super::{Config, Known, LogConfig, Probing};
use crate::limit::Share;
use crate::registry::Policy;

/// A larger file is not a configuration.
const MOST_BYTES: usize = 1 << 20;

/// The keys of each table.
const TABLES: [(&str, &[&str]); 8] = [
    (
        "",
        &[
            "kind", "control", "tenants", "machine", "log", "status", "metrics", "journal",
        ],
    ),
    (
        "control",
        &[
            "controller",
            "window",
            "period",
            "floor_pct",
            "dwell",
            "silence",
            "isolated_cores",
            "probe",
        ],
    ),
    (
        "tenants",
        &[
            "protect",
            "restrain",
            "automatic",
            "exclude",
            "slow_pct",
            "least",
        ],
    ),
    (
        "machine",
        &[
            "from",
            "measured",
            "digest",
            "fast",
            "fast_loaded",
            "slow",
            "slow_read",
            "slow_write",
            "knee",
        ],
    ),
    ("log", &["path", "most", "keep"]),
    ("status", &["socket"]),
    ("metrics", &["listen", "anywhere"]),
    ("journal", &["folder"]),
];

/// Reads a file. A missing or wrong value becomes the default; a wrong one is reported.
pub(super) fn read(text: &str, mistakes: &mut Collector<'_>) -> Config {
    let mut config = Config::default();
    if text.len() > MOST_BYTES {
        mistakes.report(0..0, None, "the file is larger than 1 MiB", None);
        return config;
    }
    let Some(parsed) = recover::parse(text, mistakes) else {
        return config;
    };
    let root: &dyn TableLike = parsed.document.as_table();
    let mut file = File {
        root,
        is_whole: parsed.is_whole,
        mistakes,
    };
    file.refuse_others(&TABLES);
    file.expect_kind("steer", "this is not a steering file");
    file.control(&mut config);
    file.tenants(&mut config);
    config.known = file.machine();
    file.places(&mut config);
    config
}

/// Reads the values of a machine from a file of its own.
pub(super) fn read_machine(text: &str, mistakes: &mut Collector<'_>) -> Known {
    if text.len() > MOST_BYTES {
        mistakes.report(0..0, None, "the file is larger than 1 MiB", None);
        return Known::default();
    }
    let Some(parsed) = recover::parse(text, mistakes) else {
        return Known::default();
    };
    let mut file = File {
        root: parsed.document.as_table(),
        is_whole: parsed.is_whole,
        mistakes,
    };
    let [.., machine, _, _, _, _] = TABLES;
    file.refuse_others(&[("", &["kind", "machine"]), machine]);
    file.expect_kind("steer-machine", "this file does not describe a machine");
    let known = file.machine();
    if known.from.is_some() {
        let message = "a file that is named by another cannot name a third".to_owned();
        file.report(0..0, "machine.from", message, None);
    }
    known
}

struct File<'p, 't> {
    root: &'p dyn TableLike,
    is_whole: bool,
    mistakes: &'p mut Collector<'t>,
}

impl<'p> File<'p, '_> {
    fn table(&self, name: &str) -> Option<&'p dyn TableLike> {
        if name.is_empty() {
            return Some(self.root);
        }
        self.root.get(name)?.as_table_like()
    }

    fn report(&mut self, span: Range<usize>, key: &str, message: String, help: Option<String>) {
        self.mistakes.report(span, Some(key), message, help);
    }

    fn refuse_others(&mut self, tables: &[(&str, &[&str])]) {
        for &(name, keys) in tables {
            if let Some(item) = self.root.get(name)
                && item.as_table_like().is_none()
            {
                let span = item.span().unwrap_or(0..0);
                let message = format!("`{name}` is a table");
                self.report(span, name, message, Some(format!("write `[{name}]`")));
            }
            let Some(table) = self.table(name) else {
                continue;
            };
            for (key, item) in table.iter() {
                if keys.contains(&key) {
                    continue;
                }
                let span = table.get_key_value(key).and_then(|(key, _)| key.span());
                let span = span.or(item.span()).unwrap_or(0..0);
                let path = path(name, key);
                let message = format!("`{}` is not a key of a steering file", quote(&path));
                let help = did_you_mean(&closest(key, keys.iter().copied()));
                self.report(span, &path, message, help);
            }
        }
    }

    fn expect_kind(&mut self, kind: &str, other: &str) {
        let help = Some(format!("write `kind = \"{kind}\"`"));
        match self.root.get("kind").map(Item::as_str) {
            Some(Some(known)) if known == kind => {}
            Some(_) => {
                let span = self.root.get("kind").and_then(Item::span).unwrap_or(0..0);
                self.report(span, "kind", other.into(), help);
            }
            None if self.is_whole => self.report(0..0, "kind", "missing key `kind`".into(), help),
            None => {}
        }
    }

    /// A value, read by `read`; `None` if it is missing or wrong.
    fn value<T>(
        &mut self,
        table: &str,
        key: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        self.value_in(self.table(table)?, table, key, read)
    }

    /// The same, in one of several tables of a name.
    fn value_in<T>(
        &mut self,
        of: &dyn TableLike,
        table: &str,
        key: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let item = of.get(key)?;
        let read = match item.as_value() {
            Some(value) => read(value),
            None => Err("is a table, not a value".into()),
        };
        match read {
            Ok(value) => Some(value),
            Err(why) => {
                let path = path(table, key);
                let span = item.span().unwrap_or(0..0);
                self.report(span, &path, format!("`{path}` {why}"), None);
                None
            }
        }
    }

    fn time(&mut self, table: &str, key: &str, low: Nanos, high: Nanos) -> Option<Nanos> {
        self.value(table, key, |value| {
            let time: Nanos = quantity(value, "a time as in \"250 ms\"")?;
            if (low..=high).contains(&time) {
                return Ok(time);
            }
            Err(format!("must be between {low} and {high}"))
        })
    }

    fn number(&mut self, table: &str, key: &str, low: f64, high: f64) -> Option<f64> {
        self.value(table, key, |value| {
            let number = value.as_float().or(value.as_integer().map(|n| n as f64));
            let number = number.ok_or("is not a number")?;
            if (low..=high).contains(&number) {
                return Ok(number);
            }
            Err(format!("must be between {low} and {high}, not {number}"))
        })
    }

    fn path(&mut self, table: &str, key: &str) -> Option<PathBuf> {
        self.value(table, key, |value| match value.as_str() {
            Some(text) if text.starts_with('/') => Ok(PathBuf::from(text)),
            Some(_) => Err("must be an absolute path: a service has no working folder".into()),
            None => Err("is not a path in quotes".into()),
        })
    }

    fn control(&mut self, config: &mut Config) {
        let policy = self.value("control", "controller", |value| {
            let name = value.as_str().ok_or("is not text in quotes")?;
            Policy::named(name).ok_or_else(|| {
                let names = Policy::ALL.map(Policy::name);
                format!("knows {}, and not `{}`", names.join(", "), quote(name))
            })
        });
        let millisecond = Nanos(1e6);
        let window = self.time("control", "window", millisecond * 10.0, millisecond * 6e4);
        // The range that `cpu.max` accepts.
        let period = self.time("control", "period", millisecond, millisecond * 1e3);
        let floor = self.number("control", "floor_pct", 1.0, 100.0);
        let dwell = self.number("control", "dwell", 0.0, 1000.0);
        let silence = self.number("control", "silence", 1.0, 1000.0);
        let isolated = self.number("control", "isolated_cores", 0.01, 4096.0);
        let probe = self.value("control", "probe", |value| {
            let name = value.as_str().ok_or("is not text in quotes")?;
            Probing::named(name).ok_or_else(|| {
                let names = Probing::ALL.map(Probing::name);
                format!("knows {}, and not `{}`", names.join(", "), quote(name))
            })
        });
        config.policy = policy.unwrap_or(config.policy);
        config.window = window.unwrap_or(config.window);
        config.period = period.unwrap_or(config.period);
        config.isolated = isolated.unwrap_or(config.isolated);
        config.probe = probe.unwrap_or(config.probe);
        let bounds = &mut config.bounds;
        bounds.floor = floor.map_or(bounds.floor, |percent| Share::of(percent / 100.0));
        bounds.dwell = dwell.map_or(bounds.dwell, |n| n as u32);
        bounds.silence = silence.map_or(bounds.silence, |n| n as u32);
    }

    fn machine(&mut self) -> Known {
        let words = |value: &Value| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| "is not text in quotes".into())
        };
        let mut residency = |key| self.time("machine", key, Nanos(1.0), Nanos(1e6));
        let known = Known {
            fast: residency("fast"),
            fast_loaded: residency("fast_loaded"),
            slow: residency("slow"),
            slow_read: residency("slow_read"),
            slow_write: residency("slow_write"),
            ..Known::default()
        };
        Known {
            from: self.path("machine", "from"),
            measured: self.value("machine", "measured", words),
            digest: self.value("machine", "digest", words),
            knees: knee::all(self),
            ..known
        }
    }

    fn places(&mut self, config: &mut Config) {
        let log = self.path("log", "path");
        let most = self.value("log", "most", |value| {
            let most: Bytes = quantity(value, "a size as in \"16 MiB\"")?;
            match (Bytes::kib(64)..=Bytes::gib(16)).contains(&most) {
                true => Ok(most),
                false => Err("must be between 64 KiB and 16 GiB".into()),
            }
        });
        let keep = self.number("log", "keep", 0.0, 100.0);
        config.log = log.map(|path| {
            let usual = LogConfig::at(path);
            LogConfig {
                most: most.unwrap_or(usual.most),
                keep: keep.map_or(usual.keep, |n| n as u32),
                path: usual.path,
            }
        });
        let socket = self.path("status", "socket");
        config.socket = socket.unwrap_or_else(|| config.socket.clone());
        let folder = self.path("journal", "folder");
        config.journal = folder.unwrap_or_else(|| config.journal.clone());
        self.metrics(config);
    }

    fn metrics(&mut self, config: &mut Config) {
        let anywhere = self.value("metrics", "anywhere", |value| {
            value.as_bool().ok_or_else(|| "is not true or false".into())
        });
        let anywhere = anywhere.unwrap_or(false);
        let listen = self.value("metrics", "listen", |value| {
            let text = value.as_str().ok_or("is not an address in quotes")?;
            let address: SocketAddr = (text.parse()).map_err(|_| {
                format!(
                    "is an address and a port as in \"127.0.0.1:9464\", not `{}`",
                    quote(text)
                )
            })?;
            if address.ip().is_loopback() || anywhere {
                return Ok(address);
            }
            Err("can be reached from other machines; add `anywhere = true` to allow that".into())
        });
        let asked = self.root.get("metrics").is_some();
        config.metrics = listen.or(asked.then(Config::usual_metrics));
    }
}

/// A size of memory.
fn size(value: &Value) -> Result<Bytes, String> {
    quantity(value, "a size as in \"64 MiB\"")
}

fn path(table: &str, key: &str) -> String {
    if table.is_empty() {
        return key.to_owned();
    }
    format!("{table}.{key}")
}

fn quantity<Q: FromStr<Err: std::fmt::Display>>(value: &Value, form: &str) -> Result<Q, String> {
    let text = value.as_str().ok_or_else(|| format!("is {form}"))?;
    quote(text)
        .parse()
        .map_err(|why| format!("is {form}: {why}"))
}
