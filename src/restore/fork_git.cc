// The repository of a fork: made of files, as git itself would find them, so that no
// git has to be there and nothing of the source's is touched.

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "git/config.h"
#include "git/repository.h"
#include "git/run_git.h"
#include "git/state_files.h"
#include "restore/fork_internal.h"
#include "restore/git_objects.h"
#include "restore/git_plan.h"
#include "restore/remove_all.h"

namespace belay {

namespace {

constexpr size_t kMaxGitFile = size_t{256} << 20, kMaxSetting = size_t{1} << 20;
constexpr int kTries = 3;
constexpr std::string_view kWorkTreeSettings = "config.worktree";

class RepositoryMaker {
 public:
  RepositoryMaker(Store& store, const GitRepository& source,
                  const GitRepoRecord& record, const GitUserConfig& user, const Fd& git)
      : store_(store),
        fs_(store.fs()),
        source_(source),
        record_(record),
        user_(user),
        git_(git) {}

  Status Run() {
    // Modes as the source has them: who may read that may read this.
    BELAY_TRY(FileStat around, fs_.Stat(git_));
    dir_mode_ = around.mode & 0777;
    file_mode_ = dir_mode_ & 0666;
    for (const char* name : {"objects", "refs", "info"})
      BELAY_OK(fs_.MakeDir(git_, Name::Literal(name), dir_mode_));
    BELAY_TRY(Fd refs, fs_.Open(git_, Name::Literal("refs"), OpenMode::Directory()));
    for (const char* name : {"heads", "tags"})
      BELAY_OK(fs_.MakeDir(refs, Name::Literal(name), dir_mode_));
    BELAY_OK(WriteSettings());
    BELAY_OK(CopyIfThere(source_.common_dir, "info/exclude"));
    BELAY_OK(CopyIfThere(source_.common_dir, "shallow"));
    // What a collection of the source's takes away meanwhile is elsewhere by then.
    for (int attempt = 1;; ++attempt) {
      Status copied = CopyObjects();
      if (copied.ok()) break;
      if (copied.error().code != Errc::kNotFound || attempt == kTries) return copied;
    }
    BELAY_OK(WriteRefs());
    for (const GitKept& kept : record_.own)
      if (IsGitStateFile(kept.name) && (kept.name != kWorkTreeSettings ||
                                        BELAY_MUTANT("settings-are-written-twice")))
        BELAY_OK(WriteKept(kept, kept.name));
    if (record_.index) BELAY_OK(WriteKept(*record_.index, "index"));
    if (record_.stash_log) BELAY_OK(WriteKept(*record_.stash_log, "logs/refs/stash"));
    return WriteStaged();
  }

 private:
  Status Put(const std::string& name, ByteSpan bytes, uint32_t mode) {
    BELAY_TRY(const RelPath path, RelPath::Parse(name));
    BELAY_TRY(Fd dir, DirFor(path));
    BELAY_TRY(Fd file, fs_.Open(dir, path.basename(), OpenMode::CreateNew(mode)));
    BELAY_OK(WriteFull(fs_, file, 0, bytes));
    return file.Close();
  }
  // The directory that `path` is in, made where it is missing.
  Result<Fd> DirFor(const RelPath& path) {
    BELAY_TRY(Fd at, fs_.Duplicate(git_));
    std::string_view rest = path.bytes();
    for (size_t slash = rest.find('/'); slash != std::string_view::npos;
         slash = rest.find('/')) {
      BELAY_TRY(const Name name, Name::Parse(rest.substr(0, slash)));
      Status made = fs_.MakeDir(at, name, dir_mode_);
      if (!made.ok() && made.error().code != Errc::kExists) return made.error();
      BELAY_TRY(Fd next, fs_.Open(at, name, OpenMode::Directory()));
      at = std::move(next);
      rest.remove_prefix(slash + 1);
    }
    return at;
  }

  Result<std::optional<Bytes>> Read(const AbsPath& dir, const std::string& name) {
    auto bytes = ReadGitFile(fs_, dir, name, kMaxSetting);
    if (bytes.ok()) return std::optional(std::move(*bytes));
    if (bytes.error().code == Errc::kNotFound) return std::optional<Bytes>();
    return std::move(bytes).error();
  }
  Status CopyIfThere(const AbsPath& dir, const std::string& name) {
    BELAY_TRY(auto bytes, Read(dir, name));
    return bytes ? Put(name, *bytes, file_mode_) : Ok();
  }

