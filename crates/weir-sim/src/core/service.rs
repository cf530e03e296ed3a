//! The requests of a program: when the next one comes, which thread takes it, and which has the program's lock.
//!
//! Requests are taken in the order in which they came, by the thread that is free first. A thread that came for the lock
//! first has it first. The latency of a request is from its arrival to its answer, whenever it was taken.

use std::collections::VecDeque;

use weir_model::workload::{Requests, Spread};

use crate::clock::Ps;
use crate::rng;

/// What a thread does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Next {
    /// It runs this many instructions, from this time on.
    Run(Ps, f64),
    /// It halts until this time; [`Ps::MAX`] if another thread must wake it.
    Halt(Ps),
}

/// What follows from the end of a part of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ended {
    /// The latency of a request that is answered.
    pub latency: Option<Ps>,
    /// The thread that has the lock now, and halts.
    pub woken: Option<usize>,
}

/// Where a thread is in its request. Times are those at which it may go on.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// It has none.
    Free(Ps),
    /// It waits for the lock, with a request that came at the first time.
    Waits(Ps, f64),
    /// It has the lock and has not started.
    Owns(Ps, f64, Ps),
    /// It runs with the lock. These instructions follow without it.
    Locked(Ps, f64),
    /// It runs without the lock, to the end.
    Runs(Ps),
}

/// When the requests of an open loop come.
enum Arrivals {
    /// At random: the mean time between two, and when the next one comes.
    Random(f64, f64),
    /// From clients, each after this time, or when it has its answer.
    Clients(f64, Vec<Client>),
}

/// A client, which has one request under way.
#[derive(Debug, Clone, Copy)]
struct Client {
    /// When its turn is.
    turn: f64,
    /// When it sends its next request; [`Ps::MAX`] while one is under way.
    sends: Ps,
}

/// How late a timer wakes a client at most: the slack that Linux gives to a process (prctl(2), `PR_SET_TIMERSLACK`).
const SLACK: f64 = 50e6;

/// The requests of one program.
pub struct Service {
    /// The number of its first thread.
    first: usize,
    threads: Vec<Stage>,
    instructions: f64,
    spread: Spread,
    locked: f64,
    arrivals: Option<Arrivals>,
    /// The client whose request a thread has, if there are clients.
    asked: Vec<usize>,
    think: f64,
    /// Whether a thread has the lock, and those that wait for it.
    taken: bool,
    waiting: VecDeque<usize>,
    seed: u64,
    drawn: u64,
}

impl Service {
    /// The requests of a program whose threads have `threads` numbers from `first` on. All are free.
    pub fn new(requests: &Requests, first: usize, threads: usize, seed: u64) -> Self {
        let mut service = Self {
            first,
            threads: vec![Stage::Free(0); threads],
            instructions: requests.instructions as f64,
            spread: requests.spread,
            locked: requests.locked,
            arrivals: None,
            asked: vec![0; threads],
            think: requests.think.get() * 1e3,
            taken: false,
            waiting: VecDeque::new(),
            seed: rng::mix(seed ^ 0x7365_7276_6963_6500 ^ first as u64),
            drawn: 0,
        };
        if let Some(rate) = requests.per_second {
            let mean = 1e12 / rate;
            service.arrivals = Some(match requests.clients {
                None => Arrivals::Random(mean, service.exponential() * mean),
                Some(clients) => {
                    let period = mean * f64::from(clients);
                    let client = |_| {
                        let turn = service.unit() * period;
                        let sends = turn as Ps;
                        Client { turn, sends }
                    };
                    Arrivals::Clients(period, (0..clients).map(client).collect())
                }
            });
        }
        service
    }

