//! Catches panics of tasks: each becomes a message with its place.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `task`. A panic gives an error with its message and place, without a report on standard error.
///
/// The first call wraps the process's panic hook; panics elsewhere still go to the hook that was there before.
pub(crate) fn catch<T>(task: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IN_TASK.get() {
                let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
                let text = info.payload_as_str().unwrap_or("a panic without a message");
                MESSAGE.set(Some(format!("{text}{place}")));
            } else {
                before(info);
            }
        }));
    });
    IN_TASK.set(true);
    // Shared state is behind locks that recover from poisoning; the task's own state is dropped.
    let result = panic::catch_unwind(AssertUnwindSafe(task));
    IN_TASK.set(false);
    result.map_err(|_| MESSAGE.take().unwrap_or_else(|| "a panic without a message".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_and_place_are_kept() {
        let message = catch(|| -> u32 { panic!("number {}", 7) }).expect_err("it panics");
        assert!(message.starts_with("number 7 at "), "{message}");
        assert!(message.contains("panics.rs:"), "{message}");
        assert_eq!(catch(|| 5), Ok(5));
    }
}
