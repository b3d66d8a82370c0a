//! Access files: what a client or a worker needs to reach a coordinator, and to prove that it may.
//!
//! A coordinator writes one file for each [`Role`] into its access folder. The file has the coordinator's addresses, the
//! certificate that the coordinator is known by, and a token. A program that reads the file can act in its role: so
//! the file is used only if it belongs to this user and nobody else can read it. A machine without the file can be given a join
//! line, which has the digest of the certificate in its place.

mod pin;
mod private;

use std::fmt;
use std::path::{Path, PathBuf};

use powersweep_experiments::Digest;
use serde::{Deserialize, Serialize};

pub(crate) use pin::{anchor, anchor_of};
pub use private::{check_folder, make_folder, read_private, write_private};

/// The name in every coordinator's certificate. Addresses and host names may change; this name does not.
pub const SERVER_NAME: &str = "powersweep";

/// Version of the format.
const VERSION: u32 = 1;

/// Begins a join line.
const JOIN: &str = "psw1.";

/// Largest access file that is read (bytes).
const BYTES_MAX: u64 = 64 << 10;

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Submit, control, delete, ask for the status.
    Client,
    /// Lease tasks, hand in rows.
    Worker,
}

impl Role {
    /// Both.
    pub const ALL: [Role; 2] = [Role::Client, Role::Worker];

    /// The file of this role in an access folder.
    pub fn file_name(self) -> &'static str {
        match self {
            Role::Client => "client.json",
            Role::Worker => "worker.json",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Client => "client",
            Role::Worker => "worker",
        })
    }
}

/// A text that no message and no log shows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// How a coordinator is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ca {
    /// By the certificate that signed the coordinator's certificate, PEM.
    Pem(String),
    /// By the digest of that certificate (DER).
    Pinned(Digest),
    /// Not at all: the connection is not encrypted.
    None,
}

/// The content of an access file or of a join line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The token's role; a join line does not name it.
    pub role: Option<Role>,
    /// URLs of the coordinator, in order of preference.
    pub addresses: Vec<String>,
    /// How the coordinator is recognised.
    pub ca: Ca,
    /// Proves the role.
    pub token: Secret,
    /// The coordinator's version of the protocol; 0 if unknown.
    pub protocol: u32,
}

/// The JSON form.
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    role: Role,
    addresses: Vec<String>,
    ca_pem: Option<String>,
    token: Secret,
    protocol: u32,
}

/// Why access was not found. Final until the file is mended.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum AccessError {
    /// The file cannot be read.
    #[error("cannot read the access file {path}: {source}")]
    Read { path: String, source: std::io::Error },
    /// The file or folder cannot be written.
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: std::io::Error },
    /// Other users can read it.
    #[error(
        "{path} is open to other users (mode {mode:04o}), so its token may be known: run `chmod {wanted:o} {path}`, and \
         `powersweep access rotate` if a stranger may have read it"
    )]
    Exposed { path: String, mode: u32, wanted: u32 },
    /// Another user's.
    #[error(
        "{path} belongs to user {owner}, and this is user {user}: ask its owner for an access file of your own \
         (`powersweep access export`), and give it with --access"
    )]
    Foreign { path: String, owner: u32, user: u32 },
    /// The text is no access file.
    #[error("{path} is no access file: {reason}")]
    Format { path: String, reason: String },
    /// The file of the other role.
    #[error("{path} is the access file of a {found}, and this command needs that of a {wanted} ({name})", name = wanted.file_name())]
    Role { path: String, found: Role, wanted: Role },
    /// No folder can be private.
    #[error(
        "there is no private folder for the access files of {data}: set XDG_STATE_HOME or HOME to a folder of yours"
    )]
    NoPlace { data: String },
    /// A client cannot be added or revoked.
    #[error("{reason}")]
    Client { reason: String },
    /// Certificates could not be made.
    #[error("cannot make the certificates of {path}: {reason}")]
    Certificate { path: String, reason: String },
}

impl AccessError {
    /// Whether the file is there, but must not or cannot be used by this user.
    pub fn is_refusal(&self) -> bool {
        match self {
            AccessError::Read { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
            AccessError::Exposed { .. } | AccessError::Foreign { .. } | AccessError::Role { .. } => true,
            _ => false,
        }
    }
}

impl Access {
    /// Reads a private file.
    pub fn read(path: &Path) -> Result<Access, AccessError> {
        Access::parse(&read_private(path, BYTES_MAX)?, &path.display().to_string())
    }

    /// Reads the text of an access file, or a join line. `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Access, AccessError> {
        let wrong = |reason: String| AccessError::Format { path: origin.to_owned(), reason };
        if text.trim_start().starts_with(JOIN) {
            return joined(text.trim()).map_err(wrong);
        }
        let file: File = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if file.version != VERSION {
            return Err(wrong(format!("its version is {}, and this build reads {VERSION}", file.version)));
        }
        if let Some(pem) = &file.ca_pem {
            anchor(pem).map_err(wrong)?;
        }
        let ca = file.ca_pem.map_or(Ca::None, Ca::Pem);
        Ok(Access { role: Some(file.role), addresses: file.addresses, ca, token: file.token, protocol: file.protocol })
    }

