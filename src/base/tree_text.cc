#include "base/tree_text.h"

#include <algorithm>
#include <cstdio>

#include "base/escape.h"
#include "base/sha256.h"

namespace belay {

namespace {

Result<std::string> ContentText(Fs& fs, const Fd& dir, const Name& name,
                                uint64_t size) {
  BELAY_TRY(Fd file, fs.Open(dir, name, OpenMode::Read()));
  Bytes bytes(static_cast<size_t>(size));
  BELAY_TRY(size_t got, ReadFull(fs, file, 0, bytes));
  bytes.resize(got);
  constexpr size_t kShown = 64;
  std::string text = std::to_string(bytes.size()) + " ";
  if (bytes.size() > kShown) return text + Sha256::Of(bytes).hex().substr(0, 16);
  return text + "\"" + EscapeForDisplay(AsText(bytes)) + "\"";
}

char Letter(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return 'f';
    case FileType::kDirectory:
      return 'd';
    case FileType::kSymlink:
      return 'l';
    case FileType::kFifo:
      return 'p';
    case FileType::kSocket:
      return 's';
    case FileType::kDevice:
      return 'c';
  }
  return '?';
}

Status AppendDir(Fs& fs, const Fd& dir, const std::string& prefix, std::string& out) {
  BELAY_TRY(auto entries, fs.List(dir));
  std::sort(entries.begin(), entries.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  for (const DirEntry& entry : entries) {
    BELAY_TRY(Name name, Name::Parse(entry.name));
    BELAY_TRY(FileStat stat, fs.StatAt(dir, name));
    char mode[16];
    std::snprintf(mode, sizeof mode, "%c %04o ", Letter(stat.type), stat.mode);
    std::string path = prefix + entry.name;
    out += mode + EscapeForDisplay(path);
    if (stat.type == FileType::kRegular) {
      BELAY_TRY(std::string content, ContentText(fs, dir, name, stat.size));
      out += " " + content;
    } else if (stat.type == FileType::kSymlink) {
      BELAY_TRY(std::string target, fs.ReadLink(dir, name));
      out += " -> " + EscapeForDisplay(target);
    }
    out += '\n';
    if (stat.type == FileType::kDirectory) {
      BELAY_TRY(Fd below, fs.Open(dir, name, OpenMode::Directory()));
      BELAY_OK(AppendDir(fs, below, path + "/", out));
    }
  }
  return Ok();
}

}  // namespace

Result<std::string> TreeText(Fs& fs, const Fd& root) {
  std::string out;
  BELAY_OK(AppendDir(fs, root, "", out));
  return out;
}

}  // namespace belay
