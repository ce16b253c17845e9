//! A PostgreSQL server of this run: its own folder, a socket in it, no port.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use postgres::{Client, Config, NoTls};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

const USER: &str = "tamis";
/// Who runs the server where this process is root, which PostgreSQL refuses to be run by.
const SERVANTS: [&str; 2] = ["postgres", "nobody"];
const START_SECONDS_MAX: u64 = 60;
/// All of table and key fit in; nothing is flushed while questions are asked.
const SETTINGS: [&str; 14] = [
    "listen_addresses=",
    "shared_buffers=1GB",
    "effective_cache_size=4GB",
    "maintenance_work_mem=512MB",
    "work_mem=256MB",
    "max_wal_size=16GB",
    "checkpoint_timeout=1d",
    "synchronous_commit=off",
    "full_page_writes=off",
    "random_page_cost=1.0",
    "autovacuum=off",
    "jit=off",
    "plan_cache_mode=force_generic_plan",
    "max_parallel_workers_per_gather=0",
];

pub(crate) struct Server {
    dir: TempDir,
    process: Child,
}

impl Server {
    /// Makes a database and serves it.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let servant = Servant::find()?;
        let dir = tempfile::tempdir()?;
        if let Some((user, group)) = servant.ids {
            std::os::unix::fs::chown(dir.path(), Some(user), Some(group))?;
        }
        let data = dir.path().join("data");
        let made = servant
            .command("initdb", dir.path())?
            .arg("-D")
            .arg(&data)
            .args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
            .output()
            .context("run initdb")?;
        ensure!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut command = servant.command("postgres", dir.path())?;
        command.arg("-D").arg(&data).arg("-k").arg(dir.path());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { dir, process };
        server.await_ready()?;
        Ok(server)
    }

    fn await_ready(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            match self.connect() {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed().as_secs() >= START_SECONDS_MAX => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
            if let Some(status) = self.process.try_wait()? {
                anyhow::bail!("the server ended by itself: {status}");
            }
        }
    }

    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        Config::new()
            .host_path(self.dir.path())
            .user(USER)
            .dbname("postgres")
            .connect(NoTls)
            .context("connect to PostgreSQL")
    }

    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.interrupt();
        let status = self.process.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }

    /// Asks for the fast shutdown, which waits for no client.
    fn interrupt(&self) {
        if let Some(pid) = Pid::from_raw(self.process.id() as i32) {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.process.wait();
        }
    }
}

/// How programs of PostgreSQL are started.
struct Servant {
    programs: Option<PathBuf>,
    ids: Option<(u32, u32)>,
}

impl Servant {
    fn find() -> anyhow::Result<Self> {
        let programs = std::env::var_os("TAMIS_BENCH_POSTGRES").map(PathBuf::from);
        if !geteuid().is_root() {
            return Ok(Self { programs, ids: None });
        }
        for name in SERVANTS {
            let id = |kind: &str| -> anyhow::Result<u32> {
                let output = Command::new("id").args([kind, name]).output()?;
                Ok(String::from_utf8(output.stdout)?.trim().parse()?)
            };
            if let (Ok(user), Ok(group)) = (id("-u"), id("-g")) {
                let ids = Some((user, group));
                return Ok(Self { programs, ids });
            }
        }
        anyhow::bail!(
            "it refuses to be run by root, and there is no user {}",
            SERVANTS.join(" or ")
        )
    }

    /// `program`, not started yet; it is asked to end when this process dies.
    fn command(&self, program: &str, dir: &Path) -> anyhow::Result<Command> {
        let path = match &self.programs {
            Some(programs) => programs.join(program),
            None => PathBuf::from(program),
        };
        let found = Command::new(&path).arg("--version").output();
        found.with_context(|| format!("run {}", path.display()))?;
        let mut command = Command::new("setpriv");
        if let Some((user, group)) = self.ids {
            command.args([&format!("--reuid={user}"), &format!("--regid={group}")]);
            command.arg("--clear-groups");
        }
        command.args(["--pdeathsig", "INT", "--"]).arg(path);
        command.current_dir(dir);
        Ok(command)
    }
}
