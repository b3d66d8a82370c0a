//! From rows to tables: groups, ratios, pivots, texts.

mod fronts;
mod tables;
