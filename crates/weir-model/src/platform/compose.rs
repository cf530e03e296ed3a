//! Expressions that put a machine together: `emr2s+2xcxl-a+cxl-b@remote`.

use super::definition::Definition;
use super::library::{Library, split_count};
use super::{Attached, Device, Host, Place, Platform, Ports, StorageDevice};
use crate::diagnostic::{closest, did_you_mean, quote};

/// CXL devices that one machine can have here, and storage devices.
const MOST_DEVICES: usize = 8;

/// Hosts that one machine can have here.
const MOST_HOSTS: u32 = 8;

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
    /// The word after `@` is not known.
    #[error(
        "`@{place}` is no place for a device; `@remote` puts it on the other socket, `@switch` behind \
         a switch, `@logical` gives it one port for all hosts, and `@interleaved` makes several one tier"
    )]
    UnknownPlace {
        /// What was written.
        place: String,
    },
    /// A word that is no place, twice.
    #[error("`{term}` says `@{word}` twice; leave one out")]
    WordTwice {
        /// As written.
        term: String,
        /// The word.
        word: String,
    },
    /// Two places at once, or one twice.
    #[error("`{term}` has two places; a device is on this socket, `@remote` or `@switch`")]
    TwoPlaces {
        /// As written.
        term: String,
    },
    /// Interleaving over a number that no decoder can.
    #[error(
        "`{term}` interleaves {count}; HDM decoders interleave 2, 4 or 8 devices, such as \
         `2x{device}@interleaved`"
    )]
    Ways {
        /// As written.
        term: String,
        /// How many, in words.
        count: String,
        /// The device.
        device: String,
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
    /// A place with a host, or a count or a place with `none`.
    #[error(
        "`{term}` makes no sense: only devices take a place, and only devices and hosts a count"
    )]
    NotADevice {
        /// As written.
        term: String,
    },
    /// A count of zero hosts, or of more than there can be.
    #[error("{count} hosts are asked for; a machine has 1 to {MOST_HOSTS}")]
    Hosts {
        /// How many.
        count: String,
    },
    /// Several hosts whose slices are in sub-NUMA clusters.
    #[error(
        "`{host}` has sub-NUMA clusters; several hosts are modelled without them only. Name one host, or one \
         without clusters"
    )]
    ClusteredHosts {
        /// The host.
        host: String,
    },
    /// `@logical` without `@switch`.
    #[error(
        "`{term}` is not behind a switch, which divides a port among hosts; write `{device}@switch@logical`"
    )]
    NoSwitch {
        /// As written.
        term: String,
        /// The device.
        device: String,
    },
    /// `none` together with devices.
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
    /// A place for a storage device.
    #[error(
        "`{device}` is on the threads' own socket; `@{place}` is for CXL devices, leave it out"
    )]
    StoragePlace {
        /// The storage device.
        device: String,
        /// The word after its `@`.
        place: String,
    },
    /// `@remote` where there is no other socket.
    #[error("`{host}` has one socket, so `{device}` cannot be on another; leave `@remote` out")]
    NoOtherSocket {
        /// The host.
        host: String,
        /// The device.
        device: String,
    },
    /// `@remote` where nothing is known of the way there.
    #[error(
        "how wide the socket link of `{host}` is was never measured, or its file leaves it out; give \
         `remote.idle` and `remote.read` in the host's file"
    )]
    NoSocketLink {
        /// The host.
        host: String,
    },
}

