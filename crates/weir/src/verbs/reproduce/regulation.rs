//! Rows about regulation, which the crate of controllers answers.

use weir_lab::reproduce::{Answer, Answers, Beyond, Open};
use weir_model::published::Published;
use weir_steer::published;

use crate::interrupt::Stop;
use crate::machine;

/// Answers them on models whose long windows are sampled, until somebody says stop.
pub struct Regulation<'a> {
    /// Whether somebody did.
    pub stop: &'a Stop,
}

impl Beyond for Regulation<'_> {
    fn knows(&self, id: &str) -> bool {
        published::about(id).is_some()
    }

    fn answer(&self, rows: &[&Published], _: &Open<'_>, seed: u64) -> Answers {
        let mut answers = Answers::default();
        for row in rows {
            let Some((on, note)) = published::about(&row.id) else {
                continue;
            };
            if self.stop.requested() {
                break;
            }
            let chosen = machine::choose_sampled(on);
            let ours = chosen
                .map_err(|failure| failure.message().unwrap_or_default())
                .and_then(|chosen| {
                    let digest = chosen.identity.digest.clone();
                    answers.platforms.insert(on.to_owned(), digest);
                    let figure = published::answer(&row.id, chosen.testbed.as_ref(), seed);
                    let figure = figure.ok_or_else(|| "is not answered".to_owned())?;
                    figure.map_err(|why| why.to_string())
                });
            let note = note.to_owned();
            let answer = Answer {
                ours,
                note,
                replayed: false,
            };
            answers.rows.insert(row.id.clone(), answer);
        }
        answers
    }
}
