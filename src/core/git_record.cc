#include "core/git_record.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "git/index_entries.h"
#include "store/content_stream.h"

namespace belay {

namespace {

// Of the record.
constexpr uint64_t kRepository = 1;
// Of a repository.
constexpr uint64_t kPath = 1, kFlags = 2, kHeadRef = 3, kHead = 4, kInProgress = 5,
                   kOwn = 6, kIndex = 7, kIndexTime = 8, kIndexDigest = 9,
                   kStashLog = 10, kRefs = 11, kObjects = 12, kTrouble = 13,
                   kDetached = 14, kWhole = 15, kGitFile = 16, kWholeMode = 17,
                   kWholeUid = 18, kWholeGid = 19, kWholeTrouble = 20, kElsewhere = 21,
                   kUnmerged = 22;
constexpr uint64_t kSha256Flag = 1, kLinkedFlag = 2, kAboveFlag = 4, kAbsentFlag = 8;
// Of a file.
constexpr uint64_t kName = 1, kId = 2, kSize = 3, kMode = 4;

constexpr size_t kMaxIndexRead = size_t{1} << 30;

Error Bad() { return {Errc::kCorrupt, "a git record is damaged"}; }

Fields EncodeKept(const GitKept& kept) {
  Fields f;
  f.Add(kName, kept.name);
  f.Add(kId, kept.id.span());
  f.AddNumber(kSize, kept.size);
  f.AddNumber(kMode, kept.mode);
  return f;
}

Result<ObjectId> DecodeId(ByteSpan bytes) {
  if (bytes.size() != 32) return Bad();
  return ObjectId::FromSpan(bytes);
}

Result<GitKept> DecodeKept(ByteSpan bytes) {
  ByteReader in(bytes);
  BELAY_TRY(Fields f, Fields::Decode(in));
  GitKept kept;
  kept.name = f.Text(kName).value_or("");
  auto ids = f.All(kId);
  if (!RelPath::Parse(kept.name).ok() || ids.size() != 1) return Bad();
  BELAY_TRY(kept.id, DecodeId(ids[0]));
  kept.size = f.Number(kSize).value_or(0);
  const uint64_t mode = f.Number(kMode).value_or(0644);
  if (mode > 07777) return Bad();
  kept.mode = static_cast<uint32_t>(mode);
  return kept;
}

Result<std::optional<ObjectId>> OneId(const Fields& f, uint64_t tag) {
  auto all = f.All(tag);
  if (all.empty()) return std::optional<ObjectId>();
  if (all.size() > 1) return Bad();
  BELAY_TRY(ObjectId id, DecodeId(all[0]));
  return std::optional(id);
}

Result<GitRepoRecord> DecodeRepository(ByteSpan bytes) {
  ByteReader in(bytes);
  BELAY_TRY(Fields f, Fields::Decode(in));
  GitRepoRecord out;
  out.path = f.Text(kPath).value_or("");
  if (!out.path.empty() && !RelPath::Parse(out.path).ok()) return Bad();
  const uint64_t flags = f.Number(kFlags).value_or(0);
  out.hash = (flags & kSha256Flag) != 0 ? GitHash::kSha256 : GitHash::kSha1;
  out.linked = (flags & kLinkedFlag) != 0;
  out.above = (flags & kAboveFlag) != 0;
  out.absent = (flags & kAbsentFlag) != 0;
  out.head_ref = f.Text(kHeadRef).value_or("");
  if (!out.head_ref.empty() && !IsGitRefName(out.head_ref)) return Bad();
  out.head = f.Text(kHead).value_or("");
  if (!out.head.empty() && !IsGitHex(out.head, out.hash)) return Bad();
  out.in_progress = f.Text(kInProgress).value_or("");
  for (ByteSpan one : f.All(kOwn)) {
    BELAY_TRY(GitKept kept, DecodeKept(one));
    if (!IsGitStateFile(kept.name) && !BELAY_MUTANT("git-record-names-anything"))
      return Bad();
    if (!out.own.empty() && !(out.own.back().name < kept.name)) return Bad();
    out.own.push_back(std::move(kept));
  }
  for (ByteSpan one : f.All(kIndex)) {
    BELAY_TRY(out.index, DecodeKept(one));
    if (out.index->name != "index") return Bad();
  }
  if (auto time = f.Number(kIndexTime))
    out.index_mtime_ns = static_cast<int64_t>(*time);
  BELAY_TRY(auto digest, OneId(f, kIndexDigest));
  if (digest) out.index_digest = Hash256::FromSpan(digest->span());
  BELAY_TRY(auto unmerged, OneId(f, kUnmerged));
  if (unmerged) out.unmerged = Hash256::FromSpan(unmerged->span());
  for (ByteSpan one : f.All(kStashLog)) {
    BELAY_TRY(out.stash_log, DecodeKept(one));
    if (out.stash_log->name != "logs/refs/stash") return Bad();
  }
  BELAY_TRY(auto refs, OneId(f, kRefs));
  out.refs = refs.value_or(ObjectId());
  BELAY_TRY(auto objects, OneId(f, kObjects));
  out.objects = objects.value_or(ObjectId());
  out.trouble = f.Text(kTrouble).value_or("");
  out.detached = f.Text(kDetached).value_or("");
  if (out.detached.find_first_of("\n\r") != std::string::npos) return Bad();
  BELAY_TRY(auto whole, OneId(f, kWhole));
  out.whole.tree = whole.value_or(ObjectId());
  out.whole.git_file = f.Text(kGitFile).value_or("");
  const uint64_t mode = f.Number(kWholeMode).value_or(0),
                 uid = f.Number(kWholeUid).value_or(0),
                 gid = f.Number(kWholeGid).value_or(0);
  if (mode > 07777 || uid >= UINT32_MAX || gid >= UINT32_MAX) return Bad();
  out.whole.mode = static_cast<uint32_t>(mode);
  out.whole.uid = static_cast<uint32_t>(uid);
  out.whole.gid = static_cast<uint32_t>(gid);
  out.whole.trouble = f.Text(kWholeTrouble).value_or("");
  out.elsewhere = f.Text(kElsewhere).value_or("");
  return out;
}

}  // namespace

const GitRepoRecord* GitRecord::Find(std::string_view path) const {
  auto found = std::ranges::find(repositories, path, &GitRepoRecord::path);
  return found == repositories.end() ? nullptr : &*found;
}

Node EncodeGitRecord(const GitRecord& record) {
  Node node;
  std::vector<ObjectKey> refs;
  auto refer = [&](const ObjectId& id, ObjectType type = ObjectType::kBlob) {
    if (!id.is_zero()) refs.push_back({type, id});
  };
  for (const GitRepoRecord& repo : record.repositories) {
    Fields f;
    f.Add(kPath, repo.path);
    f.AddNumber(kFlags, (repo.hash == GitHash::kSha256 ? kSha256Flag : 0) |
                            (repo.linked ? kLinkedFlag : 0) |
                            (repo.above ? kAboveFlag : 0) |
                            (repo.absent ? kAbsentFlag : 0));
    if (!repo.head_ref.empty()) f.Add(kHeadRef, repo.head_ref);
    if (!repo.head.empty()) f.Add(kHead, repo.head);
    if (!repo.in_progress.empty()) f.Add(kInProgress, repo.in_progress);
    for (const GitKept& kept : repo.own) {
      f.AddNested(kOwn, EncodeKept(kept));
      refer(kept.id);
    }
    if (repo.index) {
      f.AddNested(kIndex, EncodeKept(*repo.index));
      f.AddNumber(kIndexTime, static_cast<uint64_t>(repo.index_mtime_ns));
      f.Add(kIndexDigest, repo.index_digest.span());
      refer(repo.index->id);
    }
    if (repo.stash_log) {
      f.AddNested(kStashLog, EncodeKept(*repo.stash_log));
      refer(repo.stash_log->id);
    }
    if (!repo.refs.is_zero()) f.Add(kRefs, repo.refs.span());
    if (!repo.objects.is_zero()) f.Add(kObjects, repo.objects.span());
    refer(repo.refs);
    refer(repo.objects, ObjectType::kTree);
    if (!repo.trouble.empty()) f.Add(kTrouble, repo.trouble);
    if (!repo.detached.empty()) f.Add(kDetached, repo.detached);
    if (!repo.elsewhere.empty()) f.Add(kElsewhere, repo.elsewhere);
    const GitWhole& whole = repo.whole;
    if (!whole.tree.is_zero()) f.Add(kWhole, whole.tree.span());
    refer(whole.tree, ObjectType::kTree);
    if (!whole.git_file.empty()) f.Add(kGitFile, whole.git_file);
    if (!whole.empty()) {
      f.AddNumber(kWholeMode, whole.mode);
      f.AddNumber(kWholeUid, whole.uid);
      f.AddNumber(kWholeGid, whole.gid);
    }
    if (!whole.trouble.empty()) f.Add(kWholeTrouble, whole.trouble);
    if (!repo.unmerged.is_zero()) f.Add(kUnmerged, repo.unmerged.span());
    node.fields.AddNested(kRepository, f);
  }
  std::ranges::sort(refs);
  refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
  node.refs = std::move(refs);
  return node;
}

Result<GitRecord> DecodeGitRecord(const Node& node) {
  GitRecord out;
  for (ByteSpan one : node.fields.All(kRepository)) {
    BELAY_TRY(GitRepoRecord repo, DecodeRepository(one));
    if (!out.repositories.empty() && !(out.repositories.back().path < repo.path))
      return Bad();
    out.repositories.push_back(std::move(repo));
  }
  return out;
}

Result<GitRecord> LoadGitRecord(Store& store, const ObjectId& git) {
  if (git.is_zero()) return GitRecord();
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, git}));
  BELAY_TRY(Node node, DecodeNode(bytes));
  return DecodeGitRecord(node);
}

