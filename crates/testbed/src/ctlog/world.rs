//! A world: logs, their list and the server before them, and what a test holds of these.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tamis_ct_log::key::LogId;
use tamis_ct_log::merkle::Hash;

use super::answers::refuse;
use super::faults::{Fault, FaultRule};
use super::http::{self, Answer, Handler, Request};
use super::list::{self, ListChange, ListState, MadeList};
use super::log::{Clock, SimulatedLog, Surroundings};
use super::options::{ListedState, LogOptions, WorldOptions};
use super::pool::Pool;
use super::report::Report;
use super::request::Asked;
use super::shutdown::Shutdown;
use super::source::Source;
use super::submission::Submission;
use super::wire::Body;
use super::{archive, control, lock, serve};

/// Between two looks at whether a log has to grow by its rate.
const GROWTH_TICK: Duration = Duration::from_millis(50);

/// Simulated logs behind one address; they end when it is dropped.
pub struct World {
    pub(super) inner: Arc<Inner>,
    acceptor: Option<JoinHandle<()>>,
    grower: Option<JoinHandle<()>>,
}

pub(super) struct Inner {
    options: WorldOptions,
    base: String,
    address: SocketAddr,
    clock: Clock,
    pool: Arc<Mutex<Pool>>,
    logs: RwLock<Vec<Arc<SimulatedLog>>>,
    list: Mutex<(ListState, MadeList)>,
    skipped: u64,
    shutdown: Shutdown,
}

/// One log of a world, as a test sees it: nothing here goes over the network.
#[derive(Clone)]
pub struct Log {
    pub(super) log: Arc<SimulatedLog>,
}

impl World {
    /// Fills the logs and starts to listen.
    ///
    /// # Errors
    /// The address is taken, a file cannot be read, two logs have one name, or there are too many.
    pub fn start(options: WorldOptions) -> Result<Self> {
        let listener = TcpListener::bind((options.address, options.port))
            .with_context(|| format!("listen on {}:{}", options.address, options.port))?;
        let address = listener.local_addr().context("ask for the address")?;
        let source = Source::read(&options.entries)?;
        let skipped = source.skipped;
        let pool = Pool::new(options.seed, source.submissions, source.chains);
        let mut list = ListState::new()?;
        let clock = Clock(options.clock_ms);
        let made = list.make([].into_iter(), clock.now_ms())?;
        let inner = Arc::new(Inner {
            base: match &options.base_url {
                Some(url) => url.trim_end_matches('/').to_owned(),
                None => format!("http://{address}"),
            },
            address,
            clock,
            pool: Arc::new(Mutex::new(pool)),
            logs: RwLock::default(),
            list: Mutex::new((list, made)),
            skipped,
            shutdown: Shutdown::default(),
            options,
        });
        for options in &inner.options.logs {
            inner.add_log(options.clone())?;
        }
        inner.make_list()?;
        let accepting = Arc::clone(&inner);
        let growing = Arc::clone(&inner);
        Ok(Self {
            inner,
            acceptor: Some(std::thread::spawn(move || accept(&accepting, &listener))),
            grower: Some(std::thread::spawn(move || grow_by_rate(&growing))),
        })
    }

    /// `http://host:port`
    #[must_use]
    pub fn url(&self) -> String {
        self.inner.base.clone()
    }

    /// Where the log list is; its signature is at the same place with `.sig` for `.json`.
    #[must_use]
    pub fn list_url(&self) -> String {
        format!("{}/log_list.json", self.inner.base)
    }

    /// Where the signature of the log list is.
    #[must_use]
    pub fn list_signature_url(&self) -> String {
        format!("{}/log_list.sig", self.inner.base)
    }

    /// The key that the log list is signed with.
    #[must_use]
    pub fn list_key_pem(&self) -> String {
        lock(&self.inner.list).0.key_pem()
    }

    /// A log by its name.
    ///
    /// # Panics
    /// There is none.
    #[must_use]
    pub fn log(&self, name: &str) -> Log {
        self.find_log(name).expect("the world has a log of this name")
    }

    /// A log by its name.
    #[must_use]
    pub fn find_log(&self, name: &str) -> Option<Log> {
        self.inner.log(name).map(|log| Log { log })
    }

    /// All logs.
    #[must_use]
    pub fn logs(&self) -> Vec<Log> {
        self.inner.logs().into_iter().map(|log| Log { log }).collect()
    }

    /// Changes the list, and what a change of it means for a log.
    ///
    /// # Errors
    /// There is no such log, or one of that name already.
    pub fn change_list(&self, change: &ListChange) -> Result<()> {
        self.inner.change_list(change)
    }

