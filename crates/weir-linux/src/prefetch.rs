//! The switches of the hardware prefetchers: a model-specific register of each core, behind `/dev/cpu/N/msr`
//! (the kernel's `msr` module, for root).
//!
//! The earlier value of a register is restored, whatever it was, when a run ends in any way that runs
//! destructors. Hardware threads of one core share the register.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weir_model::capability::Unavailable;

use crate::root::Root;
use crate::topology::processor::Processor;

/// A register whose set bits switch prefetchers off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Register {
    number: u32,
    /// Bits of the prefetchers into the first-level cache.
    l1: u64,
    /// Bits of the prefetchers into the second-level cache.
    l2: u64,
}

/// Intel SDM volume 4, `MSR_PREFETCH_CONTROL` (`MSR_MISC_FEATURE_CONTROL`): 0 L2 streamer, 1 L2
/// adjacent line, 2 DCU next line, 3 DCU by instruction pointer.
const INTEL: Register = Register {
    number: 0x1a4,
    l1: 0b1100,
    l2: 0b0011,
};

/// AMD PPR of family 19h, `Prefetch Control` (Zen 3 and later): 0 L1 stream, 1 L1 stride, 2 L1
/// region, 3 L2 stream, 5 L2 up and down.
const AMD: Register = Register {
    number: 0xc000_0108,
    l1: 0b00_0111,
    l2: 0b10_1000,
};

/// Which prefetchers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Any prefetcher into the first-level cache.
    pub l1: bool,
    /// Any prefetcher into the second-level cache.
    pub l2: bool,
}

/// The prefetchers' switches of a machine.
#[derive(Debug, Clone)]
pub struct Switches {
    root: Root,
    register: Register,
}

impl Switches {
    /// The switches of a processor, if its register is known and this program may use the register of `cpu`.
    ///
    /// # Errors
    /// Why not.
    pub fn find(root: &Root, processor: &Processor, cpu: u32) -> Result<Self, Unavailable> {
        let register = match processor.vendor.get()?.as_str() {
            "GenuineIntel" => INTEL,
            "AuthenticAMD" => AMD,
            other => {
                return Err(Unavailable::because(format!(
                    "no register is known that switches the prefetchers of a processor by {other}"
                )));
            }
        };
        let switches = Self {
            root: root.clone(),
            register,
        };
        switches.read(cpu)?;
        switches.open(cpu, true)?;
        Ok(switches)
    }

    /// In words, for the list of capabilities.
    pub fn describe(&self) -> String {
        format!("MSR {:#x} can be written", self.register.number)
    }

    /// Which prefetchers run on a processor.
    ///
    /// # Errors
    /// The register cannot be read.
    pub fn running(&self, cpu: u32) -> Result<Running, Unavailable> {
        Ok(self.decode(self.read(cpu)?))
    }

    fn decode(&self, value: u64) -> Running {
        Running {
            l1: !value & self.register.l1 != 0,
            l2: !value & self.register.l2 != 0,
        }
    }

    fn path(cpu: u32) -> String {
        format!("/dev/cpu/{cpu}/msr")
    }

    fn open(&self, cpu: u32, write: bool) -> Result<File, Unavailable> {
        let path = Self::path(cpu);
        self.root.open(&path, write).map_err(|e| {
            let hint = match e.kind() {
                io::ErrorKind::NotFound => "; `modprobe msr` makes it",
                io::ErrorKind::PermissionDenied => "; it is for root (CAP_SYS_RAWIO)",
                _ => "",
            };
            Unavailable::because(format!("cannot open {path}: {e}{hint}"))
        })
    }

    fn failed(&self, verb: &str, cpu: u32, cause: &io::Error) -> Unavailable {
        Unavailable::because(format!(
            "cannot {verb} MSR {:#x} of CPU {cpu}: {cause}",
            self.register.number
        ))
    }

