// Reading what repositories are like now: GitCapture of core/git_record.h.

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/git_packed.h"
#include "core/git_record.h"
#include "core/purged.h"
#include "core/state_rules.h"
#include "git/index_entries.h"
#include "git/run_git.h"
#include "scan/stat_cache.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

constexpr std::string_view kCacheMagic = "BELAYGC1";
constexpr size_t kMaxCache = size_t{16} << 20;
constexpr size_t kMaxOwnFile = size_t{64} << 20;
constexpr size_t kMaxIndex = size_t{1} << 30;
constexpr size_t kMaxBlobRead = size_t{256} << 20;
constexpr int kLooks = 4;  // at a repository that git is at work in

Name CacheName(const RootId& root) { return Name::Literal(root.text() + ".git"); }

// The last line of HEAD's log that says where it was moved to.
std::string DetachedBy(Fs& fs, const GitRepository& repository) {
  constexpr std::string_view kMoving = "\tcheckout: moving from ", kTo = " to ";
  auto log = ReadGitFile(fs, repository.git_dir, "logs/HEAD", kMaxOwnFile);
  if (!log.ok()) return "";
  const std::string_view text = AsText(*log);
  const size_t at = text.rfind(kMoving);
  if (at == std::string_view::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
  const size_t end = std::min(text.find('\n', at), text.size());
  const size_t length = 2 * GitHashSize(repository.hash);
  const std::string_view commit = text.substr(begin + length + 1, length);
  const std::string_view moved =
      text.substr(at + kMoving.size(), end - at - kMoving.size());
  const size_t to = moved.rfind(kTo);
  if (to == std::string_view::npos || !IsGitHex(commit, repository.hash)) return "";
  return std::string(commit) + " " + std::string(moved.substr(to + kTo.size()));
}

struct Kept {
  GitKept kept;
  Bytes bytes;
};

Result<Kept> Keep(Fs& fs, const AbsPath& dir, const GitFile& file, size_t limit,
                  const ObjectId& before, ScanSink& sink) {
  Kept out;
  BELAY_TRY(out.bytes, ReadGitFile(fs, dir, file.name, limit));
  out.kept.name = file.name;
  out.kept.size = out.bytes.size();
  out.kept.mode = file.stat.mode;
  BELAY_TRY(out.kept.id, sink.PutChanged(out.bytes, before));
  return out;
}

Result<ObjectId> KeepIndex(const OpenIndex& index, const ObjectId& before,
                           ScanSink& sink) {
  if (index.size() <= kMaxBlob) {
    BELAY_TRY(const Bytes bytes, index.ReadAll(kMaxBlob));
    return sink.PutChanged(bytes, before);
  }
  uint64_t at = 0;
  return sink.PutStream([&](std::span<std::byte> out) -> Result<size_t> {
    const uint64_t left = index.size() - at;
    BELAY_TRY(
        const size_t got,
        index.Read(
            at, out.first(static_cast<size_t>(std::min<uint64_t>(left, out.size())))));
    at += got;
    return got;
  });
}

ObjectId IdOf(const GitRepoRecord* before, std::string_view name) {
  if (before == nullptr) return {};
  auto found = std::ranges::find(before->own, name, &GitKept::name);
  return found == before->own.end() ? ObjectId() : found->id;
}

// Gathers the objects that an index names under a path that is not left out. No names
// are held: of half a million paths they would be 200 MB.
class WantedObjects {
 public:
  // `path`: of the repository, from the root on.
  WantedObjects(const ScanRequest& request, const std::string& path, GitHash hash)
      : purged_(request.purged), path_(path), ids_(hash) {
    if (request.rules->lists().skip_secrets &&
        !BELAY_MUTANT("git-keeps-skipped-secrets"))
      secrets_.emplace(request.rules->lists());
  }

  void Add(std::string_view path, uint32_t mode, ByteSpan object) {
    if (!IsBlobMode(mode)) return;
    if (!purged_.empty() || secrets_) {
      if (path.empty()) return;  // nobody knows
      whole_ = path_.empty() ? path : path_ + "/" + std::string(path);
      if (std::ranges::any_of(
              purged_, [&](const auto& top) { return IsAtOrBelow(whole_, top); }) &&
          !BELAY_MUTANT("git-keeps-what-was-purged"))
        return;
      if (secrets_ && secrets_->IsSecret(whole_)) return;
    }
    ids_.Add(object);
  }
  // Of an index of so many bytes, all it can have. What is not used of that is no
  // memory; a vector that grows would be held twice for a while.
  void ReserveFor(uint64_t bytes) {
    constexpr uint64_t kLeast = 40 + 20 + 2 + 1;  // an entry of version 4
    ids_.Reserve(static_cast<size_t>(std::min<uint64_t>(bytes, kMaxIndex) / kLeast));
  }
  void Clear() { ids_.Clear(); }
  // Each once, rising.
  GitIds Take() {
    ids_.SortOnce();
    return std::move(ids_);
  }

 private:
  const std::vector<std::string>& purged_;
  const std::string path_;
  std::optional<SecretRules> secrets_;
  std::string whole_;
  GitIds ids_;
};

// Tells apart what is unmerged in two indexes.
class Unmerged {
 public:
  void Add(std::string_view path, unsigned stage, uint32_t mode, ByteSpan object) {
    if (stage == 0) return;
    any_ = true;
    Bytes bytes;
    ByteWriter out(bytes);
    out.Sized(path);
    out.U32(mode);
    out.U8(static_cast<uint8_t>(stage));
    out.Raw(object);
    sha_.Update(bytes);
  }
  Hash256 Take() { return any_ ? sha_.Finish() : Hash256(); }

 private:
  Sha256 sha_;
  bool any_ = false;
};

// Of `ids` (each once, rising) those stay that the index of a record does not name. All
// of them when it cannot be read.
void LeaveNew(Store& store, const GitRepoRecord& record, GitIds& ids) {
  std::vector<bool> fresh(ids.size(), true);
  const Status visited = VisitGitIndexIds(store, record, [&](ByteSpan id) {
    if (const auto at = ids.Find(id)) fresh[*at] = false;
  });
  if (visited.ok()) ids.Keep(fresh);
}

}  // namespace