    /// Entries of files that no log could take.
    #[must_use]
    pub fn skipped_entries(&self) -> u64 {
        self.inner.skipped
    }

    /// Recomputes all roots from the leaves and verifies all heads.
    ///
    /// # Errors
    /// The simulator is wrong.
    pub fn verify(&self) -> Result<()> {
        self.inner.logs().iter().try_for_each(|log| log.verify())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.inner.shutdown.end();
        // Wakes the thread that accepts; that it cannot be reached means that it is gone.
        drop(TcpStream::connect_timeout(
            &self.inner.address,
            Duration::from_secs(1),
        ));
        for thread in [self.acceptor.take(), self.grower.take()].into_iter().flatten() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Inner {
    pub(super) fn logs(&self) -> Vec<Arc<SimulatedLog>> {
        self.logs
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(super) fn log(&self, name: &str) -> Option<Arc<SimulatedLog>> {
        let logs = self
            .logs
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        logs.iter().find(|log| log.options.name == name).cloned()
    }

    fn add_log(&self, options: LogOptions) -> Result<()> {
        let name = &options.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        ensure!(
            !name.is_empty() && !name.starts_with(['_', '.']) && name.bytes().all(is_plain),
            "{name:?} cannot be part of an address; use letters, digits and hyphens"
        );
        ensure!(
            self.log(name).is_none() && !name.starts_with("log_list"),
            "there is something called {name} already"
        );
        let around = Surroundings {
            seed: self.options.seed,
            number: self.logs().len(),
            base: self.base.clone(),
            clock: self.clock,
            pool: Arc::clone(&self.pool),
        };
        let log = Arc::new(SimulatedLog::new(options, around)?);
        let mut logs = self
            .logs
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        logs.push(log);
        Ok(())
    }

    pub(super) fn change_list(&self, change: &ListChange) -> Result<()> {
        match change {
            ListChange::AddLog(options) => self.add_log((**options).clone())?,
            ListChange::State { log, state } => {
                let found = self.log(log).with_context(|| format!("there is no log {log}"))?;
                found.set_listed(*state);
            }
            _ => {}
        }
        lock(&self.list).0.apply(change);
        self.make_list()
    }

    fn make_list(&self) -> Result<()> {
        let logs = self.logs();
        let mut list = lock(&self.list);
        let (state, made) = &mut *list;
        *made = state.make(logs.iter().map(|log| &**log), self.clock.now_ms())?;
        match &self.options.folder {
            Some(folder) => list::write(folder, made, &state.key_pem()),
            None => Ok(()),
        }
    }

    fn list_file(&self, path: &str, body: &mut Body) -> Answer {
        let list = lock(&self.list);
        let (state, made) = &*list;
        let found = match path {
            "/log_list.json" => Some((made.json.clone(), "application/json")),
            "/log_list.sig" | "/log_list.json.sig" => {
                let signature = made.signature.clone();
                signature.map(|signature| (signature, "application/octet-stream"))
            }
            "/log_list_key.pem" => Some((state.key_pem().into_bytes(), "application/x-pem-file")),
            _ => None,
        };
        match found {
            Some((content, content_type)) => {
                body.bytes = content;
                Answer::ok(content_type)
            }
            None => refuse(404, "there is nothing here; see /_sim", body),
        }
    }
}

impl Handler for Inner {
    type Asked = Option<Arc<SimulatedLog>>;

    fn handle(&self, request: &Request<'_>, body: &mut Body) -> (Answer, Self::Asked) {
        let Some(path) = request.path.strip_prefix('/') else {
            return (refuse(400, "the path is no path", body), None);
        };
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        if name == "_sim" {
            return (control::control(self, rest, request, body), None);
        }
        if !matches!(request.method, "GET" | "HEAD") {
            return (refuse(405, "logs are only read here", body), None);
        }
        let Some(log) = self.log(name) else {
            return (self.list_file(request.path, body), None);
        };
        let asked = Asked::read(log.options.kind, rest, request.query);
        log.counter.begin(asked.kind(), request.user_agent);
        let answer = serve::serve(&log, &asked, request, &self.shutdown, body);
        (answer, Some(log))
    }

    fn sent(&self, asked: Self::Asked, status: u16, body_bytes: u64) {
        if let Some(log) = asked {
            log.counter.end(status, body_bytes);
        }
    }
}

fn accept(inner: &Arc<Inner>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if inner.shutdown.is_over() {
            return;
        }
        // A reader that is gone again is no concern; without descriptors, waiting is all there is.
        let Ok(stream) = stream else {
            inner.shutdown.wait(Duration::from_millis(10));
            continue;
        };
        let inner = Arc::clone(inner);
        std::thread::spawn(move || {
            let Some(_entered) = inner.shutdown.enter(&stream) else {
                return;
            };
            // Broken connections are a reader's right, and counted as status 0 where they matter.
            let _ = http::serve_connection(stream, &*inner, &inner.shutdown);
        });
    }
}

fn grow_by_rate(inner: &Inner) {
    let mut last = Instant::now();
    let mut due: BTreeMap<String, f64> = BTreeMap::new();
    while inner.shutdown.wait(GROWTH_TICK) {
        let elapsed = last.elapsed().as_secs_f64();
        last = Instant::now();
        for log in inner.logs() {
            let rate = *lock(&log.rate);
            if rate <= 0.0 || !log.is_open() || log.is_idle() {
                continue;
            }
            let due = due.entry(log.options.name.clone()).or_default();
            *due += elapsed * rate;
            let count = due.floor();
            *due -= count;
            if log.grow(count as u64).is_err() {
                // Only the simulator's own check fails; the tests of this crate would show it.
                return;
            }
        }
    }
}

impl Log {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.log.options.name
    }

    /// Where it is read: of a static log, the monitoring prefix. Ends with a slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.log.monitoring_url()
    }

