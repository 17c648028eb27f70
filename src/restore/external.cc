#include "restore/external.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/machine.h"
#include "base/mutant.h"
#include "core/roots.h"
#include "core/state_rules.h"
#include "git/repository.h"
#include "restore/foreign.h"
#include "restore/ground.h"
#include "restore/look.h"
#include "restore/paths_internal.h"
#include "store/heads.h"

namespace belay {

namespace {

constexpr size_t kMaxKept = 64;  // of one call
constexpr int64_t kTick = 10'000'000;

std::string NameOf(const AbsPath& path) {
  return path.bytes().substr(path.bytes().rfind('/') + 1);
}

// As much of the way there as exists, without symlinks; the last name as it is.
std::optional<AbsPath> RealPlace(Fs& fs, const AbsPath& path) {
  if (path.is_root()) return std::nullopt;
  std::string rest = NameOf(path);
  for (AbsPath at = path.parent();; at = at.parent()) {
    if (auto real = fs.RealPath(at); real.ok()) {
      auto below = RelPath::Parse(rest);
      if (!below.ok()) return std::nullopt;
      return real->Join(*below);
    }
    if (at.is_root()) return std::nullopt;
    rest = NameOf(at) + '/' + rest;
  }
}

bool IsDenied(const Error& error) { return error.sys == EACCES || error.sys == EPERM; }

bool IsReleased(const ToKeep& keep) {
  return keep.released_ns != nullptr &&
         keep.released_ns->load(std::memory_order_acquire) != 0;
}

// The tool may be at work already: what it did is not what was there before.
bool IsLate(const ToKeep& keep, const FileStat& stat) {
  if (!IsReleased(keep) || BELAY_MUTANT("late-external-counts")) return false;
  return stat.ctime_ns >= keep.released_ns->load(std::memory_order_acquire) - kTick;
}

// Nothing for what is no file: directories, and what the kernel makes up.
Result<std::optional<ExternalFile>> KeepOne(Store& store, const Root& root,
                                            const Settings& settings,
                                            const ToKeep& keep, const AbsPath& path,
                                            ScanSink& sink) {
  Fs& fs = store.fs();
  ExternalFile out{.path = path.bytes()};
  if (!keep.session.empty()) out.session = keep.session;
  auto left_out = [&](Skip why) {
    out.left_out = static_cast<uint8_t>(why);
    return std::optional(out);
  };
  if (std::ranges::any_of(root.purged, [&](const std::string& purged) {
        return IsAtOrBelow(path.bytes(), purged);
      }))
    return left_out(Skip::kPurged);
  const RuleLists lists = RulesFrom(settings)->lists();
  if (lists.skip_secrets && SecretRules(lists).IsSecret(path.bytes().substr(1)) &&
      !BELAY_MUTANT("external-secrets-are-kept"))
    return left_out(Skip::kSecret);
  const bool released = IsReleased(keep);
  auto dir = OpenRealDir(fs, path.parent());
  if (!dir.ok() && !IsAbsence(dir.error())) return left_out(Skip::kUnreadable);
  if (!dir.ok()) return released ? left_out(Skip::kChangedLate) : std::optional(out);
  auto info = fs.Info(*dir);
  if (info.ok() && IsPseudoFileSystem(info->magic))
    return std::optional<ExternalFile>();
  Looker looker(fs, *dir);
  auto stat = looker.Stat(NameOf(path));
  if (!stat.ok()) return left_out(Skip::kUnreadable);
  if (!*stat)
    return IsReleased(keep) ? left_out(Skip::kChangedLate) : std::optional(out);
  const FileType type = (*stat)->type;
  if (type == FileType::kDirectory) return std::optional<ExternalFile>();
  if (type != FileType::kRegular && type != FileType::kSymlink)
    return left_out(Skip::kSpecial);
  if (settings.max_file_size.bytes != 0 && type == FileType::kRegular &&
      (*stat)->size > settings.max_file_size.bytes)
    return left_out(Skip::kTooLarge);
  auto looked = looker.Look(NameOf(path), sink);
  if (!looked.ok() && looked.error().code == Errc::kNoSpace)
    return std::move(looked).error();
  if (!looked.ok() || !*looked || (*looked)->special)
    return left_out(IsReleased(keep) ? Skip::kChangedLate : Skip::kUnreadable);
  if (IsLate(keep, (*looked)->stat)) return left_out(Skip::kChangedLate);
  if (IsReleased(keep) && type == FileType::kRegular &&
      !BELAY_MUTANT("external-lengths-come-with-their-times")) {
    // What was read may be of a truncation whose time stamp came later.
    auto file = looker.Open(NameOf(path), OpenMode::Read());
    if (!file.ok() || !fs.AwaitLength(*file).ok()) return left_out(Skip::kChangedLate);
    auto now = fs.Stat(*file);
    if (!now.ok() || IsLate(keep, *now)) return left_out(Skip::kChangedLate);
  }
  out.state = StateOf((*looked)->state);
  return std::optional(std::move(out));
}

}  // namespace

Result<Fd> OpenRealDir(Fs& fs, const AbsPath& dir) {
  if (BELAY_MUTANT("external-through-symlinks")) return fs.OpenDir(dir);
  BELAY_TRY(Fd at, fs.OpenDir(AbsPath::Literal("/")));
  if (dir.is_root()) return at;
  BELAY_TRY(RelPath below, RelPath::Parse(dir.bytes().substr(1)));
  const auto names = below.Components();
  for (size_t i = 0; i < names.size(); ++i) {
    BELAY_TRY(Name name, Name::Parse(names[i]));
    // On the way it need not be ours to read.
    const OpenMode mode = i + 1 == names.size()
                              ? OpenMode::Directory()
                              : OpenMode{.access = OpenMode::Access::kPath};
    BELAY_TRY(at, fs.Open(at, name, mode));
  }
  return at;
}

Result<bool> MayBeExternal(Store& store, const Root& root,
                           std::span<const RootEntry> roots, const AbsPath& path) {
  if (!IsExternalPath(path.bytes())) return false;
  auto holds = [&](const Root& one) {
    auto top = AbsPath::Parse(one.path);
    return top.ok() && path.IsWithin(*top);
  };
  if (holds(root)) return false;
  for (const RootEntry& entry : roots)
    if (!entry.root.off && holds(entry.root) &&
        !BELAY_MUTANT("external-in-other-roots"))
      return false;
  Fs& fs = store.fs();
  BELAY_TRY(FileStat own, fs.Stat(store.dir()));
  for (AbsPath at = path.parent();; at = at.parent()) {
    auto dir = fs.OpenDir(at);
    if (!dir.ok() && !IsAbsence(dir.error()) && !IsDenied(dir.error()))
      return std::move(dir).error();
    if (dir.ok()) {
      BELAY_TRY(FileStat stat, fs.Stat(*dir));
      if (stat.dev == own.dev && stat.ino == own.ino &&
          !BELAY_MUTANT("external-in-the-store"))
        return false;
      auto git = IsGitDirectory(fs, *dir);
      if (!git.ok() && !IsDenied(git.error())) return std::move(git).error();
      if (git.ok() && *git) return false;
    }
    if (at.is_root()) return true;
  }
}

Status KeepExternal(Store& store, const Root& root, const Settings& settings,
                    const ToKeep& keep, Draft& draft) {
  Fs& fs = store.fs();
  BELAY_TRY(Heads heads, Heads::Read(store));
  // As the log has it now.
  Root now = root;
  for (const RootEntry& entry : heads.roots())
    if (entry.root.id == root.id) now = entry.root;
  std::set<std::string> places;
  for (const AbsPath& named : keep.named) {
    auto place = RealPlace(fs, named);
    if (!place) continue;
    places.insert(place->bytes());
    if (auto real = fs.RealPath(*place); real.ok()) places.insert(real->bytes());
  }
  for (const std::string& place : places) {
    auto path = AbsPath::Parse(place);
    if (!path.ok()) continue;
    auto may = MayBeExternal(store, root, heads.roots(), *path);
    if (may.ok() && !*may) continue;
    std::optional<ExternalFile> kept;
    if (may.ok()) {
      BELAY_TRY(kept, KeepOne(store, now, settings, keep, *path, draft.sink));
    } else if (IsExternalPath(place)) {
      kept = ExternalFile{.path = place,
                          .left_out = static_cast<uint8_t>(Skip::kUnreadable),
                          .session = keep.session};
    }
    if (!kept) continue;
    if (draft.external.size() >= kMaxKept) break;
    draft.external.push_back(std::move(*kept));
  }
  return Ok();
}

namespace {

struct Candidate {
  ExternalFile file;
  uint64_t seq = 0;
  bool own = false, foreign = false;
};

// By path: what the first checkpoint since `target` kept of it, and whose calls named
// it since.
Result<std::map<std::string, Candidate>> CandidatesSince(Store& store,
                                                         const RollbackRequest& request,
                                                         const Checkpoint& target) {
  std::map<std::string, Candidate> out;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto all, catalog->ListCheckpoints({.root = request.root.id}));
  std::set<std::string> family;
  if (target.session) {
    BELAY_TRY(family, FamilyOf(*catalog, *target.session));
    for (const std::string& session : request.asking) {
      BELAY_TRY(auto more, FamilyOf(*catalog, session));
      family.merge(more);
    }
  }
  for (size_t i = all.size(); i-- > 0;) {
    const Checkpoint& c = all[i].checkpoint;
    if (c.seq < target.seq) continue;
    for (const ExternalFile& file : c.external) {
      auto at = out.try_emplace(file.path, Candidate{file, c.seq}).first;
      if (!file.session) continue;  // of a safety checkpoint
      (family.empty() || family.contains(*file.session) ? at->second.own
                                                        : at->second.foreign) = true;
    }
  }
  return out;
}

// Plans changes of single files, and sorts them by directory.
class ExternalPlanner {
 public:
  ExternalPlanner(const ExternalPlanInput& input, Plan& plan)
      : in_(input), fs_(input.store.fs()), plan_(plan) {}

