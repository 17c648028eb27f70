#include <cerrno>

#include "base/escape.h"
#include "git/files_internal.h"

namespace belay::git_internal {

namespace {

Error Missing(Error error) {
  // A parent that is a file, or a name no file system would take: it is not there.
  if (error.sys == ENOTDIR || error.sys == ENAMETOOLONG) error.code = Errc::kNotFound;
  return error;
}

Result<Fd> OpenNoFollow(Fs& fs, const AbsPath& path) {
  BELAY_TRY(RelPath below, RelPath::Parse(std::string_view(path.bytes()).substr(1)));
  BELAY_TRY(Fd dir, fs.OpenDir(path.parent()));
  return fs.Open(dir, below.basename(), OpenMode::Read());
}

}  // namespace

Result<OpenFile> OpenRegular(Fs& fs, const AbsPath& path) {
  Result<Fd> file = OpenNoFollow(fs, path);
  if (!file.ok() && file.error().sys == ELOOP) {
    Result<AbsPath> real = fs.RealPath(path);
    if (!real.ok()) return Missing(std::move(real).error());
    file = OpenNoFollow(fs, *real);
  }
  if (!file.ok()) return Missing(std::move(file).error());
  BELAY_TRY(FileStat stat, fs.Stat(*file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kInvalid,
                 "read " + EscapeForDisplay(path.bytes()) + ": not a regular file");
  return OpenFile{std::move(file).value(), stat};
}

Result<std::string> ReadText(Fs& fs, const AbsPath& path, size_t limit) {
  BELAY_TRY(OpenFile open, OpenRegular(fs, path));
  // Files under /proc say that they are empty; the size is a hint.
  std::string text(std::min<size_t>(open.stat.size, limit) + 1, '\0');
  for (size_t done = 0;;) {
    BELAY_TRY(size_t got,
              ReadFull(fs, open.file, done,
                       std::as_writable_bytes(std::span(text).subspan(done))));
    done += got;
    if (done > limit)
      return Error(Errc::kInvalid, "read " + EscapeForDisplay(path.bytes()) +
                                       ": larger than " + std::to_string(limit) +
                                       " bytes");
    if (done < text.size()) {
      text.resize(done);
      return text;
    }
    text.resize(std::min(text.size() * 2, limit + 1));
  }
}

Result<AbsPath> ResolveFrom(Fs& fs, const AbsPath& base, std::string_view path) {
  BELAY_TRY(AbsPath clean, AbsPath::Resolve(base, path));
  // "a/../b" by text is "b", by the file system whatever "a" leads to. Only paths with
  // ".." need its answer; for all others links are followed when they are opened.
  if (path.find("..") == std::string_view::npos) return clean;
  std::string_view rest = path;
  AbsPath at = rest.starts_with('/') ? AbsPath::Literal("/") : base;
  while (!rest.empty()) {
    size_t slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    rest =
        slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (part == "..") {
      Result<AbsPath> real = fs.RealPath(at);
      if (!real.ok()) return Missing(std::move(real).error());
      at = real->parent();
    } else if (!part.empty() && part != ".") {
      BELAY_TRY(Name name, Name::Parse(part));
      at = at.is_root() ? AbsPath::Literal("/" + name.bytes()) : at.Join(name);
    }
  }
  return at;
}

}  // namespace belay::git_internal
