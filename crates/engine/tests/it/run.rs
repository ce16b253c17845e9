//! One run of following against a simulated world, and what must hold after it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tamis_ct_index::{Index, Options, Snapshot};
use tamis_ct_log::key::PublicKey;
use tamis_engine::follow::{
    Error, FollowOptions, ListOptions, LogStatus, PressureLimits, SingleLog, Status, Summary, follow,
};
use tamis_testbed::ctlog::{Log, LogKind, LogOptions, World, WorldOptions};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Nothing here takes that long; a test that waits for it fails with what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world with these logs.
pub(crate) fn world(logs: impl IntoIterator<Item = LogOptions>) -> World {
    let mut options = WorldOptions::default();
    options.logs.extend(logs);
    World::start(options).unwrap()
}

/// A log with so many entries.
pub(crate) fn log(name: &str, kind: LogKind, entries: u64) -> LogOptions {
    LogOptions::new(name, kind).operator(name).entries(entries)
}

/// Options that follow the list of a world, quickly.
pub(crate) fn options(world: &World) -> FollowOptions {
    FollowOptions {
        list: Some(ListOptions {
            source: world.list_url(),
            key: Some(PublicKey::from_pem(world.list_key_pem().as_bytes()).unwrap()),
            refresh: Duration::from_millis(200),
            excluded: Vec::new(),
            pending: false,
        }),
        poll_interval: Duration::from_millis(100),
        partial_delay: Duration::from_millis(200),
        // How full the disk of this machine is must not decide a test.
        pressure: PressureLimits {
            disk: 1.0,
            ..PressureLimits::default()
        },
        ..FollowOptions::default()
    }
}

/// A log named by hand.
pub(crate) fn single(log: &Log) -> SingleLog {
    SingleLog {
        url: log.url(),
        key: PublicKey::from_base64(&log.key_base64()).unwrap(),
    }
}

/// The folder of an index, over several runs.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    fn index(&self) -> Arc<Index> {
        let options = Options {
            flush_rows: 5_000,
            ..Options::default()
        };
        Arc::new(Index::open(self.path(), options).unwrap())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::open(self.path(), &Options::default()).unwrap()
    }

    /// Follows until everything is read.
    pub(crate) fn catch_up(&self, options: FollowOptions) -> Summary {
        let options = FollowOptions {
            until_caught_up: true,
            ..options
        };
        let running = self.start(options);
        running.end()
    }

    /// Follows beside the test.
    pub(crate) fn start(&self, options: FollowOptions) -> Running {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let index = self.index();
        let (stop, stopped) = watch::channel(false);
        let task = runtime.spawn(follow(Arc::clone(&index), options, stopped));
        Running {
            stop,
            task: Some(task),
            runtime: Some(runtime),
            index: Some(index),
            path: self.path().to_owned(),
        }
    }

    /// Every entry of these logs is in the index, once, at its place.
    #[track_caller]
    pub(crate) fn check_whole<'l>(&self, logs: impl IntoIterator<Item = &'l Log>) {
        for log in logs {
            self.check_all_but(log, &log.url(), |_| false);
        }
    }

    /// Every entry of a log that the index knows by `name` is there, but for those that cannot be.
    #[track_caller]
    pub(crate) fn check_all_but(&self, log: &Log, name: &str, is_lost: impl Fn(u64) -> bool) {
        let snapshot = self.snapshot();
        {
            let known = snapshot.logs().iter().find(|known| known.name == name);
            let known = known.unwrap_or_else(|| panic!("{name} is not in the index"));
            if !(0..log.size()).any(&is_lost) {
                assert_eq!(known.ranges, [[0, log.size()]], "{}", log.name());
            }
            for (index, sha256, names) in log.expected() {
                if is_lost(index) {
                    continue;
                }
                let found = snapshot.by_sha256(&sha256).unwrap();
                assert_eq!(found.len(), 1, "{} {index}", log.name());
                let record = &found[0];
                let at = record
                    .positions
                    .iter()
                    .find(|at| at.log == known.number && at.index == index);
                // An issuance keeps its first four places.
                assert!(
                    at.is_some() || record.positions.len() == 4,
                    "{} {index}: {:?}",
                    log.name(),
                    record.positions
                );
                assert!(record.names.len() >= names.len().min(1), "{} {index}", log.name());
            }
        }
    }
}

/// Following that goes on beside the test.
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<Result<Summary, Error>>>,
    runtime: Option<tokio::runtime::Runtime>,
    index: Option<Arc<Index>>,
    path: std::path::PathBuf,
}

impl Running {
    /// Waits until the status is as wanted.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, wanted: impl Fn(&BTreeMap<String, LogStatus>) -> bool) {
        self.wait_for(what, |status| {
            let logs = status.logs.iter().map(|log| (name(&log.url), log.clone()));
            wanted(&logs.collect())
        });
    }

    /// Waits until the whole status is as wanted.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&Status) -> bool) {
        let start = std::time::Instant::now();
        loop {
            let status = Status::read(&self.path);
            if status.as_ref().is_some_and(&wanted) {
                return;
            }
            if let Some(task) = self.task.as_ref().filter(|task| task.is_finished()) {
                panic!("following ended while waiting for {what}: {task:?}");
            }
            assert!(start.elapsed() < PATIENCE, "waited for {what}: {status:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it and gives what it came to.
    pub(crate) fn stop(self) -> Summary {
        self.stop.send_replace(true);
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Summary {
        self.outcome().unwrap()
    }

    /// Waits for its end.
    pub(crate) fn outcome(mut self) -> Result<Summary, Error> {
        let (task, runtime) = (self.task.take().unwrap(), self.runtime.take().unwrap());
        let outcome = runtime.block_on(async {
            let ended = tokio::time::timeout(2 * PATIENCE, task).await;
            ended.unwrap_or_else(|_| panic!("it does not end: {:#?}", Status::read(&self.path)))
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
        let index = self.index.take().unwrap();
        Arc::try_unwrap(index)
            .unwrap_or_else(|_| panic!("somebody still holds the index"))
            .close()
            .unwrap();
        outcome.unwrap()
    }
}

/// The name of a simulated log, which its address starts with.
fn name(url: &str) -> String {
    url.split('/').nth(3).unwrap_or_default().to_owned()
}

/// The status of one log.
#[track_caller]
pub(crate) fn of<'s>(summary: &'s Summary, log: &Log) -> &'s LogStatus {
    let logs = &summary.status.logs;
    let found = logs.iter().find(|status| status.url == log.url());
    found.unwrap_or_else(|| panic!("{} has no status: {logs:#?}", log.name()))
}

/// A log that was read whole and never caught in anything.
#[track_caller]
pub(crate) fn check_proved(summary: &Summary, log: &Log) {
    let status = of(summary, log);
    assert_eq!(status.lies, [], "{}", log.name());
    assert_eq!(
        (status.tree_size, status.verified, status.read, status.backlog),
        (log.size(), log.size(), log.size(), 0),
        "{status:#?}"
    );
    assert_eq!(status.root, Some(log.root().to_string()));
}