impl Library {
    /// Puts a machine together.
    ///
    /// The expression names one host and any number of devices, joined by `+`: `2xcxl-a` is two of
    /// them and two tiers, `2xcxl-a@interleaved` two and one tier, `cxl-a@remote` is on the other
    /// socket, `cxl-a@switch` behind a switch, `ssd-nvme4` is a storage device, and `none` leaves out
    /// the devices that the host comes with. `2xemr2s` is two hosts: each has devices of its own, but
    /// one `cxl-a@switch` is shared, by a port for each host, or with `@switch@logical` by one port.
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
        let mut devices: Vec<Attached> = Vec::new();
        let mut storage: Vec<StorageDevice> = Vec::new();
        let (mut none, mut hosts) = (false, 1);
        for term in expression.split('+').map(str::trim) {
            if term.is_empty() {
                return Err(empty(" next to a `+`"));
            }
            let mut parts = term.split('@');
            let name = parts.next().unwrap_or_default();
            let places: Vec<&str> = parts.collect();
            let (count, name) = match split_count(name) {
                Some((count, name)) => (Some(count), name),
                None => (None, name),
            };
            let bare = count.is_none() && places.is_empty();
            let not_a_device = || ComposeError::NotADevice { term: quote(term) };
            if name == "none" {
                none = true;
                if !bare {
                    return Err(not_a_device());
                }
                continue;
            }
            match self.get(name) {
                Some(Definition::Host(_)) if !places.is_empty() => return Err(not_a_device()),
                Some(Definition::Host(second)) => {
                    hosts = number_of_hosts(count)?;
                    if let Some(first) = host.replace(second) {
                        return Err(ComposeError::TwoHosts {
                            first: first.name.clone(),
                            second: second.name.clone(),
                        });
                    }
                }
                Some(Definition::Device(device)) => {
                    let count = count_of(count)?;
                    devices.extend(attached(device, count, &places, term)?);
                }
                Some(Definition::Storage(device)) => {
                    if let Some(place) = places.first() {
                        return Err(ComposeError::StoragePlace {
                            device: device.name.clone(),
                            place: quote(place),
                        });
                    }
                    let count = count_of(count)?;
                    storage.extend(std::iter::repeat_n(device.as_ref().clone(), count));
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
        if none && !(devices.is_empty() && storage.is_empty()) {
            return Err(ComposeError::NoneAndSome {
                expression: quote(expression),
            });
        }
        if !none {
            // Naming a device leaves out the host's own of that kind.
            let (own_devices, own_storage) = (devices.is_empty(), storage.is_empty());
            for name in &host.default_devices {
                match self.get(name) {
                    Some(Definition::Device(device)) => {
                        devices.extend(own_devices.then(|| alone(device, Place::Local)));
                    }
                    Some(Definition::Storage(device)) => {
                        storage.extend(own_storage.then(|| device.as_ref().clone()));
                    }
                    // What it would have been is named instead, perhaps.
                    _ if !(own_devices && own_storage) => {}
                    _ => {
                        return Err(ComposeError::UnknownDefault {
                            host: host.name.clone(),
                            name: quote(name),
                        });
                    }
                }
            }
        }
        let count: u32 = devices.iter().map(|d| d.ways).sum();
        for count in [count as usize, storage.len()] {
            if count > MOST_DEVICES {
                return Err(ComposeError::Count {
                    count: count.to_string(),
                });
            }
        }
        if hosts > 1 && host.uncore.clusters.value > 1 {
            return Err(ComposeError::ClusteredHosts {
                host: host.name.clone(),
            });
        }
        for remote in devices.iter().filter(|d| d.is_remote()) {
            check_other_socket(host, &remote.device)?;
        }
        Ok(Platform {
            name: expression.to_string(),
            hosts,
            host: host.clone(),
            devices,
            storage,
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

    /// The host of the examples in help and pages, or the first where a library has it not.
    fn an_example_host(&self) -> String {
        const USUAL: &str = "emr2s";
        match (self.get(USUAL), self.list().first()) {
            (None, Some(first)) => first.name().to_string(),
            _ => USUAL.to_string(),
        }
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

fn number_of_hosts(count: Option<&str>) -> Result<u32, ComposeError> {
    match count.map(str::parse) {
        None => Ok(1),
        Some(Ok(n)) if (1..=MOST_HOSTS).contains(&n) => Ok(n),
        Some(_) => Err(ComposeError::Hosts {
            count: quote(count.unwrap_or_default()),
        }),
    }
}

/// One device, a tier of its own.
fn alone(device: &Device, place: Place) -> Attached {
    Attached {
        device: device.clone(),
        ways: 1,
        place,
        ports: Ports::default(),
    }
}

/// The tiers of `count` devices at the places in `words`, each of which comes after an `@`.
fn attached(
    device: &Device,
    count: usize,
    words: &[&str],
    term: &str,
) -> Result<Vec<Attached>, ComposeError> {
    let mut place = None;
    let (mut interleaved, mut ports) = (false, Ports::default());
    for word in words {
        let here = match *word {
            "local" => Place::Local,
            "remote" => Place::Remote,
            "switch" => Place::Switch,
            "interleaved" if !interleaved => {
                interleaved = true;
                continue;
            }
            "logical" if ports != Ports::MultiLogical => {
                ports = Ports::MultiLogical;
                continue;
            }
            "interleaved" | "logical" => {
                return Err(ComposeError::WordTwice {
                    term: quote(term),
                    word: (*word).to_owned(),
                });
            }
            word => return Err(ComposeError::UnknownPlace { place: quote(word) }),
        };
        if place.replace(here).is_some() {
            return Err(ComposeError::TwoPlaces { term: quote(term) });
        }
    }
    let one = Attached {
        ports,
        ..alone(device, place.unwrap_or(Place::Local))
    };
    if ports == Ports::MultiLogical && one.place != Place::Switch {
        return Err(ComposeError::NoSwitch {
            term: quote(term),
            device: device.name.clone(),
        });
    }
    if !interleaved {
        return Ok(vec![one; count]);
    }
    if count < 2 || !count.is_power_of_two() {
        return Err(ComposeError::Ways {
            term: quote(term),
            count: if count == 1 {
                "one device".into()
            } else {
                format!("{count} devices")
            },
            device: device.name.clone(),
        });
    }
    Ok(vec![Attached {
        ways: count as u32,
        ..one
    }])
}

/// Refuses a device on the other socket of a host that has none, or none that is known.
fn check_other_socket(host: &Host, device: &Device) -> Result<(), ComposeError> {
    if host.sockets.value < 2 {
        return Err(ComposeError::NoOtherSocket {
            host: host.name.clone(),
            device: device.name.clone(),
        });
    }
    if host.remote.is_none() {
        return Err(ComposeError::NoSocketLink {
            host: host.name.clone(),
        });
    }
    Ok(())
}
