//! `dashboard`: the real binary serves pages of a real farm, over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::access::Stranger;
use crate::farm::{terminate, worker};
use crate::sandbox::{Running, Sandbox};
use crate::tables::SLOW;

/// Far longer than an answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A dashboard with the cookie of one browser.
pub(crate) struct Pages {
    pub(crate) running: Running,
    port: String,
    link: String,
    cookie: String,
}

/// The answer to a request.
pub(crate) struct Answer {
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn of(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        Answer { head: head.to_lowercase(), body: body.to_owned() }
    }

    fn code(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    #[track_caller]
    pub(crate) fn gives(self, code: u16, texts: &[&str]) -> Answer {
        assert_eq!(self.code(), code, "{}\n{}", self.head, self.body);
        self.says(texts);
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.body.contains(text), "{text:?} in {}", self.body);
        }
    }
}

impl Pages {
    pub(crate) fn open(sandbox: &Sandbox, args: &[&str]) -> Pages {
        let mut running = sandbox.start(&[&["dashboard"], args].concat());
        let line = running.says("opens with this link");
        let link = line.rsplit(' ').next().expect("a link").to_owned();
        let port = link.split(['/', ':']).nth(4).expect("a port").to_owned();
        let mut pages = Pages { running, port, link, cookie: String::new() };
        let key = pages.link.rsplit('/').next().expect("a query").to_owned();
        let welcome = pages.send("GET", &format!("/{key}"), &[], "").gives(200, &[]);
        let cookie = welcome.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        assert!(cookie.ends_with("; httponly; samesite=strict"), "no path, and no script reads it: {cookie}");
        pages.cookie = cookie.split(';').next().expect("a pair").to_owned();
        pages
    }

    /// Sends a request; `headers` come after `Host` unless they have one.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect(method, path, headers, body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server closes the connection");
        Answer::of(&String::from_utf8_lossy(&answer))
    }

    fn connect(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        stream.write_all(request(method, path, headers, body).as_bytes()).expect("it is read");
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[("Cookie", &self.cookie)], "")
    }

    fn post(&self, path: &str, form: &str) -> Answer {
        self.send("POST", path, &[("Cookie", &self.cookie), ("Sec-Fetch-Site", "same-origin")], form)
    }

    /// Asks until the page has a text.
    #[track_caller]
    pub(crate) fn until(&self, path: &str, text: &str) -> Answer {
        self.wait_until(path, |html| html.contains(text))
    }

    /// Asks until the page is as it should be.
    #[track_caller]
    pub(crate) fn wait_until(&self, path: &str, is_right: impl Fn(&str) -> bool) -> Answer {
        let begun = Instant::now();
        loop {
            let answer = self.get(path);
            if is_right(&answer.body) {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{path} shows {}", answer.body);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str("Host: localhost\r\n");
    }
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    format!("{text}\r\n{body}")
}

/// Every task fails: its deadline passes.
const FAILING: [&str; 2] = ["--task-deadline", "1ms"];

#[test]
fn requests_without_the_cookie_a_known_host_or_an_own_origin_are_refused() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let pages = Pages::open(&sandbox, &["--host", "proxy.example.org"]);
    for path in ["/", "/workers", "/experiment?name=e", "/events?page=workers", "/style.css", "/page.js"] {
        let refused = pages.send("GET", path, &[], "").gives(403, &["Open the link"]);
        assert!(refused.head.contains("content-security-policy: default-src 'none'"), "{}", refused.head);
        pages.send("GET", path, &[("Cookie", "powersweep=1")], "").gives(403, &["Open the link"]);
    }
    let key = pages.link.rsplit('/').next().expect("a query");
    pages.send("GET", &format!("/{key}"), &[], "").gives(403, &["works once"]);
    let cookie = ("Cookie", pages.cookie.as_str());
    pages.send("GET", "/", &[cookie, ("Host", "evil.example:80")], "").gives(403, &["--host NAME"]);
    pages.send("GET", "/", &[cookie, ("Host", "proxy.example.org")], "").gives(200, &["no experiment yet"]);
    for more in [&[][..], &[("Origin", "http://evil.example")], &[("Sec-Fetch-Site", "cross-site")]] {
        let headers = [&[cookie], more].concat();
        pages.send("POST", "/change?name=e", &headers, "action=cancel").gives(403, &["own pages"]);
    }
    for method in ["DELETE", "PUT", "PATCH"] {
        pages.send(method, "/change?name=e", &[cookie, ("Sec-Fetch-Site", "same-origin")], "").gives(403, &[]);
    }
    let process = std::fs::read(format!("/proc/{}/cmdline", pages.running.id())).expect("it runs");
    let secret = key.rsplit('=').next().expect("a key");
    assert!(!String::from_utf8_lossy(&process).contains(secret));
    assert!(!pages.get("/").body.contains(pages.cookie.rsplit('=').next().expect("a secret")));
    sandbox.run(&["dashboard", "--listen", "0.0.0.0:0"]).exits(7).says(&["not a loopback address"]);
    sandbox.run(&["dashboard", "--listen", "nowhere"]).exits(2).says(&["unix:PATH"]);
    terminate(pages.running);
    terminate(served);
}