Result<GitRefs> LoadGitRefs(Store& store, const GitRepoRecord& record) {
  if (record.refs.is_zero()) return GitRefs();
  BELAY_TRY(Bytes bytes, store.ReadContentBytes(record.refs, kMaxIndexRead));
  return ParseRefsText(AsText(bytes));
}

Result<Tree> LoadGitObjects(Store& store, const GitRepoRecord& record) {
  if (record.objects.is_zero()) return Tree();
  BELAY_TRY(Tree tree, store.GetTree(record.objects));
  for (const TreeEntry& entry : tree.entries)
    if (!IsGitHex(entry.name, record.hash) || entry.kind != EntryKind::kFile)
      return Bad();
  return tree;
}

Result<std::vector<NamedEntry>> LoadGitIndex(Store& store,
                                             const GitRepoRecord& record) {
  std::vector<NamedEntry> out;
  if (!record.index) return out;
  BELAY_TRY(Bytes bytes, store.ReadContentBytes(record.index->id, kMaxIndexRead));
  auto shared = [&](const std::string& name) -> Result<Bytes> {
    auto found = std::ranges::find(record.own, name, &GitKept::name);
    if (found == record.own.end())
      return Error(Errc::kNotFound, name + " was not kept");
    return store.ReadContentBytes(found->id, kMaxIndexRead);
  };
  BELAY_TRY([[maybe_unused]] IndexEntries entries,
            ReadWholeIndex(bytes, record.hash, &out, shared));
  std::erase_if(out, [](const NamedEntry& entry) { return entry.path.empty(); });
  return out;
}

