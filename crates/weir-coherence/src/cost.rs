//! What a transaction takes: its messages, their bytes on the link, and its latency as a sum of parts.
//!
//! Messages are not listed here: the machines of [`crate::hdm_db`] and [`crate::type2`] send them, one transaction alone.

use weir_model::units::{Bytes, Nanos};

use crate::hdm_db::{Act, Shared, State};
use crate::message::{Channel, Flit, Message};
use crate::type2::{self, Kind, Type2};

/// Which agents have a line before a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Before {
    /// No agent.
    None,
    /// This many other hosts, to read.
    Sharers(u64),
    /// One other host, which did not write.
    Clean,
    /// One other host, which wrote.
    Dirty,
}

/// Messages of a transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cost {
    messages: Vec<(Message, u64)>,
}

/// What a message passes, from the platform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parts {
    /// From a core to the home agent of its socket and back.
    pub core: Nanos,
    /// From there over the link to the controller of the device, or back.
    pub link: Nanos,
    /// A line from DRAM, of either.
    pub medium: Nanos,
}

impl Cost {
    /// Of these messages.
    pub fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut cost = Self::default();
        cost.extend(messages);
        cost
    }

    fn add(&mut self, message: Message, times: u64) {
        match self.messages.iter_mut().find(|(own, _)| *own == message) {
            Some((_, count)) => *count += times,
            None => self.messages.push((message, times)),
        }
    }

    /// Every kind of message with its number, in the order in which they were sent first.
    pub fn messages(&self) -> &[(Message, u64)] {
        &self.messages
    }

    /// How many messages have names that begin so.
    pub fn count(&self, name: &str) -> u64 {
        let named = self
            .messages
            .iter()
            .filter(|(own, _)| own.name.starts_with(name));
        named.map(|(_, count)| count).sum()
    }

    /// Half slots of flits, to the device or from it.
    pub fn half_slots(&self, down: bool) -> u64 {
        let way = self
            .messages
            .iter()
            .filter(|(own, _)| own.channel.is_down() == down);
        way.map(|(own, count)| own.channel.half_slots() * count)
            .sum()
    }

    /// What goes to the device in full flits.
    pub fn down(&self, flit: Flit) -> Bytes {
        flit.bytes(self.half_slots(true))
    }

    /// What comes from the device in full flits.
    pub fn up(&self, flit: Flit) -> Bytes {
        flit.bytes(self.half_slots(false))
    }

    /// Crossings of a link that follow each other: those of several hosts at the same time count once.
    pub fn crossings(&self) -> u64 {
        let pairs: [&[&str]; 4] = [
            // The request of a host, or of a device that its host grants.
            &[
                "MemRd Snp",
                "MemInv",
                "Rd",
                "ItoMWr",
                "MemClnEvct",
                "CleanEvict",
                "DirtyEvict",
            ],
            &["BISnp"],
            &["MemWr"],
            &["SnpInv", "SnpData"],
        ];
        let sent = pairs
            .iter()
            .filter(|names| names.iter().any(|name| self.count(name) > 0));
        2 * sent.count() as u64
    }

    /// What the requester waits. Without a message, the device uses its own memory.
    pub fn latency(&self, parts: &Parts) -> Nanos {
        if self.messages.is_empty() {
            return parts.medium;
        }
        // A line comes from DRAM: the device's, also of a device that reads it after MemRdFwd, or the host's.
        let from_memory = |message: &Message| {
            message.name == "MemRdFwd"
                || matches!(message.channel, Channel::S2mDrs | Channel::H2dData)
        };
        let reads = self.messages.iter().any(|(own, _)| from_memory(own));
        let medium = if reads { parts.medium } else { Nanos(0.0) };
        parts.core + parts.link * self.crossings() as f64 + medium
    }
}

impl Extend<Message> for Cost {
    fn extend<T: IntoIterator<Item = Message>>(&mut self, messages: T) {
        for message in messages {
            self.add(message, 1);
        }
    }
}

/// Hosts of the machine that transactions are taken from: one asks, two others have the line.
const HOSTS: usize = 3;

/// What a load or a store of a host takes that has no copy (`has` is false) or one to read.
pub fn shared(before: Before, has: bool, store: bool) -> Cost {
    let machine = Shared::<HOSTS, 1> {
        filter: 1,
        fault: None,
    };
    let act = |state: &mut State<HOSTS, 1>, host: usize, act| {
        Shared::of_host(state, 0, host, act);
        machine.drain(state)
    };
    let mut state = State::new();
    match before {
        Before::None => {}
        Before::Clean | Before::Dirty => {
            act(&mut state, 1, Act::Load);
        }
        Before::Sharers(others) => {
            for host in [1, 2].into_iter().chain(has.then_some(0)) {
                act(&mut state, host, Act::Load);
            }
            // The host that is left still shares: it is not informed that it is alone.
            for host in 1 + others.min(2)..=2 {
                act(&mut state, host as usize, Act::CleanEvict);
            }
        }
    }
    if before == Before::Dirty {
        act(&mut state, 1, Act::Hit);
    }
    let asks = match (store, has) {
        (false, _) => Act::Load,
        (true, true) => Act::Upgrade,
        (true, false) => Act::Store,
    };
    let mut sent = first(&mut state, asks);
    sent.extend(machine.drain(&mut state));
    let mut cost = Cost::of(sent);
    if let (Before::Sharers(all @ 3..), true) = (before, store) {
        // Every other host is asked and answers alike.
        cost.add(Message::new(Channel::S2mBisnp, "BISnpInv"), all - 2);
        cost.add(Message::new(Channel::M2sBirsp, "BIRspI"), all - 2);
    }
    cost
}

