//! Least squares for the values that are not stated.

use nalgebra::{DMatrix, DVector};

use super::{Load, MeterStep, Origin, Stated, Value};
use crate::error::{Error, usage};

/// Least eigenvalue over the greatest of the scaled normal matrix: below it two values cannot be told apart.
const CONDITION_MIN: f64 = 1e-12;

/// The values in the order idle, busy, loss factor.
const NAMES: [&str; 3] = ["idle_w", "busy_w", "loss_factor"];

/// A solution: the coefficients of columns and their covariances, without the variance of the residuals.
struct Solution {
    coefficients: DVector<f64>,
    covariances: DMatrix<f64>,
}

/// Idle power, busy power and loss factor.
pub(super) fn values(loads: &[Load], steps: &[MeterStep], stated: Stated) -> Result<[Value; 3], Error> {
    let unknown = |value| Value { value, error: None, from: Origin::Unknown };
    let given = |stated: Option<f64>, otherwise: f64| match stated {
        Some(value) => Value { value, error: None, from: Origin::Stated },
        None => unknown(otherwise),
    };
    let mut values = [given(stated.idle_w, 0.0), given(stated.busy_w, 0.0), given(stated.loss_factor, 1.0)];
    let any = |of: fn(&Load) -> f64| loads.iter().any(|load| of(load) > 0.0);
    let mut open: Vec<usize> = Vec::new();
    let is_open = [
        stated.idle_w.is_none() && any(|load| load.idle_procs),
        stated.busy_w.is_none() && any(|load| load.model_procs),
        stated.loss_factor.is_none() && any(|load| load.measured_w),
    ];
    open.extend((0..3).filter(|at| is_open[*at]));
    // Both powers are stated: then the meter tells the losses without any measured job.
    if stated.loss_factor.is_none() && open.is_empty() {
        open.push(2);
    }
    while !open.is_empty() {
        let solution = solve(loads, steps, &values, &open)?;
        let least = (0..open.len()).min_by(|a, b| solution.coefficients[*a].total_cmp(&solution.coefficients[*b]));
        let Some(least) = least.filter(|at| solution.coefficients[*at] < 0.0) else {
            fill(&mut values, &open, &solution, loads, steps);
            return Ok(values);
        };
        let at = open.remove(least);
        values[at] = Value { value: if at == 2 { 1.0 } else { 0.0 }, error: None, from: Origin::Bound };
    }
    Ok(values)
}

/// Solves for the open values. With an open loss factor, the coefficients of powers are loss factor times power.
fn solve(loads: &[Load], steps: &[MeterStep], values: &[Value; 3], open: &[usize]) -> Result<Solution, Error> {
    let losses_open = open.contains(&2);
    let fixed = |at: usize| if open.contains(&at) { 0.0 } else { values[at].value };
    // Power inside of the losses that does not depend on an open power.
    let inner = |load: &Load| load.measured_w + fixed(0) * load.idle_procs + fixed(1) * load.model_procs;
    let column = |at: usize, load: &Load| match at {
        0 => load.idle_procs,
        1 => load.model_procs,
        _ => inner(load),
    };
    let rows = loads.len();
    // A step counts by its length.
    let weight = |row: usize| (steps[row].to_s - steps[row].from_s).sqrt();
    let loss_factor = values[2].value;
    let a = DMatrix::from_fn(rows, open.len(), |row, at| {
        let outside = if open[at] < 2 && !losses_open { loss_factor } else { 1.0 };
        weight(row) * outside * column(open[at], &loads[row])
    });
    let y = DVector::from_fn(rows, |row, _| {
        let known = if losses_open { 0.0 } else { loss_factor * inner(&loads[row]) };
        weight(row) * (steps[row].mean_w - known)
    });
    let scales: Vec<f64> = (0..open.len()).map(|at| a.column(at).norm()).collect();
    let scaled = DMatrix::from_fn(rows, open.len(), |row, at| a[(row, at)] / scales[at]);
    let eigenvalues = (scaled.transpose() * &scaled).symmetric_eigenvalues();
    let told_apart = rows >= open.len() && eigenvalues.min() > CONDITION_MIN * eigenvalues.max();
    let inverse = scaled.clone().qr().r().try_inverse().filter(|_| told_apart);
    let Some(inverse) = inverse else {
        let names: Vec<&str> = open.iter().map(|at| NAMES[*at]).collect();
        return Err(usage(format!(
            "the {rows} steps of the meter do not tell {} apart: state one of them, or take a longer series in which the load \
             changes",
            names.join(" and ")
        )));
    };
    let scaled_coefficients = &inverse * (scaled.qr().q().transpose() * y);
    let covariances = &inverse * inverse.transpose();
    Ok(Solution {
        coefficients: DVector::from_fn(open.len(), |at, _| scaled_coefficients[at] / scales[at]),
        covariances: DMatrix::from_fn(open.len(), open.len(), |a, b| covariances[(a, b)] / (scales[a] * scales[b])),
    })
}

/// Sets the open values and their standard errors.
fn fill(values: &mut [Value; 3], open: &[usize], solution: &Solution, loads: &[Load], steps: &[MeterStep]) {
    let losses = open.iter().position(|at| *at == 2);
    let loss_factor = losses.map_or(values[2].value, |at| solution.coefficients[at]);
    let divisor = if losses.is_some() { loss_factor } else { 1.0 };
    for (at, &value) in open.iter().enumerate() {
        let coefficient = solution.coefficients[at];
        values[value].value = if value < 2 { coefficient / divisor } else { coefficient };
        values[value].from = Origin::Fitted;
    }
    let [idle_w, busy_w, _] = values.map(|value| value.value);
    let residual = |(load, step): (&Load, &MeterStep)| {
        let inner_w = load.measured_w + idle_w * load.idle_procs + busy_w * load.model_procs;
        let difference_w = step.mean_w - loss_factor * inner_w;
        difference_w * difference_w * (step.to_s - step.from_s)
    };
    let degrees = loads.len().saturating_sub(open.len());
    if degrees == 0 {
        return;
    }
    let variance = loads.iter().zip(steps).map(residual).sum::<f64>() / degrees as f64;
    let covariance = |a: usize, b: usize| variance * solution.covariances[(a, b)];
    for (at, &value) in open.iter().enumerate() {
        let own = covariance(at, at);
        let squared = match losses {
            // The power is a quotient of two coefficients.
            Some(losses) if value < 2 => {
                let power_w = values[value].value;
                (own - 2.0 * power_w * covariance(at, losses) + power_w * power_w * covariance(losses, losses))
                    / (loss_factor * loss_factor)
            }
            _ => own,
        };
        values[value].error = Some(squared.max(0.0).sqrt());
    }
}
