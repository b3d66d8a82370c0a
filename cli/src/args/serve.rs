//! The command line of `powersweep serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;

use super::DataArgs;

/// Where `serve` listens by default.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7450);

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Address to listen on; 0.0.0.0:7450 for workers on other machines.
    #[arg(long, default_value_t = LISTEN, env = "POWERSWEEP_LISTEN")]
    pub listen: SocketAddr,
    /// Another address of this coordinator, HOST:PORT, for the access files: of a proxy, or a published port of a
    /// container; may be repeated.
    #[arg(long, value_name = "ADDRESS", env = "POWERSWEEP_ADVERTISE", value_delimiter = ',')]
    pub advertise: Vec<String>,
    /// Serve without encryption; callers need access files all the same. Only for trusted networks.
    #[arg(long, env = "POWERSWEEP_INSECURE")]
    pub insecure: bool,
    /// Serve numbers for Prometheus at http://ADDRESS/metrics, without a token; a loopback address, such as
    /// 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS", env = "POWERSWEEP_METRICS")]
    pub metrics: Option<SocketAddr>,
    /// Tell KEDA, which starts workers in Kubernetes, at this address how many there is work for; without a token, so let
    /// a network policy keep others out.
    #[arg(long, value_name = "ADDRESS", env = "POWERSWEEP_SCALER")]
    pub scaler: Option<SocketAddr>,
    /// Let workers send rows of optional tables (jobs, series, accounts) to the object store of the data themselves, by
    /// addresses that this coordinator signs. Workers that do not reach the store send them to this coordinator.
    #[arg(long, env = "POWERSWEEP_DIRECT_UPLOADS")]
    pub direct_uploads: bool,
    /// Take the data over from a coordinator that still seems to run.
    #[arg(long)]
    pub take_over: bool,
}
