#include "commits/import_commit.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "commits/export_commit.h"
#include "core/capture.h"
#include "core/roots.h"
#include "core/space.h"
#include "core/state_view.h"
#include "git/blob_reader.h"
#include "scan/rules_record.h"
#include "store/batch_writer.h"
#include "store/heads.h"

namespace belay {

namespace {

constexpr size_t kMaxLink = 4095;
constexpr size_t kMaxSubject = 200;
constexpr uint64_t kRoomToBegin = uint64_t{64} << 10;

struct Item {
  std::string path;  // from the root on
  uint32_t mode = 0;
  std::string id;  // hex
};

bool IsFile(const Item& item) { return (item.mode & 0170000) == 0100000; }
bool IsLink(const Item& item) { return (item.mode & 0170000) == 0120000; }

bool AtOrBelow(std::string_view path, std::string_view dir) {
  return path == dir ||
         (path.size() > dir.size() && path.starts_with(dir) && path[dir.size()] == '/');
}

Error NotWhole(const Error& why) {
  return Error(Errc::kRefused, "the commit cannot be read whole: " + why.what)
      .WithHint(
          "nothing was imported and nothing was fetched; a clone that holds only parts "
          "gets the rest with: git fetch --refetch --no-filter");
}

// One line of `cat-file --batch-check`: the object's id and kind, or nothing.
Result<std::optional<std::string>> Find(GitRunner& git, const std::string& what,
                                        std::string_view kind) {
  BELAY_TRY(std::string line, git.Run({"cat-file", "--batch-check"}, what + "\n"));
  const size_t space = line.find(' ');
  if (space == std::string::npos ||
      !std::string_view(line).substr(space + 1).starts_with(std::string(kind) + " "))
    return std::optional<std::string>();
  return std::optional(line.substr(0, space));
}

class Importer {
 public:
  Importer(Store& store, const GitRepository& repository,
           const ImportCommitRequest& request)
      : store_(store),
        repository_(repository),
        request_(request),
        options_(PatientGit(request.places)) {}

  Result<ImportedCommit> Run();

 private:
  // A directory that is being put together.
  struct Dir {
    std::string path;  // "" or "a/b"
    std::string name;
    Tree tree;
    std::optional<Tree> before;  // as the checkpoint before has it
  };
  struct Stored {
    ObjectId id;
    uint64_t size = 0;
    std::string target;  // of a link
    Skip why = Skip::kNone;
  };

  Status Resolve();
  Status List();
  Status Take(std::string_view line);
  bool LeaveOut(const std::string& path);
  Status LookBack();
  Status Fetch(BatchWriter& writer);
  Result<Stored> FetchOne(BlobReader& blobs, uint64_t size, const Item& item,
                          BatchWriter& writer);
  Status BuildTrees(BatchWriter& writer);
  Status Enter(std::string path, std::string name);
  Status Leave(BatchWriter& writer);
  const TreeEntry* Before(const Dir& dir, std::string_view name, EntryKind kind) const;
  void Dress(TreeEntry& entry, const TreeEntry* before) const;
  void Count(const std::string& path, const Dir& dir, const TreeEntry& entry);
  Result<ObjectId> PutRules(BatchWriter& writer);