  // As they are: remotes, names, what the format needs. A linked work tree may belong
  // to a repository that is bare; the fork is not. Where settings lead to the work tree
  // (a submodule's do), git in the fork would work on the source's.
  Status WriteSettings() {
    const GitConfig all = GitConfig::Read(
        fs_, user_, {.git_dir = source_.git_dir, .common_dir = source_.common_dir});
    std::string own;
    if (record_.linked) own += "\tbare = false\n";
    if (all.Text("core.worktree") && !BELAY_MUTANT("fork-works-on-the-source"))
      own += "\tworktree = ..\n";
    if (!own.empty()) own = "[core]\n" + own;
    BELAY_TRY(auto shared, Read(source_.common_dir, "config"));
    BELAY_OK(PutSettings("config", shared ? AsText(*shared) : "", own));
    // Of the work tree alone, as they were recorded: they belong to the index and to
    // what sparse-checkout leaves out.
    const auto mine = std::ranges::find(record_.own, kWorkTreeSettings, &GitKept::name);
    if (mine == record_.own.end()) return Ok();
    BELAY_TRY(const Bytes bytes, store_.ReadContentBytes(mine->id, kMaxGitFile));
    return PutSettings(std::string(kWorkTreeSettings), AsText(bytes), own);
  }
  // What comes last counts.
  Status PutSettings(const std::string& name, std::string_view as_they_are,
                     const std::string& own) {
    std::string text(as_they_are);
    if (!own.empty() && !text.empty() && !text.ends_with('\n')) text += '\n';
    return Put(name, AsBytes(text + own), file_mode_);
  }

  Status CopyObjects() {
    BELAY_TRY(const AbsPath objects,
              AbsPath::Parse(source_.common_dir.bytes() + "/objects"));
    BELAY_TRY(Fd top, fs_.OpenDir(objects));
    BELAY_TRY(auto listed, fs_.List(top));
    for (const DirEntry& entry : listed) {
      const bool fan = entry.name.size() == 2;
      if (!fan && entry.name != "pack") continue;
      BELAY_TRY(const Name name, Name::Parse(entry.name));
      auto dir = fs_.Open(top, name, OpenMode::Directory());
      if (!dir.ok()) continue;
      BELAY_OK(CopyFiles(*dir, "objects/" + entry.name + "/"));
    }
    return CopyAlternates(objects);
  }
  // Of a pack its index last: git takes the pack for there when it sees that.
  Status CopyFiles(const Fd& from, const std::string& to) {
    BELAY_TRY(auto listed, fs_.List(from));
    std::ranges::sort(listed, {}, [](const DirEntry& entry) {
      return std::pair(entry.name.ends_with(".idx"), entry.name);
    });
    for (const DirEntry& entry : listed) {
      if (entry.name.starts_with("tmp_")) continue;
      BELAY_TRY(const Name name, Name::Parse(entry.name));
      BELAY_TRY(Fd file, fs_.Open(from, name, OpenMode::Read()));
      BELAY_TRY(FileStat stat, fs_.Stat(file));
      if (stat.type != FileType::kRegular) continue;
      BELAY_OK(CopyFile(file, to + entry.name, stat.mode & 0777));
    }
    return Ok();
  }
  Status CopyFile(const Fd& from, const std::string& to, uint32_t mode) {
    BELAY_TRY(const RelPath path, RelPath::Parse(to));
    BELAY_TRY(Fd dir, DirFor(path));
    auto file = fs_.Open(dir, path.basename(), OpenMode::CreateNew(mode | 0200));
    // Copied by an attempt before this one: objects never change.
    if (!file.ok() && file.error().code == Errc::kExists) return Ok();
    if (!file.ok()) return std::move(file).error();
    // Objects never change: what was shared is what a copy would be.
    shares_ = shares_ && fs_.ShareBlocks(from, *file).ok();
    if (!shares_) BELAY_OK(CopyBytes(from, *file));
    BELAY_OK(fs_.SetMode(*file, mode));
    return file->Close();
  }
  Status CopyBytes(const Fd& from, const Fd& to) {
    Bytes chunk(1 << 20);
    for (uint64_t at = 0;;) {
      BELAY_TRY(const size_t got, ReadFull(fs_, from, at, chunk));
      BELAY_OK(WriteFull(fs_, to, at, ByteSpan(chunk).first(got)));
      at += got;
      if (got < chunk.size()) return Ok();
    }
  }
  // Where the source itself borrows objects, the fork does, by the same directories.
  Status CopyAlternates(const AbsPath& objects) {
    BELAY_TRY(auto bytes, Read(source_.common_dir, "objects/info/alternates"));
    if (!bytes) return Ok();
    std::string out;
    for (const std::string& line : GitLines(AsText(*bytes))) {
      if (line.empty() || line.starts_with('#') || line.starts_with('"')) continue;
      BELAY_TRY(const AbsPath at, AbsPath::Resolve(objects, line));
      out += at.bytes() + "\n";
    }
    Status put = Put("objects/info/alternates", AsBytes(out), file_mode_);
    if (!put.ok() && put.error().code == Errc::kExists) return Ok();
    return put;
  }

