//! Experiments from their first submits on, also after they are deleted or renamed.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_coordinator::records::Removal;
use uuid::Uuid;

/// One experiment. See the module.
#[derive(Debug)]
pub(super) struct History {
    submitted_as: String,
    /// Its folder now.
    pub(super) name: String,
    /// Its first and its latest generation.
    generations: (u64, u64),
    /// Every task that has a durable row, or had one when the experiment was removed.
    pub(super) rows: BTreeSet<Uuid>,
    /// Set when its state is deleted; not set when it is renamed.
    pub(super) end: Option<Removal>,
}

/// The histories of all experiments.
#[derive(Debug, Default)]
pub(super) struct Histories {
    all: Vec<History>,
    present: BTreeMap<String, usize>,
}

impl Histories {
    /// The experiment that bears a name now.
    pub(super) fn present(&self, name: &str) -> Option<&History> {
        self.present.get(name).map(|&at| &self.all[at])
    }

    /// Its number, which never changes.
    pub(super) fn number_of(&self, name: &str) -> Option<usize> {
        self.present.get(name).copied()
    }

    pub(super) fn get(&self, number: usize) -> &History {
        &self.all[number]
    }

    pub(super) fn all(&self) -> &[History] {
        &self.all
    }

    /// The experiment that was submitted under a name and had this generation.
    pub(super) fn of(&self, name: &str, generation: u64) -> Option<usize> {
        let has = |history: &History| (history.generations.0..=history.generations.1).contains(&generation);
        self.all.iter().position(|history| history.submitted_as == name && has(history))
    }

    /// Whether that experiment still has its name.
    pub(super) fn is_present(&self, name: &str, generation: u64) -> bool {
        self.of(name, generation).is_some_and(|at| self.present.get(name) == Some(&at))
    }

    /// A record of an experiment became durable: a new one, an edit, or one under another name.
    pub(super) fn stored(&mut self, name: &str, generation: u64) {
        if let Some(&at) = self.present.get(name) {
            let latest = &mut self.all[at].generations.1;
            assert!(*latest <= generation, "a generation of {name} went back from {latest} to {generation}");
            *latest = generation;
            return;
        }
        let earlier = self.all.iter().filter(|history| history.submitted_as == name);
        let last = earlier.map(|history| history.generations.1).max().unwrap_or(0);
        assert!(last < generation, "{name} begins at generation {generation}, it had {last} before");
        self.present.insert(name.to_owned(), self.all.len());
        let (submitted_as, name, rows) = (name.to_owned(), name.to_owned(), BTreeSet::new());
        self.all.push(History { submitted_as, name, generations: (generation, generation), rows, end: None });
    }

    /// The experiment of a name is removed.
    pub(super) fn left(&mut self, name: &str, removal: &Removal) {
        let at = self.present.remove(name).expect("only a present experiment can be removed");
        match removal {
            Removal::Rename(to) => {
                to.clone_into(&mut self.all[at].name);
                assert_eq!(self.present.insert(to.clone(), at), None, "{to} exists already");
            }
            Removal::Forget | Removal::Erase => self.all[at].end = Some(removal.clone()),
        }
    }

    /// Rows of an experiment whose tasks are not wanted any more are given up.
    pub(super) fn forget(&mut self, name: &str, wanted: &BTreeSet<Uuid>) {
        self.all[self.present[name]].rows.retain(|task| wanted.contains(task));
    }

    /// Rows became durable that were made under a generation.
    pub(super) fn add_rows(&mut self, name: &str, generation: u64, tasks: &[Uuid]) {
        let at = self.present[name];
        let History { generations: (first, latest), rows, .. } = &mut self.all[at];
        assert!((*first..=*latest).contains(&generation), "rows of generation {generation} count for another {name}");
        for task in tasks {
            assert!(rows.insert(*task), "task {task} of {name} has a second row");
        }
    }
}
