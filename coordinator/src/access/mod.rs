//! Who may reach a coordinator: its certificates, its tokens, and the folder with the access files.
//!
//! The folder belongs to one user and is closed to others. `server.json` in it has the key that signs certificates and
//! all valid tokens; `client.json` and `worker.json` follow from that file and the coordinator's addresses. The token of
//! `client.json` is the operator's. Each other client can have a token of its own, under a name that the operator chose. A
//! running coordinator looks at `server.json` every second, so that [`rotate`], [`add_client`] and [`revoke_client`] need no
//! connection to it.

mod addresses;
mod certificates;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use powersweep_experiments::Digest;
use powersweep_proto::PROTOCOL;
use powersweep_proto::access::{Access, AccessError, Ca, Role, Secret, read_private, write_private};
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

pub use addresses::reachable;
use certificates::Certificates;
pub(crate) use stored::OPERATOR;
pub use stored::{CERTIFICATE_LIFE, add_client, clients, folders, revoke_client, rotate};
use stored::{Stamp, Stored};

/// How long a rotated token stays valid, unless the command says otherwise: workers read their file again within it.
pub const GRACE: Duration = Duration::from_secs(600);

/// A valid token.
#[derive(Clone)]
struct Token {
    role: Role,
    /// Name of the client that has it; `None` for the tokens of `client.json` and `worker.json`.
    client: Option<Arc<str>>,
    secret: Secret,
    /// End of its validity; `None` for the present token of its role.
    until: Option<Instant>,
    /// Cancelled when it becomes invalid.
    revoked: CancellationToken,
}

/// A caller whose token is valid.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// The caller's role.
    pub role: Role,
    /// The client's name, if it has a token of its own; `None` for the operator and for workers.
    pub client: Option<Arc<str>>,
    /// Begin of the token's digest, which tells tokens apart in logs.
    pub fingerprint: String,
    /// Cancelled when the token becomes invalid.
    pub revoked: CancellationToken,
}

/// How clients and workers reach the coordinator.
#[derive(Clone)]
struct Published {
    addresses: Vec<String>,
    ca: Ca,
}

/// Certificates and tokens of one coordinator.
pub struct Authority {
    /// `None` if only this process has them.
    folder: Option<PathBuf>,
    certificates: Arc<Certificates>,
    tokens: RwLock<Vec<Token>>,
    published: RwLock<Published>,
    /// `server.json` as it was last read.
    seen: Mutex<Stamp>,
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Authority {
    /// The access of DATA; makes the folder if there is none.
    ///
    /// # Errors
    /// The folder cannot be made, or is not private.
    pub fn open(location: &crate::store::Location) -> Result<Authority, AccessError> {
        let folder = stored::make(location)?;
        let (stored, stamp) = Stored::open_or_create(&folder)?;
        Authority::new(Some(folder), &stored, stamp)
    }

    /// Access that only this process has.
    pub fn in_memory() -> Authority {
        let stored = Stored::generate().expect("certificates can be made from constants and random numbers");
        Authority::new(None, &stored, Stamp::default()).expect("the certificates were just made")
    }

    fn new(folder: Option<PathBuf>, stored: &Stored, stamp: Stamp) -> Result<Authority, AccessError> {
        let certificates = stored.certificates().map_err(|reason| {
            let path = folder.as_deref().unwrap_or(Path::new("this process")).display().to_string();
            AccessError::Certificate { path, reason }
        })?;
        let published = Published { addresses: Vec::new(), ca: Ca::Pem(stored.ca_pem.clone()) };
        let authority = Authority {
            folder,
            certificates: Arc::new(certificates),
            tokens: RwLock::new(Vec::new()),
            published: RwLock::new(published),
            seen: Mutex::new(stamp),
        };
        authority.take(stored);
        Ok(authority)
    }

    /// The folder with the access files.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// TLS settings of the server.
    pub(crate) fn tls(&self) -> Arc<ServerConfig> {
        self.certificates.config()
    }

    /// Tells clients and workers the addresses, in order of preference: writes the access files. `encrypted` is false for
    /// a coordinator with `--insecure`.
    pub fn publish(&self, addresses: Vec<String>, encrypted: bool) -> Result<(), AccessError> {
        {
            let mut published = write(&self.published);
            published.addresses = addresses;
            if !encrypted {
                published.ca = Ca::None;
            }
        }
        self.write_files()
    }

    fn write_files(&self) -> Result<(), AccessError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        for role in Role::ALL {
            let (path, text) = (folder.join(role.file_name()), self.access(role).text());
            // A coordinator may start again at the same address while the disk is full.
            if read_private(&path, text.len() as u64).ok().as_ref() != Some(&text) {
                write_private(&path, &text, true)?;
            }
        }
        Ok(())
    }

