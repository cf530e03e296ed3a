//! The switches of the hardware prefetchers: a model-specific register of each core, behind `/dev/cpu/N/msr`
//! (the kernel's `msr` module, for root).
//!
//! Registers are written through a journal, by which their earlier values are restored however a run ends.
//! Hardware threads of one core share the register.

use std::fs::File;
use std::io;

use weir_model::capability::Unavailable;

use crate::register::{self, PREFETCH_AMD, PREFETCH_INTEL, Register};
use crate::root::Root;
use crate::steer::actuators::KernelAccess;
use crate::topology::processor::Processor;

/// A register whose set bits switch prefetchers off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bits {
    /// The register's number.
    number: u32,
    /// Bits of the prefetchers into the first-level cache.
    l1: u64,
    /// Bits of the prefetchers into the second-level cache.
    l2: u64,
}

/// 0 L2 streamer, 1 L2 adjacent line, 2 DCU next line, 3 DCU by instruction pointer.
const INTEL: Bits = Bits {
    number: PREFETCH_INTEL,
    l1: 0b1100,
    l2: 0b0011,
};

/// 0 L1 stream, 1 L1 stride, 2 L1 region, 3 L2 stream, 5 L2 up and down.
const AMD: Bits = Bits {
    number: PREFETCH_AMD,
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
    bits: Bits,
}

impl Switches {
    /// The switches of a processor, if its register is known and this program may use the register of `cpu`.
    ///
    /// # Errors
    /// Why not.
    pub fn find(root: &Root, processor: &Processor, cpu: u32) -> Result<Self, Unavailable> {
        let bits = match processor.vendor.get()?.as_str() {
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
            bits,
        };
        switches.read(cpu)?;
        switches.open(cpu, true)?;
        Ok(switches)
    }

    /// In words, for the list of capabilities.
    pub fn describe(&self) -> String {
        format!("{} can be written", self.name())
    }

    /// The register, in words.
    pub fn name(&self) -> String {
        format!("MSR {:#x}", self.bits.number)
    }

