//! Messages of CXL.cache and CXL.mem, their channels, and what each takes of a link.
//!
//! Names are those of the CXL specification 3.0, sections 3.2 (CXL.cache) and 3.3 (CXL.mem).

use weir_model::units::Bytes;

weir_model::named! {
    /// A channel between host and device.
    pub enum Channel {
        /// Requests of a device that caches.
        D2hReq = "D2H Req",
        /// Its answers to snoops.
        D2hRsp = "D2H Rsp",
        /// Its modified lines.
        D2hData = "D2H Data",
        /// Snoops of the host.
        H2dReq = "H2D Req",
        /// Answers of the host: global observation (GO).
        H2dRsp = "H2D Rsp",
        /// Lines for the device.
        H2dData = "H2D Data",
        /// Requests for memory of the device.
        M2sReq = "M2S Req",
        /// Lines written to it, and BIConflict.
        M2sRwd = "M2S RwD",
        /// Answers to back-invalidate snoops.
        M2sBirsp = "M2S BIRsp",
        /// Completions.
        S2mNdr = "S2M NDR",
        /// Lines of its memory.
        S2mDrs = "S2M DRS",
        /// Back-invalidate snoops.
        S2mBisnp = "S2M BISnp",
    }
}

weir_model::named! {
    /// How a link packs messages.
    pub enum Flit {
        /// CXL 1.1 and 2.0: four slots of 16 bytes, and 4 bytes of identifier and CRC.
        B68 = "68 B",
        /// CXL 3.x: fifteen slots of 16 bytes, and 16 bytes of header, CRC and FEC.
        B256 = "256 B",
    }
}

impl Channel {
    /// Whether it goes from the host to the device.
    pub fn is_down(self) -> bool {
        use Channel::{H2dData, H2dReq, H2dRsp, M2sBirsp, M2sReq, M2sRwd};
        matches!(self, H2dReq | H2dRsp | H2dData | M2sReq | M2sRwd | M2sBirsp)
    }

    /// Half slots of a message. A header takes a slot, a line four; two responses without data share a slot.
    pub fn half_slots(self) -> u64 {
        use Channel::{D2hData, D2hReq, D2hRsp, H2dData, H2dReq, H2dRsp};
        use Channel::{M2sBirsp, M2sReq, M2sRwd, S2mBisnp, S2mDrs, S2mNdr};
        match self {
            D2hRsp | H2dRsp | S2mNdr | M2sBirsp => 1,
            D2hReq | H2dReq | M2sReq | S2mBisnp => 2,
            D2hData | H2dData | M2sRwd | S2mDrs => 10,
        }
    }
}

impl Flit {
    /// What half slots take of a link in flits that are full.
    pub fn bytes(self, half_slots: u64) -> Bytes {
        let bytes = match self {
            Flit::B68 => half_slots as f64 * 68.0 / 8.0,
            Flit::B256 => half_slots as f64 * 256.0 / 30.0,
        };
        Bytes(bytes.round() as u64)
    }
}

/// A message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// Its channel.
    pub channel: Channel,
    /// Its opcode, with what matters of its fields.
    pub name: &'static str,
}

impl Message {
    /// A message.
    pub const fn new(channel: Channel, name: &'static str) -> Self {
        Self { channel, name }
    }
}

/// A queue of two places, empty ones last: what is ordered on a channel for one address and agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Two<T>(pub [Option<T>; 2]);

impl<T> Default for Two<T> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<T: Copy> Two<T> {
    /// The first.
    pub fn head(&self) -> Option<T> {
        self.0[0]
    }

    /// Adds one behind the others. Both protocols send a third only after the first has arrived.
    pub fn push(&mut self, new: T) {
        debug_assert!(self.0[1].is_none(), "a third message on an ordered channel");
        let at = usize::from(self.0[0].is_some());
        self.0[at] = Some(new);
    }

    /// Adds one before the others: what a channel must not do.
    pub fn push_first(&mut self, new: T) {
        self.0 = [Some(new), self.0[0]];
    }

    /// Removes the first.
    pub fn pop(&mut self) -> Option<T> {
        let [head, next] = self.0;
        self.0 = [next, None];
        head
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// How many are in it.
    pub fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }
}
