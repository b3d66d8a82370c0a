//! The access folder: where it is, and `server.json` in it.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use powersweep_experiments::Digest;
use powersweep_proto::access::{
    Access, AccessError, Role, Secret, check_folder, make_folder, read_private, write_private,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Token;
pub use super::certificates::CERTIFICATE_LIFE;
use super::certificates::{self, Certificates};
use crate::store::{Location, PRIVATE_DIR};

/// Version of the format.
const VERSION: u32 = 1;
/// The coordinator's own file.
const FILE: &str = "server.json";
/// Locked by a process that changes [`FILE`].
const LOCK: &str = ".server.json.lock";
/// The error of a mount without locks.
const NO_LOCKS: Option<i32> = Some(rustix::io::Errno::NOLCK.raw_os_error());
/// Largest file that is read (bytes): about two thousand clients.
const BYTES_MAX: u64 = 256 << 10;
/// Longest name of a client (bytes).
const NAME_BYTES_MAX: usize = 64;
/// Name of the bearer of `client.json` in the log.
pub(crate) const OPERATOR: &str = "operator";
/// Digits of the digest that names the folder of data elsewhere.
const NAME_DIGITS: usize = 16;

/// What a coordinator keeps for the next one on the same data.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    version: u32,
    pub(super) ca_pem: String,
    ca_key_pem: Secret,
    tokens: Vec<StoredToken>,
    /// Apart from `tokens`: an earlier version would take them for the operator's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<ClientToken>,
}

/// The token of one client.
#[derive(Clone, Serialize, Deserialize)]
struct ClientToken {
    name: Arc<str>,
    token: Secret,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredToken {
    role: Role,
    token: Secret,
    /// End of a rotated token's validity, seconds since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_unix_s: Option<u64>,
}

impl StoredToken {
    fn new(role: Role) -> StoredToken {
        StoredToken { role, token: certificates::random(), until_unix_s: None }
    }
}

/// Changes when the file changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp(Option<(u64, i64, i64, u64)>);

impl Stamp {
    pub(super) fn of(folder: &Path) -> Stamp {
        let found = std::fs::metadata(folder.join(FILE)).ok();
        Stamp(found.map(|found| (found.ino(), found.mtime(), found.mtime_nsec(), found.size())))
    }
}

/// Folders that may have the access files of DATA, in order: in the data folder, else in the user's state folder.
pub fn folders(location: &Location) -> Vec<PathBuf> {
    let beside = location.path().map(|data| data.join(PRIVATE_DIR).join("access"));
    let name = match location.path() {
        Some(data) => std::fs::canonicalize(data).unwrap_or_else(|_| data.to_owned()).display().to_string(),
        None => location.to_string(),
    };
    let digest = Digest::of(name.as_bytes()).to_string();
    let elsewhere = state_folder().map(|state| state.join("access").join(&digest[..NAME_DIGITS]));
    beside.into_iter().chain(elsewhere).collect()
}

/// `$XDG_STATE_HOME/powersweep` or `~/.local/state/powersweep`; none if neither variable has an absolute path.
fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("powersweep"))
}

/// The first of these folders that is private, or can be made so: some file systems keep no modes.
pub(super) fn make(location: &Location) -> Result<PathBuf, AccessError> {
    for folder in folders(location) {
        if make_folder(&folder)? {
            return Ok(folder);
        }
    }
    Err(AccessError::NoPlace { data: location.to_string() })
}

impl Stored {
    /// A new key and new tokens.
    pub(super) fn generate() -> Result<Stored, String> {
        let (ca_pem, ca_key_pem) = certificates::authority()?;
        let tokens = Role::ALL.map(StoredToken::new).to_vec();
        Ok(Stored { version: VERSION, ca_pem, ca_key_pem: Secret::new(ca_key_pem), tokens, clients: Vec::new() })
    }

    /// The content of the folder; makes it if there is none.
    pub(super) fn open_or_create(folder: &Path) -> Result<(Stored, Stamp), AccessError> {
        let path = folder.join(FILE);
        if !path.exists() {
            let failed = |reason| AccessError::Certificate { path: path.display().to_string(), reason };
            // If another process has made one meanwhile, that one counts.
            Stored::generate().map_err(failed)?.write(folder, false)?;
        }
        let stamp = Stamp::of(folder);
        Stored::read(folder).map(|stored| (stored, stamp))
    }

    pub(super) fn read(folder: &Path) -> Result<Stored, AccessError> {
        check_folder(folder)?;
        let path = folder.join(FILE);
        let wrong = |reason| AccessError::Format { path: path.display().to_string(), reason };
        let text = read_private(&path, BYTES_MAX)?;
        let stored: Stored = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if stored.version != VERSION {
            return Err(wrong(format!("its version is {}, and this build reads {VERSION}", stored.version)));
        }
        match Role::ALL.iter().find(|role| !stored.tokens.iter().any(|token| token.is_present(**role))) {
            Some(role) => Err(wrong(format!("it has no token of a {role}"))),
            None => Ok(stored),
        }
    }

    fn write(&self, folder: &Path, replace: bool) -> Result<(), AccessError> {
        let text = serde_json::to_string_pretty(self).expect("texts and numbers become JSON") + "\n";
        if text.len() as u64 > BYTES_MAX {
            let clients = self.clients.len() - 1;
            return Err(AccessError::Client {
                reason: format!("there are {clients} clients already: revoke some first"),
            });
        }
        write_private(&folder.join(FILE), &text, replace).map(|_| ())
    }