fn first(state: &mut State<HOSTS, 1>, act: Act) -> Vec<Message> {
    let before = *state;
    Shared::of_host(state, 0, 0, act);
    crate::hdm_db::sent(&before, state)
}

/// What a line takes that leaves a cache, or the snoop filter while `holders` hosts have it.
pub fn leaves(dirty: bool, from_filter: Option<u64>) -> Cost {
    let machine = Shared::<HOSTS, 2> {
        filter: 1,
        fault: None,
    };
    let mut state = State::new();
    Shared::of_host(&mut state, 0, 0, if dirty { Act::Store } else { Act::Load });
    machine.drain(&mut state);
    if dirty {
        Shared::of_host(&mut state, 0, 0, Act::Hit);
    }
    let before = state;
    let Some(holders) = from_filter else {
        let act = if dirty { Act::Evict } else { Act::CleanEvict };
        Shared::of_host(&mut state, 0, 0, act);
        let mut sent = crate::hdm_db::sent(&before, &state);
        sent.extend(machine.drain(&mut state));
        return Cost::of(sent);
    };
    // Another line needs the entry; its own request and answer are no part of this.
    Shared::of_host(&mut state, 1, 1, Act::Load);
    let sent = machine.drain(&mut state);
    let own = ["MemRd SnpData", "MemData", "Cmp-E"];
    let sent = sent
        .into_iter()
        .filter(|message| !own.contains(&message.name));
    let mut cost = Cost::of(sent);
    cost.add(
        Message::new(Channel::S2mBisnp, "BISnpInv"),
        holders.max(1) - 1,
    );
    cost.add(
        Message::new(Channel::M2sBirsp, "BIRspI"),
        holders.max(1) - 1,
    );
    cost
}

/// Transactions between a host and a Type-2 device, by name, with what they take: of each kind of memory, in each bias.
pub fn type2() -> Vec<(Kind, &'static str, Cost)> {
    use type2::Act::{DeviceEvict, DeviceLoad, DeviceStore, DeviceWriteWhole};
    use type2::Act::{HostEvict, HostLoad, HostStore};
    // What happened before, and what is counted.
    let device: [(&'static str, &[type2::Act], type2::Act); 9] = [
        ("host loads, device has no copy", &[], HostLoad),
        ("host loads, device modified it", &[DeviceStore], HostLoad),
        ("host stores, device has no copy", &[], HostStore),
        (
            "host stores, both share",
            &[HostLoad, DeviceLoad],
            HostStore,
        ),
        (
            "host evicts a modified line",
            &[HostStore, HostStore],
            HostEvict,
        ),
        ("device loads in device bias", &[], DeviceLoad),
        ("device stores in device bias", &[], DeviceStore),
        (
            "device loads in host bias, host modified it",
            &[HostStore, HostStore],
            DeviceLoad,
        ),
        (
            "device stores in host bias: bias flips",
            &[HostLoad],
            DeviceStore,
        ),
    ];
    let host: [(&'static str, &[type2::Act], type2::Act); 6] = [
        ("device loads", &[], DeviceLoad),
        ("device stores", &[], DeviceStore),
        ("device writes a whole line", &[], DeviceWriteWhole),
        (
            "device evicts a modified line",
            &[DeviceStore, DeviceStore],
            DeviceEvict,
        ),
        (
            "host loads, device modified it",
            &[DeviceStore, DeviceStore],
            HostLoad,
        ),
        ("host stores, device has a copy", &[DeviceLoad], HostStore),
    ];
    let all = device.map(|one| (Kind::Device, one)).into_iter();
    all.chain(host.map(|one| (Kind::Host, one)))
        .map(|(kind, (name, before, act))| (kind, name, transaction(kind, before, act)))
        .collect()
}

fn transaction(kind: Kind, before: &[type2::Act], act: type2::Act) -> Cost {
    let machine = Type2 { kind, fault: None };
    let mut state = type2::State::new(kind);
    for &act in before {
        machine.act(&mut state, act);
        machine.drain(&mut state, |_, _, _| ());
    }
    let was = state;
    machine.act(&mut state, act);
    let mut sent = type2::sent(&was, &state);
    machine.drain(&mut state, |_, messages, _| sent.extend(messages));
    Cost::of(sent)
}
