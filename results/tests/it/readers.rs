//! The analytics tools that users have read what we write.
