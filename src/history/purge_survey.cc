#include "history/purge_survey.h"

#include <algorithm>
#include <tuple>

#include "base/mutant.h"
#include "core/change.h"
#include "core/git_record.h"
#include "core/purged.h"
#include "scan/rules_record.h"

namespace belay {

namespace {

std::string Joined(const std::string& dir, std::string_view name) {
  return dir.empty() ? std::string(name) : dir + '/' + std::string(name);
}

// What cannot be read cannot be judged; what was purged before needs no judging.
Status Unreadable(const Error& error) {
  if (error.code == Errc::kPurged) return Ok();
  return Error(error.code == Errc::kNotFound ? Errc::kCorrupt : error.code, error.what)
      .WithHint("nothing was purged; belay verify names what is damaged");
}

template <class T>
Result<std::optional<T>> IfReadable(Result<T> read) {
  if (read.ok()) return std::optional<T>(std::move(*read));
  BELAY_OK(Unreadable(read.error()));
  return std::optional<T>();
}

Result<Node> NodeOf(Store& store, const ObjectId& id) {
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, id}));
  return DecodeNode(bytes);
}

}  // namespace

Status PurgeSurvey::Run() {
  // Newest first: what a purge took from a record it took from all before it, so that
  // what was looked at once need not be looked at again.
  const auto& records = log_.records;
  for (const LogRecord& record : records)
    for (const KeptChunks& kept : KeptBy(record))
      kept_chunks_[kept.content].insert(kept.chunks.begin(), kept.chunks.end());
  for (auto at = records.rbegin(); at != records.rend(); ++at)
    if (log_.Holds(*at) && roots_.contains(at->root)) BELAY_OK(FindMine(*at));
  BELAY_OK(MineInGitDirs());
  if (mine_.empty() && remains_.empty()) return Ok();
  for (auto at = records.rbegin(); at != records.rend(); ++at)
    if (log_.Holds(*at)) BELAY_OK(OthersInRecord(*at));
  return Ok();
}

bool PurgeSurvey::IsGone(const ObjectId& content) const {
  auto purged = log_.purged.find({ObjectType::kBlob, content});
  return purged != log_.purged.end() && purged->second > seq_;
}

Result<bool> PurgeSurvey::LookAtOther(const LogRecord& record) {
  auto places = [&] {
    size_t count = 0;
    for (const auto& [id, all] : others_) count += all.size();
    return count;
  };
  const size_t before = places();
  const size_t versions = mine_.size();
  if (roots_.contains(record.root)) BELAY_OK(FindMine(record));
  if (!mine_.empty() || !remains_.empty()) BELAY_OK(OthersInRecord(record));
  return places() == before && mine_.size() == versions;
}

bool PurgeSurvey::IsOurs(const RootId& root, std::string_view path) const {
  return roots_.contains(root) && IsAtOrBelow(path, path_);
}

bool PurgeSurvey::WasPurged(const RootId& root, std::string_view path) const {
  if (path.empty() || BELAY_MUTANT("purge-spares-the-purged")) return false;
  auto found = purged_before_.find(root);
  if (found == purged_before_.end()) return false;
  return std::ranges::any_of(found->second, [&](const PurgedPath& purged) {
    return purged.seq > seq_ && IsAtOrBelow(path, purged.path);
  });
}

// --- what the path had ---------------------------------------------------------------

Status PurgeSurvey::FindMine(const LogRecord& record) {
  seq_ = record.seq;
  for (const ExternalFile& file : ExternalIn(record)) {
    if (!IsAtOrBelow(file.path, path_) || !file.state) continue;
    if (!BELAY_MUTANT("purge-spares-external"))
      BELAY_OK(MineInEntry(*file.state, file.path));
  }
  for (const ObjectKey& key : record.refs) {
    if (key.type == ObjectType::kState) {
      if (states_looked_at_.insert(key.id).second) BELAY_OK(MineInState(key.id));
    } else if (key.type == ObjectType::kNode) {
      BELAY_OK(MineInChanges(key.id));
      BELAY_OK(MineInGit(key.id));
    }
  }
  return Ok();
}

