#pragma once

// What `belay install` remembers of each file it wrote: what the file was without us,
// and how to tell that nobody else has changed it since. In the store's directory,
// `agents/`; docs/format.md has the bytes.

#include <optional>
#include <string>
#include <vector>

#include "agent/install.h"
#include "base/sha256.h"

namespace belay {

struct InstallRecord {
  std::string agent;
  bool project = false;
  FileChange::Part part = FileChange::Part::kHooks;
  std::string path;  // as the agent names it
  // The file without anything of ours; absent: there was none.
  std::optional<std::string> base = {};
  std::vector<Hash256> written =
      {};  // of every content that we gave it since; newest last
  std::vector<std::string> made_dirs = {};

  bool Wrote(std::string_view text) const;
};

class InstallRecords {
 public:
  // All there are; none where there is no store. kUnsupported: one of a newer version.
  static Result<InstallRecords> Load(Fs& fs, const AbsPath& store);

  const InstallRecord* Find(const AbsPath& path) const;
  const std::vector<InstallRecord>& all() const { return records_; }
  // That hooks were written for, and that a command does not show to be ours: they are
  // called something else than belay.
  const std::vector<std::string>& programs() const { return programs_; }

  // Waits for another process that changes agents' settings. Makes `agents/`.
  Status Lock(Clock& clock);
  // Durable when they return.
  Status Put(const InstallRecord& record);
  Status PutProgram(const AbsPath& program);
  // What is not there is no error. With the last one the programs go.
  Status Drop(const std::string& path);

 private:
  InstallRecords(Fs& fs, AbsPath store) : fs_(&fs), store_(std::move(store)) {}

  Fs* fs_;
  AbsPath store_;
  Fd dir_, lock_;
  std::vector<InstallRecord> records_;
  std::vector<std::string> programs_;
};

}  // namespace belay
