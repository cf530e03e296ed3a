//! An access, and what takes it.

/// An access of a program to its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Access {
    /// The address of its first byte.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
    /// Whether it is a store.
    pub store: bool,
    /// The address of the load that the address was computed from, if the trace says so and that load left L1.
    pub from: Option<u64>,
}

/// What takes the accesses of a trace, in order.
pub trait Sink {
    /// This many instructions began.
    fn instructions(&mut self, count: u64);

    /// What follows is of the thread with this number.
    fn thread(&mut self, _: u64) {}

    /// An access of the latest instruction; whether it left L1.
    fn access(&mut self, access: Access) -> bool;
}

/// Keeps all.
impl Sink for Vec<Access> {
    fn instructions(&mut self, _: u64) {}

    fn access(&mut self, access: Access) -> bool {
        self.push(access);
        true
    }
}
