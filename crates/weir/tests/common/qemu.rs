//! A QEMU that takes commands at a socket, and behaves in some manner.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Place;

/// How a QEMU answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Willing,
    /// The guest does not return memory, and its kernel says so.
    Refuses,
    /// The same, and QEMU says so.
    UnplugError,
    /// The guest says nothing.
    Mute,
    /// QEMU accepts clients and does not greet them.
    Silent,
    /// It ends when a device is added.
    Drops,
    /// It speaks another protocol.
    Other,
}

/// A QEMU that serves one client after the other as long as the test runs.
pub fn qemu(place: &Place, manner: Manner) -> PathBuf {
    let socket = place.path("vm.qmp");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        let mut vm = Vm {
            backends: BTreeSet::new(),
            modules: BTreeSet::new(),
            manner,
        };
        for stream in listener.incoming().flatten() {
            vm.serve(&stream);
        }
    });
    socket
}

struct Vm {
    backends: BTreeSet<String>,
    modules: BTreeSet<String>,
    manner: Manner,
}

impl Vm {
    fn serve(&mut self, mut stream: &UnixStream) {
        match self.manner {
            Manner::Silent => thread::sleep(Duration::from_secs(60)),
            Manner::Other => drop(stream.write_all(b"220 mail.example.org ESMTP\r\n")),
            _ => drop(stream.write_all(b"{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n")),
        }
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            let command: Value = serde_json::from_str(&line).unwrap();
            let name = command["execute"].as_str().unwrap().to_owned();
            if name == "device_add" && self.manner == Manner::Drops {
                return;
            }
            let id = command["arguments"]["id"].as_str().unwrap_or("").to_owned();
            let (mut answer, events) = self.answer(&name, &id);
            answer["id"] = command["id"].clone();
            // An event may come before the answer, and after it.
            for message in events
                .iter()
                .take(1)
                .chain([&answer])
                .chain(events.iter().skip(1))
            {
                if stream
                    .write_all(format!("{message}\r\n").as_bytes())
                    .is_err()
                {
                    return;
                }
            }
        }
    }

    fn answer(&mut self, command: &str, id: &str) -> (Value, Vec<Value>) {
        let ost = |source: u32, status: u32| {
            let info = json!({ "device": id, "slot": "0", "slot-type": "DIMM", "source": source, "status": status });
            json!({ "event": "ACPI_DEVICE_OST", "data": { "info": info } })
        };
        let done = json!({ "return": {} });
        let refused = |desc: &str| json!({ "error": { "class": "GenericError", "desc": desc } });
        let listed = |ids: &BTreeSet<String>, of: fn(&String) -> Value| json!({ "return": ids.iter().map(of).collect::<Vec<_>>() });
        match command {
            "qom-list" => (listed(&self.backends, |id| json!({ "name": id })), vec![]),
            "query-memory-devices" => {
                let of = |id: &String| json!({ "type": "dimm", "data": { "id": id } });
                (listed(&self.modules, of), vec![])
            }
            "object-add" => match self.backends.insert(id.to_owned()) {
                true => (done, vec![]),
                false => (refused("attempt to add duplicate property"), vec![]),
            },
            "object-del" => match self.backends.remove(id) {
                true => (done, vec![]),
                false => (refused("object not found"), vec![]),
            },
            "device_add" => {
                self.modules.insert(id.to_owned());
                (done, vec![ost(1, 0)])
            }
            "device_del" => {
                let stop = json!({ "event": "RTC_CHANGE", "data": { "offset": 0 } });
                let about = json!({ "device": id, "path": "/machine", "msg": "it is in use" });
                let event = |name: &str| json!({ "event": name, "data": about });
                match self.manner {
                    Manner::Refuses => (done, vec![stop, ost(3, 0x84), ost(3, 1)]),
                    Manner::UnplugError => (done, vec![stop, event("MEM_UNPLUG_ERROR")]),
                    Manner::Mute => (done, vec![stop]),
                    _ => {
                        self.modules.remove(id);
                        (done, vec![stop, ost(3, 0x84), event("DEVICE_DELETED")])
                    }
                }
            }
            _ => (done, vec![]),
        }
    }
}
