//! Connections and requests of commands to a coordinator.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use powersweep_experiments::{Digest, Manifest};
use powersweep_inputs::library::Library;
use powersweep_proto::access::Role;
use powersweep_proto::client::{Address, Client, ConnectError, Target, words};
use powersweep_proto::{plain, v1};
use tonic::{Code, Status};

use crate::args::{CoordinatorArgs, DataArgs};
use crate::exit::{Failure, Kind, failure};
use crate::inputs::{self, Files};
use crate::{access, screen};

/// Interval of the attempts to reach a coordinator that does not answer.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// Size of the pieces in which a log is uploaded.
const CHUNK_BYTES: usize = 1 << 20;

/// Runs a command's asynchronous part.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failure!(Failure, "cannot start threads: {error}"))?;
    let result = runtime.block_on(work);
    // Background tasks must not delay the end of the program.
    runtime.shutdown_background();
    result
}

/// How to reach the coordinator: the one of the command line, else the one that serves the data.
pub fn address(args: &CoordinatorArgs, data: &DataArgs, role: Role) -> Result<Address, Failure> {
    let access = access::find(args, data, role)?;
    Ok(Address {
        urls: args.coordinator.iter().cloned().collect(),
        insecure: args.insecure,
        ..Address::of(access, role)
    })
}

/// Connects once, without retries.
pub async fn connect(address: &Address) -> Result<Client, Failure> {
    Target::new(address).map_err(not_connected)?.connect().await.map_err(not_connected)
}

/// Connects again to a coordinator that does not answer: it may be restarting.
pub async fn reconnect(args: &CoordinatorArgs, data: &DataArgs, lost: &Failure) -> Result<Client, Failure> {
    screen::note(&format!("powersweep: waiting for the coordinator: {}", lost.message));
    loop {
        tokio::time::sleep(RECONNECT_INTERVAL).await;
        // Its address may have changed.
        let connected = match address(args, data, Role::Client) {
            Ok(address) => connect(&address).await,
            Err(failure) => Err(failure),
        };
        match connected {
            Ok(farm) => {
                screen::note("powersweep: the coordinator answers again");
                return Ok(farm);
            }
            Err(failure) if failure.kind == Kind::Network => {}
            Err(failure) => return Err(failure),
        }
    }
}

/// A connection that failed as an error.
pub fn not_connected(error: ConnectError) -> Failure {
    match error {
        ConnectError::Access(error) => access::refused(&error),
        ConnectError::Address { .. } => failure!(Usage, "{error}"),
        ConnectError::Unreachable { ref reason, .. } => {
            let hint = if reason.contains("certificate") {
                "another coordinator than that of the access file is there: get its own file with `powersweep access \
                 export` where it runs, and give it with --access"
            } else {
                "start one with `powersweep serve`, or give --data, --access or --coordinator for a running one"
            };
            failure!(Network, "{error}\n{hint}")
        }
    }
}

/// A failed or refused request as an error.
pub fn refused(status: &Status) -> Failure {
    let exit = match status.code() {
        Code::Unavailable | Code::DeadlineExceeded => Kind::Network,
        // A status with a cause comes from the connection, not from the coordinator.
        _ if std::error::Error::source(status).is_some() => Kind::Network,
        Code::InvalidArgument => Kind::Usage,
        _ => Kind::Refused,
    };
    Failure::new(exit, words(status))
}

/// The state that a coordinator reports, safe to be shown on a terminal.
pub async fn status(farm: &mut Client, request: v1::StatusRequest) -> Result<v1::StatusReply, Status> {
    let mut reply = farm.status(request).await?.into_inner();
    let clean = |text: &mut String| *text = plain(text).into_owned();
    [&mut reply.build, &mut reply.data, &mut reply.storage_reason].into_iter().for_each(clean);
    for experiment in &mut reply.experiments {
        [&mut experiment.name, &mut experiment.reason, &mut experiment.owner].into_iter().for_each(clean);
        for failure in &mut experiment.failures {
            [&mut failure.message, &mut failure.worker, &mut failure.reproduce].into_iter().for_each(clean);
        }
    }
    reply.workers.iter_mut().for_each(|worker| [&mut worker.name, &mut worker.address].into_iter().for_each(clean));
    Ok(reply)
}

/// The request that submits a manifest.
pub fn submission(manifest: &Manifest, files: &Files) -> v1::SubmitRequest {
    let digests = files.digests.iter().map(|(log, digest)| (log.clone(), Bytes::copy_from_slice(digest.as_bytes())));
    let (manifest, digests) = (manifest.text().to_owned(), digests.collect());
    v1::SubmitRequest { manifest, digests, user: user(), ledgers: files.ledgers(), ..Default::default() }
}

/// Name of the user. It protects from mistakes, not from attacks: a user may set these variables.
pub fn user() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    named.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}

/// Uploads the files of a manifest that the coordinator lacks.
pub async fn upload_missing(
    client: &mut Client,
    manifest: &Manifest,
    digests: &BTreeMap<String, Digest>,
    missing: &[Bytes],
    library: &Library,
) -> Result<(), Failure> {
    for needed in manifest.files() {
        let Some(digest) = digests.get(&needed.name) else { continue };
        if !missing.iter().any(|m| m[..] == digest.as_bytes()[..]) {
            continue;
        }
        let file = inputs::file(library, &needed)?;
        if file.digest != *digest {
            return Err(failure!(Workload, "the file {} changed during the submit", needed.name));
        }
        let text = Bytes::from(file.bytes);
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
