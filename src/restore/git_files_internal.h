#pragma once

// GitFiles is the files of one git directory as a plan will have them: what is set here
// becomes a list of changes; nothing is written.
//
// Paths are from the common git directory on. A file that is there keeps its owner and,
// where its text is set, its mode; a new one takes both from the directory.
//
// Threads: one.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "core/change.h"
#include "core/git_record.h"
#include "git/config.h"
#include "restore/look.h"

namespace belay {

constexpr size_t kMaxGitText = size_t{64} << 20;  // of a log, or of packed-refs
constexpr std::string_view kGitSafety = "refs/belay/safety/";

using MaybeState = std::optional<PathState>;

class GitFiles {
 public:
  // What is given must outlive it. Content that is set goes to `sink`.
  GitFiles(Fs& fs, Clock& clock, ScanSink& sink, const GitRepository& repository,
           GitUserConfig user)
      : fs_(fs),
        clock_(clock),
        sink_(sink),
        repository_(repository),
        user_(std::move(user)) {}
  Status Open();

  // kConflict when it is neither file, symlink nor directory.
  Result<MaybeState> LookAt(const std::string& path);
  Result<std::optional<FileStat>> Stat(const std::string& path) {
    return looker_->Stat(path);
  }

  Status SetState(const std::string& path, MaybeState to);
  Status SetKept(const std::string& path, const GitKept& kept);
  Status SetText(const std::string& path, std::string_view text);
  // With the lock that git would take, but for a safety ref. An empty value takes it
  // away; one of a damaged ref is its bytes. kConflict: a ref that is there now stands
  // where this one's directory would be, or the other way round.
  Status SetRef(const std::string& name, const std::string& value);
  // A directory goes, if there is one.
  Status RemoveDirectory(const std::string& path);
  // What git would have noted down.
  struct LogLine {
    std::string from, to, message;
  };
  Status AppendLog(const std::string& path, const std::vector<LogLine>& lines);
  void Lock(const std::string& path) { locks_.push_back(path + ".lock"); }
  // Takes refs that went out of packed-refs.
  Status Unpack();

  bool changes(const std::string& path) const { return changes_.contains(path); }
  const FileStat& stat() const { return stat_; }
  const GitConfig& config() const { return *config_; }
  // By path, what does not change left out; the locks once each. Ends it.
  std::vector<PathChange> TakeChanges();
  std::vector<std::string> TakeLocks();

 private:
  Status MakeParents(const std::string& path);
  Status EmptyDirectory(const std::string& path);
  PathState FileState(const ObjectId& id, uint64_t size, uint32_t mode) const;
  std::string Identity() const;

  Fs& fs_;
  Clock& clock_;
  ScanSink& sink_;
  const GitRepository& repository_;
  GitUserConfig user_;
  Fd dir_;
  FileStat stat_;
  std::optional<Looker> looker_;
  std::optional<GitConfig> config_;
  std::map<std::string, PathChange> changes_;
  std::vector<std::string> locks_;
  std::set<std::string> unpack_;
};

}  // namespace belay
