//! VMs that are values: they outlive managers, behave in some manner, and write into the pool's file.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use serde_json::{Value, json};
use weir_linux::vm::qmp::{Event, QmpError};
use weir_linux::vm::{Identity, PoolFile};
use weir_model::units::Bytes;
use weir_plan::pool::owners::{Stage, Vm};

use super::super::table::{Pool, table_of};
use super::super::world::{Monitor, World};

pub const SLICE: u64 = 1 << 20;
pub const SLICES: usize = 4;
pub const GUESTS: usize = 2;

/// How a guest answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Willing,
    /// It does not return slices.
    Refusing,
    /// It does not return the first slice that it is asked for, and then is willing.
    Late,
    /// It has no slot for more slices.
    Full,
    /// It returns slices, and reports nothing.
    Silent,
    /// Its QEMU does not answer.
    Deaf,
}

#[derive(Debug)]
pub struct Guest {
    /// Counts its lives: each is another process.
    pub life: u32,
    pub up: bool,
    pub manner: Manner,
    pub backends: BTreeSet<usize>,
    pub modules: BTreeSet<usize>,
    pub events: VecDeque<Event>,
}

/// Guests and the pool's file, which all outlive managers.
pub struct All {
    pub folder: tempfile::TempDir,
    pub guests: Vec<Guest>,
    /// Rules that were broken.
    pub broken: Vec<String>,
}

pub type Shared = Rc<RefCell<All>>;

pub fn all() -> Shared {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pool");
    let size = Bytes(SLICES as u64 * SLICE);
    Pool::create(&file, &table_of(&file, None), size, Bytes(SLICE)).unwrap();
    let guest = || Guest {
        life: 0,
        up: true,
        manner: Manner::Willing,
        backends: BTreeSet::new(),
        modules: BTreeSet::new(),
        events: VecDeque::new(),
    };
    Rc::new(RefCell::new(All {
        folder,
        guests: (0..GUESTS).map(|_| guest()).collect(),
        broken: Vec::new(),
    }))
}

pub fn socket(guest: usize) -> PathBuf {
    format!("/run/{guest}.qmp").into()
}

impl All {
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    pub fn identity(&self, guest: usize) -> Identity {
        Identity {
            pid: 100 + guest as u32,
            started: u64::from(self.guests[guest].life),
        }
    }

    pub fn pool(&self) -> Pool {
        Pool::read(&self.file(), &table_of(&self.file(), None)).unwrap()
    }

    fn bytes(&self, slice: usize) -> Vec<u8> {
        let mut bytes = vec![0; SLICE as usize];
        let file = std::fs::File::open(self.file()).unwrap();
        file.read_exact_at(&mut bytes, slice as u64 * SLICE)
            .unwrap();
        bytes
    }

    pub fn kill(&mut self, guest: usize) {
        let guest = &mut self.guests[guest];
        guest.up = false;
        guest.backends.clear();
        guest.modules.clear();
        guest.events.clear();
    }

    pub fn restart(&mut self, guest: usize) {
        self.kill(guest);
        self.guests[guest].up = true;
        self.guests[guest].life += 1;
    }

    /// The guest brings a slice online, looks at it, and writes.
    fn online(&mut self, guest: usize, slice: usize) {
        if self.bytes(slice).iter().any(|&byte| byte != 0) {
            self.broken
                .push(format!("slice {slice} was given away unscrubbed"));
        }
        let file = std::fs::File::options()
            .write(true)
            .open(self.file())
            .unwrap();
        let pattern = vec![guest as u8 + 1; SLICE as usize];
        file.write_all_at(&pattern, slice as u64 * SLICE).unwrap();
    }

    pub fn check(&mut self) {
        let pool = self.pool();
        for (at, slice) in pool.owners().slices().iter().enumerate() {
            let mapped = (0..GUESTS).filter(|&g| self.guests[g].backends.contains(&at));
            let mapped: Vec<usize> = mapped.collect();
            if mapped.len() > 1 {
                self.broken.push(format!("slice {at} has two owners"));
            }
            let permitted = slice.vm.as_ref().map(|vm| (vm.pid, vm.started));
            for guest in mapped {
                let identity = self.identity(guest);
                if permitted != Some((identity.pid, identity.started)) {
                    let stage = slice.stage;
                    self.broken
                        .push(format!("guest {guest} uses slice {at}, which is {stage:?}"));
                }
            }
            if slice.stage == Stage::Free && self.bytes(at).iter().any(|&byte| byte != 0) {
                self.broken.push(format!("slice {at} is free and not zero"));
            }
        }
    }
}

pub struct Fake(pub Shared);

