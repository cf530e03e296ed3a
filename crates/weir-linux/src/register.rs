//! Model-specific registers of processors, by `/dev/cpu/N/msr`: 8 bytes at the offset that is the register's number
//! (msr(4)). The kernel's `msr` module makes these files, for root.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A register of one processor. Its path is `/dev/cpu/N/msr:0xR`; as text, its value is hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Register {
    pub cpu: u32,
    pub number: u32,
}

/// Switches of prefetchers: Intel SDM volume 4, `MSR_PREFETCH_CONTROL` (`MSR_MISC_FEATURE_CONTROL`).
pub(crate) const PREFETCH_INTEL: u32 = 0x1a4;
/// The same: AMD PPR of family 19h, `Prefetch Control` (Zen 3 and later).
pub(crate) const PREFETCH_AMD: u32 = 0xc000_0108;

impl Register {
    /// The register of a path, if the path is one of a register.
    pub fn of_path(path: &str) -> Option<Self> {
        let (cpu, number) = path.strip_prefix("/dev/cpu/")?.split_once("/msr:0x")?;
        let register = Self {
            cpu: cpu.parse().ok()?,
            number: u32::from_str_radix(number, 16).ok()?,
        };
        (register.path() == path).then_some(register)
    }

    /// Whether it switches prefetchers. No other register is written.
    pub fn is_switch(self) -> bool {
        [PREFETCH_INTEL, PREFETCH_AMD].contains(&self.number)
    }

    /// The file of its processor.
    pub fn device(self) -> String {
        format!("/dev/cpu/{}/msr", self.cpu)
    }

    pub fn path(self) -> String {
        format!("{}:{:#x}", self.device(), self.number)
    }

    /// Its value, by the open file of its processor.
    pub fn read(self, device: &File) -> io::Result<u64> {
        let mut value = [0; 8];
        device.read_exact_at(&mut value, self.number.into())?;
        Ok(u64::from_le_bytes(value))
    }

    /// Writes a value that [`text`] made.
    pub fn write(self, device: &File, text: &str) -> io::Result<()> {
        let digits = text.trim().strip_prefix("0x");
        let value = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let value = value.ok_or(io::ErrorKind::InvalidInput)?;
        device.write_all_at(&value.to_le_bytes(), self.number.into())
    }
}

/// A value as text.
pub(crate) fn text(value: u64) -> String {
    format!("{value:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_a_register_is_one() {
        let register = Register {
            cpu: 12,
            number: 0xc000_0108,
        };
        assert_eq!(register.path(), "/dev/cpu/12/msr:0xc0000108");
        assert_eq!(Register::of_path(&register.path()), Some(register));
        for other in [
            "/dev/cpu/12/msr",
            "/dev/cpu/+1/msr:0x1a4",
            "/dev/cpu/1/msr:0x01a4",
            "/dev/cpu/1/../msr:0x1a4",
            "/dev/cpu/1/msr:0x1ffffffff",
        ] {
            assert_eq!(Register::of_path(other), None, "{other}");
        }
    }
}
