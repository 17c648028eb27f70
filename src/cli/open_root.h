#pragma once

// A command that is about one root: the store, the catalogue, the root and its
// settings.

#include <memory>

#include "cli/open_store.h"
#include "core/capture.h"
#include "core/left_out_tree.h"
#include "core/live.h"
#include "core/refs.h"
#include "core/settings.h"
#include "restore/rollback.h"
#include "store/catalog.h"

namespace belay {

struct OpenedRoot {
  std::unique_ptr<OpenedStore> opened;
  std::unique_ptr<Catalog> catalog;
  Root root;
  AbsPath path;

  Store& store() { return *opened->store; }
};

enum class NeedsRoot {
  kProtected,  // to record something
  kKnown,      // to look at its history, which may be over
  kRecorded,   // the same, to change it
};

// The root of --root, or of the current directory. kRefused with a hint when there is
// none: how to protect the directory, or that it looks like one that was moved.
Result<OpenedRoot> OpenRoot(CommandContext& ctx, NeedsRoot needs);
// The same of `dir`, whatever --root says.
Result<OpenedRoot> OpenRootAt(CommandContext& ctx, NeedsRoot needs, AbsPath dir);
// Of a session that is named where nothing is protected: the root it worked in.
Result<OpenedRoot> OpenRootOfSession(CommandContext& ctx, NeedsRoot needs,
                                     std::string_view session);

// The git work tree that holds `dir` and that `root`, which is protected, leaves out
// (core/left_out_tree.h): what is done there is in no checkpoint.
std::optional<LeftOutTree> LeftOutHere(CommandContext& ctx, Store& store,
                                       std::span<const RootEntry> roots,
                                       const Root& root, const AbsPath& dir);
// "DIR is a git work tree of its own, which ROOT leaves out (RULE)"
std::string LeftOutText(const LeftOutTree& tree, const Root& root);

// OpenRoot(kProtected) for what must be quick: the root is looked up without the
// catalogue, which is there when asked.
// kNoWait: when somebody is at work on the root it is opened all the same; who then
// wants to capture it must call Recover() first.
enum class WhenBusy { kWait, kNoWait };
Result<OpenedRoot> OpenRootFast(CommandContext& ctx, WhenBusy busy = WhenBusy::kWait);

// For RollbackRequest::waiting: one line on standard error.
std::function<void(const std::string&)> SayWaiting(Terminal& term);

// Finishes or takes back a rollback that was interrupted; nothing when there was none.
// `opened` is opened for writing when needed.
Result<std::optional<Recovered>> RecoverFirst(CommandContext& ctx,
                                              std::unique_ptr<OpenedStore>& opened,
                                              const Root& root,
                                              int64_t wait_ms = 10'000);

// The directory that --root names, or the current one: real where it exists.
Result<AbsPath> NamedDir(CommandContext& ctx);

// " DIR" as a shell takes it, for commands that are offered; "" where they are about
// `dir` without it: in the directory itself.
std::string DirWord(CommandContext& ctx, std::string_view dir);

// The checkpoint that `ref` names, with --session where the command has it. What has to
// be said about it is said.
// Who is at `/rollback` (Environment::asked_by); nobody when it is not known.
const LiveSession* WhoAsks(const Live& live, std::string_view asked_by);
// Whose `turn:` and `tool:` are meant when nobody says: of who asks (`/rollback`), else
// the one that was heard of last.
Result<std::optional<std::string>> SessionAtWork(CommandContext& ctx, OpenedRoot& root);
Result<FoundRef> FindCheckpoint(CommandContext& ctx, OpenedRoot& root,
                                std::string_view ref);

// A path that a person typed, from the root on.
struct PathBelow {
  std::string path;           // "" for the root itself
  bool as_directory = false;  // it was written with a slash at its end
};
// From the current directory where that is in the root, else from the root; by the text
// alone where that leads into the root, else as the file system has it. Nothing when it
// is outside.
Result<std::optional<PathBelow>> FindBelow(CommandContext& ctx, const AbsPath& root,
                                           std::string_view given);

// The paths behind `--`, from the root on; kInvalid for one that is outside.
Result<std::vector<std::string>> SelectedPaths(CommandContext& ctx,
                                               const AbsPath& root);

// Called when a checkpoint was made and everything is said: now and then starts
// `belay prune --background`, and does not wait for it.
void StartUpkeepIfDue(Store& store, const Checkpoint& made);

// What git's files and git itself are found by.
GitPlaces GitPlacesOf(const Environment& env);

}  // namespace belay
