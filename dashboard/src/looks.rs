//! What pages know of the farm. All pages share it, so that their number costs the coordinator nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use powersweep_dataset::activity::Activity;
use powersweep_dataset::survey::{Choice, Survey};
use powersweep_proto::v1;
use tokio::sync::Mutex;

use crate::Farm;
use crate::pages::{CompareQuery, Difference, Live, Page, RowsPage, RowsQuery, has_ended};
use crate::slow::{Known, Slow, State};

/// A look that is younger is shown again: pages ask once a second, not always at the same moment.
const FRESH: Duration = Duration::from_millis(900);
/// Looks that are kept; beyond that, old ones are dropped.
const LOOKS_MAX: usize = 64;
/// A look of this age is shown in no page.
const OLD: Duration = Duration::from_secs(30);

/// What a page asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    /// Empty for all.
    pub(crate) experiment: String,
    pub(crate) failures: u32,
    pub(crate) bins: u32,
}

/// The state of the farm when it was last seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// `None` if the coordinator has never answered.
    pub(crate) status: Option<Arc<v1::StatusReply>>,
    /// Set while the coordinator does not answer.
    pub(crate) away: Option<Away>,
}

/// A coordinator that does not answer.
#[derive(Debug, Clone)]
pub(crate) struct Away {
    pub(crate) since: Instant,
    pub(crate) reason: String,
}

#[derive(Default)]
struct Look {
    at: Option<Instant>,
    seen: Seen,
}

/// A page as it was last rendered.
type Rendered = Option<(Instant, Arc<Live>)>;

/// The last answers of the coordinator, for all pages.
pub(crate) struct Looks {
    pub(crate) farm: Arc<dyn Farm>,
    kept: std::sync::Mutex<HashMap<Ask, Arc<Mutex<Look>>>>,
    rendered: std::sync::Mutex<HashMap<Page, Arc<Mutex<Rendered>>>>,
    surveys: Slow<(String, Choice), Survey>,
    rows: Slow<RowsQuery, RowsPage>,
    activities: Slow<String, Activity>,
    comparisons: Slow<CompareQuery, Difference>,
    manifests: Slow<String, Option<String>>,
}

impl Looks {
    pub(crate) fn new(farm: Arc<dyn Farm>) -> Looks {
        let (kept, rendered) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let (surveys, rows, activities) = (Slow::new(), Slow::new(), Slow::new());
        let (comparisons, manifests) = (Slow::new(), Slow::new());
        Looks { farm, kept, rendered, surveys, rows, activities, comparisons, manifests }
    }

    /// The changing part of a page. All browsers that have the page open share it.
    pub(crate) async fn live(&self, page: &Page) -> Arc<Live> {
        let mut rendered = self.rendered_entry(page).lock_owned().await;
        if let Some((at, live)) = &*rendered
            && at.elapsed() < FRESH
        {
            return Arc::clone(live);
        }
        let live = Arc::new(page.render(self).await);
        *rendered = Some((Instant::now(), Arc::clone(&live)));
        live
    }

    /// What the rows of an experiment show together.
    pub(crate) async fn survey(&self, experiment: &v1::ExperimentStatus, choice: &Choice) -> Known<Survey> {
        let (state, key) = (state(experiment), (experiment.name.clone(), choice.clone()));
        let farm = Arc::clone(&self.farm);
        let (experiment, choice) = key.clone();
        self.surveys
            .look(&key, state, |last| async move { farm.survey(&experiment, &choice, last.as_deref()).await })
            .await
    }

    /// Some rows of an experiment.
    pub(crate) async fn rows(&self, experiment: &v1::ExperimentStatus, ask: &RowsQuery) -> Known<RowsPage> {
        let (farm, asked) = (Arc::clone(&self.farm), ask.clone());
        self.rows.look(ask, state(experiment), |_| async move { farm.rows(&asked).await }).await
    }

    /// When the tasks of an experiment ran.
    pub(crate) async fn activity(&self, experiment: &v1::ExperimentStatus) -> Known<Activity> {
        let (farm, name) = (Arc::clone(&self.farm), experiment.name.clone());
        let ask = |last: Option<Arc<Activity>>| async move { farm.activity(&name, last.as_deref()).await };
        self.activities.look(&experiment.name, state(experiment), ask).await
    }

    /// The difference of two sets of rows.
    pub(crate) async fn compare(&self, experiment: &v1::ExperimentStatus, ask: &CompareQuery) -> Known<Difference> {
        let (farm, asked) = (Arc::clone(&self.farm), ask.clone());
        self.comparisons.look(ask, state(experiment), |_| async move { farm.compare(&asked).await }).await
    }

    /// The manifest of the published rows of an experiment.
    pub(crate) async fn manifest(&self, experiment: &v1::ExperimentStatus) -> Known<Option<String>> {
        let (farm, name) = (Arc::clone(&self.farm), experiment.name.clone());
        let ask = |_| async move { farm.manifest(&name).await };
        self.manifests.look(&experiment.name, state(experiment), ask).await
    }

    /// The present state. Callers that ask for the same at the same time share one request.
    pub(crate) async fn look(&self, ask: &Ask) -> Seen {
        let look = self.entry(ask);
        let mut look = look.lock().await;
        if look.at.is_none_or(|at| at.elapsed() >= FRESH) {
            let (experiment, max_failures, bins) = (ask.experiment.clone(), ask.failures, ask.bins);
            let request = v1::StatusRequest { experiment, max_failures, bins, ..Default::default() };
            look.take(self.farm.status(request).await);
        }
        look.seen.clone()
    }

    /// After a change, the next look is a new one.
    pub(crate) fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.rendered.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn rendered_entry(&self, page: &Page) -> Arc<Mutex<Rendered>> {
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if rendered.len() >= LOOKS_MAX {
            let is_old = |page: &Rendered| page.as_ref().is_none_or(|(at, _)| at.elapsed() > OLD);
            // A locked page is in use.
            rendered.retain(|_, page| page.try_lock().map_or(true, |page| !is_old(&page)));
        }
        Arc::clone(rendered.entry(page.clone()).or_default())
    }

    fn entry(&self, ask: &Ask) -> Arc<Mutex<Look>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= LOOKS_MAX {
            let is_old = |look: &Look| look.at.is_none_or(|at| at.elapsed() > OLD);
            // A locked look is in use.
            kept.retain(|_, look| look.try_lock().map_or(true, |look| !is_old(&look)));
        }
        Arc::clone(kept.entry(ask.clone()).or_default())
    }
}

/// Number of rows and generation, while no task can end. Short tasks end although none of them is seen running.
fn state(experiment: &v1::ExperimentStatus) -> State {
    let is_paused = experiment.state() == v1::ExperimentState::Paused;
    let rests = (has_ended(experiment) || is_paused) && experiment.running == 0;
    rests.then_some((experiment.rows_in_parts + experiment.rows_unpublished, experiment.generation))
}

impl Look {
    fn take(&mut self, answer: Result<v1::StatusReply, String>) {
        self.at = Some(Instant::now());
        match answer {
            Ok(status) => self.seen = Seen { status: Some(Arc::new(status)), away: None },
            Err(reason) => {
                let since = self.seen.away.as_ref().map_or_else(Instant::now, |away| away.since);
                self.seen.away = Some(Away { since, reason });
            }
        }
    }
}