    /// What a thread that halts does next; it looks no further ahead than `horizon`.
    pub fn next(&mut self, thread: usize, horizon: Ps) -> Next {
        let i = thread - self.first;
        match self.threads[i] {
            Stage::Free(free) => {
                let came = match self.comes(free) {
                    (came, _) if came > horizon => return Next::Halt(came),
                    (came, client) => {
                        self.asked[i] = client;
                        came
                    }
                };
                let drawn = match self.arrivals {
                    Some(Arrivals::Random(..)) => self.exponential(),
                    _ => 0.0,
                };
                match &mut self.arrivals {
                    Some(Arrivals::Random(mean, next)) => *next += drawn * *mean,
                    Some(Arrivals::Clients(_, all)) => all[self.asked[i]].sends = Ps::MAX,
                    None => {}
                }
                self.begin(i, came, came.max(free))
            }
            Stage::Owns(came, length, from) => {
                self.threads[i] = Stage::Locked(came, length * (1.0 - self.locked));
                Next::Run(from, length * self.locked)
            }
            Stage::Waits(..) | Stage::Locked(..) | Stage::Runs(_) => Next::Halt(Ps::MAX),
        }
    }

    /// When the next request comes for a thread that is free from this time on, and from which client.
    fn comes(&self, free: Ps) -> (Ps, usize) {
        match &self.arrivals {
            None => (free, 0),
            Some(Arrivals::Random(_, next)) => (*next as Ps, 0),
            Some(Arrivals::Clients(_, all)) => {
                let of = |(n, client): (usize, &Client)| (client.sends, n);
                all.iter().enumerate().map(of).min().unwrap_or((Ps::MAX, 0))
            }
        }
    }

    /// The client whose request a thread had has its answer at `at`.
    fn answered(&mut self, i: usize, at: Ps) {
        if !matches!(self.arrivals, Some(Arrivals::Clients(..))) {
            return;
        }
        let late = self.unit() * SLACK;
        if let Some(Arrivals::Clients(period, all)) = &mut self.arrivals {
            let client = &mut all[self.asked[i]];
            client.turn += *period;
            client.sends = match client.turn as Ps {
                turn if turn <= at => at,
                _ => (client.turn + late) as Ps,
            };
        }
    }

    /// A request that came is taken.
    fn begin(&mut self, i: usize, came: Ps, from: Ps) -> Next {
        let length = match self.spread {
            Spread::Fixed => self.instructions,
            Spread::Exponential => (self.exponential() * self.instructions).max(1.0),
        };
        if self.locked <= 0.0 {
            self.threads[i] = Stage::Runs(came);
            return Next::Run(from, length);
        }
        if std::mem::replace(&mut self.taken, true) {
            self.threads[i] = Stage::Waits(came, length);
            self.waiting.push_back(i);
            return Next::Halt(Ps::MAX);
        }
        self.threads[i] = Stage::Locked(came, length * (1.0 - self.locked));
        Next::Run(from, length * self.locked)
    }

    /// A thread has run at `at` what it was given. [`Service::next`] says what it does then.
    pub fn ended(&mut self, thread: usize, at: Ps) -> (Ended, Option<f64>) {
        let i = thread - self.first;
        let mut ended = Ended::default();
        let came = match self.threads[i] {
            Stage::Locked(came, rest) => {
                ended.woken = self.unlock(at);
                if rest >= 1.0 {
                    self.threads[i] = Stage::Runs(came);
                    return (ended, Some(rest));
                }
                came
            }
            Stage::Runs(came) => came,
            _ => return (ended, None),
        };
        ended.latency = Some(at - came.min(at));
        self.answered(i, at);
        let think = match self.think > 0.0 {
            true => (self.exponential() * self.think) as Ps,
            false => 0,
        };
        self.threads[i] = Stage::Free(at + think);
        (ended, None)
    }

    /// The lock is free at `at`: the thread that came first has it.
    fn unlock(&mut self, at: Ps) -> Option<usize> {
        while let Some(i) = self.waiting.pop_front() {
            if let Stage::Waits(came, length) = self.threads[i] {
                self.threads[i] = Stage::Owns(came, length, at);
                return Some(self.first + i);
            }
        }
        self.taken = false;
        None
    }

    /// A random value of an exponential distribution with mean 1.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A random value from 0 to 1.
    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        rng::unit(self.seed, self.drawn)
    }
}
