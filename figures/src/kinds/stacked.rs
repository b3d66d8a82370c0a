//! Step functions that are stacked on each other.

use std::collections::BTreeMap;

use powersweep_dataset::Frame;
use serde_json::json;

use super::axes::Axes;
use super::code::Code;
use super::scales::{self, Scale, extent};
use crate::Result;
use crate::figure::{Content, Figure, escaped};
use crate::look::Look;
use crate::rows::{empty, numeric};

/// Names of the columns that the figure adds: the lower and the upper edge of an area.
const EDGES: [&str; 2] = ["stacked_from", "stacked_to"];

/// Areas of `y` over the time `x`, one for each value of `colour`, stacked in the order of these values. A row is a value
/// that holds from its instant on; before its first instant it is 0.
pub fn stacked(table: &Frame, axes: &Axes, look: &Look) -> Result<Figure> {
    let rows = axes.rows(table, &[&axes.x, &axes.y], &[])?;
    let (x, y) = (numeric(&rows, &axes.x)?, numeric(&rows, &axes.y)?);
    let none = || empty("there is no instant");
    let (low, high) = extent(x.finite()).map(scales::from_zero).ok_or_else(none)?;
    let high = if high > low { high } else { low + 1.0 };
    // The row whose cells a point has, its instant, its value, and its edges.
    let mut points: Vec<(usize, [f64; 4])> = Vec::new();
    for (_, in_panel) in rows.groups(axes.facet.as_deref())? {
        let mut instants: Vec<f64> = in_panel.iter().filter_map(|row| x.number(*row)).collect();
        instants.sort_by(f64::total_cmp);
        instants.dedup();
        let mut edges = vec![0.0; instants.len()];
        for (_, of_colour) in rows.picked(&in_panel).groups(axes.colour.as_deref())? {
            let of_colour: Vec<usize> = of_colour.into_iter().map(|row| in_panel[row]).collect();
            let Some(first) = of_colour.first() else { continue };
            let known = of_colour.iter().filter_map(|row| Some((x.number(*row)?.to_bits(), y.number(*row)?)));
            let known: BTreeMap<u64, f64> = known.collect();
            let mut value = 0.0;
            for (instant, edge) in instants.iter().zip(&mut edges) {
                value = known.get(&instant.to_bits()).copied().unwrap_or(value);
                points.push((*first, [*instant, value, *edge, *edge + value]));
                *edge += value;
            }
        }
    }
    let taken: Vec<usize> = points.iter().map(|(row, _)| *row).collect();
    let mut drawn = rows.picked(&taken);
    let numbers = |at: usize| points.iter().map(move |(_, numbers)| numbers[at]);
    drawn.push(x.with_numbers(numbers(0)));
    drawn.push(y.with_numbers(numbers(1)));
    for (name, at) in EDGES.into_iter().zip([2, 3]) {
        drawn.push(y.with_numbers(numbers(at)).named(name));
    }
    let names: Vec<&str> = [axes.x.as_str(), &axes.y].into_iter().chain(EDGES).chain(axes.names()).collect();
    drawn.keep(&names);
    let code = Code::of(&drawn, axes, look)?;
    let time = Scale { domain: Some((low, high)), ..Scale::default() };
    let height = Scale { zero: true, ..Scale::default() };
    let mut area = json!({
        "x": scales::number(&drawn.column(&axes.x)?, time),
        "y": scales::number(&drawn.column(EDGES[0])?, height),
        "y2": { "field": escaped(EDGES[1]) },
    });
    area["order"] = json!(null);
    let mut mark = json!({ "type": "area", "interpolate": "step-after", "opacity": 1, "color": look.colour(0) });
    if let Some(code) = &code {
        code.ordered(&mut area);
        mark.as_object_mut().expect("an object").remove("color");
    }
    let layers = vec![json!({ "mark": mark, "encoding": area })];
    Content { free: axes.free(), ..Content::new(drawn, layers, axes.facet.as_deref()) }.figure(look)
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;
    use crate::Width;

    #[test]
    fn values_hold_until_the_next_one_and_lie_on_each_other() {
        let table = Frame::of([
            Column::numbers("x", "time", "s", [0.0, 20.0, 10.0]),
            Column::numbers("nodes", "nodes", "", [5.0, 2.0, 3.0]),
            Column::texts("ghz", "frequency", ["1.2", "1.2", "3"]),
        ]);
        let axes = Axes { colour: Some("ghz".to_owned()), ..Axes::of("x", "nodes") };
        let figure = stacked(&table, &axes, &Look::of(Width::Column)).expect("a figure");
        let rows = &figure.spec()["datasets"]["rows"];
        let edges: Vec<(f64, f64, f64)> = rows
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| ["x", "stacked_from", "stacked_to"].map(|name| row[name].as_f64().expect("a number")))
            .map(|[x, from, to]| (x, from, to))
            .collect();
        let expected =
            [(0.0, 0.0, 5.0), (10.0, 0.0, 5.0), (20.0, 0.0, 2.0), (0.0, 5.0, 5.0), (10.0, 5.0, 8.0), (20.0, 2.0, 5.0)];
        assert_eq!(edges, expected);
    }
}