    /// The machine.
    pub(crate) fn root(&self) -> &Root {
        &self.root
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
            l1: !value & self.bits.l1 != 0,
            l2: !value & self.bits.l2 != 0,
        }
    }

    /// Switches the prefetchers of some processors, by a journal, which restores their registers.
    ///
    /// # Errors
    /// A register cannot be read or written, or does not keep what is written; all are as before the first switch then.
    pub(crate) fn set(
        &self,
        access: &mut KernelAccess<'_>,
        cpus: &[u32],
        wanted: Running,
    ) -> Result<(), Unavailable> {
        let mut registers: Vec<Register> = cpus.iter().map(|&cpu| self.register(cpu)).collect();
        // What is written by one thread of a core is then found by the other, and is not another program's.
        registers.sort_by_key(|register| access.writes.before(&register.path()).is_none());
        let mut switch = |&register: &Register| self.switch(access, register, wanted);
        let switched = registers.iter().try_for_each(&mut switch);
        if switched.is_err() {
            for register in registers.iter().rev() {
                // What is not restored stays in the journal.
                access.writes.put_back(&register.path());
            }
        }
        switched
    }

    fn switch(
        &self,
        access: &mut KernelAccess<'_>,
        register: Register,
        wanted: Running,
    ) -> Result<(), Unavailable> {
        let Bits { l1, l2, .. } = self.bits;
        let off = if wanted.l1 { 0 } else { l1 } | if wanted.l2 { 0 } else { l2 };
        let value = register::text(self.read(register.cpu)? & !(l1 | l2) | off);
        let found = access.writes.set(&register.path(), &value)?;
        // A hypervisor may accept a write and ignore it.
        if found != value {
            return Err(Unavailable::because(format!(
                "{} of CPU {} does not keep what is written: {value} became {found}",
                self.name(),
                register.cpu
            )));
        }
        Ok(())
    }

    fn register(&self, cpu: u32) -> Register {
        let number = self.bits.number;
        Register { cpu, number }
    }

    fn open(&self, cpu: u32, write: bool) -> Result<File, Unavailable> {
        let path = self.register(cpu).device();
        self.root.open(&path, write).map_err(|e| {
            let hint = match e.kind() {
                io::ErrorKind::NotFound => "; `modprobe msr` makes it",
                io::ErrorKind::PermissionDenied => "; it is for root (CAP_SYS_RAWIO)",
                _ => "",
            };
            Unavailable::because(format!("cannot open {path}: {e}{hint}"))
        })
    }

    fn read(&self, cpu: u32) -> Result<u64, Unavailable> {
        let read = self.register(cpu).read(&self.open(cpu, false)?);
        let name = self.name();
        read.map_err(|e| Unavailable::because(format!("cannot read {name} of CPU {cpu}: {e}")))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::sync::Arc;

    use proptest::prelude::*;
    use weir_model::units::Gigahertz;

    use super::*;
    use crate::control::{Control, Files};
    use crate::root::Reading;
    use crate::steer::Extent;
    use crate::steer::journalled_writes::JournalledWrites;

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
        Register { cpu, number }.read(&file).unwrap()
    }

    /// A machine whose registers can be written.
    pub(crate) fn writable(folder: &Path) -> Root {
        Root::at(folder).obeyed_by(Arc::new(Files(folder.to_owned())))
    }

    /// The switches of a machine, and the journal by which it is restored.
    fn switches(folder: &Path, vendor: &str, cpu: u32) -> (Switches, JournalledWrites) {
        let root = writable(folder);
        let journal = folder.join("journal");
        let (writes, _) = JournalledWrites::open(&root, &journal, Extent::Run).unwrap();
        let switches = Switches::find(&root, &processor(vendor), cpu).unwrap();
        (switches, writes)
    }

    fn set(
        (switches, writes): &mut (Switches, JournalledWrites),
        cpus: &[u32],
        wanted: Running,
    ) -> Result<(), Unavailable> {
        let root = &switches.root.clone();
        switches.set(&mut KernelAccess { root, writes }, cpus, wanted)
    }

    const ON: Running = Running { l1: true, l2: true };
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
            let (vendor, bits) = if amd { ("AuthenticAMD", AMD) } else { ("GenuineIntel", INTEL) };
            registers(folder.path(), &[0, 3], bits.number, before);
            let mut of = switches(folder.path(), vendor, 0);
            let wanted = Running { l1, l2 };
            set(&mut of, &[0, 3], wanted).unwrap();
            for cpu in [0, 3] {
                prop_assert_eq!(of.0.running(cpu).unwrap(), wanted);
                let changed = before ^ value(folder.path(), cpu, bits.number);
                prop_assert_eq!(changed & !(bits.l1 | bits.l2), 0);
            }
            prop_assert_eq!(of.1.release(), []);
            for cpu in [0, 3] {
                prop_assert_eq!(value(folder.path(), cpu, bits.number), before);
            }
        }
    }

    #[test]
    fn a_change_under_way_does_not_forget_what_was_there_first() {
        let folder = tempfile::tempdir().unwrap();
        registers(folder.path(), &[0], AMD.number, 0x3c0);
        let mut of = switches(folder.path(), "AuthenticAMD", 0);
        for wanted in [OFF, ON, OFF] {
            set(&mut of, &[0], wanted).unwrap();
        }
        assert_eq!(value(folder.path(), 0, AMD.number), 0x3c0 | 0b10_1111);
        assert_eq!(of.1.release(), []);
        assert_eq!(value(folder.path(), 0, AMD.number), 0x3c0);
    }

    #[test]
    fn threads_of_a_core_share_a_register() {
        let folder = tempfile::tempdir().unwrap();
        registers(folder.path(), &[0], INTEL.number, 0x20);
        let other = folder.path().join("dev/cpu/4");
        std::os::unix::fs::symlink(folder.path().join("dev/cpu/0"), other).unwrap();
        let mut of = switches(folder.path(), "GenuineIntel", 0);
        set(&mut of, &[0], OFF).unwrap();
        set(&mut of, &[4, 0], ON).unwrap();
        set(&mut of, &[4, 0], OFF).unwrap();
        assert_eq!(value(folder.path(), 4, INTEL.number), 0x2f);
        assert_eq!(of.1.release(), []);
        assert_eq!(value(folder.path(), 0, INTEL.number), 0x20);
    }

    #[test]
    fn one_processor_that_refuses_leaves_all_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        registers(folder.path(), &[0], INTEL.number, 0);
        let mut of = switches(folder.path(), "GenuineIntel", 0);
        let error = set(&mut of, &[0, 7], OFF).unwrap_err();
        assert!(error.reason.contains("/dev/cpu/7/msr"), "{error}");
        assert!(error.reason.contains("modprobe msr"), "{error}");
        assert_eq!(value(folder.path(), 0, INTEL.number), 0);
    }

    /// A hypervisor that keeps only these bits of what is written.
    #[derive(Debug)]
    struct Keeping(Files, u64);

    impl Control for Keeping {
        fn write(&self, path: &str, text: &str, folder: Option<u64>) -> io::Result<()> {
            let value = u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
            self.0.write(path, &register::text(value & self.1), folder)
        }

        fn make_folder(&self, path: &str) -> io::Result<()> {
            self.0.make_folder(path)
        }

        fn remove_folder(&self, path: &str) -> io::Result<()> {
            self.0.remove_folder(path)
        }
    }

    #[test]
    fn a_register_that_keeps_a_part_or_nothing_is_restored() {
        for kept in [0, 0x3] {
            let folder = tempfile::tempdir().unwrap();
            registers(folder.path(), &[0], INTEL.number, 0);
            let (switches, _) = switches(folder.path(), "GenuineIntel", 0);
            let keeping = Keeping(Files(folder.path().to_owned()), kept);
            let root = Root::at(folder.path()).obeyed_by(Arc::new(keeping));
            let journal = folder.path().join("other");
            let opened = JournalledWrites::open(&root, &journal, Extent::Run);
            let mut of = (Switches { root, ..switches }, opened.unwrap().0);
            let error = set(&mut of, &[0], OFF).unwrap_err();
            let said = format!("does not keep what is written: 0xf became {kept:#x}");
            assert!(error.reason.contains(&said), "{error}");
            assert_eq!(value(folder.path(), 0, INTEL.number), 0);
            assert_eq!(of.1.release(), []);
        }
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