  struct Seen {
    bool may = false;
    bool dir = false;         // its directory is there
    bool in_the_way = false;  // something that is no file
    std::optional<PathState> now = {};
  };
  Result<Seen> LookAt(const AbsPath& path, ScanSink& sink) {
    Seen out;
    BELAY_TRY(out.may, MayBeExternal(in_.store, in_.request.root, in_.roots, path));
    if (!out.may) return out;
    auto dir = OpenRealDir(fs_, path.parent());
    if (!dir.ok()) {
      if (IsAbsence(dir.error())) return out;
      return std::move(dir).error();
    }
    BELAY_TRY(FsInfo info, fs_.Info(*dir));
    out.may = !IsPseudoFileSystem(info.magic);
    out.dir = true;
    Looker looker(fs_, *dir);
    BELAY_TRY(auto looked, looker.Look(NameOf(path), sink));
    if (!looked) return out;
    out.in_the_way = looked->special || looked->state.kind == EntryKind::kDirectory;
    if (!out.in_the_way) out.now = StateOf(looked->state);
    return out;
  }

  void Add(const AbsPath& path, std::optional<PathState> before,
           std::optional<PathState> after) {
    moves_[path.parent().bytes()].push_back(
        {NameOf(path), std::move(before), std::move(after)});
  }
  void Keep(const std::string& path, std::string_view why, bool wanted,
            bool missing = false) {
    plan_.kept.push_back({path, std::string(why), wanted, missing});
  }

