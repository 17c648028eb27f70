#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "restore/displaced.h"
#include "restore/git_objects.h"
#include "restore/naming_internal.h"
#include "restore/overlay.h"
#include "restore/paths_internal.h"
#include "restore/runner_internal.h"

namespace belay {

namespace {

// A directory in the root, through no symlink; the root itself.
Result<Fd> OpenWorkTree(Fs& fs, const Fd& root, const std::string& root_path,
                        const AbsPath& path) {
  if (path.bytes() == root_path) return fs.Duplicate(root);
  const std::string above = root_path == "/" ? root_path : root_path + "/";
  if (!path.bytes().starts_with(above) || BELAY_MUTANT("git-through-symlinks"))
    return fs.OpenDir(path);
  BELAY_TRY(RelPath below, RelPath::Parse(path.bytes().substr(above.size())));
  return fs.OpenBeneath(root, below, OpenMode::Directory());
}

}  // namespace

Error InUsersWords(Error error, const Journal& journal) {
  const size_t at = error.what.find("/" + journal.stage);
  if (at == std::string::npos) return error;
  size_t end = at + 1 + journal.stage.size();
  std::string path;
  if (end < error.what.size() && error.what[end] == '/') {
    // "/<index of the change>.<number>"
    size_t index = 0;
    const char* last = error.what.data() + error.what.size();
    auto [dot, bad] = std::from_chars(error.what.data() + end + 1, last, index);
    end = std::min(error.what.size(), error.what.find(':', end));
    if (bad == std::errc() && dot != last && *dot == '.' &&
        index < journal.changes.size())
      path = "/" + journal.changes[index].path;
  }
  error.what.replace(at, end - at, path);
  return error;
}

Error Interrupted(const Error& why, const Error& back) {
  Error error(Errc::kIo, why.what + "; taking it back is interrupted: " + back.what);
  const bool full = why.code == Errc::kNoSpace || back.code == Errc::kNoSpace;
  return std::move(error).WithHint(
      full ? "make room on the disk: the next belay command here then finishes it or "
             "takes it back, and until then all that it moved is kept"
           : "the next belay command here finishes it or takes it back");
}

std::optional<std::string> MountedOver(Fs& fs, const Fd& root, const Journal& journal) {
  DirChain chain(fs, root);
  for (const PathChange& change : journal.changes) {
    if (change.path.empty()) continue;
    auto dir = chain.At(ParentOf(change.path));
    if (!dir.ok() && dir.error().sys == EXDEV) return chain.mounted();
    if (!dir.ok()) continue;  // not there, or the move will say what is wrong
    const std::string name = change.path.substr(change.path.rfind('/') + 1);
    auto stat = fs.StatAt(**dir, NameRef::Known(name));
    if (stat.ok() && stat->mount_root) return change.path;
  }
  return std::nullopt;
}

std::string NothingChanged(const std::optional<RecordId>& safety) {
  if (!safety) return "nothing was changed";
  return "nothing was changed (your present state was kept as " +
         safety->text().substr(0, 7) + ")";
}

Runner::Runner(Store& store, const Fd& root, std::string path, Journal journal,
               std::shared_ptr<const HeldContents> known)
    : store_(store),
      root_(root),
      path_(std::move(path)),
      journal_(std::move(journal)),
      mover_(store, root, journal_, std::move(known)),
      began_(store.clock().SteadyNanos()) {}

Status Runner::Forward(const std::function<bool()>& stop, Outcome& out) {
  Status locked = OpenGit();
  if (locked.ok()) locked = OpenExternal();
  if (locked.ok()) locked = LockGit();
  // Of a run before this one git may be half-way: without its locks there is no way
  // forward, and none back.
  if (!locked.ok() && journal_.operation.recovered) return locked;
  if (locked.ok() && journal_.operation.recovered) locked = Secure(nullptr);
  if (locked.ok()) locked = CheckGitSides();
  if (locked.ok()) locked = PreparePublication();
  if (!locked.ok()) return TakeBack(std::move(locked).error(), out);
  Status moved = MoveGit(Way::kForward, When::kBeforeFiles);
  if (moved.ok()) moved = mover_.Move(Way::kForward, stop);
  if (moved.ok()) moved = MoveGit(Way::kForward, When::kAfterFiles);
  if (moved.ok()) moved = MoveExternal(Way::kForward);
  if (moved.ok() && publication_) moved = publication_->Publish();
  if (moved.ok() && publication_) moved = publication_->Verify();
  if (moved.ok()) moved = VerifyGit(Way::kForward, out);
  if (moved.ok()) moved = VerifyExternal(Way::kForward, out);
  if (moved.ok()) {
    auto verified = mover_.FlushAndVerify(Way::kForward, stop);
    if (verified.ok()) {
      out.changed_by_others.insert(out.changed_by_others.begin(),
                                   verified->changed.begin(), verified->changed.end());
      for (const std::string& path : verified->attributes)
        out.warnings.push_back("mode, owner or attributes of " +
                               EscapeForDisplay(ShownPath(path)) + " could not be set");
      out.verified = out.changed_by_others.empty() && verified->attributes.empty() &&
                     external_right_;
    } else {
      moved = std::move(verified).error();
    }
  }
  if (moved.ok()) moved = Record(out);
  if (moved.ok()) {
    // The journal stays when it fails, and leads the next one here to what is left.
    if (Status tidied = Tidy(); !tidied.ok()) {
      const bool there = store_.fs().StatAt(root_, Name::Literal(journal_.stage)).ok();
      out.warnings.push_back((there ? "the directory " + journal_.stage +
                                          ", in which files were made ready,"
                                    : std::string("the journal of what was done")) +
                             " could not be removed (" + tidied.error().what +
                             "); the next belay command here tries again");
    }
    return moved;
  }
  return TakeBack(std::move(moved).error(), out);
}

Status Runner::TakeBack(Error why, Outcome& out) {
  out.operation.reset();
  out.raced.reset();
  out.verified = false;
  // What is beneath a mount cannot be taken back now; half of it would be neither
  // tree.
  if (auto mounted = MountedOver(store_.fs(), root_, journal_);
      mounted && !around_mounts_)
    return Interrupted(why, Error(Errc::kConflict, "something is mounted over " +
                                                       EscapeForDisplay(*mounted)));
  const bool git_too = !BELAY_MUTANT("git-stays-half-way");
  Status back = git_too ? MoveGit(Way::kBack, When::kBeforeFiles) : Ok();
  if (back.ok() && !BELAY_MUTANT("stay-half-way")) back = mover_.Move(Way::kBack);
  if (back.ok() && git_too) back = MoveGit(Way::kBack, When::kAfterFiles);
  if (back.ok()) back = MoveExternal(Way::kBack);
  if (back.ok()) {
    auto published = OpenPublication();
    back = !published.ok()         ? Status(std::move(published).error())
           : *published == nullptr ? Ok()
                                   : (*published)->TakeBack();
  }
  if (back.ok()) back = VerifyGit(Way::kBack, out);
  if (back.ok()) back = VerifyExternal(Way::kBack, out);
  if (back.ok()) {
    auto verified = mover_.FlushAndVerify(Way::kBack);
    if (!verified.ok()) back = std::move(verified).error();
  }
  if (back.ok()) back = StoreFound(out);
  if (back.ok()) back = Tidy();
  why = InUsersWords(std::move(why), journal_);
  if (!back.ok()) return Interrupted(why, InUsersWords(back.error(), journal_));
  if (const auto theirs = Theirs(); !theirs.empty()) {
    why.hint = std::string(kOthersChanged) + EscapeForDisplay(theirs.front()) +
               (theirs.size() > 1 ? " and more" : "") +
               ", which is left so; how it was is in the newest checkpoint";
  } else if (std::ranges::any_of(
                 git_, [](const auto& part) { return part->left && part->moved; }) ||
             (journal_.operation.recovered &&
              std::ranges::any_of(git_, [](const auto& part) { return part->left; }))) {
    why.hint =
        "the files are as they were; git was used in .git meanwhile, which is left as "
        "it is";
  } else if (why.hint.empty()) {
    why.hint = NothingChanged(journal_.operation.safety);
  }
  return why;
}

std::vector<std::string> Runner::Theirs() const {
  std::vector<std::string> out = mover_.theirs();
  out.insert(out.end(), mover_.given_back().begin(), mover_.given_back().end());
  for (const auto& part : external_)
    for (const std::string& name : part->mover->theirs())
      out.push_back(part->move->dir + "/" + name);
  return out;
}

Status Runner::Tidy() {
  if (BELAY_MUTANT("journal-goes-first"))
    BELAY_OK(JournalFile::Remove(store_, journal_.operation.root));
  BELAY_OK(mover_.RemoveStage());
  BELAY_OK(TidyGit());
  BELAY_OK(TidyExternal());
  BELAY_TRY(Publication * published, OpenPublication());
  if (published != nullptr) BELAY_OK(published->Tidy());
  return JournalFile::Remove(store_, journal_.operation.root);
}

Result<Publication*> Runner::OpenPublication() {
  Publication* none = nullptr;
  if (!journal_.publication) return none;
  if (publication_) return &*publication_;
  BELAY_TRY(const AbsPath root, AbsPath::Parse(path_));
  BELAY_TRY(const AbsPath dir, AbsPath::Parse(journal_.publication->dir));
  if (dir.IsWithin(root)) return none;  // a journal leads to none of the root's own
  publication_.emplace(store_.fs(), *journal_.publication, journal_.stage);
  auto there = publication_->Open();
  if (there.ok() && *there) return &*publication_;
  // What could not be opened is no place where nothing is.
  if (!BELAY_MUTANT("closed-means-empty")) publication_.reset();
  if (!there.ok()) return std::move(there).error();
  return none;
}

Status Runner::PreparePublication() {
  if (!journal_.publication) return Ok();
  BELAY_TRY(Publication * open, OpenPublication());
  if (open == nullptr)
    return Error(Errc::kConflict, EscapeForDisplay(journal_.publication->dir) +
                                      " is not the directory that it was");
  if (chat_ != nullptr) return open->Prepare(*chat_, uid_);
  BELAY_TRY(const bool prepared, open->IsPrepared());
  if (prepared || BELAY_MUTANT("code-without-chat")) return Ok();
  return Error(Errc::kConflict, "the conversation was not complete yet");
}

// --- git -----------------------------------------------------------------------------

// Beneath it, or the one that its own `.git` leads to.
Result<bool> Runner::IsOfThisRoot(const AbsPath& git_dir) {
  BELAY_TRY(AbsPath root, AbsPath::Parse(path_));
  if (git_dir.IsWithin(root)) return true;
  BELAY_TRY(auto repository, OpenRepositoryAt(store_.fs(), root, {}));
  return repository && repository->common_dir == git_dir;
}

// Of a git directory that comes or goes as a whole: whether its work tree does, too, by
// what becomes of the files. Nothing when it stays.
std::unique_ptr<Runner::GitPart> Runner::TieToFiles(size_t number) {
  const GitMove& move = journal_.git[number];
  const std::string above = path_ == "/" ? path_ : path_ + "/";
  if (!move.whole || !move.dir.starts_with(above)) return nullptr;
  const std::string path = move.dir.substr(above.size());
  auto change = std::ranges::lower_bound(journal_.changes, path, {}, &PathChange::path);
  if (change == journal_.changes.end() || change->path != path) return nullptr;
  auto is_dir = [](const std::optional<PathState>& side) {
    return side && side->kind == EntryKind::kDirectory;
  };
  if (is_dir(change->before) == is_dir(change->after) ||
      BELAY_MUTANT("git-inner-stays-away"))
    return nullptr;
  auto part = std::make_unique<GitPart>();
  part->comes = is_dir(change->after);
  part->goes = !part->comes;
  part->top = path + "/";
  part->from_root = move;
  for (PathChange& inside : part->from_root.changes) inside.path.insert(0, part->top);
  if (!move.index.empty()) part->from_root.index.insert(0, part->top);
  part->move = &part->from_root;
  // One of its own: what is displaced must not keep the work tree from going.
  part->view.stage = FurtherStageName(journal_.operation.id, number + 2);
  return part;
}

// A journal leads to no git directory but one of this root's. Nothing when it is gone
// since an interruption: the files are all that is left to be moved.
Result<std::unique_ptr<Runner::GitPart>> Runner::OpenPart(size_t number) {
  const GitMove& move = journal_.git[number];
  BELAY_TRY(AbsPath path, AbsPath::Parse(move.dir));
  BELAY_TRY(bool ours, IsOfThisRoot(path));
  ours = ours || BELAY_MUTANT("git-of-anybody");
  if (ours) {
    if (auto tied = TieToFiles(number)) {
      BELAY_TRY(tied->dir, store_.fs().Duplicate(root_));
      return tied;
    }
  }
  auto dir = move.whole ? OpenWorkTree(store_.fs(), root_, path_, path)
                        : store_.fs().OpenDir(path);
  bool there = dir.ok() && ours;
  if (!dir.ok() && !IsAbsence(dir.error())) return std::move(dir).error();
  if (there && !move.whole) {
    BELAY_TRY(there, IsGitDirectory(store_.fs(), *dir));
  }
  if (there) {
    BELAY_TRY(FileStat stat, store_.fs().Stat(*dir));
    there = stat.ino == move.ino;
  }
  if (!there && journal_.operation.recovered) return std::unique_ptr<GitPart>();
  if (!there)
    return Error(Errc::kConflict,
                 EscapeForDisplay(move.dir) + " is not the git directory that it was");
  auto part = std::make_unique<GitPart>();
  part->move = &move;
  part->dir = std::move(*dir);
  // The work tree may be the root, which has a staging directory of its own.
  part->view.stage =
      move.whole ? FurtherStageName(journal_.operation.id, 1) : journal_.stage;
  return part;
}

Status Runner::OpenGit() {
  if (git_open_) return Ok();
  git_.clear();
  for (size_t i = 0; i < journal_.git.size(); ++i) {
    BELAY_TRY(std::unique_ptr<GitPart> part, OpenPart(i));
    if (part == nullptr) continue;
    part->view.operation = journal_.operation;
    part->view.changes = part->move->changes;
    part->view.is_git = part->move;
    part->locks = std::make_unique<GitLocks>(store_.fs(), store_.clock(), part->dir,
                                             part->move->dir, part->move->locks,
                                             journal_.operation.id);
    part->mover = std::make_unique<Mover>(store_, part->dir, part->view);
    git_.push_back(std::move(part));
  }
  git_open_ = true;
  return Ok();
}

Status Runner::LockGit() {
  for (auto& part : git_) BELAY_OK(part->locks->Take(git_wait_ms_));
  return Ok();
}

// Under its locks git is as it was planned by; after an interruption as before or
// after. What is neither came from somebody: then nothing moves.
Status Runner::CheckGitSides() {
  if (BELAY_MUTANT("git-moves-over-others")) return Ok();
  for (auto& part : git_) {
    Looker looker(store_.fs(), part->dir);
    for (const PathChange& change : part->move->changes) {
      HashSink sink;
      BELAY_TRY(auto looked, looker.Look(change.path, sink));
      std::optional<PathState> there;
      if (looked && !looked->special) there = StateOf(looked->state);
      const bool special = looked && looked->special;
      auto same = [&](const std::optional<PathState>& side) {
        if (!side || !there) return !side && !there;
        return SameContent(*side, *there);
      };
      if (!special && same(change.before)) continue;
      if (!special && journal_.operation.recovered && same(change.after)) continue;
      return Error(Errc::kConflict, "git changed " + EscapeForDisplay(change.path) +
                                        " in its directory meanwhile");
    }
  }
  return Ok();
}

// Of a git directory that we were bringing or taking away: whether something is in it
// that is of neither side. Nothing of it is written in place, so that it is not ours.
Result<bool> Runner::IsUsedSince(const GitPart& part) {
  if (BELAY_MUTANT("git-takes-back-over-others")) return false;
  const auto& changes = part.move->changes;
  auto find = [&](const std::string& path) {
    return std::ranges::lower_bound(changes, path, {}, &PathChange::path);
  };
  const std::string git = part.top + ".git";
  auto top = find(git);
  // Whether all that is not in the list is new.
  const bool all =
      top != changes.end() && top->path == git && (!top->before || !top->after);
  Looker looker(store_.fs(), part.dir);
  HashSink sink;
  std::vector<std::string> left = {git};
  while (!left.empty()) {
    const std::string path = std::move(left.back());
    left.pop_back();
    BELAY_TRY(auto looked, looker.Look(path, sink));
    if (!looked) continue;
    auto change = find(path);
    const bool known = change != changes.end() && change->path == path;
    auto same = [&](const std::optional<PathState>& side) {
      return side && !looked->special && SameContent(*side, StateOf(looked->state));
    };
    if (known ? !same(change->before) && !same(change->after) : all) return true;
    if (looked->special || looked->state.kind != EntryKind::kDirectory) continue;
    BELAY_TRY(RelPath rel, RelPath::Parse(path));
    BELAY_TRY(Fd dir, store_.fs().OpenBeneath(part.dir, rel, OpenMode::Directory()));
    BELAY_TRY(auto names, store_.fs().List(dir));
    for (const DirEntry& entry : names) left.push_back(path + "/" + entry.name);
  }
  return false;
}

Status Runner::MoveGit(Way way, When when) {
  for (auto& part : git_) {
    const bool before = way == Way::kForward ? part->goes : part->comes;
    if (before != (when == When::kBeforeFiles)) continue;
    if (way == Way::kBack) {
      // What nobody moved needs no way back.
      if (!part->moved && !journal_.operation.recovered) {
        part->left = true;
        continue;
      }
      if (part->move->whole) {
        BELAY_TRY(part->left, IsUsedSince(*part));
        if (part->left) continue;
      }
    }
    part->moved = true;
    if (way == Way::kForward)
      BELAY_OK(WriteGitObjects(store_, part->dir, *part->move, journal_.operation.id));
    BELAY_OK(part->mover->Move(way));
  }
  return Ok();
}

Status Runner::VerifyGit(Way way, Outcome& out) {
  for (auto& part : git_) {
    if (way == Way::kBack && part->left) continue;
    BELAY_TRY(auto verified, part->mover->FlushAndVerify(way));
    if (way == Way::kBack) continue;
    for (const std::string& path : verified.changed)
      out.changed_by_others.push_back(part->move->whole ? path : ".git/" + path);
  }
  return Ok();
}

// Nobody writes under the locks but who does not heed them: what they wrote is stored,
// and named.
Status Runner::SettleGit(ScanSink& sink, Outcome& out) {
  for (auto& part : git_) {
    BELAY_TRY(auto found, part->mover->Settle(sink));
    for (const Mover::Found& one : found)
      if (!one.half_written)
        out.warnings.push_back("somebody wrote to " +
                               EscapeForDisplay(part->move->changes[one.index].path) +
                               " in the git directory meanwhile; it was replaced");
  }
  return Ok();
}

Status Runner::TidyGit() {
  Status opened = OpenGit();
  // A git directory that is gone holds nothing of ours.
  if (!opened.ok()) return Ok();
  for (auto& part : git_) {
    BELAY_OK(part->mover->RemoveStage());
    BELAY_OK(TidyGitObjects(store_.fs(), part->dir, journal_.operation.id));
    if (BELAY_MUTANT("git-leaves-its-locks")) continue;
    BELAY_OK(part->locks->Release());
  }
  return Ok();
}

Status Runner::Record(Outcome& out) {
  BELAY_TRY(auto writer, store_.Begin());
  BatchSink sink(*writer);
  BELAY_TRY(auto settled, mover_.Settle(sink));
  for (const std::string& path : mover_.given_back()) {
    out.changed_by_others.push_back(path);
    out.verified = false;
  }
  BELAY_OK(SettleGit(sink, out));
  BELAY_TRY(auto settled_outside, SettleExternal(sink, out));
  const std::vector<FoundTree> found = FitTogether(settled, settled_outside);
  std::vector<PathChange> external = ChangesIn(journal_.external);
  std::vector<PathChange> changes = journal_.changes;
  if (!found.empty()) {
    for (const FoundOutside& one : found[0].outside)
      for (PathChange& change : external)
        if (change.path == one.path && !one.half_written) change.before = one.state;
    for (const Mover::Found& one : found[0].inside)
      if (!one.half_written) changes[one.index].before = one.state;
    // A file where the others know a directory: it is in the checkpoint alone.
    if (!CheckFits(changes).ok()) changes = journal_.changes;
  }
  std::erase_if(external, [](const PathChange& change) {
    return SameState(change.before, change.after);
  });
  const auto& left = mover_.left();
  for (const std::string& path : left) out.plan.kept.push_back({path, "not_empty"});
  auto stayed = [&](const PathChange& change) {
    return std::find(left.begin(), left.end(), change.path) != left.end();
  };
  std::erase_if(changes, [&](const PathChange& change) {
    return SameState(change.before, change.after) || stayed(change);
  });
  std::erase_if(out.plan.changes, stayed);
  for (const std::string& path : mover_.held_open())
    out.warnings.push_back("another program still writes to the old " +
                           EscapeForDisplay(path) +
                           "; what it writes from now on goes nowhere");
  Operation operation = journal_.operation;
  // An undo goes by these: after an interruption what the store has of them counts for
  // nothing.
  writer->StoreAnew(operation.recovered && !BELAY_MUTANT("recovered-by-an-old-list"));
  BELAY_TRY(operation.changes,
            writer->PutObject(ObjectType::kNode, EncodeNode(EncodeChanges(changes))));
  operation.made_ms = store_.clock().WallMillis();
  operation.took_us +=
      static_cast<uint64_t>(store_.clock().SteadyNanos() - began_) / 1000;
  operation.paths = changes.size() + external.size();
  if (!external.empty()) {
    BELAY_TRY(
        operation.external,
        writer->PutObject(ObjectType::kNode, EncodeNode(EncodeChanges(external))));
  }
  writer->StoreAnew(false);
  BELAY_OK(AddRaced(*writer, sink, found, out));
  writer->Add(ToRecord(operation));
  BELAY_TRY(auto beside, RecordsBeside(store_, operation));
  for (LogRecord& record : beside) writer->Add(std::move(record));
  BELAY_TRY(auto published, writer->Commit());
  if (out.raced) out.raced->seq = published.first_seq;
  operation.seq = published.first_seq + found.size();
  out.operation = std::move(operation);
  return Ok();
}

Status Runner::StoreFound(Outcome& out) {
  BELAY_TRY(auto writer, store_.Begin());
  BatchSink sink(*writer);
  BELAY_TRY(auto settled, mover_.Settle(sink));
  BELAY_TRY(auto outside, SettleExternal(sink, out));
  const std::vector<FoundTree> found = FitTogether(settled, outside);
  if (found.empty()) return Ok();
  BELAY_OK(AddRaced(*writer, sink, found, out));
  BELAY_TRY(auto published, writer->Commit());
  out.raced->seq = published.first_seq;
  return Ok();
}

namespace {

// The first of `trees` in which `path` is free, and nothing above or beneath it is
// taken; takes it.
size_t FirstFree(std::vector<std::set<std::string>>& trees, const std::string& path) {
  auto fits = [&](const std::set<std::string>& taken) {
    for (std::string above = path; !above.empty(); above = ParentOf(above))
      if (taken.contains(above)) return false;
    auto below = taken.lower_bound(path + "/");
    return below == taken.end() || !IsBelow(*below, path);
  };
  auto tree = std::ranges::find_if(trees, fits);
  if (tree == trees.end()) tree = trees.emplace(trees.end());
  tree->insert(path);
  return static_cast<size_t>(tree - trees.begin());
}

}  // namespace

std::vector<Runner::FoundTree> Runner::FitTogether(
    const std::vector<Mover::Found>& inside,
    const std::vector<FoundOutside>& outside) const {
  std::vector<FoundTree> out;
  std::vector<std::set<std::string>> taken, taken_outside;
  auto tree = [&](size_t number) -> FoundTree& {
    if (number >= out.size()) out.resize(number + 1);
    return out[BELAY_MUTANT("one-edit-of-a-path") ? 0 : number];
  };
  // The newest was displaced last.
  for (auto one = inside.rbegin(); one != inside.rend(); ++one)
    tree(FirstFree(taken, journal_.changes[one->index].path)).inside.push_back(*one);
  for (auto one = outside.rbegin(); one != outside.rend(); ++one)
    tree(FirstFree(taken_outside, one->path)).outside.push_back(*one);
  for (FoundTree& each : out) {
    std::ranges::reverse(each.inside);
    std::ranges::reverse(each.outside);
  }
  return out;
}

Status Runner::AddRaced(BatchWriter& writer, ScanSink& sink,
                        const std::vector<FoundTree>& found, Outcome& out) {
  out.raced.reset();
  for (const FoundTree& tree : found) {
    BELAY_TRY(Checkpoint raced, AddRacedOne(writer, sink, tree));
    if (out.raced)
      out.warnings.push_back("what others wrote before that is kept in " +
                             raced.id.text().substr(0, 7));
    else
      out.raced = std::move(raced);
  }
  return Ok();
}

Result<Checkpoint> Runner::AddRacedOne(BatchWriter& writer, ScanSink& sink,
                                       const FoundTree& tree) {
  const auto& [found, outside] = tree;
  Checkpoint raced;
  State state;
  if (journal_.operation.safety) {
    BELAY_TRY(auto catalog, Catalog::Open(store_));
    auto safety =
        catalog->FindById(journal_.operation.root, journal_.operation.safety->text());
    if (safety.ok()) {
      auto read = store_.GetState(safety->checkpoint.state);
      if (read.ok()) state = *read;
      raced.files = safety->checkpoint.files;
      raced.bytes = safety->checkpoint.bytes;
    }
  }
  if (state.tree.is_zero()) {
    BELAY_TRY(state.tree, sink.PutTree(Tree()));
  }
  std::vector<Overlaid> paths;
  for (const Mover::Found& one : found)
    paths.push_back({journal_.changes[one.index].path, one.state});
  auto dir = [](const std::string&) -> Result<PathState> {
    PathState unknown;
    unknown.kind = EntryKind::kDirectory;
    unknown.mode = 0700;
    return unknown;
  };
  auto read = [&](const ObjectId& id) -> Result<Tree> {
    auto got = store_.GetTree(id);
    if (!got.ok() && got.error().code == Errc::kNotFound) return Tree();
    return got;
  };
  auto overlaid = OverlayTree(state.tree, paths, read, dir, sink);
  if (!overlaid.ok() && IsNoMore(overlaid.error()) &&
      !BELAY_MUTANT("damage-keeps-what-raced")) {
    // Of the rest nothing can be said; what was found is kept all the same.
    raced.partial = true;
    raced.files = raced.bytes = 0;
    BELAY_TRY(state.tree, sink.PutTree(Tree()));
    overlaid = OverlayTree(state.tree, paths, read, dir, sink);
  }
  if (!overlaid.ok()) return std::move(overlaid).error();
  state.tree = *overlaid;
  BELAY_TRY(raced.state, writer.PutObject(ObjectType::kState, EncodeState(state)));
  raced.id = RecordId(store_.random().NewId());
  raced.root = journal_.operation.root;
  raced.made_ms = store_.clock().WallMillis();
  raced.kind = CheckpointKind::kSafety;
  for (const FoundOutside& one : outside)
    raced.external.push_back({.path = one.path, .state = one.state});
  std::ranges::sort(raced.external, {}, &ExternalFile::path);
  raced.more_refs = RefsOf(raced.external);
  auto is_edit = [](const auto& one) { return !one.half_written; };
  const bool edits =
      std::ranges::any_of(found, is_edit) || std::ranges::any_of(outside, is_edit);
  const size_t count = found.size() + outside.size();
  raced.description =
      (edits ? "edited during " : "half written at the interruption of ") +
      InADescription(journal_.operation) + ": " +
      (found.empty() ? outside[0].path : journal_.changes[found[0].index].path) +
      (count > 1 ? " and " + std::to_string(count - 1) + " more" : "");
  raced.modified = count;
  writer.Add(ToRecord(raced));
  return raced;
}

}  // namespace belay
