//! `powersweep serve`: a coordinator.

use powersweep_coordinator::{Tls, Tokens};

use crate::args::ServeArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::farm::{FarmOptions, LocalFarm};
use crate::{client, farm, inputs, interrupt, screen};

/// Serves until it is interrupted or another coordinator takes the data over.
pub fn run(args: &ServeArgs) -> Outcome {
    allow_many_connections();
    let token = inputs::token(args.token_file.as_deref())?;
    let worker = match &args.worker_token_file {
        Some(file) => inputs::token(Some(file))?,
        None => token.clone(),
    };
    let options = FarmOptions {
        data: args.data.data.clone(),
        listen: args.listen,
        tokens: Tokens { client: token, worker },
        tls: tls(args)?,
        insecure: args.insecure,
        take_over: args.take_over,
        local: None,
    };
    client::block_on(async {
        let stop = interrupt::token();
        let farm = LocalFarm::start(options, &stop).await?;
        let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
        let address = farm.handle().local_addr();
        screen::note(&format!(
            "powersweep: serving {} at {address}; to start a worker: powersweep worker --coordinator {scheme}://{address}",
            farm.location
        ));
        let lost = tokio::select! {
            () = stop.cancelled() => false,
            () = farm.lost() => true,
        };
        let ended = farm::explained(farm.end()).await;
        if lost {
            return Err(failure!(Fenced, "another coordinator has taken the data over; this one has stopped"));
        }
        ended.map(|()| Exit::Done)
    })
}

/// Each connection is an open file. Most systems allow 1,024 open files unless a program raises its limit.
fn allow_many_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::debug!("the limit of open files stays {:?}: {error}", limit.current);
    }
}

fn tls(args: &ServeArgs) -> Result<Option<Tls>, Failure> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let certificate_pem = inputs::pem(certificate, "CERTIFICATE")?;
            Ok(Some(Tls { certificate_pem, key_pem: inputs::pem(key, "PRIVATE KEY")? }))
        }
        _ => Ok(None),
    }
}
