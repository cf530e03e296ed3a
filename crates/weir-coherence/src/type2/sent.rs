//! Which messages a step sent.

use super::{Ask, Down, Req, State};
use crate::hdm_db::Cache;
use crate::message::{Channel, Message};

/// The messages that a step sent.
pub fn sent(before: &State, after: &State) -> Vec<Message> {
    let mut all = Vec::new();
    let mut new = |is_new: bool, channel, name| {
        if is_new {
            all.push(Message::new(channel, name));
        }
    };
    let ask = match after.device_ask {
        Some(Ask::Share) => "RdShared",
        Some(Ask::WriteWhole) => "ItoMWr",
        Some(Ask::Clean) => "CleanEvict",
        Some(Ask::Dirty) => "DirtyEvict",
        _ => "RdOwn",
    };
    new(after.d2h_req && !before.d2h_req, Channel::D2hReq, ask);
    let rsp = match (after.d2h_rsp, after.device) {
        (Some(true), Cache::S) => "RspSFwdM",
        (Some(true), _) => "RspIFwdM",
        (_, Cache::S) => "RspSHitSE",
        _ if before.device == Cache::I => "RspIHitI",
        _ => "RspIHitSE",
    };
    let is_new = after.d2h_rsp.is_some() && before.d2h_rsp.is_none();
    new(is_new, Channel::D2hRsp, rsp);
    let is_new = after.d2h_data.is_some() && before.d2h_data.is_none();
    new(is_new, Channel::D2hData, "Data");
    let (channel, name) = match after.h2d.0[after.h2d.len().saturating_sub(1)] {
        Some(Down::GoS) => (Channel::H2dRsp, "GO-S"),
        Some(Down::GoE) => (Channel::H2dRsp, "GO-E"),
        Some(Down::Pull) => (Channel::H2dRsp, "GO_WritePull"),
        Some(Down::PullDrop) => (Channel::H2dRsp, "GO_WritePull_Drop"),
        Some(Down::SnpData) => (Channel::H2dReq, "SnpData"),
        _ => (Channel::H2dReq, "SnpInv"),
    };
    new(after.h2d.len() > before.h2d.len(), channel, name);
    let is_new = after.h2d_data.is_some() && before.h2d_data.is_none();
    new(is_new, Channel::H2dData, "Data");
    let req = match after.req.0[after.req.len().saturating_sub(1)] {
        Some(Req::Share) => "MemRd SnpData",
        Some(Req::Own) => "MemRd SnpInv",
        Some(Req::FwdS | Req::FwdI) => "MemRdFwd",
        _ => "MemInv SnpInv",
    };
    new(after.req.len() > before.req.len(), Channel::M2sReq, req);
    new(
        after.rwd.is_some() && before.rwd.is_none(),
        Channel::M2sRwd,
        "MemWr",
    );
    let cmp = match after.ndr {
        Some(Cache::S) => "Cmp-S",
        Some(Cache::E) => "Cmp-E",
        _ => "Cmp",
    };
    new(
        after.ndr.is_some() && before.ndr.is_none(),
        Channel::S2mNdr,
        cmp,
    );
    new(
        after.drs.is_some() && before.drs.is_none(),
        Channel::S2mDrs,
        "MemData",
    );
    all
}
