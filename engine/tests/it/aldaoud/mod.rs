//! Al-Daoud, Al-Azzoni & Down 2011: published values, and tests of the paper's policies.
mod changes;
mod conforming;
mod programs;
mod properties;
mod schedules;
mod structured;
mod systems;
mod tables;
