//! Connecting: the coordinator's addresses in turn, with pauses between attempts.

use std::time::Duration;

use powersweep_proto::client::{self, Address, Client, ConnectError};

use crate::options::{WorkerError, WorkerOptions};

/// First pause between two attempts to connect, and the longest.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(3);

/// The addresses of the coordinator, checked at the start.
pub(super) struct Targets {
    /// At least one.
    targets: Vec<client::Target>,
    turn: usize,
}

impl Targets {
    /// Checks addresses, TLS and token.
    pub(super) fn new(options: &WorkerOptions) -> Result<Targets, WorkerError> {
        if options.endpoints.is_empty() {
            return Err(WorkerError::Options("a worker needs the address of a coordinator".to_owned()));
        }
        let address = |url: &String| Address {
            url: url.clone(),
            token: options.token.clone(),
            insecure: options.insecure,
            tls: options.tls.clone(),
        };
        let targets = options.endpoints.iter().map(|url| client::Target::new(&address(url)));
        let targets = targets.collect::<Result<_, _>>().map_err(|e| WorkerError::Options(e.to_string()))?;
        Ok(Targets { targets, turn: 0 })
    }

    /// The address to try now.
    pub(super) fn address(&self) -> &str {
        self.targets[self.turn].url()
    }

    /// All addresses, for messages.
    pub(super) fn addresses(&self) -> String {
        self.targets.iter().map(client::Target::url).collect::<Vec<_>>().join(", ")
    }

    /// Switches to the next address.
    pub(super) fn turn(&mut self) {
        self.turn = (self.turn + 1) % self.targets.len();
    }

    /// Opens a connection to the present address.
    pub(super) async fn connect(&self) -> Result<Client, String> {
        self.targets[self.turn].connect().await.map_err(|error| match error {
            // The caller's message has the address.
            ConnectError::Unreachable { reason, .. } => reason,
            other => other.to_string(),
        })
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
    use super::*;

    fn problem(options: &WorkerOptions) -> String {
        Targets::new(options).err().expect("not usable").to_string()
    }

    #[test]
    fn addresses_are_checked_before_anything_starts() {
        let options = |address: &str| WorkerOptions::new(address, 1, "w");
        assert!(problem(&WorkerOptions { endpoints: Vec::new(), ..options("") }).contains("needs the address"));
        assert!(problem(&options("not an address")).contains("not an address"));
        assert!(problem(&options("https://host:1")).contains("PEM"));
        let token = |address: &str| WorkerOptions { token: Some("t".into()), ..options(address) };
        assert!(problem(&token("http://host:1")).contains("token"));
        assert!(Targets::new(&token("http://127.0.0.1:1")).is_ok());
        assert!(Targets::new(&WorkerOptions { insecure: true, ..token("http://host:1") }).is_ok());
        let second = WorkerOptions { endpoints: vec!["http://a:1".into(), "ftp://b:1".into()], ..options("") };
        assert!(problem(&second).contains("ftp://b:1"));
    }

    #[test]
    fn addresses_take_turns() {
        let options = WorkerOptions {
            endpoints: vec!["http://a:1".into(), "http://b:1".into()],
            ..WorkerOptions::new("", 1, "w")
        };
        let mut targets = Targets::new(&options).expect("usable");
        assert_eq!(targets.addresses(), "http://a:1, http://b:1");
        let mut next = || {
            targets.turn();
            targets.address().to_owned()
        };
        assert_eq!([next(), next(), next()], ["http://b:1", "http://a:1", "http://b:1"]);
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
