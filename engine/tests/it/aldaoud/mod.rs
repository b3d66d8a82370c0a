//! Al-Daoud, Al-Azzoni & Down 2011: what the paper prints.
mod changes;
mod conforming;
mod programs;
mod properties;
mod schedules;
mod structured;
mod systems;
mod tables;
