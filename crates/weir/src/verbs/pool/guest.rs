//! The arguments by which QEMU gives a guest a node without processors, at the distance of a pool (zNUMA).

use std::path::Path;

use weir_model::units::Bytes;

use super::table::UNIT;
use crate::failure::{Failure, Result};

/// The most modules of memory of a QEMU machine (QEMU, `ACPI_MAX_RAM_SLOTS`).
const MOST_SLOTS: usize = 256;
/// The guest's node without processors.
pub const ZNUMA: u32 = 1;

/// How a guest is divided.
#[derive(Debug, Clone, clap::Args)]
pub struct Shape {
    /// The guest's memory, local and pooled together.
    #[arg(long, value_name = "SIZE")]
    pub memory: Bytes,
    /// The part that the guest will not touch; whole slices of it come from the pool.
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "pool")]
    pub untouched: Option<f64>,
    /// The memory from the pool, instead of --untouched.
    #[arg(long, value_name = "SIZE")]
    pub pool: Option<Bytes>,
    /// The guest's processors, all on its node 0.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cpus: u32,
    /// The distance of the pool in the guest's SLIT, 10 times the latency relative to local memory: 18 is a pool of
    /// 8 sockets, 21 one of 16 (`weir plan latency`).
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(11..=254))]
    pub distance: u32,
    /// Slices for which the guest has room beyond these.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub room: usize,
    /// The host's node for local memory [default: wherever the host has room].
    #[arg(long, value_name = "NODE")]
    pub local_node: Option<u32>,
}

/// A percentage from 0 to 100.
fn percent(text: &str) -> std::result::Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(str::trim);
    let Some(number) = number else {
        return Err("it needs its unit, such as 40%".into());
    };
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        Ok(_) => Err("it must be from 0 % to 100 %, such as 40%".into()),
        Err(_) => Err(format!("`{number}` is not a number; write it such as 40%")),
    }
}

/// A guest's memory in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// Memory next to the processors.
    pub local: Bytes,
    /// Slices from the pool.
    pub slices: usize,
    /// The size of one.
    pub slice: Bytes,
}

impl Division {
    /// Memory from the pool.
    pub fn pool(&self) -> Bytes {
        Bytes(self.slices as u64 * self.slice.get())
    }
}

impl Shape {
    /// Divides the memory: of what is untouched, whole slices are the pool's.
    ///
    /// # Errors
    /// A size is no multiple of 1 MiB or of a slice, or nothing is left for the guest's own node.
    pub fn divide(&self, slice: Bytes) -> Result<Division> {
        let memory = self.memory.get();
        if slice.get() == 0
            || !slice.get().is_multiple_of(UNIT)
            || memory == 0
            || !memory.is_multiple_of(UNIT)
        {
            return Err(Failure::request(format!(
                "--memory is {}, with slices of {slice}; both must be multiples of {}",
                self.memory,
                Bytes(UNIT)
            )));
        }
        let pool = match self.pool {
            Some(pool) if !pool.get().is_multiple_of(slice.get()) => {
                return Err(Failure::request(format!(
                    "--pool is {pool}; it must be whole slices of {slice}"
                )));
            }
            Some(pool) => pool.get(),
            None => {
                let untouched = (memory as f64 * self.untouched.unwrap_or(0.0) / 100.0) as u64;
                untouched - untouched % slice.get()
            }
        };
        // A kernel needs memory of its own next to its processors.
        let local = memory.checked_sub(pool).filter(|local| *local > 0);
        let local = local.ok_or_else(|| {
            Failure::request(format!(
                "of {} of memory {} would be the pool's, which leaves none next to the guest's processors",
                self.memory,
                Bytes(pool)
            ))
        })?;
        let slices = (pool / slice.get()) as usize;
        if slices + self.room > MOST_SLOTS {
            return Err(Failure::request(format!(
                "{} slices of {slice} are more than the {MOST_SLOTS} that a QEMU machine has slots for; make larger slices",
                slices + self.room
            )));
        }
        Ok(Division {
            local: Bytes(local),
            slices,
            slice,
        })
    }

    /// Processors, both nodes and their distance. `boot` is the backend of the node without processors, if the guest
    /// has its memory from the beginning; otherwise `slots` modules may be plugged into it.
    pub fn arguments(
        &self,
        division: &Division,
        boot: Option<String>,
        slots: usize,
    ) -> Vec<String> {
        let mib = |bytes: Bytes| format!("{}M", bytes.get() / UNIT);
        let at_boot = match boot {
            Some(_) => Bytes(division.local.get() + division.pool().get()),
            None => division.local,
        };
        let mut memory = mib(at_boot);
        if slots > 0 {
            let most = at_boot.get() + slots as u64 * division.slice.get();
            memory += &format!(",slots={slots},maxmem={}", mib(Bytes(most)));
        }
        let mut words: Vec<String> = Vec::new();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("-m", memory);
        option("-smp", self.cpus.to_string());
        option(
            "-object",
            ram("weir-local", &mib(division.local), self.local_node),
        );
        option(
            "-numa",
            format!("node,nodeid=0,cpus=0-{},memdev=weir-local", self.cpus - 1),
        );
        let memdev = match boot {
            Some(backend) => {
                option("-object", backend);
                ",memdev=weir-znuma"
            }
            None => "",
        };
        option("-numa", format!("node,nodeid={ZNUMA}{memdev}"));
        for (from, to) in [(0, ZNUMA), (ZNUMA, 0)] {
            option(
                "-numa",
                format!("dist,src={from},dst={to},val={}", self.distance),
            );
        }
        words
    }

