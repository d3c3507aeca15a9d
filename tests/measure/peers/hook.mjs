// The hook's local answer as a plain Node script: read the event, look at mode and tool, answer.
import { readFileSync } from "node:fs";

const GUARDED = ["Bash", "Write", "Edit", "ApplyPatch", "MultiEdit", "NotebookEdit"];
const event = JSON.parse(readFileSync(0, "utf8"));
const tool = event.tool_name ?? event.toolName;
if (GUARDED.includes(tool) && process.env.AGENTMAIL_PERMISSION_MODE === "full") {
  process.stdout.write(
    JSON.stringify({
      decision: "approve",
      hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "allow" } },
    }) + "\n",
  );
}
