//! Answers that need many rows, and so take long.
//!
//! A page shows the last answer and does not wait for the next one. The next one is asked for after a time that is a
//! multiple of what the last one took: so open pages, of whatever number, take a bounded share of the processor. While no
//! task runs, rows change only together with their number, and each change is asked for at once.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Least time from an answer to the next question.
const REST_LEAST: Duration = Duration::from_secs(2);
/// Time from an answer to the next question, as a multiple of the answer's duration: a question keeps a two-hundredth of
/// one core busy.
const REST_FACTOR: u32 = 200;
/// Greatest time from an answer to the next question.
const REST_MOST: Duration = Duration::from_secs(300);
/// A page without an answer to the present state waits for this time: the answer is often there by then.
const PATIENCE: Duration = Duration::from_millis(50);
/// Questions whose answers are kept.
const KEPT_MAX: usize = 32;

/// What is known of a question.
#[derive(Debug)]
pub(crate) struct Known<V> {
    /// The last answer.
    pub(crate) answer: Option<Arc<V>>,
    /// Why the last question got none.
    pub(crate) trouble: Option<String>,
}

impl<V> Clone for Known<V> {
    fn clone(&self) -> Known<V> {
        Known { answer: self.answer.clone(), trouble: self.trouble.clone() }
    }
}

struct Entry<V> {
    known: watch::Sender<Known<V>>,
    /// When the next question may begin; `None` while one is under way.
    due: Mutex<Option<Instant>>,
    /// The state of the rows at the last question.
    state: Mutex<State>,
    /// When a page last asked.
    asked: Mutex<Instant>,
}

/// Rows that change only together with this value; `None` while tasks run.
pub(crate) type State = Option<(u64, u64)>;

/// The last answers to questions about many rows, by question.
pub(crate) struct Slow<K, V> {
    kept: Mutex<HashMap<K, Arc<Entry<V>>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Hash + Eq + Clone, V: Send + Sync + 'static> Slow<K, V> {
    pub(crate) fn new() -> Slow<K, V> {
        Slow { kept: Mutex::default() }
    }

    /// What is known. `ask` gets the last answer, and runs in the background when the next question is due.
    pub(crate) async fn look<F>(&self, key: &K, state: State, ask: impl FnOnce(Option<Arc<V>>) -> F) -> Known<V>
    where
        F: Future<Output = Result<V, String>> + Send + 'static,
    {
        let entry = self.entry(key);
        let mut changes = entry.known.subscribe();
        let last = changes.borrow_and_update().clone();
        let has_changed = state.is_some() && *locked(&entry.state) != state;
        let is_due = locked(&entry.due).take_if(|due| has_changed || *due <= Instant::now()).is_some();
        if is_due {
            *locked(&entry.state) = state;
            tokio::spawn(Arc::clone(&entry).answer(ask(last.answer.clone())));
        }
        if has_changed || last.answer.is_none() && last.trouble.is_none() {
            // A time-out is no error: the page shows the last answer, or says that rows are being read.
            let _ = tokio::time::timeout(PATIENCE, changes.changed()).await;
        }
        changes.borrow().clone()
    }

    fn entry(&self, key: &K) -> Arc<Entry<V>> {
        let mut kept = locked(&self.kept);
        if kept.len() >= KEPT_MAX && !kept.contains_key(key) {
            let oldest = kept.iter().min_by_key(|(_, entry)| *locked(&entry.asked)).map(|(key, _)| key.clone());
            oldest.map(|oldest| kept.remove(&oldest));
        }
        let new = || {
            let known = watch::Sender::new(Known { answer: None, trouble: None });
            let now = Instant::now();
            Arc::new(Entry { known, due: Mutex::new(Some(now)), state: Mutex::new(None), asked: Mutex::new(now) })
        };
        let entry = kept.entry(key.clone()).or_insert_with(new);
        *locked(&entry.asked) = Instant::now();
        Arc::clone(entry)
    }
}

impl<V> Entry<V> {
    async fn answer(self: Arc<Self>, asking: impl Future<Output = Result<V, String>>) {
        let begun = Instant::now();
        let answer = asking.await;
        let rest = (begun.elapsed() * REST_FACTOR).clamp(REST_LEAST, REST_MOST);
        self.known.send_modify(|known| match answer {
            Ok(answer) => *known = Known { answer: Some(Arc::new(answer)), trouble: None },
            // The last answer is still of use.
            Err(reason) => known.trouble = Some(reason),
        });
        *locked(&self.due) = Some(Instant::now() + rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pages_share_a_question_and_do_not_wait_for_a_slow_one() {
        let slow = Slow::<&str, u32>::new();
        let wait = |ms: u64| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(7)
        };
        let quick = slow.look(&"quick", None, |_| wait(20)).await;
        assert_eq!(quick.answer.as_deref(), Some(&7), "the first answer comes within the patience");
        let first = slow.look(&"slow", None, |_| wait(5_000)).await;
        assert!(first.answer.is_none() && first.trouble.is_none());
        let second = slow.look(&"slow", None, |_| async { Err("asked twice".to_owned()) }).await;
        assert!(second.answer.is_none() && second.trouble.is_none());
        tokio::time::sleep(Duration::from_secs(6)).await;
        let third = slow.look(&"slow", None, |_| async { Err("asked too early".to_owned()) }).await;
        assert_eq!((third.answer.as_deref(), third.trouble), (Some(&7), None));
    }

    #[tokio::test(start_paused = true)]
    async fn rows_are_read_again_at_once_when_no_task_runs_any_more() {
        let slow = Slow::<(), u32>::new();
        let mut read = 0;
        for (state, expected) in [(None, 1), (None, 1), (Some((5, 1)), 2), (Some((5, 1)), 2), (Some((6, 1)), 3)] {
            let mut asked = false;
            slow.look(&(), state, |_| {
                asked = true;
                std::future::ready(Ok(7))
            })
            .await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            read += u32::from(asked);
            assert_eq!(read, expected, "{state:?}");
        }
    }

    #[tokio::test]
    async fn answers_are_kept_for_the_questions_of_open_pages() {
        let slow = Slow::<usize, usize>::new();
        for key in 0..2 * KEPT_MAX {
            slow.look(&key, None, |_| async move { Ok(key) }).await;
            assert_eq!(slow.look(&0, None, |_| async { Ok(0) }).await.answer.as_deref(), Some(&0));
        }
        assert!(locked(&slow.kept).len() <= KEPT_MAX);
    }
}
