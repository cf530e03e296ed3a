//! The steps: what either side begins, and what arrives.

use super::{Act, Ask, Down, Fault, Home, Kind, Meta, Req, State, Type2, sent};
use crate::hdm_db::{Cache, Data};
use crate::message::Message;

impl Type2 {
    /// What either side may do by itself.
    pub fn begin(&self, state: &State, all: &mut Vec<(Act, State)>) {
        let mut acts = Vec::with_capacity(8);
        if state.host_ask.is_none() && state.home.is_none() {
            match state.host {
                Cache::I => acts.extend([Act::HostLoad, Act::HostStore]),
                _ => acts.extend([Act::HostStore, Act::HostEvict]),
            }
        } else if matches!(state.host, Cache::E | Cache::M) {
            acts.push(Act::HostStore);
        }
        if state.device_ask.is_none() {
            match state.device {
                Cache::I => acts.extend([Act::DeviceLoad, Act::DeviceStore]),
                _ => acts.extend([Act::DeviceStore, Act::DeviceEvict]),
            }
            if state.kind == Kind::Host && state.device == Cache::I {
                acts.push(Act::DeviceWriteWhole);
            }
        }
        for act in acts {
            let mut after = *state;
            self.act(&mut after, act);
            all.push((act, after));
        }
    }

    /// Lets a side act. Only what [`Type2::begin`] lists is allowed.
    pub fn act(&self, s: &mut State, act: Act) {
        match (act, s.kind) {
            (Act::HostLoad | Act::HostStore, _) => self.host_access(s, act == Act::HostStore),
            (Act::HostEvict, Kind::Device) if s.host == Cache::M => {
                s.host_ask = Some(Ask::Write);
                s.write_back(false);
            }
            (Act::HostEvict, _) => {
                s.host_to_memory();
                s.host = Cache::I;
            }
            (Act::DeviceLoad | Act::DeviceStore, _) => {
                self.device_access(s, act == Act::DeviceStore);
            }
            (Act::DeviceWriteWhole, _) => {
                (s.device_ask, s.d2h_req) = (Some(Ask::WriteWhole), true);
            }
            (Act::DeviceEvict, Kind::Device) => {
                s.device_to_memory();
                s.device = Cache::I;
            }
            (Act::DeviceEvict, Kind::Host) => {
                let dirty = s.device == Cache::M;
                s.device_ask = Some(if dirty { Ask::Dirty } else { Ask::Clean });
                s.leaving = dirty.then(|| Data::of(s.device_fresh));
                (s.device, s.d2h_req) = (Cache::I, true);
            }
            _ => {}
        }
    }

    fn host_access(&self, s: &mut State, store: bool) {
        if matches!(s.host, Cache::E | Cache::M) {
            return s.host_writes();
        }
        if s.kind == Kind::Device {
            let (ask, req) = match (store, s.host) {
                (false, _) => (Ask::Share, Req::Share),
                (true, Cache::S) => (Ask::Upgrade, Req::Inv),
                (true, _) => (Ask::Own, Req::Own),
            };
            s.host_ask = Some(ask);
            return s.req.push(req);
        }
        let snoops = match store {
            true => s.directory != Cache::I,
            false => s.directory == Cache::E,
        };
        if !snoops {
            return self.host_fills(s, store);
        }
        let snoop = if store { Down::SnpInv } else { Down::SnpData };
        if self.fault == Some(Fault::SnoopPassesGo) {
            s.h2d.push_first(snoop);
        } else {
            s.h2d.push(snoop);
        }
        s.home = Some(Home::Snoop {
            store,
            with_data: None,
        });
    }

    /// The host has a line of its own memory that no other agent writes.
    fn host_fills(&self, s: &mut State, store: bool) {
        if s.host == Cache::I {
            s.host_fresh = s.memory_fresh;
        }
        if store {
            s.host_writes();
        } else {
            s.host = match s.directory {
                Cache::I => Cache::E,
                _ => Cache::S,
            };
        }
    }

    fn device_access(&self, s: &mut State, store: bool) {
        if matches!(s.device, Cache::E | Cache::M) {
            return s.device_writes();
        }
        let local = match s.meta {
            Meta::I => true,
            Meta::S => !store,
            Meta::A => self.fault == Some(Fault::BiasFlip),
        };
        if s.kind == Kind::Device && local {
            if s.device == Cache::I {
                s.device_fresh = s.memory_fresh;
            }
            if store {
                s.device_writes();
            } else {
                s.device = match s.meta {
                    Meta::I => Cache::E,
                    _ => Cache::S,
                };
            }
            return;
        }
        s.device_ask = Some(if store { Ask::Own } else { Ask::Share });
        s.d2h_req = true;
    }

