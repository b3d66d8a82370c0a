//! Messages of the service to the driver.

use std::time::Duration;

use powersweep_proto::v1;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tonic::Status;

use crate::farm::{ConnId, Event, Farm, Reply, Request};

/// Messages to one worker.
pub(super) type Outbox = mpsc::Sender<Result<v1::FarmMessage, Status>>;

impl From<Event> for Command {
    fn from(event: Event) -> Command {
        Command::Event { event: Box::new(event), room: None }
    }
}

/// A message of the service to the driver.
pub(super) enum Command {
    /// A worker's stream, before its first message.
    Attach { conn: ConnId, outbox: Outbox },
    /// An event, and the room that its rows have in the queue.
    Event { event: Box<Event>, room: Option<OwnedSemaphorePermit> },
    /// A request that changes the state.
    Request { request: Request, reply: oneshot::Sender<Reply> },
    /// Reads the farm between two events.
    Read(Box<dyn FnOnce(&Farm) + Send>),
    /// Ends the coordinator once running tasks have ended, within a limit, and all rows are published.
    PrepareUpgrade { limit: Option<Duration>, reply: oneshot::Sender<Result<v1::PrepareUpgradeReply, Status>> },
    /// A request that only reads the state.
    Status { request: v1::StatusRequest, reply: oneshot::Sender<v1::StatusReply> },
}
