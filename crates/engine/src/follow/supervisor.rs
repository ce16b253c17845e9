//! Starts and stops the tasks of logs as the list and the parameters change, and tells how all of them stand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tamis_ct_index::Index;
use tamis_ct_log::certificate::{IdentityKey, ReadOptions};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::archive::{is_archive, is_near};
use super::asked::Asked;
use super::counts::Counts;
use super::decode::Decoder;
use super::http::Http;
use super::issuers::Issuers;
use super::metrics;
use super::pace::Pace;
use super::parameters::Parameters;
use super::pressure::{self, PressureLimits};
use super::progress::Progress;
use super::progress_format::{self, FormatError};
use super::reader::{Ended, Order, Reader};
use super::roots::Roots;
use super::roster::{FetchedList, ListOptions, Member, Roster, SingleLog, is_url};
use super::source::{Protocol, Source, Transport};
use super::status::{Board, Status};
use super::world::{Fatal, PAGES_IN_FLIGHT_MAX, World, stopped};

/// What to follow and how.
#[derive(Debug, Clone)]
pub struct FollowOptions {
    /// The list of logs; `None` for those in `logs` alone.
    pub list: Option<ListOptions>,
    /// Logs that are followed whatever a list says.
    pub logs: Vec<SingleLog>,
    /// Who asks: an address or a page at which an operator finds somebody. Needed for logs that are not on this
    /// machine.
    pub contact: Option<String>,
    /// Between two heads of a log. Default 10 s.
    pub poll_interval: Duration,
    /// How long a tile may stay partial before it is read as it is. Default 60 s.
    pub partial_delay: Duration,
    /// End once everything that the logs show is read.
    pub until_caught_up: bool,
    /// Where metrics are served: who listens can tell the port.
    pub metrics: Option<Arc<TcpListener>>,
    /// A file with [`Parameters`], read again when it changes.
    pub parameters: Option<PathBuf>,
    /// When reading pauses.
    pub pressure: PressureLimits,
    /// Names of one certificate that are indexed.
    pub names_max: usize,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            list: None,
            logs: Vec::new(),
            contact: None,
            poll_interval: Duration::from_secs(10),
            partial_delay: Duration::from_secs(60),
            until_caught_up: false,
            metrics: None,
            parameters: None,
            pressure: PressureLimits::default(),
            names_max: 1_000,
        }
    }
}

impl FollowOptions {
    /// Whether following may start; to be called before anything is made for it.
    ///
    /// # Errors
    /// [`Error::NoContact`], [`Error::NothingToFollow`], [`Error::Parameters`].
    pub fn check(&self) -> Result<(), Error> {
        let list = self
            .list
            .iter()
            .map(|list| &list.source)
            .filter(|source| is_url(source));
        let logs = self.logs.iter().map(|log| &log.url);
        let public = list.chain(logs).find(|url| !is_near(url));
        match public {
            Some(url) if self.contact.is_none() => {
                return Err(Error::NoContact { url: url.clone() });
            }
            _ if self.list.is_none() && self.logs.is_empty() => return Err(Error::NothingToFollow),
            _ => {}
        }
        let parameters = self.parameters.as_deref().map(read_parameters);
        parameters.transpose().map(drop)
    }
}

