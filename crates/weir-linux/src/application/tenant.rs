//! An application as a tenant of a host. A thread of its own starts it and sends its requests, and it ends with that thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_model::application_tenant::{ApplicationDone, ApplicationTenant};
use weir_model::latency::{LatencyHistogram, LatencySummary};
use weir_model::machine::{MachineError, RunningApplication};
use weir_model::units::Nanos;

use super::program::{Line, Task};
use super::serve::loaded;
use super::server::Server;
use super::table::entry;
use super::{Trouble, Where};
use crate::pin::Pinned;
use crate::root::Root;
use weir_loops::programs::client::{Client, Drive, Seen};
use weir_loops::programs::report::Step;

/// Between two looks at the user's wish to stop.
const LOOK: Duration = Duration::from_millis(20);
/// Connections of the generator.
const CONNECTIONS: u32 = 16;
/// A part of the work of a server that goes on until it is ended.
const PART: Duration = Duration::from_millis(250);
/// Repetitions of a program that goes on until it is ended.
const ENDLESS: u32 = 1_000_000;

enum Order {
    Measure,
    Begin,
}

enum Answer {
    /// It works, with all its data in memory.
    Ready,
    Done(Result<Option<ApplicationDone>, Trouble>),
}

/// What its thread knows.
struct Owner {
    tenant: ApplicationTenant,
    place: Where,
    /// The processor of the generator.
    generator: Option<u32>,
    weir: PathBuf,
    root: Root,
    stop: Arc<AtomicBool>,
    answers: Sender<Answer>,
}

/// An application that was started.
pub(crate) struct Running {
    name: String,
    orders: Option<Sender<Order>>,
    answers: Receiver<Answer>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts it in its place, and waits until its data are in memory.
    pub(crate) fn start(
        root: &Root,
        tenant: &ApplicationTenant,
        mut place: Where,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, MachineError> {
        let is_server = tenant.program.application.is_server();
        place.cpus.clone_from(&tenant.cores);
        let generator = match is_server && place.cpus.len() > 1 {
            true => place.cpus.pop(),
            false => None,
        };
        let weir = std::env::current_exe().map_err(|error| MachineError::System {
            what: "the path of this command".into(),
            cause: error.to_string(),
        })?;
        let (orders, of_owner) = channel();
        let (to_owner, answers) = channel();
        let owner = Owner {
            tenant: tenant.clone(),
            place,
            generator,
            weir,
            root: root.clone(),
            stop: Arc::default(),
            answers: to_owner,
        };
        let mut running = Self {
            name: tenant.name.clone(),
            orders: Some(orders),
            answers,
            stop: Arc::clone(&owner.stop),
            thread: None,
        };
        running.thread = Some(thread::spawn(move || match is_server {
            true => owner.serve(&of_owner),
            false => owner.run(&of_owner),
        }));
        if is_server {
            running.ready(stop)?;
        }
        Ok(running)
    }

    fn error(&self, why: Trouble) -> MachineError {
        match why {
            Trouble::Stopped => MachineError::Interrupted,
            Trouble::Request(text) => MachineError::Request(format!("`{}`: {text}", self.name)),
            Trouble::Lacks(cause) | Trouble::Failed(cause) => MachineError::System {
                what: format!("`{}`", self.name),
                cause,
            },
        }
    }

    fn order(&self, order: Order) {
        self.stop.store(false, Ordering::Relaxed);
        // A thread that has gone is noticed by its missing answer.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }

    fn answer(&self, stop: &dyn Fn() -> bool) -> Result<Answer, MachineError> {
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) if stop() => {
                    self.stop.store(true, Ordering::Relaxed)
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.error(Trouble::Failed("its thread has ended".into())));
                }
            }
        }
    }

    fn ready(&self, stop: &dyn Fn() -> bool) -> Result<(), MachineError> {
        match self.answer(stop)? {
            Answer::Ready => Ok(()),
            Answer::Done(Err(why)) => Err(self.error(why)),
            Answer::Done(Ok(_)) => {
                let why = "it ended before its data were in memory";
                Err(self.error(Trouble::Failed(why.into())))
            }
        }
    }

    fn done(&self, stop: &dyn Fn() -> bool) -> Result<Option<ApplicationDone>, MachineError> {
        loop {
            if let Answer::Done(done) = self.answer(stop)? {
                return done.map_err(|why| self.error(why));
            }
        }
    }
}

impl RunningApplication for Running {
    fn measure(&mut self, stop: &dyn Fn() -> bool) -> Result<ApplicationDone, MachineError> {
        self.order(Order::Measure);
        let nothing = || self.error(Trouble::Failed("it gave no figure".into()));
        self.done(stop)?.ok_or_else(nothing)
    }

    fn begin(&mut self, stop: &dyn Fn() -> bool) -> Result<(), MachineError> {
        self.order(Order::Begin);
        self.ready(stop)
    }

    fn end(&mut self) -> Result<Option<ApplicationDone>, MachineError> {
        self.stop.store(true, Ordering::Relaxed);
        self.done(&|| false)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A thread that failed has ended what it started.
            let _ = thread.join();
        }
    }
}

impl Owner {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn tell(&self, answer: Answer) {
        // Without a listener the orders have ended as well.
        let _ = self.answers.send(answer);
    }

    fn loaded(&self) -> Result<(Server, Client), Trouble> {
        let with = (CONNECTIONS, self.generator.is_some());
        loaded(
            &self.tenant.program,
            &self.place,
            with,
            self.tenant.seed,
            &|| self.stops(),
        )
    }

