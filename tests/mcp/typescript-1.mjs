// TypeScript SDK, v1 line.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { walk } from "./walk.mjs";

const client = new Client({ name: "typescript-1", version: "1" });
const transport = new StdioClientTransport({ command: process.env.SERVER, env: process.env });
await client.connect(transport);
const calls = await walk({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
});
await client.ping();
const start = Date.now();
await client.close();
console.log(`${client.getServerVersion().name}, ${calls} calls, closed in ${Date.now() - start} ms`);
