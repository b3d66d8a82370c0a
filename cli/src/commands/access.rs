//! `powersweep access`: the access files of a coordinator.

use std::path::Path;

use powersweep::place::access;
use powersweep_coordinator::access::{add_client, clients, fingerprint, revoke_client, rotate as rotate_tokens};
use powersweep_proto::access::{Access, AccessError, Role, write_private};
use serde_json::json;

use crate::args::{AccessAddArgs, AccessExportArgs, AccessForm, AccessRevokeArgs, AccessRotateArgs, AccessShowArgs};
use crate::exit::{Failure, Outcome, failure};
use crate::screen;

/// Shows the files without their secrets.
pub fn show(args: &AccessShowArgs) -> Outcome {
    let folder = access::folder(&args.data.location()?)?;
    let [client, worker] = [access::read(&folder, Role::Client)?, access::read(&folder, Role::Worker)?];
    let ca = client.ca_sha256().map(|digest| digest.to_string());
    let [client_token, worker_token] = [&client, &worker].map(|access| fingerprint(access.token.reveal()));
    let clients = clients(&folder).map_err(|error| access::refused(&error))?;
    let clients: Vec<_> = clients.iter().map(|(name, token)| (name, fingerprint(token.reveal()))).collect();
    if args.output.is_json() {
        let clients: Vec<_> = clients.iter().map(|(name, token)| json!({ "name": name, "token": token })).collect();
        return screen::print_json(json!({
            "folder": folder, "addresses": client.addresses, "ca_sha256": ca, "protocol": client.protocol,
            "tokens": { "client": client_token, "worker": worker_token, "clients": clients },
        }));
    }
    let mut table = screen::table();
    table.add_row(["folder", &folder.display().to_string()]);
    table.add_row(["addresses", &client.addresses.join(", ")]);
    table.add_row(["certificate, SHA-256", ca.as_deref().unwrap_or("none: the coordinator runs with --insecure")]);
    table.add_row(["protocol", &client.protocol.to_string()]);
    table.add_row(["client.json", &format!("token {client_token}...: submit, status, control, delete")]);
    table.add_row(["worker.json", &format!("token {worker_token}...: run tasks")]);
    for (name, token) in clients {
        table.add_row(["client", &format!("{name}, token {token}...: submit, status, control of own experiments")]);
    }
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
    let folder = access::folder(&args.data.location()?)?;
    let Some(name) = &args.name else {
        let role = args.client.then_some(Role::Client).or(args.worker.then_some(Role::Worker));
        let role =
            role.ok_or_else(|| failure!(Usage, "whose access? --worker, --client, or --name NAME of a client"))?;
        return give(&access::read(&folder, role)?, &args.form, &format!("a {role}"));
    };
    let refused = |error: AccessError| access::refused(&error);
    let found = clients(&folder).map_err(refused)?.into_iter().find(|(client, _)| client == name);
    let Some((_, token)) = found else {
        return Err(failure!(Usage, "there is no client {name}: `powersweep access add {name}` adds it"));
    };
    give(&Access { token, ..access::read(&folder, Role::Client)? }, &args.form, name)
}

/// Adds a client and prints or writes its access.
pub fn add(args: &AccessAddArgs) -> Outcome {
    let folder = access::folder(&args.data.location()?)?;
    let operators = access::read(&folder, Role::Client)?;
    if let Some(output) = args.form.output.as_deref().filter(|output| output.symlink_metadata().is_ok()) {
        return Err(exists(output));
    }
    let token = add_client(&folder, &args.name).map_err(|error| access::refused(&error))?;
    give(&Access { token, ..operators }, &args.form, &args.name).inspect_err(|_| {
        // Nobody has the token.
        let _ = revoke_client(&folder, &args.name);
    })
}

/// Ends the token of a client.
pub fn revoke(args: &AccessRevokeArgs) -> Outcome {
    let (folder, name) = (access::folder(&args.data.location()?)?, &args.name);
    revoke_client(&folder, name).map_err(|error| access::refused(&error))?;
    screen::print(&format!(
        "the token of {name} ends, within a second if a coordinator runs; experiments of {name} stay"
    ))
}

/// Prints the access, or writes it to a new file. `bearer`: who acts with it.
fn give(found: &Access, form: &AccessForm, bearer: &str) -> Outcome {
    let text = if form.join { found.join_line() } else { found.text().trim_end().to_owned() };
    let Some(output) = &form.output else { return screen::print_exact(&text) };
    if !write_private(output, &(text + "\n"), false).map_err(|error| access::refused(&error))? {
        return Err(exists(output));
    }
    screen::print(&format!("{} is the access of {bearer}: its reader can act as {bearer}", output.display()))
}

fn exists(output: &Path) -> Failure {
    failure!(Usage, "{} exists already", output.display())
}
