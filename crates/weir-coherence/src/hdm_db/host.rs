//! What a host does with messages.

use super::{Ask, Cache, Cell, Data, Fault, Held, Ndr, Rwd, Snoop};

impl Cell {
    /// Whether its copy may be read and is not the last value.
    pub(crate) fn is_stale(&self) -> bool {
        self.cache != Cache::I && !self.fresh
    }

    pub(super) fn is_silent(&self) -> bool {
        !self.req
            && self.rwd.is_empty()
            && self.ndr.is_empty()
            && self.drs.is_none()
            && self.bisnp.is_none()
            && self.birsp.is_none()
    }

    pub(super) fn send(&mut self, ask: Ask) {
        (self.ask, self.req) = (Some(ask), true);
    }

    pub(super) fn write_back(&mut self, keeps: bool) {
        let data = Data::of(self.fresh);
        self.rwd.push(Rwd::Write { data, keeps });
        self.ask = Some(Ask::Write);
        self.cache = if keeps { Cache::S } else { Cache::I };
    }

    /// Ends a request whose answer is complete, and answers a snoop that may be answered.
    pub(super) fn settle(&mut self, fault: Option<Fault>) {
        match (self.ask, self.cmp, self.data) {
            (Some(Ask::Share | Ask::Own), Some(cmp), Some(data)) => {
                self.cache = if cmp == Ndr::CmpS { Cache::S } else { Cache::E };
                self.fresh = data == Data::Fresh;
                (self.ask, self.cmp, self.data) = (None, None, None);
            }
            (Some(Ask::Upgrade), Some(_), _) => {
                (self.ask, self.cmp) = (None, None);
                if self.cache == Cache::S {
                    self.cache = Cache::E;
                } else {
                    self.send(Ask::Own);
                }
            }
            (Some(Ask::Write | Ask::Clean), Some(_), _) => (self.ask, self.cmp) = (None, None),
            _ => {}
        }
        match (self.snoop, self.ask, self.cmp) {
            (Some((snoop, Held::WriteBack)), None, _) => {
                self.birsp = Some(snoop == Snoop::Data);
                self.snoop = None;
            }
            (Some((snoop, Held::Ready)), None, _) => self.answer(snoop, fault),
            // The device has not seen the request yet (early conflict): the answer is about the present copy.
            (Some((snoop, Held::Ready)), Some(_), None) => self.answer(snoop, fault),
            _ => {}
        }
    }

    pub(super) fn answer(&mut self, snoop: Snoop, fault: Option<Fault>) {
        let keeps = snoop == Snoop::Data;
        self.snoop = None;
        match self.cache {
            Cache::M if fault != Some(Fault::LostWrite) => {
                self.write_back(keeps);
                self.snoop = Some((snoop, Held::WriteBack));
            }
            Cache::I if fault == Some(Fault::NoAnswer) => {}
            Cache::I => self.birsp = Some(false),
            _ => {
                self.cache = if keeps { Cache::S } else { Cache::I };
                self.birsp = Some(keeps);
            }
        }
    }

    pub(super) fn take_bisnp(&mut self, snoop: Snoop, fault: Option<Fault>) {
        let ignores = match fault {
            Some(Fault::CrossedWrite) => self.ask == Some(Ask::Write),
            Some(Fault::NoConflict) => self.ask.is_some_and(|ask| ask != Ask::Write),
            _ => false,
        };
        if self.ask.is_some() && !ignores {
            self.rwd.push(Rwd::Conflict);
            self.snoop = Some((snoop, Held::Conflict));
        } else if ignores {
            self.answer(snoop, fault);
        } else {
            self.snoop = Some((snoop, Held::Ready));
            self.settle(fault);
        }
    }

    pub(super) fn take_ndr(&mut self, fault: Option<Fault>) {
        match self.ndr.pop() {
            Some(Ndr::ConflictAck) => {
                self.snoop = self.snoop.map(|(snoop, _)| (snoop, Held::Ready));
            }
            cmp => self.cmp = cmp,
        }
        self.settle(fault);
    }
}
