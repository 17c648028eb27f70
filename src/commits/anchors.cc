#include "commits/anchors.h"

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "base/mutant.h"
#include "commits/commit_tree.h"
#include "commits/export_commit.h"
#include "core/last_failure.h"
#include "core/purged.h"
#include "git/state_files.h"

namespace belay {

namespace {

constexpr size_t kMaxPackedRefs = size_t{256} << 20;
constexpr std::string_view kOfCheckpoint = "Belay-Checkpoint: ";
constexpr std::string_view kOfStore = "Belay-Store: ";
constexpr std::string_view kOfPatterns = "Belay-Patterns: ";

struct Anchor {
  std::string ref, id;  // of the checkpoint, as text
  std::string commit, tree, parent;
  std::string patterns;  // hex
};

std::string RefOf(const RecordId& id) { return std::string(kAnchorRefs) + id.text(); }

// One at a time for each root; no root has this id.
RootId LockOf(const RootId& root) {
  Id128 id;
  const Hash256 hash = Sha256::Of(AsBytes("anchors of " + root.text()));
  std::copy_n(hash.bytes.begin(), id.bytes.size(), id.bytes.begin());
  return RootId(id);
}

std::optional<GitRepository> RepositoryOf(Fs& fs, const AbsPath& root,
                                          const GitPlaces& places) {
  if (!fs.OpenDir(root).ok()) return std::nullopt;
  auto found = FindWorkTree(fs, root, places.user);
  return found.ok() ? std::move(*found) : std::nullopt;
}

std::set<std::string> AnchoredBy(Fs& fs, const GitRepository& repository,
                                 const GitPlaces& places) {
  std::set<std::string> ids;
  const AbsPath& common = repository.common_dir;
  // Refs in a table of git's own: only git can tell.
  if (fs.OpenDir(common.Join(RelPath::Literal("reftable"))).ok()) {
    auto git = GitRunner::Find(fs, repository, places.ask);
    if (!git.ok()) return ids;
    auto text = git->Run(
        {"for-each-ref", "--format=%(refname:lstrip=3)", std::string(kAnchorRefs)});
    if (text.ok())
      for (std::string& id : GitLines(*text)) ids.insert(std::move(id));
    return ids;
  }
  if (auto dir = fs.OpenDir(common.Join(RelPath::Literal("refs/belay/checkpoints")));
      dir.ok())
    if (auto names = fs.List(*dir); names.ok())
      for (const DirEntry& entry : *names)
        if (!entry.name.ends_with(".lock")) ids.insert(entry.name);
  auto packed = ReadGitFile(fs, common, "packed-refs", kMaxPackedRefs);
  if (!packed.ok()) return ids;
  const std::string_view text = AsText(*packed);
  for (size_t at = 0; (at = text.find(kAnchorRefs, at)) != std::string_view::npos;) {
    at += kAnchorRefs.size();
    ids.emplace(text.substr(at, text.find_first_of("\r\n", at) - at));
  }
  return ids;
}

// Those of this store.
Result<std::vector<Anchor>> ListAnchors(GitRunner& git, const StoreId& store) {
  BELAY_TRY(std::string text,
            git.Run({"for-each-ref",
                     "--format=%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%("
                     "contents)%00",
                     std::string(kAnchorRefs)}));
  std::vector<Anchor> out;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string fields[5];
    for (std::string& field : fields) {
      const size_t end = rest.find('\0');
      if (end == std::string_view::npos)
        return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
      field = rest.substr(0, end);
      rest.remove_prefix(end + 1);
    }
    if (rest.starts_with('\n')) rest.remove_prefix(1);
    Anchor anchor{.ref = fields[0],
                  .id = fields[0].substr(kAnchorRefs.size()),
                  .commit = fields[1],
                  .tree = fields[2],
                  .parent = fields[3].substr(0, fields[3].find(' ')),
                  .patterns = {}};
    std::string of_store, of_checkpoint;
    for (const std::string& line : GitLines(fields[4])) {
      if (line.starts_with(kOfStore)) of_store = line.substr(kOfStore.size());
      if (line.starts_with(kOfCheckpoint))
        of_checkpoint = line.substr(kOfCheckpoint.size());
      if (line.starts_with(kOfPatterns))
        anchor.patterns = line.substr(kOfPatterns.size());
    }
    // Whatever else is there is somebody else's.
    if (of_store == store.text() && of_checkpoint == anchor.id)
      out.push_back(std::move(anchor));
  }
  return out;
}

// All or none; each must still be what was looked at.
Status RemoveAll(GitRunner& git, const std::vector<Anchor>& gone) {
  std::string input;
  for (const Anchor& anchor : gone)
    input += "delete " + anchor.ref + '\0' + anchor.commit + '\0';
  BELAY_TRY([[maybe_unused]] std::string said,
            git.Run({"update-ref", "--stdin", "-z"}, input));
  return Ok();
}

// Whether a state has content that was purged since.
class LostContent {
 public:
  LostContent(Store& store, const PurgedSet& purged) : store_(store), purged_(purged) {}