    /// A server, until there are no more orders.
    fn serve(&self, orders: &Receiver<Order>) {
        // Where no processor is left for it, or that is refused, the kernel chooses one.
        let _pinned = self.generator.and_then(|cpu| Pinned::to(cpu).ok());
        let mut server = match self.loaded() {
            Ok(server) => {
                self.tell(Answer::Ready);
                Some(server)
            }
            Err(why) => return self.tell(Answer::Done(Err(why))),
        };
        for order in orders {
            let began = match server.take() {
                Some(server) => Ok(server),
                None => self.loaded(),
            };
            let done = began.and_then(|mut running| {
                let done = match order {
                    Order::Measure => self.figure(&mut running),
                    Order::Begin => {
                        self.tell(Answer::Ready);
                        self.parts(&mut running)
                    }
                };
                if !matches!(done, Err(Trouble::Failed(_))) {
                    server = Some(running);
                }
                done
            });
            self.tell(Answer::Done(done));
        }
    }

    fn figure(
        &self,
        (server, client): &mut (Server, Client),
    ) -> Result<Option<ApplicationDone>, Trouble> {
        let length = Duration::from_secs_f64(self.tenant.seconds);
        let drive = Drive {
            rate: None,
            warm_up: (length / 5).min(Duration::from_secs(1)),
            length,
        };
        let seen = client
            .drive(&drive, &|| self.stops())
            .map_err(|why| server.why(why))?;
        of_requests(&[seen])
    }

    fn parts(
        &self,
        (server, client): &mut (Server, Client),
    ) -> Result<Option<ApplicationDone>, Trouble> {
        let drive = Drive {
            rate: None,
            warm_up: Duration::ZERO,
            length: PART,
        };
        let mut parts: Vec<Seen> = Vec::new();
        while !self.stops() {
            match client.drive(&drive, &|| self.stops()) {
                Ok(seen) => parts.push(seen),
                Err(Trouble::Stopped) => break,
                Err(why) => return Err(server.why(why)),
            }
        }
        of_requests(&parts)
    }

    /// A program that runs from a start to an end, once for each order.
    fn run(&self, orders: &Receiver<Order>) {
        for order in orders {
            let endless = matches!(order, Order::Begin);
            let needs = entry(self.tenant.program.application);
            let task = Task {
                program: self.tenant.program.clone(),
                trials: if endless { ENDLESS } else { 1 },
                seconds: if endless { 1.0 } else { self.tenant.seconds },
                seed: self.tenant.seed,
                weir: self.weir.clone(),
            };
            let (mut steps, mut failed, mut report) = (Vec::new(), None, false);
            let ran = task.run(
                &self.root,
                &self.place,
                &|| self.stops(),
                &mut |line| match line {
                    Line::Loaded => {
                        if endless && !report {
                            report = true;
                            self.tell(Answer::Ready);
                        }
                    }
                    Line::Figure(step) => steps.push(step),
                    Line::Failed(what, why) => {
                        failed.get_or_insert(format!("{what}: {why}"));
                    }
                },
            );
            let steps = steps.get(needs.steps.0 as usize..).unwrap_or_default();
            let done = match (ran, failed) {
                (Err(Trouble::Stopped), None) if endless => Ok(of_steps(steps, needs.steps.1)),
                (Err(why), _) => Err(why),
                (Ok(_), Some(why)) => Err(Trouble::Failed(why)),
                (Ok(ran), None) => match ran.wrong.first() {
                    Some(wrong) => Err(Trouble::Failed(format!("a wrong answer: {wrong}"))),
                    None => Ok(of_steps(steps, needs.steps.1)),
                },
            };
            self.tell(Answer::Done(done));
        }
    }
}

/// Requests of stretches that follow each other.
fn of_requests(seen: &[Seen]) -> Result<Option<ApplicationDone>, Trouble> {
    let mut latency = LatencyHistogram::new();
    let (mut answered, mut seconds) = (0, 0.0);
    for part in seen {
        if let Some(wrong) = &part.first_wrong {
            return Err(Trouble::Failed(format!(
                "{} answers are wrong, the first: {wrong}",
                part.wrong
            )));
        }
        latency.merge(&part.latency);
        answered += part.answered;
        seconds += part.time.as_secs();
    }
    Ok((seconds > 0.0).then(|| ApplicationDone {
        per_s: answered as f64 / seconds,
        unit: "requests/s".into(),
        run: None,
        latency: latency.summary(),
    }))
}

/// Figures of repetitions with this many steps each. Where a step has a metric of its own, that is the figure; otherwise the time
/// of all steps is.
fn of_steps(steps: &[Step], in_one: u32) -> Option<ApplicationDone> {
    let repetitions = steps.len() / in_one.max(1) as usize;
    let steps = steps.get(..repetitions * in_one as usize)?;
    let last = steps.last()?;
    let mean = |all: f64| all / repetitions as f64;
    if let (1, Some(unit), Some(_)) = (in_one, &last.unit, last.per_s) {
        let [Some(mean_ns), Some(p50), p99, p999] = last.latency else {
            return Some(ApplicationDone {
                per_s: mean(steps.iter().filter_map(|step| step.per_s).sum()),
                unit: format!("{unit}/s"),
                run: None,
                latency: None,
            });
        };
        return Some(ApplicationDone {
            per_s: mean(steps.iter().filter_map(|step| step.per_s).sum()),
            unit: format!("{unit}/s"),
            run: None,
            latency: Some(LatencySummary {
                mean: mean_ns,
                p50,
                p90: None,
                p99,
                p999,
                p9999: None,
                p99999: None,
                max: p999.or(p99).unwrap_or(p50),
                samples: 0,
            }),
        });
    }
    let run = Nanos(mean(steps.iter().map(|step| step.time.get()).sum()));
    Some(ApplicationDone {
        per_s: 1e9 / run.get().max(1.0),
        unit: "runs/s".into(),
        run: Some(run),
        latency: None,
    })
}
