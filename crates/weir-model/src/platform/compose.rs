//! Expressions that put a machine together: `emr2s+2xcxl-a+cxl-b@remote`.

use super::assemble::Definition;
use super::library::Library;
use super::{Attached, Device, Host, Platform};
use crate::diagnostic::{closest, did_you_mean, quote};

/// CXL devices that one machine can have here.
const MOST_DEVICES: usize = 8;

/// Expressions longer than this are not worth reading.
const LONGEST: usize = 512;

/// Why an expression names no machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// Nothing was written, or nothing between two `+`.
    #[error("`{expression}` names nothing{place}; write for example `emr2s+cxl-a`")]
    Empty {
        /// The expression.
        expression: String,
        /// Where, if only a part is empty.
        place: &'static str,
    },
    /// Longer than any machine needs.
    #[error("the platform expression has {length} characters, but at most {LONGEST} are read")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// A name that is not known.
    #[error("no platform or device is called `{name}`; {help}")]
    Unknown {
        /// The name.
        name: String,
        /// What was perhaps meant, or what there is.
        help: String,
    },
    /// A host's own device that is not known.
    #[error(
        "`{host}` comes with `{name}`, but no device is called so; name its devices, or `+none`"
    )]
    UnknownDefault {
        /// The host.
        host: String,
        /// The device in its `default_devices`.
        name: String,
    },
    /// What stands behind `@` is not known.
    #[error("`@{place}` is no place for a device; `@remote` puts it on the other socket")]
    UnknownPlace {
        /// What was written.
        place: String,
    },
    /// Only devices.
    #[error("`{expression}` names no host; put one first, such as `{example}+{expression}`")]
    NoHost {
        /// The expression.
        expression: String,
        /// A host that there is.
        example: String,
    },
    /// More than one host.
    #[error("`{first}` and `{second}` are both hosts; a machine has one")]
    TwoHosts {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A count or a place with a host or with `none`.
    #[error("`{term}` makes no sense: only devices take a count or a place")]
    NotADevice {
        /// As written.
        term: String,
    },
    /// `none` beside devices.
    #[error("`{expression}` asks for no device and for devices")]
    NoneAndSome {
        /// The expression.
        expression: String,
    },
    /// A count of zero, or more devices than there can be.
    #[error("{count} devices are asked for; a machine has 1 to {MOST_DEVICES}, or `+none`")]
    Count {
        /// How many.
        count: String,
    },
    /// `@remote` where there is no other socket.
    #[error("`{host}` has one socket, so `{device}` cannot be on another; leave `@remote` out")]
    NoOtherSocket {
        /// The host.
        host: String,
        /// The device.
        device: String,
    },
    /// `@remote` for a device that was never measured so.
    #[error(
        "how fast `{device}` is from another socket was never measured, or its file leaves it out; \
         give `remote_idle` and `remote_read` in the device's file"
    )]
    NotMeasuredRemotely {
        /// The device.
        device: String,
    },
}

/// `2xcxl-a` into 2 and `cxl-a`; `None` without a count.
pub(super) fn split_count(term: &str) -> Option<(&str, &str)> {
    let (count, name) = term.split_once('x')?;
    let is_count = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    is_count.then_some((count, name))
}

