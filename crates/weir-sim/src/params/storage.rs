//! Storage devices and the path to them: the parts that have no public value, derived from measured times.

use weir_model::platform::{Host, STORAGE_BLOCK, StorageDevice};
use weir_model::units::{Bytes, GbPerSec, Nanos};

use super::error::{SimError, left_over};
use super::uncore::UncoreParams;
use crate::clock::{Ps, ps};

/// Constants of how lines of devices reach memory, and of the work of cores for storage requests.
#[derive(Debug, Clone, Copy)]
pub struct IoParams {
    /// Lines that the cache ways for device writes hold; 0 if device writes go to memory.
    pub lines: u64,
    /// The ways.
    pub mask: u32,
    /// Lines that the devices of one port write, and lines that they read, at once.
    pub writes: u32,
    pub reads: u32,
    /// Core time to submit and to complete a request, without the lines for which it waits.
    pub submit: Ps,
    pub complete: Ps,
    /// Lines of the kernel for which each of them waits.
    pub submit_lines: u32,
    pub complete_lines: u32,
    pub interrupt: Ps,
    /// One-way time between a core or the mesh and a device.
    pub way: Ps,
}

/// Constants of a storage device.
#[derive(Debug, Clone, Copy)]
pub struct DriveParams {
    pub capacity: Bytes,
    /// Requests that it handles at once.
    pub commands: u32,
    pub dies: u32,
    pub sense: Ps,
    /// Fixed time of a read, and of a write, in the controller.
    pub read_pass: Ps,
    pub write_pass: Ps,
    /// Least time between two requests.
    pub command: Ps,
    /// Time of a random write of 4 KiB, and of one line read or written in order.
    pub random_write: Ps,
    pub read_line: Ps,
    pub write_line: Ps,
    /// Time of a line on its link.
    pub link_line: Ps,
}

pub(super) fn io_params(host: &Host, uncore: &UncoreParams) -> IoParams {
    let (io, llc) = (&host.io, &uncore.llc);
    let all = llc.ways.min(32);
    let ways = (*io.ways).min(all);
    // The measured latency includes their time without load.
    let hit = host.llc.latency.value;
    let (first, last) = ((*io.lines).div_ceil(2), *io.lines / 2);
    let rest = |cycles, lines: u32| {
        let time = host.core.clock.time(cycles) - hit * f64::from(lines);
        ps(time)
    };
    IoParams {
        lines: llc.lines / u64::from(llc.ways) * u64::from(ways),
        // The last ways, as the register defines them.
        mask: ((1_u64 << all) - (1_u64 << (all - ways))) as u32,
        writes: *io.write_buffer,
        reads: *io.read_buffer,
        submit: rest(*io.submit, first),
        complete: rest(*io.complete, last),
        submit_lines: first,
        complete_lines: last,
        interrupt: ps(*io.interrupt),
        way: ps(*io.doorbell),
    }
}

pub(super) fn drive_params(
    device: &StorageDevice,
    host: &Host,
    uncore: &UncoreParams,
) -> Result<DriveParams, SimError> {
    let m = &device.measured;
    let block = STORAGE_BLOCK;
    let line = device.line_time();
    let transfer = line * block.lines() as f64;
    let way = *host.io.doorbell;
    let hit = Nanos(uncore.hit as f64 / 1e3);
    // The doorbell, the fetch of the command from memory, and the write of the completion.
    let commands = way * 4.0 + hit * 2.0;
    let read_pass = left_over(
        &format!("a read of {}", device.name),
        &m.read_idle,
        commands + *device.sense + transfer,
        "doorbell, command, a die's read, the link, completion",
    )?;
    let write_pass = left_over(
        &format!("a write of {}", device.name),
        &m.write_idle,
        commands + way * 2.0 + hit + transfer,
        "doorbell, command, data fetched over the link, completion",
    )?;
    let of_line = |rate: GbPerSec| ps(rate.line_time());
    Ok(DriveParams {
        capacity: *device.capacity,
        commands: *device.commands,
        dies: *device.dies,
        sense: ps(*device.sense),
        read_pass: ps(read_pass),
        write_pass: ps(write_pass),
        command: ps(Nanos(1e9 / f64::from(*m.random_read))),
        random_write: ps(Nanos(1e9 / f64::from(*m.random_write))),
        read_line: of_line(*m.sequential_read),
        write_line: of_line(*m.sequential_write),
        link_line: ps(line),
    })
}
