//! The generator of requests: one thread which sends them over several connections, and checks the answers.
//!
//! With a rate the loop is open: requests are sent at random times (Poisson) whether or not earlier ones are answered, and
//! the latency of each counts from the time at which it was due. So a server that stalls has the latency of all requests
//! that were due meanwhile. Without a rate each connection sends its next request when it has an answer.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use weir_model::units::Nanos;

use super::Trouble;
use super::connection::{Connection, Request, What, gone, may_come};
use super::keys::unit;
use super::ledger::Ledger;
use super::mix::{LONGEST_SCAN, Mix, Operation};
use super::protocol::{Answer, Protocol};
pub use super::stretch::{Drive, Seen};
use super::stretch::{Stretch, nanos};
use super::waiting::{TimerSlack, poll};
use crate::kernels::Random;

/// The most requests that are under way; later ones are due, and wait in the generator.
const MOST_UNDER_WAY: usize = 1 << 18;
/// Requests under way on a connection while data are loaded.
const LOADING: usize = 64;
/// The longest time for answers after the last request, and between two answers.
const PATIENCE: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(30);
/// The longest sleep, so that a stop is seen.
const LOOK: Duration = Duration::from_millis(100);
/// A processor that sleeps takes about this long to wake up.
const WAKE_UP: Duration = Duration::from_micros(100);
/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// Connections to a server, and what is known of its data.
#[derive(Debug)]
pub struct Client {
    protocol: Protocol,
    connections: Vec<Connection>,
    mix: Mix,
    ledger: Ledger,
    random: Random,
    chunk: Vec<u8>,
    /// Whether it has a processor of its own, and does not sleep while an answer or a request is near: waking up would
    /// add to each latency.
    alone: bool,
}

impl Client {
    /// Opens connections.
    ///
    /// # Errors
    /// The server does not take them.
    pub fn connect(
        protocol: Protocol,
        socket: &Path,
        connections: usize,
        mix: Mix,
        seed: u64,
    ) -> Result<Self, Trouble> {
        let open = |_| {
            let stream = UnixStream::connect(socket)?;
            stream.set_nonblocking(true)?;
            Ok(Connection {
                stream,
                out: Vec::new(),
                sent: 0,
                read: Vec::new(),
                under_way: VecDeque::new(),
            })
        };
        let all: io::Result<Vec<Connection>> = (0..connections.max(1)).map(open).collect();
        Ok(Self {
            protocol,
            connections: all.map_err(|error| Trouble::system("connecting to the server", error))?,
            ledger: Ledger::new(mix.records),
            mix,
            random: Random::new(seed),
            chunk: vec![0; CHUNK],
            alone: false,
        })
    }

    /// The same for a generator that has a processor of its own.
    #[must_use]
    pub fn alone(self, alone: bool) -> Self {
        Self { alone, ..self }
    }

    /// Writes every key once.
    ///
    /// # Errors
    /// The server ends, refuses a write, or the user stops it.
    pub fn load(&mut self, stop: &dyn Fn() -> bool) -> Result<(), Trouble> {
        let mut stretch = Stretch::new(Duration::ZERO, Duration::MAX, stop);
        let mut next = 0;
        let _slack = TimerSlack::least();
        loop {
            for at in 0..self.connections.len() {
                while next < self.mix.records && self.connections[at].under_way.len() < LOADING {
                    self.write(at, stretch.began.elapsed(), next, 0, self.mix.is_indexed());
                    next += 1;
                }
            }
            if next == self.mix.records && self.under_way() == 0 {
                break;
            }
            self.exchange(&mut stretch, LOOK)?;
            if let Some(first) = stretch.seen.first_wrong.take() {
                return Err(Trouble::Failed(format!(
                    "the server does not take its data: {first}"
                )));
            }
        }
        Ok(())
    }

