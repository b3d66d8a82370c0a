//! Object stores by their addresses: `s3://`, `gs://` and `az://`.

use super::signer::{SignError, SignedPut, Signer};
use async_trait::async_trait;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::signer::{Method, Signer as StoreSigner};
use object_store::{Error, ObjectStore, ObjectStoreScheme};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Amazon S3 copies an object without replacing another one only by a multipart upload. Another value of the user comes
/// later, and counts.
const S3_COPIES: (&str, &str) = ("aws_copy_if_not_exists", "multipart");

/// Azure asks each PUT for the kind of object that it makes.
const AZURE_HEADERS: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];

type Opened = (Arc<dyn ObjectStore>, Arc<dyn Signer>);

/// The object store at an address, rooted there, and the signer of addresses below it.
pub(super) fn open(url: &Url, options: impl Iterator<Item = (String, String)>) -> Result<Opened, Error> {
    let (scheme, prefix) = ObjectStoreScheme::parse(url)?;
    let options: Vec<_> = options.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    // Unknown options are those of other programs.
    macro_rules! build {
        ($builder:ty, $defaults:expr) => {{
            let defaults = $defaults.into_iter().map(|(name, value): (&str, &str)| (name.to_owned(), value.to_owned()));
            let begin = <$builder>::new().with_url(url.as_str());
            let builder = defaults.chain(options).fold(begin, |builder, (name, value)| match name.parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            });
            Arc::new(builder.build()?)
        }};
    }
    match scheme {
        ObjectStoreScheme::AmazonS3 => Ok(both(build!(AmazonS3Builder, [S3_COPIES]), prefix, &[])),
        ObjectStoreScheme::GoogleCloudStorage => Ok(both(build!(GoogleCloudStorageBuilder, []), prefix, &[])),
        ObjectStoreScheme::MicrosoftAzure => Ok(both(build!(MicrosoftAzureBuilder, []), prefix, AZURE_HEADERS)),
        other => Err(Error::NotSupported { source: format!("{other:?} is no object store").into() }),
    }
}

fn both<S: ObjectStore + StoreSigner>(
    store: Arc<S>,
    prefix: Path,
    headers: &'static [(&'static str, &'static str)],
) -> Opened {
    let signer = Arc::new(Signing { store: Arc::clone(&store), prefix: prefix.clone(), headers });
    let rooted: Arc<dyn ObjectStore> =
        if prefix.as_ref().is_empty() { store } else { Arc::new(PrefixStore::new(store, prefix)) };
    (rooted, signer)
}

/// Signs paths below a prefix.
#[derive(Debug)]
struct Signing<S> {
    store: Arc<S>,
    prefix: Path,
    headers: &'static [(&'static str, &'static str)],
}

#[async_trait]
impl<S: StoreSigner> Signer for Signing<S> {
    async fn sign_put(&self, path: &Path, valid: Duration) -> Result<SignedPut, SignError> {
        let whole = Path::from_iter(self.prefix.parts().chain(path.parts()));
        let url = self.store.signed_url(Method::PUT, &whole, valid).await?;
        let headers = self.headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ok(SignedPut { url: url.into(), headers: headers.collect::<HashMap<_, _>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address of an object, as far as the query, and the query.
    async fn address(data: &str, options: &[(&str, &str)]) -> (String, String, SignedPut) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (_, signer) = open(&data.parse().expect("a URL"), options).expect("an address");
        let path = Path::from("inbox/e/a part.parquet");
        let signed = signer.sign_put(&path, Duration::from_secs(300)).await.expect("signed");
        let (address, query) = signed.url.split_once('?').expect("a signature");
        (address.to_owned(), query.to_owned(), signed)
    }

    #[tokio::test]
    async fn an_address_is_of_one_object_for_a_time() {
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")];
        let (url, query, signed) = address("s3://bucket/some/data", &keys).await;
        assert_eq!(url, "https://s3.eu-west-1.amazonaws.com/bucket/some/data/inbox/e/a%20part.parquet");
        assert!(query.contains("X-Amz-Expires=300&") && query.contains("X-Amz-Signature="), "{query}");
        assert!(signed.headers.is_empty());
        let signature = |url: &str| url.rsplit_once("X-Amz-Signature=").expect("a signature").1.to_owned();
        let (_, _, other) = address("s3://bucket/other", &keys).await;
        assert_ne!(signature(&signed.url), signature(&other.url), "it does not fit another object");
    }

    #[tokio::test]
    async fn azure_is_told_the_kind_of_object() {
        let keys = [("AZURE_STORAGE_ACCOUNT_NAME", "account"), ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0")];
        let (url, query, signed) = address("az://container/data", &keys).await;
        assert_eq!(url, "https://account.blob.core.windows.net/container/data/inbox/e/a%20part.parquet");
        assert!(query.contains("sig=") && query.contains("se="), "{query}");
        assert_eq!(signed.headers.get("x-ms-blob-type").map(String::as_str), Some("BlockBlob"));
    }
}
