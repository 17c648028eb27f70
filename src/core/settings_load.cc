#include <array>

#include "base/escape.h"
#include "core/settings.h"

namespace belay {

namespace {

Result<std::string> ReadSettingsFile(Fs& fs, const Fd& dir, const Name& name,
                                     std::string_view shown, bool device_allowed) {
  auto file = fs.Open(dir, name, OpenMode::Read());
  if (!file.ok()) {
    if (file.error().code == Errc::kNotFound) return std::string();
    return Context(std::move(file).error(), shown);
  }
  BELAY_TRY(FileStat stat, fs.Stat(*file));
  // /dev/null is a usual way to say "no settings"; anything else could block or lie.
  bool readable = stat.type == FileType::kRegular ||
                  (device_allowed && stat.type == FileType::kDevice);
  if (!readable)
    return Error(Errc::kInvalid, std::string(shown) + ": not a regular file");
  // Piece by piece: hooks read this on their hot path, and a buffer of the limit's size
  // would cost more than the reading.
  std::string text;
  std::array<std::byte, 8192> piece;
  for (;;) {
    auto count = ReadFull(fs, *file, text.size(), piece);
    if (!count.ok()) return Context(std::move(count).error(), shown);
    text += AsText(ByteSpan(piece).first(*count));
    if (text.size() > kMaxSettingsFile)
      return Error(Errc::kInvalid, std::string(shown) + ": larger than 1 MiB");
    if (*count < piece.size()) return text;
  }
}

}  // namespace

Name ProjectSettingsName() { return Name::Literal(".belay.toml"); }

Result<std::string> ReadUserSettings(Fs& fs, const AbsPath& file) {
  std::string shown = EscapeForDisplay(file.bytes());
  // Dotfile managers keep the real file elsewhere and link to it.
  auto real = fs.RealPath(file);
  if (!real.ok()) {
    if (real.error().code == Errc::kNotFound) return std::string();
    return std::move(real).error();
  }
  if (real->is_root()) return Error(Errc::kInvalid, shown + ": not a regular file");
  BELAY_TRY(Fd dir, fs.OpenDir(real->parent()));
  Name name = RelPath::Literal(std::string_view(real->bytes()).substr(1)).basename();
  return ReadSettingsFile(fs, dir, name, shown, true);
}

Result<std::string> ReadProjectSettings(Fs& fs, const AbsPath& root) {
  auto dir = fs.OpenDir(root);
  if (!dir.ok()) {
    if (dir.error().code == Errc::kNotFound) return std::string();
    return std::move(dir).error();
  }
  std::string shown = EscapeForDisplay(root.Join(ProjectSettingsName()).bytes());
  // Asked first: what an open of a symlink says differs between kernels.
  auto stat = fs.StatAt(*dir, ProjectSettingsName());
  if (!stat.ok()) {
    if (stat.error().code == Errc::kNotFound) return std::string();
    return Context(std::move(stat).error(), shown);
  }
  if (stat->type != FileType::kRegular)
    return Error(Errc::kInvalid, shown + ": not a regular file");
  return ReadSettingsFile(fs, *dir, ProjectSettingsName(), shown, false);
}

Result<Settings> LoadSettings(Fs& fs, const AbsPath& user_file,
                              const std::optional<AbsPath>& root) {
  BELAY_TRY(std::string user_text, ReadUserSettings(fs, user_file));
  std::string project_text;
  std::string project_name;
  if (root) {
    BELAY_TRY(project_text, ReadProjectSettings(fs, *root));
    project_name = EscapeForDisplay(root->Join(ProjectSettingsName()).bytes());
  }
  return ParseSettings(user_text, EscapeForDisplay(user_file.bytes()), project_text,
                       project_name);
}

}  // namespace belay