    /// Whether something is untouched, but no whole slice.
    ///
    /// # Errors
    /// As [`Self::divide`].
    pub fn is_below_a_slice(&self, slice: Bytes) -> Result<bool> {
        let untouched = self.untouched.is_some_and(|percent| percent > 0.0);
        Ok(untouched && self.divide(slice)?.slices == 0)
    }

    /// All arguments of a guest whose pool is memory of the host, on a node of it if one is named.
    ///
    /// # Errors
    /// As [`Self::divide`].
    pub fn without_manager(&self, slice: Bytes, node: Option<u32>) -> Result<Vec<String>> {
        let division = self.divide(slice)?;
        let mib = format!("{}M", division.pool().get() / UNIT);
        let boot = (division.slices > 0).then(|| ram("weir-znuma", &mib, node));
        Ok(self.arguments(&division, boot, self.room))
    }
}

/// A backend of anonymous memory that other processes may share.
fn ram(id: &str, size: &str, node: Option<u32>) -> String {
    let bound = node.map(|node| format!(",host-nodes={node},policy=bind"));
    format!(
        "memory-backend-memfd,id={id},size={size},share=on{}",
        bound.unwrap_or_default()
    )
}

/// A slice that a guest has from its start.
pub fn module_at_start(slice: usize, file: &Path, start: u64, bytes: Bytes) -> [String; 4] {
    // A comma in a value is written twice.
    let file = file.display().to_string().replace(',', ",,");
    let (backend, module) = (super::dimm::backend(slice), super::dimm::module(slice));
    [
        "-object".into(),
        format!(
            "memory-backend-file,id={backend},mem-path={file},size={},offset={start},share=on",
            bytes.get()
        ),
        "-device".into(),
        format!("pc-dimm,id={module},memdev={backend},node={ZNUMA}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shape() -> Shape {
        Shape {
            memory: Bytes(768 * MIB),
            untouched: Some(40.0),
            pool: None,
            cpus: 2,
            distance: 21,
            room: 0,
            local_node: None,
        }
    }

    #[test]
    fn untouched_memory_is_the_pools_in_whole_slices() {
        let slice = Bytes(128 * MIB);
        let slices = |untouched| {
            let shape = Shape {
                untouched: Some(untouched),
                ..shape()
            };
            shape
                .divide(slice)
                .map(|division| (division.slices, division.local.get() / MIB))
        };
        // 40 % of 768 MiB are 307 MiB.
        assert_eq!(slices(40.0).ok(), Some((2, 512)));
        assert_eq!(slices(0.0).ok(), Some((0, 768)));
        assert_eq!(slices(16.0).ok(), Some((0, 768)));
        assert_eq!(slices(99.0).ok(), Some((5, 128)));
        let output = slices(100.0).unwrap_err().message().unwrap_or_default();
        assert!(output.contains("leaves none next to"), "{output}");
    }

    #[test]
    fn a_division_that_is_none_is_refused() {
        let odd = Shape {
            pool: Some(Bytes(100 * MIB)),
            ..shape()
        };
        let output = odd.divide(Bytes(128 * MIB)).unwrap_err();
        assert!(
            output
                .message()
                .unwrap_or_default()
                .contains("whole slices")
        );
        let many = Shape {
            room: 255,
            ..shape()
        };
        let output = many.divide(Bytes(128 * MIB)).unwrap_err();
        assert!(
            output
                .message()
                .unwrap_or_default()
                .contains("larger slices")
        );
        assert!(shape().divide(Bytes(1000)).is_err());
        assert!(shape().divide(Bytes(0)).is_err());
    }

    #[test]
    fn the_node_without_processors_has_its_distance_both_ways() {
        let words = shape()
            .without_manager(Bytes(128 * MIB), Some(3))
            .unwrap_or_else(|_| panic!());
        assert_eq!(
            words.join(" "),
            "-m 768M -smp 2 -object memory-backend-memfd,id=weir-local,size=512M,share=on \
             -numa node,nodeid=0,cpus=0-1,memdev=weir-local \
             -object memory-backend-memfd,id=weir-znuma,size=256M,share=on,host-nodes=3,policy=bind \
             -numa node,nodeid=1,memdev=weir-znuma -numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=21"
        );
        let plugged = shape()
            .divide(Bytes(128 * MIB))
            .unwrap_or_else(|_| panic!());
        let words = shape().arguments(&plugged, None, 4).join(" ");
        assert!(
            words.starts_with("-m 512M,slots=4,maxmem=1024M "),
            "{words}"
        );
        assert!(words.contains("-numa node,nodeid=1 "), "{words}");
    }
}
