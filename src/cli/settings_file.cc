#include "cli/settings_file.h"

#include "base/clock.h"
#include "base/escape.h"
#include "cli/text.h"

namespace belay {

namespace {

Name LastName(const AbsPath& path) {
  return RelPath::Literal(std::string_view(path.bytes()).substr(1)).basename();
}

// Where a file would be made that is opened by this name: the end of a chain of
// symlinks, though nothing is there (yet).
Result<AbsPath> EndOfLinks(Fs& fs, AbsPath path) {
  constexpr int kMost = 40;  // as the kernel
  for (int i = 0; i < kMost; ++i) {
    if (auto real = fs.RealPath(path); real.ok()) return real;
    auto parent = fs.RealPath(path.parent());
    auto dir = parent.ok() ? fs.OpenDir(*parent) : parent.error();
    auto target = dir.ok() ? fs.ReadLink(*dir, LastName(path)) : dir.error();
    if (!target.ok()) return path;  // no link: this is the place
    BELAY_TRY(path, AbsPath::Resolve(*parent, *target));
  }
  return Error(Errc::kRefused,
               StrCat(EscapeForDisplay(path.bytes()), ": too many symlinks"));
}

Result<SettingsFile> FindSettingsFile(CommandContext& ctx, const AbsPath& root,
                                      bool project) {
  if (project) {
    BELAY_TRY(std::string text, ReadProjectSettings(ctx.fs, root));
    AbsPath file = root.Join(ProjectSettingsName());
    return SettingsFile{root,
                        ProjectSettingsName(),
                        EscapeForDisplay(file.bytes()),
                        std::move(text),
                        0755,
                        0644};
  }
  BELAY_TRY(AbsPath file, ctx.env.UserSettingsFile());
  if (file.is_root()) return Error(Errc::kInvalid, "BELAY_CONFIG: / is not a file");
  BELAY_TRY(std::string text, ReadUserSettings(ctx.fs, file));
  std::string shown = EscapeForDisplay(file.bytes());
  // Through a symlink, so that the link stays and the file it names changes.
  BELAY_TRY(file, EndOfLinks(ctx.fs, std::move(file)));
  return SettingsFile{file.parent(),   LastName(file), shown,
                      std::move(text), 0700,           0600};
}

// Held while a file is read, changed and replaced. A lock file of its own, because the
// settings file itself is replaced, and gone when it is released, because it lies among
// the user's files.
class EditLock {
 public:
  static Result<EditLock> Take(Fs& fs, const Fd& dir, const Name& file,
                               std::string_view shown) {
    BELAY_TRY(Name name, Name::Parse(file.bytes() + ".lock"));
    RealClock clock;
    const int64_t deadline = clock.SteadyNanos() + 10'000'000'000;
    for (;; clock.SleepNanos(1'000'000)) {
      BELAY_TRY(Fd lock, fs.Open(dir, name, OpenMode::OpenOrCreate()));
      auto got = fs.TryLock(lock, 0, LockMode::kExclusive);
      if (!got.ok()) return EditLock(fs, dir, std::move(name), std::move(lock));
      if (*got) {
        // Whoever had it before may have removed it just now.
        BELAY_TRY(FileStat held, fs.Stat(lock));
        auto named = fs.StatAt(dir, name);
        if (named.ok() && named->dev == held.dev && named->ino == held.ino)
          return EditLock(fs, dir, std::move(name), std::move(lock));
        continue;
      }
      if (clock.SteadyNanos() >= deadline)
        return Error(Errc::kBusy,
                     StrCat(shown, " is being changed by another belay process"))
            .WithHint("try again in a moment");
    }
  }
  ~EditLock() {
    if (!lock_.is_open()) return;
    // While it is still held; a file with something in it is not ours.
    auto stat = fs_.Stat(lock_);
    if (stat.ok() && stat->size == 0) (void)fs_.Unlink(dir_, name_);
  }
  EditLock(EditLock&&) = default;
  EditLock& operator=(EditLock&&) = delete;

 private:
  EditLock(Fs& fs, const Fd& dir, Name name, Fd lock)
      : fs_(fs), dir_(dir), name_(std::move(name)), lock_(std::move(lock)) {}
  Fs& fs_;
  const Fd& dir_;
  Name name_;
  Fd lock_;
};

Status Write(CommandContext& ctx, const Fd& dir, const SettingsFile& target,
             const std::string& text) {
  uint32_t mode = target.file_mode;
  if (auto stat = ctx.fs.StatAt(dir, target.name); stat.ok()) {
    if (stat->type != FileType::kRegular)
      return Error(Errc::kRefused, StrCat(target.shown, ": not a regular file"));
    mode = stat->mode & 0777;
  } else if (stat.error().code != Errc::kNotFound) {
    return std::move(stat).error();
  }
  return ReplaceFile(ctx.fs, dir, target.name, AsBytes(text), mode);
}

}  // namespace

Result<SettingsFile> EditSettingsFile(CommandContext& ctx, const AbsPath& root,
                                      bool project, const SettingsEdit& edit) {
  BELAY_TRY(SettingsFile file, FindSettingsFile(ctx, root, project));
  BELAY_TRY(std::string text, edit(file));
  if (text == file.text) return file;
  BELAY_TRY(Fd dir, MakeDirs(ctx.fs, file.dir, file.dir_mode));
  BELAY_TRY(EditLock lock, EditLock::Take(ctx.fs, dir, file.name, file.shown));
  // Now nobody else changes it: what it says by now counts.
  const AbsPath place = file.dir;
  BELAY_TRY(file, FindSettingsFile(ctx, root, project));
  if (file.dir != place)
    return Error(Errc::kConflict, StrCat(file.shown, " leads elsewhere by now"));
  BELAY_TRY(text, edit(file));
  if (text == file.text) return file;
  BELAY_OK(Write(ctx, dir, file, text));
  file.text = std::move(text);
  return file;
}

}  // namespace belay
