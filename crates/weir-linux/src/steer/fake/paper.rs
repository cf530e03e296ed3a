//! A program that ends at some step, and its journal.

use std::io;
use std::sync::{Arc, Mutex};

use crate::steer::journal::Storage;

/// How many more steps the program makes before it ends; a step is a record of the journal, or a write to the
/// kernel.
#[derive(Debug, Clone, Default)]
pub(in crate::steer) struct Life(Arc<Mutex<Left>>);

#[derive(Debug, Default)]
struct Left {
    steps: Option<usize>,
    taken: usize,
    full: bool,
    others: Option<Others>,
}

/// What other programs do after each step, by its number.
struct Others(Box<dyn FnMut(usize) + Send>);

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Others")
    }
}

impl Life {
    /// A program that ends at a step, counted from 0; or never.
    pub fn until(steps: Option<usize>) -> Self {
        let life = Self::default();
        life.0.lock().unwrap().steps = steps;
        life
    }

    /// Whether this step is made, and whether it is the last, in the middle of which the program ends.
    pub(super) fn step(&self) -> Step {
        let mut left = self.0.lock().unwrap();
        let at = left.taken;
        left.taken += 1;
        match left.steps {
            Some(end) if at == end => Step::Half,
            Some(end) if at > end => Step::Never,
            _ => Step::Whole,
        }
    }

    /// Other programs act after each step: while a record is being synced, and before a write is read back.
    pub fn meanwhile(&self, others: impl FnMut(usize) + Send + 'static) {
        self.0.lock().unwrap().others = Some(Others(Box::new(others)));
    }

    /// A step is over.
    pub(super) fn passed(&self) {
        let (at, others) = {
            let mut left = self.0.lock().unwrap();
            (left.taken - 1, left.others.take())
        };
        if let Some(mut others) = others {
            others.0(at);
            self.0.lock().unwrap().others = Some(others);
        }
    }

    pub fn taken(&self) -> usize {
        self.0.lock().unwrap().taken
    }

    pub fn fill_disk(&self, full: bool) {
        self.0.lock().unwrap().full = full;
    }
}

/// How far a step went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Whole,
    Half,
    Never,
}

pub(super) fn ended() -> io::Error {
    io::Error::other("the program has ended")
}

/// A journal in memory, which outlives the program.
#[derive(Debug, Clone, Default)]
pub(in crate::steer) struct Paper {
    text: Arc<Mutex<Vec<u8>>>,
    aside: Arc<Mutex<Vec<u8>>>,
    life: Life,
}

impl Paper {
    /// The same journal for another program.
    pub fn held_by(&self, life: &Life) -> Self {
        Self {
            text: Arc::clone(&self.text),
            aside: Arc::clone(&self.aside),
            life: life.clone(),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap()
    }

    /// The journal that was kept under another name.
    pub fn aside(&self) -> String {
        String::from_utf8(self.aside.lock().unwrap().clone()).unwrap()
    }

    fn is_full(&self) -> bool {
        self.life.0.lock().unwrap().full
    }
}

impl Storage for Paper {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.text.lock().unwrap().clone())
    }

    fn append(&mut self, bytes: &[u8], _: bool) -> io::Result<()> {
        if self.is_full() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let done = match self.life.step() {
            Step::Whole => {
                self.text.lock().unwrap().extend(bytes);
                Ok(())
            }
            Step::Half => {
                let half = &bytes[..bytes.len() / 2];
                self.text.lock().unwrap().extend(half);
                Err(ended())
            }
            Step::Never => Err(ended()),
        };
        self.life.passed();
        done
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_full() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        // Before the new one has its name, and after that.
        for named in [false, true] {
            if named {
                *self.text.lock().unwrap() = bytes.to_vec();
            }
            let step = self.life.step();
            self.life.passed();
            if step != Step::Whole {
                return Err(ended());
            }
        }
        Ok(())
    }
    fn keep_aside(&mut self) -> io::Result<String> {
        *self.aside.lock().unwrap() = self.text.lock().unwrap().clone();
        Ok("aside".to_owned())
    }
}
