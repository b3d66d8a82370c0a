//! A place with experiments, and who answers a request about them.

pub mod access;
pub mod connection;
mod local;
mod remote;
pub mod shards;
pub mod stored;

use std::path::PathBuf;
use std::time::Duration;

use powersweep_coordinator::shards::ShardRecord;
use powersweep_coordinator::store::Location;
use powersweep_dataset::{Datasets, Error, Kind, Notes, OrKind, failure};
use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::{Address, Client};

use self::local::Local;
use self::remote::Remote;

/// Interval of the attempts to reach a coordinator that does not answer.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// Where experiments are: a data folder or object store, and how its coordinator is reached, or a coordinator elsewhere.
#[derive(Debug, Clone)]
pub struct Place {
    /// Folder, or object store (`s3://`, `gs://`, `az://`), of results and state.
    pub data: String,
    /// Address of the coordinator, HOST:PORT, in place of those in the access file.
    pub coordinator: Option<String>,
    /// Access file of the coordinator, or a folder with such files. By default the one beside the data, else the one in the
    /// user's configuration folder.
    pub access: Option<Source>,
    /// Allows unencrypted connections.
    pub insecure: bool,
    /// Experiments are controlled although another user submitted them.
    pub any_owner: bool,
    /// Tables are read at the coordinator, although there may be data here.
    pub tables_at_coordinator: bool,
    /// Where notes go: sentences for people.
    pub notes: Notes,
}

impl Default for Place {
    fn default() -> Place {
        Place {
            data: Place::DATA.to_owned(),
            coordinator: None,
            access: None,
            insecure: false,
            any_owner: false,
            tables_at_coordinator: false,
            notes: Notes::none(),
        }
    }
}

/// Who answers a request.
#[derive(Debug)]
pub enum Answerer {
    /// A running coordinator.
    Coordinator(Client),
    /// The shards of an experiment, which has no coordinator.
    Shards(Location, ShardRecord),
    /// The stored state: no coordinator was named, and none serves the data.
    State(Location),
}

impl Place {
    /// The data of a place that names none.
    pub const DATA: &str = "./results/data";

    /// The experiments in a data folder or object store.
    pub fn open(data: impl Into<String>) -> Place {
        Place { data: data.into(), ..Place::default() }
    }

    /// The experiments of the coordinator of an access file.
    pub fn of_coordinator(access: impl Into<PathBuf>) -> Place {
        Place { access: Some(Source::File(access.into())), tables_at_coordinator: true, ..Place::default() }
    }

    /// Whether a coordinator was named: then the data here does not count.
    pub fn names_coordinator(&self) -> bool {
        self.coordinator.is_some() || self.access.is_some()
    }

    /// The data folder or object store.
    pub fn location(&self) -> Result<Location, Error> {
        let location = Location::parse(&self.data).or_kind(Kind::Usage)?;
        match location.path() {
            Some(path) if path.is_file() => {
                Err(failure!(Storage, "{location} is a file, not a directory; choose another place with --data"))
            }
            _ => Ok(location),
        }
    }

    /// The access of a role: the one that was given, else the one of the data or of the user.
    pub fn access(&self, role: Role) -> Result<Source, Error> {
        match &self.access {
            Some(source) => Ok(access::given(source, role)),
            None => access::find(&self.location()?, role),
        }
    }

    /// How to reach the coordinator: the one that was named, else the one that serves the data.
    pub fn address(&self, role: Role) -> Result<Address, Error> {
        let access = self.access(role)?;
        let urls = self.coordinator.iter().cloned().collect();
        Ok(Address { urls, insecure: self.insecure, ..Address::of(access, role) })
    }

    /// Connects to the coordinator once, without retries.
    pub async fn connect(&self) -> Result<Client, Error> {
        connection::connect(&self.address(Role::Client)?).await
    }

    /// Connects again to a coordinator that does not answer: it may be restarting.
    pub async fn reconnect(&self, lost: &Error) -> Result<Client, Error> {
        self.notes.say(&format!("waiting for the coordinator: {}", lost.message));
        loop {
            tokio::time::sleep(RECONNECT_INTERVAL).await;
            // Its address may have changed.
            match self.connect().await {
                Ok(client) => {
                    self.notes.say("the coordinator answers again");
                    return Ok(client);
                }
                Err(error) if error.kind == Kind::Network => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Who answers a request about the whole place: the coordinator that was named, else the one that serves the data.
    /// Where there is no data, the one of the user's own access file counts. An owner that does not answer, and may have
    /// ended, counts as none: a request that changes something then takes the ownership, which decides.
    pub async fn answerer(&self) -> Result<Answerer, Error> {
        if self.names_coordinator() {
            return Ok(Answerer::Coordinator(self.connect().await?));
        }
        let location = self.location()?;
        let is_configured = || access::configured(Role::Client).is_some_and(|file| file.exists());
        if location.path().is_some_and(|path| !path.exists()) && is_configured() {
            return Ok(Answerer::Coordinator(self.connect().await?));
        }
        let Some(owner) = stored::owner(&location).await? else { return Ok(Answerer::State(location)) };
        match connection::connect(&self.address(Role::Client)?).await {
            Err(error) if error.kind == Kind::Network && owner.may_have_ended => {
                self.notes.say(&format!(
                    "the coordinator at {} does not answer: using the state that is stored in {location}",
                    owner.endpoint
                ));
                Ok(Answerer::State(location))
            }
            connected => Ok(Answerer::Coordinator(connected?)),
        }
    }

    /// Who answers a request about an experiment: its shards, if it has any and no coordinator was named, else who answers
    /// for the whole place.
    pub async fn answerer_of(&self, experiment: &str) -> Result<Answerer, Error> {
        if !self.names_coordinator() {
            let location = self.location()?;
            if let Some(record) = shards::find(&location, experiment).await? {
                return Ok(Answerer::Shards(location, record));
            }
        }
        self.answerer().await
    }

    /// Who runs tasks: the coordinator that was named, else the one that serves the data. If there is none, or no data yet,
    /// this process can.
    pub async fn runner(&self) -> Result<Answerer, Error> {
        let location = self.location()?;
        match location.path().is_some_and(|path| !path.exists()) && !self.names_coordinator() {
            true => Ok(Answerer::State(location)),
            false => self.answerer().await,
        }
    }

    /// Who has the tables: the data, if there is any and they are not wanted from the coordinator; else who answers for the
    /// whole place.
    pub async fn tables(&self) -> Result<Answerer, Error> {
        let location = self.location()?;
        if location.path().is_none_or(|path| path.exists()) && !self.tables_at_coordinator {
            return Ok(Answerer::State(location));
        }
        self.answerer().await
    }

    /// The tables of the place.
    pub async fn datasets(&self) -> Result<Datasets, Error> {
        self.datasets_of(&self.tables().await?)
    }

    /// The tables in the data folder or object store.
    pub fn datasets_here(&self) -> Result<Datasets, Error> {
        Ok(Datasets::new(Local::new(self.location()?), self.notes.clone()))
    }

    /// The tables of who answers.
    pub fn datasets_of(&self, answerer: &Answerer) -> Result<Datasets, Error> {
        match answerer {
            Answerer::Coordinator(client) => Ok(self.datasets_at(client)),
            Answerer::Shards(..) | Answerer::State(_) => self.datasets_here(),
        }
    }

    /// The tables of a coordinator.
    pub fn datasets_at(&self, client: &Client) -> Datasets {
        Datasets::new(Remote(client.clone()), self.notes.clone())
    }
}
