// Validates every message that the server emits against the schema.json of its revision, which the
// pinned conformance package carries (2025-03-26 and later; 2024-11-05 is not among them).
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { runInNewContext } from "node:vm";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";
import formats from "ajv-formats";

const REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const PREFIX = "io.modelcontextprotocol/";

// The documents stand in the package's one bundled file as object literals, oldest first.
function documents() {
  const bundle = new URL("node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url);
  const source = readFileSync(bundle, "utf8");
  const found = [];
  for (const match of source.matchAll(/\{\$schema:`[^`]*`,(?:definitions|\$defs):\{Annotations:/g)) {
    found.push(runInNewContext(`(${literal(source, match.index)})`));
  }
  if (found.length !== REVISIONS.length) throw new Error(`${found.length} schemas in the package`);
  return Object.fromEntries(REVISIONS.map((revision, nth) => [revision, found[nth]]));
}

// The object literal that starts at `start`.
function literal(source, start) {
  let [depth, quote] = [0, ""];
  for (let at = start; at < source.length; at++) {
    const c = source[at];
    if (quote) {
      if (c === "\\") at++;
      else if (c === quote) quote = "";
    } else if (`"'\``.includes(c)) quote = c;
    else if (c === "{") depth++;
    else if (c === "}" && --depth === 0) return source.slice(start, at + 1);
  }
  throw new Error("a schema without an end");
}

// What is said in a revision, and as what each answer has to be valid. An error to a line that is
// no JSON has no id; schemas before 2025-11-25 have no form for that.
function conversation(revision) {
  const modern = revision === "2026-07-28";
  const meta = modern
    ? { [`${PREFIX}protocolVersion`]: revision, [`${PREFIX}clientCapabilities`]: {}, [`${PREFIX}clientInfo`]: { name: "c", version: "1" } }
    : undefined;
  const request = (id, method, params, as) => ({
    line: JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, ...(meta && { _meta: { ...meta, ...params._meta } }) } }),
    id,
    as,
  });
  const call = (id, name, args, as = "CallToolResult", token) =>
    request(id, "tools/call", { name, arguments: args, ...(token && { _meta: { progressToken: token } }) }, as);
  const nameless = ["2025-11-25", "2026-07-28"].includes(revision);
  return [
    ...(modern
      ? [request("d", "server/discover", {}, "DiscoverResult")]
      : [
          request("i", "initialize", { protocolVersion: revision, capabilities: {}, clientInfo: { name: "c", version: "1" } }, "InitializeResult"),
          request("p", "ping", {}, "EmptyResult"),
        ]),
    request(1, "tools/list", {}, "ListToolsResult"),
    call(2, "read_inbox", {}),
    call(3, "read_mail", {}),
    call("u", "upload_attachment", { file_path: process.env.FILE }, "CallToolResult", "t1"),
    call(4, "no_such_tool", {}, "error"),
    request(5, "resources/list", {}, "error"),
    request(6, "tools/list", { cursor: "x" }, "error"),
    ...(modern ? [{ ...request(7, "tools/list", { _meta: { [`${PREFIX}protocolVersion`]: "1900-01-01" } }, "error"), code: -32022 }] : []),
    ...(nameless ? [{ line: "not json", id: undefined, as: "error" }] : []),
  ];
}

function validator(revision, document) {
  const modern = "$defs" in document;
  const ajv = new (modern ? Ajv2020 : Ajv)({ strict: false, allErrors: true });
  formats(ajv);
  ajv.addSchema(document, "mcp");
  const key = modern ? "$defs" : "definitions";
  const error = "JSONRPCErrorResponse" in document[key] ? "JSONRPCErrorResponse" : "JSONRPCError";
  return (as, value) => {
    const name = as === "error" ? error : as;
    const check = ajv.getSchema(`mcp#/${key}/${name}`);
    if (!check) throw new Error(`${revision} has no ${name}`);
    if (!check(value)) throw new Error(`${revision} ${name}: ${ajv.errorsText(check.errors)}\n${JSON.stringify(value)}`);
  };
}

async function run(revision, document) {
  const valid = validator(revision, document);
  const server = spawn(process.env.SERVER, [], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  let checked = 0;
  for (const step of conversation(revision)) {
    server.stdin.write(`${step.line}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error("the server ended");
      const message = JSON.parse(value);
      checked++;
      if (message.method) {
        valid("ProgressNotification", message);
        continue;
      }
      if (message.id !== step.id) throw new Error(`answer to ${message.id}`);
      if (step.as === "error") valid("error", message);
      else {
        valid("JSONRPCMessage", message);
        valid(step.as, message.result);
      }
      if (step.code && message.error.code !== step.code) throw new Error(value);
      break;
    }
  }
  server.stdin.end();
  return checked;
}

const all = documents();
const counts = [];
for (const revision of REVISIONS) counts.push(`${revision}: ${await run(revision, all[revision])}`);
console.log(`valid messages: ${counts.join(", ")}`);
