//! A chain of services, each a process of its own, as of the microservices of DeathStarBench (Gan et al., ASPLOS 2019): each
//! looks records of its own up one after the other, thinks, and asks the next one.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weir_model::latency::LatencyHistogram;
use weir_model::units::Nanos;

use super::keys::unit;
use super::report::{Given, Report, Step};
use super::threads::tasks;
use crate::child::end_with_this_thread;
use crate::kernels::Random;

const SERVICES: u64 = 5;
/// Records that a service looks up, each at the place which the one before names.
const LOOK_UPS: u64 = 200;
/// The mean time that a service thinks, as it would wait for a disk or for another machine.
const THINKS: Duration = Duration::from_millis(1);
/// Requests under way for each thread.
const CLIENTS: usize = 8;
/// The longest wait until a service listens.
const PATIENCE: Duration = Duration::from_secs(180);

/// A record: where the next one is.
fn next(service: u64, records: u64, place: u64) -> u64 {
    Random::new(place ^ (service << 56)).below(records as usize) as u64
}

/// The last of the records that a service looks up for a request.
fn last(service: u64, records: u64, request: u64, mut look_up: impl FnMut(u64) -> u64) -> u64 {
    let first = next(service + SERVICES, records, request);
    (0..LOOK_UPS).fold(first, |place, _| look_up(place))
}

/// Starts the services, and asks the first one.
pub fn run(given: &Given, rest: &[String], report: &mut Report<'_>) -> io::Result<()> {
    let records = (given.bytes / SERVICES / given.record.max(8)).max(2);
    if let [service] = rest {
        let service = service.parse().map_err(io::Error::other)?;
        return serve(given, service, records);
    }
    report.version(&format!(
        "{SERVICES} services of {records} records, {LOOK_UPS} look-ups and {} ms each, {} clients",
        THINKS.as_millis(),
        CLIENTS * given.threads
    ))?;
    let services: io::Result<Vec<Ending>> = (0..SERVICES).map(|n| start(given, n)).collect();
    let mut services = services?;
    // The last one listens first, as each connects to the next one.
    connect(given, 0, &mut services)?;
    for trial in 0..given.trials {
        let began = Instant::now();
        let clients = CLIENTS * given.threads;
        let seen = tasks(clients, clients, |client| {
            ask(given, records, trial, client)
        });
        let time = began.elapsed();
        report.look()?;
        let (mut latency, mut wrong) = (LatencyHistogram::new(), 0);
        let mut complete = true;
        for seen in seen {
            match seen {
                Ok(seen) => {
                    latency.merge(&seen.latency);
                    wrong += seen.wrong;
                }
                Err(_) => complete = false,
            }
        }
        if !complete {
            report.failed(
                &format!("trial {}", trial + 1),
                "a service ended during the run",
            )?;
            services = (0..SERVICES)
                .map(|n| start(given, n))
                .collect::<io::Result<_>>()?;
            connect(given, 0, &mut services)?;
            continue;
        }
        let done = latency.len();
        // How many there are depends on their speed.
        let step = Step::trial(trial, time, 0, "-")
            .of(done, "requests")
            .each(&latency);
        report.figure(&step, wrong == 0, &format!("{wrong} sums are wrong"))?;
    }
    Ok(())
}

struct Seen {
    latency: LatencyHistogram,
    wrong: u64,
}

/// Asks as long as a figure lasts, the next question after each answer.
fn ask(given: &Given, records: u64, trial: u32, client: usize) -> io::Result<Seen> {
    let mut stream = UnixStream::connect(socket(given, 0))?;
    let mut seen = Seen {
        latency: LatencyHistogram::new(),
        wrong: 0,
    };
    let mut random = Random::new(given.seed ^ u64::from(trial) << 32 ^ client as u64);
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < given.seconds {
        let request = random.word();
        let sent = Instant::now();
        let answer = exchange(&mut stream, request)?;
        seen.latency
            .record(Nanos(sent.elapsed().as_secs_f64() * 1e9));
        let of = |service| {
            last(service, records, request, |place| {
                next(service, records, place)
            })
        };
        let right = (0..SERVICES).map(of).fold(0_u64, u64::wrapping_add);
        seen.wrong += u64::from(answer != right);
    }
    Ok(seen)
}

fn exchange(stream: &mut UnixStream, request: u64) -> io::Result<u64> {
    stream.write_all(&request.to_le_bytes())?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    Ok(u64::from_le_bytes(answer))
}

fn socket(given: &Given, service: u64) -> PathBuf {
    given.folder.join(format!("s{service}"))
}

/// A service that ends with this value.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // Both fail only for a process that has gone, which is the goal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(given: &Given, service: u64) -> io::Result<Ending> {
    // What a service that has ended left.
    let _ = std::fs::remove_file(socket(given, service));
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["workload", "kernel", "services"]);
    command.args(given.arguments()).arg(service.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    end_with_this_thread(&mut command);
    command.spawn().map(Ending)
}

/// A connection to a service, once it listens.
fn connect(given: &Given, service: u64, all: &mut [Ending]) -> io::Result<UnixStream> {
    let began = Instant::now();
    loop {
        match UnixStream::connect(socket(given, service)) {
            Ok(stream) => return Ok(stream),
            Err(why) if began.elapsed() > PATIENCE => {
                let says = format!("service {service} does not listen: {why}");
                return Err(io::Error::new(why.kind(), says));
            }
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
        if let Some(Ok(Some(status))) = all
            .iter_mut()
            .map(|one| one.0.try_wait())
            .find(|one| !matches!(one, Ok(None)))
        {
            return Err(io::Error::other(format!(
                "a service ended at its start ({status})"
            )));
        }
    }
}

/// The body of a service: a thread for each connection.
fn serve(given: &Given, service: u64, records: u64) -> io::Result<()> {
    let words = (given.record as usize / 8).max(1);
    let mut table = vec![0_u64; records as usize * words];
    for place in 0..records {
        table[place as usize * words] = next(service, records, place);
    }
    // Behind those that it asks.
    let last_one = service + 1 == SERVICES;
    if !last_one {
        connect(given, service + 1, &mut [])?;
    }
    let listener = UnixListener::bind(socket(given, service))?;
    thread::scope(|scope| {
        for stream in listener.incoming() {
            let (mut stream, table) = (stream?, &table);
            scope.spawn(move || -> io::Result<()> {
                let mut after = match last_one {
                    true => None,
                    false => Some(UnixStream::connect(socket(given, service + 1))?),
                };
                let mut bytes = [0; 8];
                let mut random = Random::new(service);
                loop {
                    stream.read_exact(&mut bytes)?;
                    let request = u64::from_le_bytes(bytes);
                    let own = last(service, records, request, |place| {
                        table[place as usize * words]
                    });
                    thread::sleep(THINKS.mul_f64((-(1.0 - unit(&mut random)).ln()).min(20.0)));
                    let others = match &mut after {
                        Some(after) => exchange(after, request)?,
                        None => 0,
                    };
                    stream.write_all(&own.wrapping_add(others).to_le_bytes())?;
                }
            });
        }
        Ok(())
    })
}
