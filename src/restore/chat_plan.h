#pragma once

// What a rollback brings along of a conversation: the files that go on with it, made by
// whoever knows the agent (agent/rewind.h), and what the operation says of it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/path.h"
#include "core/operations.h"

namespace belay {

struct ChatFile {
  std::string name;  // in a folder of its own also a path from there on
  uint32_t mode = 0600;
  // Calls the sink with all of it, in order.
  using Sink = std::function<Status(ByteSpan)>;
  std::function<Status(const Sink&)> content = {};
};

struct ChatPlan {
  ChatRecord record;
  // Where the files come to be: a directory that is there, real. With `folder` in a new
  // one of that name. Without any file the agent's own program made the fork, or a host
  // has it.
  std::optional<AbsPath> dir = {};
  std::string folder = {};
  uint32_t folder_mode = 0700;
  // Of the conversation's own file; for who may give files away.
  uint32_t uid = 0, gid = 0;
  std::vector<ChatFile> files = {};
};

}  // namespace belay
