//! Who answers rows that need more than points, put together.

use weir_lab::reproduce::{Answer, Answers, Beyond, Open};
use weir_model::published::Published;

/// Says of rows that take minutes how they are to be had, where nobody asked for them.
pub struct Later<'a>(pub &'a dyn Beyond);

impl Beyond for Later<'_> {
    fn knows(&self, id: &str) -> bool {
        self.0.knows(id)
    }

    fn answer(&self, rows: &[&Published], _: &Open<'_>, _: u64) -> Answers {
        let mut answers = Answers::default();
        for row in rows {
            let why = format!(
                "takes long, and is answered by `weir reproduce {}` or by --only",
                row.paper
            );
            let answer = Answer {
                ours: Err(why),
                note: String::new(),
                replayed: false,
            };
            answers.rows.insert(row.id.clone(), answer);
        }
        answers
    }
}

/// Two who answer different rows.
pub struct Both<'a>(pub &'a dyn Beyond, pub &'a dyn Beyond);

impl Beyond for Both<'_> {
    fn knows(&self, id: &str) -> bool {
        self.0.knows(id) || self.1.knows(id)
    }

    fn answer(&self, rows: &[&Published], open: &Open<'_>, seed: u64) -> Answers {
        let mut all = Answers::default();
        for one in [self.0, self.1] {
            let theirs: Vec<&Published> = (rows.iter().copied())
                .filter(|row| one.knows(&row.id))
                .collect();
            if theirs.is_empty() {
                continue;
            }
            let answers = one.answer(&theirs, open, seed);
            all.rows.extend(answers.rows);
            all.platforms.extend(answers.platforms);
        }
        all
    }
}
