//! Points as rows and columns.

use crate::report::chart::{Cell, Panel};

/// A matrix of the values in the order given; cells that nothing fills are empty.
pub fn panel<R: PartialEq, C: PartialEq>(
    name: String,
    (rows, row_name): (&[R], impl Fn(&R) -> String),
    (columns, column_name): (&[C], impl Fn(&C) -> String),
    filled: Vec<(R, C, Cell)>,
) -> Panel {
    let mut cells: Vec<Vec<Option<Cell>>> = vec![vec![None; columns.len()]; rows.len()];
    for (row, column, cell) in filled {
        let at = rows.iter().position(|r| *r == row);
        let across = columns.iter().position(|c| *c == column);
        if let (Some(at), Some(across)) = (at, across)
            && let Some(place) = cells.get_mut(at).and_then(|row| row.get_mut(across))
        {
            *place = Some(cell);
        }
    }
    Panel {
        name,
        rows: rows.iter().map(row_name).collect(),
        columns: columns.iter().map(column_name).collect(),
        cells,
    }
}

/// Frames the best cell of each column.
pub fn frame_best_of_columns(panel: &mut Panel) {
    for across in 0..panel.columns.len() {
        let column = panel
            .cells
            .iter_mut()
            .filter_map(|row| row.get_mut(across)?.as_mut());
        let best = column
            .filter(|cell| cell.value.is_some())
            .max_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)));
        if let Some(cell) = best {
            cell.best = true;
        }
    }
}