    pub(super) fn certificates(&self) -> Result<Certificates, String> {
        Certificates::new(&self.ca_pem, self.ca_key_pem.reveal())
    }

    /// The valid tokens. One that is known keeps its streams, and its end if it has one.
    pub(super) fn tokens(&self, known: &[Token]) -> Vec<Token> {
        let (now, unix_s) = (Instant::now(), unix_s());
        let streams = |secret: &Secret| {
            let earlier = known.iter().find(|known| known.secret == *secret);
            earlier.map_or_else(CancellationToken::new, |known| known.revoked.clone())
        };
        let token = |stored: &StoredToken| {
            let left = stored.until_unix_s.map(|until| Duration::from_secs(until.saturating_sub(unix_s)));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let earlier = known.iter().find(|known| known.secret == stored.token);
            let until = left.map(|left| now + left);
            // A clock that was set back does not prolong a token.
            let until = until.map(|until| earlier.and_then(|known| known.until).map_or(until, |end| end.min(until)));
            let (secret, revoked) = (stored.token.clone(), streams(&stored.token));
            Some(Token { role: stored.role, client: None, secret, until, revoked })
        };
        let of_client = |stored: &ClientToken| {
            let (client, revoked) = (Some(Arc::clone(&stored.name)), streams(&stored.token));
            Token { role: Role::Client, client, secret: stored.token.clone(), until: None, revoked }
        };
        self.tokens.iter().filter_map(token).chain(self.clients.iter().map(of_client)).collect()
    }
}

impl StoredToken {
    fn is_present(&self, role: Role) -> bool {
        self.role == role && self.until_unix_s.is_none()
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Waits until no other process changes the folder. A change that began from the content before another one would bring
/// tokens back that the other one has ended. A file system without locks is changed without one.
fn lock(folder: &Path) -> Result<File, AccessError> {
    let path = folder.join(LOCK);
    let failed = |source| AccessError::Write { path: path.display().to_string(), source };
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    match file.lock() {
        Err(error) if error.kind() != ErrorKind::Unsupported && error.raw_os_error() != NO_LOCKS => Err(failed(error)),
        _ => Ok(file),
    }
}

/// Replaces the tokens of these roles; the tokens of named clients stay as they are. A replaced token stays valid for `grace`. A running
/// coordinator notices it within a second.
pub fn rotate(folder: &Path, roles: &[Role], grace: Duration) -> Result<(), AccessError> {
    check_folder(folder)?;
    let _lock = lock(folder)?;
    let mut stored = Stored::read(folder)?;
    let now = unix_s();
    let until = now + grace.as_secs();
    for token in stored.tokens.iter_mut().filter(|token| roles.contains(&token.role)) {
        token.until_unix_s = Some(token.until_unix_s.map_or(until, |earlier| earlier.min(until)));
    }
    stored.tokens.retain(|token| token.until_unix_s.is_none_or(|until| until > now));
    stored.tokens.extend(roles.iter().copied().map(StoredToken::new));
    stored.write(folder, true)?;
    for role in roles {
        let path = folder.join(role.file_name());
        if !path.exists() {
            continue;
        }
        let present = stored.tokens.iter().find(|token| token.is_present(*role)).expect("it was just added");
        let access = Access { token: present.token.clone(), ..Access::read(&path)? };
        write_private(&path, &access.text(), true)?;
    }
    Ok(())
}

/// Changes the folder's `server.json` while no other process does.
fn change<T>(folder: &Path, change: impl FnOnce(&mut Stored) -> Result<T, AccessError>) -> Result<T, AccessError> {
    check_folder(folder)?;
    let _lock = lock(folder)?;
    let mut stored = Stored::read(folder)?;
    let done = change(&mut stored)?;
    stored.write(folder, true).map(|()| done)
}

/// Gives a client a token of its own.
///
/// # Errors
/// The name is taken or is no name.
pub fn add_client(folder: &Path, name: &str) -> Result<Secret, AccessError> {
    let refused = |reason| Err(AccessError::Client { reason });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    if name == OPERATOR
        || name.len() > NAME_BYTES_MAX
        || !name.starts_with(char::is_alphanumeric)
        || !name.chars().all(is_plain)
    {
        return refused(format!(
            "{name:?} cannot be the name of a client: it begins with a letter or digit, has at most {NAME_BYTES_MAX} \
             letters, digits and ._@+-, and is not `{OPERATOR}`"
        ));
    }
    change(folder, |stored| {
        if stored.clients.iter().any(|client| *client.name == *name) {
            return refused(format!("{name} has a token already: revoke it first, or choose another name"));
        }
        let token = certificates::random();
        stored.clients.push(ClientToken { name: name.into(), token: token.clone() });
        Ok(token)
    })
}

/// Ends the token of a client. A running coordinator ends its calls within a second.
///
/// # Errors
/// No client has this name.
pub fn revoke_client(folder: &Path, name: &str) -> Result<(), AccessError> {
    change(folder, |stored| {
        let Some(at) = stored.clients.iter().position(|client| *client.name == *name) else {
            let reason = format!("there is no client {name}: `powersweep access show` lists them");
            return Err(AccessError::Client { reason });
        };
        stored.clients.remove(at);
        Ok(())
    })
}

/// The clients that have a token of their own, with it, in the order in which they were added.
pub fn clients(folder: &Path) -> Result<Vec<(String, Secret)>, AccessError> {
    let stored = Stored::read(folder)?;
    Ok(stored.clients.into_iter().map(|client| (client.name.to_string(), client.token)).collect())
}
