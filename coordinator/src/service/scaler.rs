//! The external scaler of KEDA: it tells how many workers there is work for, and KEDA starts and ends pods.
//!
//! KEDA has no token of this coordinator, so the scaler has a listener of its own. It tells numbers and changes nothing.
//! The metric is the number of workers and its target is one, so that Kubernetes runs as many pods.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::Stream;
use powersweep_proto::connections::{Connections, FIRST_CALL_WAIT};
use powersweep_proto::keda::external_scaler_server::{ExternalScaler, ExternalScalerServer};
use powersweep_proto::keda::{
    DESCRIPTORS, GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec,
    MetricValue, ScaledObjectRef,
};
use powersweep_proto::v1;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::requests::Requests;
use super::{HEADERS_BYTES_MAX, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, OPEN_BYTES_MAX, listen as connections_of};

mod wanted;

use self::wanted::{Settings, wanted};

/// Name of the metric.
const METRIC: &str = "powersweep-workers";
/// Maximum number of connections, and of connections without a call. KEDA opens one for each ScaledObject.
const CONNECTIONS_MAX: usize = 64;
const STRANGERS_MAX: usize = 16;
/// Maximum number of calls at a time over one connection.
const STREAMS_MAX: u32 = 16;
/// Age up to which a status is used again: any number of callers costs the farm one status in this time. An open stream
/// looks for a change as often.
const STATUS_AGE: Duration = Duration::from_secs(1);

/// The service.
struct Scaler {
    requests: Requests,
    connections: Arc<Connections>,
    status: Mutex<Option<(Instant, v1::StatusReply)>>,
    ended: CancellationToken,
}

/// The service, shared by its open streams.
#[derive(Clone)]
struct Shared(Arc<Scaler>);

impl Scaler {
    async fn wanted(&self, settings: &Settings) -> Result<u64, Status> {
        let status = &mut *self.status.lock().await;
        match status {
            Some((at, known)) if at.elapsed() < STATUS_AGE => Ok(wanted(known, settings)),
            _ => {
                let new = self.requests.status(v1::StatusRequest::default()).await?;
                let (_, known) = status.insert((Instant::now(), new));
                Ok(wanted(known, settings))
            }
        }
    }

    /// The settings of a call, which is the first sign that its connection is no stranger's.
    fn admit<T>(&self, request: &Request<T>, of: &ScaledObjectRef) -> Result<Settings, Status> {
        // KEDA shows the reason among the events of the ScaledObject.
        let settings = Settings::parse(&of.scaler_metadata).map_err(Status::invalid_argument)?;
        self.connections.known(request.remote_addr());
        Ok(settings)
    }
}

#[tonic::async_trait]
impl ExternalScaler for Shared {
    type StreamIsActiveStream = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

    async fn is_active(&self, request: Request<ScaledObjectRef>) -> Result<Response<IsActiveResponse>, Status> {
        let settings = self.0.admit(&request, request.get_ref())?;
        let result = self.0.wanted(&settings).await? > 0;
        Ok(Response::new(IsActiveResponse { result }))
    }

    async fn stream_is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<Self::StreamIsActiveStream>, Status> {
        let settings = self.0.admit(&request, request.get_ref())?;
        Ok(Response::new(Box::pin(changes(Arc::clone(&self.0), settings))))
    }

    async fn get_metric_spec(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<GetMetricSpecResponse>, Status> {
        self.0.admit(&request, request.get_ref())?;
        let spec = MetricSpec { metric_name: METRIC.to_owned(), target_size: 1, target_size_float: 1.0 };
        Ok(Response::new(GetMetricSpecResponse { metric_specs: vec![spec] }))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        let of = request.get_ref().scaled_object_ref.clone().unwrap_or_default();
        let settings = self.0.admit(&request, &of)?;
        let workers = self.0.wanted(&settings).await?;
        let value = MetricValue {
            metric_name: METRIC.to_owned(),
            metric_value: i64::try_from(workers).unwrap_or(i64::MAX),
            metric_value_float: workers as f64,
        };
        Ok(Response::new(GetMetricsResponse { metric_values: vec![value] }))
    }
}

/// Whether a worker is wanted: now, and after each change.
fn changes(scaler: Arc<Scaler>, settings: Settings) -> impl Stream<Item = Result<IsActiveResponse, Status>> + Send {
    futures::stream::try_unfold(None, move |told: Option<bool>| {
        let (scaler, settings) = (Arc::clone(&scaler), settings.clone());
        async move {
            loop {
                let result = scaler.wanted(&settings).await? > 0;
                if told != Some(result) {
                    return Ok(Some((IsActiveResponse { result }, Some(result))));
                }
                tokio::select! {
                    () = tokio::time::sleep(STATUS_AGE) => {}
                    () = scaler.ended.cancelled() => return Ok(None),
                }
            }
        }
    })
}

/// Serves until `ended`.
pub(super) fn listen(listener: TcpListener, requests: Requests, ended: CancellationToken) {
    let connections = Arc::new(Connections::new(CONNECTIONS_MAX, STRANGERS_MAX, FIRST_CALL_WAIT));
    let scaler =
        Scaler { requests, connections: Arc::clone(&connections), status: Mutex::default(), ended: ended.clone() };
    let described = "the descriptors were generated by this build";
    let reflection_v1 = reflection().build_v1().expect(described);
    let reflection_v1alpha = reflection().build_v1alpha().expect(described);
    let router = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADERS_BYTES_MAX)
        .add_service(ExternalScalerServer::new(Shared(Arc::new(scaler))).max_decoding_message_size(OPEN_BYTES_MAX))
        .add_service(reflection_v1.max_decoding_message_size(OPEN_BYTES_MAX))
        .add_service(reflection_v1alpha.max_decoding_message_size(OPEN_BYTES_MAX));
    let incoming = connections_of::incoming(listener, None, connections);
    tokio::spawn(async move {
        if let Err(error) = router.serve_with_incoming_shutdown(incoming, ended.cancelled_owned()).await {
            tracing::warn!("the listener of --scaler has ended: {error}");
        }
    });
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS)
}