    /// Sends requests, and says what became of them.
    ///
    /// # Errors
    /// The server ends or is silent, or the user stops it.
    pub fn drive(&mut self, drive: &Drive, stop: &dyn Fn() -> bool) -> Result<Seen, Trouble> {
        let to = drive.warm_up + drive.length;
        let mut stretch = Stretch::new(drive.warm_up, to, stop);
        stretch.seen.time = Nanos(drive.length.as_secs_f64() * 1e9);
        let _slack = TimerSlack::least();
        let (mut due, mut turn, mut before) = (Duration::ZERO, 0, Duration::ZERO);
        loop {
            let now = stretch.began.elapsed();
            stretch.seen.held = stretch.seen.held.max(now.saturating_sub(before));
            before = now;
            let mut sleep = LOOK.min(to.saturating_sub(now));
            match drive.rate {
                Some(rate) => {
                    while due <= now && due < to && self.under_way() < MOST_UNDER_WAY {
                        let at = turn % self.connections.len();
                        turn += 1;
                        self.draw(at, due);
                        if due >= stretch.from {
                            stretch.seen.offered += 1;
                            let late = stretch.began.elapsed().saturating_sub(due);
                            stretch.seen.late.record(nanos(late));
                        }
                        due += self.gap(rate);
                    }
                    sleep = sleep.min(due.saturating_sub(stretch.began.elapsed()));
                }
                None if now < to => {
                    for at in 0..self.connections.len() {
                        if self.connections[at].under_way.is_empty() {
                            let now = stretch.began.elapsed();
                            self.draw(at, now);
                            stretch.seen.offered += u64::from(now >= stretch.from);
                        }
                    }
                }
                None => {}
            }
            // What was due until the end is sent before.
            if now >= to {
                break;
            }
            self.exchange(&mut stretch, sleep)?;
        }
        while self.under_way() > 0 && stretch.began.elapsed() < to + PATIENCE {
            self.exchange(&mut stretch, LOOK)?;
        }
        // What was due and never sent, and what was never answered.
        let end = stretch.began.elapsed();
        if let Some(rate) = drive.rate {
            while due < to {
                if due >= stretch.from {
                    stretch.seen.offered += 1;
                    stretch.unanswered(due, end);
                }
                due += self.gap(rate);
            }
        }
        let left: Vec<Request> = (self.connections.iter())
            .flat_map(|c| c.under_way.clone())
            .collect();
        let silent = !left.is_empty();
        let from = stretch.from;
        let whole = |request: &Request| {
            request.due >= from && !matches!(request.what, What::Part | What::PartRead)
        };
        for request in left.into_iter().filter(whole) {
            stretch.unanswered(request.due, end);
        }
        if silent {
            // Their answers would be taken for those of later requests.
            self.forget()?;
        }
        Ok(stretch.seen)
    }

    /// Opens every connection anew.
    fn forget(&mut self) -> Result<(), Trouble> {
        for connection in &mut self.connections {
            let failed = |error| Trouble::system("connecting to the server again", error);
            let address = connection.stream.peer_addr().map_err(failed)?;
            let path = address.as_pathname().unwrap_or(Path::new(""));
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream.set_nonblocking(true).map_err(failed)?;
            // The server may still carry out what it has read: of these keys any version since is right.
            connection.under_way.clear();
            connection.stream = stream;
            connection.out.clear();
            connection.read.clear();
            connection.sent = 0;
        }
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.connections
            .iter()
            .map(|connection| connection.under_way.len())
            .sum()
    }

    /// The time to the next request of a Poisson process.
    fn gap(&mut self, rate: f64) -> Duration {
        Duration::from_secs_f64((-(1.0 - unit(&mut self.random)).ln() / rate).min(1e6))
    }

    /// Sends the first request of an operation.
    fn draw(&mut self, at: usize, due: Duration) {
        let operation = self.mix.shares.draw(unit(&mut self.random));
        if operation == Operation::Insert {
            let key = self.ledger.insert();
            return self.write(at, due, key, 1, self.mix.is_indexed());
        }
        let key = self.mix.keys.draw(&mut self.random, self.ledger.keys());
        match operation {
            Operation::Update => {
                let version = self.ledger.write(key);
                self.write(at, due, key, version, false);
            }
            Operation::Modify => self.read(at, due, key, What::Modify),
            Operation::Scan => {
                let most = 1 + self.random.below(LONGEST_SCAN);
                self.protocol.scan(key, most, &mut self.connections[at].out);
                self.sent(at, due, key, most as u32, What::Scan);
            }
            Operation::Read | Operation::Insert => self.read(at, due, key, What::Read),
        }
    }

    fn sent(&mut self, at: usize, due: Duration, key: u64, version: u32, what: What) {
        self.connections[at].under_way.push_back(Request {
            due,
            key,
            version,
            what,
        });
    }

    fn read(&mut self, at: usize, due: Duration, key: u64, what: What) {
        let version = self.ledger.oldest(key);
        self.protocol.get(key, &mut self.connections[at].out);
        self.sent(at, due, key, version, what);
    }