Status PurgeSurvey::MineInState(const ObjectId& id) {
  if (IsOutside()) return Ok();
  BELAY_TRY(auto state, IfReadable(store_.GetState(id)));
  if (!state) return Ok();
  if (!state->rules.is_zero()) BELAY_OK(MineInRules(state->rules));
  if (!state->git.is_zero()) BELAY_OK(MineInGit(state->git));
  BELAY_TRY(RelPath path, RelPath::Parse(path_));
  const std::vector<std::string_view> names = path.Components();
  ObjectId at = state->tree;
  for (size_t i = 0; i < names.size(); ++i) {
    BELAY_TRY(auto tree, IfReadable(store_.GetTree(at)));
    if (!tree) return Ok();
    auto entry = std::ranges::find(tree->entries, names[i], &TreeEntry::name);
    if (entry == tree->entries.end()) return Ok();
    if (i + 1 == names.size()) return MineInEntry(*entry, path_);
    if (entry->kind != EntryKind::kDirectory) return Ok();
    at = entry->id;
  }
  return Ok();
}

Status PurgeSurvey::MineInEntry(const TreeEntry& entry, const std::string& path) {
  if (!entry.xattrs.is_zero()) BELAY_OK(AddMine(entry.xattrs, path, 0));
  if (entry.kind == EntryKind::kSymlink) {
    paths_.insert(path);
    links_ = true;
  }
  if (entry.kind == EntryKind::kFile) BELAY_OK(AddMine(entry.id, path, entry.size));
  if (entry.kind == EntryKind::kDirectory) BELAY_OK(MineBelow(entry.id, path));
  return Ok();
}

Status PurgeSurvey::MineBelow(const ObjectId& top, const std::string& path) {
  std::vector<std::pair<ObjectId, std::string>> waiting{{top, path}};
  while (!waiting.empty()) {
    auto [id, at] = std::move(waiting.back());
    waiting.pop_back();
    if (!walked_mine_.emplace(id, at).second) continue;
    BELAY_TRY(auto tree, IfReadable(store_.GetTree(id)));
    if (!tree) continue;
    for (const TreeEntry& entry : tree->entries) {
      const std::string below = Joined(at, entry.name);
      if (entry.kind == EntryKind::kDirectory) {
        if (!entry.xattrs.is_zero()) BELAY_OK(AddMine(entry.xattrs, below, 0));
        waiting.emplace_back(entry.id, below);
      } else {
        BELAY_OK(MineInEntry(entry, below));
      }
    }
  }
  return Ok();
}

Status PurgeSurvey::AddMine(const ObjectId& id, const std::string& path,
                            uint64_t size) {
  if (IsGone(id)) return AddRemains(id, path);
  paths_.insert(path);
  auto [at, fresh] = mine_.try_emplace(id, Content{path, size});
  if (!fresh) return Ok();
  BELAY_TRY(at->second.chunks, ChunksOf(id));
  chunks_.insert(at->second.chunks.begin(), at->second.chunks.end());
  return Ok();
}

// The list of its chunks went with it: those that stayed are in the purge's own record.
Status PurgeSurvey::AddRemains(const ObjectId& id, const std::string& path) {
  auto kept = kept_chunks_.find(id);
  if (kept == kept_chunks_.end() || remains_.contains(id)) return Ok();
  Content left{path};
  for (const ObjectId& chunk : kept->second) {
    const ObjectKey key{ObjectType::kBlob, chunk};
    BELAY_TRY(auto found, store_.Find(key));
    if (!found) continue;  // the others let it go, too
    BELAY_TRY(auto bytes, IfReadable(store_.Get(key)));
    if (!bytes) continue;
    left.size += bytes->size();
    left.chunks.push_back(chunk);
  }
  if (left.chunks.empty()) return Ok();
  paths_.insert(path);
  chunks_.insert(left.chunks.begin(), left.chunks.end());
  remains_.emplace(id, std::move(left));
  return Ok();
}

// Operations and safety checkpoints refer to what was there before and after.
Status PurgeSurvey::MineInChanges(const ObjectId& id) {
  BELAY_TRY(auto node, IfReadable(NodeOf(store_, id)));
  if (!node) return Ok();
  auto changes = IsOutside() ? DecodeExternalChanges(*node) : DecodeChanges(*node);
  if (!changes.ok()) return Ok();  // not a list of changes
  for (const PathChange& change : *changes) {
    if (!IsAtOrBelow(change.path, path_)) continue;
    for (const auto& state : {change.before, change.after}) {
      if (!state) continue;
      if (!state->xattrs.is_zero()) BELAY_OK(AddMine(state->xattrs, change.path, 0));
      if (state->kind == EntryKind::kFile)
        BELAY_OK(AddMine(state->id, change.path, state->size));
      links_ |= state->kind == EntryKind::kSymlink;
    }
  }
  return Ok();
}