    /// Every arrival of a message.
    pub fn onward(&self, state: &State, all: &mut Vec<(Act, State)>) {
        let mut on = |may: bool, act, change: &dyn Fn(&mut State)| {
            if may {
                let mut after = *state;
                change(&mut after);
                all.push((act, after));
            }
        };
        let free = state.home.is_none() && state.host_ask.is_none();
        on(state.d2h_req && free, Act::TakeD2hReq, &|s| {
            self.take_d2h_req(s)
        });
        on(state.d2h_rsp.is_some(), Act::TakeD2hRsp, &|s| {
            let rsp = s.d2h_rsp.take();
            if let Some(Home::Snoop { with_data, .. }) = &mut s.home {
                *with_data = rsp;
            }
            self.end_snoop(s);
        });
        on(state.d2h_data.is_some(), Act::TakeD2hData, &|s| {
            self.take_d2h_data(s)
        });
        let snooped = matches!(state.h2d.head(), Some(Down::SnpInv | Down::SnpData));
        // Behind GO a snoop waits for the line that GO is about.
        let ready = !snooped || state.go.is_none();
        on(!state.h2d.is_empty() && ready, Act::TakeH2d, &|s| {
            self.take_h2d(s)
        });
        on(state.h2d_data.is_some(), Act::TakeH2dData, &|s| {
            s.device_data = s.h2d_data.take();
            self.end_device(s);
        });
        on(!state.req.is_empty(), Act::TakeReq, &|s| self.take_req(s));
        on(state.rwd.is_some(), Act::TakeRwd, &|s| {
            if let Some((data, keeps)) = s.rwd.take() {
                s.memory_fresh = data == Data::Fresh;
                s.meta = if keeps { Meta::S } else { Meta::I };
                s.ndr = Some(Cache::I);
            }
        });
        on(state.ndr.is_some(), Act::TakeNdr, &|s| {
            s.cmp = s.ndr.take();
            self.end_host(s);
        });
        on(state.drs.is_some(), Act::TakeDrs, &|s| {
            s.host_data = s.drs.take();
            self.end_host(s);
        });
    }

    fn take_d2h_req(&self, s: &mut State) {
        s.d2h_req = false;
        let Some(ask) = s.device_ask else { return };
        if s.kind == Kind::Device {
            if s.host == Cache::M {
                s.write_back(ask == Ask::Share);
                if self.fault != Some(Fault::EarlyForward) {
                    s.home = Some(Home::Write(ask));
                    return;
                }
            }
            return self.forward(s, ask);
        }
        s.host_to_memory();
        match ask {
            Ask::Share => {
                if s.host != Cache::I {
                    s.host = Cache::S;
                }
                s.directory = Cache::S;
                s.h2d.push(Down::GoS);
                s.h2d_data = Some(Data::of(s.memory_fresh));
            }
            Ask::Clean => {
                s.directory = Cache::I;
                s.h2d.push(Down::PullDrop);
            }
            Ask::Dirty => {
                s.home = Some(Home::Pull);
                s.h2d.push(Down::Pull);
            }
            Ask::WriteWhole => {
                s.host = Cache::I;
                s.home = Some(Home::Pull);
                s.h2d.push(Down::Pull);
            }
            _ => {
                s.host = Cache::I;
                s.directory = Cache::E;
                s.h2d.push(Down::GoE);
                s.h2d_data = Some(Data::of(s.memory_fresh));
            }
        }
    }

    /// The host lets the device have a line of the device's memory.
    fn forward(&self, s: &mut State, ask: Ask) {
        if ask == Ask::Share {
            if s.host != Cache::I {
                s.host = Cache::S;
            }
            s.req.push(Req::FwdS);
        } else {
            s.host = Cache::I;
            s.req.push(Req::FwdI);
        }
    }

    fn take_d2h_data(&self, s: &mut State) {
        match s.home {
            Some(Home::Pull) => {
                match s.d2h_data.take() {
                    Some(Data::Bogus) if self.fault == Some(Fault::BogusData) => {
                        s.memory_fresh = false;
                    }
                    Some(Data::Bogus) | None => {}
                    Some(data) => s.memory_fresh = data == Data::Fresh,
                }
                s.directory = Cache::I;
                s.home = None;
            }
            _ => {
                s.host_data = s.d2h_data.take();
                self.end_snoop(s);
            }
        }
    }