    fn read(&self, cpu: u32) -> Result<u64, Unavailable> {
        let mut value = [0; 8];
        self.open(cpu, false)?
            .read_exact_at(&mut value, u64::from(self.register.number))
            .map_err(|e| self.failed("read", cpu, &e))?;
        Ok(u64::from_le_bytes(value))
    }

    /// Writes and reads back: a hypervisor may accept a write and ignore it.
    fn write(&self, cpu: u32, value: u64) -> Result<(), Unavailable> {
        self.open(cpu, true)?
            .write_all_at(&value.to_le_bytes(), u64::from(self.register.number))
            .map_err(|e| self.failed("write", cpu, &e))?;
        let found = self.read(cpu)?;
        if found != value {
            return Err(Unavailable::because(format!(
                "MSR {:#x} of CPU {cpu} does not keep what is written: {value:#x} became {found:#x}",
                self.register.number
            )));
        }
        Ok(())
    }
}

/// Prefetchers that are switched for a time; a drop restores the earlier values.
#[derive(Debug)]
pub struct SwitchedPrefetchers {
    switches: Switches,
    before: Vec<(u32, u64)>,
}

impl SwitchedPrefetchers {
    /// Switches the prefetchers of some processors.
    ///
    /// # Errors
    /// A register cannot be read or written; all are as before then.
    pub fn set(
        switches: &Switches,
        cpus: impl IntoIterator<Item = u32>,
        wanted: Running,
    ) -> Result<Self, Unavailable> {
        let mut held = Self {
            switches: switches.clone(),
            before: Vec::new(),
        };
        held.change(cpus, wanted)?;
        Ok(held)
    }

    /// Switches the prefetchers of more processors, or of the same ones again.
    ///
    /// # Errors
    /// A register cannot be read or written; registers that were written stay so until this is dropped.
    pub fn change(
        &mut self,
        cpus: impl IntoIterator<Item = u32>,
        wanted: Running,
    ) -> Result<(), Unavailable> {
        let Register { l1, l2, .. } = self.switches.register;
        for cpu in cpus {
            let found = self.switches.read(cpu)?;
            if !self.before.iter().any(|&(known, _)| known == cpu) {
                self.before.push((cpu, found));
            }
            let off = if wanted.l1 { 0 } else { l1 } | if wanted.l2 { 0 } else { l2 };
            self.switches.write(cpu, found & !(l1 | l2) | off)?;
        }
        Ok(())
    }

    /// The register, in words.
    pub fn describe(&self) -> String {
        format!("MSR {:#x}", self.switches.register.number)
    }

    /// Restores the earlier values.
    ///
    /// # Errors
    /// A register cannot be written; the others are restored all the same.
    pub fn restore(mut self) -> Result<(), Unavailable> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), Unavailable> {
        let mut result = Ok(());
        for (cpu, value) in self.before.drain(..) {
            result = result.and(self.switches.write(cpu, value));
        }
        result
    }
}

impl Drop for SwitchedPrefetchers {
    fn drop(&mut self) {
        // Callers that need the error call `restore`.
        let _ = self.put_back();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use proptest::prelude::*;
    use weir_model::units::Gigahertz;

    use super::*;
    use crate::root::Reading;

    pub(crate) fn processor(vendor: &str) -> Processor {
        Processor {
            model: Reading::Known("a processor".into()),
            vendor: Reading::Known(vendor.into()),
            flags: Reading::Known(BTreeSet::new()),
            clock: Reading::Known(Gigahertz(2.0)),
        }
    }

    /// A file of registers for each processor, with `value` in the relevant one.
    pub(crate) fn registers(folder: &Path, cpus: &[u32], number: u32, value: u64) {
        for cpu in cpus {
            let path = folder.join(format!("dev/cpu/{cpu}"));
            std::fs::create_dir_all(&path).unwrap();
            let file = File::create(path.join("msr")).unwrap();
            file.write_all_at(&value.to_le_bytes(), u64::from(number))
                .unwrap();
        }
    }

    pub(crate) fn value(folder: &Path, cpu: u32, number: u32) -> u64 {
        let file = File::open(folder.join(format!("dev/cpu/{cpu}/msr"))).unwrap();
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, u64::from(number)).unwrap();
        u64::from_le_bytes(bytes)
    }

