use super::Ssd;
use crate::kernel::{Fault, Io, Kernel, Line};
use crate::media::{Media, PAGE, Times};

/// A range on two media (section 4, data placement): lines before `split` are on flash that is fast to write (SLC), the
/// others on that of the device (TLC).
#[derive(Debug)]
pub struct Placement {
    split: u64,
    hot: Ssd,
    cold: Ssd,
    slc: Media,
}

impl Placement {
    /// This many pages of each, with the times of SLC.
    pub fn new(first: u64, hot: u64, cold: u64, slc: Times) -> Self {
        Self {
            split: hot * PAGE as u64,
            hot: Ssd::new(0, hot, 4),
            cold: Ssd::new(first, cold, 4),
            slc: Media::new(slc),
        }
    }

    /// Lets a medium do something with an offset of its own.
    fn on<T>(
        &mut self,
        at: u64,
        io: &mut Io<'_>,
        what: impl FnOnce(&mut Ssd, u64, &mut Io<'_>) -> T,
    ) -> T {
        if at >= self.split {
            return what(&mut self.cold, at - self.split, io);
        }
        let mut own = Io {
            now: io.now,
            media: &mut self.slc,
        };
        let got = what(&mut self.hot, at, &mut own);
        io.now = own.now;
        got
    }
}

impl Kernel for Placement {
    fn name(&self) -> &'static str {
        "placement"
    }

    fn len(&self) -> u64 {
        self.hot.len() + self.cold.len()
    }

    fn read(&mut self, at: u64, io: &mut Io<'_>) -> Result<Line, Fault> {
        self.on(at, io, |ssd, at, io| ssd.read(at, io))
    }

    fn write(&mut self, at: u64, line: &Line, io: &mut Io<'_>) -> Result<(), Fault> {
        self.on(at, io, |ssd, at, io| ssd.write(at, line, io))
    }

    fn flush(&mut self, at: u64, len: u64, io: &mut Io<'_>) -> Result<(), Fault> {
        let (split, end) = (self.split, at + len);
        if at < split {
            self.on(at, io, |ssd, at, io| ssd.flush(at, len.min(split - at), io))?;
        }
        match end.checked_sub(split.max(at)) {
            Some(left) if left > 0 => {
                self.on(split.max(at), io, |ssd, at, io| ssd.flush(at, left, io))
            }
            _ => Ok(()),
        }
    }
}