// What was staged under the path, and may never have been in the tree.
Status PurgeSurvey::MineInGit(const ObjectId& id) {
  if (BELAY_MUTANT("purge-spares-what-is-staged") || IsOutside()) return Ok();
  if (!git_looked_at_.insert(id).second) return Ok();
  BELAY_TRY(auto node, IfReadable(NodeOf(store_, id)));
  if (!node) return Ok();
  auto record = DecodeGitRecord(*node);
  if (!record.ok()) return Ok();  // not a git record
  for (const GitRepoRecord& repo : record->repositories) {
    if (!repo.whole.tree.is_zero() &&
        (repo.path.empty() || IsAtOrBelow(path_, repo.path) ||
         IsAtOrBelow(repo.path, path_)) &&
        !repo.absent)
      git_dirs_.emplace(repo.whole.tree, Joined(repo.path, ".git"));
    if (repo.objects.is_zero()) continue;
    BELAY_TRY(auto objects, IfReadable(LoadGitObjects(store_, repo)));
    BELAY_TRY(auto entries, IfReadable(LoadGitIndex(store_, repo)));
    if (!objects || !entries) continue;
    for (const NamedEntry& entry : *entries) {
      const std::string path = Joined(repo.path, entry.path);
      if (!IsAtOrBelow(path, path_)) continue;
      auto object = std::ranges::lower_bound(objects->entries, entry.object, {},
                                             &TreeEntry::name);
      if (object != objects->entries.end() && object->name == entry.object)
        BELAY_OK(AddMine(object->id, path, object->size));
    }
  }
  return Ok();
}

std::set<std::string> PurgeSurvey::git_paths() const {
  std::set<std::string> out;
  for (const auto& [tree, path] : git_dirs_) out.insert(path);
  return out;
}

Status PurgeSurvey::MineInGitDirs() {
  if (BELAY_MUTANT("purge-spares-git-copies")) return Ok();
  // A path that nobody knows may be a slip of the hand: the copies stay then, unless
  // it is them that are meant.
  const bool known = !mine_.empty();
  for (const auto& [top, path] : git_dirs_) {
    const bool meant = known || IsAtOrBelow(path, path_);
    BELAY_TRY(auto tree, IfReadable(store_.GetTree(top)));
    if (!tree) continue;
    for (const TreeEntry& entry : tree->entries) {
      // `modules`: git directories of submodules.
      if (entry.kind != EntryKind::kDirectory ||
          (entry.name != "objects" && entry.name != "modules"))
        continue;
      std::vector<std::pair<ObjectId, std::string>> waiting{
          {entry.id, Joined(path, entry.name)}};
      while (!waiting.empty()) {
        auto [id, at] = std::move(waiting.back());
        waiting.pop_back();
        if (!walked_mine_.emplace(id, at).second) continue;
        BELAY_TRY(auto below, IfReadable(store_.GetTree(id)));
        if (!below) continue;
        for (const TreeEntry& one : below->entries) {
          const std::string name = Joined(at, one.name);
          if (one.kind == EntryKind::kDirectory) waiting.emplace_back(one.id, name);
          if (one.kind != EntryKind::kFile || IsGone(one.id)) continue;
          git_may_hold_ |= !meant;
          if (!meant) continue;
          git_mine_.insert(one.id);
          BELAY_OK(AddMine(one.id, name, one.size));
        }
      }
    }
  }
  return Ok();
}

Status PurgeSurvey::MineInRules(const ObjectId& id) {
  BELAY_TRY(auto node, IfReadable(NodeOf(store_, id)));
  if (!node) return Ok();
  for (const auto& [path, content] : LooseRulesOf(*node))
    if (IsAtOrBelow(path, path_)) BELAY_OK(AddMine(content, path, 0));
  return Ok();
}

Result<std::vector<ObjectId>> PurgeSurvey::ChunksOf(const ObjectId& id) {
  std::vector<ObjectId> out;
  const ObjectKey key{ObjectType::kChunks, id};
  BELAY_TRY(auto found, store_.Find(key));
  if (!found) return out;
  BELAY_TRY(auto bytes, IfReadable(store_.Get(key)));
  if (!bytes) return out;
  BELAY_TRY(ChunkList list, DecodeChunks(*bytes));
  for (const Chunk& chunk : list.chunks) out.push_back(chunk.id);
  return out;
}

// --- who else has it -----------------------------------------------------------------

