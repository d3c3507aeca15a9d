// Plays calls.json through any client: `list()` gives the tools, `call(name, arguments)` a result.
// Throws when a tool is missing, a result has no text, or one fails that should not.
import { readFileSync } from "node:fs";

const NAMES =
  "read_inbox read_mail read_thread send_mail forward_mail upload_attachment download_attachment " +
  "suggest_address list_contacts session_participants connect_to_server";

export async function walk({ list, call }) {
  const names = (await list()).map((tool) => tool.name).join(" ");
  if (names !== NAMES) throw new Error(`tools: ${names}`);
  const known = { person: process.env.PERSON, file: process.env.FILE };
  const fill = (value) =>
    typeof value === "string" ? value.replace(/\$\{(\w+)\}/g, (_, name) => known[name]) : value;
  const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"));
  const seen = new Set();
  for (const step of calls) {
    const given = Object.fromEntries(
      Object.entries(step.arguments).map(([name, value]) => [name, fill(value)]),
    );
    const result = await call(step.tool, given);
    const text = result.content?.[0]?.text;
    if (!text) throw new Error(`${step.tool}: no text in ${JSON.stringify(result)}`);
    if (Boolean(result.isError) !== Boolean(step.error)) throw new Error(`${step.tool}: ${text}`);
    if (step.error && !text.includes(step.error)) throw new Error(`${step.tool}: ${text}`);
    for (const [name, pattern] of Object.entries(step.save ?? {})) {
      const found = text.match(new RegExp(pattern));
      if (!found) throw new Error(`${step.tool}: no ${name} in ${text}`);
      known[name] = found[1];
    }
    seen.add(step.tool);
  }
  if (seen.size !== 11) throw new Error(`only ${seen.size} tools were called`);
  return calls.length;
}
