#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/bytes.h"
#include "diff/line_diff.h"
#include "diff/renames_internal.h"

namespace belay {

namespace {

constexpr uint64_t kMaxFile = uint64_t{8} << 20;    // of one that is compared
constexpr uint64_t kMaxRead = uint64_t{128} << 20;  // of all of them
constexpr size_t kMaxFiles = 1000;                  // that went, and that came
constexpr uint64_t kMaxSteps = uint64_t{1} << 28;
constexpr unsigned kSimilar = 50;  // per cent

// How many bytes a file has of each line, by the line's hash.
struct Print {
  bool read = false;
  std::vector<std::pair<uint32_t, uint32_t>> lines;  // by hash
};

Print PrintOf(std::string_view text) {
  constexpr size_t kPiece = 64;  // of long lines, so that they can be similar
  Print print{true, {}};
  for (size_t at = 0; at < text.size();) {
    std::string_view line =
        LineAt(text.substr(0, std::min(text.size(), at + kPiece)), at);
    print.lines.emplace_back(static_cast<uint32_t>(TokenHash(line)),
                             static_cast<uint32_t>(line.size()));
    at += line.size();
  }
  std::sort(print.lines.begin(), print.lines.end());
  size_t kept = 0;
  for (size_t i = 0; i < print.lines.size(); ++i) {
    if (kept > 0 && print.lines[kept - 1].first == print.lines[i].first)
      print.lines[kept - 1].second += print.lines[i].second;
    else
      print.lines[kept++] = print.lines[i];
  }
  print.lines.resize(kept);
  return print;
}

std::string_view NameOf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

class Finder {
 public:
  Finder(const DiffSide& from, const DiffSide& to, StateDiff& diff)
      : from_(from), to_(to), diff_(diff) {}

  Status Run() {
    for (size_t i = 0; i < diff_.paths.size(); ++i) {
      const PathDiff& path = diff_.paths[i];
      // Whoever applies it one by one could not make room first.
      if (path.swaps_directory) continue;
      if (path.status == DiffStatus::kDeleted && IsCandidate(*path.before))
        gone_.push_back(i);
      if (path.status == DiffStatus::kAdded && IsCandidate(*path.after))
        come_.push_back(i);
    }
    if (gone_.empty() || come_.empty()) return Ok();
    auto by_path = [this](size_t a, size_t b) {
      return diff_.paths[a].path < diff_.paths[b].path;
    };
    std::sort(gone_.begin(), gone_.end(), by_path);
    std::sort(come_.begin(), come_.end(), by_path);
    Exact();
    BELAY_OK(Similar());
    Apply();
    return Ok();
  }

 private:
  static bool IsCandidate(const TreeEntry& entry) {
    return entry.kind == EntryKind::kFile && entry.size > 0;
  }

  void Pair(size_t gone, size_t come, unsigned similarity) {
    pairs_.push_back({gone, come, similarity});
    taken_[gone] = taken_[come] = true;
  }

  void Exact() {
    std::unordered_map<ObjectId, std::vector<size_t>> by_id;
    for (size_t gone : gone_) by_id[diff_.paths[gone].before->id].push_back(gone);
    // The same name first: files that are alike (licences, empty modules) move
    // together with their directories.
    for (const bool same_name : {true, false}) {
      for (size_t come : come_) {
        if (taken_.contains(come)) continue;
        auto found = by_id.find(diff_.paths[come].after->id);
        if (found == by_id.end()) continue;
        size_t tried = 0;
        for (size_t gone : found->second) {
          if (taken_.contains(gone)) continue;
          if (++tried > 64 && same_name) break;
          if (same_name &&
              NameOf(diff_.paths[gone].path) != NameOf(diff_.paths[come].path))
            continue;
          Pair(gone, come, 100);
          break;
        }
      }
    }
  }