    const OFF: Running = Running {
        l1: false,
        l2: false,
    };

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn only_the_switches_change_and_whatever_was_there_comes_back(
            before: u64,
            amd: bool,
            l1: bool,
            l2: bool,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let (vendor, register) = if amd { ("AuthenticAMD", AMD) } else { ("GenuineIntel", INTEL) };
            registers(folder.path(), &[0, 3], register.number, before);
            let root = Root::at(folder.path());
            let switches = Switches::find(&root, &processor(vendor), 0).unwrap();
            let wanted = Running { l1, l2 };
            let held = SwitchedPrefetchers::set(&switches, [0, 3], wanted).unwrap();
            for cpu in [0, 3] {
                prop_assert_eq!(switches.running(cpu).unwrap(), wanted);
                let changed = before ^ value(folder.path(), cpu, register.number);
                prop_assert_eq!(changed & !(register.l1 | register.l2), 0);
            }
            drop(held);
            for cpu in [0, 3] {
                prop_assert_eq!(value(folder.path(), cpu, register.number), before);
            }
        }
    }

    #[test]
    fn a_panic_puts_back_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        registers(folder.path(), &[1], INTEL.number, 0x21);
        let switches = Switches::find(&Root::at(folder.path()), &processor("GenuineIntel"), 1);
        let switches = switches.unwrap();
        let outcome = std::panic::catch_unwind(|| {
            let _held = SwitchedPrefetchers::set(&switches, [1], OFF).unwrap();
            assert_eq!(value(folder.path(), 1, INTEL.number), 0x2f);
            panic!("something went wrong");
        });
        assert!(outcome.is_err());
        assert_eq!(value(folder.path(), 1, INTEL.number), 0x21);
    }

    #[test]
    fn a_change_under_way_does_not_forget_what_was_there_first() {
        let folder = tempfile::tempdir().unwrap();
        registers(folder.path(), &[0], AMD.number, 0x3c0);
        let switches =
            Switches::find(&Root::at(folder.path()), &processor("AuthenticAMD"), 0).unwrap();
        let mut held = SwitchedPrefetchers::set(&switches, [0], OFF).unwrap();
        let on = Running { l1: true, l2: true };
        held.change([0], on).unwrap();
        held.change([0], OFF).unwrap();
        assert_eq!(value(folder.path(), 0, AMD.number), 0x3c0 | 0b10_1111);
        held.restore().unwrap();
        assert_eq!(value(folder.path(), 0, AMD.number), 0x3c0);
    }

    #[test]
    fn one_processor_that_refuses_leaves_all_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        registers(folder.path(), &[0], INTEL.number, 0);
        let switches = Switches::find(&Root::at(folder.path()), &processor("GenuineIntel"), 0);
        let error = SwitchedPrefetchers::set(&switches.unwrap(), [0, 7], OFF).unwrap_err();
        assert!(error.reason.contains("/dev/cpu/7/msr"), "{error}");
        assert!(error.reason.contains("modprobe msr"), "{error}");
        assert_eq!(value(folder.path(), 0, INTEL.number), 0);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let find = |vendor| {
            let error = Switches::find(&root, &processor(vendor), 0).unwrap_err();
            error.reason
        };
        assert!(find("GenuineIntel").contains("modprobe msr"));
        assert!(find("HygonGenuine").contains("by HygonGenuine"));
        // A file that is too short for the register, as on a processor that lacks the register.
        std::fs::create_dir_all(folder.path().join("dev/cpu/0")).unwrap();
        std::fs::write(folder.path().join("dev/cpu/0/msr"), [0; 16]).unwrap();
        assert!(find("AuthenticAMD").contains("0xc0000108 of CPU 0"));
    }
}
