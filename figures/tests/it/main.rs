//! Figures as a reader sees them, and as files.
#![allow(unreachable_pub)]

mod files;
mod gallery;
mod limits;
mod looks;
mod samples;
mod vendored;
