//! One connection to a coordinator, and the errors of its requests.

use powersweep_dataset::{Error, Kind, failure};
use powersweep_proto::client::{Address, Client, ConnectError, Target, words};
use powersweep_proto::{plain, v1};
use tonic::{Code, Status};

use super::{access, stored};

/// Connects once, without retries.
pub async fn connect(address: &Address) -> Result<Client, Error> {
    Target::new(address).map_err(not_connected)?.connect().await.map_err(not_connected)
}

/// A connection that failed as an error.
fn not_connected(error: ConnectError) -> Error {
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
pub fn refused(status: &Status) -> Error {
    let kind = match status.code() {
        Code::Unavailable | Code::DeadlineExceeded => Kind::Network,
        // A status with a cause comes from the connection, not from the coordinator.
        _ if std::error::Error::source(status).is_some() => Kind::Network,
        Code::InvalidArgument => Kind::Usage,
        _ => Kind::Refused,
    };
    Error::new(kind, words(status))
}

/// A refused request about an experiment. If the coordinator does not know the experiment, the name is wrong: the error has the
/// names that it knows.
pub async fn refused_about(client: &mut Client, status: &Status, experiment: &str) -> Error {
    let mut error = refused(status);
    if status.code() == Code::NotFound
        && let Ok(reply) = self::status(client, v1::StatusRequest::default()).await
    {
        let known: Vec<String> = reply.experiments.into_iter().map(|experiment| experiment.name).collect();
        if !known.iter().any(|name| name == experiment) {
            error = failure!(Usage, "{}", stored::unknown(experiment, &known));
        }
    }
    error
}

/// The state that a coordinator reports, safe to be shown on a terminal.
pub async fn status(client: &mut Client, request: v1::StatusRequest) -> Result<v1::StatusReply, Status> {
    let mut reply = client.status(request).await?.into_inner();
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
