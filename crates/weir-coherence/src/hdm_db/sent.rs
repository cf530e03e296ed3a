//! Which messages a step sent: those that are on their way after it and were not before.

use super::{Ask, Cell, Ndr, Rwd, Snoop, State};
use crate::message::{Channel, Message};

impl Cell {
    /// Messages that this cell has sent or was sent, and did not have on their way before.
    fn sent(&self, before: &Self, all: &mut Vec<Message>) {
        let mut new = |is_new: bool, channel, name| {
            if is_new {
                all.push(Message::new(channel, name));
            }
        };
        let ask = match self.ask {
            Some(Ask::Share) => "MemRd SnpData",
            Some(Ask::Own) => "MemRd SnpInv",
            Some(Ask::Clean) => "MemClnEvct",
            _ => "MemInv SnpInv",
        };
        new(self.req && !before.req, Channel::M2sReq, ask);
        let last = self.rwd.0[self.rwd.len().saturating_sub(1)];
        let rwd = match last {
            Some(Rwd::Conflict) => "BIConflict",
            _ => "MemWr",
        };
        new(self.rwd.len() > before.rwd.len(), Channel::M2sRwd, rwd);
        let ndr = match self.ndr.0[self.ndr.len().saturating_sub(1)] {
            Some(Ndr::CmpS) => "Cmp-S",
            Some(Ndr::CmpE) => "Cmp-E",
            Some(Ndr::ConflictAck) => "BIConflictAck",
            _ => "Cmp",
        };
        new(self.ndr.len() > before.ndr.len(), Channel::S2mNdr, ndr);
        let (drs, was) = (self.drs.is_some(), before.drs.is_some());
        new(drs && !was, Channel::S2mDrs, "MemData");
        let snoop = match self.bisnp {
            Some(Snoop::Data) => "BISnpData",
            _ => "BISnpInv",
        };
        let is_new = self.bisnp.is_some() && before.bisnp.is_none();
        new(is_new, Channel::S2mBisnp, snoop);
        let answer = if self.birsp == Some(true) {
            "BIRspS"
        } else {
            "BIRspI"
        };
        let is_new = self.birsp.is_some() && before.birsp.is_none();
        new(is_new, Channel::M2sBirsp, answer);
    }
}

/// The messages that a step sent.
pub fn sent<const H: usize, const L: usize>(
    before: &State<H, L>,
    after: &State<H, L>,
) -> Vec<Message> {
    let mut all = Vec::new();
    let cells = after
        .cells
        .iter()
        .flatten()
        .zip(before.cells.iter().flatten());
    for (after, before) in cells {
        after.sent(before, &mut all);
    }
    all
}