    /// The access of a role.
    pub fn access(&self, role: Role) -> Access {
        let Published { addresses, ca } = read(&self.published).clone();
        let present = |token: &&Token| token.role == role && token.client.is_none() && token.until.is_none();
        let token = read(&self.tokens).iter().find(present).map(|token| token.secret.clone());
        let token = token.expect("each role has a present token");
        Access { role: Some(role), addresses, ca, token, protocol: PROTOCOL }
    }

    /// The role of a token, if it is valid.
    pub fn admit(&self, given: &str) -> Option<Admitted> {
        let now = Instant::now();
        let tokens = read(&self.tokens);
        let valid = tokens.iter().filter(|token| token.until.is_none_or(|until| now < until));
        // Every token is compared, so that the time says nothing about them.
        let found =
            valid.fold(None, |found, token| if same(token.secret.reveal(), given) { Some(token) } else { found });
        found.map(|token| Admitted {
            role: token.role,
            client: token.client.clone(),
            fingerprint: fingerprint(given),
            revoked: token.revoked.clone(),
        })
    }

    /// Takes changed tokens in, ends expired ones, renews the certificate in time. Reads files.
    pub fn refresh(&self) {
        if let Some(folder) = &self.folder {
            self.take_changes(folder);
        }
        let now = Instant::now();
        write(&self.tokens).retain(|token| {
            let valid = token.until.is_none_or(|until| now < until);
            if !valid {
                token.revoked.cancel();
            }
            valid
        });
        if let Err(reason) = self.certificates.renew_in_time() {
            tracing::error!("the server's certificate cannot be renewed: {reason}");
        }
    }

    fn take_changes(&self, folder: &Path) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Stamp::of(folder);
        if now == *seen {
            return;
        }
        *seen = now;
        let taken = Stored::read(folder).map(|stored| self.take(&stored)).and_then(|()| self.write_files());
        match taken {
            Ok(()) => tracing::info!("the tokens in {} have changed", folder.display()),
            Err(error) => tracing::warn!("the former tokens stay valid: {error}"),
        }
    }

    /// Replaces the tokens. Those that stay keep their streams.
    fn take(&self, stored: &Stored) {
        let mut tokens = write(&self.tokens);
        let known = std::mem::take(&mut *tokens);
        *tokens = stored.tokens(&known);
        for gone in known.iter().filter(|old| !tokens.iter().any(|new| new.secret == old.secret)) {
            gone.revoked.cancel();
        }
    }
}

