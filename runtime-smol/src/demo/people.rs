//! The stage of the demo: programs, gateway, people, agents and their sessions.

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::DemoError;

/// The human who decides.
const HUMAN: &str = "you";
/// The agent that the hooks speak for.
pub(super) const AGENT: &str = "zcode";
/// Agents whose requests nobody answered, and how many each has left behind.
const FORGOTTEN: [(&str, usize); 2] = [("pi", 4), ("opencode", 2)];
/// Longest wait for something that the demo's own programs do at once.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks at the list of pending requests.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A request that waits for a human, as the human API lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) request_id: String,
    pub(super) session_id: String,
    pub(super) agent_name: String,
}

/// Everything that stands ready before the first scenario.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) url: String,
    pub(super) data: PathBuf,
    /// A directory that plays the user's project, and the home of the hooks.
    pub(super) project: PathBuf,
    pub(super) hook: PathBuf,
    pub(super) agent_key: String,
    /// A mail session in mode `workspace` that the human started.
    pub(super) workspace_session: String,
    /// A mail session in mode `plan` that the human started.
    pub(super) plan_session: String,
    /// A mail session that one agent started with another: no human anywhere in it.
    pub(super) agents_only_session: String,
    operator: PathBuf,
    user_key: String,
    http: ureq::Agent,
    gateway: Child,
    root: PathBuf,
}

impl Stage {
    pub(super) fn set_up() -> Result<Self, DemoError> {
        let operator = env::current_exe().map_err(|e| DemoError::Io("finding this program", e))?;
        let hook = operator.with_file_name(format!("zcode-mail-hook{}", env::consts::EXE_SUFFIX));
        if !hook.is_file() {
            return Err(DemoError::Missing(hook));
        }
        let root = fresh_directory()?;
        let data = root.join("gateway");
        let project = root.join("project");
        fs::create_dir(&project).map_err(|e| DemoError::Io("creating the project folder", e))?;
        let (gateway, url) = start_gateway(&operator, &data)?;
        let http = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build()
            .new_agent();
        let mut stage = Self {
            url,
            data,
            project,
            hook,
            agent_key: String::new(),
            workspace_session: String::new(),
            plan_session: String::new(),
            agents_only_session: String::new(),
            operator,
            user_key: String::new(),
            http,
            gateway,
            root,
        };
        stage.people()?;
        Ok(stage)
    }

    fn people(&mut self) -> Result<(), DemoError> {
        self.operate(&["user", "add", HUMAN])?;
        self.user_key = self.operate(&["user", "key", "create", HUMAN])?;
        self.agent_key = self.agent(AGENT)?;
        for (name, count) in FORGOTTEN {
            let key = self.agent(name)?;
            for number in 1..=count {
                let body = json!({
                    "question": format!("允许 {name} 执行 Bash 吗？"),
                    "context": format!("工具 Bash，命令 make step-{number}"),
                    "relay_key": format!("forgotten-{name}-{number}"),
                });
                self.post("/api/v1/permission/request", &key, &body)?;
            }
        }
        let project = self.project.display().to_string();
        self.workspace_session = self.send_as_human(&project, "workspace", "跑一遍测试")?;
        self.plan_session = self.send_as_human(&project, "plan", "先给一个方案")?;
        let planner = self.agent("planner")?;
        let body = json!({
            "to": format!("{AGENT}@{project}.new"),
            "subject": "清理构建目录",
            "body": "请清理 build/。",
        });
        let reply = self.post("/api/v1/mail/send", &planner, &body)?;
        self.agents_only_session = text(&reply, "session_id")?;
        Ok(())
    }

    /// Creates a key for an agent of the human and registers the agent with it.
    fn agent(&self, name: &str) -> Result<String, DemoError> {
        let key = self.operate(&["agent-key", "create", name, "--owner", HUMAN])?;
        let body = json!({ "name": name, "platform": name, "workspaces": [] });
        self.post("/api/v1/agent/register", &key, &body)?;
        Ok(key)
    }

    fn send_as_human(&self, path: &str, mode: &str, subject: &str) -> Result<String, DemoError> {
        let body = json!({
            "to": format!("{AGENT}@{path}.new"),
            "subject": subject,
            "body": subject,
            "permission_mode": mode,
        });
        let reply = self.post("/api/v1/me/mail/send", &self.user_key, &body)?;
        text(&reply, "session_id")
    }

    /// A link that logs the human in once.
    pub(super) fn login_link(&self) -> Result<String, DemoError> {
        self.operate(&["user", "login-link", HUMAN, "--url", &self.url])
    }

    /// The requests that wait for the human.
    pub(super) fn pending(&self) -> Result<Vec<Pending>, DemoError> {
        let reply = self.get("/api/v1/me/permissions?status=pending", &self.user_key)?;
        let list = reply.get("permissions").unwrap_or(&reply);
        let Some(list) = list.as_array() else {
            return Err(DemoError::Refused(format!("no list of requests but {reply}")));
        };
        let read = |item: &Value| {
            Ok(Pending {
                request_id: text(item, "request_id")?,
                session_id: item
                    .get("session_id")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                agent_name: text(item, "agent_name")?,
            })
        };
        list.iter().map(read).collect()
    }

