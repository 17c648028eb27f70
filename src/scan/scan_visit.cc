#include <algorithm>

#include "base/mutant.h"
#include "scan/explain.h"
#include "scan/scan_internal.h"

namespace belay {

bool Scan::IsKnownDirectory(const Node& parent, const CacheEntry& entry) {
  if (parent.known.head == nullptr) return false;
  const CacheEntry* known = parent.known.Find(parent.view().NameOf(entry));
  return known != nullptr && known->kind == CacheKind::kDirectory;
}

void Scan::AddChild(Worker& worker, Node& parent, size_t entry, uint64_t block) {
  Node& child = worker.NewNode();
  child.parent = &parent;
  child.entry = entry;
  child.block = block;
  child.rules_changed = parent.rules_changed;
  // The cache knows what was in the one above, and has no such directory.
  child.fresh = block == 0 && (parent.fresh || parent.known.head != nullptr) &&
                !IsKnownDirectory(parent, parent.view().entries[entry]);
  parent.children.push_back(&child);
}

DirDraft& Scan::DraftOf(Node& node) {
  if (!node.draft)
    node.draft = std::make_unique<DirDraft>(
        node.known.head != nullptr ? DirDraft::Copy(node.known) : DirDraft());
  return *node.draft;
}

// True when the cached content stands for what is on disk.
bool Scan::TakesOver(const CacheEntry& entry, uint64_t print, const Node& node,
                     Status& failed) {
  if (entry.print != print || entry.has(CacheEntry::kRacy)) return false;
  if (node.trusted || entry.kind != CacheKind::kFile ||
      BELAY_MUTANT("trust-cache-of-any-generation"))
    return true;
  auto has = sink_.HasContent(entry.id);
  if (has.ok() && *has && entry.aux_length == sizeof(ObjectId)) {
    ObjectId xattrs;
    std::string_view aux = node.known.AuxOf(entry);
    std::memcpy(xattrs.bytes.data(), aux.data(), aux.size());
    has = sink_.HasContent(xattrs);
  }
  if (has.ok()) return *has;
  failed = std::move(has).error();
  return false;
}

// The names are those of the cache: only what each is like has to be looked at.
Status Scan::VisitKnown(Worker& worker, Node& node, const Fd& dir) {
  uint64_t seen = 0;
  for (size_t i = 0; i < node.known.entries.size(); ++i) {
    const CacheEntry& e = node.known.entries[i];
    const std::string_view name = node.known.NameOf(e);
    if (e.kind == CacheKind::kDirectory) {
      AddChild(worker, node, i, e.size);
      continue;
    }
    if (e.why == Skip::kReserved || e.why == Skip::kOtherRoot ||
        e.why == Skip::kPurged ||
        (e.why == Skip::kGitDir && e.has(CacheEntry::kRuleFile)))
      continue;
    if (e.covered()) ++seen;
    auto stat = fs_.StatAt(dir, NameRef::Known(name));
    if (!stat.ok()) {
      if (!IsAboutTheFile(stat.error())) return std::move(stat).error();
      if (!IsGone(stat.error())) continue;
      DraftOf(node).head.flags |= BlockHead::kRacy;  // look again next time
      if (IsReleased())
        LeaveOut(DraftOf(node).entries[i], Skip::kChangedLate);
      else
        worker.captures.push_back(
            {.node = &node, .entry = static_cast<uint32_t>(i), .gone = true});
      continue;
    }
    Status failed = Ok();
    if (!IsKnownLate(*stat) && TakesOver(e, Fingerprint(*stat, key_), node, failed))
      continue;
    if (!failed.ok()) return failed;
    if (e.kind == CacheKind::kNone && e.print == Fingerprint(*stat, key_) &&
        !e.has(CacheEntry::kRacy))
      continue;
    // A symlink where a file was: somebody is at it right now. The next scan lists.
    DirDraft& draft = DraftOf(node);
    const CacheKind kind = KindOf(stat->type);
    if (e.kind == CacheKind::kNone || kind != e.kind || stat->mount_root) {
      // What it is now, rules and limits included, takes a listing: do that instead.
      node.draft.reset();
      std::erase_if(worker.captures, [&](const Capture& c) { return c.node == &node; });
      node.children.clear();
      BELAY_OK(VisitListed(worker, node, dir));
      if (node.draft) node.draft->head.print = node.known.head->print;
      return Ok();
    }
    if (stat->size > request_.max_file_size && kind == CacheKind::kFile) {
      CacheEntry& mine = draft.entries[i];
      mine.kind = CacheKind::kNone;
      mine.why = Skip::kTooLarge;
      mine.print = Fingerprint(*stat, key_);
      mine.flags &= ~CacheEntry::kRacy;
      draft.head.flags |= BlockHead::kHasSkipped;
      continue;
    }
    worker.captures.push_back({.node = &node, .entry = static_cast<uint32_t>(i)});
    worker.bytes_to_read += stat->size;
  }
  if (seen_.fetch_add(seen) + seen > request_.max_files) {
    too_many_ = true;
    return Error(Errc::kRefused, "too many files");  // Walk() says it better
  }
  return Ok();
}

bool Scan::IsElsewhere(const Node& node, std::string_view name, Skip& why) const {
  if (elsewhere_.empty() && store_below_.empty() && request_.purged.empty())
    return false;
  const std::string path = Joined(node.path(), name);
  why = Skip::kPurged;
  if (std::ranges::binary_search(request_.purged, path) &&
      !BELAY_MUTANT("capture-what-was-purged"))
    return true;
  why = Skip::kOtherRoot;
  return (path == store_below_ && !BELAY_MUTANT("capture-own-store")) ||
         std::binary_search(elsewhere_.begin(), elsewhere_.end(), path);
}

Status Scan::AddFile(Worker& worker, Node& node, std::string_view name,
                     const CacheEntry* known, const FileStat& stat) {
  DirDraft& draft = *node.draft;
  CacheEntry e;
  e.kind = KindOf(stat.type);
  e.print = Fingerprint(stat, key_);
  e.size = stat.size;
  e.mode = static_cast<uint16_t>(stat.mode);
  e.uid = stat.uid;
  e.gid = stat.gid;
  if (IsRuleFile(name)) e.flags |= CacheEntry::kRuleFile;
  if (stat.mount_root) {
    e.kind = CacheKind::kNone;
    e.why = Skip::kOtherMount;
  } else if (e.kind == CacheKind::kNone) {
    e.why = Skip::kSpecial;
  } else if (e.kind == CacheKind::kFile && stat.size > request_.max_file_size) {
    e.kind = CacheKind::kNone;
    e.why = Skip::kTooLarge;
  }
  if (!e.covered()) {
    draft.Add(e, name, {});
    return Ok();
  }
  Status failed = Ok();
  if (known != nullptr && known->kind == e.kind && !IsKnownLate(stat) &&
      TakesOver(*known, e.print, node, failed)) {
    e.id = known->id;
    e.why = known->why;
    draft.Add(e, name, node.known.AuxOf(*known));
    return Ok();
  }
  if (!failed.ok()) return failed;
  if (e.kind == CacheKind::kFile) worker.bytes_to_read += stat.size;
  if (known != nullptr && known->kind == e.kind) e.id = known->id;
  draft.Add(e, name, {});
  worker.captures.push_back(
      {.node = &node, .entry = static_cast<uint32_t>(draft.entries.size() - 1)});
  return Ok();
}

// Names that the cache knows and that are not among those of `dir`, which changed since
// nobody waits any longer: they may be gone since then. The lock of a directory makes a
// removal and its time stamp one: who does not see the name sees the time.
Result<std::vector<const CacheEntry*>> Scan::TakenLate(
    const Node& node, const Fd& dir, const std::vector<DirEntry>& names) {
  std::vector<const CacheEntry*> taken;
  if (!IsAlone() || BELAY_MUTANT("late-names-were-gone-before")) return taken;
  auto name = names.begin();
  for (const CacheEntry& e : node.known.entries) {
    const std::string_view known = node.known.NameOf(e);
    while (name != names.end() && name->name < known) ++name;
    if (InTree(e) && (name == names.end() || name->name != known)) taken.push_back(&e);
  }
  if (taken.empty()) return taken;
  BELAY_TRY(FileStat stat, fs_.Stat(dir));
  if (!IsLate(stat)) taken.clear();
  return taken;
}

Status Scan::VisitListed(Worker& worker, Node& node, const Fd& dir) {
  ++worker.listed;
  node.listed = true;
  auto list = fs_.List(dir);
  if (!list.ok()) {
    node.draft = std::make_unique<DirDraft>();
    if (!IsAboutTheFile(list.error())) return std::move(list).error();
    if (&node == root_) return std::move(list).error();
    if (IsGone(list.error()))
      SetGone(node);
    else
      node.why = Skip::kUnreadable;
    return Ok();
  }
  if (&node != root_) {
    BELAY_OK(DirXattrs(node, dir));
  }
  std::vector<DirEntry>& names = *list;
  std::sort(names.begin(), names.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });

