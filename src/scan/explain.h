#pragma once

// Explainer says of any path whether it is covered and which rule decided; and looks
// over a whole root for what is left out and how large it is. For people who ask: it
// decides as the scan does (tests/scan/explain_test.cc holds one against the other) and
// says why, reads also the rule files below directories that a scan does not enter, and
// takes paths that do not exist.
//
// Nothing is written, no symlink is followed, no content is read.
//
// Threads: one.

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "scan/crowd.h"
#include "scan/scan.h"

namespace belay {

struct Explanation {
  bool covered = false;
  std::string_view why = "outside";  // the words of `belay why`
  std::string rule = {};             // "source:line:pattern", raw bytes; empty = none
  std::string link = {};  // of "outside": the symlink it lies beyond, from the root on
  bool operator==(const Explanation&) const = default;
};

// Something that is left out, with everything below it.
struct LeftOut {
  std::string path;
  bool is_dir = false;
  std::string_view why;
  std::string rule = {};
  uint64_t files = 0;
  uint64_t bytes = 0;
};

struct CoverageSurvey {
  uint64_t files = 0, bytes = 0, dirs = 0;  // covered
  uint64_t secrets = 0;                     // of them
  uint64_t left_files = 0, left_bytes = 0;  // left out, all of it
  std::vector<LeftOut> left_out;            // the largest, largest first
  Crowd crowd;                              // where what is covered lies
  // The work trees nested in the root that are entered.
  std::vector<std::string> nested;
  std::vector<std::string> trouble;  // what git's files could not tell us
};

// How many files there are, and where.
struct FileCount {
  Crowd crowd;
  bool complete = true;  // or there was no time for all of it
};

class Explainer {
 public:
  // kWhenAsked: an index is read only where an answer depends on it; that it cannot be
  // read is then no trouble.
  enum class ReadIndex : uint8_t { kFirst, kWhenAsked };
  // `request` (rules, limits, other roots) and the rest must outlive the explainer.
  static Result<std::unique_ptr<Explainer>> Open(
      Fs& fs, Clock& clock, const ScanRequest& request,
      ReadIndex read_index = ReadIndex::kFirst);
  ~Explainer();

  // `path` is clean and relative to the root, "" for the root itself. What exists is
  // what it is; what does not is a file, or a directory when `as_directory`.
  Result<Explanation> Explain(std::string_view path, bool as_directory);

  // Keeps the `keep` largest of what is left out. `progress` is told how many entries
  // were looked at.
  Result<CoverageSurvey> Survey(size_t keep,
                                const std::function<void(uint64_t)>& progress = {});

  // How many files the rules cover, from their names alone: what is too large or cannot
  // be read counts too. Ends at `until_ns` (the clock's steady time), whatever is left.
  Result<FileCount> CountFiles(int64_t until_ns);

  // What git's files could not tell us about the work trees that were met.
  const std::vector<std::string>& trouble() const { return trouble_; }

 private:
  struct Dir;
  Explainer(Fs& fs, Clock& clock, const ScanRequest& request);
  Status Prepare();
  Result<Dir*> Enter(Dir& parent, std::string_view name);
  Result<const Fd*> OpenDir(const std::string& path);
  std::optional<std::string> ReadRules(const Fd& dir, const Name& name);
  bool IsElsewhere(const std::string& path) const;
  bool IsOtherMount(const FileStat& stat) const;
  bool CanRead(const Fd& dir, const std::string& name, const FileStat& stat);
  Status AddBelow(const std::string& path, LeftOut& to,
                  const std::function<void(uint64_t)>& progress);

  Fs& fs_;
  Clock& clock_;
  const ScanRequest& request_;
  WorkTreeLoader loader_;
  Fd root_fd_;
  uint64_t root_dev_ = 0;
  std::vector<std::string> elsewhere_;  // relative paths of other roots and the store
  std::unordered_map<std::string, std::unique_ptr<Dir>> dirs_;
  // Open directories, each in the one before it (not always directly): the next one is
  // opened from the nearest, or a deep tree would cost the square of its depth.
  struct Opened {
    std::string path;
    Fd dir;
  };
  std::deque<Opened> opened_;
  std::vector<std::string> trouble_;
  uint64_t looked_at_ = 0;
};

}  // namespace belay