    /// Waits for the one request that was not in `before` and belongs to this session and agent.
    pub(super) fn new_request(
        &self,
        before: &[Pending],
        session: &str,
        mut still_asking: impl FnMut() -> bool,
    ) -> Result<Option<Pending>, DemoError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let asking = still_asking();
            let new = self.pending()?.into_iter().find(|request| {
                !before.contains(request)
                    && request.session_id == session
                    && request.agent_name == AGENT
            });
            if new.is_some() || !asking || Instant::now() > deadline {
                return Ok(new);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Decides a request as the human.
    pub(super) fn decide(
        &self,
        request: &str,
        decision: &str,
        note: &str,
    ) -> Result<(), DemoError> {
        let path = format!("/api/v1/me/permissions/{request}/decide");
        let body = json!({ "decision": decision, "note": note });
        self.post(&path, &self.user_key, &body).map(drop)
    }

    fn get(&self, path: &str, key: &str) -> Result<Value, DemoError> {
        let request = self.http.get(format!("{}{path}", self.url));
        let reply = request.header("Authorization", format!("Bearer {key}")).call();
        read_reply(path, reply)
    }

    fn post(&self, path: &str, key: &str, body: &Value) -> Result<Value, DemoError> {
        let request = self.http.post(format!("{}{path}", self.url));
        let reply = request
            .header("Authorization", format!("Bearer {key}"))
            .header("Content-Type", "application/json")
            .send(body.to_string());
        read_reply(path, reply)
    }

    /// Runs an operator command on the demo's data and returns the first line of its output.
    fn operate(&self, args: &[&str]) -> Result<String, DemoError> {
        let out = Command::new(&self.operator)
            .args(args)
            .arg("--data")
            .arg(&self.data)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| DemoError::Io("running an operator command", e))?;
        if !out.status.success() {
            let why = String::from_utf8_lossy(&out.stderr).trim().to_owned();
            return Err(DemoError::Refused(format!("zcode-mail {}: {why}", args.join(" "))));
        }
        let stdout = String::from_utf8_lossy(&out.stdout);
        Ok(stdout.lines().next().unwrap_or_default().trim().to_owned())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The data is the demo's own and of no use after it; a failure only leaves a folder behind.
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn text(value: &Value, field: &str) -> Result<String, DemoError> {
    value
        .get(field)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| DemoError::Refused(format!("no \"{field}\" in {value}")))
}

fn read_reply(
    path: &str,
    reply: Result<http::Response<ureq::Body>, ureq::Error>,
) -> Result<Value, DemoError> {
    let mut reply = reply.map_err(|e| DemoError::Refused(format!("{path}: {e}")))?;
    let body = reply
        .body_mut()
        .read_to_string()
        .map_err(|e| DemoError::Refused(format!("{path}: {e}")))?;
    if !reply.status().is_success() {
        return Err(DemoError::Refused(format!("{path}: {} {body}", reply.status())));
    }
    serde_json::from_str(&body).map_err(|e| DemoError::Refused(format!("{path}: {e} in {body}")))
}

pub(super) fn fresh_directory() -> Result<PathBuf, DemoError> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random)
        .map_err(|e| DemoError::Io("random bytes", io::Error::other(e.to_string())))?;
    let name = format!("zcode-mail-demo-{:016x}", u64::from_ne_bytes(random));
    let root = env::temp_dir().join(name);
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(&root).map_err(|e| DemoError::Io("creating the demo's folder", e))?;
    Ok(root)
}

fn start_gateway(operator: &Path, data: &Path) -> Result<(Child, String), DemoError> {
    let log = data.with_extension("log");
    let log = fs::File::create(&log).map_err(|e| DemoError::Io("creating the log", e))?;
    let mut child = Command::new(operator)
        .args(["gateway", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .env("ADMIN_USER", "admin")
        .env("ADMIN_PASSWORD", random_password()?)
        .env_remove("DATABASE_URL")
        .env_remove("AGENTMAIL_DATA_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|e| DemoError::Io("starting the gateway", e))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line).map_err(|e| DemoError::Io("reading the address", e))?;
        // The pipe stays open for the gateway's life, so that it never writes into a closed one.
        std::thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
    }
    let Some(url) = line.trim().strip_prefix("listening on ") else {
        let _ = child.kill();
        let _ = child.wait();
        let why = fs::read_to_string(data.with_extension("log")).unwrap_or_default();
        return Err(DemoError::Refused(format!("the gateway did not start: {}", why.trim())));
    };
    let url = url.to_owned();
    Ok((child, url))
}

fn random_password() -> Result<String, DemoError> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random)
        .map_err(|e| DemoError::Io("random bytes", io::Error::other(e.to_string())))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Starts a hook for one event, with the environment that ZCode would give it.
pub(super) fn start_hook(
    stage: &Stage,
    session: &str,
    mode: &str,
    event: &Value,
) -> io::Result<Child> {
    let mut command = Command::new(&stage.hook);
    for (name, _) in env::vars_os() {
        // Settings of the person who runs the demo must not leak into it.
        if name.to_str().is_some_and(|n| n.starts_with("AGENTMAIL_") || n.starts_with("ZCODE_")) {
            command.env_remove(name);
        }
    }
    let mut child = command
        .env("HOME", &stage.root)
        .env("AGENTMAIL_GATEWAY_URL", &stage.url)
        .env("AGENTMAIL_AGENT_NAME", AGENT)
        .env("AGENTMAIL_AGENT_KEY", &stage.agent_key)
        .env("AGENTMAIL_SESSION_ID", session)
        .env("AGENTMAIL_PERMISSION_MODE", mode)
        .current_dir(&stage.project)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        writeln!(stdin, "{event}")?;
    }
    Ok(child)
}
