//! Whether this machine can run a coordinator on the data, or reach the coordinator, and what to do.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use object_store::ObjectStoreExt;
use powersweep_coordinator::owner::{self, Owner, OwnerError};
use powersweep_coordinator::probe::probe;
use powersweep_coordinator::store::{self, Credentials, Location, PRIVATE_DIR, Variables, credentials, unencrypted};
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Kind};
use powersweep_experiments::plain::chain;
use powersweep_proto::access::{Access, Role};
use powersweep_proto::client::{Address, Client};
use powersweep_proto::{OLDEST_PROTOCOL, PROTOCOL, plain, v1};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use tonic::Code;

use crate::place::{Place, access, connection};
use crate::{BUILD, farm};

/// Writes that are timed, and the bytes of each.
const WRITES: usize = 20;
const WRITE_BYTES: usize = 4 << 10;
/// A slower write makes hand-ins wait.
const SLOW_WRITE: Duration = Duration::from_millis(200);
/// Less free space is soon used up by the rows of a sweep (bytes).
const LITTLE_SPACE: u64 = 1 << 30;
/// A coordinator needs an open file for each connection.
const FEW_FILES: u64 = 4_096;

/// The result of a check.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// The subject of the check.
    #[serde(rename = "check")]
    pub name: String,
    /// How it ended.
    pub result: CheckResult,
    /// What was found.
    pub found: String,
    /// What to do; `None` where all is well.
    pub advice: Option<String>,
    /// The kind of a failure.
    #[serde(skip)]
    pub kind: Option<Kind>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    /// All is well.
    Ok,
    /// Something may go wrong.
    Warning,
    /// It does not work.
    Failed,
}

impl CheckResult {
    /// The word for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            CheckResult::Ok => "ok",
            CheckResult::Warning => "warning",
            CheckResult::Failed => "failed",
        }
    }
}

impl Check {
    fn good(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check { name: name.into(), result: CheckResult::Ok, found: found.into(), advice: None, kind: None }
    }

