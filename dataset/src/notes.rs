//! Notes: sentences for people that a request says beside its answer.

use std::fmt;
use std::sync::Arc;

/// Where notes go: a function that gets each note as one text without a newline at its end.
#[derive(Clone)]
pub struct Notes(Arc<dyn Fn(&str) + Send + Sync>);

impl Notes {
    /// Notes go to this function, which may be called on any thread.
    pub fn to(say: impl Fn(&str) + Send + Sync + 'static) -> Notes {
        Notes(Arc::new(say))
    }

    /// Notes are dropped.
    pub fn none() -> Notes {
        Notes::to(|_| {})
    }

    /// Says one note.
    pub fn say(&self, text: &str) {
        (self.0)(text);
    }
}

impl Default for Notes {
    fn default() -> Notes {
        Notes::none()
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notes")
    }
}
