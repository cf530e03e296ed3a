//! A program that runs once from start to end.

use weir_lab::workload::application::ApplicationFigure;
use weir_linux::application::Trouble;
use weir_linux::application::program::{Line, Task};

use super::placing::Place;
use super::{Ended, OnHost, failure};
use crate::failure::Failure;

impl OnHost<'_> {
    pub(super) fn program(&mut self, place: &Place) -> std::result::Result<(), Ended> {
        let task = Task {
            program: self.program.clone(),
            trials: self.real.trials(),
            seconds: self.real.seconds(),
            seed: self.context.global.seed,
            weir: std::env::current_exe()
                .map_err(|error| Failure::work(format!("the path of this command: {error}")))?,
        };
        self.step();
        let (root, stop) = (self.host.root.clone(), self.context.stop.clone());
        let mut taken = Vec::new();
        let of = |what: &str| ApplicationFigure {
            placement: place.name.clone(),
            what: what.into(),
            ..ApplicationFigure::default()
        };
        let ran = task.run(&root, &place.place, &|| stop.requested(), &mut |line| {
            taken.push(match line {
                Line::Loaded => return,
                Line::Figure(step) => {
                    let [mean_ns, p50_ns, p99_ns, p999_ns] = step.latency;
                    let figure = ApplicationFigure {
                        time_ns: Some(step.time),
                        rows: (step.rows > 0).then_some(step.rows),
                        done_per_s: step.per_s,
                        unit: step.unit,
                        mean_ns,
                        p50_ns,
                        p99_ns,
                        p999_ns,
                        ..of(&step.name)
                    };
                    (figure, step.check)
                }
                Line::Failed(name, why) => {
                    let figure = ApplicationFigure {
                        error: Some(why),
                        ..of(&name)
                    };
                    (figure, String::new())
                }
            });
            let done = self.done + taken.len();
            self.progress
                .step(done, self.of, done as f64 / self.of as f64);
        });
        let last = taken.len();
        for (figure, check) in taken {
            self.put(figure, check);
        }
        match ran {
            Ok(ran) => {
                self.run.version = ran.version;
                self.memory(place, ran.resident.ok());
                if let (Some(first), true) = (ran.wrong.first(), last > 0)
                    && let Some(figure) = self.run.figures.last_mut()
                {
                    figure.wrong += ran.wrong.len() as u64;
                    figure.first_wrong = Some(first.clone());
                }
                Ok(())
            }
            Err(Trouble::Failed(why)) => {
                let figure = ApplicationFigure {
                    error: Some(why),
                    ..of("what was left")
                };
                self.put(figure, String::new());
                Ok(())
            }
            Err(Trouble::Stopped) => Err(Ended::Stopped),
            Err(other) => Err(Ended::Failed(failure(other))),
        }
    }
}
