#pragma once

// The user's commands around a rollback, undo or redo: `hooks.before_rollback`, which
// may stop it, and `hooks.after_rollback`. docs/hooks.md, "Commands of your own".

#include <optional>
#include <vector>

#include "agent/user_hooks.h"
#include "cli/context.h"
#include "cli/open_root.h"
#include "restore/rollback.h"

namespace belay {

class RollbackHooks {
 public:
  // `command` is "rollback", "undo" or "redo". All of it must outlive this.
  RollbackHooks(CommandContext& ctx, const OpenedRoot& root, const Settings& settings,
                std::string_view command)
      : ctx_(ctx), root_(root), settings_(settings), command_(command) {}

  bool wants_before() const { return !settings_.before_rollback.empty(); }
  // With what would be done, where that is known. kRefused: one of them failed, and
  // nothing may be changed.
  Status Before(const Outcome* plan, const std::optional<RecordId>& target);
  // With what was done. False, and said: one of them failed.
  bool After(const Outcome& done, const std::optional<RecordId>& target);

  const std::vector<UserHookRun>& runs() const { return runs_; }

 private:
  UserHookPlace Place() const;
  std::string Input(std::string_view hook, const Outcome* outcome,
                    const std::optional<RecordId>& target) const;

  CommandContext& ctx_;
  const OpenedRoot& root_;
  const Settings& settings_;
  const std::string_view command_;
  std::vector<UserHookRun> runs_;
};

void WriteHooks(const std::vector<UserHookRun>& runs, JsonWriter& json);

}  // namespace belay
