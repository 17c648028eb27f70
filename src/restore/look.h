#pragma once

// Looking at single paths of a user's tree: what stands there, as a tree would have it.
//
// Every open is beneath the root and follows no symlink. A path below something that is
// no directory (any more) is absent. Down to kFresh levels a directory is opened from
// the root each time; below that by way of those above it (restore/dir_chain.h).
//
// Threads: one.

#include <optional>

#include "base/fs.h"
#include "core/change.h"
#include "restore/dir_chain.h"
#include "scan/sink.h"

namespace belay {

struct Looked {
  FileStat stat;
  PathState state;  // of a file, symlink or directory; not of anything else
  bool special = false;
};

class Looker {
 public:
  // A `root` that is not open is gone: everything is absent.
  Looker(Fs& fs, const Fd& root) : fs_(fs), root_(root), chain_(fs, root) {}

  // Nothing when it is absent. What is there but cannot be read is an error (kRefused).
  // "" is the root itself, whose extended attributes nobody keeps.
  // The content goes to `sink`, which may only hash it.
  Result<std::optional<Looked>> Look(const std::string& path, ScanSink& sink);
  // The same without content, attributes and link target: `state` is left empty.
  Result<std::optional<FileStat>> Stat(const std::string& path);
  // The directory that holds `path`, and its name there. kNotFound when there is none.
  // The directory stays open for the next question about it.
  struct At {
    const Fd& dir;
    Name name;
  };
  Result<At> Parent(const std::string& path);
  // Opens what is at `path`, also on a mount. `path` is not "".
  Result<Fd> Open(const std::string& path, const OpenMode& mode);
  // Names of the directories on the way may have changed.
  void Forget() { dir_ = Fd(), dir_path_.reset(), chain_.Forget(); }
  // The directory `path` is about to go: its own is looked for anew.
  void Leave(const std::string& path);

 private:
  // A directory that is moved away while it is open takes with it what is done in it:
  // the fewer stay open the better, until it costs too much.
  static constexpr size_t kFresh = 32;
  static bool IsDeep(const std::string& path);
  Result<Fd> OpenDeep(const std::string& dir);

  Fs& fs_;
  const Fd& root_;
  std::optional<std::string> dir_path_;
  Fd dir_;
  DirChain chain_;
};

// What is open: content by `sink`, attributes, as they are together (read again when it
// changed meanwhile; kConflict when it never stands still).
Result<Looked> LookAtFile(Fs& fs, const Fd& file, ScanSink& sink);
// The blob of the extended attributes that are kept, zero when there are none.
Result<ObjectId> PutXattrs(Fs& fs, const Fd& file, ScanSink& sink);

// The error says that the path, or one on the way to it, is not there.
bool IsAbsence(const Error& error);

}  // namespace belay
