//! From rows to tables: groups, ratios, pivots, texts.

mod calibration;
mod fronts;
mod long_texts;
mod tables;