Hash256 GitCapture::RulesPrint() const {
  const RuleLists& lists = request_.rules->lists();
  Bytes bytes;
  ByteWriter write(bytes);
  write.U64(request_.max_file_size);
  write.U64((lists.skip_secrets ? 1 : 0) | (request_.protect_git ? 2 : 0));
  write.U64(request_.purged.size());
  for (const std::string& path : request_.purged) write.Sized(path);
  for (const std::string& pattern : lists.secret_patterns) write.Sized(pattern);
  return Sha256::Of(bytes);
}

Result<ObjectId> GitCapture::KeepObjects(const GitRepository& repository, GitIds blobs,
                                         const std::string& tree,
                                         const GitRepoRecord& now,
                                         const GitRepoRecord* before, ScanSink& sink) {
  if (blobs.empty() || BELAY_MUTANT("git-index-objects-not-kept")) return ObjectId();
  Store& store = store_;
  const size_t limit =
      static_cast<size_t>(std::min<uint64_t>(kMaxBlobRead, request_.max_file_size));
  Tree known, out;
  if (before != nullptr) {
    auto loaded = LoadGitObjects(store, *before);
    if (loaded.ok()) known = std::move(*loaded);
  }
  BELAY_TRY(auto loose, LooseObjects::Open(store.fs(), repository));
  Status kept = Ok();
  auto keep = [&](const std::string& hex, ByteSpan content) -> Status {
    TreeEntry entry;
    entry.name = hex;
    entry.mode = 0444;
    entry.size = content.size();
    auto put = sink.PutContent(content);
    if (!put.ok()) return kept = std::move(put).error();
    entry.id = *put;
    out.entries.push_back(std::move(entry));
    return Ok();
  };
  std::vector<bool> packed(blobs.size());  // to be asked for
  for (size_t i = 0; i < blobs.size(); ++i) {
    const std::string hex = blobs.Hex(i);
    auto had = std::ranges::lower_bound(known.entries, hex, {}, &TreeEntry::name);
    if (had != known.entries.end() && had->name == hex) {
      if (had->size > limit) continue;
      BELAY_TRY(bool there, sink.HasContent(had->id));
      if (there) {
        out.entries.push_back(*had);
        continue;
      }
    }
    BELAY_TRY(const bool is_loose, loose.Has(hex));
    if (!is_loose) {
      packed[i] = true;
      continue;
    }
    BELAY_TRY(auto content, ReadLooseBlob(store.fs(), repository, hex, limit));
    if (content) BELAY_OK(keep(hex, *content));
  }
  blobs.Keep(packed);
  // Not asked about again, and not when HEAD moved, which is where new ones come from.
  if (before != nullptr) {
    const bool settled =
        before->head != now.head ||
        (before->index && now.index && before->index->id == now.index->id);
    if (settled) blobs.Clear();
    if (!blobs.empty() && !BELAY_MUTANT("git-asks-again"))
      LeaveNew(store, *before, blobs);
  }
  // Nothing when git cannot be asked: they are rarely lost.
  auto git = GitRunner::Find(store.fs(), repository, request_.git.ask);
  if (!blobs.empty() && git.ok()) {
    GitPacked ask(*git, repository);
    if (now.head.empty() || ask.LeaveStaged(now.head, tree, blobs).ok())
      (void)ask.Read(blobs, limit, keep);
    BELAY_OK(kept);
  }
  std::ranges::sort(out.entries, {}, &TreeEntry::name);
  if (out.entries.empty()) return ObjectId();
  return sink.PutChangedTree(out, known);
}