  // Everything the changes need is there, and they can be made.
  Status Finish() {
    for (auto& [at, changes] : moves_) {
      BELAY_TRY(AbsPath path, AbsPath::Parse(at));
      BELAY_TRY(Fd dir, OpenRealDir(fs_, path));
      Plan part;
      part.changes = std::move(changes);
      std::ranges::sort(part.changes, {}, &PathChange::path);
      BELAY_OK(Told(at, CheckContent(in_.store, in_.request.plan, part)));
      BELAY_OK(Told(at, CheckGround(fs_, dir, in_.request.plan, part)));
      if (!part.locked.empty())
        return Error(Errc::kRefused, EscapeForDisplay(at) + " may not be written to")
            .WithHint("nothing was changed; make it writable: chmod u+wx " +
                      ShellWord(at));
      for (const KeptPath& kept : part.kept)
        plan_.kept.push_back(
            {at + "/" + kept.path, kept.why, kept.wanted, kept.missing});
      for (const std::string& warning : part.warnings)
        plan_.warnings.push_back("in " + EscapeForDisplay(at) + ": " + warning);
      if (part.changes.empty()) continue;
      BELAY_TRY(FileStat stat, fs_.Stat(dir));
      plan_.external.push_back({at, stat.ino, std::move(part.changes)});
    }
    return Ok();
  }

