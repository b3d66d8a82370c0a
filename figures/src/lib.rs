//! Figures for papers: Vega-Lite specs from tables, and their drawing in process.
//!
//! The caller aggregates rows into a [`Frame`](powersweep_dataset::Frame) and chooses a kind of [`kinds`], which gives a [`Figure`]: a Vega-Lite spec
//! with its rows inline. An [`Engine`] draws it as SVG, by Vega in a JavaScript interpreter, and [`formats`] turns the
//! drawing into PNG, PDF or HTML. Equal frames give equal bytes.
//!
//! The crate knows no files, no network and no clock: the caller of an [`Engine`] decides when a drawing is stopped.
//!
//! ```
//! use powersweep_figures::kinds::{Axes, bars};
//! use powersweep_dataset::{Column, Frame};
//! use powersweep_figures::{Engine, Look, Width, formats};
//!
//! let table = Frame::of([
//!     Column::texts("policy", "policy", ["easy", "fcfs"]),
//!     Column::numbers("wait_s_mean", "mean wait", "s", [120.0, 900.0]),
//! ]);
//! let mut figure = bars(&table, &Axes::of("policy", "wait_s_mean"), &Look::of(Width::Column))?;
//! let engine = Engine::start(|| false)?;
//! let drawn = figure.draw(&engine)?;
//! assert!(drawn.svg.contains("mean wait (s)"));
//! assert!(formats::pdf(&drawn.svg, figure.origin())?.starts_with(b"%PDF"));
//! # Ok::<(), powersweep_figures::Error>(())
//! ```

mod engine;
mod figure;
mod font;
pub mod formats;
pub mod kinds;
mod labels;
mod look;
mod rows;
mod thin;

pub use powersweep_dataset::Error;

pub use engine::{Drawn, Engine};
pub use figure::Figure;
pub use font::{style_sheet as font_style_sheet, width as text_width};
pub use look::{COLOURS, Look, Width};
pub use rows::not_numbers;

/// A result of a figure. Trying again after an error does not help, except after a drawing that its caller has stopped.
pub type Result<T> = std::result::Result<T, Error>;