  // 1. The files that decide about the others. They stand in the draft first, so that
  //    RulesOf() finds them.
  node.draft = std::make_unique<DirDraft>();
  DirDraft& draft = *node.draft;
  bool has_git = false;
  std::vector<std::pair<std::string_view, FileStat>> rule_files;
  for (const DirEntry& entry : names) {
    if (!IsRuleFile(entry.name)) continue;
    auto at = fs_.StatAt(dir, NameRef::Known(entry.name));
    if (!at.ok()) {
      if (!IsAboutTheFile(at.error())) return std::move(at).error();
      continue;
    }
    has_git = has_git || entry.name == kGit;
    if (at->type == FileType::kDirectory && entry.name != kGit) continue;
    rule_files.push_back({entry.name, *at});
    CacheEntry e;
    e.print = Fingerprint(*at, key_);
    draft.Add(e, entry.name, {});
  }
  if (node.known.head != nullptr && !node.rules_changed) {
    // Since RuleFilesChanged() looked, one may have come, gone or changed.
    size_t before = 0;
    for (const CacheEntry& e : node.known.entries)
      before += e.has(CacheEntry::kRuleFile) ? 1 : 0;
    bool same = before == rule_files.size();
    for (const auto& [name, at] : rule_files) {
      const CacheEntry* e = node.known.Find(name);
      const bool git_dir = name == kGit && at.type == FileType::kDirectory;
      same = same && e != nullptr && e->print == (git_dir ? 0 : Fingerprint(at, key_));
    }
    node.rules_changed = !same;
  }
  if (has_git && &node != root_ &&
      (node.known.head == nullptr ||
       (node.known.head->flags & BlockHead::kWorkTreeTop) == 0)) {
    BELAY_OK(LoadWorkTree(node));
    node.rules_changed = true;
  }
  BELAY_TRY(bool gits_own, IsGitsOwn(node, dir, names));
  if (gits_own) {
    node.why = Skip::kGitDir;
    return Ok();
  }
  DirRules::Ptr rules;
  auto decide = [&](std::string_view name, bool is_dir) -> Result<Decision> {
    if (!rules) {
      BELAY_TRY(rules, RulesOf(node));
    }
    return rules->Decide(name, is_dir);
  };
  // The placeholders have served once the rules were read.
  if (node.known.head == nullptr || node.rules_changed || !rule_files.empty()) {
    BELAY_TRY(rules, RulesOf(node));
  }
  draft = DirDraft();
  if (has_git) draft.head.flags |= BlockHead::kWorkTreeTop;
  draft.entries.reserve(names.size());
  size_t length = names.size();
  for (const DirEntry& entry : names) length += entry.name.size();
  draft.strings.reserve(length);
  // Growing by doubling would hold many of them twice for a moment.
  constexpr size_t kMany = 10'000;
  if (names.size() >= kMany && node.known.head == nullptr)
    worker.captures.reserve(worker.captures.size() + names.size());

