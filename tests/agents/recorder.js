// The recording hook for opencode, which has plugins instead of commands. Each call becomes
// one event, in the shape that agents with command hooks use; `raw` is what opencode gave.
import { spawnSync } from "node:child_process"

const [hook, notes, project] = "@HOOK@ @NOTES@ @PROJECT@".split(" ")

export const Recorder = async ({ directory, worktree, project: info }) => {
  const tell = (name, session, raw, more = {}) => {
    const event = {
      hook_event_name: name, session_id: session, cwd: directory, worktree,
      project_id: info?.id, ...more, raw,
    }
    spawnSync(hook, [notes, project, name], { input: JSON.stringify(event) })
  }
  return {
    event: async ({ event }) => {
      if (!/^(session\.(created|updated|idle|error|compacted|deleted)|command\.executed)$/.test(event.type)) return
      tell("event:" + event.type, event.properties.sessionID ?? event.properties.info?.id, { event })
    },
    "chat.message": async (input, output) => tell("chat.message", input.sessionID, { input, output }),
    "command.execute.before": async (input, output) =>
      tell("command.execute.before", input.sessionID, { input, output }),
    "tool.execute.before": async (input, output) =>
      tell("tool.execute.before", input.sessionID, { input, output },
        { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID }),
    "tool.execute.after": async (input, output) =>
      tell("tool.execute.after", input.sessionID, { input, output },
        { tool_name: input.tool, tool_input: input.args, tool_use_id: input.callID }),
  }
}
