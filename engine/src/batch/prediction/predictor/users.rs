//! One state for each user.

/// States by the number of the user, made at the user's first job.
#[derive(Debug, Clone, Default)]
pub(super) struct ByUser<T> {
    states: Vec<T>,
}

impl<T: Default> ByUser<T> {
    pub(super) fn of(&mut self, user: u32) -> &mut T {
        let user = user as usize;
        if user >= self.states.len() {
            self.states.resize_with(user + 1, T::default);
        }
        &mut self.states[user]
    }

    pub(super) fn all(&self) -> &[T] {
        &self.states
    }
}
