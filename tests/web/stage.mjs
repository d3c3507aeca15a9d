// A gateway with people and agents, real hooks, and a real browser for the page tests.
import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const programs = resolve(process.env.PROGRAMS ?? join(here, "../../target/debug"));
/** Where screenshots go; CI and people look at them, no test reads them. */
export const shots = resolve(here, "../.work/shots");
mkdirSync(shots, { recursive: true });

/** Longest wait for anything, in milliseconds; it only bounds a hang. */
export const PATIENCE = 30_000;
export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

const env = { PATH: process.env.PATH };

export class Stage {
  static async open(options = {}) {
    const stage = new Stage();
    stage.hooks = [];
    stage.root = mkdtempSync(join(tmpdir(), "zcode-mail-web-"));
    stage.data = join(stage.root, "gateway");
    await stage.startGateway("127.0.0.1:0");
    stage.operate("user", "add", "ann");
    stage.userKey = stage.operate("user", "key", "create", "ann");
    stage.agentKey = stage.operate("agent-key", "create", "zcode", "--owner", "ann");
    await stage.api("POST", "/api/v1/agent/register", stage.agentKey, {
      name: "zcode",
      platform: "zcode",
      workspaces: [],
    });
    const mail = await stage.api("POST", "/api/v1/me/mail/send", stage.userKey, {
      to: `zcode@${stage.root}.new`,
      subject: options.subject ?? "跑一遍测试",
      body: "请跑测试。",
      permission_mode: "workspace",
    });
    stage.session = mail.session_id;
    return stage;
  }

  async startGateway(listen) {
    const child = spawn(
      join(programs, "zcode-mail"),
      ["gateway", "--listen", listen, "--data", this.data],
      { env, stdio: ["ignore", "pipe", "pipe"] },
    );
    this.gateway = child;
    this.log = "";
    child.stderr.on("data", (bytes) => (this.log += bytes));
    const lines = createInterface({ input: child.stdout });
    for await (const line of lines) {
      this.url = line.replace("listening on ", "").trim();
      break;
    }
    if (!this.url?.startsWith("http")) throw new Error(`the gateway did not start: ${this.log}`);
  }

  /** Stops the gateway and starts it again on the same port and data. */
  async restartGateway() {
    const address = new URL(this.url).host;
    await this.stopGateway();
    await this.startGateway(address);
  }

  async stopGateway() {
    const child = this.gateway;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    await ended;
  }

  operate(...args) {
    const out = execFileSync(join(programs, "zcode-mail"), [...args, "--data", this.data], {
      env,
      encoding: "utf8",
    });
    return out.split("\n")[0].trim();
  }

  async api(method, path, key, body) {
    const reply = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return JSON.parse(text);
  }

  loginLink() {
    return this.operate("user", "login-link", "ann", "--url", this.url);
  }

  /** Starts a real hook; resolves with what it printed once it has ended. */
  hook(input, options = {}) {
    const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
    const child = spawn(join(programs, "zcode-mail-hook"), [], {
      env: {
        ...env,
        HOME: this.root,
        AGENTMAIL_GATEWAY_URL: this.url,
        AGENTMAIL_AGENT_NAME: "zcode",
        AGENTMAIL_AGENT_KEY: this.agentKey,
        AGENTMAIL_SESSION_ID: options.interactive ? "" : this.session,
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const event = {
      hook_event_name: "PermissionRequest",
      session_id: "sess_web",
      cwd: this.root,
      tool_name: options.tool ?? "Bash",
      tool_input: input,
      tool_use_id: `call_${id}`,
      requestId: `perm_${id}`,
    };
    this.hooks.push(child);
    child.stdin.end(JSON.stringify(event) + "\n");
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (bytes) => (stdout += bytes));
    child.stderr.on("data", (bytes) => (stderr += bytes));
    const ended = new Promise((done) =>
      child.once("close", (code) => {
        done({ code, stdout, stderr, answer: stdout ? JSON.parse(stdout) : null });
      }),
    );
    return { child, ended };
  }

  async close() {
    for (const hook of this.hooks) hook.kill("SIGKILL");
    await this.stopGateway();
    rmSync(this.root, { recursive: true, force: true });
  }
}

export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A page that fails the test on any script error, CSP violation or request to another host. */
export async function openPage(browser, stage, options = {}) {
  const context = await browser.newContext({
    viewport: options.viewport ?? DESKTOP,
    locale: options.locale ?? "zh-CN",
    javaScriptEnabled: options.javaScript ?? true,
    colorScheme: options.colorScheme ?? "light",
  });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`script error: ${error}`));
  page.on("console", (message) => {
    const text = message.text();
    // A stream that breaks with a stopped gateway is reported by the browser and is no fault.
    const offline = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/;
    if (message.type() === "error" && !offline.test(text)) problems.push(`console: ${text}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(stage.url)) problems.push(`outside request: ${request.url()}`);
  });
  return { context, page, problems };
}