#[test]
fn pages_show_a_sweep_and_change_it_under_any_prefix() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let pages = Pages::open(&sandbox, &[]);
    pages.get("/").gives(200, &["no experiment yet", "Skip to the content"]);
    // The sweep must not end before the test cancels it.
    sandbox.write("slow.toml", SLOW.replace("jobs_count = 6000", "jobs_count = 60000"));
    sandbox.run(&["submit", "slow.toml"]).exits(0);
    let running = worker(&sandbox, "w<1>", "", &[]);
    pages.until("/experiments", "experiment?name=slow");
    for path in ["/experiment?name=slow", "/node/host/8080/experiment?name=slow"] {
        let page = pages.until(path, " tasks done").gives(200, &["Each cell is one task", "leased to a worker"]);
        assert!(page.body.len() < 60_000 && !page.body.contains("\"/"), "links are relative: {}", page.body);
        assert!(!page.body.contains("http://") && !page.body.contains("https://"));
    }
    pages.until("/workers", "w&lt;1&gt;").gives(200, &["Slot time", "leased to"]);
    pages.until("/workers", " MiB</td>");
    pages.get("/experiment?name=nothing").gives(404, &["no experiment of this name"]);
    pages.get("/nothing").gives(404, &["no such page"]);
    pages.get("/htmx.min.js").gives(200, &[]);
    pages.post("/p/change?name=slow", "action=priority&priority=7").gives(200, &["priority is 7"]);
    pages.post("/change?name=slow", "action=pause").gives(200, &["The experiment is paused"]);
    pages.until("/", "paused").gives(200, &[]);
    pages.post("/change?name=slow", "action=resume").gives(200, &["to run"]);
    pages.post("/change?name=slow", "action=cancel").gives(200, &["The experiment is cancelled"]);
    pages.post("/change?name=slow", "action=priority&priority=x").gives(400, &[]);
    pages.post("/change?name=slow", "action=delete").gives(400, &[]);
    pages.post("/change?name=nothing", "action=pause").gives(502, &["Not changed"]);
    terminate(running);
    terminate(pages.running);
    terminate(served);
}

#[test]
fn failed_tasks_are_shown_with_their_command_and_tried_again() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let pages = Pages::open(&sandbox, &[]);
    sandbox.write("slow.toml", SLOW);
    sandbox.run(&["submit", "slow.toml"]).exits(0);
    let running = worker(&sandbox, "w", "", &FAILING);
    pages.until("/experiment?name=slow", "failures?name=slow");
    pages.until("/failures?name=slow", "Retry deadline").gives(200, &["powersweep simulate", "Attempt", "Copy"]);
    pages.post("/change?name=slow", "action=retry&kind=deadline").gives(200, &["tried again"]);
    pages.post("/change?name=slow", "action=retry&kind=nonsense").gives(400, &[]);
    // It may have ended by itself, because a task ignored its deadline.
    drop(running);
    terminate(pages.running);
    terminate(served);
}

#[test]
fn an_open_page_is_updated_and_survives_a_restart_of_the_coordinator() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let pages = Pages::open(&sandbox, &[]);
    let cookie = [("Cookie", pages.cookie.as_str())];
    let mut stream = pages.connect("GET", "/events?page=experiments", &cookie, "");
    let mut heard = String::new();
    let mut until = |text: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(text) {
            let read = stream.read(&mut buffer).expect("an event comes");
            assert!(read > 0, "the stream ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        heard.clear();
    };
    until("data: ");
    terminate(served);
    until("The coordinator has not answered for");
    pages.get("/").gives(200, &["The coordinator has not answered for", "its last answer"]);
    // On another port: the access file is read again.
    let (served, _) = sandbox.serve(&[]);
    sandbox.write("slow.toml", SLOW);
    sandbox.run(&["submit", "slow.toml"]).exits(0);
    until("experiment?name=slow");
    assert!(!pages.get("/").body.contains("has not answered"));
    terminate(pages.running);
    terminate(served);
}

#[test]
fn a_socket_belongs_to_its_user_alone() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let path = sandbox.path("d.sock");
    let mut running = sandbox.start(&["dashboard", "--listen", "unix:d.sock"]);
    running.says("opens with this link");
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).expect("it listens");
    stream.write_all(request("GET", "/", &[], "").as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    Answer::of(&answer).gives(403, &["Open the link"]);
    // A second dashboard cannot use the socket of a running one, but can replace the socket that a killed one has left.
    sandbox.run(&["dashboard", "--listen", "unix:d.sock"]).exits(7).says(&["cannot listen"]);
    drop(running);
    let mut running = sandbox.start(&["dashboard", "--listen", "unix:d.sock"]);
    running.says("opens with this link");
    terminate(running);
    assert!(!path.exists(), "it is removed at the end");
    terminate(served);
}

#[test]
fn a_second_user_of_the_machine_sees_nothing() {
    let Some(stranger) = Stranger::new() else { return };
    let sandbox = Sandbox::new();
    // The stranger can enter the folder.
    std::fs::set_permissions(sandbox.path(""), std::fs::Permissions::from_mode(0o755)).expect("modes can be set");
    sandbox.write("slow.toml", SLOW);
    let (served, _) = sandbox.serve(&[]);
    sandbox.run(&["submit", "slow.toml"]).exits(0);
    let pages = Pages::open(&sandbox, &[]);
    pages.until("/experiments", "slow");
    for path in ["/", "/experiments", "/results?name=slow", "/events?page=experiments", "/?key=1"] {
        let request = format!("GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n");
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{} && printf '{request}' >&3 && cat <&3", pages.port);
        let answer = stranger.start(&sandbox, "bash", &["-c", &script]).exits(0).stdout;
        Answer::of(&answer).gives(403, &["Open the link"]);
        assert!(!answer.contains("slow"), "{answer}");
    }
    let mut socket = sandbox.start(&["dashboard", "--listen", "unix:d.sock"]);
    socket.says("opens with this link");
    stranger.start(&sandbox, "test", &["-S", "d.sock"]).exits(0);
    // A connection needs the permission to write.
    stranger.start(&sandbox, "test", &["-w", "d.sock"]).exits(1);
    terminate(socket);
    terminate(pages.running);
    terminate(served);
}
