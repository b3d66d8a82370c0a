//! TLS between processes, with certificates that `openssl` makes.

use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

/// Makes a certificate and its key, `NAME.pem` and `NAME.key`; false without `openssl`.
fn certificate(sandbox: &Sandbox, name: &str) -> bool {
    let mut openssl = sandbox.command("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=powersweep", "-newkey", "ec"]);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", &format!("{name}.key")]);
    openssl.args(["-out", &format!("{name}.pem"), "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let made = openssl.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
    made.is_ok_and(|status| status.success())
}

#[test]
fn tls_needs_a_trusted_certificate_and_its_key() {
    let sandbox = Sandbox::new();
    if !certificate(&sandbox, "own") {
        println!("skipped: openssl is not installed");
        return;
    }
    assert!(certificate(&sandbox, "other"));
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    sandbox.write("none.pem", "no certificate\n");
    let mut served =
        sandbox.start(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "own.pem", "--tls-key", "own.key"]);
    let url = served.says("powersweep: serving").rsplit(' ').next().expect("a line has words").to_owned();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");

    let status = |url: &str, more: &[&str]| sandbox.run(&[&["status", "--coordinator", url], more].concat());
    status(&url, &[]).exits(2).says(&["needs the certificates to trust", "--ca"]);
    status(&url, &["--ca", "none.pem"]).exits(2).says(&["none.pem: the file has no certificate in PEM form"]);
    status(&url, &["--ca", "other.pem"]).exits(7).says(&["invalid peer certificate", "--ca", "subjectAltName"]);
    status(&url.replace("https", "http"), &[]).exits(7).says(&["the connection failed"]);

    let mut worker = sandbox.start(&["worker", "--slots", "1", "--coordinator", &url, "--ca", "own.pem"]);
    worker.says("connected to");
    let submit = ["submit", "sweep.toml", "--wait", "--coordinator", &url, "--ca", "own.pem"];
    sandbox.run(&submit).exits(0).prints(&["4 to run"]);
    status(&url, &["--ca", "own.pem"]).exits(0).prints(&["finished"]);
    for running in [worker, served] {
        running.signal("TERM");
        running.wait().exits(0);
    }

    let serve = |certificate: &str, key: &str| {
        sandbox.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key])
    };
    serve("none.pem", "own.key").exits(2).says(&["none.pem: the file has no certificate"]);
    serve("own.pem", "own.pem").exits(2).says(&["own.pem: the file has no private key"]);
    serve("own.pem", "other.key").exits(2).says(&["the TLS certificate or key cannot be used"]);
}
