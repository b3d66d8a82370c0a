//! Systems whose rates are a machine's factor times a class's (Al-Daoud et al. 2011, section 6).
//!
//! In a structured system mu_ij = gamma_j mu_i and M_ij = beta_j mu_ij, where 1/beta_j is the machine's power
//! efficiency. For an almost structured system, [`Decomposition`] finds the nearest structured rates and [`betas`] the
//! machines' beta.
use nalgebra::DMatrix;

use crate::rng::{Philox, Purpose};

/// The factors of a structured system.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// mu_i: rate of each class on a machine of factor 1 (jobs a second).
    pub classes_per_s: Vec<f64>,
    /// gamma_j: speed of each machine.
    pub machines: Vec<f64>,
    /// beta_j: busy power over rate of each machine: the energy of a job (J).
    pub betas: Vec<f64>,
}

/// Rates mu and busy powers M of a system, row-major, class by class.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrices {
    /// mu_ij (jobs a second).
    pub rates_per_s: Vec<f64>,
    /// M_ij (W).
    pub busy_w: Vec<f64>,
}

impl Factors {
    /// An almost structured system: mu_ij = gamma_j mu_i (1 + a), M_ij = beta_j mu_ij (1 + b). All a and b are uniform on
    /// (-`spread`, `spread`), each kind from its own stream of the seed. The paper's spread is 0.5; with 0 the system is
    /// structured.
    pub fn almost(&self, spread: f64, seed: u64) -> Matrices {
        let mut rate_errors = Philox::stream(seed, Purpose::RateError);
        let mut power_errors = Philox::stream(seed, Purpose::PowerError);
        let (mut rates_per_s, mut busy_w) = (Vec::new(), Vec::new());
        for class_per_s in &self.classes_per_s {
            for (machine, beta) in self.machines.iter().zip(&self.betas) {
                let rate = machine * class_per_s * (1.0 + rate_errors.uniform_in(-spread, spread));
                rates_per_s.push(rate);
                busy_w.push(beta * rate * (1.0 + power_errors.uniform_in(-spread, spread)));
            }
        }
        Matrices { rates_per_s, busy_w }
    }
}

/// Singular value decomposition mu = U S V^T of a rate matrix, in its thin form.
#[derive(Debug, Clone, PartialEq)]
pub struct Decomposition {
    /// Singular values, greatest first. Their number is that of classes or of machines, whichever is less.
    pub singular: Vec<f64>,
    /// The column of U of each singular value (a number for each class).
    pub left: Vec<Vec<f64>>,
    /// The column of V of each singular value (a number for each machine).
    pub right: Vec<Vec<f64>>,
}

impl Decomposition {
    /// Decomposes a matrix of `classes` rows. Each pair of columns has the sign that makes the sum of the left one
    /// negative, as the paper prints the first.
    ///
    /// `None`: the matrix is empty, ragged or not finite.
    pub fn of(rates_per_s: &[f64], classes: usize) -> Option<Decomposition> {
        let machines = rates_per_s.len().checked_div(classes)?;
        if machines * classes != rates_per_s.len() || machines == 0 || !rates_per_s.iter().all(|v| v.is_finite()) {
            return None;
        }
        let svd = DMatrix::from_row_slice(classes, machines, rates_per_s).svd(true, true);
        let (u, v_t) = (svd.u?, svd.v_t?);
        let mut order: Vec<usize> = (0..svd.singular_values.len()).collect();
        order.sort_by(|a, b| svd.singular_values[*b].total_cmp(&svd.singular_values[*a]));
        let mut found = Decomposition { singular: Vec::new(), left: Vec::new(), right: Vec::new() };
        for k in order {
            let left: Vec<f64> = u.column(k).iter().copied().collect();
            let sign = if left.iter().sum::<f64>() > 0.0 { -1.0 } else { 1.0 };
            found.singular.push(svd.singular_values[k]);
            found.left.push(left.iter().map(|x| sign * x).collect());
            found.right.push(v_t.row(k).iter().map(|x| sign * x).collect());
        }
        Some(found)
    }

    /// The nearest matrix of rank 1 (Eckart & Young 1936), row-major: the nearest structured rates.
    pub fn rank_1(&self) -> Vec<f64> {
        let (left, right) = (&self.left[0], &self.right[0]);
        left.iter().flat_map(|u| right.iter().map(move |v| u * self.singular[0] * v)).collect()
    }
}

/// beta of each machine: the slope of the line through the origin that fits M_ij over the structured rates by least
/// squares. Both matrices are row-major, class by class.
pub fn betas(busy_w: &[f64], structured_per_s: &[f64], machines: usize) -> Vec<f64> {
    let slope = |machine: usize| {
        let pairs = busy_w.iter().zip(structured_per_s).skip(machine).step_by(machines);
        let (product, square) = pairs.fold((0.0, 0.0), |(p, s), (m, mu)| (p + m * mu, s + mu * mu));
        product / square
    };
    (0..machines).map(slope).collect()
}
