//! `powersweep dashboard`: pages in the browser. It is a client of the coordinator, as `status` is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use powersweep_dashboard::{Farm, Listening, Options, Place};
use powersweep_proto::access::Role;
use powersweep_proto::client::{Address, Client};
use powersweep_proto::v1;
use tokio::sync::Mutex;
use tonic::{Code, Status};

use crate::args::DashboardArgs;
use crate::exit::{Exit, Failure, OrExit, Outcome, failure};
use crate::{client, interrupt, screen};

/// A coordinator that does not answer within this time is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves pages until it is interrupted.
pub fn run(args: &DashboardArgs) -> Outcome {
    let listen = place(&args.listen)?;
    let address = client::address(&args.coordinator, &args.data, Role::Client)?;
    client::block_on(async {
        let stop = interrupt::token();
        let farm = Arc::new(Connected { address, client: Mutex::default() });
        let options = Options { listen, hosts: args.host.clone() };
        let next = |link: &str| screen::note(&format!("powersweep: the link was used; another browser: {link}"));
        let listening = Listening::begin(options, farm, next).await.or_exit(Exit::Network)?;
        screen::note(&format!("powersweep: the dashboard opens with this link, once: {}", listening.link()));
        tokio::select! {
            ended = listening.serve() => ended.or_exit(Exit::Network)?,
            () = stop.cancelled() => {}
        }
        Ok(Exit::Done)
    })
}

fn place(listen: &str) -> Result<Place, Failure> {
    if let Some(path) = listen.strip_prefix("unix:") {
        return Ok(Place::Unix(path.into()));
    }
    let address = listen
        .parse()
        .map_err(|_| failure!(Usage, "--listen {listen} is neither an address such as 127.0.0.1:8080 nor unix:PATH"))?;
    Ok(Place::Tcp(address))
}

/// A coordinator that may move: each new connection reads the access file again.
struct Connected {
    address: Address,
    client: Mutex<Option<Client>>,
}

impl Connected {
    async fn ask<T>(&self, request: impl AsyncFnOnce(&mut Client) -> Result<T, Status>) -> Result<T, String> {
        let asked = async {
            let mut client = self.client().await?;
            request(&mut client).await.map_err(|status| client::refused(&status))
        };
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let answer = answer.unwrap_or_else(|_| Err(failure!(Network, "no answer within {} s", PATIENCE.as_secs())));
        if answer.as_ref().is_err_and(|failure| matches!(failure.exit, Exit::Network | Exit::Refused)) {
            *self.client.lock().await = None;
        }
        answer.map_err(|failure| failure.message)
    }

    async fn client(&self) -> Result<Client, Failure> {
        let mut kept = self.client.lock().await;
        if let Some(client) = &*kept {
            return Ok(client.clone());
        }
        let client = client::connect(&self.address).await?;
        Ok(kept.insert(client).clone())
    }
}

#[async_trait]
impl Farm for Connected {
    async fn status(&self, request: v1::StatusRequest) -> Result<v1::StatusReply, String> {
        let look = async |farm: &mut Client| match client::status(farm, request).await {
            Err(status) if status.code() == Code::NotFound => Ok(v1::StatusReply::default()),
            answer => answer,
        };
        self.ask(look).await
    }

    async fn control(&self, request: v1::ControlRequest) -> Result<v1::ControlReply, String> {
        self.ask(async |farm| Ok(farm.control(request).await?.into_inner())).await
    }
}
