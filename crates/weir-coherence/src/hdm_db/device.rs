//! The steps: what hosts begin, what arrives, and what the device does.

use super::{Act, Ask, Busy, Cache, Data, Fault, Home, Ndr, Rwd, Shared, Snoop, State, Step, sent};
use crate::message::Message;

impl<const H: usize, const L: usize> Shared<H, L> {
    /// What a host may do by itself with a line.
    pub fn begin(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        for line in 0..L {
            for host in 0..H {
                let cell = state.cells[line][host];
                if cell.snoop.is_none() && cell.ask.is_none() {
                    let acts: &[Act] = match cell.cache {
                        Cache::I => &[Act::Load, Act::Store],
                        Cache::S => &[Act::Upgrade, Act::Drop, Act::CleanEvict],
                        Cache::E => &[Act::Hit, Act::Drop, Act::CleanEvict],
                        Cache::M => &[Act::Hit, Act::Evict],
                    };
                    for &act in acts {
                        let mut after = *state;
                        Self::of_host(&mut after, line, host, act);
                        all.push((step(Some(host), line, act), after));
                    }
                } else if matches!(cell.cache, Cache::E | Cache::M) {
                    // A line may be written until the snoop is answered.
                    let mut after = *state;
                    after.write(line, host);
                    all.push((step(Some(host), line, Act::Hit), after));
                }
            }
        }
    }

    /// Lets a host act.
    pub fn of_host(state: &mut State<H, L>, line: usize, host: usize, act: Act) {
        let cell = &mut state.cells[line][host];
        match act {
            Act::Load => cell.send(Ask::Share),
            Act::Store => cell.send(Ask::Own),
            Act::Upgrade => cell.send(Ask::Upgrade),
            Act::Hit => state.write(line, host),
            Act::Evict => cell.write_back(false),
            Act::Drop => cell.cache = Cache::I,
            Act::CleanEvict => {
                cell.cache = Cache::I;
                cell.send(Ask::Clean);
            }
            _ => {}
        }
    }

    /// Every arrival of a message, and what the device does by itself.
    pub fn onward(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        let fault = self.fault;
        for line in 0..L {
            for host in 0..H {
                let cell = &state.cells[line][host];
                let mut on = |act, change: &dyn Fn(&mut State<H, L>)| {
                    let mut after = *state;
                    change(&mut after);
                    all.push((step(Some(host), line, act), after));
                };
                if !cell.ndr.is_empty() {
                    on(Act::TakeNdr, &|s| s.cells[line][host].take_ndr(fault));
                }
                if cell.drs.is_some() {
                    on(Act::TakeDrs, &|s| {
                        let cell = &mut s.cells[line][host];
                        cell.data = cell.drs.take();
                        cell.settle(fault);
                    });
                }
                // A second snoop waits until the first is answered.
                if let (Some(snoop), None) = (cell.bisnp, cell.snoop) {
                    on(Act::TakeBisnp, &|s| {
                        let cell = &mut s.cells[line][host];
                        cell.bisnp = None;
                        cell.take_bisnp(snoop, fault);
                    });
                }
                if !cell.rwd.is_empty() {
                    on(Act::TakeRwd, &|s| self.take_rwd(s, line, host));
                }
                if cell.birsp.is_some() {
                    on(Act::TakeBirsp, &|s| self.take_birsp(s, line, host));
                }
                let home = &state.homes[line];
                let room = home.holders != 0
                    || cell.ask == Some(Ask::Clean)
                    || state.tracked() < self.filter;
                if cell.req && home.busy.is_none() && room {
                    on(Act::TakeReq, &|s| self.take_req(s, line, host));
                }
            }
        }
        self.of_filter(state, all);
    }

    /// Where a request waits for an entry of the filter, a line that no request works on leaves it.
    fn of_filter(&self, state: &State<H, L>, all: &mut Vec<(Step, State<H, L>)>) {
        let waits = |line: usize| {
            let home = &state.homes[line];
            let asks =
                (state.cells[line].iter()).any(|cell| cell.req && cell.ask != Some(Ask::Clean));
            home.holders == 0 && home.busy.is_none() && asks
        };
        let evicts = |home: &Home| home.busy == Some(Busy::Evict);
        if state.tracked() < self.filter || state.homes.iter().any(evicts) || !(0..L).any(waits) {
            return;
        }
        for line in 0..L {
            let home = state.homes[line];
            if home.busy.is_some() || home.holders == 0 {
                continue;
            }
            let mut after = *state;
            if self.fault == Some(Fault::SilentFilter) {
                (after.homes[line].holders, after.homes[line].alone) = (0, false);
            } else {
                self.snoop(&mut after, line, home.holders, Snoop::Inv);
                after.homes[line].busy = Some(Busy::Evict);
            }
            all.push((step(None, line, Act::Filter), after));
        }
    }

