//! Authorisation: one token for clients, one for workers.

use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// Bearer tokens; `None` admits every caller.
#[derive(Clone, Default)]
pub struct Tokens {
    /// For submit, status, flush, control, and uploading and fetching logs.
    pub client: Option<String>,
    /// For work streams, fetching logs and uploading parts.
    pub worker: Option<String>,
}

/// Callers that a call admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Worker,
    Either,
}

impl Tokens {
    /// Whether clients and workers need a token.
    pub fn are_complete(&self) -> bool {
        self.client.is_some() && self.worker.is_some()
    }

    /// Admits a caller, or says why not.
    pub(super) fn check(&self, metadata: &MetadataMap, role: Role) -> Result<(), Status> {
        let accepted: &[&Option<String>] = match role {
            Role::Client => &[&self.client],
            Role::Worker => &[&self.worker],
            Role::Either => &[&self.client, &self.worker],
        };
        if accepted.iter().any(|token| token.is_none()) {
            return Ok(());
        }
        let header = metadata.get("authorization").and_then(|value| value.to_str().ok());
        let Some(given) = header.and_then(|value| value.strip_prefix("Bearer ")) else {
            return Err(Status::new(
                Code::Unauthenticated,
                "this coordinator needs a token: give --token-file or POWERSWEEP_TOKEN",
            ));
        };
        if accepted.iter().copied().flatten().any(|token| same(token, given)) {
            return Ok(());
        }
        let other = [&self.client, &self.worker].into_iter().flatten().any(|token| same(token, given));
        Err(match other {
            true => Status::new(Code::PermissionDenied, "this token is for another kind of caller"),
            false => Status::new(
                Code::Unauthenticated,
                "the token is not known: give the coordinator's with --token-file or POWERSWEEP_TOKEN",
            ),
        })
    }
}

/// Compares in constant time, so that the time does not reveal the first difference.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tokens: &Tokens, token: Option<&str>, role: Role) -> Result<(), Code> {
        let mut metadata = MetadataMap::new();
        if let Some(token) = token {
            metadata.insert("authorization", format!("Bearer {token}").parse().expect("ascii"));
        }
        tokens.check(&metadata, role).map_err(|status| status.code())
    }

    #[test]
    fn a_token_admits_its_own_kind_of_caller_only() {
        let tokens = Tokens { client: Some("cli".into()), worker: Some("wrk".into()) };
        assert_eq!(call(&tokens, Some("cli"), Role::Client), Ok(()));
        assert_eq!(call(&tokens, Some("wrk"), Role::Client), Err(Code::PermissionDenied));
        assert_eq!(call(&tokens, Some("wrk"), Role::Either), Ok(()));
        assert_eq!(call(&tokens, Some("wrx"), Role::Worker), Err(Code::Unauthenticated));
        assert_eq!(call(&tokens, None, Role::Worker), Err(Code::Unauthenticated));
        assert_eq!(call(&Tokens::default(), None, Role::Worker), Ok(()));
    }
}