 private:
  static Status Told(const std::string& dir, Status status) {
    if (status.ok()) return status;
    Error error = std::move(status).error();
    error.what = "in " + EscapeForDisplay(dir) + ": " + error.what;
    return error;
  }

  const ExternalPlanInput& in_;
  Fs& fs_;
  Plan& plan_;
  std::map<std::string, std::vector<PathChange>> moves_;
};

// The protected directory, if any, in which it is by now.
std::string NowIn(std::span<const RootEntry> roots, const AbsPath& path) {
  for (const RootEntry& entry : roots) {
    auto top = AbsPath::Parse(entry.root.path);
    if (!entry.root.off && top.ok() && path.IsWithin(*top)) return entry.root.path;
  }
  return {};
}

std::string WayOut(const std::string& root) {
  const std::string word = ShellWord(root);
  return "what was kept of files in " + EscapeForDisplay(root) +
         ", which is protected by itself now, comes back when that is off: belay off " +
         word + ", this rollback again, belay on " + word;
}

std::string Offer(const std::vector<std::string>& paths) {
  constexpr size_t kNamed = 5;
  std::string text =
      paths.size() == 1
          ? "1 file outside the project that an edit tool changed is kept; "
            "--external-files brings it back: "
          : std::to_string(paths.size()) +
                " files outside the project that edit tools changed are kept; "
                "--external-files brings them back: ";
  for (size_t i = 0; i < std::min(kNamed, paths.size()); ++i)
    text += (i == 0 ? "" : ", ") + EscapeForDisplay(paths[i]);
  return text + (paths.size() > kNamed ? ", ..." : "");
}

}  // namespace