Result<GitRepoRecord> GitCapture::Capture(const std::string& path,
                                          const GitRepository& repository,
                                          const GitLook& look, bool above,
                                          const GitRepoRecord* before, ScanSink& sink) {
  Fs& fs = store_.fs();
  GitRepoRecord out;
  out.path = path;
  out.hash = repository.hash;
  out.linked = repository.git_dir != repository.common_dir;
  out.above = above;
  if (!above && !repository.common_dir.IsWithin(request_.root))
    out.elsewhere = repository.common_dir.bytes();
  out.trouble = look.trouble;
  // The index first: git writes it last of all, as a rule.
  WantedObjects wanted(request_, path, repository.hash);
  std::vector<GitKept> older_shared;
  bool older = false;  // the index is kept as it was before
  std::string shared;  // what the one that is kept names
  std::string tree;    // that the index would commit, if git knows
  // Of one that reaches above the root nothing is put back: the rest of it is not here.
  if (look.index && !above) {
    const ObjectId known =
        before != nullptr && before->index ? before->index->id : ObjectId();
    BELAY_TRY(const OpenIndex index,
              OpenIndex::Open(fs, repository.git_dir, look.index->name));
    wanted.ReserveFor(index.size());
    Unmerged unmerged;
    auto entries = index.Visit(repository.hash, [&](const MetEntry& met) {
      wanted.Add(met.path, met.mode, met.object);
      unmerged.Add(met.path, met.stage, met.mode, met.object);
    });
    // A split one, one that is damaged, or of a newer kind.
    if (!entries.ok() || entries->by_bytes) {
      wanted.Clear();
      unmerged = Unmerged();
      BELAY_TRY(const Bytes bytes, index.ReadAll(kMaxIndex));
      auto read = [&](const std::string& name) {
        return ReadGitFile(fs, repository.git_dir, name, kMaxIndex);
      };
      std::vector<NamedEntry> named;
      entries = ReadWholeIndex(bytes, repository.hash, &named, read);
      if (entries.ok()) {
        Bytes object(GitHashSize(repository.hash));
        for (const NamedEntry& entry : named) {
          if (!FromHex(entry.object, object)) continue;
          wanted.Add(entry.path, entry.mode, object);
          unmerged.Add(entry.path, entry.stage, entry.mode, object);
        }
      } else if (entries.error().code == Errc::kCorrupt) {
        // What is damaged is kept as it is, so that another can take its place and an
        // undo brings it again; the scan has said so. A newer kind is not ours to
        // judge.
        out.index_digest = DigestOfDamagedIndex(bytes);
      } else {
        out.trouble = "its index " + entries.error().what;
      }
    }
    if (entries.ok()) {
      out.index_digest = entries->digest;
      out.unmerged = unmerged.Take();
      shared = entries->shared;
      tree = entries->tree;
    }
    older = before != nullptr && before->index && out.trouble.empty() &&
            before->index_digest == out.index_digest &&
            !BELAY_MUTANT("git-index-always-anew");
    if (older) {
      BELAY_TRY(older, sink.HasContent(known));
      for (const GitKept& kept : before->own)
        if (kept.name.starts_with(kGitSharedIndex)) older_shared.push_back(kept);
    }
    for (size_t i = 0; older && i < older_shared.size(); ++i) {
      BELAY_TRY(older, sink.HasContent(older_shared[i].id));
    }
    if (!older) older_shared.clear();
    if (older) {
      // Refreshed at most: what was kept says the same, and says it of older files. Of
      // a split one that goes for both parts.
      out.index = before->index;
      out.index_mtime_ns = before->index_mtime_ns;
    } else {
      out.index = GitKept{.name = "index",
                          .id = {},
                          .size = index.size(),
                          .mode = look.index->stat.mode};
      BELAY_TRY(out.index->id, KeepIndex(index, known, sink));
      out.index_mtime_ns = look.index->stat.mtime_ns;
    }
  }
  std::vector<std::string> names;
  for (const GitFile& file : look.own) {
    if (file.name.starts_with(kGitSharedIndex) && (older || file.name != shared))
      continue;
    BELAY_TRY(Kept kept, Keep(fs, repository.git_dir, file, kMaxOwnFile,
                              IdOf(before, file.name), sink));
    if (file.name == "HEAD") {
      BELAY_TRY(GitHead head, ParseGitHead(AsText(kept.bytes), repository.hash));
      out.head_ref = head.ref;
      out.head = head.commit;
    }
    names.push_back(file.name);
    out.own.push_back(std::move(kept.kept));
  }
  for (GitKept& kept : older_shared) out.own.push_back(std::move(kept));
  std::ranges::sort(out.own, {}, &GitKept::name);
  out.in_progress = GitInProgress(names);
  if (out.head_ref.empty()) out.detached = DetachedBy(fs, repository);
  BELAY_TRY(GitRefs refs, ReadGitRefs(fs, repository, look));
  if (!out.head_ref.empty())
    if (auto found = refs.find(out.head_ref);
        found != refs.end() && IsGitHex(found->second, repository.hash))
      out.head = found->second;
  if (!refs.empty()) {
    const std::string text = RefsText(refs);
    BELAY_TRY(out.refs, sink.PutChanged(AsBytes(text),
                                        before != nullptr ? before->refs : ObjectId()));
  }
  if (look.stash_log && refs.contains("refs/stash")) {
    BELAY_TRY(Kept kept,
              Keep(fs, repository.common_dir, *look.stash_log, kMaxOwnFile,
                   before != nullptr && before->stash_log ? before->stash_log->id
                                                          : ObjectId(),
                   sink));
    out.stash_log = std::move(kept.kept);
  }
  BELAY_TRY(out.objects,
            KeepObjects(repository, wanted.Take(), tree, out, before, sink));
  return out;
}