Status VisitGitIndexIds(Store& store, const GitRepoRecord& record,
                        const std::function<void(ByteSpan)>& each) {
  if (!record.index) return Ok();
  BELAY_TRY(ContentStream content, ContentStream::Open(store, record.index->id));
  BELAY_TRY(const IndexEntries met,
            VisitIndex([&](std::span<std::byte> out) { return content.Read(out); },
                       record.index->size, record.hash,
                       [&](const MetEntry& entry) { each(entry.object); }));
  if (!met.split) return Ok();
  BELAY_TRY(const auto entries, LoadGitIndex(store, record));
  Bytes object(GitHashSize(record.hash));
  for (const NamedEntry& entry : entries)
    if (FromHex(entry.object, object)) each(object);
  return Ok();
}

namespace {

std::string_view BranchOf(std::string_view ref) {
  constexpr std::string_view kBranch = "refs/heads/";
  return ref.starts_with(kBranch) ? ref.substr(kBranch.size()) : ref;
}

std::string DescribeOne(const GitRepoRecord& before, const GitRepoRecord& now) {
  const std::string at = now.head.substr(0, 7);
  if (before.head_ref != now.head_ref)
    return now.head_ref.empty() ? "now at " + at + " without a branch"
                                : "switched to " + std::string(BranchOf(now.head_ref));
  if (before.head != now.head)
    return std::string(now.head_ref.empty() ? "HEAD" : BranchOf(now.head_ref)) +
           (now.head.empty() ? " has no commit any more" : " moved to " + at);
  if (before.in_progress != now.in_progress)
    return now.in_progress.empty() ? before.in_progress + " ended"
                                   : now.in_progress + " begun";
  if (before.index_digest != now.index_digest) return "what is staged changed";
  if (before.stash_log != now.stash_log) return "the stash changed";
  if (before.refs != now.refs) return "branches or tags changed";
  return "its state changed";
}

}  // namespace

std::string DescribeGitChange(const GitRecord& before, const GitRecord& now) {
  for (const GitRepoRecord& repo : now.repositories) {
    const GitRepoRecord* old = before.Find(repo.path);
    if (old != nullptr && *old == repo) continue;
    const std::string where =
        repo.path.empty() ? "git: " : "git in " + repo.path + ": ";
    return where +
           (old == nullptr ? "a repository is here now" : DescribeOne(*old, repo));
  }
  for (const GitRepoRecord& repo : before.repositories)
    if (now.Find(repo.path) == nullptr)
      return "git" + (repo.path.empty() ? "" : " in " + repo.path) +
             ": the repository is gone";
  return "";
}

}  // namespace belay