Status PlanExternal(const ExternalPlanInput& input, const Checkpoint& target,
                    Plan& plan) {
  // Who names paths means those, and files of others are for who asks for them.
  if (!input.request.plan.select.empty()) return Ok();
  const bool asked = input.request.external_files || BELAY_MUTANT("external-unasked");
  BELAY_TRY(auto candidates, CandidatesSince(input.store, input.request, target));
  ExternalPlanner planner(input, plan);
  HashSink hash;
  ScanSink& sink = asked ? input.sink : hash;
  const SecretRules secrets(RulesFrom(*input.request.settings)->lists());
  std::vector<std::string> offered, others;
  std::set<std::string> protects;  // roots of their own that what was kept is in
  for (auto& [bytes, candidate] : candidates) {
    const ExternalFile& file = candidate.file;
    if (!candidate.own) continue;
    BELAY_TRY(AbsPath path, AbsPath::Parse(bytes));
    auto seen = planner.LookAt(path, sink);
    if (!seen.ok() && !IsDenied(seen.error())) return std::move(seen).error();
    if (!seen.ok()) {
      // What cannot be read cannot be stored first.
      if (asked) planner.Keep(bytes, "unreadable", true);
      continue;
    }
    if (!seen->may) {
      if (!asked) continue;
      planner.Keep(bytes, "other_root", true);
      if (std::string root = NowIn(input.roots, path);
          !root.empty() && !BELAY_MUTANT("no-way-out-is-said"))
        protects.insert(std::move(root));
      continue;
    }
    if (file.left_out != 0) {
      const Skip why = static_cast<Skip>(file.left_out);
      // What somebody wants left out is not missed.
      const bool wanted = why != Skip::kSecret && why != Skip::kPurged;
      if (asked) planner.Keep(bytes, SkipName(why), wanted, !seen->now);
      continue;
    }
    const bool same = !seen->in_the_way && SameState(seen->now, file.state);
    if (same) continue;
    if (!asked) {
      offered.push_back(bytes);
      continue;
    }
    Purged purged = input.purged;
    purged.seq = candidate.seq;
    const auto& wanted = file.state;
    if (purged.LeavesAlone(bytes) ||
        (wanted && (purged.Lacks(wanted->id) || purged.Lacks(wanted->xattrs)))) {
      planner.Keep(bytes, "purged", false, !seen->now);
    } else if (seen->in_the_way) {
      planner.Keep(bytes, "in_the_way", true);
    } else if (!seen->dir) {
      if (wanted) planner.Keep(bytes, "directory_gone", true, true);
    } else if (!wanted && secrets.IsSecret(bytes.substr(1)) &&
               !input.request.plan.delete_ignored) {
      planner.Keep(bytes, "secret", false);
    } else if (!wanted && input.request.plan.settings_unknown) {
      planner.Keep(bytes, "settings_unknown", false);
    } else if (candidate.foreign && input.request.outside == OnOutside::kKeep) {
      planner.Keep(bytes, "outside", false);
    } else {
      if (candidate.foreign) others.push_back(bytes);
      planner.Add(path, seen->now, wanted);
    }
  }
  if (!offered.empty()) plan.warnings.push_back(Offer(offered));
  for (const std::string& root : protects) plan.warnings.push_back(WayOut(root));
  BELAY_OK(planner.Finish());
  if (others.empty()) return Ok();
  plan.outside.insert(plan.outside.end(), others.begin(), others.end());
  std::ranges::sort(plan.outside);
  if (input.dry || input.request.outside != OnOutside::kAsk) return Ok();
  return ChangedByOthers(plan.outside);
}

Status ReplayExternal(const ExternalPlanInput& input, std::vector<PathChange> wanted,
                      bool exact, Plan& plan, std::vector<Conflict>& conflicts) {
  ExternalPlanner planner(input, plan);
  for (PathChange& change : wanted) {
    BELAY_TRY(AbsPath path, AbsPath::Parse(change.path));
    const auto& after = change.after;
    auto seen = planner.LookAt(path, input.sink);
    if (!seen.ok() && !IsDenied(seen.error())) return std::move(seen).error();
    if (!seen.ok()) {
      conflicts.push_back({change.path, "cannot be read"});
      continue;
    }
    const bool lacks =
        after && (input.purged.Lacks(after->id) || input.purged.Lacks(after->xattrs));
    if (lacks || input.purged.LeavesAlone(change.path)) {
      planner.Keep(change.path, "purged", false, !seen->now);
      continue;
    }
    if (!seen->may) {
      conflicts.push_back({change.path, "is in a protected directory now"});
      continue;
    }
    if (!seen->in_the_way && SameState(seen->now, after)) continue;
    if (!seen->dir) {
      conflicts.push_back({change.path, "is gone, and so is its directory"});
      continue;
    }
    const bool expected = !seen->in_the_way && SameState(seen->now, change.before);
    if (!expected && (seen->in_the_way || !exact) &&
        !BELAY_MUTANT("undo-external-without-conflicts")) {
      conflicts.push_back({change.path, !seen->now && !seen->in_the_way ? "is gone"
                                        : !change.before ? "is there again"
                                                         : "changed since"});
      continue;
    }
    planner.Add(path, seen->now, after);
  }
  if (!conflicts.empty()) return Ok();
  return planner.Finish();
}

}  // namespace belay
