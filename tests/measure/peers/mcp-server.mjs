// The stock server of the official TypeScript SDK (v2 line) with eleven tools that answer at once,
// as a peer for tests/bench.
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const server = new McpServer({ name: "peer", version: "1" });
const names =
  "read_inbox read_mail read_thread send_mail forward_mail upload_attachment download_attachment " +
  "suggest_address list_contacts session_participants connect_to_server";
for (const name of names.split(" ")) {
  const inputSchema = z.object({ mail_id: z.string().describe("A mail id.").optional() });
  server.registerTool(name, { description: "A tool of the peer", inputSchema }, ({ mail_id }) => ({
    isError: mail_id === undefined,
    content: [{ type: "text", text: mail_id ?? 'read_mail: argument "mail_id" is missing; expected a mail id.' }],
  }));
}
await server.connect(new StdioServerTransport());
