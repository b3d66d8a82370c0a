//! Connecting: the coordinator's addresses, with pauses between attempts.

use std::time::Duration;

use powersweep_proto::client::{Address, Client, ConnectError, Target, is_final};
use tonic::Status;

use crate::options::WorkerError;

/// First pause between two attempts to connect, and the longest.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(3);

/// The coordinator, checked at the start.
pub(super) struct Coordinator {
    address: Address,
    target: Target,
    /// The address that answered last, or all of them.
    reached: String,
}

impl Coordinator {
    /// Checks access, addresses and token.
    pub(super) fn new(address: &Address) -> Result<Coordinator, WorkerError> {
        let target = Target::new(address).map_err(unusable)?;
        Ok(Coordinator { address: address.clone(), reached: target.urls(), target })
    }

    /// The address of the present connection, or all addresses, for messages.
    pub(super) fn reached(&self) -> &str {
        &self.reached
    }

    /// Whether another attempt would be refused, too: not if the tokens were rotated since the access was read.
    pub(super) fn denies(&self, status: &Status) -> bool {
        let renewed = || Target::new(&self.address).is_ok_and(|now| !now.has_token_of(&self.target));
        is_final(status) && !renewed()
    }

    /// Opens a connection. The access is read again: a new coordinator may have other addresses, or another token.
    pub(super) async fn connect(&mut self) -> Result<Client, String> {
        self.target = Target::new(&self.address).map_err(|error| error.to_string())?;
        self.reached = self.target.urls();
        let (client, url) = self.target.reach().await.map_err(|error| match error {
            // The caller's message has the addresses.
            ConnectError::Unreachable { reason, .. } => reason,
            other => other.to_string(),
        })?;
        self.reached = url;
        Ok(client)
    }
}

fn unusable(error: ConnectError) -> WorkerError {
    match error {
        ConnectError::Access(error) => WorkerError::Access(error),
        error => WorkerError::Options(error.to_string()),
    }
}

/// Pauses between attempts: doubling, with a spread that differs between workers so that many do not return at once.
pub(super) struct BackOff {
    next: Duration,
    seed: u64,
}

impl BackOff {
    pub(super) fn new(worker_id: uuid::Uuid) -> BackOff {
        BackOff { next: BACK_OFF_MIN, seed: worker_id.as_u64_pair().1 }
    }

    /// The next pause: 0.7 to 1.3 times its nominal length.
    pub(super) fn pause(&mut self) -> Duration {
        // A step of a linear congruential generator (Knuth, MMIX); its high bits spread well enough.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = 0.7 + 0.6 * (self.seed >> 40) as f64 / f64::from(1 << 24);
        let pause = self.next.mul_f64(spread);
        self.next = (self.next * 2).min(BACK_OFF_MAX);
        pause
    }

    /// Starts again with the shortest pause.
    pub(super) fn reset(&mut self) {
        self.next = BACK_OFF_MIN;
    }
}

#[cfg(test)]
mod tests {
    use powersweep_proto::access::{Access, Ca, Role, Secret, Source};

    use super::*;

    #[test]
    fn access_is_checked_before_anything_starts() {
        let access = |address: &str| Access {
            role: Some(Role::Client),
            addresses: vec![address.to_owned()],
            ca: Ca::None,
            token: Secret::new("t"),
            protocol: 0,
        };
        let of = |access: Access| Address::of(Source::Given(Box::new(access)), Role::Worker);
        let problem = |address: &Address| Coordinator::new(address).err().expect("not usable").to_string();
        assert!(problem(&of(access("h:1"))).contains("worker.json"));
        let worker = |address: &str| of(Access { role: Some(Role::Worker), ..access(address) });
        assert!(problem(&worker("not an address")).contains("not an address"));
        assert!(problem(&worker("http://host:1")).contains("--insecure"));
        assert!(Coordinator::new(&Address { insecure: true, ..worker("http://host:1") }).is_ok());
    }

    #[test]
    fn pauses_double_within_bounds_and_start_again() {
        let mut back_off = BackOff::new(uuid::Uuid::from_u128(5));
        let pauses: Vec<Duration> = (0..10).map(|_| back_off.pause()).collect();
        assert!(pauses[0] >= BACK_OFF_MIN.mul_f64(0.7) && pauses[0] <= BACK_OFF_MIN.mul_f64(1.3));
        assert!(pauses[9] >= BACK_OFF_MAX.mul_f64(0.7) && pauses[9] <= BACK_OFF_MAX.mul_f64(1.3));
        back_off.reset();
        assert!(back_off.pause() <= BACK_OFF_MIN.mul_f64(1.3));
    }
}
