#pragma once

// A machine for restore tests: a project directory, a store, checkpoints by name,
// rollbacks, undos and recoveries, on any Fs. Every call opens the store anew, as a
// command does.

#include <string>

#include "base/tree_text.h"
#include "core/capture.h"
#include "core/roots.h"
#include "restore/rollback.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {

class RestoreWorld {
 public:
  // `top` holds "project" and "store". `uid` owns the store (a real one: getuid()).
  RestoreWorld(Fs& disk, const AbsPath& top, uint64_t seed = 1, uint32_t uid = 1000)
      : world(disk, seed), project(top.Join(P("project"))) {
    world.dir = top.Join(P("store"));
    world.options.uid = uid;
    // Everything was written long ago: the cache may be trusted.
    world.clock.SetWallMillis(4'000'000'000'000);
    settings.store_floor = {};
    settings.store_cap = {};
  }

  Fs& fs() { return world.fs; }
  // Makes the directory when it is not there.
  Result<Fd> Dir() { return MakeDirs(world.fs, project, 0755); }

  // The store, its catalogue and the root, registered.
  struct Opened {
    std::unique_ptr<Store> store;
    std::unique_ptr<Catalog> catalog;
    Root root;
  };
  Result<Opened> Open() {
    Opened out;
    BELAY_TRY(out.store, world.Open());
    BELAY_TRY(out.catalog, Catalog::Open(*out.store));
    BELAY_TRY(auto known, FindRootAt(*out.catalog, project));
    if (known && !known->root.off) {
      out.root = known->root;
      return out;
    }
    BELAY_TRY(Fd dir, world.fs.OpenDir(project));
    BELAY_TRY(FileStat stat, world.fs.Stat(dir));
    BELAY_TRY(Registered made,
              RegisterRoot(*out.store, *out.catalog, project, stat, {}));
    out.root = made.root;
    return out;
  }
  RollbackRequest RequestFor(const Root& root) {
    RollbackRequest request;
    request.root = root;
    request.settings = &settings;
    request.git.user.no_system = true;
    request.plan = plan;
    request.git_choice = git;
    request.preserve_times = preserve_times;
    request.force = force;
    request.lock_wait_ms = lock_wait_ms;
    request.stop = stop;
    request.waiting = waiting;
    request.chat = chat;
    return request;
  }

  Result<Captured> Capture(const std::string& name) {
    BELAY_TRY(Opened opened, Open());
    CaptureRequest request;
    request.root = opened.root;
    request.settings = &settings;
    request.git.user.no_system = true;
    request.name = name;
    request.threads = 1;
    request.lock_wait_ms = lock_wait_ms;
    return CaptureCheckpoint(*opened.store, request);
  }
  Result<Checkpoint> Named(Opened& opened, const std::string& name) {
    BELAY_TRY(NamedCheckpoint found, opened.catalog->Find(opened.root.id, name));
    return found.entry.checkpoint;
  }
  Result<Outcome> Preview(const std::string& name) {
    BELAY_TRY(Opened opened, Open());
    BELAY_TRY(Checkpoint target, Named(opened, name));
    return PreviewRollback(*opened.store, RequestFor(opened.root), target);
  }
  Result<Outcome> Rollback(const std::string& name) {
    BELAY_TRY(Opened opened, Open());
    BELAY_TRY(Checkpoint target, Named(opened, name));
    return belay::Rollback(*opened.store, RequestFor(opened.root), target);
  }
  // Of `chat` alone.
  Result<Outcome> Rewind() {
    BELAY_TRY(Opened opened, Open());
    return belay::Rewind(*opened.store, RequestFor(opened.root), {});
  }
  Result<Outcome> Undo(bool exact = false) {
    BELAY_TRY(Opened opened, Open());
    return belay::Undo(*opened.store, *opened.catalog, RequestFor(opened.root), {},
                       exact);
  }
  Result<Outcome> Redo(bool exact = false) {
    BELAY_TRY(Opened opened, Open());
    return belay::Redo(*opened.store, *opened.catalog, RequestFor(opened.root), exact);
  }
  Result<std::optional<Recovered>> Recover() {
    BELAY_TRY(Opened opened, Open());
    return belay::Recover(*opened.store, RequestFor(opened.root));
  }

  // The project as text: paths, kinds, modes, content (base/tree_text.h).
  std::string Tree() {
    auto dir = world.fs.OpenDir(project);
    if (!dir.ok()) return dir.error().what;
    auto text = TreeText(world.fs, *dir);
    return text.ok() ? *text : text.error().what;
  }

  World world;
  AbsPath project;
  Settings settings;
  PlanOptions plan;
  GitChoice git;
  bool preserve_times = false;
  bool force = false;
  int64_t lock_wait_ms = 200;
  std::function<bool()> stop = {};
  std::function<void(const std::string&)> waiting = {};
  const ChatPlan* chat = nullptr;  // of a rollback
};

}  // namespace belay::test