    /// The answer to a snoop, and the data if there are some, have come.
    fn end_snoop(&self, s: &mut State) {
        let Some(Home::Snoop {
            store,
            with_data: Some(with_data),
        }) = s.home
        else {
            return;
        };
        if with_data {
            let Some(data) = s.host_data.take() else {
                return;
            };
            s.memory_fresh = data == Data::Fresh;
        }
        s.home = None;
        s.directory = match (store, s.directory) {
            (true, _) | (_, Cache::I) => Cache::I,
            _ => Cache::S,
        };
        self.host_fills(s, store);
    }

    fn take_h2d(&self, s: &mut State) {
        match s.h2d.pop() {
            Some(down @ (Down::GoS | Down::GoE)) => {
                s.go = Some(down);
                self.end_device(s);
            }
            Some(Down::Pull) => {
                let data = match s.device_ask {
                    Some(Ask::WriteWhole) => {
                        s.outdate();
                        Data::Fresh
                    }
                    _ => s.leaving.take().unwrap_or(Data::Bogus),
                };
                (s.d2h_data, s.device_ask) = (Some(data), None);
            }
            Some(Down::PullDrop) => s.device_ask = None,
            Some(snoop) => {
                s.d2h_data = match s.device {
                    Cache::M => Some(Data::of(s.device_fresh)),
                    _ => s.leaving.take(),
                };
                s.d2h_rsp = Some(s.d2h_data.is_some());
                if s.device != Cache::I {
                    s.device = if snoop == Down::SnpInv {
                        Cache::I
                    } else {
                        Cache::S
                    };
                }
            }
            None => {}
        }
    }

    /// GO and data have come.
    fn end_device(&self, s: &mut State) {
        if let (Some(go), Some(data)) = (s.go, s.device_data) {
            s.device = if go == Down::GoS { Cache::S } else { Cache::E };
            s.device_fresh = data == Data::Fresh;
            (s.go, s.device_data, s.device_ask) = (None, None, None);
        }
    }

    fn take_req(&self, s: &mut State) {
        let Some(req) = s.req.pop() else { return };
        if self.fault != Some(Fault::StaleMemRd) && matches!(req, Req::Share | Req::Own | Req::Inv)
        {
            s.device_to_memory();
        }
        let had = s.device != Cache::I;
        match req {
            Req::Share => {
                if had {
                    s.device = Cache::S;
                }
                s.meta = if had { Meta::S } else { Meta::A };
                s.ndr = Some(if had { Cache::S } else { Cache::E });
                s.drs = Some(Data::of(s.memory_fresh));
            }
            Req::Own | Req::Inv => {
                (s.device, s.meta, s.ndr) = (Cache::I, Meta::A, Some(Cache::E));
                if req == Req::Own {
                    s.drs = Some(Data::of(s.memory_fresh));
                }
            }
            Req::FwdS | Req::FwdI => {
                s.device_fresh = s.memory_fresh;
                (s.device, s.meta) = match req {
                    Req::FwdS => (Cache::S, Meta::S),
                    _ => (Cache::E, Meta::I),
                };
                s.device_ask = None;
            }
        }
    }

    /// Cmp, and the data that belong to it, have come.
    fn end_host(&self, s: &mut State) {
        let Some(cmp) = s.cmp else { return };
        if let Some(Home::Write(ask)) = s.home {
            (s.home, s.cmp) = (None, None);
            return self.forward(s, ask);
        }
        match (s.host_ask, s.host_data) {
            (Some(Ask::Share | Ask::Own), Some(data)) => {
                (s.host, s.host_fresh) = (cmp, data == Data::Fresh);
            }
            (Some(Ask::Share | Ask::Own), None) => return,
            (Some(Ask::Upgrade), _) => s.host = cmp,
            _ => {}
        }
        (s.host_ask, s.host_data, s.cmp) = (None, None, None);
    }

    /// Lets all messages arrive; calls `each` for every step with its messages and the state after it.
    pub fn drain(&self, state: &mut State, mut each: impl FnMut(Act, &[Message], &State)) {
        let mut next = Vec::new();
        loop {
            self.onward(state, &mut next);
            let Some((act, after)) = next.drain(..).next() else {
                return;
            };
            each(act, &sent(state, &after), &after);
            *state = after;
        }
    }
}
