//! Tables that fit the terminal whatever they hold.

use std::borrow::Cow;
use std::fmt;

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, TableStyle,
    Width,
};
use unicode_width::UnicodeWidthStr;

use super::width;

/// Only a rule under the head: tables are read, and pasted into mails.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// Numbers are never broken over lines as long as all of them together leave this much to words.
const LEFT_FOR_WORDS: usize = 24;

/// The head of a column.
#[derive(Debug, Clone)]
pub struct Column {
    head: Cow<'static, str>,
    number: bool,
}

impl Column {
    /// A column of words.
    pub fn words(head: impl Into<Cow<'static, str>>) -> Self {
        Self {
            head: head.into(),
            number: false,
        }
    }

    /// Its heading.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// A column of numbers, with the unit in its head.
    pub fn number(head: impl Into<Cow<'static, str>>) -> Self {
        Self {
            head: head.into(),
            number: true,
        }
    }
}

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    inner: comfy_table::Table,
    /// Whether columns come closer before a row takes two lines.
    dense: bool,
}

impl Table {
    /// A table of these columns.
    pub fn new(columns: &[Column]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner
            .load_style(STYLE)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(width()).unwrap_or(80))
            .set_header(columns.iter().map(|c| c.head.as_ref()));
        Self {
            columns: columns.to_vec(),
            inner,
            dense: false,
        }
    }

    /// The same, with columns that come closer before a row takes two lines.
    pub fn dense(self) -> Self {
        Self {
            dense: true,
            ..self
        }
    }

    /// Adds a row. Control characters are shown as spaces.
    pub fn row<I: IntoIterator<Item = String>>(&mut self, cells: I) {
        let clean = |cell: String| cell.replace(char::is_control, " ");
        self.inner.add_row(cells.into_iter().map(clean));
    }

    /// The widths of columns in which no word is broken over lines, and of numbers not even their spaces.
    fn least(&self) -> Vec<usize> {
        let words = |text: &str| text.split_whitespace().map(UnicodeWidthStr::width).max();
        let mut widths: Vec<usize> = (self.columns.iter())
            .map(|column| words(&column.head).unwrap_or(0))
            .collect();
        for row in self.inner.row_iter() {
            for (at, cell) in row.cell_iter().enumerate() {
                let content = cell.content();
                let is_number = self.columns.get(at).is_some_and(|column| column.number);
                let width = if is_number {
                    Some(content.width())
                } else {
                    words(&content)
                };
                if let Some(widest) = widths.get_mut(at) {
                    *widest = (*widest).max(width.unwrap_or(0));
                }
            }
        }
        widths
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.inner.row_count() == 0
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut inner = self.inner.clone();
        let widths = inner.column_max_content_widths();
        let numbers: usize = (self.columns.iter().zip(&widths))
            .filter(|(column, _)| column.number)
            .map(|(_, &width)| usize::from(width) + 2)
            .sum();
        for (column, shown) in self.columns.iter().zip(inner.column_iter_mut()) {
            shown.set_padding((0, 1));
            if column.number {
                shown.set_cell_alignment(CellAlignment::Right);
                if numbers + LEFT_FOR_WORDS <= width() {
                    shown.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
        let whole: usize = widths.iter().map(|&width| usize::from(width) + 1).sum();
        let fits_close = whole <= width() + 1;
        let is_close = self.dense && fits_close && whole + widths.len() > width() + 1;
        if is_close {
            for shown in inner.column_iter_mut() {
                shown.set_padding((0, 0));
                shown.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut lines: Vec<String> = inner.lines().collect();
        let least = self.least();
        // Of the rule under the head, each part is as wide as its column.
        let rule = lines.iter().find(|line| line.starts_with('─'));
        let given = rule.into_iter().flat_map(|rule| rule.split(' '));
        let is_broken =
            !is_close && (given.zip(&least)).any(|(part, &least)| part.width() < least + 1);
        // Columns are closer to each other before a word or a number is broken.
        let fits = |padding| {
            let spaces = least.len() * (padding + 1);
            least.iter().sum::<usize>() + spaces <= width() + 1
        };
        if let Some(padding) =
            (is_broken.then_some([1, 0]).into_iter().flatten()).find(|&n| fits(n))
        {
            for (&least, shown) in least.iter().zip(inner.column_iter_mut()) {
                let least = u16::try_from(least + padding).unwrap_or(u16::MAX);
                shown.set_padding((0, u16::from(padding > 0)));
                shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
            lines = inner.lines().collect();
        }
        for mut line in lines {
            // Behind the last column nothing follows, so that the rule needs no space there.
            if line.starts_with('─') && line.width() == width() + 1 {
                line.pop();
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_right_aligned_under_a_head_with_their_unit() {
        let mut table = Table::new(&[Column::words("tier"), Column::number("GB/s")]);
        table.row(["dram".into(), "214".into()]);
        table.row(["cxl0".into(), "24.1".into()]);
        let text = table.to_string();
        assert_eq!(text, "tier  GB/s\n───── ─────\ndram   214\ncxl0  24.1\n");
    }

    #[test]
    fn no_word_is_broken_where_all_columns_have_room_for_theirs() {
        let mut columns = vec![Column::words("policy"), Column::words("why")];
        columns.extend(vec![Column::number("GB/s of 9"); 5]);
        let mut table = Table::new(&columns);
        let why = "it moves what is read most";
        table.row(["numa-balancing", why, "1", "2", "3", "4", "5"].map(String::from));
        let text = table.to_string();
        assert!(text.contains("numa-balancing"), "{text}");
        assert!(text.lines().all(|line| line.width() <= width()), "{text}");
    }

    #[test]
    fn columns_come_closer_before_a_word_or_a_number_is_broken() {
        let mut columns = vec![Column::words("policy"), Column::number("slower %")];
        columns.extend(vec![Column::number("promoted of all"); 5]);
        columns.push(Column::number("GB/s"));
        let mut table = Table::new(&columns);
        let row = ["numa-balancing", "1", "2", "3", "4", "5", "6", "20.8 ±0.01"];
        table.row(row.map(String::from));
        let text = table.to_string();
        let [name, number] = ["numa-balancing", "20.8 ±0.01"];
        assert!(text.contains(name) && text.contains(number), "{text}");
        assert!(text.lines().all(|line| line.width() <= width()), "{text}");
    }

    #[test]
    fn columns_come_closer_before_a_row_takes_two_lines() {
        let words = |n| vec!["word"; n].join(" ");
        // Two gaps of one column and 78 others.
        for (wide, rows) in [(77, 3), (78, 3), (79, 4)] {
            let mut table = Table::new(&[
                Column::words("policy"),
                Column::words("why"),
                Column::number("GB/s"),
            ])
            .dense();
            let first = "a".repeat(wide - 4 - words(6).len());
            table.row([first, words(6), "1234".into()]);
            let text = table.to_string();
            assert_eq!(text.lines().count(), rows, "{wide}: {text}");
            assert!(text.lines().all(|line| line.width() <= width()), "{text}");
        }
    }

    #[test]
    fn the_rule_is_no_wider_than_the_terminal() {
        let mut table = Table::new(&[
            Column::words("counter"),
            Column::words("value"),
            Column::number("counted"),
        ]);
        table.row(
            [
                "unc_cxlcm_txc_pack_buf_inserts.mem_req   UNC_CXLCM_TxC_PACK_BUF_INSERTS.MEM_REQ",
                "not in the file",
                "",
            ]
            .map(String::from),
        );
        let text = table.to_string();
        assert!(text.lines().all(|line| line.width() <= width()), "{text}");
    }

    #[test]
    fn words_among_numbers_do_not_make_a_table_wider() {
        let mut table = Table::new(&[
            Column::words("words"),
            Column::number("head [GB/s]"),
            Column::words("words"),
        ]);
        let [long, longer] = [22, 26].map(|n| "a".repeat(n));
        table.row([long, ["bbbbbbbbbbbb"; 3].join(" "), longer]);
        let text = table.to_string();
        assert!(text.lines().all(|line| line.width() <= width()), "{text}");
    }

    proptest! {
        #[test]
        fn a_table_is_never_wider_than_the_terminal(
            numbers in proptest::collection::vec(any::<bool>(), 1..9),
            rows in proptest::collection::vec(
                proptest::collection::vec(".{0,200}", 9), 0..6),
        ) {
            let columns: Vec<Column> = numbers
                .iter()
                .map(|&n| if n { Column::number("head [GB/s]") } else { Column::words("words") })
                .collect();
            let mut table = Table::new(&columns);
            for row in rows {
                table.row(row.into_iter().take(columns.len()));
            }
            for line in table.to_string().lines() {
                prop_assert!(line.width() <= width(), "{} {line:?}", line.width());
            }
        }
    }
}