  Status Similar() {
    auto rest = [this](const std::vector<size_t>& all) {
      std::vector<size_t> out;
      for (size_t i : all) {
        const PathDiff& path = diff_.paths[i];
        const uint64_t size = path.before ? path.before->size : path.after->size;
        if (!taken_.contains(i) && !path.secret && size <= kMaxFile) out.push_back(i);
      }
      return out;
    };
    const std::vector<size_t> gone = rest(gone_), come = rest(come_);
    if (gone.empty() || come.empty()) return Ok();
    // The same name elsewhere, where there is exactly one of it.
    std::map<std::string_view, std::vector<size_t>> names;
    for (size_t g : gone) names[NameOf(diff_.paths[g].path)].push_back(g);
    std::map<std::string_view, size_t> coming;
    for (size_t c : come) ++coming[NameOf(diff_.paths[c].path)];
    for (size_t c : come) {
      const std::string_view name = NameOf(diff_.paths[c].path);
      auto found = names.find(name);
      if (found == names.end() || found->second.size() != 1 || coming[name] != 1)
        continue;
      BELAY_TRY(unsigned score, Score(found->second[0], c));
      if (score >= kSimilar) Pair(found->second[0], c, score);
    }
    const std::vector<size_t> gone2 = rest(gone_), come2 = rest(come_);
    if (gone2.empty() || come2.empty()) return Ok();
    if (gone2.size() > kMaxFiles || come2.size() > kMaxFiles) {
      diff_.renames_cut_short = true;
      return Ok();
    }
    std::vector<Found> found;
    for (size_t c : come2) {
      for (size_t g : gone2) {
        BELAY_TRY(unsigned score, Score(g, c));
        if (score >= kSimilar) found.push_back({g, c, score});
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return a.similarity > b.similarity;
    });
    for (const Found& f : found)
      if (!taken_.contains(f.gone) && !taken_.contains(f.come))
        Pair(f.gone, f.come, f.similarity);
    return Ok();
  }

  // Per cent that both have of the larger one; 0 also when it was too much to ask.
  Result<unsigned> Score(size_t gone, size_t come) {
    const uint64_t a = diff_.paths[gone].before->size;
    const uint64_t b = diff_.paths[come].after->size;
    const uint64_t larger = std::max(a, b);
    if (std::min(a, b) * 100 < larger * kSimilar) return 0u;
    BELAY_TRY(const Print* of_a, PrintFor(gone));
    BELAY_TRY(const Print* of_b, PrintFor(come));
    if (!of_a->read || !of_b->read) return 0u;
    steps_ += of_a->lines.size() + of_b->lines.size();
    if (steps_ > kMaxSteps) {
      diff_.renames_cut_short = true;
      return 0u;
    }
    uint64_t same = 0;
    auto x = of_a->lines.begin();
    auto y = of_b->lines.begin();
    while (x != of_a->lines.end() && y != of_b->lines.end()) {
      if (x->first < y->first) {
        ++x;
      } else if (y->first < x->first) {
        ++y;
      } else {
        same += std::min(x->second, y->second);
        ++x, ++y;
      }
    }
    // 100 is for what is the same.
    return static_cast<unsigned>(std::min<uint64_t>(same * 100 / larger, 99));
  }

  Result<const Print*> PrintFor(size_t index) {
    auto [at, fresh] = prints_.try_emplace(index);
    if (!fresh) return &at->second;
    const PathDiff& path = diff_.paths[index];
    const bool gone = path.before.has_value();
    const TreeEntry& entry = gone ? *path.before : *path.after;
    if (read_ + entry.size > kMaxRead) {
      diff_.renames_cut_short = true;
      return &at->second;
    }
    read_ += entry.size;
    auto bytes = (gone ? from_ : to_).content(path.path, entry, kMaxFile);
    // What cannot be read is no rename; whoever shows the file says why.
    if (bytes.ok()) at->second = PrintOf(AsText(*bytes));
    return &at->second;
  }

  void Apply() {
    std::vector<bool> drop(diff_.paths.size());
    for (const Found& pair : pairs_) {
      PathDiff& come = diff_.paths[pair.come];
      PathDiff& gone = diff_.paths[pair.gone];
      come.status = DiffStatus::kRenamed;
      come.old_path = gone.path;
      come.before = std::move(gone.before);
      come.similarity = pair.similarity;
      come.secret = come.secret || gone.secret;
      drop[pair.gone] = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < diff_.paths.size(); ++i) {
      if (drop[i]) continue;
      if (kept != i) diff_.paths[kept] = std::move(diff_.paths[i]);
      ++kept;
    }
    diff_.paths.resize(kept);
  }

  struct Found {
    size_t gone, come;
    unsigned similarity;
  };
  const DiffSide& from_;
  const DiffSide& to_;
  StateDiff& diff_;
  std::vector<size_t> gone_, come_;
  std::unordered_map<size_t, bool> taken_;
  std::unordered_map<size_t, Print> prints_;
  std::vector<Found> pairs_;
  uint64_t read_ = 0, steps_ = 0;
};

}  // namespace

Status FindRenames(const DiffSide& from, const DiffSide& to, StateDiff& diff) {
  return Finder(from, to, diff).Run();
}

}  // namespace belay