  Store& store_;
  const GitRepository& repository_;
  const ImportCommitRequest& request_;
  const AskGitOptions options_;
  std::optional<GitRunner> git_;
  ImportedCommit out_;
  std::string git_tree_;
  std::vector<Item> items_;
  std::vector<std::string> other_roots_;
  std::unordered_map<std::string, Stored> stored_;  // by git's id and kind
  std::unordered_set<ObjectId> erased_;
  std::vector<Checkpoint> imported_;  // of the same commit, before
  std::optional<Space> space_;
  ObjectId tree_before_;
  uint32_t root_mode_ = 0755, uid_ = 0, gid_ = 0;
  std::vector<Dir> dirs_;
  std::vector<std::string> changed_;
  uint64_t files_ = 0, bytes_ = 0, added_ = 0, modified_ = 0;
};

// --- what git has --------------------------------------------------------------------

Status Importer::Resolve() {
  const std::string& revision = request_.revision;
  const std::string shown = EscapeForDisplay(revision);
  if (revision.empty() ||
      revision.find_first_of(std::string("\n\0", 2)) != std::string::npos)
    return Error(Errc::kInvalid, "'" + shown + "' is no revision");
  // Of a commit that is looked for by its message, all that follows is the message.
  BELAY_TRY(auto commit,
            Find(*git_, revision.starts_with(":/") ? revision : revision + "^{commit}",
                 "commit"));
  if (!commit)
    return Error(Errc::kNotFound, "'" + shown + "' is no commit of this repository")
        .WithHint("see them with: git log --oneline --all");
  out_.commit = *commit;
  const std::string where =
      request_.prefix.empty() ? *commit + "^{tree}" : *commit + ":" + request_.prefix;
  BELAY_TRY(auto tree, Find(*git_, where, "tree"));
  if (!tree)
    return Error(Errc::kRefused,
                 "commit " + commit->substr(0, 7) +
                     (request_.prefix.empty()
                          ? std::string(" has no tree here")
                          : " has no directory " + EscapeForDisplay(request_.prefix)));
  git_tree_ = *tree;
  // By hand: `git log` obeys settings, and may run gpg.
  BELAY_TRY(std::string text, git_->Run({"cat-file", "commit", *commit}));
  const size_t body = text.find("\n\n");
  if (body != std::string::npos) {
    size_t begin = text.find_first_not_of('\n', body);
    if (begin == std::string::npos) begin = text.size();
    out_.subject = text.substr(begin, text.find('\n', begin) - begin);
    if (out_.subject.size() > kMaxSubject) out_.subject.resize(kMaxSubject);
  }
  return Ok();
}

// True: not ours, or not to be stored. It is named once.
bool Importer::LeaveOut(const std::string& path) {
  auto among = [&](const std::vector<std::string>& dirs, Skip why) {
    for (const std::string& dir : dirs) {
      if (!AtOrBelow(path, dir)) continue;
      if (out_.skipped.empty() || out_.skipped.back().path != dir)
        out_.skipped.push_back({dir, why});
      return true;
    }
    return false;
  };
  return among(other_roots_, Skip::kOtherRoot) ||
         (!BELAY_MUTANT("import-commit-brings-back") &&
          among(request_.root.purged, Skip::kPurged));
}

// "<mode> <kind> <id>\t<path>"
Status Importer::Take(std::string_view line) {
  const size_t tab = line.find('\t');
  const size_t space = line.find(' ');
  const size_t width = 2 * GitHashSize(repository_.hash);
  Item item;
  if (tab == std::string_view::npos || space > tab || tab < width + 2)
    return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
  auto [end, problem] = std::from_chars(line.data(), line.data() + space, item.mode, 8);
  if (problem != std::errc() || end != line.data() + space)
    return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
  item.id = line.substr(tab - width, width);
  item.path = line.substr(tab + 1);
  auto refuse = [&](std::string_view why) {
    return Error(Errc::kRefused, "the commit holds " + EscapeForDisplay(item.path) +
                                     ", " + std::string(why))
        .WithHint("nothing was imported");
  };
  if (!RelPath::Parse(item.path).ok())
    return refuse("which is no path below a directory");
  for (std::string_view rest = item.path; !rest.empty();) {
    const size_t slash = rest.find('/');
    if (IsGitAlias(rest.substr(0, slash)))
      return refuse("which git or another system would take for a git directory");
    rest = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  }
  if (LeaveOut(item.path)) return Ok();
  if ((item.mode & 0170000) == 0160000) {
    out_.submodules.push_back(item.path);
    out_.skipped.push_back({item.path, Skip::kSpecial});
    return Ok();
  }
  if (!IsFile(item) && !IsLink(item))
    return refuse("which is neither file, link, directory nor submodule");
  const int64_t limit = request_.settings->max_files;
  if (limit > 0 && items_.size() >= static_cast<uint64_t>(limit))
    return Error(Errc::kRefused, "the commit has more than " + std::to_string(limit) +
                                     " files (max_files)");
  items_.push_back(std::move(item));
  return Ok();
}

Status Importer::List() {
  const std::vector<std::string> command = {"ls-tree", "-r", "-z", "--full-tree",
                                            git_tree_};
  BELAY_TRY(auto process, git_->Start(command));
  std::string line;
  std::array<std::byte, 64 * 1024> buffer;
  for (;;) {
    BELAY_TRY(size_t got, process->Read(buffer));
    if (got == 0) break;
    std::string_view text = AsText(ByteSpan(buffer).first(got));
    while (!text.empty()) {
      const size_t end = text.find('\0');
      line += text.substr(0, end);
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
      BELAY_OK(Take(line));
      line.clear();
    }
  }
  BELAY_TRY(ProcessResult ended, process->Finish());
  if (Status judged = git_->Judge(command, ended); !judged.ok())
    return NotWhole(judged.error());
  return line.empty()
             ? Ok()
             : Status(Error(Errc::kCorrupt, "git gave an answer of an unknown form"));
}

// --- what Belay has ------------------------------------------------------------------

Status Importer::LookBack() {
  BELAY_TRY(Heads heads, Heads::Read(store_));
  BELAY_TRY(auto catalog, Catalog::Open(store_));
  BELAY_TRY(auto made, catalog->ListCheckpoints({.root = request_.root.id,
                                                 .kind = CheckpointKind::kManual}));
  for (CatalogEntry& entry : made) {
    auto meta = entry.checkpoint.meta.find(std::string(kMetaGitCommit));
    if (meta != entry.checkpoint.meta.end() && meta->second == out_.commit)
      imported_.push_back(std::move(entry.checkpoint));
  }
  BELAY_TRY(AbsPath path, AbsPath::Parse(request_.root.path));
  BELAY_TRY(auto inside, RootsInside(heads.roots(), request_.root));
  for (const AbsPath& other : inside)
    other_roots_.push_back(
        other.bytes().substr(path.is_root() ? 1 : path.bytes().size() + 1));
  std::ranges::sort(other_roots_);
  auto dir = store_.fs().OpenDir(path);
  if (dir.ok()) {
    BELAY_TRY(FileStat stat, store_.fs().Stat(*dir));
    root_mode_ = stat.mode & 07777;
    uid_ = stat.uid;
    gid_ = stat.gid;
  }
  // One that cannot be read gives no modes; that is all it is wanted for.
  if (auto last = heads.LastOf(request_.root.id))
    if (auto state = store_.GetState(last->state); state.ok())
      tree_before_ = state->tree;
  if (heads.last_purge() == 0) return Ok();
  BELAY_TRY([[maybe_unused]] auto end,
            store_.ReadLog({}, [&](const LogRecord& record) -> Status {
              if (WasErased(record))
                for (const ObjectKey& key : PurgedBy(record)) erased_.insert(key.id);
              return Ok();
            }));
  return Ok();
}

// --- contents ------------------------------------------------------------------------

Result<Importer::Stored> Importer::FetchOne(BlobReader& blobs, uint64_t size,
                                            const Item& item, BatchWriter& writer) {
  Stored stored{.id = {}, .size = size, .target = {}};
  auto read_all = [&]() -> Result<Bytes> {
    Bytes bytes(static_cast<size_t>(size));
    for (size_t at = 0; at < bytes.size();) {
      BELAY_TRY(size_t got, blobs.Read(std::span(bytes).subspan(at)));
      at += got;
    }
    return bytes;
  };
  if (IsLink(item)) {
    if (size == 0 || size > kMaxLink) {
      stored.why = Skip::kSpecial;
      return stored;
    }
    BELAY_TRY(Bytes bytes, read_all());
    stored.target = AsText(bytes);
    if (stored.target.find('\0') != std::string::npos) stored.why = Skip::kSpecial;
    return stored;
  }
  const uint64_t limit = request_.settings->max_file_size.bytes;
  if (limit != 0 && size > limit) {
    stored.why = Skip::kTooLarge;
    return stored;
  }
  // What was purged here does not come back, unless somebody has it again.
  auto purged = [&](const ObjectId& id) -> Result<bool> {
    if (!erased_.contains(id) || BELAY_MUTANT("import-commit-brings-back"))
      return false;
    BELAY_TRY(bool there, store_.HasContent(id));
    return !there;
  };
  if (size <= kMaxBlob) {
    BELAY_TRY(Bytes bytes, read_all());
    BELAY_TRY(bool gone, purged(Sha256::Of(bytes)));
    if (gone) {
      stored.why = Skip::kPurged;
      return stored;
    }
    BELAY_TRY(stored.id, writer.PutContent(bytes));
    return stored;
  }
  if (!erased_.empty()) {
    // Hashed first: what is put is in a pack.
    BELAY_TRY(auto again, BlobReader::Start(*git_, {item.id}));
    BELAY_TRY([[maybe_unused]] auto there, again->Next());
    Sha256 hash;
    std::array<std::byte, 64 * 1024> buffer;
    for (;;) {
      BELAY_TRY(size_t got, again->Read(buffer));
      if (got == 0) break;
      hash.Update(ByteSpan(buffer).first(got));
    }
    BELAY_TRY(bool gone, purged(hash.Finish()));
    if (gone) {
      stored.why = Skip::kPurged;
      return stored;
    }
  }
  BELAY_TRY(stored.id, writer.PutStream([&](std::span<std::byte> to) -> Result<size_t> {
    if (space_) BELAY_OK(space_->Check(writer.bytes_so_far()));
    return blobs.Read(to);
  }));
  return stored;
}

std::string KeyOf(const Item& item) { return (IsLink(item) ? "l" : "f") + item.id; }

Status Importer::Fetch(BatchWriter& writer) {
  std::vector<std::string> ids;
  std::vector<const Item*> first;
  for (const Item& item : items_)
    if (stored_.emplace(KeyOf(item), Stored()).second) {
      ids.push_back(item.id);
      first.push_back(&item);
    }
  BELAY_TRY(auto blobs, BlobReader::Start(*git_, ids));
  uint64_t done = 0;
  for (const Item* item : first) {
    auto next = blobs->Next();
    // A clone that would have to fetch: git gives up.
    if (!next.ok() && next.error().code == Errc::kInvalid)
      return NotWhole(Error(
          Errc::kNotFound,
          "the content of " + EscapeForDisplay(item->path) + ": " + next.error().what));
    BELAY_TRY(auto size, std::move(next));
    if (!size)
      return NotWhole(Error(Errc::kNotFound, "the content of " +
                                                 EscapeForDisplay(item->path) +
                                                 " is not in this repository"));
    BELAY_TRY(stored_[KeyOf(*item)], FetchOne(*blobs, *size, *item, writer));
    if (space_) BELAY_OK(space_->Check(writer.bytes_so_far()));
    if (request_.progress) BELAY_OK(request_.progress(++done, first.size()));
  }
  return Ok();
}

// --- trees ---------------------------------------------------------------------------

const TreeEntry* Importer::Before(const Dir& dir, std::string_view name,
                                  EntryKind kind) const {
  if (!dir.before) return nullptr;
  auto found =
      std::ranges::lower_bound(dir.before->entries, name, {}, &TreeEntry::name);
  if (found == dir.before->entries.end() || found->name != name || found->kind != kind)
    return nullptr;
  return &*found;
}

// Git knows one bit; the rest is as it was, or as the root directory suggests.
void Importer::Dress(TreeEntry& entry, const TreeEntry* before) const {
  const bool executable = (entry.mode & 0100) != 0;
  if (before != nullptr) {
    entry.mode = before->mode;
    entry.uid = before->uid;
    entry.gid = before->gid;
    entry.xattrs = before->xattrs;
  } else {
    entry.mode = entry.kind == EntryKind::kDirectory ? (root_mode_ & 0777) | 0700
                                                     : (root_mode_ & 0666) | 0600;
    entry.uid = uid_;
    entry.gid = gid_;
    if (entry.kind == EntryKind::kSymlink) entry.mode = 0777;
  }
  if (entry.kind != EntryKind::kFile) return;
  const bool is = (entry.mode & 0100) != 0;
  if (executable && !is) entry.mode |= (entry.mode & 0444) >> 2;
  if (!executable && is) entry.mode &= ~uint32_t{0111};
}

void Importer::Count(const std::string& path, const Dir& dir, const TreeEntry& entry) {
  ++files_;
  if (entry.kind == EntryKind::kFile) bytes_ += entry.size;
  const TreeEntry* before = Before(dir, entry.name, entry.kind);
  if (before != nullptr && *before == entry) return;
  ++(before == nullptr ? added_ : modified_);
  if (changed_.size() < kMaxPathsKept) changed_.push_back(path);
}

Status Importer::Enter(std::string path, std::string name) {
  Dir dir{.path = std::move(path), .name = std::move(name), .tree = {}, .before = {}};
  ObjectId before = dirs_.empty() ? tree_before_ : ObjectId();
  if (!dirs_.empty())
    if (const TreeEntry* entry = Before(dirs_.back(), dir.name, EntryKind::kDirectory))
      before = entry->id;
  if (!before.is_zero())
    if (auto tree = store_.GetTree(before); tree.ok()) dir.before = std::move(*tree);
  dirs_.push_back(std::move(dir));
  return Ok();
}

Status Importer::Leave(BatchWriter& writer) {
  Dir dir = std::move(dirs_.back());
  dirs_.pop_back();
  std::ranges::sort(dir.tree.entries, {}, &TreeEntry::name);
  for (size_t i = 1; i < dir.tree.entries.size(); ++i)
    if (dir.tree.entries[i].name == dir.tree.entries[i - 1].name)
      return Error(Errc::kRefused,
                   "the commit holds " +
                       EscapeForDisplay((dir.path.empty() ? "" : dir.path + "/") +
                                        dir.tree.entries[i].name) +
                       " twice")
          .WithHint("nothing was imported");
  BELAY_TRY(ObjectId id, writer.PutTree(dir.tree, dir.before ? *dir.before : Tree()));
  if (dirs_.empty()) {
    out_.tree = id;
    return Ok();
  }
  Dir& above = dirs_.back();
  TreeEntry entry;
  entry.name = dir.name;
  entry.kind = EntryKind::kDirectory;
  Dress(entry, Before(above, dir.name, EntryKind::kDirectory));
  entry.id = id;
  above.tree.entries.push_back(std::move(entry));
  return Ok();
}

Status Importer::BuildTrees(BatchWriter& writer) {
  BELAY_OK(Enter("", ""));
  for (const Item& item : items_) {
    const Stored& stored = stored_.at(KeyOf(item));
    if (stored.why != Skip::kNone) {
      out_.skipped.push_back({item.path, stored.why});
      continue;
    }
    const size_t slash = item.path.rfind('/');
    const std::string parent =
        slash == std::string::npos ? std::string() : item.path.substr(0, slash);
    while (!dirs_.back().path.empty() && !AtOrBelow(parent, dirs_.back().path))
      BELAY_OK(Leave(writer));
    while (dirs_.back().path != parent) {
      const size_t from = dirs_.back().path.empty() ? 0 : dirs_.back().path.size() + 1;
      const size_t end = std::min(parent.find('/', from), parent.size());
      BELAY_OK(Enter(parent.substr(0, end), parent.substr(from, end - from)));
    }
    Dir& dir = dirs_.back();
    TreeEntry entry;
    entry.name = item.path.substr(slash + 1);
    entry.kind = IsLink(item) ? EntryKind::kSymlink : EntryKind::kFile;
    entry.mode = item.mode & 0777;
    entry.target = stored.target;
    Dress(entry, Before(dir, entry.name, entry.kind));
    if (entry.kind == EntryKind::kFile) {
      entry.id = stored.id;
      entry.size = stored.size;
    }
    Count(item.path, dir, entry);
    dir.tree.entries.push_back(std::move(entry));
  }
  while (!dirs_.empty()) BELAY_OK(Leave(writer));
  std::ranges::sort(out_.skipped, {}, &SkippedPath::path);
  return Ok();
}

Result<ObjectId> Importer::PutRules(BatchWriter& writer) {
  RulesRecord rules;
  rules.lists = RulesFrom(*request_.settings)->lists();
  rules.max_file_size = request_.settings->max_file_size.bytes == 0
                            ? UINT64_MAX
                            : request_.settings->max_file_size.bytes;
  rules.mode = root_mode_;
  rules.uid = uid_;
  rules.gid = gid_;
  rules.skipped = out_.skipped;
  std::erase_if(rules.skipped,
                [](const SkippedPath& path) { return path.why == Skip::kOtherRoot; });
  rules.other_roots = other_roots_;
  BatchSink sink(writer);
  BELAY_TRY(Node node, EncodeRules(rules, sink));
  return writer.PutObject(ObjectType::kNode, EncodeNode(node));
}

Result<ImportedCommit> Importer::Run() {
  const int64_t began = store_.clock().SteadyNanos();
  BELAY_TRY(git_, GitRunner::Find(store_.fs(), repository_, options_));
  BELAY_OK(Resolve());
  // 1. Alone on this root; then the store is kept as it is until we have published.
  BELAY_TRY(HeldLock root_lock,
            store_.locks().AcquireRoot(request_.root.id, request_.lock_wait_ms));
  const Settings& settings = *request_.settings;
  store_.LimitPacks(Space::PackTarget(settings.store_cap.bytes));
  BELAY_TRY(space_, Space::Of(store_, settings, /*exact=*/true));
  if (!space_->Check(kRoomToBegin).ok()) {
    (void)CollectWithinCap(store_, settings, {});
    BELAY_TRY(space_, Space::Of(store_, settings, /*exact=*/true));
  }
  BELAY_OK(LookBack());
  BELAY_TRY(auto writer, store_.Begin());
  // 2. What is in the commit; then its contents, ahead of the batch that counts.
  BELAY_OK(List());
  BELAY_OK(Fetch(*writer));
  BELAY_OK(BuildTrees(*writer));
  State state{.tree = out_.tree, .git = {}, .rules = {}};
  BELAY_TRY(state.rules, PutRules(*writer));
  BELAY_TRY(ObjectId state_id,
            writer->PutObject(ObjectType::kState, EncodeState(state)));

  Checkpoint& c = out_.checkpoint;
  for (const Checkpoint& there : imported_) {
    if (there.state != state_id) continue;
    c = there;
    out_.was_there = true;
    return std::move(out_);
  }
  c.id = RecordId(store_.random().NewId());
  c.root = request_.root.id;
  c.made_ms = store_.clock().WallMillis();
  c.state = state_id;
  c.kind = CheckpointKind::kManual;
  c.description = "git " + out_.commit.substr(0, 7) + " \"" + out_.subject + "\"";
  c.meta[std::string(kMetaGitCommit)] = out_.commit;
  // What is not in a commit may be anywhere: nothing is deleted for its sake.
  c.partial = !BELAY_MUTANT("import-commit-is-whole");
  c.imported = true;
  c.files = files_;
  c.bytes = bytes_;
  c.added = added_;
  c.modified = modified_;
  std::ranges::sort(changed_);
  size_t length = 0;
  for (const std::string& path : changed_) {
    length += path.size();
    if (length > kMaxPathBytes) break;
    c.paths.push_back(path);
  }
  c.stored_bytes = writer->bytes_so_far();
  c.took_us = static_cast<uint64_t>(store_.clock().SteadyNanos() - began) / 1000;
  writer->Add(ToRecord(c));
  // 3. One batch, one flush.
  BELAY_TRY(auto published, writer->Commit());
  c.seq = published.first_seq;
  out_.bytes_stored = published.stats.bytes_stored;
  return std::move(out_);
}

}  // namespace

Result<ImportedCommit> ImportCommit(Store& store, const GitRepository& repository,
                                    const ImportCommitRequest& request) {
  return Importer(store, repository, request).Run();
}

}  // namespace belay