    /// Writes a version of a key; a new one also into the set that scans read, after it.
    fn write(&mut self, at: usize, due: Duration, key: u64, version: u32, indexed: bool) {
        let out = &mut self.connections[at].out;
        self.protocol.set(key, version, self.mix.value, out);
        if indexed {
            self.protocol.index(key, out);
            self.sent(at, due, key, version, What::Part);
            return self.sent(at, due, key, version, What::Index);
        }
        self.sent(at, due, key, version, What::Write);
    }

    /// Checks an answer, and sends what the operation needs next. Without that the operation is complete.
    fn next(&mut self, at: usize, request: &Request, answer: Answer<'_>) -> Result<bool, String> {
        let Request {
            due, key, version, ..
        } = *request;
        match (request.what, answer) {
            (What::Scan, Answer::Keys(bytes)) => {
                let keys = self.ledger.check_scan(key, version as usize, bytes)?;
                let (last, others) = keys.split_last().ok_or("a scan found nothing")?;
                for &other in others {
                    self.read(at, due, other, What::PartRead);
                }
                self.read(at, due, *last, What::Read);
                Ok(false)
            }
            (What::Index, Answer::Stored) => Ok(true),
            (What::Scan | What::Index, Answer::Refused(why)) => {
                Err(format!("the server refuses: {why}"))
            }
            (What::Scan | What::Index, _) => Err("the server answers another question".into()),
            (what, answer) => {
                let writes = matches!(what, What::Write | What::Part);
                self.ledger.check(key, version, writes, answer)?;
                if what == What::Modify {
                    let version = self.ledger.write(key);
                    self.write(at, due, key, version, false);
                }
                Ok(matches!(what, What::Write | What::Read))
            }
        }
    }

    /// Sends what is to be sent, waits for answers for this long at most, and reads them.
    fn exchange(&mut self, stretch: &mut Stretch<'_>, sleep: Duration) -> Result<(), Trouble> {
        let mut waits = Vec::with_capacity(self.connections.len());
        for connection in &mut self.connections {
            connection.flush()?;
            let mut events = libc::POLLIN;
            if connection.sent < connection.out.len() {
                events |= libc::POLLOUT;
            }
            waits.push(libc::pollfd {
                fd: connection.stream.as_raw_fd(),
                events,
                revents: 0,
            });
        }
        let sleep = match (self.alone, self.under_way()) {
            (true, 1..) => Duration::ZERO,
            (true, 0) => sleep.saturating_sub(WAKE_UP),
            (false, _) => sleep,
        };
        poll(&mut waits, sleep)?;
        if (stretch.stop)() {
            return Err(Trouble::Stopped);
        }
        for (at, wait) in waits.iter().enumerate() {
            if wait.revents & !libc::POLLOUT != 0 {
                self.receive(at, stretch)?;
            }
        }
        let now = stretch.began.elapsed();
        if self.under_way() == 0 {
            stretch.last_answer = now;
        } else if now.saturating_sub(stretch.last_answer) > SILENCE {
            let seconds = SILENCE.as_secs();
            return Err(Trouble::Failed(format!(
                "the server has not answered for {seconds} s"
            )));
        }
        Ok(())
    }

    fn receive(&mut self, at: usize, stretch: &mut Stretch<'_>) -> Result<(), Trouble> {
        let connection = &mut self.connections[at];
        match connection.stream.read(&mut self.chunk) {
            Ok(0) => return Err(gone("it closed the connection")),
            Ok(read) => connection.read.extend_from_slice(&self.chunk[..read]),
            Err(error) if may_come(&error) => return Ok(()),
            Err(error) => return Err(gone(error)),
        }
        let now = stretch.began.elapsed();
        // What follows an answer is sent on the same connection meanwhile.
        let read = std::mem::take(&mut connection.read);
        let mut used = 0;
        while let Some((answer, bytes)) =
            (self.protocol.read(&read[used..])).map_err(Trouble::Failed)?
        {
            used += bytes;
            let Some(request) = self.connections[at].under_way.pop_front() else {
                return Err(Trouble::Failed(
                    "the server answers what was not asked".into(),
                ));
            };
            stretch.last_answer = now;
            // A wrong answer ends its operation.
            let complete = self.next(at, &request, answer).unwrap_or_else(|wrong| {
                stretch.seen.wrong += 1;
                stretch.seen.first_wrong.get_or_insert(wrong);
                !matches!(request.what, What::Part | What::PartRead)
            });
            if complete {
                stretch.answered(request.due, now);
            }
        }
        let connection = &mut self.connections[at];
        connection.read = read;
        connection.read.drain(..used);
        Ok(())
    }
}
