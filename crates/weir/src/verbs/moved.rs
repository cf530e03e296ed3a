//! What became of pages that were to move, in words and columns.

use weir_lab::view::{Col, col};
use weir_model::tiering::MovedPages;

/// Why pages stayed, each reason with its pages: `3 without room on the new node`. `None` where none stayed.
pub fn stayed(pages: &MovedPages) -> Option<String> {
    let reasons = [
        (pages.busy, "in use by the kernel or a device (pinned)"),
        (pages.full, "without room on the new node"),
        (pages.shared, "also mapped by other processes"),
        (pages.refused, "refused by the kernel"),
    ];
    let said: Vec<String> = (reasons.iter().filter(|(pages, _)| *pages > 0))
        .map(|(pages, why)| format!("{pages} {why}"))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Their counts, as columns of a table.
pub fn columns() -> impl Iterator<Item = Col> {
    let names = [
        "moved", "there", "absent", "busy", "full", "shared", "refused",
    ];
    names.into_iter().map(col)
}