/// Compares in constant time, so that the time does not reveal the first difference.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The first digits of a token's digest.
pub fn fingerprint(token: &str) -> String {
    Digest::of(token.as_bytes()).to_string()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Location;

    fn opened() -> (tempfile::TempDir, Authority) {
        let data = tempfile::tempdir().expect("a folder");
        let location = Location::directory(data.path()).expect("a path");
        let authority = Authority::open(&location).expect("it can be made");
        authority.publish(vec!["https://h:1".to_owned()], true).expect("it can be written");
        (data, authority)
    }

    fn admits(authority: &Authority, token: &Secret) -> Option<Role> {
        authority.admit(token.reveal()).map(|admitted| admitted.role)
    }

    #[test]
    fn tokens_and_certificates_outlive_the_coordinator() {
        let (data, first) = opened();
        let again = Authority::open(&Location::directory(data.path()).expect("a path")).expect("it is there");
        for role in Role::ALL {
            let file = Access::read(&first.folder().expect("a folder").join(role.file_name())).expect("it was written");
            assert_eq!(file, first.access(role));
            assert_eq!(admits(&again, &file.token), Some(role));
            assert_eq!(admits(&Authority::in_memory(), &file.token), None);
        }
        assert_eq!(first.access(Role::Client).ca, again.access(Role::Client).ca);
        assert!(first.admit("").is_none());
    }

    #[test]
    fn a_rotated_token_ends_after_its_grace() {
        let (_data, authority) = opened();
        let folder = authority.folder().expect("a folder").to_owned();
        let old = authority.access(Role::Worker).token;
        let stream = authority.admit(old.reveal()).expect("it is valid");
        rotate(&folder, &[Role::Worker], Duration::from_secs(2)).expect("it can be written");
        let file = Access::read(&folder.join("worker.json")).expect("it is there");
        assert_eq!((&file.addresses, admits(&authority, &file.token)), (&vec!["https://h:1".to_owned()], None));
        authority.refresh();
        assert_eq!(
            (admits(&authority, &file.token), admits(&authority, &old)),
            (Some(Role::Worker), Some(Role::Worker))
        );
        assert!(!stream.revoked.is_cancelled());
        std::thread::sleep(Duration::from_millis(2100));
        assert_eq!(admits(&authority, &old), None);
        authority.refresh();
        assert!(stream.revoked.is_cancelled());
        let client = authority.access(Role::Client).token;
        assert_eq!(admits(&authority, &client), Some(Role::Client), "the other role's token stays");
        rotate(&folder, &Role::ALL, Duration::ZERO).expect("it can be written");
        authority.refresh();
        assert_eq!((admits(&authority, &client), admits(&authority, &file.token)), (None, None));
    }

    #[test]
    fn rotations_at_once_bring_no_token_back() {
        let (_data, authority) = opened();
        let folder = authority.folder().expect("a folder").to_owned();
        for round in 0..100 {
            let former = Role::ALL.map(|role| Access::read(&folder.join(role.file_name())).expect("it is there").token);
            let at_once = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for role in Role::ALL {
                    let (folder, at_once) = (&folder, &at_once);
                    scope.spawn(move || {
                        at_once.wait();
                        rotate(folder, &[role], Duration::ZERO).expect("it can be written");
                    });
                }
            });
            authority.refresh();
            for (role, former) in Role::ALL.into_iter().zip(former) {
                let present = Access::read(&folder.join(role.file_name())).expect("it is there").token;
                let admitted = (admits(&authority, &former), admits(&authority, &present));
                assert_eq!(admitted, (None, Some(role)), "round {round}");
            }
        }
    }

    #[test]
    fn each_client_has_a_token_that_ends_alone() {
        let (_data, authority) = opened();
        let folder = authority.folder().expect("a folder").to_owned();
        let [ada, bob] = ["ada", "bob@example.org"].map(|name| add_client(&folder, name).expect("a new name"));
        authority.refresh();
        let name = |token: &Secret| authority.admit(token.reveal()).map(|admitted| admitted.client);
        let operator = authority.access(Role::Client).token;
        assert_eq!(name(&ada), Some(Some("ada".into())));
        assert_eq!(name(&operator), Some(None), "client.json is the operator's");
        let admitted = |token: &Secret| authority.admit(token.reveal()).expect("it is valid").revoked;
        let [of_ada, of_bob] = [&ada, &bob].map(admitted);
        rotate(&folder, &Role::ALL, Duration::ZERO).expect("it can be written");
        revoke_client(&folder, "ada").expect("there is one");
        authority.refresh();
        assert_eq!((name(&ada), name(&operator), name(&bob)), (None, None, Some(Some("bob@example.org".into()))));
        assert_eq!((of_ada.is_cancelled(), of_bob.is_cancelled()), (true, false));
        let refused = |done: Result<(), AccessError>| done.expect_err("refused").to_string();
        assert!(refused(revoke_client(&folder, "ada")).contains("there is no client ada"));
        let add = |name: &str| refused(add_client(&folder, name).map(drop));
        assert!(add("bob@example.org").contains("has a token already"));
        for name in ["", "operator", "-x", "a b", "a\n", "../x", &"a".repeat(65)] {
            assert!(add(name).contains("cannot be the name of a client"), "{name:?}");
        }
        assert_ne!(add_client(&folder, "ada").expect("the name is free again"), ada);
    }

    #[test]
    fn clients_added_and_revoked_at_once_are_all_counted() {
        let (_data, authority) = opened();
        let folder = authority.folder().expect("a folder").to_owned();
        let names = |kind: &str| (0..25).map(|number| format!("{kind}{number}")).collect::<Vec<_>>();
        names("old").iter().for_each(|name| drop(add_client(&folder, name).expect("a new name")));
        let add = |name: &String| drop(add_client(&folder, name).expect("a new name"));
        let revoke = |name: &String| revoke_client(&folder, name).expect("there is one");
        std::thread::scope(|scope| {
            scope.spawn(|| names("a").iter().for_each(add));
            scope.spawn(|| names("b").iter().for_each(add));
            scope.spawn(|| names("old").iter().for_each(revoke));
            scope.spawn(|| rotate(&folder, &Role::ALL, Duration::ZERO).expect("it can be written"));
        });
        let mut left: Vec<String> = clients(&folder).expect("it is sound").into_iter().map(|(name, _)| name).collect();
        let mut expected = [names("a"), names("b")].concat();
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn an_exposed_folder_is_not_served_from() {
        use std::os::unix::fs::PermissionsExt;
        let (data, authority) = opened();
        let location = Location::directory(data.path()).expect("a path");
        let open = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is this user's");
            Authority::open(&location).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let folder = authority.folder().expect("a folder");
        assert!(open(folder, 0o755).contains("chmod 700"));
        assert!(open(&folder.join("server.json"), 0o600).contains("chmod 700"));
        assert_eq!(open(folder, 0o700), "");
        assert!(open(&folder.join("server.json"), 0o644).contains("chmod 600"));
    }
}
