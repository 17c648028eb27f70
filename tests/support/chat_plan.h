#pragma once

// A conversation that goes back with a rollback: a file, or a directory with two, that
// comes to a directory beside the project.

#include <string>

#include "restore/chat_plan.h"

namespace belay::test {

// `text` comes in two pieces, as agents' transcripts do.
inline ChatFile ChatFileOf(std::string name, std::string text, uint32_t mode = 0640) {
  return {.name = std::move(name),
          .mode = mode,
          .content = [text = std::move(text)](const ChatFile::Sink& sink) -> Status {
            const size_t half = text.size() / 2;
            BELAY_OK(sink(AsBytes(std::string_view(text).substr(0, half))));
            return sink(AsBytes(std::string_view(text).substr(half)));
          }};
}

// Session "old" goes on as "new": <dir>/new.jsonl, or <dir>/new/ with two files.
inline ChatPlan ChatPlanIn(const AbsPath& dir, const std::string& text, bool folder) {
  ChatPlan plan;
  plan.dir = dir;
  plan.uid = plan.gid = 1000;
  plan.record = {.agent = folder ? "copilot" : "claude",
                 .session = "old",
                 .forked = "new",
                 .turn = 2,
                 .inherited = 1,
                 .prompt = "the second wish",
                 .cwd = "/work"};
  if (folder) {
    plan.folder = "new";
    plan.files.push_back(ChatFileOf("workspace.yaml", "id: new\n", 0600));
    plan.files.push_back(ChatFileOf("events.jsonl", text));
    plan.record.path = dir.bytes() + "/new/events.jsonl";
  } else {
    plan.files.push_back(ChatFileOf("new.jsonl", text));
    plan.record.path = dir.bytes() + "/new.jsonl";
  }
  return plan;
}

}  // namespace belay::test
