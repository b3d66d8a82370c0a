//! Integration tests of the manifest and the lazy sweep, through the public interface only.

mod builtin;
