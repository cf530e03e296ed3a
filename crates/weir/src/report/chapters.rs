//! The chapters of figures: one an experiment, in the order in which one asks.

use maud::{Markup, html};
use weir_lab::studies::POINT_STUDIES;
use weir_lab::view::{Shape, View};
use weir_lab::{About, Points};
use weir_model::frame::Frame;

use super::chart::Drawn;
use super::figures;
use super::plate::plate;
use crate::render::picture;
use crate::render::text::{self, Sheet};

use super::{Cited, Insight, Section, Told};

/// Charts that answer one question.
pub struct Chapter {
    /// Its anchor.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// How to read it.
    words: &'static str,
    plates: Vec<Markup>,
    /// What stands below the charts.
    below: Vec<Markup>,
}

impl Chapter {
    /// The chapter with its heading.
    pub fn draw(&self) -> Markup {
        html! {
            section id=(self.id) {
                h2 { (self.title) }
                @if !self.words.is_empty() { p { (self.words) } }
                div class="plates" { @for plate in &self.plates { (plate) } }
                @for part in &self.below { (part) }
            }
        }
    }
}

/// Every chapter that has a figure.
pub fn chapters(sections: &[Section], insights: &[Insight]) -> Vec<Chapter> {
    let all: Vec<&dyn Cited> = sections.iter().map(|s| s as &dyn Cited).collect();
    let overall = [
        figures::idle_latencies(sections),
        figures::peak_bandwidths(sections),
        figures::tails_side_by_side(sections),
        figures::loaded_side_by_side(sections),
    ];
    let of_each = |draw: &dyn Fn(&Section) -> Vec<Drawn>| -> Vec<Markup> {
        let of_one = |section| {
            let drawn = draw(section);
            let plates: Vec<Markup> = drawn.iter().map(|d| plate(d, &[section])).collect();
            plates
        };
        sections.iter().flat_map(of_one).collect()
    };
    let of_insights = |draw: &dyn Fn(&Insight) -> Vec<Drawn>| -> Vec<Markup> {
        let of_one = |insight| {
            let drawn = draw(insight);
            let plates: Vec<Markup> = drawn.iter().map(|d| plate(d, &[insight])).collect();
            plates
        };
        insights.iter().flat_map(of_one).collect()
    };
    let explained: Vec<&dyn Cited> = (insights.iter())
        .filter(|insight| matches!(insight.told, Told::Explained(_)))
        .map(|insight| insight as &dyn Cited)
        .collect();
    let mut chapters = vec![
        Chapter {
            id: "tiers",
            title: "Tiers side by side",
            words: "",
            plates: overall.iter().flatten().map(|d| plate(d, &all)).collect(),
            below: Vec::new(),
        },
        Chapter {
            id: "interplay",
            title: "Interplay",
            words: "Bandwidth of a tenant beside another, against alone: the largest change over \
                    thread counts. A cell leads to its thread counts, to where requests wait, and to \
                    every counter.",
            plates: of_each(&figures::interplay),
            below: sections.iter().map(figures::behind_cells).collect(),
        },
        Chapter {
            id: "slowdown",
            title: "Slowdown by cause",
            words: "Cycles in which the core waits, by what it waits for: a full store buffer, a line on \
                    its way to L1, L2, the last-level cache, memory. A slowdown is what a slower \
                    memory adds to each, against the cycles on local memory. A part left of zero is a \
                    cause that loses less there.",
            plates: (figures::slowdowns(insights).iter())
                .map(|drawn| plate(drawn, &explained))
                .chain(of_insights(&figures::explained))
                .collect(),
            below: Vec::new(),
        },
        Chapter {
            id: "model",
            title: "The model of slowdown",
            words: "Slowdown of the micro-workloads that the constants were fitted on. On the line the \
                    fit is exact.",
            plates: of_insights(&figures::calibrated),
            below: Vec::new(),
        },
        Chapter {
            id: "prediction",
            title: "Predictions",
            words: "From one run on local memory. The interval is what workloads that nothing was fitted \
                    to were off. The model is one of latency: work that waits for bandwidth is \
                    another colour, and is not counted among the accurate.",
            plates: of_insights(&figures::predicted),
            below: Vec::new(),
        },
        Chapter {
            id: "interleaving",
            title: "Interleaving",
            words: "Run time with a share of the pages on the slower tier, against none. Best-shot needs \
                    one run, the closed form two, Caption climbs step by step, and the proportion of \
                    bandwidths asks nobody.",
            plates: of_insights(&figures::interleaved),
            below: Vec::new(),
        },
        Chapter {
            id: "steering",
            title: "Steering",
            words: "A scenario under a controller, window by window. Dashed is what the same tenants have alone, \
                    dotted what they have beside each other while nobody is held. What is left is the running \
                    of those who may be held.",
            plates: of_insights(&figures::steered),
            below: Vec::new(),
        },
    ];
    chapters.push(Chapter {
        id: "tables",
        title: "Other runs",
        words: "",
        plates: insights.iter().flat_map(tables).collect(),
        below: Vec::new(),
    });
    let of_points = POINT_STUDIES.iter().map(|study| Chapter {
        id: study.name,
        title: study.title,
        words: study.words,
        plates: of_each(&|section| studied(section, study.name)),
        below: Vec::new(),
    });
    chapters.splice(2..2, of_points);
    chapters.retain(|chapter| !chapter.plates.is_empty());
    chapters
}

/// The tables of a run that is told by its views.
fn tables(insight: &Insight) -> Vec<Markup> {
    let Told::Shown(shown) = &insight.told else {
        return Vec::new();
    };
    let plate = |sheet: Sheet| {
        html! {
            figure {
                h3 { (sheet.title) }
                div class="scroll" { table {
                    thead { tr { @for head in &sheet.heads { th { (head.head().replace('\n', " ")) } } } }
                    tbody { @for row in &sheet.rows { tr { @for cell in row { td { (cell) } } } } }
                } }
                figcaption { p class="origin" { (insight.origin()) } p { code class="again" { (insight.command()) } } }
            }
        }
    };
    let sheets = text::sheets(&shown.frames, &shown.views).into_iter();
    sheets.map(plate).collect()
}

/// The pictures of a study's views.
fn studied(section: &Section, study: &str) -> Vec<Drawn> {
    let header = &section.document.header;
    let about = About {
        machine: &header.machine,
        topology: &header.topology,
    };
    let points = &Points::of(section.document.points.clone()).points;
    let views = weir_lab::studies::views(points, about);
    let views: Vec<View> = views
        .into_iter()
        .filter(|view| view.study == study)
        .collect();
    let frames = [Frame::of("points", points)];
    let tiers: Vec<String> = header
        .topology
        .tiers
        .iter()
        .map(|t| t.name.to_string())
        .collect();
    let mut drawn = picture::pictures(&frames, &views, section.machine(), &tiers);
    for view in &views {
        if let Shape::Picture("tails") = view.shape {
            drawn.extend(figures::tails(section));
        }
    }
    drawn
}
