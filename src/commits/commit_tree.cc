#include "commits/commit_tree.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/settings.h"
#include "core/state_rules.h"
#include "scan/tree_diff.h"

namespace belay {

namespace {

RuleLists SecretsAlone(const std::vector<std::string>& patterns) {
  RuleLists lists;
  lists.secret_patterns = patterns;
  return lists;
}

DirRules::Ptr RulesOf(const std::vector<std::string>& patterns) {
  return DirRules::Root(std::make_shared<const RuleConfig>(SecretsAlone(patterns)),
                        std::make_shared<const WorkTree>(WorkTreeInput()), {});
}

std::string_view NameOf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// `git fsck` calls it an error, and `git checkout` refuses it.
bool GitRefuses(std::string_view name, const TreeEntry& entry) {
  if (entry.kind != EntryKind::kSymlink) return false;
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return lower == ".gitmodules";
}

}  // namespace

CommitTree::CommitTree(Store& store, const StateView& view,
                       const std::vector<std::string>& patterns, std::string prefix)
    : store_(store),
      view_(view),
      own_(view.rules ? view.rules->lists.secret_patterns
                      : Settings::DefaultSecretPatterns()),
      now_(patterns),
      prefix_(std::move(prefix)) {}

Hash256 CommitTree::Patterns() const {
  Bytes digest;
  ByteWriter writer(digest);
  if (own_ == now_) {
    writer.Varint(1);
    for (const std::string& pattern : own_) writer.Sized(pattern);
  } else {
    writer.Varint(2);
    for (const auto* list : {&own_, &now_}) {
      writer.Varint(list->size());
      for (const std::string& pattern : *list) writer.Sized(pattern);
    }
  }
  writer.Sized(prefix_);
  return Sha256::Of(digest);
}

Status CommitTree::One(FastImport* out, const std::string& path, const TreeEntry& entry,
                       bool secret, CommitTreeReport& report) {
  if (secret && !BELAY_MUTANT("commit-keeps-secrets")) {
    report.left_out.push_back({path, "secret"});
    return Ok();
  }
  if (GitRefuses(NameOf(path), entry)) {
    report.left_out.push_back({path, "refused_by_git"});
    return Ok();
  }
  if (out != nullptr && entry.kind == EntryKind::kSymlink)
    BELAY_OK(out->Symlink(InCommit(path), entry.target));
  if (out != nullptr && entry.kind == EntryKind::kFile) {
    const Status sent = out->File(InCommit(path), (entry.mode & 0100) != 0, entry.size,
                                  [&](const std::function<Status(ByteSpan)>& sink) {
                                    return store_.ReadContent(entry.id, sink);
                                  });
    if (!sent.ok() && sent.error().code == Errc::kPurged) {
      report.left_out.push_back({path, "purged"});
      return Ok();
    }
    if (!sent.ok()) return Context(AsDamage(sent.error()), EscapeForDisplay(path));
  }
  ++report.files;
  if (entry.kind == EntryKind::kFile) report.bytes += entry.size;
  return Ok();
}

Status CommitTree::Walk(FastImport* out, const ProgressFn& progress,
                        CommitTreeReport& report) {
  struct Frame {
    Tree tree;
    size_t next = 0;
    std::string path;  // "" or "a/b/"
    DirRules::Ptr own, now;
  };
  std::vector<Frame> frames;
  auto enter = [&](const ObjectId& id, std::string path, DirRules::Ptr own,
                   DirRules::Ptr now) -> Status {
    auto tree = store_.GetTree(id);
    if (!tree.ok() && tree.error().code == Errc::kPurged && !frames.empty()) {
      path.pop_back();
      report.left_out.push_back({std::move(path), "purged"});
      return Ok();
    }
    if (!tree.ok()) return AsDamage(std::move(tree).error());
    if (tree->entries.empty() && !path.empty())
      report.left_out.push_back({path.substr(0, path.size() - 1), "empty_directory"});
    frames.push_back(
        {std::move(*tree), 0, std::move(path), std::move(own), std::move(now)});
    return Ok();
  };
  DirRules::Ptr own = RulesOf(own_);
  BELAY_OK(enter(view_.state.tree, "", own, own_ == now_ ? own : RulesOf(now_)));
  while (!frames.empty()) {
    Frame& frame = frames.back();
    if (frame.next == frame.tree.entries.size()) {
      frames.pop_back();
      continue;
    }
    const TreeEntry& entry = frame.tree.entries[frame.next++];
    const std::string path = frame.path + entry.name;
    if (entry.kind == EntryKind::kDirectory) {
      DirRules::Ptr below = frame.own->Enter(entry.name, {});
      DirRules::Ptr today =
          frame.now == frame.own ? below : frame.now->Enter(entry.name, {});
      BELAY_OK(
          enter(ObjectId(entry.id), path + "/", std::move(below), std::move(today)));
      continue;
    }
    const bool secret = frame.own->Decide(entry.name, false).secret ||
                        frame.now->Decide(entry.name, false).secret;
    BELAY_OK(One(out, path, entry, secret, report));
    if (progress) BELAY_OK(progress(report.files, report.bytes));
  }
  std::ranges::sort(report.left_out, {}, &NotInCommit::path);
  if (view_.rules)
    for (const RulesRecord::Top& top : view_.rules->work_trees)
      if (!top.path.empty() && top.in_git) report.nested.push_back(top.path);
  return Ok();
}

Result<CommitTreeReport> CommitTree::Survey() {
  CommitTreeReport report;
  BELAY_OK(Walk(nullptr, {}, report));
  return report;
}

Result<CommitTreeReport> CommitTree::Send(FastImport& out, const ProgressFn& progress) {
  CommitTreeReport report;
  BELAY_OK(Walk(&out, progress, report));
  return report;
}

Result<CommitTreeReport> CommitTree::SendChanges(FastImport& out,
                                                 const ObjectId& from) {
  std::vector<std::string> gone, came;
  BELAY_TRY([[maybe_unused]] auto counts,
            DiffTrees(from, view_.state.tree, TreesOf(store_),
                      [&](std::string_view path, Change change) {
                        (change == Change::kDeleted ? gone : came).emplace_back(path);
                      }));
  // What goes first: where a file became a directory, or the other way round, both are
  // named, and deleting takes along what is below.
  for (const std::string& path : gone) BELAY_OK(out.Delete(InCommit(path)));
  const SecretRules own(SecretsAlone(own_)), now(SecretsAlone(now_));
  CommitTreeReport report;
  for (const std::string& path : came) {
    BELAY_TRY(RelPath at, RelPath::Parse(path));
    BELAY_TRY(auto entry, FindInTree(view_.state.tree, at, TreesOf(store_)));
    if (!entry || entry->kind == EntryKind::kDirectory) continue;
    const size_t left_out = report.left_out.size();
    BELAY_OK(One(&out, path, *entry, own.IsSecret(path) || now.IsSecret(path), report));
    // What was there and is not sent must not stay as it was.
    if (report.left_out.size() != left_out) BELAY_OK(out.Delete(InCommit(path)));
  }
  return report;
}

}  // namespace belay
