//! Values by key in memory, each made once, the least recently used given up when a budget of bytes is exceeded.
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module.
///
/// Two locks: one for the table, held for moments, and one for each key, held while its value is made. A second thread
/// that wants the same key waits for the first; others do not. If making fails or panics, the next one tries again.
pub(crate) struct Memo<K, V> {
    table: Mutex<Table<K, V>>,
    budget_bytes: usize,
}

struct Table<K, V> {
    slots: HashMap<K, Slot<V>>,
    /// Keys of the counted slots by their last use: the first is the next victim, however many there are.
    by_use: BTreeMap<u64, K>,
    used_bytes: usize,
    clock: u64,
}

struct Slot<V> {
    value: Arc<Mutex<Option<Arc<V>>>>,
    /// 0 while the value is being made; then it is not counted and not given up.
    bytes: usize,
    /// Unique: the clock advances with every use.
    last_use: u64,
}

impl<K: Hash + Eq + Clone, V> Memo<K, V> {
    pub(crate) fn new(budget_bytes: usize) -> Memo<K, V> {
        Memo {
            table: Mutex::new(Table { slots: HashMap::new(), by_use: BTreeMap::new(), used_bytes: 0, clock: 0 }),
            budget_bytes,
        }
    }

    /// The value of a key, made if it is not there. `size` gives its bytes.
    pub(crate) fn get_or_make<E>(
        &self,
        key: &K,
        size: impl FnOnce(&V) -> usize,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        let cell = self.cell(key);
        let mut value = unpoisoned(cell.lock());
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        match make() {
            Ok(made) => {
                let bytes = size(&made).max(1);
                let made = Arc::new(made);
                *value = Some(Arc::clone(&made));
                self.made(key, &cell, bytes);
                Ok(made)
            }
            Err(e) => {
                drop(value);
                self.forget_empty(key, &cell);
                Err(e)
            }
        }
    }

    /// Bytes of the values held.
    pub(crate) fn used_bytes(&self) -> usize {
        unpoisoned(self.table.lock()).used_bytes
    }

    fn cell(&self, key: &K) -> Arc<Mutex<Option<Arc<V>>>> {
        let mut table = unpoisoned(self.table.lock());
        let Table { slots, by_use, clock, .. } = &mut *table;
        *clock += 1;
        if let Some(slot) = slots.get_mut(key) {
            if let Some(key) = by_use.remove(&slot.last_use) {
                by_use.insert(*clock, key);
            }
            slot.last_use = *clock;
            return Arc::clone(&slot.value);
        }
        let slot = Slot { value: Arc::new(Mutex::new(None)), bytes: 0, last_use: *clock };
        let value = Arc::clone(&slot.value);
        slots.insert(key.clone(), slot);
        value
    }

    /// Counts a value and gives up others until the budget holds. A value beyond the whole budget is not kept.
    fn made(&self, key: &K, cell: &Arc<Mutex<Option<Arc<V>>>>, bytes: usize) {
        let mut table = unpoisoned(self.table.lock());
        let Table { slots, by_use, used_bytes, .. } = &mut *table;
        let Some(slot) = slots.get_mut(key).filter(|s| Arc::ptr_eq(&s.value, cell)) else { return };
        slot.bytes = bytes;
        *used_bytes += bytes;
        // The new value is the last to go, whatever was used while it was made.
        while *used_bytes > self.budget_bytes {
            let victim = by_use.pop_first().map_or_else(|| key.clone(), |(_, victim)| victim);
            let gone = slots.remove(&victim).expect("the victim is in the table");
            *used_bytes -= gone.bytes;
        }
        if let Some(slot) = slots.get(key) {
            by_use.insert(slot.last_use, key.clone());
        }
    }

    fn forget_empty(&self, key: &K, cell: &Arc<Mutex<Option<Arc<V>>>>) {
        let mut table = unpoisoned(self.table.lock());
        // Two owners are the table and this call: nobody waits for the value.
        let unused = |s: &Slot<V>| s.bytes == 0 && Arc::ptr_eq(&s.value, cell) && Arc::strong_count(cell) == 2;
        if table.slots.get(key).is_some_and(unused) {
            table.slots.remove(key);
        }
    }
}

/// A lock poisoned by a panic while making a value guards a slot without a value: it can be used.
fn unpoisoned<'a, T>(lock: Result<MutexGuard<'a, T>, PoisonError<MutexGuard<'a, T>>>) -> MutexGuard<'a, T> {
    lock.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn get(memo: &Memo<u32, u64>, key: u32, made: &mut Vec<u32>) -> u64 {
        let value = memo.get_or_make(
            &key,
            |_| 10,
            || {
                made.push(key);
                Ok::<_, Infallible>(u64::from(key) * 2)
            },
        );
        *value.expect("cannot fail")
    }

    #[test]
    fn keeps_the_recently_used_within_the_budget() {
        let memo = Memo::new(30);
        let mut made = Vec::new();
        for key in [1, 2, 3, 1, 4, 1, 2] {
            assert_eq!(get(&memo, key, &mut made), u64::from(key) * 2);
            assert!(memo.used_bytes() <= 30);
        }
        assert_eq!(made, [1, 2, 3, 4, 2], "2 was the oldest when 4 came; 1 stayed");
    }

    #[test]
    fn a_value_beyond_the_budget_is_returned_and_not_kept() {
        let memo = Memo::new(5);
        let mut made = Vec::new();
        assert_eq!(get(&memo, 1, &mut made), 2);
        assert_eq!(memo.used_bytes(), 0);
        assert_eq!(get(&memo, 1, &mut made), 2);
        assert_eq!(made, [1, 1]);
    }

    #[test]
    fn many_threads_make_a_value_once() {
        let memo = Memo::<u32, u64>::new(100);
        let (count, barrier) = (AtomicU32::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    let value = memo.get_or_make(
                        &7,
                        |_| 1,
                        || {
                            count.fetch_add(1, Ordering::SeqCst);
                            std::thread::yield_now();
                            Ok::<_, Infallible>(9)
                        },
                    );
                    assert_eq!(*value.expect("cannot fail"), 9);
                });
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_failure_or_panic_is_not_kept() {
        let memo = Memo::<u32, u64>::new(100);
        assert_eq!(memo.get_or_make(&1, |_| 1, || Err("no")), Err("no"));
        assert!(memo.table.lock().expect("not poisoned").slots.is_empty(), "nothing is left of a failure");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            memo.get_or_make(&1, |_| 1, || -> Result<u64, &str> { panic!("while making") })
        }));
        assert!(panicked.is_err());
        assert_eq!(memo.get_or_make(&1, |_| 1, || Ok::<_, &str>(5)).as_deref(), Ok(&5));
    }
}