  // 2. Everything, in order.
  BELAY_TRY(const auto taken, TakenLate(node, dir, names));
  auto next_taken = taken.begin();
  auto name_taken = [&](std::optional<std::string_view> before) {
    for (; next_taken != taken.end(); ++next_taken) {
      const std::string_view gone = node.known.NameOf(**next_taken);
      if (before && gone >= *before) return;
      CacheEntry e;
      LeaveOut(e, Skip::kChangedLate);
      draft.Add(e, gone, {});
      draft.head.flags |= BlockHead::kRacy;  // the next one has no such name
    }
  };
  uint64_t seen = 0;
  for (const DirEntry& entry : names) {
    const std::string_view name = entry.name;
    if (stop_) return Ok();
    name_taken(name);
    const CacheEntry* known =
        node.known.head == nullptr ? nullptr : node.known.Find(name);
    if (name == kGit) {
      CacheEntry e;
      e.why = Skip::kGitDir;
      e.flags = CacheEntry::kRuleFile;
      for (const auto& [rule_name, at] : rule_files)
        if (rule_name == kGit && at.type != FileType::kDirectory)
          e.print = Fingerprint(at, key_);
      draft.head.flags |= BlockHead::kHasRuleFiles;
      draft.Add(e, name, {});
      continue;
    }
    Skip why = Skip::kNone;
    if (IsGitAlias(name) || IsElsewhere(node, name, why)) {
      CacheEntry e;
      e.why = why == Skip::kNone ? Skip::kReserved : why;
      draft.Add(e, name, {});
      continue;
    }
    std::optional<FileStat> at;
    auto look = [&]() -> Result<bool> {
      if (at) return true;
      auto got = fs_.StatAt(dir, NameRef::Known(name));
      if (got.ok()) {
        at = *got;
        return true;
      }
      if (!IsAboutTheFile(got.error())) return std::move(got).error();
      const bool gone = IsGone(got.error());
      if (gone) draft.head.flags |= BlockHead::kRacy;  // look again next time
      if (!gone || IsReleased()) {
        CacheEntry e;
        LeaveOut(e, gone ? Skip::kChangedLate : Skip::kUnreadable);
        draft.Add(e, name, {});
      }
      return false;
    };
    std::optional<FileType> type = entry.type;
    if (!type) {
      BELAY_TRY(bool there, look());
      if (!there) continue;
      type = at->type;
    }
    const bool is_dir = *type == FileType::kDirectory;
    // The rules are the same and so is what it is: so is the decision.
    const bool decided = known != nullptr && !node.rules_changed && known->covered() &&
                         (known->kind == CacheKind::kDirectory) == is_dir;
    Decision decision;
    if (!decided) {
      BELAY_TRY(decision, decide(name, is_dir));
    }
    // It may be covered only because git tracks it, and the index cannot be read: what
    // was covered stays so. It is there, and must not look deleted.
    if (!decided && !decision.covered && known != nullptr && known->covered() &&
        decision.why != Why::kSecret && decision.why != Why::kGitDir &&
        (known->kind == CacheKind::kDirectory) == is_dir && rules->MayBeTracked()) {
      decision.covered = !is_dir;
      if (is_dir) decision.descend = Descend::kNamed;
    }
    if (is_dir) {
      if (!decided && decision.descend == Descend::kNo) continue;
      CacheEntry e;
      e.kind = CacheKind::kDirectory;
      const bool was_dir = known != nullptr && known->kind == CacheKind::kDirectory;
      if (was_dir) {
        e = *known;
      }
      if (!decided)
        e.flags = decision.descend == Descend::kNamed ? CacheEntry::kRestricted : 0;
      draft.Add(e, name, was_dir ? node.known.AuxOf(*known) : std::string_view());
      AddChild(worker, node, draft.entries.size() - 1, was_dir ? known->size : 0);
      continue;
    }
    const bool counts = IsRuleFile(name);
    if (!decided && !decision.covered && !counts && decision.why != Why::kSecret)
      continue;
    BELAY_TRY(bool there, look());
    if (!there) continue;
    if (at->type == FileType::kDirectory) {  // it became one just now
      draft.head.flags |= BlockHead::kRacy;
      continue;
    }
    if (!decided && !decision.covered) {
      CacheEntry e;
      e.why = decision.why == Why::kSecret ? Skip::kSecret : Skip::kIgnored;
      e.print = Fingerprint(*at, key_);
      if (counts) e.flags = CacheEntry::kRuleFile;
      if (IsRacy(*at, Now())) e.flags |= CacheEntry::kRacy;
      draft.Add(e, name, {});
      continue;
    }
    BELAY_OK(AddFile(worker, node, name, known, *at));
    if (draft.entries.back().covered()) ++seen;
  }
  name_taken(std::nullopt);
  if (seen_.fetch_add(seen) + seen > request_.max_files) {
    too_many_ = true;
    return Error(Errc::kRefused, "too many files");  // Walk() says it better
  }
  // Nobody below asks for them, and nothing of them is this directory's own: of half a
  // million files they would be 15 MB.
  if (node.children.empty() && rule_files.empty() && !node.work_tree &&
      &node != root_) {
    std::lock_guard guard(rules_mutex_);
    node.rules.reset();
  }
  return Ok();
}