impl World for Fake {
    fn connect(&mut self, at: &Path) -> std::result::Result<Box<dyn Monitor>, QmpError> {
        let mut all = self.0.borrow_mut();
        let guest = (0..GUESTS).find(|&guest| socket(guest) == at);
        let guest =
            guest.filter(|&guest| all.guests[guest].up && all.guests[guest].manner != Manner::Deaf);
        let guest = guest.ok_or_else(|| QmpError::Connect {
            socket: at.display().to_string(),
            cause: io::ErrorKind::ConnectionRefused.into(),
        })?;
        // QEMU tells a client only what happens while it is connected.
        all.guests[guest].events.clear();
        Ok(Box::new(Connection(Rc::clone(&self.0), guest)))
    }

    fn runs(&self, vm: &Vm) -> bool {
        let all = self.0.borrow();
        (0..GUESTS).any(|guest| {
            let identity = all.identity(guest);
            all.guests[guest].up && (identity.pid, identity.started) == (vm.pid, vm.started)
        })
    }

    fn mapped_by(&self, _: &PoolFile, range: &Range<u64>) -> io::Result<Vec<u32>> {
        let all = self.0.borrow();
        let slice = (range.start / SLICE) as usize;
        let mapped = (0..GUESTS).filter(|&guest| all.guests[guest].backends.contains(&slice));
        Ok(mapped.map(|guest| all.identity(guest).pid).collect())
    }
}

struct Connection(Shared, usize);

/// The slice of `weir-dimm-3`.
fn number(arguments: &Value) -> usize {
    let id = arguments["id"].as_str().unwrap();
    id.rsplit('-').next().unwrap().parse().unwrap()
}

impl Monitor for Connection {
    fn execute(&mut self, command: &str, arguments: Value) -> std::result::Result<Value, QmpError> {
        let mut all = self.0.borrow_mut();
        let at = self.1;
        let refused = |desc: &str| QmpError::Refused {
            socket: String::new(),
            command: command.to_owned(),
            class: "GenericError".into(),
            desc: desc.into(),
        };
        let guest = &mut all.guests[at];
        let event = |name: &str, data| Event {
            name: name.into(),
            data,
        };
        match command {
            "qom-list" => {
                let names = guest
                    .backends
                    .iter()
                    .map(|n| json!({ "name": format!("weir-slice-{n}") }));
                return Ok(names.collect());
            }
            "query-memory-devices" => {
                let ids = guest
                    .modules
                    .iter()
                    .map(|n| json!({ "data": { "id": format!("weir-dimm-{n}") } }));
                return Ok(ids.collect());
            }
            "object-add" => {
                assert_eq!(
                    arguments["offset"],
                    json!(number(&arguments) as u64 * SLICE)
                );
                if !guest.backends.insert(number(&arguments)) {
                    return Err(refused("duplicate"));
                }
            }
            "object-del" => {
                let slice = number(&arguments);
                if guest.modules.contains(&slice) || !guest.backends.remove(&slice) {
                    return Err(refused("in use, or not there"));
                }
            }
            "device_add" if guest.manner == Manner::Full => return Err(refused("no slot is free")),
            "device_add" => {
                let slice = number(&arguments);
                assert!(guest.backends.contains(&slice));
                guest.modules.insert(slice);
                let info =
                    json!({ "device": format!("weir-dimm-{slice}"), "source": 1, "status": 0 });
                guest
                    .events
                    .push_back(event("ACPI_DEVICE_OST", json!({ "info": info })));
                all.online(at, slice);
            }
            "device_del" => {
                let slice = number(&arguments);
                let id = format!("weir-dimm-{slice}");
                if matches!(guest.manner, Manner::Refusing | Manner::Late) {
                    if guest.manner == Manner::Late {
                        guest.manner = Manner::Willing;
                    }
                    let info =
                        |status| json!({ "info": { "device": id, "source": 3, "status": status } });
                    guest.events.push_back(event("ACPI_DEVICE_OST", info(0x84)));
                    guest.events.push_back(event("ACPI_DEVICE_OST", info(1)));
                } else {
                    guest.modules.remove(&slice);
                    if guest.manner != Manner::Silent {
                        guest
                            .events
                            .push_back(event("DEVICE_DELETED", json!({ "device": id })));
                    }
                }
            }
            "human-monitor-command" => {
                return Ok(json!(
                    "2 nodes\r\nnode 0 cpus: 0\r\nnode 0 size: 4 MB\r\nnode 1 cpus:\r\n"
                ));
            }
            other => panic!("{other}"),
        }
        Ok(json!({}))
    }

    fn event(&mut self, _: Instant) -> std::result::Result<Option<Event>, QmpError> {
        Ok(self.0.borrow_mut().guests[self.1].events.pop_front())
    }

    fn process(&self) -> std::result::Result<Identity, QmpError> {
        Ok(self.0.borrow().identity(self.1))
    }
}