/// Why following does not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Operators of public logs want to know who reads them.
    #[error(
        "{url} is a public log or list, and its operator wants to know who asks; name yourself with --contact (an e-mail address or a page)"
    )]
    NoContact {
        /// What would have been asked.
        url: String,
    },
    /// There is nothing to follow.
    #[error("there is no log to follow; name a list (--log-list) or a log (--log URL --key BASE64)")]
    NothingToFollow,
    /// No list could be had, not even an earlier one.
    #[error("no log list: {problem}")]
    NoList {
        /// Why the list was not taken.
        problem: String,
    },
    /// The parameters are wrong.
    #[error("the parameters in {}: {problem}", path.display())]
    Parameters {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The socket for metrics cannot be used.
    #[error("cannot serve metrics")]
    Metrics(#[source] std::io::Error),
    /// The HTTP client cannot be made.
    #[error("cannot set up HTTP")]
    Http(#[source] reqwest::Error),
    /// The index takes nothing more, or this program is wrong.
    #[error("{0}")]
    Fatal(String),
    /// The index.
    #[error(transparent)]
    Index(#[from] tamis_ct_index::Error),
}

/// What following came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How every log stood at the end.
    pub status: Status,
    /// Entries read.
    pub entries: u64,
    /// Issuances that were not known.
    pub new: u64,
    /// Copies that brought a fingerprint, a position or an earlier date.
    pub copies: u64,
    /// Logs that could not be read to the end, and why; only with [`FollowOptions::until_caught_up`].
    pub failing: Vec<(String, String)>,
}

/// A log that fails for so long is given up by who waits for the end.
const CATCH_UP_PATIENCE: Duration = Duration::from_secs(60);
/// After which tasks that do not stop are left behind: what they appended is safe.
const STOP_PATIENCE: Duration = Duration::from_secs(8);
/// After which a disk that stalls is no longer waited for at the end.
const COMMIT_PATIENCE: Duration = Duration::from_secs(5);
/// Between commits of what was appended.
const COMMIT_EVERY: Duration = Duration::from_millis(250);
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Before a task that ended with a panic is started again.
const RESTART_AFTER: Duration = Duration::from_secs(10);

/// Follows logs into `index` until `stop` says so.
///
/// # Errors
/// [`Error`]. Logs that fail are no error: they are asked again for as long as it takes.
pub async fn follow(
    index: Arc<Index>,
    options: FollowOptions,
    stop: watch::Receiver<bool>,
) -> Result<Summary, Error> {
    options.check()?;
    let http = Http::new(&user_agent(options.contact.as_deref())).map_err(Error::Http)?;
    let dir = index.dir().join("follow");
    let parameters = options.parameters.as_deref().map(read_parameters);
    let parameters = parameters.transpose()?.unwrap_or_default();
    let mut roster = Roster::new(
        options.list.clone(),
        options.logs.clone(),
        http.clone(),
        dir.clone(),
    );
    first_list(&mut roster, stop.clone()).await?;
    let (stopping, stopped) = watch::channel(false);
    let (pressure_told, pressure) = watch::channel(None);
    let (parameters_told, parameters) = watch::channel(Arc::new(parameters));
    let board = Board::default();
    let world = Arc::new(World {
        decoder: decoder(&index, options.names_max),
        index: Arc::clone(&index),
        http,
        board: board.clone(),
        counts: Counts::default(),
        issuers: Issuers::open(dir.join("issuers")),
        roots: Roots::default(),
        pages_in_flight: Arc::new(Semaphore::new(PAGES_IN_FLIGHT_MAX)),
        stop: stopped,
        pressure,
        parameters,
        gates: Mutex::default(),
        dir,
        poll_interval: options.poll_interval,
        partial_delay: options.partial_delay,
        reads_partial_at_once: options.until_caught_up,
    });
    let watching = pressure::watch_pressure(index, board, options.pressure, pressure_told);
    let mut helpers = JoinSet::new();
    helpers.spawn(watching);
    if let Some(listener) = &options.metrics {
        helpers.spawn(metrics::serve(listener, Arc::clone(&world)).map_err(Error::Metrics)?);
    }
    let mut supervisor = Supervisor {
        numbers: numbers(&world)?,
        world,
        roster,
        orders: HashMap::new(),
        tasks: JoinSet::new(),
        ended: HashSet::new(),
        registered: oneshot::channel().1,
        stopping,
        parameters_told,
        parameters_seen: None,
        committing: JoinSet::new(),
        fetching: JoinSet::new(),
        options,
    };
    let followed = supervisor.run(stop).await;
    helpers.abort_all();
    followed
}

/// Takes the newest list, or else the last good one. Who is told to stop meanwhile goes on without.
async fn first_list(roster: &mut Roster, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
    roster.load_kept();
    let Some(fetching) = roster.fetching() else {
        return Ok(());
    };
    let fetched = tokio::select! {
        fetched = fetching => fetched,
        () = stopped(&mut stop) => return Ok(()),
    };
    if let Err(problem) = roster.take(fetched) {
        if roster.is_empty() {
            return Err(Error::NoList { problem });
        }
        tracing::warn!(%problem, "the log list is not taken; the last good one is used");
    }
    Ok(())
}

/// Reads certificates as the index keys them.
fn decoder(index: &Index, names_max: usize) -> Decoder {
    Decoder::new(ReadOptions {
        names_max,
        identity_key: IdentityKey(index.identity_key()),
        ..ReadOptions::default()
    })
}

/// Progress of logs that are known, by the hash of their key. What is damaged is read anew; what a newer
/// program wrote must not be taken for damage and replaced.
fn numbers(world: &World) -> Result<HashMap<[u8; 32], (String, Progress)>, Error> {
    let mut known = HashMap::new();
    for log in world.index.snapshot().logs() {
        if log.progress.is_empty() {
            continue;
        }
        match progress_format::decode(&log.progress) {
            Ok(progress) => {
                known.insert(progress.log_id.0, (log.name.clone(), progress));
            }
            Err(error @ FormatError::FutureVersion { .. }) => {
                return Err(Error::Fatal(format!("{}: {error}", log.name)));
            }
            Err(error) => tracing::warn!(log = %log.name, %error, "what was kept of a log is not used"),
        }
    }
    Ok(known)
}

fn user_agent(contact: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match contact {
        Some(contact) => format!("tamis/{version} (CT monitor; {contact})"),
        None => format!("tamis/{version} (CT monitor)"),
    }
}

fn read_parameters(path: &Path) -> Result<Parameters, Error> {
    let problem = |problem| Error::Parameters {
        path: path.to_owned(),
        problem,
    };
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    Parameters::parse(&text).map_err(problem)
}

fn committed_or_not(
    committed: Result<tamis_ct_index::Result<()>, tokio::task::JoinError>,
) -> Result<(), Error> {
    Ok(committed.map_err(|error| Error::Fatal(error.to_string()))??)
}

struct Supervisor {
    world: Arc<World>,
    options: FollowOptions,
    roster: Roster,
    /// What is known of logs from earlier runs.
    numbers: HashMap<[u8; 32], (String, Progress)>,
    orders: HashMap<[u8; 32], watch::Sender<Order>>,
    tasks: JoinSet<([u8; 32], Result<Ended, Fatal>)>,
    /// Logs that are read to their end.
    ended: HashSet<[u8; 32]>,
    /// Whether the log that was started last has its number: the next one waits for that.
    registered: oneshot::Receiver<()>,
    stopping: watch::Sender<bool>,
    parameters_told: watch::Sender<Arc<Parameters>>,
    parameters_seen: Option<SystemTime>,
    /// What may take long and must hold up nothing: a commit to a disk that stalls, a list that does not come.
    committing: JoinSet<tamis_ct_index::Result<()>>,
    fetching: JoinSet<Result<FetchedList, String>>,
}

impl Supervisor {
    async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Result<Summary, Error> {
        self.apply()?;
        let mut commit = tokio::time::interval(COMMIT_EVERY);
        let mut tell = tokio::time::interval(TELL_EVERY);
        let mut refresh = self.next_refresh();
        let mut failing = Vec::new();
        let outcome = loop {
            tokio::select! {
                () = stopped(&mut stop) => break Ok(()),
                _ = commit.tick() => self.start_commit(),
                Some(committed) = self.committing.join_next() => {
                    if let Err(error) = committed_or_not(committed) {
                        break Err(error);
                    }
                }
                _ = tell.tick() => {
                    self.world.board.measure();
                    self.tell().await;
                    self.reload_parameters()?;
                    if self.options.until_caught_up
                        && let Some(still) = self.caught_up()
                    {
                        failing = still;
                        break Ok(());
                    }
                }
                () = tokio::time::sleep_until(refresh) => {
                    if let Some(fetching) = self.roster.fetching().filter(|_| self.fetching.is_empty()) {
                        self.fetching.spawn(fetching);
                    }
                    refresh = self.next_refresh();
                }
                Some(Ok(fetched)) = self.fetching.join_next() => {
                    if let Err(problem) = self.roster.take(fetched) {
                        tracing::warn!(%problem, "the log list is not taken; the last good one is used");
                        self.world.counts.list_refused();
                    }
                    self.apply()?;
                }
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = self.task_ended(ended) {
                        break Err(error);
                    }
                    if self.is_over() {
                        failing = self.world.board.caught_up(Duration::ZERO).unwrap_or_default();
                        break Ok(());
                    }
                }
            }
        };
        self.wind_down().await;
        outcome?;
        self.last_commit().await?;
        self.tell().await;
        Ok(self.summary(failing))
    }

    fn next_refresh(&self) -> Instant {
        let wait = self.roster.refresh(self.options.poll_interval);
        Instant::now() + wait.unwrap_or(Duration::from_secs(86_400))
    }

    /// Whether all logs ended and no list can bring others.
    fn is_over(&self) -> bool {
        let mut logs = self.options.logs.iter();
        self.options.list.is_none() && logs.all(|log| self.ended.contains(&log.key.id().0))
    }

    /// Whether everything is read; the logs that are given up.
    fn caught_up(&self) -> Option<Vec<(String, String)>> {
        self.world.board.caught_up(CATCH_UP_PATIENCE)
    }

    /// Commits what was appended, unless the disk is still busy with that.
    fn start_commit(&mut self) {
        if self.committing.is_empty() {
            let index = Arc::clone(&self.world.index);
            self.committing.spawn_blocking(move || index.commit());
        }
    }

    async fn last_commit(&mut self) -> Result<(), Error> {
        let all = async {
            while let Some(committed) = self.committing.join_next().await {
                committed_or_not(committed)?;
            }
            let index = Arc::clone(&self.world.index);
            committed_or_not(tokio::task::spawn_blocking(move || index.commit()).await)
        };
        let late = "the disk does not answer; what was not committed is read again";
        tokio::time::timeout(COMMIT_PATIENCE, all)
            .await
            .unwrap_or_else(|_| Err(Error::Fatal(late.to_owned())))
    }

    /// Starts, changes and stops tasks so that they are those of the list and the parameters.
    fn apply(&mut self) -> Result<(), Error> {
        if let Some(list) = &self.roster.status {
            self.world.board.show_list(list.clone());
        }
        let members = self.roster.members(&self.world.parameters.borrow().clone());
        for member in members.values() {
            if !is_near(&member.log.url) && self.options.contact.is_none() {
                return Err(Error::NoContact {
                    url: member.log.url.clone(),
                });
            }
        }
        for (id, sender) in &self.orders {
            let order = members.get(id).map_or(Order::Stop, |member| member.order);
            sender.send_if_modified(|known| {
                let is_other = *known != order;
                *known = order;
                is_other
            });
        }
        let missing: BTreeMap<_, _> = members
            .into_iter()
            .filter(|(id, _)| !self.orders.contains_key(id) && !self.ended.contains(id))
            .collect();
        for (id, member) in missing {
            self.start(id, member, Duration::ZERO);
        }
        Ok(())
    }

    fn start(&mut self, id: [u8; 32], member: Member, after: Duration) {
        let Member { log, protocol, order } = member;
        let known = self.numbers.get(&id);
        let name = known.map_or(log.url.clone(), |(name, _)| name.clone());
        let progress = known.map_or_else(|| Progress::new(log.id()), |(_, progress)| progress.clone());
        let (sender, receiver) = watch::channel(order);
        // A file is nothing that its operator has to allow.
        let allows = if is_archive(&log.url) {
            &log.url
        } else {
            &log.operator
        };
        let source = Source {
            gate: self.world.gate(allows, is_near(&log.url)),
            transport: Transport::to(&log.url, &self.world.http),
            protocol: protocol.unwrap_or(Protocol::Rfc6962),
            asked: Arc::new(Asked::default()),
            closes: Arc::default(),
            log: Arc::new(log),
        };
        self.world.board.expect(&source);
        self.orders.insert(id, sender);
        let world = Arc::clone(&self.world);
        let (registered, next) = oneshot::channel::<()>();
        let before = std::mem::replace(&mut self.registered, next);
        let read = async move {
            // Numbers of logs follow the order of starts; a sender that is gone is as good as a word.
            let _ = before.await;
            let number = world.register(name).await?;
            drop(registered);
            tokio::time::sleep(after).await;
            let mut reader = Reader::new(world, source, number, receiver, progress);
            if protocol.is_none() {
                reader.find_out_protocol();
            }
            reader.run().await
        };
        self.tasks.spawn(async move { (id, read.await) });
    }

    fn task_ended(
        &mut self,
        ended: Result<([u8; 32], Result<Ended, Fatal>), tokio::task::JoinError>,
    ) -> Result<(), Error> {
        match ended {
            Ok((id, Ok(Ended::Finished))) => {
                self.orders.remove(&id);
                self.ended.insert(id);
            }
            Ok((id, Ok(Ended::Stopped))) => {
                self.orders.remove(&id);
                // It may be listed again later: what it read is in the index by then.
                self.numbers.extend(numbers(&self.world)?.remove_entry(&id));
            }
            Ok((_, Err(fatal))) => {
                let mut told = fatal.to_string();
                if let Some(source) = std::error::Error::source(&fatal) {
                    told = format!("{told}: {source}");
                }
                return Err(Error::Fatal(told));
            }
            Err(error) if error.is_panic() => {
                tracing::error!(%error, "the task of a log ended; it is started again");
                self.restart_lost()?;
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// A task that panicked took its id with it: whoever has no receiver any more is started again.
    fn restart_lost(&mut self) -> Result<(), Error> {
        let lost: Vec<[u8; 32]> = self
            .orders
            .iter()
            .filter(|(_, sender)| sender.is_closed())
            .map(|(id, _)| *id)
            .collect();
        let known = numbers(&self.world)?;
        let mut members = self.roster.members(&self.world.parameters.borrow().clone());
        for id in lost {
            self.orders.remove(&id);
            if let Some(known) = known.get(&id) {
                self.numbers.insert(id, known.clone());
            }
            if let Some(member) = members.remove(&id) {
                self.start(id, member, RESTART_AFTER);
            }
        }
        Ok(())
    }

    fn reload_parameters(&mut self) -> Result<(), Error> {
        let Some(path) = &self.options.parameters else {
            return Ok(());
        };
        let changed = std::fs::metadata(path)
            .and_then(|metadata| metadata.modified())
            .ok();
        if changed == self.parameters_seen {
            return Ok(());
        }
        let is_first = self.parameters_seen.is_none();
        self.parameters_seen = changed;
        if is_first {
            return Ok(());
        }
        match read_parameters(path) {
            Ok(parameters) => {
                tracing::info!(path = %path.display(), "parameters are applied");
                self.parameters_told.send_replace(Arc::new(parameters));
                self.reset_gates();
                self.apply()
            }
            Err(error) => {
                tracing::warn!(%error, "the parameters stay as they were");
                Ok(())
            }
        }
    }

    fn reset_gates(&self) {
        let parameters = self.world.parameters.borrow().clone();
        let members = self.roster.members(&parameters);
        let mut told = HashSet::new();
        for member in members.values() {
            let operator = &member.log.operator;
            if told.insert(operator.clone()) {
                let is_near = is_near(&member.log.url);
                let pace = Pace::of(operator, is_near, parameters.of_operator(operator));
                self.world.gate(operator, is_near).reset(pace);
            }
        }
    }

    async fn wind_down(&mut self) {
        self.stopping.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_PATIENCE, all).await.is_err() {
            tracing::warn!("some logs do not stop in time; what they read is safe");
            self.tasks.abort_all();
        }
    }

    /// Writes the status for other processes.
    async fn tell(&self) {
        let status = self.world.status();
        let path = Status::path(self.world.index.dir());
        let written = tokio::task::spawn_blocking(move || {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
            }
            let bytes = serde_json::to_vec(&status).map_err(|error| error.to_string())?;
            tamis_durable::replace(&path, &bytes).map_err(|error| error.to_string())
        })
        .await;
        if let Ok(Err(error)) = written {
            tracing::debug!(%error, "the status could not be written");
        }
    }

    fn summary(&self, failing: Vec<(String, String)>) -> Summary {
        use std::sync::atomic::Ordering::Relaxed;
        let counts = &self.world.counts;
        Summary {
            status: self.world.status(),
            entries: counts.entries(),
            new: counts.new.load(Relaxed),
            copies: counts.copies.load(Relaxed),
            failing,
        }
    }
}
