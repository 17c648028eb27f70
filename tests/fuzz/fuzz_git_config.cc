// Git settings of any bytes: read up to the first mistake; includes of any kind end.

#include "base/mem_fs.h"
#include "git/repository.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  GitConfig alone = GitConfig::Parse(text, "x");
  for (const GitConfig::Entry& entry : alone.entries()) {
    BELAY_CHECK(!entry.key.empty() && entry.key.find('\0') == std::string::npos);
    BELAY_CHECK(!entry.value || entry.value->find('\0') == std::string::npos);
    BELAY_CHECK(alone.Last(entry.key) != nullptr);
    (void)ParseGitBool(entry.value);
  }
  // The same bytes as the user's and a repository's settings, ".git" and HEAD.
  MemFs fs;
  auto git_dir = MakeDirs(fs, AbsPath::Literal("/r/.git"), 0755);
  auto home = MakeDirs(fs, AbsPath::Literal("/h"), 0755);
  auto other = MakeDirs(fs, AbsPath::Literal("/r/x"), 0755);
  BELAY_CHECK(MakeDirs(fs, AbsPath::Literal("/r/.git/objects"), 0755).ok());
  BELAY_CHECK(MakeDirs(fs, AbsPath::Literal("/r/.git/refs"), 0755).ok());
  auto put = [&](const Fd& dir, const char* name, std::string_view content) {
    auto file = fs.Open(dir, Name::Literal(name), OpenMode::CreateNew());
    BELAY_CHECK(file.ok() && WriteFull(fs, *file, 0, AsBytes(content)).ok());
  };
  put(*git_dir, "HEAD", "ref: refs/heads/main\n");
  put(*git_dir, "config", text);
  put(*git_dir, "config.worktree", text);
  put(*home, ".gitconfig", text);
  put(*other, ".git", text);
  GitUserConfig user;
  user.home = "/h";
  user.no_system = true;
  auto found = FindWorkTree(fs, AbsPath::Literal("/r/x"), user);
  if (!found.ok()) BELAY_CHECK(found.error().code == Errc::kUnsupported);
  return 0;
}