  // What cannot be read may have had it.
  bool In(const ObjectId& state, uint64_t seq) {
    if (purged_.empty() || BELAY_MUTANT("purge-leaves-anchors")) return false;
    auto loaded = store_.GetState(state);
    if (!loaded.ok()) return true;
    bool found = false;
    const Status walked = WalkTree(
        loaded->tree, "", TreesOf(store_),
        [&](const std::string&, const TreeEntry& entry) -> Status {
          found =
              found || (entry.kind == EntryKind::kFile && purged_.Has(entry.id, seq));
          // Enough is known.
          return found ? Status(Error(Errc::kRefused, "")) : Ok();
        });
    return found || !walked.ok();
  }

 private:
  Store& store_;
  const PurgedSet& purged_;
};

// Everything about one repository while anchors are made or taken away.
class Anchoring {
 public:
  // `root`: whose repository it is; none, when it was forgotten.
  Anchoring(Store& store, Catalog& catalog, const GitRepository& repository,
            const GitPlaces& places, std::optional<RootId> root)
      : root_(root),
        store_(store),
        catalog_(catalog),
        repository_(repository),
        places_(places),
        options_(PatientGit(places)) {}

  Status Open() {
    BELAY_TRY(GitRunner git, GitRunner::Find(store_.fs(), repository_, options_));
    git_.emplace(std::move(git));
    BELAY_TRY(anchors_, ListAnchors(*git_, store_.manifest().store));
    return Ok();
  }
  Status DropStale(AnchorReport& report);
  Status DropBeyond(const RootId& root, size_t keep, AnchorReport& report);
  Status MakeMissing(const Root& root, const Settings& settings, AnchorReport& report);

 private:
  Status Make(const Checkpoint& checkpoint, const std::string& prefix,
              const Settings& settings);
  Status Remove(std::vector<Anchor> gone, AnchorReport& report);
  // Whose rollbacks look at the same refs.
  Result<std::vector<RootId>> RootsOfRepository();
  const Anchor* Find(std::string_view id) const {
    auto found = std::ranges::find(anchors_, id, &Anchor::id);
    return found == anchors_.end() ? nullptr : &*found;
  }

