//! The tests of `shared_files` on NFS: with the kernel's server and client, or else with an NFS server and client of user
//! space, the programs `ganesha.nfsd` and `fuse-nfs`.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::farm::{Farm, port};
use super::shared_files::{MACHINES, Mounts, a_killed_owner, a_suspended_owner, scene, text};
use super::try_system;

#[test]
fn the_record_of_a_live_owner_counts_and_that_of_a_killed_one_goes_stale() {
    a_killed_owner(scene(nfs));
}

#[test]
#[ignore = "two minutes: `.ci/full nfs`"]
fn a_suspended_owner_stops_when_it_comes_back() {
    a_suspended_owner(scene(nfs));
}

fn nfs(farm: &Farm) -> Result<Mounts, String> {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has = |name: &str| known.lines().any(|line| line.split_whitespace().last() == Some(name));
    if has("nfs") && has("nfsd") { kernel(farm) } else { user_space(farm) }
}

/// Exports a folder by the kernel's server and mounts it twice.
fn kernel(farm: &Farm) -> Result<Mounts, String> {
    let export = format!("127.0.0.1:{}", text(&farm.sandbox.path("served")));
    try_system("exportfs", &["-o", "rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1950", &export])?;
    let mut mounts = Mounts::new(Some(["exportfs", "-u", &export].map(str::to_owned).to_vec()));
    for (mount, _) in MACHINES {
        // Without `nosharecache` both mounts would be one; `nolock` keeps locks on the machine.
        let options = "vers=3,nolock,nosharecache,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60";
        mounts.mount("mount", &["-t", "nfs", "-o", options, &export], &farm.sandbox.path(mount))?;
    }
    println!("the kernel's NFS server and client: NFS 3, attributes cached for 60 s");
    Ok(mounts)
}

/// Serves a folder by NFS 3 on free ports, and mounts it twice.
fn user_space(farm: &Farm) -> Result<Mounts, String> {
    for program in ["rpcinfo", "ganesha.nfsd", "fuse-nfs"] {
        let found = try_system("which", &[program]);
        found.map_err(|_| {
            format!("the kernel has no NFS (nfs, nfsd in /proc/filesystems), and there is no {program}")
        })?;
    }
    try_system("rpcinfo", &["-p", "127.0.0.1"]).map_err(|error| format!("rpcbind does not run: {error}"))?;
    let (folder, nfs_port, mount_port) = (farm.sandbox.path("served"), port(), port());
    let config = format!(
        "NFS_CORE_PARAM {{ NFS_Port = {nfs_port}; MNT_Port = {mount_port}; Enable_NLM = false; Enable_RQUOTA = false; \
         Protocols = 3; Bind_addr = 127.0.0.1; }}\n\
         EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /served; Access_Type = RW; Squash = No_Root_Squash; \
         SecType = sys; Protocols = 3; Transports = TCP; PrivilegedPort = false; FSAL {{ Name = VFS; }} }}\n",
        path = text(&folder)
    );
    let config = farm.sandbox.write("ganesha.conf", config);
    let [log, pid] = ["ganesha.log", "ganesha.pid"].map(|name| farm.sandbox.path(name));
    let mut server = Command::new("ganesha.nfsd");
    server.args(["-F", "-f", text(&config), "-L", text(&log), "-p", text(&pid)]);
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut mounts = Mounts::new(None);
    mounts.keep(server.map_err(|error| format!("ganesha.nfsd: {error}"))?);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", nfs_port)).is_err() {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err(format!("ganesha.nfsd: {}", std::fs::read_to_string(&log).unwrap_or_default()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let share = format!("nfs://127.0.0.1{}?nfsport={nfs_port}&mountport={mount_port}&version=3", text(&folder));
    for (mount, _) in MACHINES {
        // Names and attributes are cached for 60 s, as by the defaults of the kernel's client.
        mounts.mount("fuse-nfs", &["-n", &share, "-E", "60", "-T", "60", "-m"], &farm.sandbox.path(mount))?;
    }
    println!("an NFS server and client of user space: NFS 3, names and attributes cached for 60 s");
    Ok(mounts)
}
