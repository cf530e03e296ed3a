//! The chapters of figures: one an experiment, in the order in which one asks.

use maud::{Markup, html};
use weir_lab::studies::POINT_STUDIES;
use weir_lab::view::{Shape, View};
use weir_lab::{About, Points};
use weir_model::frame::Frame;

use super::chart::Drawn;
use super::figures;
use super::plate::plate;
use crate::output::distinct;
use crate::render::picture;
use crate::render::text::{self, Sheet};
use crate::shown::Shown;
use crate::studies::STORED;

use super::{Cited, Insight, Section};

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
    let tiers = figures::tier_names(sections, insights);
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
            words: "Bandwidth of a tenant with another, against alone: the largest change over \
                    thread counts. A cell leads to its thread counts, to where requests wait, and to \
                    every counter.",
            plates: of_each(&figures::interplay),
            below: sections.iter().map(figures::behind_cells).collect(),
        },
    ];
    chapters.extend(found(insights, &tiers));
    let alone = sections.is_empty()
        && insights
            .iter()
            .all(|insight| insight.shown.title.is_empty());
    chapters.push(Chapter {
        id: "tables",
        title: if alone { "Figures" } else { "Other runs" },
        words: "",
        plates: insights.iter().flat_map(tables).collect(),
        below: Vec::new(),
    });
    let of_points = POINT_STUDIES.iter().map(|study| Chapter {
        id: study.name,
        title: study.title,
        words: study.words,
        plates: of_each(&|section| studied(section, study.name, &tiers)),
        below: Vec::new(),
    });
    chapters.splice(2..2, of_points);
    chapters.retain(|chapter| !chapter.plates.is_empty());
    chapters
}

/// A chapter for each kind of what studies found.
fn found(insights: &[Insight], tiers: &[String]) -> Vec<Chapter> {
    // Several verbs may have one kind of document.
    let kinds = distinct(STORED.iter().map(|reader| reader.schema));
    let of_kind = |schema: &str| -> Vec<(&Insight, &Shown)> {
        let shown = insights.iter().map(|insight| (insight, &insight.shown));
        shown.filter(|(_, s)| s.header.schema == schema).collect()
    };
    let chapter = |schema: &'static str| {
        let all = of_kind(schema);
        let (_, first) = all.first().filter(|(_, shown)| !shown.title.is_empty())?;
        Some(Chapter {
            id: schema.split('/').nth(1).unwrap_or(schema),
            title: first.title,
            words: first.words,
            plates: (together(&all).into_iter())
                .chain(
                    all.iter()
                        .flat_map(|(insight, shown)| alone(insight, shown, tiers)),
                )
                .collect(),
            below: Vec::new(),
        })
    };
    kinds.into_iter().filter_map(chapter).collect()
}

/// Pictures of several runs at once.
fn together(all: &[(&Insight, &Shown)]) -> Vec<Markup> {
    let views = all.iter().flat_map(|(_, shown)| &shown.views);
    let views = distinct(views.filter(|view| view.together));
    let draw = |view: &View| {
        let mut frames = (all.iter())
            .filter(|(_, shown)| shown.views.contains(view))
            .filter_map(|(_, shown)| shown.frame(Some(view.frame)).ok());
        let mut joint: Frame = frames.next()?;
        joint.rows.extend(frames.flat_map(|frame| frame.rows));
        let runs: Vec<&dyn Cited> = all.iter().map(|(i, _)| *i as &dyn Cited).collect();
        let machines = distinct(all.iter().map(|(i, _)| i.machine()));
        let views = std::slice::from_ref(view);
        let drawn = picture::pictures(&[joint], views, &machines.join(" and "), &[]);
        Some(drawn.iter().map(|d| plate(d, &runs)).collect::<Vec<_>>())
    };
    views.into_iter().filter_map(draw).flatten().collect()
}

/// Pictures of one run.
fn alone(insight: &Insight, shown: &Shown, tiers: &[String]) -> Vec<Markup> {
    let views = shown.views.iter().filter(|view| !view.together);
    let views: Vec<View> = views.cloned().collect();
    let drawn = picture::pictures(&shown.frames, &views, insight.machine(), tiers);
    drawn.iter().map(|d| plate(d, &[insight])).collect()
}

/// Whether a cell has words enough to be broken over lines.
fn is_long(cell: &str) -> bool {
    const LONG: usize = 24;
    cell.chars().count() > LONG
}

/// The tables of a run without a chapter of its own.
fn tables(insight: &Insight) -> Vec<Markup> {
    let shown = &insight.shown;
    if !shown.title.is_empty() {
        return Vec::new();
    }
    let plate = |sheet: Sheet| {
        html! {
            figure class="broad" {
                h3 { (sheet.title) }
                div class="scroll" { table {
                    thead { tr { @for head in &sheet.heads { th { (head.head().replace('\n', " ")) } } } }
                    tbody { @for row in &sheet.rows { tr { @for cell in row { td class=[is_long(cell).then_some("words")] { (cell) } } } } }
                } }
                figcaption { p class="origin" { (insight.origin()) } p { code class="again" { (insight.command()) } } }
            }
        }
    };
    let sheets = text::sheets(&shown.frames, &shown.views).into_iter();
    sheets.map(plate).collect()
}

/// The pictures of a study's views.
fn studied(section: &Section, study: &str, tiers: &[String]) -> Vec<Drawn> {
    let header = &section.document.header;
    let about = About::of(header);
    let points = &Points::of(section.document.points.clone()).points;
    let views = weir_lab::studies::views(points, about);
    let views: Vec<View> = views
        .into_iter()
        .filter(|view| view.study == study)
        .collect();
    let frames = [Frame::of("points", points)];
    let mut drawn = picture::pictures(&frames, &views, section.machine(), tiers);
    for view in &views {
        if let Shape::Picture("tails") = view.shape {
            drawn.extend(figures::tails(section));
        }
    }
    drawn
}