// A git directory under another name: commits, refs and index are git's, as those in
// `.git` are. One that holds files which the repository around it tracks (fixtures of a
// project about git) is the project's. Costs nothing where the three names are not.
Result<bool> Scan::IsGitsOwn(Node& node, const Fd& dir,
                             const std::vector<DirEntry>& names) {
  if (&node == root_ || request_.gits_own || BELAY_MUTANT("capture-git-directories"))
    return false;
  for (const std::string_view name : {"HEAD", "objects", "refs"}) {
    auto at = std::lower_bound(
        names.begin(), names.end(), name,
        [](const DirEntry& e, std::string_view n) { return e.name < n; });
    if (at == names.end() || at->name != name) return false;
  }
  BELAY_TRY(bool looks_so, IsGitDirectory(fs_, dir));
  if (!looks_so) return false;
  BELAY_TRY(DirRules::Ptr rules, RulesOf(node));
  return !rules->HoldsTracked();
}

// Of a directory that was listed; its fingerprint tells when they change.
Status Scan::DirXattrs(Node& node, const Fd& dir) {
  auto of = [&](const Fd& readable) -> Status {
    auto got = CaptureXattrs(readable);
    if (!got.ok()) {
      if (got.error().sys == 0 || !IsAboutTheFile(got.error()) || request_.strict)
        return std::move(got).error();
      node.attributes_unknown = true;
      return Ok();
    }
    if (!got->empty()) node.xattrs = std::make_unique<std::string>(std::move(*got));
    return Ok();
  };
  if (node.block == 0) return of(dir);
  auto readable = OpenByPath(node, OpenMode::Directory());
  if (readable.ok() && IsMoved(node) && IsReleased()) {
    node.attributes_unknown = true;
    return Ok();
  }
  if (readable.ok()) return of(*readable);
  node.attributes_unknown = IsAboutTheFile(readable.error()) && !request_.strict;
  return node.attributes_unknown ? Ok() : Status(std::move(readable).error());
}

// The walk ended where the limit was, which says nothing about where they are: they are
// counted, for a few seconds.
Error Scan::TooManyFiles() {
  constexpr int64_t kTime = 5'000'000'000;
  std::string where;
  auto explainer = Explainer::Open(fs_, clock_, request_);
  if (explainer.ok()) {
    auto count = (*explainer)->CountFiles(clock_.SteadyNanos() + kTime);
    const std::string largest = count.ok() ? count->crowd.Text() : "";
    if (!largest.empty())
      where = (count->complete ? " (of " + std::to_string(count->crowd.total()) + ": "
                               : std::string(" (counted so far: ")) +
              largest + ")";
  }
  return Error(Errc::kRefused, "there are more than " +
                                   std::to_string(request_.max_files) + " files here" +
                                   where)
      .WithHint(
          "leave directories out with a line in .belayignore, or raise max_files");
}

}  // namespace belay
