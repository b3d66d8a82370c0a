//! `powersweep access`: the access files of a coordinator.

use powersweep::place::access;
use powersweep_coordinator::access::{fingerprint, rotate as rotate_tokens};
use powersweep_proto::access::{Role, write_private};
use serde_json::json;

use crate::args::{AccessExportArgs, AccessRotateArgs, AccessShowArgs};
use crate::exit::{Outcome, failure};
use crate::screen;

/// Shows the files without their secrets.
pub fn show(args: &AccessShowArgs) -> Outcome {
    let folder = access::folder(&args.data.location()?)?;
    let [client, worker] = [access::read(&folder, Role::Client)?, access::read(&folder, Role::Worker)?];
    let ca = client.ca_sha256().map(|digest| digest.to_string());
    let [client_token, worker_token] = [&client, &worker].map(|access| fingerprint(access.token.reveal()));
    if args.output.is_json() {
        return screen::print_json(json!({
            "folder": folder, "addresses": client.addresses, "ca_sha256": ca, "protocol": client.protocol,
            "tokens": { "client": client_token, "worker": worker_token },
        }));
    }
    let mut table = screen::table();
    table.add_row(["folder", &folder.display().to_string()]);
    table.add_row(["addresses", &client.addresses.join(", ")]);
    table.add_row(["certificate, SHA-256", ca.as_deref().unwrap_or("none: the coordinator runs with --insecure")]);
    table.add_row(["protocol", &client.protocol.to_string()]);
    table.add_row(["client.json", &format!("token {client_token}...: submit, status, control, delete")]);
    table.add_row(["worker.json", &format!("token {worker_token}...: run tasks")]);
    screen::print(&table.to_string())
}

/// Replaces tokens.
pub fn rotate(args: &AccessRotateArgs) -> Outcome {
    let folder = access::folder(&args.data.location()?)?;
    let roles: &[Role] = match (args.client, args.worker) {
        (true, _) => &[Role::Client],
        (_, true) => &[Role::Worker],
        _ => &Role::ALL,
    };
    rotate_tokens(&folder, roles, args.grace).map_err(|error| access::refused(&error))?;
    let names: Vec<&str> = roles.iter().map(|role| role.file_name()).collect();
    let former = match args.grace.is_zero() {
        true => "the former tokens are not valid any more".to_owned(),
        false => format!("the former tokens stay valid for {}", screen::duration(args.grace.as_secs_f64())),
    };
    screen::print(&format!(
        "new tokens in {} ({}); {former}. Copies on other machines must be replaced",
        folder.display(),
        names.join(", ")
    ))
}

/// Prints or writes a file or a join line.
pub fn export(args: &AccessExportArgs) -> Outcome {
    let role = if args.client { Role::Client } else { Role::Worker };
    let found = access::read(&access::folder(&args.data.location()?)?, role)?;
    let text = if args.join { found.join_line() } else { found.text().trim_end().to_owned() };
    let Some(output) = &args.output else { return screen::print_exact(&text) };
    let written = write_private(output, &(text + "\n"), false).map_err(|error| access::refused(&error))?;
    if !written {
        return Err(failure!(Usage, "{} exists already", output.display()));
    }
    screen::print(&format!("{} is the access of a {role}: its reader can act as one", output.display()))
}
