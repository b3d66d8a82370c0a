//! The grid of an experiment's tasks: one cell for each interval of indices.
//!
//! Some readers cannot tell the colours apart, so each state has a height of its own, too. The cells of a state are one
//! path of short strokes, which takes a fifth of the bytes of separate elements.

use std::fmt::Write;

use maud::{Markup, html};
use powersweep_proto::v1::TaskBins;

/// Cells of a row.
const COLUMNS: usize = 80;
/// Cells of the whole grid.
pub(crate) const CELLS: u32 = 2_000;

/// What the tasks of a cell are. A cell with several kinds of tasks has the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Failed,
    Running,
    Done,
    Some,
    Pending,
}

/// Every state with its class in the style sheet and its words.
const CELLS_OF: [(Cell, &str, &str); 5] = [
    (Cell::Failed, "failed", "has a failed task"),
    (Cell::Running, "running", "leased to a worker"),
    (Cell::Done, "done", "all done"),
    (Cell::Some, "some", "some done"),
    (Cell::Pending, "pending", "not started"),
];

fn cell(bins: &TaskBins, at: usize) -> Cell {
    let of = |counts: &[u64]| counts.get(at).copied().unwrap_or(0);
    let all = bins.tasks.get(at).copied().unwrap_or(bins.width);
    match (of(&bins.failed), of(&bins.leased), of(&bins.done)) {
        (1.., _, _) => Cell::Failed,
        (_, _, done) if done >= all => Cell::Done,
        (_, 1.., _) => Cell::Running,
        (_, _, 1..) => Cell::Some,
        _ => Cell::Pending,
    }
}

/// The grid with its legend.
pub(crate) fn grid(bins: &TaskBins) -> Markup {
    let cells: Vec<Cell> = (0..bins.done.len()).map(|at| cell(bins, at)).collect();
    let columns = cells.len().clamp(1, COLUMNS);
    let height = cells.len().div_ceil(columns).max(1);
    let most = bins.tasks.iter().max().copied().unwrap_or(bins.width);
    let each = match bins.tasks.iter().rev().skip(1).all(|tasks| *tasks == most) {
        true if most == 1 => "one task".to_owned(),
        true => format!("{most} tasks"),
        false => format!("up to {most} tasks"),
    };
    let counts = CELLS_OF.map(|(cell, class, words)| (class, words, cells.iter().filter(|of| **of == cell).count()));
    let spoken = counts.iter().map(|(_, words, count)| format!("{count} {words}")).collect::<Vec<_>>().join(", ");
    html! {
        figure.grid {
            svg viewBox=(format!("0 0 {columns} {height}")) role="img" aria-label=(format!("Cells of {each}: {spoken}")) {
                @for (cell, class, _) in CELLS_OF {
                    path class=(class) d=(strokes(&cells, cell, columns)) {}
                }
            }
            figcaption {
                "Each cell is " (each) ", in the order of their indices. "
                @for (class, words, count) in counts {
                    span.key {
                        svg viewBox="0 0 1 1" aria-hidden="true" { path class=(class) d="M0 .5h.9" {} }
                        (words) ": " (count)
                    } " "
                }
            }
        }
    }
}

/// A stroke for each run of neighbouring cells of a state.
fn strokes(cells: &[Cell], wanted: Cell, columns: usize) -> String {
    let mut path = String::new();
    for (row, line) in cells.chunks(columns).enumerate() {
        let mut column = 0;
        for run in line.chunk_by(|one, other| one == other) {
            if run[0] == wanted {
                let _ = write!(path, "M{column} {row}.5h{}", run.len());
            }
            column += run.len();
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_the_worst_of_its_tasks() {
        let bins = TaskBins {
            width: 10,
            done: vec![10, 9, 3, 3, 0, 4],
            failed: vec![0, 1, 0, 0, 0, 0],
            leased: vec![0, 0, 2, 0, 0, 0],
            tasks: vec![10, 10, 10, 10, 10, 4],
        };
        let cells: Vec<Cell> = (0..6).map(|at| cell(&bins, at)).collect();
        assert_eq!(cells, [Cell::Done, Cell::Failed, Cell::Running, Cell::Some, Cell::Pending, Cell::Done]);
        assert_eq!(strokes(&cells, Cell::Done, 3), "M0 0.5h1M2 1.5h1");
    }

    #[test]
    fn a_grid_is_small_whatever_its_cells_are() {
        let mixed = |period: u64| (0..2_000).map(|at| u64::from(at % period == 0)).collect();
        let tasks = vec![500; 2_000];
        let bins = TaskBins { width: 500, done: mixed(1), failed: mixed(3), leased: mixed(2), tasks };
        let grid = grid(&bins).into_string();
        assert!(grid.len() < 40_000, "{} bytes", grid.len());
        assert!(grid.contains("Each cell is 500 tasks"));
        let uneven = TaskBins { width: 4, done: vec![1, 4], failed: vec![0, 0], leased: vec![0, 0], tasks: vec![1, 4] };
        let grid = super::grid(&uneven).into_string();
        assert!(grid.contains("Each cell is up to 4 tasks") && grid.contains("all done: 2"), "{grid}");
    }
}
