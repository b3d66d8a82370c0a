//! Figures of indices: bars of shares of variance, and points of elementary effects.

use powersweep_dataset::titles::title;
use powersweep_dataset::{Column, Error, Frame, failure};
use powersweep_figures::Figure;
use powersweep_figures::kinds::{self, Axes};

use super::read::Request;
use crate::sensitivity::{self, Points, SensitivityOptions};

/// The column of the parameters.
const PARAMETER: &str = "parameter";
/// The column of the other parameter of a pair.
const WITH: &str = "with";

impl Request<'_> {
    /// How much each parameter moves a metric.
    pub(super) async fn sensitivity(&self, of: &str) -> Result<Figure, Error> {
        let (of_metrics, only) = (vec![of.to_owned()], self.options.only.clone());
        let options = SensitivityOptions { of: of_metrics, only, ..SensitivityOptions::default() };
        let found = sensitivity::of(self.datasets, self.experiment, &options).await?;
        let Some((_, frame)) = found.of_metrics().into_iter().next() else {
            return Err(failure!(Usage, "there is nothing to draw. {}", found.said()));
        };
        let is_morris = matches!(found.points, Points::Trajectories(_));
        let names: &[&str] = if is_morris { &["mu_star", "sigma"] } else { &["S1", "ST"] };
        let values = names.iter().map(|name| frame.column(name)).collect::<Result<Vec<_>, _>>()?;
        // Pairs of parameters have other indices.
        let has_index = |row: usize| values.iter().all(|column| column.number(row).is_some());
        let is_pair = |row: usize| frame.column(WITH).is_ok_and(|with| !with.cell(row).is_null());
        let drawn = frame.kept(has_index);
        let bounded = frame.kept(|row| !has_index(row) && !is_pair(row)).rows();
        if drawn.rows() == 0 {
            let said = found.said();
            return Err(failure!(Usage, "no index of {of} is known, so that there is nothing to draw. {said}"));
        }
        let facet = self.options.facet.clone();
        check_panels(&drawn, facet.as_deref())?;
        let axes = Axes { facet, free_x: self.options.free_x, free_y: self.options.free_y, ..Axes::of("", "") };
        let metric = title(of).0;
        let mut figure = match is_morris {
            true => {
                let (rows, axes) = effects(&drawn, &metric, axes)?;
                kinds::points(&rows, &axes, self.look)?
            }
            false => {
                let (rows, axes) = shares(&drawn, &metric, axes)?;
                kinds::bars(&rows, &axes, self.look)?
            }
        };
        if bounded > 0 {
            figure.add_note(format!("{bounded} bounded indices are not drawn. {}", found.said()));
        }
        Ok(figure)
    }
}

/// Each panel has one index of each parameter.
fn check_panels(drawn: &Frame, facet: Option<&str>) -> Result<(), Error> {
    let keys: Vec<Column> = drawn.columns().take(drawn.keys()).collect();
    let others = keys.iter().filter(|key| ![PARAMETER, WITH].contains(&key.name()) && Some(key.name()) != facet);
    let several: Vec<String> = others.filter(|key| key.levels().len() > 1).map(|key| key.name().to_owned()).collect();
    match several.is_empty() {
        true => Ok(()),
        false => Err(failure!(
            Usage,
            "the indices differ in {}: choose one value by a condition, or give each one a panel by facet",
            several.join(", ")
        )),
    }
}

/// A point for each parameter: the spread of its elementary effects over their mean.
fn effects(drawn: &Frame, metric: &str, axes: Axes) -> Result<(Frame, Axes), Error> {
    let mut columns = vec![drawn.column(PARAMETER)?.titled("", "")];
    for (name, symbol) in [("mu_star", "µ*"), ("sigma", "σ")] {
        let column = drawn.column(name)?;
        let unit = column.unit().to_owned();
        columns.push(column.titled(&format!("{symbol} of {metric}"), &unit));
        for end in ["low", "high"] {
            columns.push(drawn.column(&format!("{name}_{end}"))?.titled("", ""));
        }
    }
    columns.extend(axes.facet.as_deref().map(|name| drawn.column(name)).transpose()?);
    let ends = |name: &str| Some((format!("{name}_low"), format!("{name}_high")));
    let (interval, interval_x, colour) = (ends("sigma"), ends("mu_star"), Some(PARAMETER.to_owned()));
    let (x, y) = ("mu_star".to_owned(), "sigma".to_owned());
    Ok((Frame::of(columns), Axes { x, y, colour, interval, interval_x, diagonal: true, ..axes }))
}

/// Two bars for each parameter: its share of the variance alone, and with others.
fn shares(drawn: &Frame, metric: &str, axes: Axes) -> Result<(Frame, Axes), Error> {
    let twice = drawn.picked(&(0..drawn.rows()).flat_map(|row| [row, row]).collect::<Vec<_>>());
    let rows = 0..twice.rows();
    let value = |suffix: &str| -> Result<Vec<Option<f64>>, Error> {
        let [first, total] = ["S1", "ST"].map(|name| twice.column(&format!("{name}{suffix}")));
        let (first, total) = (first?, total?);
        Ok(rows.clone().map(|row| if row % 2 == 0 { first.number(row) } else { total.number(row) }).collect())
    };
    let index = rows.clone().map(|row| if row % 2 == 0 { "alone (S1)" } else { "with others (ST)" });
    let mut columns = vec![
        twice.column(PARAMETER)?.titled("", ""),
        Column::texts("index", "", index),
        Column::numbers("share", &format!("share of the variance of {metric}"), "", value("")?),
        Column::numbers("low", "", "", value("_low")?),
        Column::numbers("high", "", "", value("_high")?),
    ];
    columns.extend(axes.facet.as_deref().map(|name| twice.column(name)).transpose()?);
    let (x, y, colour) = (PARAMETER.to_owned(), "share".to_owned(), Some("index".to_owned()));
    let interval = Some(("low".to_owned(), "high".to_owned()));
    Ok((Frame::of(columns), Axes { x, y, colour, interval, ..axes }))
}
