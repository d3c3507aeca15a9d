// Puts a stdio server behind a loopback HTTP endpoint, for suites that speak only HTTP.
//
//   node http-bridge.mjs COMMAND...        prints its URL when it listens
//
// A client that shakes hands gets a process of its own; requests of 2026-07-28 share one. What
// belongs to the HTTP binding (headers, statuses, streams) is done here, so a failure there is this
// file's. It trusts its one client and is for tests only.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const PREFIX = "io.modelcontextprotocol/";
const NAMED = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" };
const command = process.argv.slice(2);

// One server process. Ids are renumbered, because several HTTP clients may use the same.
class Child {
  constructor() {
    this.next = 1;
    this.waiting = new Map();
    this.process = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.process.stdout }).on("line", (line) => this.route(JSON.parse(line)));
    this.process.on("exit", () => this.waiting.forEach((client) => client.take(null)));
  }

  route(message) {
    if ("method" in message) {
      const token = message.params?.progressToken;
      for (const client of this.waiting.values()) if (client.token === token) client.take(message);
      return;
    }
    const client = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    client?.take({ ...message, id: client.id });
  }

  write(message) {
    this.process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  // Sends a request; `take` gets each message for it, and null when the process ended.
  ask(message, take) {
    const id = this.next++;
    this.waiting.set(id, { id: message.id, token: message.params?._meta?.progressToken ?? id, take });
    this.write({ ...message, id });
    return () => {
      if (this.waiting.delete(id)) this.tell({ method: "notifications/cancelled", params: { requestId: id } });
    };
  }

  tell(message) {
    if (message.method === "notifications/cancelled") {
      for (const [id, client] of this.waiting) {
        if (client.id === message.params?.requestId) message = { ...message, params: { requestId: id } };
      }
    }
    this.write({ jsonrpc: "2.0", ...message });
  }

  close() {
    this.process.stdin.end();
  }
}

const sessions = new Map();
let shared;

function stateless() {
  if (!shared || shared.process.exitCode !== null) shared = new Child();
  return shared;
}

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? "" : JSON.stringify(body));
}

function refuse(response, status, code, message, id) {
  send(response, status, { jsonrpc: "2.0", ...(id === undefined ? {} : { id }), error: { code, message } });
}

// The header that contradicts the body, if one does.
function mismatch(headers, message, meta) {
  const version = meta[`${PREFIX}protocolVersion`];
  if (version !== undefined && headers["mcp-protocol-version"] !== version) return "MCP-Protocol-Version";
  const method = headers["mcp-method"];
  if (method !== undefined && method !== message.method) return "Mcp-Method";
  const name = headers["mcp-name"];
  const named = NAMED[message.method];
  if (named && name !== undefined && name !== message.params?.[named]) return "Mcp-Name";
  return undefined;
}

function status(answer, meta) {
  const code = answer.error?.code;
  if (code === undefined) return 200;
  if (code === -32601) return 404;
  const bare = !(`${PREFIX}protocolVersion` in meta) || !(`${PREFIX}clientCapabilities` in meta);
  const bad = [-32020, -32021, -32022, -32600, -32700].includes(code) || (code === -32602 && bare);
  return bad ? 400 : 200;
}

function post(request, response, text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return refuse(response, 400, -32700, "not JSON");
  }
  if (message === null || typeof message !== "object" || Array.isArray(message)) {
    return refuse(response, 400, -32600, "one message a request");
  }
  const { headers } = request;
  const meta = message.params?._meta ?? {};
  const version = headers["mcp-protocol-version"] ?? "";
  let session = headers["mcp-session-id"];
  let modern =
    `${PREFIX}protocolVersion` in meta || `${PREFIX}clientCapabilities` in meta || (version >= "2026" && !session);
  const extra = {};
  let child;
  if (modern) {
    const header = message.id !== undefined && mismatch(headers, message, meta);
    if (header) return refuse(response, 400, -32020, `header ${header} contradicts the body`, message.id);
    child = stateless();
  } else if (message.method === "initialize" && !session) {
    session = randomUUID();
    child = new Child();
    sessions.set(session, child);
    extra["mcp-session-id"] = session;
  } else if (session) {
    child = sessions.get(session);
    if (!child) return refuse(response, 404, -32600, "no such session", message.id);
  } else {
    modern = true; // It claims no era: the server says what it thinks.
    child = stateless();
  }
  if (message.method === undefined || message.id === undefined) {
    child.tell(message);
    return send(response, 202, undefined, extra);
  }
  let streaming = false;
  const drop = child.ask(message, (answer) => {
    if (answer === null) return refuse(response, 500, -32603, "the server process ended", message.id);
    if ("method" in answer && !streaming) {
      streaming = true;
      response.writeHead(200, { "content-type": "text/event-stream", ...extra });
    }
    if (!streaming) return send(response, modern ? status(answer, meta) : 200, answer, extra);
    response.write(`event: message\ndata: ${JSON.stringify(answer)}\n\n`);
    if (!("method" in answer)) response.end();
  });
  response.on("close", drop);
}

const server = createServer((request, response) => {
  const host = (request.headers.host ?? "").replace(/:\d+$/, "");
  if (!["127.0.0.1", "localhost", "[::1]"].includes(host)) return refuse(response, 403, -32600, "another host");
  if (request.method === "DELETE") {
    const child = sessions.get(request.headers["mcp-session-id"]);
    sessions.delete(request.headers["mcp-session-id"]);
    child?.close();
    return send(response, child ? 200 : 404);
  }
  if (request.method !== "POST") return send(response, 405, undefined, { allow: "POST, DELETE" });
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => post(request, response, Buffer.concat(chunks).toString()));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
process.on("SIGTERM", () => {
  for (const child of [...sessions.values(), shared]) child?.process.kill();
  process.exit(0);
});
