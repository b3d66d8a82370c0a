//! From rows to tables: groups, ratios, pivots, texts.

mod tables;
