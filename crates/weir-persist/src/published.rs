//! Rows of *Persistent Memory Research in the Post-Optane Era* (DIMES 2023), a position paper: what it counts.

use weir_lab::reproduce::rule::{Figure, Rule};

use crate::class::Class;
use crate::platform::Platform;

const IMPOSSIBLE: &str = "the paper excludes memory that is coherent in blocks";

/// Every rule.
pub fn rules() -> Vec<Rule> {
    let count = |of: fn(&&Class) -> bool| {
        Figure::new("combinations", move |_| {
            Ok(Class::ALL.iter().filter(of).count() as f64)
        })
    };
    let levels = Figure::new("levels", |_| {
        let flushed = Class::Pmem.platforms().iter();
        let kinds: std::collections::BTreeSet<bool> =
            flushed.map(|p| p.flushes_on_fail()).collect();
        Ok(kinds.len() as f64)
    });
    vec![
        Rule::identity("POP-015a", count(|_| true)).noting(IMPOSSIBLE),
        Rule::identity(
            "POP-015b",
            Figure::new("combinations", |_| Ok(2_f64.powi(3))),
        ),
        Rule::identity("POP-016a", count(|class| class.exists())),
        Rule::identity("POP-016b", count(|class| !class.exists())),
        Rule::identity("POP-021", levels),
    ]
}

impl Platform {
    /// Whether the platform, and not the program, moves stores to what is kept.
    const fn flushes_on_fail(self) -> bool {
        matches!(
            self,
            Platform::Eadr | Platform::FlushOnFail | Platform::FlushOnFailIncomplete
        )
    }
}
