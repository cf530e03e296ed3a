//! `weir plan failures`: what the failure of a part takes down, in a cluster whose machines share memory, and what a
//! second copy of the pool's memory would cost (Memory disaggregation: why now and what are the challenges, section 4.6).
//!
//! | module | content |
//! |---|---|
//! | [`part`] | parts, and which VMs have memory behind one |
//! | [`inject`] | failures at random moments of a replayed trace; VMs that are started again |
//! | [`rates`] | how often parts fail, with source |
//! | [`mod@tally`] | VMs and hours over all moments |
//! | [`classes`] | memory by classes of allocation: what each needs, and loses with a pool |
//! | [`compared`] | the classes side by side, and how long a load takes |
//!
//! Each failure happens alone: the trace goes on as if it had not been.

pub mod classes;
pub mod compared;
pub mod inject;
mod outcome;
pub mod part;
pub mod rates;
pub mod tally;

pub use outcome::FailurePlan;

use crate::PlanError;
use crate::error::within;
use crate::latency::Build;
use crate::pool::SOCKETS;
use crate::trace::Machine;

/// What fails, and where memory is.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Sockets that share a pool, by increasing size.
    pub sockets: Vec<u32>,
    /// Machines of a cluster.
    pub machines: u32,
    /// Their size, with their part of the pool.
    pub machine: Machine,
    /// Share of each VM's memory in the pool, from 0 to 1.
    pub share: f64,
    /// Share of the VMs whose memory in the pool is optional, from 0 to 1.
    pub optional: f64,
    /// Devices of a pool.
    pub devices: u32,
    /// Whether a VM's memory is spread over all devices; otherwise it is on one.
    pub interleaved: bool,
    /// Whether pools of every size have a switch; otherwise those that are too large for the ports of a device.
    pub switched: bool,
    /// Random moments of each trace.
    pub moments: u32,
    /// Seed of moments, of parts that fail, and of optional memory.
    pub seed: u64,
}

impl Topology {
    /// Checks what is asked.
    ///
    /// # Errors
    /// A size of pools does not fit the cluster, or a number is outside its bounds.
    pub fn check(&self) -> Result<(), PlanError> {
        within(
            "--machines",
            f64::from(self.machines),
            (1.0, 1e6),
            "1 to 1000000",
        )?;
        for &sockets in &self.sockets {
            within(
                "--pools",
                f64::from(sockets),
                (2.0, 64.0),
                "2 to 64 sockets",
            )?;
            let wrong = |wanted: std::borrow::Cow<'static, str>| {
                Err(PlanError::OutOfBounds {
                    what: "--pools",
                    found: format!("{sockets} sockets"),
                    wanted,
                })
            };
            if !sockets.is_multiple_of(SOCKETS) {
                return wrong("a multiple of the 2 sockets of a machine".into());
            }
            let of_pool = sockets / SOCKETS;
            if !self.machines.is_multiple_of(of_pool) {
                let wanted = format!(
                    "a size that divides the cluster: such a pool has {of_pool} machines, and --machines {} is not a multiple of that",
                    self.machines
                );
                return wrong(wanted.into());
            }
        }
        within("--share", self.share, (0.0, 1.0), "0 % to 100 %")?;
        within("--optional", self.optional, (0.0, 1.0), "0 % to 100 %")?;
        within("--devices", f64::from(self.devices), (1.0, 64.0), "1 to 64")?;
        within(
            "--moments",
            f64::from(self.moments),
            (1.0, 1e5),
            "1 to 100000",
        )
    }

    /// Whether a pool of this many machines has a switch.
    pub fn switched(&self, of_pool: usize) -> bool {
        self.switched || Build::of(of_pool as u32 * SOCKETS).switch
    }

    /// A machine's own memory, in MiB.
    pub fn own_mib(&self) -> f64 {
        f64::from(self.machine.memory_mib) * (1.0 - self.share)
    }

    /// How many of a part a cluster has.
    pub fn count(&self, part: part::Part, of_pool: usize) -> u64 {
        let (machines, devices) = (u64::from(self.machines), u64::from(self.devices));
        let pools = machines / of_pool.max(1) as u64;
        let switched = self.switched(of_pool);
        match part {
            part::Part::Machine | part::Part::Dimm => machines,
            part::Part::Device => pools * devices,
            part::Part::Switch => pools * u64::from(switched),
            part::Part::Link if switched => machines,
            part::Part::Link => machines * devices,
            part::Part::Manager => pools,
        }
    }
}
