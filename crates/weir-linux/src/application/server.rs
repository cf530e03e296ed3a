//! Redis or memcached as a process of its own, reached by a Unix socket in a private folder.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_model::workload::Application;

use super::folder::Folder;
use super::table::{How, Served, entry};
use super::{Trouble, Where, end_of, ended_for_memory, version};
use crate::root::Root;
use weir_loops::programs::protocol::Protocol;

/// The longest time until it answers.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// A server, which never outlives this value nor the thread that started it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
    protocol: Protocol,
    named: &'static str,
    /// Processes that had been ended for lack of memory when it was started.
    ended: u64,
    // Removed after the process has ended.
    _folder: Folder,
}

/// What serves an application.
fn served(application: Application) -> Result<&'static Served, Trouble> {
    match entry(application).how {
        How::Server(served) => Ok(served),
        _ => Err(Trouble::Request(format!("{application} is no server"))),
    }
}

/// Its version, if it is installed.
///
/// # Errors
/// It is not installed.
pub fn installed(application: Application) -> Result<String, Trouble> {
    let (served, install) = (served(application)?, entry(application).install);
    let said = version(Path::new(served.named), &["--version"], install)?;
    // "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=…"
    let words = said
        .split_whitespace()
        .filter(|word| !word.starts_with("sha=") && !word.starts_with("build="));
    Ok(words.collect::<Vec<_>>().join(" "))
}

impl Server {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// It is not installed, or it ends at once.
    pub fn start(
        application: Application,
        threads: u32,
        bytes: u64,
        place: &Where,
    ) -> Result<Self, Trouble> {
        let (served, install) = (served(application)?, entry(application).install);
        let named = served.named;
        let folder = Folder::make()?;
        let (socket, log) = (folder.socket()?, folder.path().join("log"));
        let failed = |error| Trouble::system(log.display(), error);
        let output = fs::File::create(&log).map_err(failed)?;
        let mut command = Command::new(named);
        command
            .args((served.arguments)(threads, bytes))
            .arg(served.socket)
            .arg(&socket);
        let same = output.try_clone().map_err(failed)?;
        command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(same)
            .current_dir(folder.path());
        let ended = ended_for_memory(&Root::live());
        let child = place.start(&mut command, named, install)?;
        let mut server = Self {
            ended,
            child,
            socket,
            log,
            protocol: served.protocol,
            named,
            _folder: folder,
        };
        server.await_answer()?;
        Ok(server)
    }

    fn await_answer(&mut self) -> Result<(), Trouble> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.check()?;
            if self.answers().is_ok() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        let (named, seconds) = (self.named, PATIENCE.as_secs());
        Err(Trouble::Failed(format!(
            "{named} does not answer within {seconds} s"
        )))
    }

    fn answers(&self) -> std::io::Result<()> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(self.protocol.hello())?;
        stream.read_exact(&mut [0])
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// It has ended: how, and its last words.
    pub fn check(&mut self) -> Result<(), Trouble> {
        let named = self.named;
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let said = log.lines().rfind(|line| !line.trim().is_empty());
                let said = said.map_or_else(String::new, |line| format!(": {}", line.trim()));
                let how = end_of(status, &Root::live(), self.ended);
                Err(Trouble::Failed(format!(
                    "{named} ended during the run ({how}){said}"
                )))
            }
            Err(error) => Err(Trouble::system(named, error)),
        }
    }

    /// The same after its client has failed, which may be noticed before the process is gone.
    pub fn why(&mut self, noticed: Trouble) -> Trouble {
        if !matches!(noticed, Trouble::Failed(_)) {
            return noticed;
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(500) {
            if let Err(why) = self.check() {
                return why;
            }
            std::thread::sleep(LOOK);
        }
        noticed
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How it is spoken to.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has gone, which is the goal. It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