  const std::optional<RootId> root_;
  Store& store_;
  Catalog& catalog_;
  const GitRepository& repository_;
  const GitPlaces& places_;
  const AskGitOptions options_;
  std::optional<GitRunner> git_;
  std::vector<Anchor> anchors_;
  std::optional<std::pair<std::string, ObjectId>> last_;  // anchored, and its tree
};

Result<std::vector<RootId>> Anchoring::RootsOfRepository() {
  std::vector<RootId> out;
  if (root_) out.push_back(*root_);
  BELAY_TRY(auto roots, catalog_.Roots());
  for (const RootEntry& root : roots) {
    auto path = AbsPath::Parse(root.root.path);
    if (!path.ok() || BELAY_MUTANT("anchors-lock-one-root")) continue;
    auto repository = RepositoryOf(store_.fs(), *path, places_);
    if (repository && repository->common_dir == repository_.common_dir)
      out.push_back(root.root.id);
  }
  std::ranges::sort(out, {}, [](const RootId& id) { return id.text(); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Status Anchoring::Remove(std::vector<Anchor> gone, AnchorReport& report) {
  if (gone.empty()) return Ok();
  // Taking a ref away may write packed-refs anew, by which a rollback that is being
  // planned knows whether git stood still: not while there is one.
  // That goes for every work tree of the repository; in the order of their ids, so that
  // two who do this wait for each other in turn.
  BELAY_TRY(const std::vector<RootId> sharing, RootsOfRepository());
  std::vector<HeldLock> root_locks;
  for (const RootId& root : sharing) {
    BELAY_TRY(HeldLock held,
              store_.locks().AcquireRoot(root, store_.options().lock_wait_ms));
    root_locks.push_back(std::move(held));
  }
  BELAY_OK(RemoveAll(*git_, gone));
  for (Anchor& anchor : gone) {
    std::erase_if(anchors_, [&](const Anchor& a) { return a.ref == anchor.ref; });
    report.removed.push_back(std::move(anchor.ref));
  }
  return Ok();
}

Status Anchoring::DropStale(AnchorReport& report) {
  std::vector<Anchor> gone;
  BELAY_TRY(PurgedSet purged, PurgedSet::Load(catalog_));
  LostContent lost(store_, purged);
  BELAY_TRY(auto roots, catalog_.Roots());
  std::map<std::string, CheckpointRow> rows;
  for (const RootEntry& root : roots) {
    BELAY_TRY(auto outline, catalog_.Outline(root.root.id));
    for (const CheckpointRow& row : outline) rows.emplace(row.id.text(), row);
  }
  for (const Anchor& anchor : anchors_) {
    auto row = rows.find(anchor.id);
    if (row == rows.end()) {
      if (!BELAY_MUTANT("anchor-outlives-checkpoint")) gone.push_back(anchor);
      continue;
    }
    if (purged.empty()) continue;
    BELAY_TRY(auto entries, catalog_.Load({row->second.seq}));
    if (lost.In(entries[0].checkpoint.state, row->second.seq)) gone.push_back(anchor);
  }
  return Remove(std::move(gone), report);
}

Status Anchoring::DropBeyond(const RootId& root, size_t keep, AnchorReport& report) {
  BELAY_TRY(auto outline, catalog_.Outline(root));
  std::map<std::string, size_t> seen;
  std::vector<Anchor> gone;
  for (const CheckpointRow& row : outline) {
    const Anchor* anchor = Find(row.id.text());
    if (anchor == nullptr) continue;
    // Those without a session count as one.
    if (++seen[row.session.value_or("")] > keep) gone.push_back(*anchor);
  }
  return Remove(std::move(gone), report);
}

Status Anchoring::Make(const Checkpoint& c, const std::string& prefix,
                       const Settings& settings) {
  BELAY_TRY(HeldLock hold, store_.HoldForReading());
  BELAY_OK(store_.Refresh());
  BELAY_TRY(StateView view, LoadState(store_, c.state));
  if (!view.trouble.empty())
    return Error(Errc::kCorrupt, "its rules cannot be read: " + view.trouble);
  CommitHead head{.identity = CommitIdentity(store_.fs(), repository_, places_),
                  .seconds = std::max<int64_t>(c.made_ms / 1000, 0),
                  .message = {}};
  BELAY_TRY(head.parent, ParentOf(store_, *git_, repository_, view.state, nullptr));
  CommitTree tree(store_, view, settings.secret_patterns, prefix);
  const std::string patterns = tree.Patterns().hex();
  head.message = CommitSubject(c) + "\n\n" + std::string(kOfCheckpoint) + c.id.text() +
                 "\n" + std::string(kOfStore) + store_.manifest().store.text() + "\n" +
                 std::string(kOfPatterns) + patterns + "\n";

  const Anchor* base = last_ ? Find(last_->first) : nullptr;
  // Below the top of a work tree the rest is as in the parent.
  if (base != nullptr && (base->patterns != patterns || base->tree.empty() ||
                          (!prefix.empty() && base->parent != head.parent)))
    base = nullptr;
  BELAY_TRY(auto import, FastImport::Start(*git_, repository_.hash));
  BELAY_OK(import->Begin(head));
  if (base != nullptr) {
    BELAY_OK(import->SetTree(base->tree));
    BELAY_TRY([[maybe_unused]] auto sent, tree.SendChanges(*import, last_->second));
  } else {
    if (prefix.empty())
      BELAY_OK(import->Clear());
    else
      BELAY_OK(import->Delete(prefix));
    BELAY_TRY([[maybe_unused]] auto sent, tree.Send(*import));
  }
  Anchor made{.ref = RefOf(c.id),
              .id = c.id.text(),
              .commit = {},
              .tree = {},
              .parent = head.parent,
              .patterns = patterns};
  BELAY_TRY(made.commit, import->Finish());
  Status named = MakeRef(*git_, made.ref, made.commit, head.identity, "belay");
  if (!named.ok()) return named;
  BELAY_TRY(made.tree, git_->Run({"rev-parse", made.commit + "^{tree}"}));
  while (!made.tree.empty() && made.tree.back() == '\n') made.tree.pop_back();
  last_ = {made.id, view.state.tree};
  anchors_.push_back(std::move(made));
  return Ok();
}

Status Anchoring::MakeMissing(const Root& root, const Settings& settings,
                              AnchorReport& report) {
  BELAY_TRY(auto outline, catalog_.Outline(root.id));
  const auto keep = static_cast<size_t>(settings.git_refs_keep);
  std::vector<uint64_t> todo;  // newest first
  std::map<std::string, size_t> seen;
  for (const CheckpointRow& row : outline) {
    if (Find(row.id.text()) != nullptr) {
      BELAY_TRY(auto entries, catalog_.Load({row.seq}));
      // One whose state cannot be read is nothing to build upon.
      if (auto state = store_.GetState(entries[0].checkpoint.state); state.ok())
        last_ = {row.id.text(), state->tree};
      break;
    }
    if (++seen[row.session.value_or("")] <= keep) todo.push_back(row.seq);
  }
  // Switched on just now: what came before stays as it is.
  if (!last_ && todo.size() > 1) todo.resize(1);
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  std::string prefix;
  if (const AbsPath& top = repository_.work_tree; path != top && path.IsWithin(top))
    prefix = path.bytes().substr(top.is_root() ? 1 : top.bytes().size() + 1);
  BELAY_TRY(PurgedSet purged, PurgedSet::Load(catalog_));
  LostContent lost(store_, purged);
  std::ranges::reverse(todo);
  for (const uint64_t seq : todo) {
    auto entries = catalog_.Load({seq});
    if (!entries.ok()) continue;  // gone meanwhile
    const Checkpoint& c = (*entries)[0].checkpoint;
    if (lost.In(c.state, seq)) continue;
    const Status made = Make(c, prefix, settings);
    if (made.ok()) {
      report.made.push_back(RefOf(c.id));
      continue;
    }
    report.failed.push_back(c.id.text().substr(0, 7) + ": " + made.error().what);
  }
  return Ok();
}

}  // namespace

void AnchorReport::Add(AnchorReport other) {
  auto move = [](std::vector<std::string>& to, std::vector<std::string>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.end()));
  };
  move(made, other.made);
  move(removed, other.removed);
  move(failed, other.failed);
}

std::set<std::string> AnchoredIn(Fs& fs, const AbsPath& root, const GitPlaces& places) {
  auto repository = RepositoryOf(fs, root, places);
  return repository ? AnchoredBy(fs, *repository, places) : std::set<std::string>();
}

Result<AnchorReport> AnchorCheckpoints(Store& store, Catalog& catalog, const Root& root,
                                       const Settings& settings,
                                       const GitPlaces& places, int64_t wait_ms) {
  AnchorReport report;
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  auto repository = RepositoryOf(store.fs(), path, places);
  if (!repository) return report;
  auto work = [&]() -> Status {
    BELAY_TRY(HeldLock lock, store.locks().AcquireRoot(LockOf(root.id), wait_ms));
    BELAY_OK(store.Refresh());
    Anchoring anchoring(store, catalog, *repository, places, root.id);
    BELAY_OK(anchoring.Open());
    BELAY_OK(anchoring.DropStale(report));
    // Whoever came while we were at it waits for the lock, or relies on us.
    for (size_t before = 1; before > 0;) {
      const size_t had = report.made.size();
      BELAY_OK(anchoring.MakeMissing(root, settings, report));
      before = report.failed.empty() ? report.made.size() - had : 0;
    }
    return anchoring.DropBeyond(root.id, static_cast<size_t>(settings.git_refs_keep),
                                report);
  };
  const Status done = work();
  if (!done.ok() && done.error().code != Errc::kBusy)
    report.failed.push_back(done.error().what);
  if (report.failed.empty() && done.ok())
    ForgetFailure(store, root.id, FailureOf::kAnchor);
  else if (!report.failed.empty())
    RememberFailure(store, root.id,
                    {.of = FailureOf::kAnchor,
                     .at_ms = store.clock().WallMillis(),
                     .after = {},
                     .what = "a checkpoint is not anchored in git (git.refs): " +
                             report.failed.back()});
  if (!done.ok() && done.error().code == Errc::kBusy) return done.error();
  return report;
}

AnchorReport DropStaleAnchors(Store& store, Catalog& catalog, const GitPlaces& places,
                              const std::vector<std::string>& also) {
  AnchorReport report;
  std::vector<std::pair<std::string, std::optional<RootId>>> paths;
  auto roots = catalog.Roots();
  if (roots.ok())
    for (const RootEntry& root : *roots)
      paths.emplace_back(root.root.path, root.root.id);
  for (const std::string& path : also) paths.emplace_back(path, std::nullopt);
  std::set<std::string> seen;  // work trees of one repository share its refs
  for (const auto& [text, root] : paths) {
    auto path = AbsPath::Parse(text);
    if (!path.ok()) continue;
    auto repository = RepositoryOf(store.fs(), *path, places);
    if (!repository || !seen.insert(repository->common_dir.bytes()).second) continue;
    if (AnchoredBy(store.fs(), *repository, places).empty()) continue;
    Anchoring anchoring(store, catalog, *repository, places, root);
    Status done = anchoring.Open();
    if (done.ok()) done = anchoring.DropStale(report);
    if (!done.ok())
      report.failed.push_back(EscapeForDisplay(repository->common_dir.bytes()) + ": " +
                              done.error().what);
  }
  return report;
}

}  // namespace belay
