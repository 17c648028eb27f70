#include "cli/settings_file.h"

#include "base/escape.h"
#include "cli/text.h"

namespace belay {

namespace {

Name LastName(const AbsPath& path) {
  return RelPath::Literal(std::string_view(path.bytes()).substr(1)).basename();
}

}  // namespace

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
  auto real = ctx.fs.RealPath(file);
  if (real.ok()) file = std::move(real).value();
  return SettingsFile{file.parent(),   LastName(file), shown,
                      std::move(text), 0700,           0600};
}

Status WriteSettingsFile(CommandContext& ctx, const SettingsFile& target,
                         const std::string& text) {
  BELAY_TRY(Fd dir, MakeDirs(ctx.fs, target.dir, target.dir_mode));
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

}  // namespace belay
