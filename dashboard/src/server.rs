//! Connections, and what each path gives.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use futures::stream;
use powersweep_dataset::writing::Encoding;
use powersweep_proto::connections::{Caller, Connections, Door, FIRST_CALL_WAIT};
use powersweep_proto::v1;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::address::Query;
use crate::guard::{Guard, Refusal};
use crate::looks::Looks;
use crate::pages::{self, Live, Page};
use crate::{Farm, RowsQuery, assets};

/// Interval of the updates of an open page.
const UPDATE: Duration = Duration::from_secs(1);
/// Maximum number of connections, and of those without a request that has the cookie.
const CONNECTIONS_MAX: usize = 256;
const STRANGERS_MAX: usize = 64;
/// Bytes of a file that are sent at once.
const PIECE_BYTES: usize = 64 << 10;
/// Largest form.
const FORM_BYTES_MAX: usize = 16 << 10;
/// Headers of every answer. Scripts and styles come from this server alone, and so do frames around a page.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'self'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Where a dashboard listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A loopback address.
    Tcp(SocketAddr),
    /// The path of a socket, which only this user can open.
    Unix(PathBuf),
}

/// How a dashboard is served.
#[derive(Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: Place,
    /// Names of proxies by which browsers reach it.
    pub hosts: Vec<String>,
}

/// Why a dashboard cannot listen. Final.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address or socket cannot be used.
    #[error("cannot listen on {place}: {source}")]
    Listen {
        /// The address or path.
        place: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Other machines could connect.
    #[error(
        "{0} is not a loopback address: pages are not encrypted. Listen on 127.0.0.1:PORT or unix:PATH, and reach it by \
         ssh -L or a proxy"
    )]
    NotLoopback(SocketAddr),
}

/// A dashboard that listens.
pub struct Listening {
    socket: Socket,
    shared: Arc<Shared>,
    connections: Arc<Connections>,
}