std::optional<GitCapture::Cached> GitCapture::LoadCache() {
  if (request_.cache_dir == nullptr) return std::nullopt;
  auto bytes = ReadSmallFile(store_.fs(), *request_.cache_dir,
                             CacheName(request_.root_id), kMaxCache);
  if (!bytes.ok() || bytes->size() < kCacheMagic.size() + 40) return std::nullopt;
  const ByteSpan body = ByteSpan(*bytes).first(bytes->size() - 8);
  if (LoadU64(bytes->data() + body.size()) != Check64(body)) return std::nullopt;
  if (AsText(body.first(kCacheMagic.size())) != kCacheMagic) return std::nullopt;
  Cached out;
  out.print = Hash256::FromSpan(body.subspan(kCacheMagic.size(), 32));
  const ByteSpan node = body.subspan(kCacheMagic.size() + 32);
  out.node.assign(node.begin(), node.end());
  return out;
}

Status GitCapture::TakeWhole(const GitRepository& repository,
                             const GitRepoRecord* before, BatchWriter& writer,
                             ScanSink& sink, GitRepoRecord& repo) {
  // Objects of what was purged are in there, too.
  if (!request_.purged.empty()) {
    repo.whole.trouble = "something was purged here, and may be in it";
    return Ok();
  }
  // So are those of secrets; and a project's own settings may ask for the copy.
  if (request_.rules->lists().skip_secrets && !BELAY_MUTANT("git-copies-secrets")) {
    repo.whole.trouble = "secrets are left alone here, and may be in it";
    return Ok();
  }
  if (before != nullptr && !before->whole.empty() &&
      !BELAY_MUTANT("git-whole-always-anew")) {
    repo.whole = before->whole;
    bool same = repo == *before;
    if (same && !repo.whole.tree.is_zero()) {
      BELAY_TRY(same, writer.Has({ObjectType::kTree, repo.whole.tree}));
    }
    if (same) return Ok();
    repo.whole = {};
  }
  auto taken = wholes_.Take(repository, repo.path, sink);
  if (taken.ok()) {
    repo.whole = std::move(*taken);
    if (!repo.elsewhere.empty())
      repo.whole.trouble = "the repository lies in " +
                           EscapeForDisplay(repo.elsewhere) +
                           ", outside of this directory";
    return Ok();
  }
  if (taken.error().code == Errc::kNoSpace) return std::move(taken).error();
  repo.whole.trouble = taken.error().what;
  return Ok();
}