  Status WriteRefs() {
    BELAY_TRY(const GitRefs refs, LoadGitRefs(store_, record_));
    std::string packed;
    for (const auto& [name, value] : refs) {
      if (!IsGitRefName(name)) continue;
      if (IsGitHex(value, record_.hash))
        packed += value + " " + name + "\n";
      else if (value.starts_with("ref: "))
        BELAY_OK(Put(name, AsBytes(value + "\n"), file_mode_));
    }
    return packed.empty() ? Ok() : Put("packed-refs", AsBytes(packed), file_mode_);
  }

  Status WriteKept(const GitKept& kept, const std::string& name) {
    BELAY_TRY(Bytes bytes, store_.ReadContentBytes(kept.id, kMaxGitFile));
    return Put(name, bytes, kept.mode != 0 ? kept.mode & 0777 : file_mode_);
  }
  // What only the index names.
  Status WriteStaged() {
    BELAY_TRY(const Tree objects, LoadGitObjects(store_, record_));
    GitMove move;
    move.hash = record_.hash;
    for (const TreeEntry& entry : objects.entries)
      move.objects.push_back(
          {.hex = entry.name, .content = entry.id, .size = entry.size});
    return WriteGitObjects(store_, git_, move, RecordId(store_.random().NewId()));
  }

  Store& store_;
  Fs& fs_;
  const GitRepository& source_;
  const GitRepoRecord& record_;
  const GitUserConfig& user_;
  const Fd& git_;
  uint32_t dir_mode_ = 0700, file_mode_ = 0600;
  bool shares_ = true;  // blocks with the source, until it was tried in vain
};

}  // namespace

Result<bool> MakeForkedRepository(Store& store, const AbsPath& source,
                                  const GitPlaces& places, const GitRepoRecord& record,
                                  const AbsPath& path, const Fd& work,
                                  std::vector<std::string>& warnings) {
  Fs& fs = store.fs();
  auto none = [&](std::string_view why) {
    warnings.push_back("there is no repository in the fork: " + std::string(why));
    return false;
  };
  if (!record.trouble.empty()) return none(record.trouble);
  auto found = OpenRepositoryAt(fs, source, places.user);
  if (!found.ok()) return none(found.error().what);
  if (!*found) return none("the directory has none any more");
  if ((*found)->work_tree != source) return none("its work tree is elsewhere");
  if ((*found)->hash != record.hash) return none("it is another one by now");
  const Name name = Name::Literal(".git");
  BELAY_TRY(Fd shared, fs.OpenDir((*found)->common_dir));
  BELAY_TRY(FileStat like, fs.Stat(shared));
  BELAY_OK(fs.MakeDir(work, name, like.mode & 0777));
  {
    BELAY_TRY(Fd git, fs.Open(work, name, OpenMode::Directory()));
    BELAY_OK(RepositoryMaker(store, **found, record, places.user, git).Run());
  }
  if (record.head.empty()) return true;
  // A commit that nothing held any more may be gone.
  GitRepository forked = **found;
  forked.work_tree = path;
  forked.git_dir = forked.common_dir = path.Join(name);
  auto git = GitRunner::Find(fs, forked, places.ask);
  if (!git.ok()) return true;  // nobody to ask, nobody to notice
  auto has = git->Try({"cat-file", "-e", record.head + "^{tree}"});
  if (has.ok() && has->ok()) return true;
  BELAY_OK(RemoveAll(fs, work, name));
  return none("commit " + record.head.substr(0, 7) + " is not in it any more");
}

}  // namespace belay
