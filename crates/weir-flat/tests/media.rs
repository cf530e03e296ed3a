//! Media for tests: bytes in memory that remember each write, and can fail.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use weir_flat::Medium;

/// What reached the medium, in order.
#[derive(Debug, Clone)]
pub enum Event {
    Write(u64, Vec<u8>),
    Barrier,
}

#[derive(Debug, Default)]
pub struct Inside {
    pub bytes: Vec<u8>,
    pub events: Vec<Event>,
    /// Reads, writes or barriers from now on fail.
    pub fail_reads: bool,
    pub fail_writes: bool,
    pub fail_barriers: bool,
    /// Writes from this one on fail.
    pub fail_from: Option<usize>,
}

/// What a test does while a write is under way.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// The clones are one medium.
#[derive(Clone, Default)]
pub struct Recorded(Arc<Mutex<Inside>>, Arc<Mutex<Option<Meanwhile>>>);

impl Recorded {
    pub fn blank(bytes: usize) -> Self {
        Self::of(vec![0; bytes])
    }

    pub fn of(bytes: Vec<u8>) -> Self {
        Self(
            Arc::new(Mutex::new(Inside {
                bytes,
                ..Inside::default()
            })),
            Arc::default(),
        )
    }

    /// Does this within the next write.
    pub fn meanwhile(&self, work: impl FnOnce() + Send + 'static) {
        *self.1.lock().unwrap() = Some(Box::new(work));
    }

    pub fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl Medium for Recorded {
    fn bytes(&self) -> u64 {
        self.inside().bytes.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let inside = self.inside();
        if inside.fail_reads {
            return Err(broken());
        }
        into.copy_from_slice(&inside.bytes[at as usize..][..into.len()]);
        Ok(())
    }

    fn write_at(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let work = self.1.lock().unwrap().take();
        if let Some(work) = work {
            work();
        }
        let mut inside = self.inside();
        let writes = inside
            .events
            .iter()
            .filter(|event| matches!(event, Event::Write(..)))
            .count();
        if inside.fail_writes || inside.fail_from.is_some_and(|first| writes >= first) {
            return Err(broken());
        }
        inside.bytes[at as usize..][..from.len()].copy_from_slice(from);
        inside.events.push(Event::Write(at, from.to_vec()));
        Ok(())
    }

    fn barrier(&self) -> io::Result<()> {
        let mut inside = self.inside();
        if inside.fail_barriers {
            return Err(broken());
        }
        inside.events.push(Event::Barrier);
        Ok(())
    }

    fn mappable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn durable(&self) -> bool {
        true
    }

    fn kind(&self) -> String {
        "bytes of a test".to_owned()
    }

    fn path(&self) -> &Path {
        Path::new("recorded")
    }
}