impl Library {
    /// Puts a machine together.
    ///
    /// The expression names one host and any number of devices, joined by `+`: `2xcxl-a` is two of
    /// them, `cxl-a@remote` hangs on the other socket, `none` leaves out the devices that the host
    /// comes with.
    ///
    /// # Errors
    /// The expression is malformed, names something unknown, or asks for what cannot be.
    pub fn compose(&self, expression: &str) -> Result<Platform, ComposeError> {
        let length = expression.chars().count();
        if length > LONGEST {
            return Err(ComposeError::TooLong { length });
        }
        let expression = expression.trim();
        let empty = |place| ComposeError::Empty {
            expression: quote(expression),
            place,
        };
        if expression.is_empty() {
            return Err(empty(""));
        }
        let mut host: Option<&Host> = None;
        let mut devices: Vec<(&Device, bool)> = Vec::new();
        let mut none = false;
        for term in expression.split('+').map(str::trim) {
            if term.is_empty() {
                return Err(empty(" beside a `+`"));
            }
            let (name, place) = match term.split_once('@') {
                Some((name, place)) => (name, Some(place)),
                None => (term, None),
            };
            let (count, name) = match split_count(name) {
                Some((count, name)) => (Some(count), name),
                None => (None, name),
            };
            let bare = count.is_none() && place.is_none();
            let not_a_device = || ComposeError::NotADevice { term: quote(term) };
            if name == "none" {
                none = true;
                if !bare {
                    return Err(not_a_device());
                }
                continue;
            }
            match self.get(name) {
                Some(Definition::Host(_)) if !bare => return Err(not_a_device()),
                Some(Definition::Host(second)) => {
                    if let Some(first) = host.replace(second) {
                        return Err(ComposeError::TwoHosts {
                            first: first.name.clone(),
                            second: second.name.clone(),
                        });
                    }
                }
                Some(Definition::Device(device)) => {
                    let remote = match place {
                        None | Some("local") => false,
                        Some("remote") => true,
                        Some(place) => {
                            return Err(ComposeError::UnknownPlace {
                                place: quote(place),
                            });
                        }
                    };
                    let count = count_of(count)?;
                    devices.extend(std::iter::repeat_n((&**device, remote), count));
                }
                None => return Err(self.unknown(name)),
            }
        }
        let Some(host) = host else {
            return Err(ComposeError::NoHost {
                expression: quote(expression),
                example: self.an_example_host(),
            });
        };
        if none && !devices.is_empty() {
            return Err(ComposeError::NoneAndSome {
                expression: quote(expression),
            });
        }
        if devices.is_empty() && !none {
            for name in &host.default_devices {
                match self.get(name) {
                    Some(Definition::Device(device)) => devices.push((device, false)),
                    _ => {
                        return Err(ComposeError::UnknownDefault {
                            host: host.name.clone(),
                            name: quote(name),
                        });
                    }
                }
            }
        }
        if devices.len() > MOST_DEVICES {
            return Err(ComposeError::Count {
                count: devices.len().to_string(),
            });
        }
        let devices = devices
            .into_iter()
            .map(|(device, remote)| attach(host, device, remote))
            .collect::<Result<_, _>>()?;
        Ok(Platform {
            name: expression.to_string(),
            host: host.clone(),
            devices,
        })
    }

    fn unknown(&self, name: &str) -> ComposeError {
        let names: Vec<&str> = self.list().iter().map(|d| d.name()).collect();
        let help = did_you_mean(&closest(name, names.iter().copied()))
            .unwrap_or_else(|| format!("there are {}", names.join(", ")));
        ComposeError::Unknown {
            name: quote(name),
            help,
        }
    }

    fn an_example_host(&self) -> String {
        self.list()
            .first()
            .map_or_else(|| "emr2s".into(), |d| d.name().to_string())
    }
}

fn count_of(count: Option<&str>) -> Result<usize, ComposeError> {
    match count.map(str::parse) {
        None => Ok(1),
        Some(Ok(n)) if (1..=MOST_DEVICES).contains(&n) => Ok(n),
        Some(_) => Err(ComposeError::Count {
            count: quote(count.unwrap_or_default()),
        }),
    }
}

fn attach(host: &Host, device: &Device, remote: bool) -> Result<Attached, ComposeError> {
    if remote && host.sockets.value < 2 {
        return Err(ComposeError::NoOtherSocket {
            host: host.name.clone(),
            device: device.name.clone(),
        });
    }
    let measured = &device.measured;
    if remote && (measured.remote_idle.is_none() || measured.remote_read.is_none()) {
        return Err(ComposeError::NotMeasuredRemotely {
            device: device.name.clone(),
        });
    }
    Ok(Attached {
        device: device.clone(),
        remote,
    })
}