    /// The text that [`Access::parse`] reads: JSON, or a join line if the certificate is not known.
    pub fn text(&self) -> String {
        let (Some(role), Ca::Pem(_) | Ca::None) = (self.role, &self.ca) else { return self.join_line() + "\n" };
        let ca_pem = if let Ca::Pem(pem) = &self.ca { Some(pem.clone()) } else { None };
        let file = File {
            version: VERSION,
            role,
            addresses: self.addresses.clone(),
            ca_pem,
            token: self.token.clone(),
            protocol: self.protocol,
        };
        serde_json::to_string_pretty(&file).expect("texts and numbers become JSON") + "\n"
    }

    /// Digest of the certificate; `None` for a coordinator with `--insecure`.
    pub fn ca_sha256(&self) -> Option<Digest> {
        match &self.ca {
            Ca::Pem(pem) => pin::digest(pem),
            Ca::Pinned(digest) => Some(*digest),
            Ca::None => None,
        }
    }

    /// `psw1.DIGEST.TOKEN@HOST:PORT,...`; the digest is zero without a certificate.
    pub fn join_line(&self) -> String {
        let digest = self.ca_sha256().unwrap_or_default();
        let hosts: Vec<&str> = self.addresses.iter().map(|url| host_of(url)).collect();
        format!("{JOIN}{digest}.{}@{}", self.token.reveal(), hosts.join(","))
    }
}

/// `HOST:PORT` of a URL.
pub(crate) fn host_of(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/')
}

fn joined(line: &str) -> Result<Access, String> {
    let form = || "a join line looks like psw1.DIGEST.TOKEN@HOST:PORT".to_owned();
    let (secrets, hosts) = line[JOIN.len()..].split_once('@').ok_or_else(form)?;
    let (digest, token) = secrets.split_once('.').ok_or_else(form)?;
    let digest: Digest = digest.parse().map_err(|_| form())?;
    if token.is_empty() || hosts.is_empty() || line.contains(char::is_whitespace) {
        return Err(form());
    }
    let (scheme, ca) = match digest == Digest::default() {
        true => ("http", Ca::None),
        false => ("https", Ca::Pinned(digest)),
    };
    let addresses = hosts.split(',').map(|host| format!("{scheme}://{host}")).collect();
    Ok(Access { role: None, addresses, ca, token: Secret::new(token), protocol: 0 })
}

/// Where access comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file, which is read again for each connection: its token and addresses may have changed.
    File(PathBuf),
    /// Access that this process has.
    Given(Box<Access>),
}

impl Source {
    /// The present access. If `role` is given, the file of another role is refused.
    pub fn load(&self, role: Option<Role>) -> Result<Access, AccessError> {
        let (access, path) = match self {
            Source::File(path) => (Access::read(path)?, path.display().to_string()),
            Source::Given(access) => (Access::clone(access), "the given access".to_owned()),
        };
        match (access.role, role) {
            (Some(found), Some(wanted)) if found != wanted => Err(AccessError::Role { path, found, wanted }),
            _ => Ok(access),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(ca: Ca) -> Access {
        let addresses = vec!["http://10.0.0.1:7450".to_owned(), "http://[::1]:7450".to_owned()];
        Access { role: Some(Role::Worker), addresses, ca, token: Secret::new("ab12"), protocol: 3 }
    }

    #[test]
    fn a_file_and_a_join_line_are_read_back() {
        let file = access(Ca::None);
        assert_eq!(Access::parse(&file.text(), "f").expect("it is one"), file);
        let line = file.join_line();
        let read = Access::parse(&format!("  {line}\n"), "f").expect("it is one");
        assert_eq!((read.role, &read.addresses, &read.token), (None, &file.addresses, &file.token));
        assert_eq!(read.join_line(), line);
        let pinned = Access { ca: Ca::Pinned(Digest::of(b"ca")), role: None, protocol: 0, ..file };
        let read = Access::parse(&pinned.text(), "f").expect("it is one");
        assert_eq!((read.ca, read.addresses[1].as_str()), (pinned.ca, "https://[::1]:7450"));
    }

    #[test]
    fn other_texts_are_refused() {
        let refused = |text: &str| Access::parse(text, "FILE").expect_err("it is none").to_string();
        for text in ["", "{}", "psw1.", "psw1.00.t@h:1", "psw1.xyz", "psw2.a.b@c:1"] {
            assert!(refused(text).starts_with("FILE is no access file: "), "{text:?}");
        }
        let file = access(Ca::None).text();
        assert!(refused(&file.replace("\"version\": 1", "\"version\": 2")).contains("version is 2"));
        let broken = file.replace("\"ca_pem\": null", "\"ca_pem\": \"no certificate\"");
        assert!(refused(&broken).contains("certificate"), "{}", refused(&broken));
    }

    #[test]
    fn secrets_are_not_shown() {
        assert!(!format!("{:?}", access(Ca::None)).contains("ab12"));
    }
}
