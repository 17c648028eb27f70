#include "base/mutant.h"
#include "scan/scan_internal.h"

namespace belay {

namespace {

// One path that is in one of two trees only, with everything below it.
class TreeCounter {
 public:
  using Disk = std::function<bool(const std::string& path, bool directory)>;
  TreeCounter(const Scan::TreeReader& read, Disk disk, const ChangeVisitor& visit,
              ChangeCounts& counts)
      : read_(read), disk_(std::move(disk)), visit_(visit), counts_(counts) {}

  void Count(std::string_view path, Change change, bool directory) {
    if (visit_) visit_(path, change);
    counts_.Add(change, directory);
  }
  // A directory counts by what is in it, an empty one by itself. `gone`: it is known
  // not to be there; else it may only be covered no longer.
  Status Deleted(std::string path, const TreeEntryView& entry, bool gone) {
    struct Old {
      std::string path;
      EntryKind kind;
      ObjectId id;
      bool gone;
    };
    std::vector<Old> stack;
    stack.push_back({std::move(path), entry.kind, entry.id,
                     gone || BELAY_MUTANT("ignored-is-deleted")});
    while (!stack.empty()) {
      Old at = std::move(stack.back());
      stack.pop_back();
      const bool was_dir = at.kind == EntryKind::kDirectory;
      if (!at.gone) {
        at.gone = !disk_(at.path, was_dir);
        if (!at.gone && !was_dir) continue;
      }
      if (!was_dir) {
        Count(at.path, Change::kDeleted, false);
        continue;
      }
      BELAY_TRY(Tree tree, read_(at.id));
      if (tree.entries.empty() && at.gone) Count(at.path, Change::kDeleted, true);
      for (const TreeEntry& e : tree.entries)
        stack.push_back({Joined(at.path, e.name), e.kind, e.id, at.gone});
    }
    return Ok();
  }

 private:
  const Scan::TreeReader& read_;
  const Disk disk_;
  const ChangeVisitor& visit_;
  ChangeCounts& counts_;
};

// The entries of the tree that a directory was, one after the other: from the cache, or
// as they were read.
class OldEntries {
 public:
  OldEntries() = default;
  OldEntries(OldEntries&&) = default;  // entries stay where they are
  OldEntries& operator=(OldEntries&&) = default;
  explicit OldEntries(const DirView& known) : known_(known) { Next(); }
  explicit OldEntries(Tree tree) : tree_(std::move(tree)) { Next(); }

  // Null at the end.
  const TreeEntryView* now() const { return now_ ? &*now_ : nullptr; }
  void Next() {
    now_.reset();
    while (!now_ && next_ < known_.entries.size())
      now_ = EntryInTree(known_, known_.entries[next_++]);
    if (known_.head == nullptr && next_ < tree_.entries.size())
      now_ = TreeEntryView::Of(tree_.entries[next_++]);
  }

 private:
  DirView known_;
  Tree tree_;
  size_t next_ = 0;
  std::optional<TreeEntryView> now_;
};

bool SameAttributes(const CacheEntry& e, std::string_view aux,
                    const TreeEntryView& base) {
  if (e.mode != base.mode || e.uid != base.uid || e.gid != base.gid) return false;
  if (e.kind == CacheKind::kSymlink) return aux == base.target;
  return base.xattrs.is_zero() ? aux.empty() : aux == IdText(base.xattrs);
}

EntryKind ToEntryKind(CacheKind kind) {
  return kind == CacheKind::kFile      ? EntryKind::kFile
         : kind == CacheKind::kSymlink ? EntryKind::kSymlink
                                       : EntryKind::kDirectory;
}

}  // namespace

// What cannot be looked at counts as there.
bool Scan::IsStillThere(const std::string& path, bool directory) const {
  auto below = RelPath::Parse(path);
  if (!below.ok()) return false;
  auto there = fs_.OpenBeneath(root_fd_, *below, {.access = OpenMode::Access::kPath});
  if (!there.ok()) return !IsGone(there.error());
  auto stat = fs_.Stat(*there);
  return stat.ok() && (stat->type == FileType::kDirectory) == directory;
}

Result<ChangeCounts> Scan::ChangesSince(const ObjectId& base, const TreeReader& read,
                                        const ChangeVisitor& visit) const {
  ChangeCounts counts;
  if (base == root_->tree()) return counts;
  TreeCounter counter(
      read,
      [this](const std::string& path, bool directory) {
        return IsStillThere(path, directory);
      },
      visit, counts);
  // Pairs of directories that differ; a null tree: everything here is new.
  std::vector<std::pair<const Node*, std::optional<ObjectId>>> stack;
  stack.push_back({root_, base.is_zero() ? std::nullopt : std::optional(base)});
  while (!stack.empty()) {
    auto [node, base_id] = stack.back();
    stack.pop_back();
    OldEntries old;
    if (base_id && node->known.head != nullptr &&
        (node->known.head->tree == *base_id || BELAY_MUTANT("cache-for-any-tree"))) {
      old = OldEntries(node->known);  // what the cache knew is that very tree
    } else if (base_id) {
      BELAY_TRY(Tree tree, read(*base_id));
      old = OldEntries(std::move(tree));
    }
    const DirView view = node->view();
    const std::string path = node->path();
    size_t child = 0;
    bool any = false;
    for (size_t i = 0; i < view.entries.size(); ++i) {
      const CacheEntry& e = view.entries[i];
      if (!InTree(e)) continue;
      any = true;
      const std::string_view name = view.NameOf(e);
      for (; old.now() != nullptr && old.now()->name < name; old.Next())
        BELAY_OK(counter.Deleted(Joined(path, old.now()->name), *old.now(), false));
      std::optional<TreeEntryView> before;
      if (old.now() != nullptr && old.now()->name == name) {
        before = *old.now();
        old.Next();
      }
      if (before && before->kind != ToEntryKind(e.kind)) {
        BELAY_OK(counter.Deleted(Joined(path, name), *before, true));
        before.reset();
      }
      if (e.kind != CacheKind::kDirectory) {
        const std::string_view aux = view.AuxOf(e);
        if (!before)
          counter.Count(Joined(path, name), Change::kAdded, false);
        else if (!SameAttributes(e, aux, *before) ||
                 (e.kind == CacheKind::kFile && e.id != before->id))
          counter.Count(Joined(path, name), Change::kModified, false);
        continue;
      }
      if (before && !SameAttributes(e, view.AuxOf(e), *before))
        counter.Count(Joined(path, name), Change::kModified, true);
      if (before && before->id == e.id) continue;
      while (child < node->children.size() && node->children[child]->entry < i) ++child;
      BELAY_CHECK(child < node->children.size() && node->children[child]->entry == i);
      stack.push_back(
          {node->children[child], before ? std::optional(before->id) : std::nullopt});
    }
    for (; old.now() != nullptr; old.Next())
      BELAY_OK(counter.Deleted(Joined(path, old.now()->name), *old.now(), false));
    if (!any && !base_id && node != root_) counter.Count(path, Change::kAdded, true);
  }
  return counts;
}

}  // namespace belay