enum Socket {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

struct Shared {
    guard: Guard,
    looks: Looks,
    /// Held while a file of rows is made.
    downloads: tokio::sync::Mutex<()>,
    /// Told the next link when one has been used.
    used: Box<dyn Fn(&str) + Send + Sync>,
    base: String,
}

impl Listening {
    /// Begins to listen. `used` is called with the next link each time a link has been used.
    pub async fn begin(
        options: Options,
        farm: Arc<dyn Farm>,
        used: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Listening, ListenError> {
        let socket = match options.listen {
            Place::Tcp(address) => tcp(address).await?,
            Place::Unix(path) => unix(path).await?,
        };
        let base = match &socket {
            Socket::Tcp(_, address) => format!("http://{address}/"),
            Socket::Unix(..) => "http://localhost:PORT/".to_owned(),
        };
        let (guard, looks) = (Guard::new(&options.hosts), Looks::new(farm));
        let shared =
            Arc::new(Shared { guard, looks, downloads: tokio::sync::Mutex::default(), used: Box::new(used), base });
        let connections = Arc::new(Connections::new(CONNECTIONS_MAX, STRANGERS_MAX, FIRST_CALL_WAIT));
        Ok(Listening { socket, shared, connections })
    }

    /// The link that opens the dashboard once.
    pub fn link(&self) -> String {
        self.shared.link()
    }

    /// Serves until the caller drops this future.
    pub async fn serve(self) -> std::io::Result<()> {
        let router = Router::new().fallback(answer).with_state(self.shared);
        match self.socket {
            Socket::Tcp(listener, _) => serve(Door::new(listener, self.connections), router).await,
            Socket::Unix(listener, path) => {
                let _removed = Removed(path);
                serve(Door::new(listener, self.connections), router).await
            }
        }
    }
}

async fn serve<L: Listener<Addr: std::fmt::Debug>>(door: Door<L>, router: Router) -> std::io::Result<()> {
    axum::serve(door, router.into_make_service_with_connect_info::<Caller>()).await
}

/// Removes a socket file at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn tcp(address: SocketAddr) -> Result<Socket, ListenError> {
    if !address.ip().is_loopback() {
        return Err(ListenError::NotLoopback(address));
    }
    let failed = |source| ListenError::Listen { place: address.to_string(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok(Socket::Tcp(listener, bound))
}

async fn unix(path: PathBuf) -> Result<Socket, ListenError> {
    let failed = |source| ListenError::Listen { place: path.display().to_string(), source };
    remove_dead(&path).await.map_err(failed)?;
    // From its first moment on, the file is this user's alone.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(&path);
    rustix::process::umask(mask);
    Ok(Socket::Unix(listener.map_err(failed)?, path))
}

/// Removes a socket that a killed dashboard has left; any other file stays.
async fn remove_dead(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match is_socket && UnixStream::connect(path).await.is_err() {
        true => std::fs::remove_file(path),
        false => Ok(()),
    }
}

impl Shared {
    fn link(&self) -> String {
        format!("{}?key={}", self.base, self.guard.key())
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(caller): ConnectInfo<Caller>,
    request: Request,
) -> Response {
    let mut response = match route(&shared, &caller, request).await {
        Ok(response) => response,
        Err(refusal) => (StatusCode::FORBIDDEN, html(pages::refused(refusal))).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn route(shared: &Arc<Shared>, caller: &Caller, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    shared.guard.check_host(&parts.headers)?;
    let name = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
    let query = Query::of(parts.uri.query().unwrap_or_default().as_bytes());
    if parts.method == Method::GET
        && let Some(key) = query.get("key")
        && let Some(cookie) = shared.guard.exchange(key)
    {
        (shared.used)(&shared.link());
        return Ok(([(header::SET_COOKIE, cookie)], html(pages::welcome())).into_response());
    }
    shared.guard.check(&parts.method, &parts.headers)?;
    caller.known();
    if parts.method == Method::POST {
        return Ok(change(shared, &name, &query, body).await);
    }
    if let Some(asset) = assets::find(&name) {
        let headers = [
            (header::CONTENT_TYPE, asset.media),
            (header::CONTENT_ENCODING, "gzip"),
            (header::CACHE_CONTROL, "private, max-age=600"),
        ];
        return Ok((headers, asset.gzip.clone()).into_response());
    }
    if name == "download" {
        return Ok(download(shared, &query).await);
    }
    let is_stream = name == "events";
    let name = if is_stream { query.get("page").unwrap_or_default() } else { &name };
    let Some(page) = Page::of(name, &query) else {
        return Ok((StatusCode::NOT_FOUND, html(pages::unknown())).into_response());
    };
    if is_stream {
        return Ok(updates(Arc::clone(shared), page).into_response());
    }
    let live = shared.looks.live(&page).await;
    let status = if live.found { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Ok((status, html(page.whole(&live))).into_response())
}

fn html(page: maud::Markup) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

/// Sends a file with rows, piece by piece.
async fn download(shared: &Shared, query: &Query) -> Response {
    let encoding = match query.get("format") {
        Some("csv") => Some((Encoding::Csv, "text/csv; charset=utf-8")),
        Some("parquet") => Some((Encoding::Parquet, "application/vnd.apache.parquet")),
        _ => None,
    };
    let name = query.get("name").filter(|name| !name.is_empty());
    let (Some((encoding, media)), Some(name)) = (encoding, name) else {
        return (StatusCode::NOT_FOUND, html(pages::unknown())).into_response();
    };
    // A file is made from all rows: one at a time.
    let _turn = shared.downloads.lock().await;
    let made = shared.looks.farm.download(&RowsQuery::of(name, query), encoding).await;
    let measured = made.and_then(|file| Ok((file.metadata().map_err(|error| error.to_string())?.len(), file)));
    let (bytes, file) = match measured {
        Ok((bytes, file)) => (bytes, tokio::fs::File::from_std(file)),
        Err(reason) => return (StatusCode::BAD_GATEWAY, html(pages::no_file(name, &reason))).into_response(),
    };
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let length = file.read(&mut piece).await?;
        piece.truncate(length);
        Ok::<_, std::io::Error>((length > 0).then_some((piece, file)))
    });
    // Names of experiments have letters, digits and a few marks; others are left out of the name of the file.
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    let ending = if encoding == Encoding::Csv { "csv" } else { "parquet" };
    let headers = [
        (header::CONTENT_TYPE, media.to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{plain}.{ending}\"")),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}

/// Sends the changing part of a page whenever it has changed.
fn updates(shared: Arc<Shared>, page: Page) -> impl IntoResponse {
    let stream = stream::unfold((shared, page, None::<Arc<Live>>), |(shared, page, last)| async move {
        loop {
            tokio::time::sleep(UPDATE).await;
            let now = shared.looks.live(&page).await;
            if last.as_ref().is_none_or(|last| last.html != now.html) {
                let event = Event::default().data(&now.html);
                return Some((Ok::<_, Infallible>(event), (shared, page, Some(now))));
            }
        }
    });
    // A comment now and then, so that a proxy keeps the connection and a closed one is noticed.
    Sse::new(stream).keep_alive(axum::response::sse::KeepAlive::default())
}

/// Carries out a form.
async fn change(shared: &Shared, name: &str, query: &Query, body: Body) -> Response {
    let form = to_bytes(body, FORM_BYTES_MAX).await.unwrap_or_default();
    let form = Query::of(&form);
    let experiment = query.get("name").unwrap_or_default();
    let action = (name == "change").then(|| pages::action(&form)).flatten();
    let Some(action) = action.filter(|_| !experiment.is_empty()) else {
        return (StatusCode::BAD_REQUEST, html(pages::unknown())).into_response();
    };
    let request =
        v1::ControlRequest { experiment: experiment.to_owned(), action: Some(action.clone()), any_owner: false };
    let reply = shared.looks.farm.control(request).await;
    shared.looks.forget();
    let status = if reply.is_ok() { StatusCode::OK } else { StatusCode::BAD_GATEWAY };
    (status, html(pages::changed(experiment, &action, reply))).into_response()
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::activity::Activity;
    use powersweep_dataset::survey::{Choice, Survey};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    use super::*;
    use crate::{CompareQuery, Difference, Launched, RowsPage};

    /// No farm answers.
    struct Gone;

    #[async_trait::async_trait]
    impl Farm for Gone {
        async fn status(&self, _: v1::StatusRequest) -> Result<v1::StatusReply, String> {
            Err("gone".to_owned())
        }

        async fn control(&self, _: v1::ControlRequest) -> Result<v1::ControlReply, String> {
            Err("gone".to_owned())
        }

        async fn rows(&self, _: &RowsQuery) -> Result<RowsPage, String> {
            Err("gone".to_owned())
        }

        async fn survey(&self, _: &str, _: &Choice, _: Option<&Survey>) -> Result<Survey, String> {
            Err("gone".to_owned())
        }

        async fn activity(&self, _: &str, _: Option<&Activity>) -> Result<Activity, String> {
            Err("gone".to_owned())
        }

        async fn compare(&self, _: &CompareQuery) -> Result<Difference, String> {
            Err("gone".to_owned())
        }

        async fn manifest(&self, _: &str) -> Result<Option<String>, String> {
            Err("gone".to_owned())
        }

        async fn download(&self, _: &RowsQuery, _: Encoding) -> Result<std::fs::File, String> {
            Err("gone".to_owned())
        }

        async fn output(&self, _: &str) -> Result<String, String> {
            Err("gone".to_owned())
        }

        async fn launched(&self) -> Option<Launched> {
            None
        }
    }

    /// A dashboard with these caps, or its own; its link.
    async fn started(connections: Option<Connections>) -> (SocketAddr, String) {
        let listen = Place::Tcp("127.0.0.1:0".parse().expect("an address"));
        let options = Options { listen, hosts: Vec::new() };
        let mut listening = Listening::begin(options, Arc::new(Gone), |_| {}).await.expect("a free port");
        listening.connections = connections.map_or(listening.connections, Arc::new);
        let Socket::Tcp(_, address) = &listening.socket else { panic!("it is no socket file") };
        let started = (*address, listening.link());
        tokio::spawn(listening.serve());
        started
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("the listener accepts")
    }

    /// The head and the first bytes of an answer; empty if the connection has ended.
    async fn ask(stream: &mut TcpStream, path: &str, cookie: &str) -> String {
        let address = stream.peer_addr().expect("it is open");
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\n\r\n");
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = vec![0; 64 << 10];
        let length = stream.read(&mut answer).await.unwrap_or_default();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_a_browser_out() {
        let (address, link) = started(None).await;
        let mut silent = Vec::new();
        for _ in 0..400 {
            silent.push(connect(address).await);
        }
        let (_, path) = link.split_once("/?").expect("a link");
        let answer = ask(&mut connect(address).await, &format!("/?{path}"), "").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        for stream in &mut silent[..300] {
            let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
        }
    }

    #[tokio::test]
    async fn a_connection_without_the_cookie_is_closed() {
        let connections = Connections::new(40, 20, Duration::from_millis(500));
        let (address, link) = started(Some(connections)).await;
        let (_, path) = link.split_once("/?").expect("a link");
        let mut browser = connect(address).await;
        let answer = ask(&mut browser, &format!("/?{path}"), "").await;
        let (_, cookie) = answer.split_once("set-cookie: ").expect("a cookie");
        let cookie = cookie.split(';').next().expect("its value").to_owned();
        let mut with_cookie = connect(address).await;
        assert!(!ask(&mut with_cookie, "/pages.css", &cookie).await.contains("403"));
        let (mut silent, mut refused) = (connect(address).await, connect(address).await);
        assert!(ask(&mut refused, "/", "").await.contains("403 Forbidden"));
        for stream in [&mut silent, &mut refused] {
            let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
        }
        assert!(!ask(&mut with_cookie, "/pages.css", &cookie).await.is_empty(), "the browser's stays");
    }
}