Result<std::vector<ObjectId>> PurgeSurvey::Common(const ObjectId& id, uint64_t size) {
  std::vector<ObjectId> common;
  if (mine_.contains(id) || chunks_.contains(id)) common.push_back(id);
  if (size <= kMaxBlob || chunks_.empty()) return common;
  // Also of what is ours as a whole: another version of ours, which goes, may have the
  // same chunks.
  if (mine_.contains(id) && BELAY_MUTANT("purge-takes-parts-of-what-stays"))
    return common;
  auto known = common_.find(id);
  if (known == common_.end()) {
    BELAY_TRY(std::vector<ObjectId> chunks, ChunksOf(id));
    std::erase_if(chunks, [&](const ObjectId& c) { return !chunks_.contains(c); });
    known = common_.emplace(id, std::move(chunks)).first;
  }
  common.insert(common.end(), known->second.begin(), known->second.end());
  return common;
}

Result<bool> PurgeSurvey::HasAny(const ObjectId& top) {
  return AnyBelow(top, has_any_, [&](const TreeEntry& entry) -> Result<bool> {
    if (mine_.contains(entry.xattrs)) return true;
    if (entry.kind != EntryKind::kFile) return false;
    BELAY_TRY(auto common, Common(entry.id, entry.size));
    return !common.empty();
  });
}

// From the leaves up, each tree once.
Result<bool> PurgeSurvey::AnyBelow(const ObjectId& top, Memo& memo,
                                   const EntryTest& has) {
  struct Frame {
    ObjectId id;
    bool has = false;
    std::vector<ObjectId> below;
  };
  std::vector<Frame> open;
  auto enter = [&](const ObjectId& id) -> Status {
    Frame frame{.id = id, .has = false, .below = {}};
    BELAY_TRY(auto tree, IfReadable(store_.GetTree(id)));
    if (tree)
      for (const TreeEntry& entry : tree->entries) {
        BELAY_TRY(bool one, has(entry));
        frame.has |= one;
        if (entry.kind == EntryKind::kDirectory) frame.below.push_back(entry.id);
      }
    open.push_back(std::move(frame));
    return Ok();
  };
  if (auto known = memo.find(top); known != memo.end()) return known->second;
  BELAY_OK(enter(top));
  while (!open.empty()) {
    Frame& frame = open.back();
    if (frame.below.empty() || frame.has) {
      const bool found = memo[frame.id] = frame.has;
      open.pop_back();
      if (!open.empty()) open.back().has |= found;
      continue;
    }
    const ObjectId next = frame.below.back();
    frame.below.pop_back();
    if (auto known = memo.find(next); known != memo.end())
      frame.has |= known->second;
    else
      BELAY_OK(enter(next));
  }
  return memo[top];
}

Status PurgeSurvey::OthersInRecord(const LogRecord& record) {
  seq_ = record.seq;
  std::unordered_set<ObjectId> told;  // by path
  for (const ExternalFile& file : ExternalIn(record)) {
    if (!file.state) continue;
    told.insert(file.state->id);
    told.insert(file.state->xattrs);
    if (!IsOurs(record.root, file.path))
      BELAY_OK(OthersInEntry(record.root, *file.state, file.path));
  }
  for (const ObjectKey& key : record.refs) {
    if (told.contains(key.id)) continue;
    if (key.type == ObjectType::kState) {
      BELAY_TRY(auto state, IfReadable(store_.GetState(key.id)));
      if (!state) continue;
      BELAY_OK(OthersInTree(record.root, state->tree));
      for (const ObjectId& node : {state->git, state->rules})
        if (!node.is_zero()) BELAY_OK(OthersInNode(record.root, node));
    } else if (key.type == ObjectType::kNode) {
      BELAY_OK(OthersInNode(record.root, key.id));
    } else if (key.type == ObjectType::kBlob) {
      BELAY_TRY(auto common, Common(key.id, kUnknownSize));
      for (const ObjectId& id : common) AddOther(id, record.root, "");
    }
  }
  return Ok();
}

Status PurgeSurvey::OthersInTree(const RootId& root, const ObjectId& top) {
  std::vector<std::pair<ObjectId, std::string>> waiting{{top, ""}};
  while (!waiting.empty()) {
    auto [id, at] = std::move(waiting.back());
    waiting.pop_back();
    BELAY_TRY(bool has, HasAny(id));
    if (!has || !walked_.emplace(root, id, at).second) continue;
    BELAY_TRY(auto tree, IfReadable(store_.GetTree(id)));
    if (!tree) continue;
    for (const TreeEntry& entry : tree->entries) {
      const std::string below = Joined(at, entry.name);
      if (IsOurs(root, below)) continue;
      BELAY_OK(OthersInEntry(root, entry, below));
      if (entry.kind == EntryKind::kDirectory) waiting.emplace_back(entry.id, below);
    }
  }
  return Ok();
}

