//! Connections and requests of commands to a coordinator.

use std::collections::BTreeMap;
use std::future::Future;

use bytes::Bytes;
use powersweep_experiments::{Digest, Manifest};
use powersweep_proto::client::{Address, Client, ConnectError, Target, Tls, words};
use powersweep_proto::v1;
use powersweep_workloads::Library;
use tonic::{Code, Status};

use crate::args::CoordinatorArgs;
use crate::exit::{Exit, Failure, failure};
use crate::inputs;

/// Size of the pieces in which a log is uploaded.
const CHUNK_BYTES: usize = 1 << 20;

/// The default address of `serve`.
const DEFAULT_URL: &str = "http://127.0.0.1:7450";

/// Runs a command's asynchronous part.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failure!(Failure, "cannot start threads: {error}"))?;
    let result = runtime.block_on(work);
    // Background tasks must not delay the end of the program.
    runtime.shutdown_background();
    result
}

/// The coordinator's address, token and TLS settings from the command line.
pub fn address(args: &CoordinatorArgs) -> Result<Address, Failure> {
    let tls = args.ca.as_ref().map(|path| Ok(Tls { ca_pem: inputs::pem(path, "CERTIFICATE")? }));
    Ok(Address {
        url: args.coordinator.clone().unwrap_or_else(|| DEFAULT_URL.to_owned()),
        token: inputs::token(args.token_file.as_deref())?,
        insecure: args.insecure,
        tls: tls.transpose()?,
    })
}

/// Connects once, without retries.
pub async fn connect(address: &Address) -> Result<Client, Failure> {
    let failure = |error: ConnectError| match error {
        ConnectError::Address { .. } => failure!(Usage, "{error}"),
        ConnectError::Unreachable { ref reason, .. } => {
            let hint = if reason.contains("certificate") {
                "the certificates of --ca do not confirm the server's certificate; a self-signed one needs the server's \
                 address in subjectAltName, and basicConstraints CA:FALSE"
            } else {
                "start one with `powersweep serve`, or give the address of a running one with --coordinator"
            };
            failure!(Network, "{error}\n{hint}")
        }
    };
    Target::new(address).map_err(failure)?.connect().await.map_err(failure)
}

/// A failed or refused request as an error.
pub fn refused(status: &Status) -> Failure {
    let exit = match status.code() {
        Code::Unavailable | Code::DeadlineExceeded => Exit::Network,
        // A status with a cause comes from the connection, not from the coordinator.
        _ if std::error::Error::source(status).is_some() => Exit::Network,
        Code::InvalidArgument => Exit::Usage,
        _ => Exit::Refused,
    };
    Failure::new(exit, words(status))
}

/// The request that submits a manifest.
pub fn submission(manifest: &Manifest, digests: &BTreeMap<String, Digest>) -> v1::SubmitRequest {
    let digests = digests.iter().map(|(log, digest)| (log.clone(), Bytes::copy_from_slice(digest.as_bytes())));
    let (manifest, digests) = (manifest.text().to_owned(), digests.collect());
    v1::SubmitRequest { manifest, digests, user: user(), ..Default::default() }
}

/// Name of the user. It protects from mistakes, not from attacks: a user may set these variables.
fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    named.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}

/// Uploads the logs of a manifest that the coordinator lacks.
pub async fn upload_missing(
    client: &mut Client,
    manifest: &Manifest,
    digests: &BTreeMap<String, Digest>,
    missing: &[Bytes],
    library: &Library,
) -> Result<(), Failure> {
    for needed in manifest.logs() {
        let Some(digest) = digests.get(&needed.log) else { continue };
        if !missing.iter().any(|m| m[..] == digest.as_bytes()[..]) {
            continue;
        }
        let log = inputs::log(library, needed.format, &needed.log, needed.sha256)?;
        if log.digest != *digest {
            return Err(failure!(Workload, "the log {} changed during the submit", needed.log));
        }
        let text = Bytes::from(log.bytes);
        let digest = Bytes::copy_from_slice(digest.as_bytes());
        let pieces: Vec<v1::UploadLogRequest> = (0..text.len().max(1))
            .step_by(CHUNK_BYTES)
            .map(|at| v1::UploadLogRequest {
                digest: if at == 0 { digest.clone() } else { Bytes::new() },
                data: text.slice(at.min(text.len())..(at + CHUNK_BYTES).min(text.len())),
            })
            .collect();
        client.upload_log(tokio_stream::iter(pieces)).await.map_err(|status| refused(&status))?;
    }
    Ok(())
}
