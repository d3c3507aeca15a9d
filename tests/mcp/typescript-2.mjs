// TypeScript SDK, v2 line; MODE is "default" or "auto".
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { walk } from "./walk.mjs";

const options = process.env.MODE === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "typescript-2", version: "1" }, options);
const transport = new StdioClientTransport({ command: process.env.SERVER, env: process.env });
await client.connect(transport);
const calls = await walk({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
});
const version = client.getNegotiatedProtocolVersion();
const start = Date.now();
await client.close();
console.log(`${version}, ${calls} calls, closed in ${Date.now() - start} ms`);
