//! Authorisation: every call has a token, and a token admits callers of one role.

use std::net::SocketAddr;
use std::sync::Arc;

use powersweep_proto::access::{Role, Secret};
use tonic::{Request, Status};

use crate::access::{Admitted, Authority};

/// Callers that a call admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callers {
    Clients,
    Workers,
    Both,
}

impl Callers {
    fn include(self, role: Role) -> bool {
        match self {
            Callers::Clients => role == Role::Client,
            Callers::Workers => role == Role::Worker,
            Callers::Both => true,
        }
    }

    /// Refuses a caller of another role.
    pub(super) fn check(self, caller: &Admitted) -> Result<(), Status> {
        if self.include(caller.role) {
            return Ok(());
        }
        let (has, needs) = (caller.role, if caller.role == Role::Client { Role::Worker } else { Role::Client });
        let file = needs.file_name();
        Err(Status::permission_denied(format!(
            "this is the token of a {has}, and the call needs that of a {needs} (access file {file})"
        )))
    }
}

/// Who makes a call.
#[derive(Default)]
pub(super) struct Caller {
    /// Set by [`super::admission`], before the call reaches its handler.
    pub(super) admitted: Option<Admitted>,
    /// The other end of the connection.
    pub(super) peer: Option<SocketAddr>,
}

impl Caller {
    pub(super) fn of<T>(call: &Request<T>) -> Caller {
        Caller { admitted: call.extensions().get().cloned(), peer: call.remote_addr() }
    }
}

/// The token in the header `authorization`.
pub(super) fn token(authorization: Option<&str>) -> Option<Secret> {
    authorization.and_then(|value| value.strip_prefix("Bearer ")).map(Secret::new)
}

/// Admits a caller whose token is valid, or says why not.
pub(super) async fn admit(authority: &Arc<Authority>, token: Option<Secret>) -> Result<Admitted, Status> {
    let Some(token) = token else {
        return Err(Status::unauthenticated("this coordinator needs a token: give its access file with --access"));
    };
    let known = match authority.admit(token.reveal()) {
        None => {
            // The caller may have read a new token before this process noticed the rotation.
            let refreshed = Arc::clone(authority);
            let _ = tokio::task::spawn_blocking(move || refreshed.refresh()).await;
            authority.admit(token.reveal())
        }
        known => known,
    };
    known.ok_or_else(not_valid)
}

/// The answer to a token that is unknown or has ended.
pub(super) fn not_valid() -> Status {
    Status::unauthenticated(
        "the token is not valid: it was rotated or revoked, or is another coordinator's. Get the access file again \
         (`powersweep access export` where the coordinator runs)",
    )
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[tokio::test]
    async fn a_token_admits_its_own_kind_of_caller_only() {
        let authority = Arc::new(Authority::in_memory());
        let call = async |secret: Option<Secret>, callers: Callers| {
            let header = secret.as_ref().map(|secret| format!("Bearer {}", secret.reveal()));
            let admitted = admit(&authority, token(header.as_deref())).await;
            admitted.and_then(|caller| callers.check(&caller)).map_err(|status| status.code())
        };
        let [client, worker] = Role::ALL.map(|role| Some(authority.access(role).token));
        assert_eq!(call(client.clone(), Callers::Clients).await, Ok(()));
        assert_eq!(call(client.clone(), Callers::Workers).await, Err(Code::PermissionDenied));
        assert_eq!(call(worker.clone(), Callers::Clients).await, Err(Code::PermissionDenied));
        assert_eq!(call(worker.clone(), Callers::Workers).await, Ok(()));
        assert_eq!(call(worker, Callers::Both).await, Ok(()));
        let cut = client.map(|token| Secret::new(&token.reveal()[1..]));
        assert_eq!(call(cut, Callers::Clients).await, Err(Code::Unauthenticated));
        assert_eq!(call(Some(Secret::new("")), Callers::Both).await, Err(Code::Unauthenticated));
        assert_eq!(call(None, Callers::Both).await, Err(Code::Unauthenticated));
    }
}
