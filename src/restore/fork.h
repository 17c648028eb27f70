#pragma once

// A fork of a directory: the state of a checkpoint in a new directory, which is a root
// of its own from then on, with a repository of its own where the state has one.
//
// Guarantees
//   * The source is only read: neither its files nor its git directory change.
//   * Where the file system can, a file that the source still has as the state had it
//     shares its blocks, and so do git's objects (docs/decisions/0017). What was shared
//     is read and compared before it counts; otherwise the content is the store's.
//   * The directory appears at once, complete, durable and verified, by one rename; it
//     must not be there before, or be empty. Before that everything is made in a
//     directory beside it, `.belay-fork-<id>`, which is nobody else's.
//   * Interrupted anywhere: EndForks() finishes what was complete and removes the rest.
//     A note in the store, forks/<id>, leads to it and is durable before anything else
//     is made.
//   * The root, its first checkpoint (the state that was forked) and what is told of a
//     conversation that goes along are one batch.
//   * A conversation that goes along is complete and durable beside its place before
//     the directory has its name, and takes its place right after it
//     (restore/publication.h); where one is finished or removed, so is the other.
//
// Why not a rollback in a new root: a half-made root would be one, and a rollback needs
// a checkpoint of what was there. Layout of the note: docs/format.md, "forks/".

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/capture.h"
#include "core/roots.h"
#include "restore/chat_plan.h"
#include "restore/plan.h"

namespace belay {

struct DirForkRequest {
  Root source;
  Checkpoint target;  // of the source
  AbsPath dir;        // its parent is there, and real
  GitPlaces git = {};
  // Nobody but root gives files away; others own what they fork.
  uint32_t uid = 0, gid = 0;
  std::function<bool()> stop = {};
  const ChatPlan* chat = nullptr;  // a conversation that goes along; must outlive it
};

struct DirFork {
  Root root;
  Checkpoint checkpoint;  // its first
  uint64_t files = 0, bytes = 0;
  uint64_t shared = 0;      // of the bytes: in blocks that the source's files have, too
  bool repository = false;  // it has one
  std::vector<std::string> warnings = {};
};
// kExists: something is there. kRefused: the place is in a protected directory.
// Anything else that fails leaves nothing behind, or what EndForks() ends.
Result<DirFork> ForkDirectory(Store& store, Catalog& catalog,
                              const DirForkRequest& request);

// Ends forks that were interrupted: "finished the fork in DIR that was interrupted", a
// line each. Those that somebody is at work on stay. One call when there are none.
Result<std::vector<std::string>> EndForks(Store& store, Catalog& catalog);

}  // namespace belay
