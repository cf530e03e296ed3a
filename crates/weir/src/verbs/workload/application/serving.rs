//! A server of keys and values: started, loaded, and driven at each rate.

use std::time::Duration;

use weir_lab::workload::application::ApplicationFigure;
use weir_linux::application::serve::loaded;
use weir_linux::application::server::Server;
use weir_linux::application::{Trouble, residency};
use weir_linux::pin::Pinned;
use weir_loops::programs::client::{Client, Drive, Seen};
use weir_model::units::Nanos;

use super::placing::Place;
use super::{Ended, OnHost, failure};

impl OnHost<'_> {
    /// A server at each rate. One that ends is started again for the next.
    pub(super) fn serve(&mut self, place: &Place) -> std::result::Result<(), Ended> {
        let rates: Vec<Option<f64>> = match self.real.rate.as_slice() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let mut running: Option<(Server, Client)> = None;
        for rate in rates {
            self.step();
            let mut figure = ApplicationFigure {
                placement: place.name.clone(),
                what: if rate.is_some() {
                    "open loop"
                } else {
                    "closed loop"
                }
                .into(),
                rate_per_s: rate,
                ..ApplicationFigure::default()
            };
            let began = match running.take() {
                Some(running) => Ok(running),
                None => self.loaded(place),
            };
            let seen = began.and_then(|(mut server, mut client)| {
                let seen = self
                    .drive(&mut client, rate)
                    .map_err(|why| server.why(why))?;
                let resident = residency::of_process(&self.host.root, server.process());
                running = Some((server, client));
                Ok((seen, resident))
            });
            match seen {
                Ok((seen, resident)) => {
                    fill(&mut figure, &seen);
                    self.memory(place, resident.ok());
                }
                Err(Trouble::Failed(why)) => figure.error = Some(why),
                Err(Trouble::Stopped) => return Err(Ended::Stopped),
                Err(other) => return Err(Ended::Failed(failure(other))),
            }
            self.put(figure, String::new());
        }
        Ok(())
    }

    fn loaded(&self, place: &Place) -> std::result::Result<(Server, Client), Trouble> {
        let _pinned = self.pinned();
        let with = (self.real.connections(), self.generator.is_some());
        let seed = self.context.global.seed;
        loaded(&self.program, &place.place, with, seed, &|| {
            self.context.stop.requested()
        })
    }

    fn drive(&self, client: &mut Client, rate: Option<f64>) -> std::result::Result<Seen, Trouble> {
        let length = Duration::from_secs_f64(self.real.seconds());
        let drive = Drive {
            rate,
            warm_up: (length / 5).min(Duration::from_secs(1)),
            length,
        };
        let _pinned = self.pinned();
        client.drive(&drive, &|| self.context.stop.requested())
    }

    /// Keeps this thread on the processor of the generator. Where that is refused, the kernel chooses.
    fn pinned(&self) -> Option<Pinned> {
        self.generator.and_then(|cpu| Pinned::to(cpu).ok())
    }
}

fn fill(figure: &mut ApplicationFigure, seen: &Seen) {
    let seconds = seen.time.as_secs().max(1e-9);
    let summary = seen.latency.summary();
    figure.offered_per_s = Some(seen.offered as f64 / seconds);
    figure.answered_per_s = Some(seen.answered as f64 / seconds);
    figure.mean_ns = summary.map(|summary| summary.mean);
    figure.p50_ns = summary.map(|summary| summary.p50);
    figure.p99_ns = summary.and_then(|summary| summary.p99);
    figure.p999_ns = summary.and_then(|summary| summary.p999);
    figure.late_p99_ns = seen.late.summary().and_then(|late| late.p99);
    // A busy host keeps it waiting for some tenths of a second now and then.
    let held = seen.held.as_secs_f64();
    figure.held_ns = (held > (seconds / 10.0).max(0.5)).then_some(Nanos(held * 1e9));
    figure.unanswered = Some(seen.unanswered);
    figure.wrong = seen.wrong;
    figure.first_wrong.clone_from(&seen.first_wrong);
}