    fn doubtful(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Check {
        let (result, advice) = (CheckResult::Warning, Some(advice.into()));
        Check { name: name.into(), result, found: found.into(), advice, kind: None }
    }

    /// The first line of the error is what was found, the others are advice.
    fn failed(name: impl Into<String>, error: Error) -> Check {
        let Error { kind, message } = error;
        let (found, advice) = message.split_once('\n').unwrap_or((&message, ""));
        let (result, advice) = (CheckResult::Failed, Some(advice.to_owned()));
        Check { name: name.into(), result, found: found.to_owned(), advice, kind: Some(kind) }
    }
}

impl Place {
    /// Whether this machine can run a coordinator on the data, or reach the coordinator, and what to do. `listen`: where a
    /// coordinator would listen.
    ///
    /// # Errors
    /// The name of the data is wrong. A check that fails is no error.
    pub async fn checks(&self, listen: SocketAddr) -> Result<Vec<Check>, Error> {
        let location = self.location()?;
        let mut checks = vec![program(), open_files()];
        // A missing folder is not made: the user may only want to reach a coordinator.
        let exists = location.path().is_none_or(Path::exists);
        let owner = if exists { owner::look(&location).await } else { Ok(None) };
        let ended = |owner: &Owner| owner.alive == Some(false);
        let is_served = owner.as_ref().is_ok_and(|owner| owner.as_ref().is_some_and(|owner| !ended(owner)));
        match exists {
            true => checks.extend(of_data(&location, owner).await),
            false => checks.push(Check::good("data", format!("there is no {location} yet: not checked"))),
        }
        // The access files of data that no coordinator serves lead nowhere.
        let mut coordinator = Vec::new();
        if self.names_coordinator() || is_served || !exists {
            coordinator = of_coordinator(self).await;
        }
        if coordinator.is_empty() {
            checks.push(port(listen));
        }
        checks.extend(coordinator);
        Ok(checks)
    }
}

fn program() -> Check {
    let protocols =
        if OLDEST_PROTOCOL == PROTOCOL { PROTOCOL.to_string() } else { format!("{OLDEST_PROTOCOL} to {PROTOCOL}") };
    Check::good("program", format!("version {}, protocol {protocols}", BUILD))
}

fn open_files() -> Check {
    let limit = getrlimit(Resource::Nofile).maximum;
    let found = limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {limit}"));
    match limit {
        Some(limit) if limit < FEW_FILES => Check::doubtful(
            "open files",
            found,
            format!("a coordinator needs one for each connection: raise the hard limit to {FEW_FILES} (ulimit -Hn)"),
        ),
        _ => Check::good("open files", found),
    }
}

/// The storage, its speed and its owner.
async fn of_data(location: &Location, owner: Result<Option<Owner>, OwnerError>) -> Vec<Check> {
    let kind = match location.kind() {
        store::Kind::Local => "a file system of this machine",
        store::Kind::Shared => "a shared file system: a coordinator that was killed is replaced after 80 s",
        store::Kind::Objects => "an object store",
    };
    let mut checks = vec![Check::good("data", format!("{location}, {kind}"))];
    checks.extend(of_credentials(location.scheme(), &|name| std::env::var(name).ok()));
    checks.extend(of_endpoint(location.scheme(), &|name| std::env::var(name).ok()));
    if let Err(error) = probe(location).await {
        let advice = match chain(&error).contains("NoSuchBucket") {
            true => "there is no bucket of this name: create it, or choose another place with --data",
            false => "if this cannot be repaired, choose another place with --data",
        };
        checks.push(Check::failed("storage", Error::new(Kind::Storage, format!("{}\n{advice}", chain(&error)))));
        return checks;
    }
    checks.push(Check::good("storage", "writes, exclusive creation and replacement work"));
    checks.push(writes(location).await);
    checks.extend(location.path().and_then(space));
    checks.push(of_owner(owner));
    checks
}

/// The credentials for an object store, by the names of their variables.
fn of_credentials(scheme: &str, variables: Variables<'_>) -> Option<Check> {
    let name = "credentials";
    Some(match credentials(scheme, variables)? {
        Credentials { problem: Some(problem), hint, .. } => Check::doubtful(name, problem, hint),
        Credentials { found: Some(found), .. } => Check::good(name, format!("from {found}")),
        Credentials { hint, .. } => Check::doubtful(
            name,
            "none are set: the machine itself is asked, which works inside the store's cloud only",
            format!("elsewhere, {hint}"),
        ),
    })
}

/// An address of an object store that its client refuses.
fn of_endpoint(scheme: &str, variables: Variables<'_>) -> Option<Check> {
    let (address, allows) = unencrypted(scheme, variables)?;
    let found = format!("{address} has an address without encryption (http://), which is refused");
    Some(Check::doubtful(
        "endpoint",
        found,
        format!("give an https:// address, or set {allows}=true in a trusted network"),
    ))
}

/// The time of small durable writes.
async fn writes(location: &Location) -> Check {
    let name = "durable writes";
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let begun = Instant::now();
        if let Err(reason) = write_once(location).await {
            return Check::failed(name, Error::new(Kind::Storage, reason));
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let (median, most) = (times[WRITES / 2], times[WRITES - 1]);
    let found = format!("{:.1} ms, at most {:.1} ms", median.as_secs_f64() * 1e3, most.as_secs_f64() * 1e3);
    match median > SLOW_WRITE {
        true => Check::doubtful(name, found, "hand-ins wait for such writes: another place for --data may be faster"),
        false => Check::good(name, found),
    }
}

async fn write_once(location: &Location) -> Result<(), String> {
    let name = format!("doctor-{}", uuid::Uuid::new_v4().simple());
    let Some(path) = location.path() else {
        let store = location.object_store().map_err(|error| chain(&error))?;
        let path = object_store::path::Path::from_iter([PRIVATE_DIR, &name]);
        store.put(&path, vec![0; WRITE_BYTES].into()).await.map_err(|error| chain(&error))?;
        return store.delete(&path).await.map_err(|error| chain(&error));
    };
    let file = path.join(PRIVATE_DIR).join(name);
    let written = tokio::task::spawn_blocking(move || {
        let written = write_file(&file);
        // Also after an error.
        let _ = std::fs::remove_file(&file);
        written.map_err(|error| format!("{}: {error}", file.display()))
    });
    written.await.map_err(|error| error.to_string())?
}

fn write_file(file: &Path) -> std::io::Result<()> {
    let mut opened = std::fs::File::create_new(file)?;
    std::io::Write::write_all(&mut opened, &[0; WRITE_BYTES])?;
    opened.sync_all()
}

fn space(data: &Path) -> Option<Check> {
    let found = rustix::fs::statvfs(data).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let words = format!("{:.1} GiB free", free as f64 / f64::from(1 << 30));
    Some(match free < LITTLE_SPACE {
        true => {
            Check::doubtful("space", words, "rows of a sweep may not fit: free some space, or choose another --data")
        }
        false => Check::good("space", words),
    })
}

fn of_owner(owner: Result<Option<Owner>, OwnerError>) -> Check {
    match owner {
        Ok(None) => Check::good("owner", "no coordinator serves the data"),
        Ok(Some(found)) => {
            let who = found.record.map_or_else(
                || "its record cannot be read".to_owned(),
                |record| format!("process {} on {}", record.pid, plain(&record.host)),
            );
            match found.alive {
                Some(false) => {
                    Check::good("owner", format!("a coordinator has ended without releasing the data ({who})"))
                }
                _ => Check::good("owner", format!("a coordinator serves the data ({who})")),
            }
        }
        Err(error) => Check::failed("owner", Error::new(Kind::Storage, chain(&error))),
    }
}

/// Whether `serve` could listen at its default address.
fn port(listen: SocketAddr) -> Check {
    match farm::port_is_free(listen) {
        Ok(()) => Check::good("port", format!("{listen} is free")),
        Err(Error { message, .. }) => Check::doubtful("port", message, ""),
    }
}

/// The access files that can be found, and each of their addresses. Empty without an access file that was asked for.
async fn of_coordinator(place: &Place) -> Vec<Check> {
    let is_named = place.names_coordinator();
    let mut checks = Vec::new();
    for role in Role::ALL {
        let name = format!("access as {role}");
        let found = place.access(role).and_then(|source| {
            let loaded = source.load(Some(role)).map_err(|error| access::refused(&error))?;
            Ok((source, loaded))
        });
        match found {
            Ok((source, loaded)) => {
                checks.push(of_access(&name, &loaded));
                let urls = if let Some(url) = &place.coordinator { vec![url.clone()] } else { loaded.addresses };
                for url in urls {
                    let address = Address {
                        urls: vec![url.clone()],
                        insecure: place.insecure,
                        ..Address::of(source.clone(), role)
                    };
                    checks.push(of_address(&url, &address, role).await);
                }
            }
            // A file of the other role says enough.
            Err(failure) if is_named && role == Role::Worker && checks.is_empty() => {
                checks.push(Check::failed(name, failure));
            }
            Err(failure) if failure.kind == Kind::Refused && !is_named => checks.push(Check::failed(name, failure)),
            Err(_) => {}
        }
    }
    checks
}

fn of_access(name: &str, access: &Access) -> Check {
    let found = format!("{}, protocol {}", count(access.addresses.len() as u64, "address"), access.protocol);
    match access.protocol == 0 || (OLDEST_PROTOCOL..=PROTOCOL).contains(&access.protocol) {
        true => Check::good(name, found),
        false => {
            Check::doubtful(name, found, "the coordinator is of another version: use the same version of powersweep")
        }
    }
}

/// Whether a coordinator answers at an address, and takes the token.
async fn of_address(url: &str, address: &Address, role: Role) -> Check {
    let name = format!("{role} at {url}");
    let begun = Instant::now();
    match connection::connect(address).await {
        Ok(mut client) => {
            let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
            answer(name, &mut client, role, milliseconds).await
        }
        Err(error) => Check::failed(name, error),
    }
}

async fn answer(name: String, client: &mut Client, role: Role, milliseconds: f64) -> Check {
    if role == Role::Worker {
        // A worker may not ask for the status. No log has this digest, so that the answer is about the token.
        let request = v1::FetchLogRequest { digest: vec![0; 32].into() };
        return match client.fetch_log(request).await.map(drop) {
            Err(status) if status.code() != Code::NotFound => Check::failed(name, connection::refused(&status)),
            _ => Check::good(name, format!("answers after {milliseconds:.0} ms, and takes the token")),
        };
    }
    match connection::status(client, v1::StatusRequest::default()).await {
        Err(status) => Check::failed(name, connection::refused(&status)),
        Ok(status) if status.storage_stalled => {
            Check::failed(name, Error::new(Kind::Storage, format!("its storage stalls: {}", status.storage_reason)))
        }
        Ok(status) if status.build != BUILD => Check::doubtful(
            name,
            format!("answers after {milliseconds:.0} ms; its version is {}", status.build),
            "workers of another version may be refused: use the same version of powersweep",
        ),
        Ok(_) => Check::good(name, format!("answers after {milliseconds:.0} ms, and takes the token")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_named_and_never_shown() {
        let key = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "very-secret".to_owned());
        let both = |name: &str| {
            name.starts_with("AWS_A")
                .then(|| "very-secret".to_owned())
                .or_else(|| (name == "AWS_SECRET_ACCESS_KEY").then(|| "more-secret".to_owned()))
        };
        let found = |variables: Variables<'_>| {
            of_credentials("s3", variables)
                .map(|check| format!("{} {} {}", check.result.word(), check.found, check.advice.unwrap_or_default()))
        };
        let good = found(&both).expect("an object store");
        assert!(good.contains("ok") && good.contains("from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"), "{good}");
        let half = found(&key).expect("an object store");
        assert!(half.contains("warning") && half.contains("AWS_SECRET_ACCESS_KEY is not"), "{half}");
        let none = found(&|_| None).expect("an object store");
        assert!(none.contains("warning") && none.contains("elsewhere, set AWS_ACCESS_KEY_ID"), "{none}");
        assert!([good, half, none].iter().all(|text| !text.contains("secret-") && !text.contains("-secret")));
        assert!(of_credentials("file", &both).is_none());
    }

    #[test]
    fn an_address_without_encryption_is_named_with_the_variable_that_allows_it() {
        let set = |wanted: &'static [(&str, &str)]| {
            move |name: &str| wanted.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let plain = set(&[("AWS_ENDPOINT", "http://minio:9000")]);
        let check = of_endpoint("s3", &plain).expect("it is refused");
        assert!(
            check.found.contains("AWS_ENDPOINT")
                && check.advice.is_some_and(|text| text.contains("AWS_ALLOW_HTTP=true"))
        );
        assert!(of_endpoint("gs", &plain).is_none());
        assert!(
            of_endpoint("s3", &set(&[("AWS_ENDPOINT", "http://minio:9000"), ("AWS_ALLOW_HTTP", "true")])).is_none()
        );
        assert!(of_endpoint("s3", &set(&[("AWS_ENDPOINT", "https://minio:9000")])).is_none());
    }
}
