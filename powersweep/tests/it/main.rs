//! The library as a program uses it: in a folder of its own.

mod sensitivity;
mod study;
