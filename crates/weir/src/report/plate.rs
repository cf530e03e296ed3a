//! A chart with everything that goes with it: its name, its runs, how to repeat them, what its
//! signs mean, its figures as a table, and a way to keep it.

use maud::{Markup, html};

use super::Cited;
use super::chart::{Chart, Drawn, Room};

/// A chart on the page.
pub fn plate(drawn: &Drawn, runs: &[&dyn Cited]) -> Markup {
    let Drawn {
        name,
        chart,
        sources,
    } = drawn;
    let origins: Vec<String> = runs.iter().map(|run| run.origin()).collect();
    html! {
        figure {
            h3 { (name) }
            div class="chart" { (chart.draw(Room::Wide)) (chart.draw(Room::Narrow)) }
            figcaption {
                @for origin in &origins { p class="origin" { (origin) } }
                @for run in runs { p { code class="again" { (run.command()) } } }
                @if !sources.is_empty() { p { (sources) } }
                @for sign in chart.signs() { p { b { (sign.glyph()) } " " (sign.meaning()) } }
            }
            div class="below" {
                (as_table(chart.as_ref()))
                button type="button" class="save" hidden { "save figure" }
            }
        }
    }
}

/// The figures of a chart as a table, folded.
pub fn as_table(chart: &dyn Chart) -> Markup {
    html! {
        details {
            summary { "as a table" }
            div class="scroll" { table { (chart.table()) } }
        }
    }
}
