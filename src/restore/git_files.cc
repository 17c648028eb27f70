#include <algorithm>

#include "base/escape.h"
#include "git/run_git.h"
#include "restore/git_files_internal.h"

namespace belay {

Status GitFiles::Open() {
  BELAY_TRY(dir_, fs_.OpenDir(repository_.common_dir));
  BELAY_TRY(stat_, fs_.Stat(dir_));
  looker_.emplace(fs_, dir_);
  config_ = GitConfig::Read(fs_, user_, {repository_.git_dir, repository_.common_dir});
  return Ok();
}

Result<MaybeState> GitFiles::LookAt(const std::string& path) {
  BELAY_TRY(auto looked, looker_->Look(path, sink_));
  if (!looked) return MaybeState();
  if (looked->special)
    return Error(Errc::kConflict, EscapeForDisplay(path) + " in the git directory is " +
                                      std::string(FileTypeName(looked->stat.type)));
  return MaybeState(StateOf(looked->state));
}

// Directories that a new file needs.
Status GitFiles::MakeParents(const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string dir = path.substr(0, slash);
    if (changes_.contains(dir)) {
      if (!changes_[dir].after) changes_[dir].after = changes_[dir].before;
      continue;
    }
    BELAY_TRY(MaybeState there, LookAt(dir));
    if (there && there->kind == EntryKind::kDirectory) continue;
    if (there) return Error(Errc::kConflict, EscapeForDisplay(dir) + " is in the way");
    changes_[dir] = {dir, std::nullopt,
                     RootState(stat_.mode & 07777, stat_.uid, stat_.gid)};
  }
  return Ok();
}

Status GitFiles::SetState(const std::string& path, MaybeState to) {
  BELAY_TRY(MaybeState from, LookAt(path));
  if (from && to && from->kind == EntryKind::kFile && to->kind == EntryKind::kFile) {
    to->uid = from->uid;
    to->gid = from->gid;
    to->xattrs = from->xattrs;
  }
  if (SameState(from, to)) return Ok();
  if (to) BELAY_OK(MakeParents(path));
  changes_[path] = {path, std::move(from), std::move(to)};
  return Ok();
}

PathState GitFiles::FileState(const ObjectId& id, uint64_t size, uint32_t mode) const {
  PathState state;
  state.kind = EntryKind::kFile;
  state.mode = mode;
  state.uid = stat_.uid;
  state.gid = stat_.gid;
  state.size = size;
  state.id = id;
  return state;
}

Status GitFiles::SetKept(const std::string& path, const GitKept& kept) {
  return SetState(path, FileState(kept.id, kept.size, kept.mode));
}

Status GitFiles::SetText(const std::string& path, std::string_view text) {
  BELAY_TRY(MaybeState there, LookAt(path));
  BELAY_TRY(ObjectId id, sink_.PutContent(AsBytes(text)));
  return SetState(
      path, FileState(id, text.size(),
                      there && there->kind == EntryKind::kFile ? there->mode
                                                               : (stat_.mode & 0666)));
}

// Directories that have nothing in them but such ones are nothing to git, and give way.
Status GitFiles::EmptyDirectory(const std::string& path) {
  BELAY_TRY(RelPath parsed, RelPath::Parse(path));
  BELAY_TRY(Fd dir, fs_.OpenBeneath(dir_, parsed, OpenMode::Directory()));
  BELAY_TRY(auto inside, fs_.List(dir));
  for (const DirEntry& entry : inside) {
    const std::string below = path + "/" + entry.name;
    BELAY_TRY(MaybeState there, LookAt(below));
    if (!there) continue;
    if (there->kind != EntryKind::kDirectory)
      return Error(Errc::kConflict, EscapeForDisplay(path) + " is in the way");
    BELAY_OK(EmptyDirectory(below));
    changes_[below] = {below, there, std::nullopt};
  }
  return Ok();
}

Status GitFiles::SetRef(const std::string& name, const std::string& value) {
  if (value.empty()) {
    BELAY_TRY(MaybeState there, LookAt(name));
    if (there && there->kind == EntryKind::kFile) {
      BELAY_OK(SetState(name, std::nullopt));
      Lock(name);
    }
    unpack_.insert(name);
    return Ok();
  }
  BELAY_TRY(MaybeState there, LookAt(name));
  if (there && there->kind == EntryKind::kDirectory) BELAY_OK(EmptyDirectory(name));
  const auto damaged = BytesOfDamagedGitRef(value);
  BELAY_OK(SetText(name, damaged ? *damaged : value + "\n"));
  if (!name.starts_with(kGitSafety)) Lock(name);
  return Ok();
}

Status GitFiles::AppendLog(const std::string& path, const std::vector<LogLine>& lines) {
  const std::string none(2 * GitHashSize(repository_.hash), '0');
  BELAY_TRY(MaybeState there, LookAt(path));
  if (there && there->kind != EntryKind::kFile) return Ok();
  std::string text;
  if (there) {
    BELAY_TRY(Bytes bytes, ReadGitFile(fs_, repository_.common_dir, path, kMaxGitText));
    text = AsText(bytes);
  } else {
    auto logs = config_->Bool("core.logallrefupdates");
    if (logs && !*logs) return Ok();
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (const LogLine& line : lines)
    text += (line.from.empty() ? none : line.from) + " " +
            (line.to.empty() ? none : line.to) + " " + Identity() + "\t" +
            line.message + "\n";
  return SetText(path, text);
}

// "Name <mail> seconds +0000": the user's, or ours where git knows none.
std::string GitFiles::Identity() const {
  auto clean = [](std::string text) {
    std::erase_if(text, [](char c) { return c == '<' || c == '>' || c == '\n'; });
    return text;
  };
  return clean(config_->Text("user.name").value_or("Belay")) + " <" +
         clean(config_->Text("user.email").value_or("belay@localhost")) + "> " +
         std::to_string(clock_.WallMillis() / 1000) + " +0000";
}

Status GitFiles::Unpack() {
  if (unpack_.empty()) return Ok();
  BELAY_TRY(MaybeState there, LookAt("packed-refs"));
  if (!there || there->kind != EntryKind::kFile) return Ok();
  BELAY_TRY(Bytes bytes,
            ReadGitFile(fs_, repository_.common_dir, "packed-refs", kMaxGitText));
  std::string text;
  bool skipped = false, any = false;
  for (const std::string& line : GitLines(AsText(bytes))) {
    if (skipped && line.starts_with('^')) continue;
    const size_t space = line.find(' ');
    skipped = !line.starts_with('#') && space != std::string::npos &&
              unpack_.contains(line.substr(space + 1));
    any = any || skipped;
    if (!skipped) text += line + "\n";
  }
  if (!any) return Ok();
  Lock("packed-refs");
  return SetText("packed-refs", text);
}

Status GitFiles::RemoveDirectory(const std::string& path) {
  BELAY_TRY(MaybeState there, LookAt(path));
  if (there && there->kind == EntryKind::kDirectory)
    changes_[path] = {path, there, std::nullopt};
  return Ok();
}

std::vector<PathChange> GitFiles::TakeChanges() {
  std::vector<PathChange> out;
  for (auto& [path, change] : changes_)
    if (!SameState(change.before, change.after)) out.push_back(std::move(change));
  changes_.clear();
  return out;
}

std::vector<std::string> GitFiles::TakeLocks() {
  std::ranges::sort(locks_);
  locks_.erase(std::unique(locks_.begin(), locks_.end()), locks_.end());
  return std::move(locks_);
}

}  // namespace belay
