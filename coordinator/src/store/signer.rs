//! Signed addresses: the holder of one can store one object, without credentials of the object store.

use async_trait::async_trait;
use object_store::path::Path;
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

/// Why there is no signature.
pub type SignError = Box<dyn Error + Send + Sync>;

/// An address for the PUT of one object. It is a secret, and so cannot be printed.
pub struct SignedPut {
    /// The address, with the signature.
    pub url: String,
    /// Headers that the PUT must have.
    pub headers: HashMap<String, String>,
}

/// Signs addresses with the credentials of an object store.
#[async_trait]
pub trait Signer: std::fmt::Debug + Send + Sync {
    /// The address of an object below DATA, valid for this time.
    async fn sign_put(&self, path: &Path, valid: Duration) -> Result<SignedPut, SignError>;
}
