// The recording hook for opencode, which has plugins instead of commands. What it sends is
// what Belay's own plugin sends: the top of src/agent/dialect_opencode.cc.
import { spawnSync } from "node:child_process"

const [hook, notes, project] = "@HOOK@ @NOTES@ @PROJECT@".split(" ")
const told = ["session.created", "session.idle", "session.error", "session.compacted", "session.deleted"]

export const Recorder = async ({ directory, worktree }) => {
  const parents = {}
  const tell = (name, sessionID, more) => {
    const event = { sessionID, parentID: parents[sessionID], directory, worktree, ...more }
    spawnSync(hook, [notes, project, name], { input: JSON.stringify(event) })
  }
  return {
    event: async ({ event }) => {
      if (!told.includes(event.type)) return
      const { sessionID, info } = event.properties
      if (info?.parentID) parents[info.id] = info.parentID
      tell(event.type, sessionID ?? info?.id, event.type === "session.created" ? { source: "startup" } : {})
    },
    "chat.message": async (input, output) =>
      tell("chat.message", input.sessionID, {
        agent: output.message.agent, message: { id: output.message.id },
        parts: output.parts.filter((part) => part.type === "text")
          .map(({ type, text, synthetic }) => ({ type, text, synthetic })),
      }),
    "command.execute.before": async (input) =>
      tell("command.execute.before", input.sessionID, { command: input.command, arguments: input.arguments }),
    "tool.execute.before": async (input, output) =>
      tell("tool.execute.before", input.sessionID, { tool: input.tool, callID: input.callID, args: output.args }),
    "tool.execute.after": async (input, output) =>
      tell("tool.execute.after", input.sessionID, {
        tool: input.tool, callID: input.callID, args: input.args,
        metadata: { exit: output.metadata?.exit, error: output.metadata?.error },
      }),
  }
}