void GitCapture::SaveCache(const BatchPlace& place) {
  wholes_.SaveCaches(place);
  if (!fresh_ || request_.cache_dir == nullptr) return;
  Bytes bytes;
  ByteWriter out(bytes);
  out.Raw(kCacheMagic);
  out.Raw(fresh_->print.span());
  out.Raw(fresh_->node);
  out.U64(Check64(bytes));
  OpenMode mode = OpenMode::OpenOrCreate();
  mode.truncate = true;
  auto file = store_.fs().Open(*request_.cache_dir, CacheName(request_.root_id), mode);
  // One that is torn does not count.
  if (file.ok()) (void)WriteFull(store_.fs(), *file, 0, bytes);
}

Result<ObjectId> GitCapture::Run(const ScanSummary& scan, BatchWriter* writer,
                                 ScanSink& sink, const std::optional<Heads::Last>& last,
                                 int64_t released_ns) {
  struct Seen {
    std::string path;
    const GitRepository* repository;
    GitLook look;
    std::string failed;
  };
  std::vector<Seen> seen;
  Sha256 prints;
  bool trusted = true;
  auto look = [&](const GitRepository& repository) {
    return LookAtGit(store_.fs(), repository, IsRacy,
                     store_.clock().WallMillis() * 1'000'000);
  };
  for (const ScanSummary::AtPath& at : scan.work_trees) {
    if (!at.facts.repository) continue;
    Seen one{at.path, &*at.facts.repository, {}, {}};
    auto looked = look(*one.repository);
    if (looked.ok()) {
      one.look = std::move(*looked);
    } else {
      one.failed = looked.error().what;
      trusted = false;
    }
    trusted = trusted && !one.look.racy;
    prints.Update(AsBytes(one.path));
    prints.Update(one.look.print.span());
    seen.push_back(std::move(one));
  }
  if (seen.empty()) return ObjectId();
  prints.Update(RulesPrint().span());
  const Hash256 print = prints.Finish();

  std::optional<Cached> cached = LoadCache();
  GitRecord before;
  if (cached) {
    auto node = DecodeNode(cached->node);
    auto record = node.ok() ? DecodeGitRecord(*node) : Result<GitRecord>(node.error());
    if (!node.ok() || !record.ok()) {
      cached.reset();
    } else {
      before = std::move(*record);
      bool same = cached->print == print && trusted && released_ns == 0;
      for (size_t i = 0; same && i < node->refs.size(); ++i) {
        if (writer == nullptr) break;
        if (node->refs[i].type == ObjectType::kBlob) {
          BELAY_TRY(same, writer->HasContent(node->refs[i].id));
        } else {
          BELAY_TRY(same, writer->Has(node->refs[i]));
        }
      }
      if (same) {
        record_ = std::move(before);
        if (writer == nullptr) return Sha256::Of(cached->node);
        return writer->PutObject(ObjectType::kNode, cached->node);
      }
    }
  }
  if (!cached && last) {
    auto state = store_.GetState(last->state);
    auto record = state.ok() ? LoadGitRecord(store_, state->git)
                             : Result<GitRecord>(std::move(state).error());
    if (record.ok()) before = std::move(*record);
  }

  bool still = true;
  for (Seen& one : seen) {
    GitRepoRecord repo;
    const bool above = one.path.empty() && one.repository->work_tree != request_.root;
    for (int tries = 1; one.failed.empty(); ++tries) {
      auto captured = Capture(one.path, *one.repository, one.look, above,
                              before.Find(one.path), sink);
      // After it: whatever it names is in there by then.
      if (captured.ok()) captured->above = above;
      if (captured.ok() && request_.protect_git && !above && writer != nullptr)
        BELAY_OK(TakeWhole(*one.repository, before.Find(one.path), *writer, sink,
                           *captured));
      // Without it the files of a submodule that is gone come back, and git does not.
      if (captured.ok() && captured->whole.empty() && !one.path.empty() &&
          !BELAY_MUTANT("git-files-are-not-kept")) {
        const std::string why = std::move(captured->whole.trouble);
        captured->whole = wholes_.TakeFile(*one.repository);
        captured->whole.trouble = why;
      }
      // Git replaces its files as a whole; between two of them it may be half-way.
      auto again = look(*one.repository);
      const bool same = again.ok() && again->print == one.look.print;
      if (captured.ok() && (same || BELAY_MUTANT("git-half-way"))) {
        repo = std::move(*captured);
        break;
      }
      still = false;
      if (!captured.ok() && captured.error().code == Errc::kNoSpace)
        return std::move(captured).error();
      if (tries == kLooks)
        one.failed = captured.ok() ? "it kept changing while it was looked at"
                                   : captured.error().what;
      if (again.ok()) one.look = std::move(*again);
    }
    repo.path = one.path;
    repo.above = above;
    if (!one.failed.empty()) repo.trouble = one.failed;
    if (released_ns != 0 && one.look.newest_ns >= released_ns)
      repo.trouble = "it changed after the checkpoint was no longer waited for";
    record_.repositories.push_back(std::move(repo));
  }
  std::ranges::sort(record_.repositories, {}, &GitRepoRecord::path);
  const Bytes node = EncodeNode(EncodeGitRecord(record_));
  if (writer == nullptr) return Sha256::Of(node);
  if (trusted && still) fresh_ = Cached{print, node};
  return writer->PutObject(ObjectType::kNode, node);
}

}  // namespace belay
