//! Workers in Kubernetes: the scaler is asked as KEDA asks it, and starts and ends real workers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use powersweep_proto::keda::external_scaler_client::ExternalScalerClient;
use powersweep_proto::keda::{GetMetricsRequest, ScaledObjectRef};
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::Channel;

use crate::farm::{terminate, worker};
use crate::rows;
use crate::sandbox::{Running, Sandbox};
use crate::sweeps::synthetic;

/// Far longer than the sweeps here take.
const PATIENCE: Duration = Duration::from_secs(120);
/// KEDA's polling interval, shortened.
const POLL: Duration = Duration::from_millis(250);

/// KEDA and the autoscaler of Kubernetes, for one ScaledObject.
struct Keda {
    runtime: Runtime,
    client: ExternalScalerClient<Channel>,
    of: ScaledObjectRef,
    /// Value of the metric for each pod.
    target: f64,
    /// The messages of the open stream.
    pushed: Arc<Mutex<Vec<bool>>>,
}

fn scaled_object(metadata: &[(&str, &str)]) -> ScaledObjectRef {
    let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ScaledObjectRef { name: "w".to_owned(), namespace: "n".to_owned(), scaler_metadata: metadata.collect() }
}

impl Keda {
    /// Asks for the metric once, and opens the stream.
    fn start(address: &str, metadata: &[(&str, &str)]) -> Keda {
        let runtime = Runtime::new().expect("a runtime starts");
        let (of, pushed) = (scaled_object(metadata), Arc::default());
        let (client, target) = runtime.block_on(async {
            let mut client = ExternalScalerClient::connect(format!("http://{address}")).await.expect("it listens");
            let refused = client.get_metric_spec(scaled_object(&[])).await.expect_err("settings are missing");
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().contains("slotsPerWorker"), "{refused}");
            let specs = client.get_metric_spec(of.clone()).await.expect("it answers").into_inner().metric_specs;
            assert_eq!(specs.len(), 1);
            assert_eq!(specs[0].target_size as f64, specs[0].target_size_float, "old and new versions of KEDA agree");
            (client, specs[0].target_size_float)
        });
        let keda = Keda { runtime, client, of, target, pushed };
        keda.listen();
        keda
    }

    fn listen(&self) {
        let (mut client, of, pushed) = (self.client.clone(), self.of.clone(), Arc::clone(&self.pushed));
        self.runtime.spawn(async move {
            let mut stream = client.stream_is_active(of).await.expect("it answers").into_inner();
            while let Ok(Some(message)) = stream.message().await {
                pushed.lock().expect("no test has failed").push(message.result);
            }
        });
    }

    fn is_active(&self) -> bool {
        let mut client = self.client.clone();
        self.runtime.block_on(client.is_active(self.of.clone())).expect("it answers").into_inner().result
    }

    /// The number of pods that the autoscaler asks for.
    fn pods(&self) -> usize {
        let mut client = self.client.clone();
        let request = GetMetricsRequest {
            scaled_object_ref: Some(self.of.clone()),
            metric_name: "powersweep-workers".to_owned(),
        };
        let values = self.runtime.block_on(client.get_metrics(request)).expect("it answers").into_inner().metric_values;
        assert_eq!(values.len(), 1);
        assert_eq!(values[0].metric_value as f64, values[0].metric_value_float);
        (values[0].metric_value_float / self.target).ceil() as usize
    }

    fn pushed(&self) -> Vec<bool> {
        self.pushed.lock().expect("no test has failed").clone()
    }

    /// Starts and ends workers until none is wanted; returns the greatest number that ran at a time. Ends the youngest:
    /// Kubernetes does not ask which one is idle.
    fn scale(&self, sandbox: &Sandbox, url: &str, names: &mut BTreeSet<String>) -> usize {
        let (begun, mut workers, mut most) = (Instant::now(), Vec::<Running>::new(), 0);
        loop {
            assert!(begun.elapsed() < PATIENCE, "{} workers are wanted for ever", self.pods());
            let wanted = if self.is_active() { self.pods().max(1) } else { 0 };
            while workers.len() < wanted {
                let name = format!("pod-{}", names.len());
                workers.push(worker(sandbox, &name, url, &["--fail-on-signal"]));
                names.insert(name);
            }
            most = most.max(workers.len());
            for ended in workers.drain(wanted..).rev() {
                ended.signal("TERM");
                ended.wait().exits(130);
            }
            if wanted == 0 {
                return most;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// From no worker to the most that the work is worth, back to none, and up again for more work.
#[test]
fn keda_scales_workers_from_none_to_none() {
    let sandbox = Sandbox::new();
    let (mut served, url) = sandbox.serve(&["--scaler", "127.0.0.1:0"]);
    let line = served.says("KEDA can ask at");
    let address = line.rsplit(' ').next().expect("a line has words");
    // Half a second for each waiting task: a sweep of seconds is worth several workers.
    let settings =
        [("scalerAddress", address), ("slotsPerWorker", "1"), ("targetMinutes", "0.01"), ("maxWorkers", "3")];
    let keda = Keda::start(address, &settings);
    assert_eq!((keda.is_active(), keda.pods()), (false, 0));
    let manifest = |seeds: u32| synthetic("sweep", seeds).replace("jobs_count = 60", "jobs_count = 20000");
    let mut names = BTreeSet::new();
    for (seeds, tasks) in [(400, 800), (405, 810)] {
        sandbox.write("sweep.toml", manifest(seeds));
        sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0);
        let begun = Instant::now();
        while keda.pushed().last() != Some(&true) {
            assert!(begun.elapsed() < PATIENCE, "the stream does not tell that tasks wait: {:?}", keda.pushed());
            std::thread::sleep(POLL);
        }
        let most = keda.scale(&sandbox, &url, &mut names);
        assert!(tasks > 800 || most == 3, "at most {most} workers ran");
        let status = sandbox.run(&["status", "--format", "json", "--coordinator", &url]).exits(0).json();
        assert_eq!(status["experiments"][0]["done"], tasks, "no worker was wanted before the end");
        assert_eq!(keda.pods(), 0);
    }
    let begun = Instant::now();
    while keda.pushed() != [false, true, false, true, false] {
        assert!(begun.elapsed() < PATIENCE, "{:?}", keda.pushed());
        std::thread::sleep(POLL);
    }
    terminate(served);
    let rows = rows::read(&sandbox.path("results/data"), "sweep", "tasks");
    let texts = |column: &str| -> BTreeSet<String> {
        rows.iter().filter_map(|row| row[column].as_str().map(str::to_owned)).collect()
    };
    let by = texts("worker");
    assert_eq!((rows.len(), texts("task_id").len()), (810, 810));
    assert!(by.len() >= 3 && by.is_subset(&names), "{by:?}");
}

/// The scaler's listener ends with the coordinator, whatever streams are open, and a taken port is an error.
#[test]
fn an_open_stream_does_not_keep_the_coordinator() {
    let sandbox = Sandbox::new();
    let (mut served, _) = sandbox.serve(&["--scaler", "127.0.0.1:0"]);
    let line = served.says("KEDA can ask at");
    let address = line.rsplit(' ').next().expect("a line has words");
    let keda = Keda::start(address, &[("slotsPerWorker", "4")]);
    assert!(!keda.is_active());
    sandbox
        .run(&["serve", "--data", "other", "--listen", "127.0.0.1:0", "--scaler", address])
        .exits(7)
        .says(&["cannot listen on", address]);
    let begun = Instant::now();
    terminate(served);
    assert!(begun.elapsed() < Duration::from_secs(20), "the end took {:?}", begun.elapsed());
}

/// A Secret is mounted as files of root for the pod's group, behind links.
#[test]
fn an_access_file_may_come_from_a_secret() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    const POD: u32 = 65534;
    if !crate::fire::is_root("a test of files of root") {
        return;
    }
    let sandbox = Sandbox::new();
    let mode = |name: &str, mode| {
        std::fs::set_permissions(sandbox.path(name), std::fs::Permissions::from_mode(mode)).expect("it is there");
    };
    mode("", 0o755);
    std::fs::create_dir_all(sandbox.path("bin")).expect("it can be made");
    std::fs::copy(crate::sandbox::BINARY, sandbox.path("bin/powersweep")).expect("it can be copied");
    let (served, _) = sandbox.serve(&[]);
    let exported = sandbox.run(&["access", "export", "--client"]).exits(0).stdout;
    sandbox.write("access/..now/client.json", exported);
    symlink("..now/client.json", sandbox.path("access/client.json")).expect("it can be linked");
    let file = "access/..now/client.json";
    chown(sandbox.path(file), Some(0), Some(POD)).expect("root may");
    let status = || {
        let mut command = sandbox.command("setpriv");
        command.args([&format!("--reuid={POD}"), &format!("--regid={POD}"), "--clear-groups"]);
        command.arg(sandbox.path("bin/powersweep")).args(["status", "--access", "access"]);
        sandbox.spawn(command).wait()
    };
    mode(file, 0o440);
    status().exits(0).prints(&["no experiment yet"]);
    for open in [0o444, 0o460] {
        mode(file, open);
        status().exits(8).says(&["belongs to user 0"]);
    }
    terminate(served);
}
