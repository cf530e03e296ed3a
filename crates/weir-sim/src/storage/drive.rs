//! The device: its controller accepts requests one by one, its dies read, and the flash accepts the writes
//! that a full buffer passes on.
//!
//! Times are booked ahead, as everywhere behind the Table of Requests: the device serves requests in about
//! the order in which they come.

use weir_model::platform::STORAGE_BLOCK;

use crate::clock::Ps;
use crate::params::DriveParams;
use crate::rng;

/// A request to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Whether it writes.
    pub writes: bool,
    /// Whether its address follows the previous request of its thread.
    pub in_order: bool,
    /// Its lines.
    pub lines: u64,
    /// A random value of its own: it selects the dies that hold the data.
    pub chance: u64,
}

/// A storage device in use.
#[derive(Debug)]
pub struct Drive {
    params: DriveParams,
    /// When its controller accepts the next request.
    next_command: Ps,
    /// When its buffer has passed on all sequential reads so far.
    next_read: Ps,
    /// When its buffer has space for the next write.
    next_write: Ps,
    /// When each die is done.
    dies: Vec<Ps>,
}

impl Drive {
    /// An idle device, whose write buffer is full.
    pub fn new(params: DriveParams) -> Self {
        Self {
            next_command: 0,
            next_read: 0,
            next_write: 0,
            dies: vec![0; params.dies.max(1) as usize],
            params,
        }
    }

    /// A request that the device knows at `at`. Returns when its data crosses the link: towards the host for
    /// reads, towards the device for writes.
    pub fn take(&mut self, command: Command, at: Ps) -> Ps {
        let p = &self.params;
        let at = at.max(self.next_command);
        self.next_command = at + p.command;
        let blocks = command.lines.div_ceil(STORAGE_BLOCK.lines()).max(1);
        if command.writes {
            let room = at.max(self.next_write);
            let flash = match command.in_order {
                true => p.write_line * command.lines,
                false => p.random_write * blocks,
            };
            self.next_write = room + flash;
            return room;
        }
        // Sequential data was read ahead.
        let mut sensed = at;
        if !command.in_order {
            for block in 0..blocks {
                let die = rng::below(command.chance, block, self.dies.len() as u64);
                let die = &mut self.dies[die as usize];
                *die = at.max(*die) + p.sense;
                sensed = sensed.max(*die);
            }
        }
        self.next_read = self.next_read.max(at) + p.read_line * command.lines;
        sensed.max(self.next_read) + p.read_pass
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_model::units::Bytes;

    use super::*;

    const PARAMS: DriveParams = DriveParams {
        capacity: Bytes(1 << 40),
        commands: 64,
        dies: 16,
        sense: 50_000_000,
        read_pass: 20_000_000,
        write_pass: 10_000_000,
        command: 1_000_000,
        random_write: 5_000_000,
        read_line: 10_000,
        write_line: 16_000,
        link_line: 9_000,
    };

    proptest! {
        /// At no time are more requests accepted than controller, dies and flash allow, and no data is ready
        /// before the device knows of its request.
        #[test]
        fn no_part_serves_more_than_it_can(
            seed: u64,
            requests in prop::collection::vec((0u64..3_000_000, any::<bool>(), any::<bool>()), 1..300),
        ) {
            let mut drive = Drive::new(PARAMS);
            let (mut at, mut ends, mut random_writes, mut reads) = (0, Vec::new(), 0, 0);
            for (n, &(later, writes, in_order)) in requests.iter().enumerate() {
                at += later;
                let chance = rng::mix(seed ^ n as u64);
                let command = Command { writes, in_order, lines: 64, chance };
                let ready = drive.take(command, at);
                prop_assert!(ready >= at);
                prop_assert!(writes || ready >= at + PARAMS.read_pass);
                prop_assert!(writes || in_order || ready >= at + PARAMS.sense + PARAMS.read_pass);
                random_writes += u64::from(writes && !in_order);
                reads += u64::from(!writes && !in_order);
                ends.push(ready);
            }
            let n = requests.len() as u64;
            prop_assert!(drive.next_command >= n * PARAMS.command);
            prop_assert!(drive.next_write >= random_writes * PARAMS.random_write);
            let busy: Ps = drive.dies.iter().sum();
            prop_assert!(busy >= reads * PARAMS.sense);
        }
    }
}