    /// Where certificates are submitted; its checkpoints name it.
    #[must_use]
    pub fn submission_url(&self) -> String {
        self.log.submission_url()
    }

    /// The same as [`Log::url`].
    #[must_use]
    pub fn monitoring_url(&self) -> String {
        self.log.monitoring_url()
    }

    /// Its public key, as the list has it.
    #[must_use]
    pub fn key_base64(&self) -> String {
        self.log.key.base64()
    }

    /// SHA-256 of its public key.
    #[must_use]
    pub fn log_id(&self) -> LogId {
        LogId(self.log.key.id())
    }

    /// Takes so many entries more and signs one head; gives the new size. A log that is read-only or
    /// retired takes none.
    ///
    /// # Panics
    /// The simulator's check of itself fails.
    pub fn grow(&self, count: u64) -> u64 {
        self.log.grow(count).expect("the log's own head verifies");
        self.size()
    }

    /// Entries that come in a second from now on.
    pub fn set_rate(&self, per_s: f64) {
        *lock(&self.log.rate) = per_s;
    }

    /// Of its tree.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.log.read().size()
    }

    /// Of its tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.log.read().root()
    }

    /// What the list says about it.
    #[must_use]
    pub fn state(&self) -> ListedState {
        *lock(&self.log.listed)
    }

    /// The hash of a leaf.
    #[must_use]
    pub fn leaf_hash(&self, index: u64) -> Option<Hash> {
        self.log.read().tree.leaf(index)
    }

    /// What was submitted at this index.
    #[must_use]
    pub fn submission(&self, index: u64) -> Option<Arc<Submission>> {
        let state = self.log.read();
        state
            .entries
            .get(index as usize)
            .map(|stored| Arc::clone(&stored.submission))
    }

    /// What a reader must find: index, SHA-256 of the certificate or precertificate, and its names.
    pub fn expected(&self) -> impl Iterator<Item = (u64, [u8; 32], Vec<String>)> + use<> {
        let state = self.log.read();
        let held: Vec<_> = state
            .entries
            .iter()
            .map(|stored| Arc::clone(&stored.submission))
            .collect();
        (0..).zip(held).map(|(index, submission)| {
            let names = submission.names().map(str::to_owned).collect();
            (index, submission.sha256(), names)
        })
    }

    /// Writes it below `folder` as the public archives of logs are, and gives the files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_archive(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        archive::write(&self.log, folder)
    }

    /// Does this wrong from now on, in the place of earlier faults of its kind.
    pub fn set_fault(&self, fault: impl Into<FaultRule>) {
        self.log.faults.set(fault.into());
    }

    /// Does this wrong too.
    pub fn add_fault(&self, fault: impl Into<FaultRule>) {
        self.log.faults.add(fault.into());
    }

    /// Does nothing wrong any more. What was shown stays counted.
    pub fn clear_faults(&self) {
        self.log.faults.clear();
    }

    /// How often each fault was shown, by [`Fault::name`].
    #[must_use]
    pub fn shown(&self) -> BTreeMap<&'static str, u64> {
        self.log.faults.shown()
    }

    /// How often this kind of fault was shown.
    #[must_use]
    pub fn shown_count(&self, fault: &Fault) -> u64 {
        self.log.faults.shown().get(fault.name()).copied().unwrap_or(0)
    }

    /// What it was asked.
    #[must_use]
    pub fn report(&self) -> Report {
        self.log.counter.report()
    }

    /// Counts what it is asked from 0.
    pub fn reset_report(&self) {
        self.log.counter.reset();
    }
}
