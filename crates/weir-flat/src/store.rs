//! A store: files of one medium, and the cache that they share.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use crate::buffer::Buffer;
use crate::error::{FlatError, Result};
use crate::extents::PAGE;
use crate::frames::Frames;
use crate::log::{Layout, Log};
use crate::medium::{FileMedium, Medium};
use crate::record::Op;
use crate::recover::recover;
use crate::shared::{Options, Shared, lock};
use crate::stats::Stats;
use crate::table::{NONE, Table, name_cost};

/// Files of one medium. Threads may share it; it is open once at a time, also among processes.
pub struct Store {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A file of a store. It may be used by many threads, and does not keep the file from being removed.
#[derive(Clone)]
pub struct File {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
}

impl Store {
    /// Opens the store of a file or a DAX device, and recovers what the last commit left.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let medium = FileMedium::open(path.as_ref(), options.create)?;
        Self::on(Box::new(medium), options)
    }

    /// The same, on a medium of the caller's.
    pub fn on(medium: Box<dyn Medium>, options: Options) -> Result<Self> {
        let io = |source| FlatError::Io {
            what: "make a cache for",
            path: medium.path().to_owned(),
            source,
        };
        let frames = u32::try_from(options.cache.div_ceil(PAGE as u64))
            .unwrap_or(NONE - 1)
            .max(1);
        let none = |why: String| FlatError::NoStore {
            path: medium.path().to_owned(),
            why,
        };
        let (mut log, mut table) = match Log::read(&*medium)? {
            Some((log, records)) => {
                let table = recover(&records, frames, log.layout(), medium.path())?;
                (log, table)
            }
            None if options.create.is_none() => return Err(none("it is blank".to_owned())),
            None => {
                let small = || none(format!("{} bytes are too few", medium.bytes()));
                let layout = Layout::of(medium.bytes()).ok_or_else(small)?;
                (Log::new(layout, 0), Table::new(frames, layout))
            }
        };
        // In the other area, so that what follows never mixes with what a cut log left behind its end.
        if !log.checkpoint(&*medium, &table.checkpoint())? {
            let why = "its files do not fit into the log".to_owned();
            return Err(FlatError::Damaged {
                path: medium.path().to_owned(),
                why,
            });
        }
        table.ops.clear();
        let shared = Arc::new(Shared {
            frames: Frames::new(frames, options.huge).map_err(io)?,
            data_at: log.layout().data_at(),
            pagemap: std::fs::File::open("/proc/self/pagemap").map_err(io)?,
            log: Mutex::new(log),
            table: Mutex::new(table),
            loads: Mutex::new(None),
            stopping: Mutex::new(false),
            stop: Condvar::new(),
            medium,
            options,
        });
        let mut store = Self {
            shared,
            threads: Vec::new(),
        };
        let (send, receive) = sync_channel(1024);
        *lock(&store.shared.loads) = Some(send);
        let shared = store.shared.clone();
        store.spawn("weir-flat-load", move || shared.load_all(&receive))?;
        if let Some(every) = store.shared.options.flush_every {
            let shared = store.shared.clone();
            store.spawn("weir-flat-flush", move || shared.flush_all(every))?;
        }
        Ok(store)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work);
        self.threads
            .push(thread.map_err(|source| self.shared.io("start a thread for", source))?);
        Ok(())
    }

    /// A buffer of this many bytes, all zeros, in memory of the process. It may be larger than what is read, and has
    /// to be a page larger for offsets within a page.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer> {
        Buffer::new(self.shared.clone(), bytes)
    }

    /// Makes a file without content.
    pub fn create(&self, name: &str) -> Result<File> {
        if name.is_empty() || name.len() > 255 {
            return Err(FlatError::Name(name.len()));
        }
        let mut table = self.shared.table();
        if table.closed {
            return Err(FlatError::Closed);
        }
        if table.names.contains_key(name) {
            return Err(FlatError::Exists {
                name: name.to_owned(),
            });
        }
        let asked = name_cost(name);
        if asked > table.name_room {
            let free = table.name_room;
            return Err(FlatError::MediumFull {
                path: self.shared.medium.path().to_owned(),
                asked,
                free,
            });
        }
        let id = table.next_id;
        table.add(id, name.to_owned());
        table.ops.push(Op::Create {
            id,
            name: name.to_owned(),
        });
        Ok(File {
            shared: self.shared.clone(),
            id,
            name: name.into(),
        })
    }

    /// A file that exists.
    pub fn file(&self, name: &str) -> Result<File> {
        let table = self.shared.table();
        if table.closed {
            return Err(FlatError::Closed);
        }
        let id = table.names.get(name).copied();
        let id = id.ok_or_else(|| FlatError::Missing {
            name: name.to_owned(),
        })?;
        Ok(File {
            shared: self.shared.clone(),
            id,
            name: name.into(),
        })
    }

    /// Removes a file. Buffers that have its pages keep them.
    pub fn remove(&self, name: &str) -> Result<()> {
        let mut table = self.shared.table();
        if table.closed {
            return Err(FlatError::Closed);
        }
        let id = table.names.get(name).copied();
        let id = id.ok_or_else(|| FlatError::Missing {
            name: name.to_owned(),
        })?;
        table.remove(id);
        table.ops.push(Op::Remove { id });
        Ok(())
    }

    /// Names and bytes of all files.
    pub fn files(&self) -> BTreeMap<String, u64> {
        self.shared
            .table()
            .files
            .values()
            .map(|file| (file.name.clone(), file.size))
            .collect()
    }

    /// Commits what was written: it outlives the process. All files are committed together.
    pub fn flush(&self) -> Result<()> {
        self.shared.commit(false)
    }

    /// Commits what was written, and waits until it is durable.
    pub fn sync(&self) -> Result<()> {
        self.shared.commit(true)
    }

    /// What the store did, and what it holds.
    pub fn stats(&self) -> Stats {
        let table = self.shared.table();
        let (free, all) = table.frames();
        Stats {
            free_frame_bytes: u64::from(free) * PAGE as u64,
            frame_bytes: u64::from(all) * PAGE as u64,
            frame_references: table.frame_references(),
            free_medium_bytes: u64::from(table.medium_free()) * PAGE as u64,
            ..table.stats
        }
    }

    /// Gives up the frames of all pages that are clean and in no buffer, so that reads are cold.
    pub fn drop_caches(&self) -> Result<()> {
        self.shared.commit(false)?;
        let mut table = self.shared.table();
        let count = table.frames().1;
        // Twice: pages that were used lately have a second chance.
        table.evict(count);
        table.evict(count);
        Ok(())
    }

    /// What the medium is, for people.
    pub fn medium(&self) -> String {
        self.shared.medium.kind()
    }

    /// Flushes, and stops the store's threads. Buffers stay as they are; while there are any, the medium stays
    /// locked.
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    fn shut(&mut self) -> Result<()> {
        if self.threads.is_empty() {
            return Ok(());
        }
        *lock(&self.shared.stopping) = true;
        self.shared.stop.notify_all();
        lock(&self.shared.loads).take();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let done = self.shared.commit(false);
        self.shared.table().closed = true;
        done
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.shut();
    }
}