    fn snoop(&self, state: &mut State<H, L>, line: usize, hosts: u8, snoop: Snoop) {
        state.homes[line].waits = hosts;
        for host in (0..H).filter(|host| hosts & 1 << host != 0) {
            state.cells[line][host].bisnp = Some(snoop);
        }
    }

    fn take_req(&self, state: &mut State<H, L>, line: usize, host: usize) {
        state.cells[line][host].req = false;
        let Some(ask) = state.cells[line][host].ask else {
            return;
        };
        let home = &mut state.homes[line];
        let others = home.holders & !(1 << host);
        if ask == Ask::Clean {
            home.holders = others;
            home.alone &= others != 0;
            return state.cells[line][host].ndr.push(Ndr::Cmp);
        }
        let snoop = match ask {
            Ask::Share if others != 0 && home.alone => Some(Snoop::Data),
            Ask::Own | Ask::Upgrade if others != 0 => Some(Snoop::Inv),
            _ => None,
        };
        let Some(snoop) = snoop else {
            return self.grant(state, line, host, ask);
        };
        self.snoop(state, line, others, snoop);
        if self.fault == Some(Fault::NoWait) && snoop == Snoop::Inv {
            state.homes[line].holders &= 1 << host;
            state.homes[line].waits = 0;
            self.grant(state, line, host, ask);
        } else {
            state.homes[line].busy = Some(Busy::Ask(ask, host as u8));
        }
    }

    fn grant(&self, state: &mut State<H, L>, line: usize, host: usize, ask: Ask) {
        let home = &mut state.homes[line];
        home.alone = ask != Ask::Share || home.holders & !(1 << host) == 0;
        home.holders |= 1 << host;
        let (alone, data) = (home.alone, Data::of(home.fresh));
        let cell = &mut state.cells[line][host];
        cell.ndr.push(if alone { Ndr::CmpE } else { Ndr::CmpS });
        if ask != Ask::Upgrade {
            cell.drs = Some(data);
        }
    }

    fn take_rwd(&self, state: &mut State<H, L>, line: usize, host: usize) {
        let home = &mut state.homes[line];
        let cell = &mut state.cells[line][host];
        match cell.rwd.pop() {
            Some(Rwd::Write { data, keeps }) => {
                home.fresh = data == Data::Fresh;
                if !keeps {
                    home.holders &= !(1 << host);
                    home.alone &= home.holders != 0;
                }
                cell.ndr.push(Ndr::Cmp);
            }
            Some(Rwd::Conflict) if self.fault == Some(Fault::AckPasses) => {
                cell.ndr.push_first(Ndr::ConflictAck);
            }
            Some(Rwd::Conflict) => cell.ndr.push(Ndr::ConflictAck),
            None => {}
        }
    }

    fn take_birsp(&self, state: &mut State<H, L>, line: usize, host: usize) {
        let shares = state.cells[line][host].birsp.take() == Some(true);
        let home = &mut state.homes[line];
        home.waits &= !(1 << host);
        if home.busy.is_none() {
            return;
        }
        if shares {
            home.alone = false;
        } else {
            home.holders &= !(1 << host);
            home.alone &= home.holders != 0;
        }
        if home.waits == 0
            && let Some(Busy::Ask(ask, by)) = home.busy.take()
        {
            self.grant(state, line, by.into(), ask);
        }
    }

    /// Lets all messages arrive, in the order in which steps are listed; returns those that were sent.
    pub fn drain(&self, state: &mut State<H, L>) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut next = Vec::new();
        loop {
            self.onward(state, &mut next);
            let Some((_, after)) = next.drain(..).next() else {
                return messages;
            };
            messages.extend(sent(state, &after));
            *state = after;
        }
    }
}

fn step(host: Option<usize>, line: usize, act: Act) -> Step {
    Step {
        host: host.map(|host| host as u8),
        line: line as u8,
        act,
    }
}
