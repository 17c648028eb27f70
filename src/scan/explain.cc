#include "scan/explain.h"

#include <algorithm>
#include <cerrno>

#include "scan/scan_internal.h"

namespace belay {

namespace {

constexpr std::string_view kOutside = "outside", kGitDir = "git_dir",
                           kPurged = "purged";
constexpr size_t kMaxName = 255;

bool IsNotThere(const Error& error) {
  return error.code == Errc::kNotFound || error.sys == ENOTDIR || error.sys == ELOOP ||
         error.sys == ENAMETOOLONG || error.sys == ESTALE;
}

Explanation Of(const Decision& decision) {
  return {decision.covered, WhyName(decision.why), RuleText(decision.rule)};
}

Explanation NotCovered(std::string_view why) { return {false, why, {}}; }

}  // namespace

// A directory on the way to something, there or not.
struct Explainer::Dir {
  std::string path;
  DirRules::Ptr rules;
  bool exists = false;
  // What keeps the scan out of it, other than rules: "other_mount", "unreadable",
  // "git_dir".
  std::string_view obstacle;
};

Explainer::Explainer(Fs& fs, Clock& clock, const ScanRequest& request)
    : fs_(fs), clock_(clock), request_(request), loader_(fs, clock, request.git) {}

Explainer::~Explainer() = default;

Result<std::unique_ptr<Explainer>> Explainer::Open(Fs& fs, Clock& clock,
                                                   const ScanRequest& request,
                                                   ReadIndex read_index) {
  std::unique_ptr<Explainer> explainer(new Explainer(fs, clock, request));
  explainer->loader_.set_reads_late(read_index == ReadIndex::kWhenAsked);
  BELAY_OK(explainer->Prepare());
  return explainer;
}

Status Explainer::Prepare() {
  BELAY_TRY(root_fd_, fs_.OpenDir(request_.root));
  BELAY_TRY(FileStat stat, fs_.Stat(root_fd_));
  root_dev_ = stat.dev;
  auto below = [&](const AbsPath& path) {
    if (path == request_.root || !path.IsWithin(request_.root)) return;
    const std::string& bytes = path.bytes();
    elsewhere_.push_back(
        bytes.substr(request_.root.is_root() ? 1 : request_.root.bytes().size() + 1));
  };
  for (const AbsPath& other : request_.other_roots) below(other);
  if (request_.store_dir) below(*request_.store_dir);
  BELAY_TRY(WorkTreeFacts facts, loader_.AroundRoot(request_.root, {}));
  trouble_ = facts.trouble;
  auto git = ReadRules(root_fd_, Name::Literal(".gitignore"));
  auto belay = ReadRules(root_fd_, Name::Literal(".belayignore"));
  auto root = std::make_unique<Dir>();
  root->exists = true;
  root->rules = DirRules::Root(request_.rules, facts.tree,
                               {.gitignore = git, .belayignore = belay});
  dirs_.emplace("", std::move(root));
  return Ok();
}

std::optional<std::string> Explainer::ReadRules(const Fd& dir, const Name& name) {
  // As git: only a regular file, and one that cannot be read says nothing.
  auto stat = fs_.StatAt(dir, name);
  if (!stat.ok() || stat->type != FileType::kRegular) return std::nullopt;
  auto bytes = ReadSmallFile(fs_, dir, name, kMaxPatternFile);
  if (!bytes.ok()) return std::nullopt;
  return std::string(AsText(*bytes));
}

bool Explainer::IsElsewhere(const std::string& path) const {
  return std::find(elsewhere_.begin(), elsewhere_.end(), path) != elsewhere_.end();
}

bool Explainer::IsOtherMount(const FileStat& stat) const {
  return stat.mount_root || (stat.type == FileType::kDirectory && !stat.mount_known &&
                             stat.dev != root_dev_);
}

// The answer is good until the next call.
Result<const Fd*> Explainer::OpenDir(const std::string& path) {
  constexpr size_t kMaxOpen = 32;
  if (path.empty()) return &root_fd_;
  auto holds = [&](const std::string& dir) {
    return path.size() >= dir.size() && path.compare(0, dir.size(), dir) == 0 &&
           (path.size() == dir.size() || path[dir.size()] == '/');
  };
  // The directories above stay open: each is asked for again after what is in it.
  while (!opened_.empty() && !holds(opened_.back().path)) opened_.pop_back();
  if (!opened_.empty() && opened_.back().path.size() == path.size())
    return &opened_.back().dir;
  const Fd& from = opened_.empty() ? root_fd_ : opened_.back().dir;
  const size_t skip = opened_.empty() ? 0 : opened_.back().path.size() + 1;
  BELAY_TRY(RelPath below, RelPath::Parse(std::string_view(path).substr(skip)));
  BELAY_TRY(Fd dir, fs_.OpenBeneath(from, below, OpenMode::Directory()));
  opened_.push_back({path, std::move(dir)});
  if (opened_.size() > kMaxOpen) opened_.pop_front();
  return &opened_.back().dir;
}

Result<Explainer::Dir*> Explainer::Enter(Dir& parent, std::string_view name) {
  std::string path = Joined(parent.path, name);
  if (auto known = dirs_.find(path); known != dirs_.end()) return known->second.get();
  auto dir = std::make_unique<Dir>();
  dir->path = path;
  dir->obstacle = parent.obstacle;
  std::optional<std::string> git, belay;
  std::optional<WorkTreeFacts> work_tree;
  bool looks_like_gits = false;
  if (parent.exists && IsValidName(name)) {
    auto fd = OpenDir(path);
    if (fd.ok()) {
      dir->exists = true;
      BELAY_TRY(FileStat stat, fs_.Stat(**fd));
      if (dir->obstacle.empty() && IsOtherMount(stat)) dir->obstacle = "other_mount";
      // What another file system says about itself counts there, not here.
      const bool ours = dir->obstacle.empty();
      if (ours) {
        git = ReadRules(**fd, Name::Literal(".gitignore"));
        belay = ReadRules(**fd, Name::Literal(".belayignore"));
        BELAY_TRY(looks_like_gits, IsGitDirectory(fs_, **fd));
      }
      if (ours && fs_.StatAt(**fd, Name::Literal(".git")).ok()) {
        BELAY_TRY(RelPath below, RelPath::Parse(path));
        BELAY_TRY(work_tree, loader_.At(request_.root, request_.root.Join(below), {}));
        if (work_tree)
          trouble_.insert(trouble_.end(), work_tree->trouble.begin(),
                          work_tree->trouble.end());
      }
    } else if (!IsAboutTheFile(fd.error())) {
      return std::move(fd).error();
    } else if (dir->obstacle.empty() && !IsNotThere(fd.error())) {
      dir->obstacle = "unreadable";
    }
  }
  const DirFiles files{.gitignore = git, .belayignore = belay};
  dir->rules = work_tree ? parent.rules->EnterWorkTree(name, work_tree->tree, files)
                         : parent.rules->Enter(name, files);
  // As the scan: one that holds tracked files is the project's own.
  if (looks_like_gits && !dir->rules->HoldsTracked()) dir->obstacle = kGitDir;
  return dirs_.emplace(std::move(path), std::move(dir)).first->second.get();
}

Result<Explanation> Explainer::Explain(std::string_view path, bool as_directory) {
  if (path.empty()) return Explanation{true, "covered", {}};
  // A name that is too long for any file is nobody's, and rules speak of it all the
  // same.
  std::vector<std::string_view> names;
  for (std::string_view rest = path;; rest.remove_prefix(names.back().size() + 1)) {
    names.push_back(rest.substr(0, rest.find('/')));
    if (names.back().size() <= kMaxName) {
      BELAY_TRY([[maybe_unused]] Name checked, Name::Parse(names.back()));
    }
    if (names.back().size() == rest.size()) break;
  }
  Dir* dir = dirs_.at("").get();
  for (size_t i = 0;; ++i) {
    const std::string_view name = names[i];
    // Never covered, whatever else is said: git's own, and what is another root's.
    if (IsGitAlias(name)) return NotCovered("git_dir");
    if (IsElsewhere(Joined(dir->path, name))) return NotCovered(kOutside);
    if (std::ranges::binary_search(request_.purged, Joined(dir->path, name)))
      return NotCovered(kPurged);
    if (i + 1 == names.size()) break;
    if (dir->exists && IsValidName(name)) {
      BELAY_TRY(Name here, Name::Parse(name));
      auto fd = OpenDir(dir->path);
      if (fd.ok()) {
        auto stat = fs_.StatAt(**fd, here);
        if (stat.ok() && stat->type == FileType::kSymlink) {
          // Wherever it leads: a scan follows none, and a checkpoint has the link.
          Explanation beyond = NotCovered(kOutside);
          beyond.link = Joined(dir->path, name);
          return beyond;
        }
      }
    }
    BELAY_TRY(dir, Enter(*dir, name));
  }

  const std::string_view name = names.back();
  std::optional<Name> last;
  if (IsValidName(name)) {
    BELAY_TRY(last, Name::Parse(name));
  }
  std::optional<FileStat> stat;
  bool unreadable = false;
  auto about = [&](const Error& error) -> Status {
    if (!IsAboutTheFile(error)) return error;
    if (!IsNotThere(error)) unreadable = true;
    return Ok();
  };
  if (dir->exists && last) {
    auto fd = OpenDir(dir->path);
    if (fd.ok()) {
      auto at = fs_.StatAt(**fd, *last);
      if (at.ok())
        stat = *at;
      else
        BELAY_OK(about(at.error()));
    } else {
      BELAY_OK(about(fd.error()));
    }
  }
  const bool is_dir = as_directory || (stat && stat->type == FileType::kDirectory);
  const Decision decision = dir->rules->Explain(name, is_dir);
  if (dir->obstacle == kGitDir && !dir->rules->barred()) return NotCovered(kGitDir);
  if (!decision.covered) return Of(decision);
  if (!dir->obstacle.empty()) return NotCovered(dir->obstacle);
  if (unreadable) return NotCovered("unreadable");
  if (!stat) return Of(decision);
  if (IsOtherMount(*stat)) return NotCovered("other_mount");
  switch (stat->type) {
    case FileType::kDirectory: {
      BELAY_TRY(Dir * below, Enter(*dir, name));
      if (!below->obstacle.empty()) return NotCovered(below->obstacle);
      return Of(decision);
    }
    case FileType::kSymlink:
      return Of(decision);
    case FileType::kRegular:
      break;
    default:
      return NotCovered("special");
  }
  if (stat->size > request_.max_file_size) return NotCovered("too_large");
  auto fd = OpenDir(dir->path);
  if (fd.ok()) {
    auto file = fs_.Open(**fd, *last, OpenMode::Read());
    if (!file.ok()) BELAY_OK(about(file.error()));
  }
  return unreadable ? NotCovered("unreadable") : Of(decision);
}

// --- the whole root ------------------------------------------------------------------

bool Explainer::CanRead(const Fd& dir, const std::string& name, const FileStat& stat) {
  constexpr uint32_t kByAll = 0444;  // as most are: no need to try
  if (stat.type != FileType::kRegular || (stat.mode & kByAll) == kByAll) return true;
  auto file = fs_.Open(dir, NameRef::Known(name), OpenMode::Read());
  return file.ok() || IsNotThere(file.error());
}

Status Explainer::AddBelow(const std::string& path, LeftOut& to,
                           const std::function<void(uint64_t)>& progress) {
  std::vector<std::string> waiting{path};
  while (!waiting.empty()) {
    const std::string at = std::move(waiting.back());
    waiting.pop_back();
    auto fd = OpenDir(at);
    if (!fd.ok()) {
      if (!IsAboutTheFile(fd.error())) return std::move(fd).error();
      continue;
    }
    auto self = fs_.Stat(**fd);
    // What is mounted there is not this directory's.
    if (at != path && self.ok() && IsOtherMount(*self)) continue;
    auto names = fs_.List(**fd);
    if (!names.ok()) continue;
    for (const DirEntry& entry : *names) {
      ++looked_at_;
      auto stat = fs_.StatAt(**fd, NameRef::Known(entry.name));
      if (!stat.ok()) continue;
      if (stat->type == FileType::kDirectory) {
        waiting.push_back(Joined(at, entry.name));
        continue;
      }
      ++to.files;
      to.bytes += stat->size;
    }
    if (progress) progress(looked_at_);
  }
  return Ok();
}

Result<CoverageSurvey> Explainer::Survey(
    size_t keep, const std::function<void(uint64_t)>& progress) {
  CoverageSurvey survey;
  auto larger = [](const LeftOut& a, const LeftOut& b) {
    return std::tie(b.bytes, b.files, a.path) < std::tie(a.bytes, a.files, b.path);
  };
  auto add = [&](LeftOut out) {
    survey.left_files += out.files;
    survey.left_bytes += out.bytes;
    survey.left_out.push_back(std::move(out));
    if (survey.left_out.size() < 2 * keep + 64) return;
    std::sort(survey.left_out.begin(), survey.left_out.end(), larger);
    survey.left_out.resize(keep);
  };
  struct Waiting {
    Dir* dir;
    // The directory around it that is left out but for what is tracked or protected;
    // what is left out below it counts there.
    std::shared_ptr<LeftOut> within;
    size_t place;  // in the crowd
  };
  std::vector<Waiting> waiting{{dirs_.at("").get(), nullptr, Crowd::kRoot}};
  std::vector<std::shared_ptr<LeftOut>> partly;
  looked_at_ = 0;
  while (!waiting.empty()) {
    auto [dir, within, place] = std::move(waiting.back());
    waiting.pop_back();
    auto fd = OpenDir(dir->path);
    auto names = fd.ok() ? fs_.List(**fd) : Result<std::vector<DirEntry>>(fd.error());
    if (!names.ok()) {
      if (!IsAboutTheFile(names.error()) || dir->path.empty())
        return std::move(names).error();
      add({.path = dir->path, .is_dir = true, .why = "unreadable"});
      continue;
    }
    ++survey.dirs;
    for (const DirEntry& entry : *names) {
      ++looked_at_;
      const std::string& name = entry.name;
      const std::string path = Joined(dir->path, name);
      if (IsGitAlias(name)) continue;  // git's own; said once, in words
      BELAY_TRY(fd, OpenDir(dir->path));
      auto stat = fs_.StatAt(**fd, NameRef::Known(name));
      if (!stat.ok()) {
        if (!IsNotThere(stat.error())) add({.path = path, .why = "unreadable"});
        continue;
      }
      const bool is_dir = stat->type == FileType::kDirectory;
      LeftOut out{.path = path, .is_dir = is_dir, .why = ""};
      if (!is_dir) {
        out.files = 1;
        out.bytes = stat->type == FileType::kRegular ? stat->size : 0;
      }
      const Decision decision = dir->rules->Decide(name, is_dir);
      if (IsElsewhere(path)) {
        out.why = kOutside;
      } else if (std::ranges::binary_search(request_.purged, path)) {
        out.why = kPurged;
        if (is_dir) BELAY_OK(AddBelow(path, out, progress));
      } else if (!decision.covered && (!is_dir || decision.descend == Descend::kNo)) {
        out.why = WhyName(decision.why);
        out.rule = RuleText(decision.rule);
        if (is_dir) BELAY_OK(AddBelow(path, out, progress));
        if (within) {
          within->files += out.files;
          within->bytes += out.bytes;
          continue;
        }
      } else if (IsOtherMount(*stat)) {
        out.why = "other_mount";
      } else if (is_dir) {
        BELAY_TRY(Dir * below, Enter(*dir, name));
        auto inner = within;
        if (!decision.covered && !inner) {
          out.why = WhyName(decision.why);
          out.rule = RuleText(decision.rule);
          inner = std::make_shared<LeftOut>(std::move(out));
          partly.push_back(inner);
        }
        if (&below->rules->work_tree() != &dir->rules->work_tree())
          survey.nested.push_back(path);
        if (!below->obstacle.empty()) {
          LeftOut closed{.path = path, .is_dir = true, .why = below->obstacle};
          if (closed.why == kGitDir) BELAY_OK(AddBelow(path, closed, progress));
          add(std::move(closed));
          continue;
        }
        waiting.push_back({below, std::move(inner), survey.crowd.Add(place, name)});
        continue;
      } else if (stat->type != FileType::kRegular && stat->type != FileType::kSymlink) {
        out.why = "special";
      } else if (stat->type == FileType::kRegular &&
                 stat->size > request_.max_file_size) {
        out.why = "too_large";
      } else if (!CanRead(**fd, name, *stat)) {
        out.why = "unreadable";
      } else {
        ++survey.files;
        survey.crowd.AddFile(place);
        survey.bytes += out.bytes;
        if (decision.secret) ++survey.secrets;
        continue;
      }
      add(std::move(out));
    }
    if (progress) progress(looked_at_);
    // A directory is asked for once here: a tree of a million need not stay in memory.
    if (!dir->path.empty()) dirs_.erase(std::string(dir->path));
  }
  for (const auto& part : partly)
    if (part->files > 0) add(std::move(*part));
  std::sort(survey.left_out.begin(), survey.left_out.end(), larger);
  if (survey.left_out.size() > keep) survey.left_out.resize(keep);
  std::sort(survey.nested.begin(), survey.nested.end());
  survey.trouble = trouble_;
  return survey;
}

Result<FileCount> Explainer::CountFiles(int64_t until_ns) {
  FileCount count;
  struct Waiting {
    Dir* dir;
    size_t place;
  };
  // The directories of one level before those below: what time allows is spread.
  std::deque<Waiting> waiting{{dirs_.at("").get(), Crowd::kRoot}};
  for (; !waiting.empty(); waiting.pop_front()) {
    if (clock_.SteadyNanos() >= until_ns) {
      count.complete = false;
      return count;
    }
    auto [dir, place] = waiting.front();
    auto fd = OpenDir(dir->path);
    auto names = fd.ok() ? fs_.List(**fd) : Result<std::vector<DirEntry>>(fd.error());
    if (!names.ok()) {
      if (!IsAboutTheFile(names.error())) return std::move(names).error();
      continue;
    }
    for (const DirEntry& entry : *names) {
      const std::string path = Joined(dir->path, entry.name);
      if (IsGitAlias(entry.name) || IsElsewhere(path) ||
          std::ranges::binary_search(request_.purged, path))
        continue;
      std::optional<FileType> type = entry.type;
      if (!type) {
        BELAY_TRY(fd, OpenDir(dir->path));
        auto stat = fs_.StatAt(**fd, NameRef::Known(entry.name));
        if (!stat.ok()) continue;
        type = stat->type;
      }
      const bool is_dir = *type == FileType::kDirectory;
      const Decision decision = dir->rules->Decide(entry.name, is_dir);
      if (is_dir) {
        if (!decision.covered && decision.descend == Descend::kNo) continue;
        BELAY_TRY(Dir * below, Enter(*dir, entry.name));
        if (below->obstacle.empty())
          waiting.push_back({below, count.crowd.Add(place, entry.name)});
      } else if (decision.covered &&
                 (*type == FileType::kRegular || *type == FileType::kSymlink)) {
        count.crowd.AddFile(place);
      }
    }
    if (!dir->path.empty()) dirs_.erase(std::string(dir->path));
  }
  return count;
}

}  // namespace belay
