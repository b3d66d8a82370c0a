//! A kind of design: its description, and points of the unit cube by number.

use std::fmt::Debug;

/// Greatest `count`.
pub(crate) const COUNT_MAX: u64 = 1 << 32;
/// Greatest number of ranges of a design.
pub(crate) const RANGES_MAX: usize = 1_000;
/// The seed of a kind that needs one and is given none.
pub(crate) const SEED_DEFAULT: u64 = 1;

/// A kind of design.
#[derive(Debug)]
pub struct Kind {
    /// Its name in a manifest.
    pub name: &'static str,
    /// The points, their source, and a use, in sentences.
    pub doc: &'static str,
    /// The things that `count` counts, in words.
    pub count: &'static str,
    /// The effect of a greater `count` on the points, in words.
    pub extension: &'static str,
    /// The keys of its table besides `kind`.
    pub keys: &'static [&'static str],
    /// Greatest number of ranges.
    pub(crate) ranges_max: usize,
    /// The number of points; `None` if it exceeds 64 bits.
    pub(super) points: fn(&Settings) -> Option<u64>,
    pub(super) build: fn(&Settings) -> Box<dyn Generator>,
}

/// The settings of a design.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settings {
    pub(crate) count: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) levels: u64,
    pub(crate) second_order: bool,
    /// Number of ranges.
    pub(crate) ranges: usize,
}

/// Points of the unit cube by number.
pub(crate) trait Generator: Debug + Send + Sync {
    /// A coordinate, from 0 to 1.
    fn coordinate(&self, point: u64, dimension: usize) -> f64;

    /// The only point that may have this coordinate; `None` of a kind whose points may share coordinates.
    fn inverse(&self, _coordinate: f64, _dimension: usize) -> Option<u64> {
        None
    }

    /// The least distance between coordinates of two points; `None` of a kind whose points may share coordinates.
    fn resolution(&self) -> Option<f64> {
        None
    }
}
