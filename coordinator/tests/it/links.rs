//! Deletion of a dataset whose folder has files of others, or links to them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use powersweep_coordinator::publish::part_path;
use powersweep_coordinator::service::{ServeOptions, serve};
use powersweep_coordinator::store::{Location, SlateStore, Store};
use powersweep_proto::v1;
use powersweep_results::Table;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use uuid::Uuid;

use crate::store_samples::{a_part, stage_jobs};

async fn opened() -> (tempfile::TempDir, SlateStore) {
    let data = tempfile::tempdir().expect("a folder");
    let location = Location::directory(data.path()).expect("a path");
    let store = SlateStore::open(&location).await.expect("it opens");
    (data, store)
}

async fn publish(store: &dyn Store, experiment: &str, id: u128) -> String {
    let id = Uuid::from_u128(id);
    let path = part_path(experiment, Table::Tasks, id);
    store.objects().expect("open").create(&path, a_part(experiment, id, 0..3), id).await.expect("created");
    path.to_string()
}

fn put(file: PathBuf) -> PathBuf {
    std::fs::create_dir_all(file.parent().expect("it has one")).expect("a folder");
    std::fs::write(&file, "of somebody").expect("a file");
    file
}

/// Files that only look like parts: copies of users, files of other programs, files behind links.
fn others(data: &Path, elsewhere: &Path) -> Vec<PathBuf> {
    let part = format!("part-{}.parquet", Uuid::from_u128(9));
    let behind = put(elsewhere.join(&part));
    let file = put(elsewhere.join("single.parquet"));
    symlink(elsewhere, data.join("e/tasks/archive")).expect("a link");
    symlink(&file, data.join(format!("e/tasks/part-{}.parquet", Uuid::from_u128(10)))).expect("a link");
    let tasks = data.join("e/tasks");
    let mine = ["mine.parquet", "part-x.parquet", "old/00.parquet", ".ipynb_checkpoints/x.parquet"];
    let mine = mine.map(|name| put(tasks.join(name)));
    [behind, file, put(tasks.join("old").join(&part)), put(data.join("e/jobs/notes.txt"))]
        .into_iter()
        .chain(mine)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_takes_the_parts_alone() {
    let (data, store) = opened().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let parts = [publish(&store, "e", 1).await, publish(&store, "e@left", 2).await];
    stage_jobs(&store, "e", Uuid::from_u128(3), 0..3).await;
    let kept = others(data.path(), elsewhere.path());
    for _ in 0..2 {
        store.erase_dataset("e").await.expect("deleted");
    }
    for part in parts {
        assert!(!data.path().join(&part).exists(), "{part}");
    }
    let uploaded = store.objects().expect("open").staged("e", Table::Jobs, Uuid::from_u128(3)).await;
    uploaded.expect_err("uploads go too");
    for file in kept {
        assert!(file.exists(), "{}", file.display());
    }
    assert!(!data.path().join("e@left").exists(), "an empty folder goes too");
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_takes_no_files_from_behind_a_link() {
    let (data, store) = opened().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    publish(&store, "e", 1).await;
    let kept = others(data.path(), elsewhere.path());
    store.rename_dataset("e", "e@1").await.expect("moved");
    assert!(data.path().join(part_path("e@1", Table::Tasks, Uuid::from_u128(1)).as_ref()).exists());
    for file in kept.iter().filter(|file| file.parent() != Some(&data.path().join("e/tasks"))) {
        assert!(file.exists(), "{}", file.display());
    }
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_deleted_through_a_link_in_place_of_a_folder() {
    for linked in ["e", "e/tasks", "e@left/tasks", ".powersweep/staging/upload/e"] {
        let (data, store) = opened().await;
        let elsewhere = tempfile::tempdir().expect("a folder");
        let behind: Vec<PathBuf> = ["tasks/", "jobs/", ""]
            .iter()
            .flat_map(|table| [1, 2].map(|id| format!("{table}part-{}.parquet", Uuid::from_u128(id))))
            .chain([format!("jobs/{}.parquet", Uuid::from_u128(3))])
            .map(|name| put(elsewhere.path().join(name)))
            .collect();
        let link = data.path().join(linked);
        std::fs::create_dir_all(link.parent().expect("it has one")).expect("a folder");
        symlink(elsewhere.path(), &link).expect("a link");
        for result in [store.erase_dataset("e").await, store.rename_dataset("e", "e@1").await] {
            let refused = result.expect_err("the folder is a link").to_string();
            assert!(refused.starts_with(&format!("{} is a link", link.display())), "{refused}");
        }
        assert!(behind.iter().all(|file| file.exists()), "{linked}");
        store.close().await.expect("closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_refused_before_it_begins_where_a_folder_is_a_link() {
    let (data, store) = opened().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let shutdown = CancellationToken::new();
    let options = ServeOptions { insecure: true, ..ServeOptions::local(Arc::new(store)) };
    let farm = serve(options, shutdown.clone()).await.expect("it serves");
    let manifest = "version = 1\nname = \"e\"\n[workloads.w]\nsource = \"lublin\"\n[policies.q]\n".to_owned();
    let submit = |restart| v1::SubmitRequest { manifest: manifest.clone(), restart, ..Default::default() };
    farm.requests().submit(submit(false)).await.expect("accepted");
    symlink(elsewhere.path(), data.path().join("e")).expect("a link");
    let control =
        |action| v1::ControlRequest { experiment: "e".to_owned(), action: Some(action), ..Default::default() };
    let delete = |data_too| control(v1::control_request::Action::Delete(v1::Delete { force: true, data_too }));
    let prune = control(v1::control_request::Action::Prune(v1::Prune {}));
    for request in [delete(true), prune] {
        let refused = farm.requests().control(request).await.expect_err("the folder is a link");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains("/e is a link"), "{}", refused.message());
    }
    let refused = farm.requests().submit(submit(true)).await.expect_err("the folder is a link");
    assert!(refused.message().contains("/e is a link"), "{}", refused.message());
    let found = farm.requests().status(v1::StatusRequest { experiment: "e".to_owned(), ..Default::default() }).await;
    let state = found.expect("it answers").experiments[0].state();
    assert!(
        !matches!(state, v1::ExperimentState::Leaving | v1::ExperimentState::Cancelled),
        "nothing has begun: {state:?}"
    );
    farm.requests().control(delete(false)).await.expect("its state alone can be deleted");
    shutdown.cancel();
    farm.wait().await.expect("in good order");
}