Status PurgeSurvey::OthersInEntry(const RootId& root, const TreeEntry& entry,
                                  const std::string& path) {
  if (mine_.contains(entry.xattrs)) AddOther(entry.xattrs, root, path);
  if (entry.kind != EntryKind::kFile) return Ok();
  BELAY_TRY(auto common, Common(entry.id, entry.size));
  for (const ObjectId& id : common) {
    AddOther(id, root, path);
    if (id != entry.id) wholes_[id].insert(entry.id);
  }
  return Ok();
}

Status PurgeSurvey::OthersInNode(const RootId& root, const ObjectId& top) {
  std::vector<ObjectId> waiting{top};
  while (!waiting.empty()) {
    const ObjectId id = waiting.back();
    waiting.pop_back();
    if (!nodes_.emplace(root, id).second) continue;
    BELAY_TRY(auto node, IfReadable(NodeOf(store_, id)));
    if (!node) continue;
    std::unordered_set<ObjectId> told;  // by path
    auto changes = DecodeChanges(*node);
    if (!changes.ok()) changes = DecodeExternalChanges(*node);
    if (changes.ok())
      for (const PathChange& change : *changes)
        for (const auto& state : {change.before, change.after}) {
          if (!state) continue;
          told.insert(state->id);
          told.insert(state->xattrs);
          if (!IsOurs(root, change.path))
            BELAY_OK(OthersInEntry(root, *state, change.path));
        }
    for (const auto& [path, content] : LooseRulesOf(*node)) {
      told.insert(content);
      if (IsOurs(root, path)) continue;
      BELAY_TRY(auto common, Common(content, kUnknownSize));
      for (const ObjectId& one : common) AddOther(one, root, path);
    }
    for (const ObjectKey& key : node->refs) {
      if (key.type == ObjectType::kNode) waiting.push_back(key.id);
      // Of git's state elsewhere: what is staged there, and whole git directories.
      if (key.type == ObjectType::kTree && !roots_.contains(root))
        BELAY_OK(OthersInTree(root, key.id));
      if (key.type != ObjectType::kBlob || told.contains(key.id)) continue;
      BELAY_TRY(auto common, Common(key.id, kUnknownSize));
      for (const ObjectId& one : common) AddOther(one, root, "");
    }
  }
  return Ok();
}

// --- how many checkpoints ------------------------------------------------------------

Result<bool> PurgeSurvey::HasOneOf(const ObjectId& top,
                                   const std::unordered_set<ObjectId>& contents,
                                   Memo& memo) {
  BELAY_TRY(bool any, HasAny(top));
  if (!any) return false;
  return AnyBelow(top, memo, [&](const TreeEntry& entry) -> Result<bool> {
    return contents.contains(entry.xattrs) ||
           (entry.kind == EntryKind::kFile && contents.contains(entry.id));
  });
}

Result<uint64_t> PurgeSurvey::CountCheckpoints(
    const std::unordered_set<ObjectId>& contents) {
  if (contents.empty()) return uint64_t{0};
  // What was purged before and came back is lost to nobody older than that.
  std::unordered_set<ObjectId> fresh, again;
  uint64_t again_since = 0;
  for (const ObjectId& id : contents) {
    auto purged = log_.purged.find({ObjectType::kBlob, id});
    if (purged == log_.purged.end()) {
      fresh.insert(id);
    } else {
      again.insert(id);
      again_since = std::max(again_since, purged->second);
    }
  }
  uint64_t count = 0;
  Memo has_fresh, has_again;
  for (const LogRecord& record : log_.records) {
    if (record.kind != RecordKind::kCheckpoint || !log_.Holds(record) ||
        record.refs.empty() || record.refs[0].type != ObjectType::kState)
      continue;
    BELAY_TRY(auto state, IfReadable(store_.GetState(record.refs[0].id)));
    if (!state) continue;
    BELAY_TRY(bool has, HasOneOf(state->tree, fresh, has_fresh));
    if (!has && record.seq > again_since) {
      BELAY_TRY(has, HasOneOf(state->tree, again, has_again));
    }
    // A file of rules that is in no tree.
    if (!has && !state->rules.is_zero()) {
      BELAY_TRY(auto node, IfReadable(NodeOf(store_, state->rules)));
      if (node)
        for (const auto& [path, content] : LooseRulesOf(*node))
          has |= fresh.contains(content) ||
                 (record.seq > again_since && again.contains(content));
    }
    for (const ExternalFile& file : ExternalIn(record))
      has |=
          file.state && (fresh.contains(file.state->id) ||
                         (record.seq > again_since && again.contains(file.state->id)));
    count += has ? 1 : 0;
  }
  return count;
}

}  // namespace belay
