#include "git/ask_git.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/escape.h"
#include "base/mutant.h"
#include "git/run_git.h"

namespace belay {

namespace {

constexpr uint32_t kTreeMode = 0040000;

// Asks git about one repository.
class Git {
 public:
  Git(GitRunner runner, const GitRepository& repository, const AskGitOptions& options)
      : runner_(std::move(runner)), repository_(repository), options_(options) {}

  Result<std::string> Run(const std::vector<std::string>& command, std::string input) {
    BELAY_TRY(ProcessResult result, runner_.Try(command, std::move(input)));
    if (result.end == ProcessResult::End::kTimedOut)
      return Error(Errc::kBusy, "git did not answer within " +
                                    std::to_string(options_.timeout_ms) + " ms");
    if (result.end == ProcessResult::End::kTooMuchOutput) return TooMany();
    if (!result.ok()) {
      std::string words = result.errors.substr(0, result.errors.find('\n'));
      return Refused(words.empty() ? "it gave no reason" : EscapeForDisplay(words));
    }
    return std::move(result.output);
  }

  Error Refused(const std::string& why) const {
    return Error(Errc::kInvalid, "git could not read the index of " +
                                     EscapeForDisplay(repository_.work_tree.bytes()) +
                                     ": " + why);
  }
  Error TooMany() const {
    return Error(Errc::kUnsupported,
                 "the index of " + EscapeForDisplay(repository_.work_tree.bytes()) +
                     " stands for too many files");
  }
  size_t max_names() const { return options_.max_names; }
  size_t hash_size() const { return GitHashSize(repository_.hash); }

 private:
  GitRunner runner_;
  const GitRepository& repository_;
  const AskGitOptions& options_;
};

struct Item {
  std::string name;
  uint32_t mode = 0;
  unsigned stage = 0;
};

Error Garbled() {
  return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
}

// Modes of trees have no leading zero, those of ls-files do.
std::optional<uint32_t> ParseMode(std::string_view text) {
  uint32_t mode = 0;
  auto [end, problem] =
      std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return mode;
}

// Trees that are still to be spelled out: object in hex -> the directories ("a/b/")
// that have it. An ordered map, so that what git is asked depends on the repository
// alone.
using Trees = std::map<std::string, std::vector<std::string>>;

// One tree object: "<mode> <name>\0<object>" and so on.
Status SpellOut(const Git& git, std::string_view content,
                const std::vector<std::string>& directories, std::vector<Item>& items,
                Trees& deeper) {
  while (!content.empty()) {
    size_t space = content.find(' ');
    size_t nul = content.find('\0');
    if (space == std::string_view::npos || nul == std::string_view::npos ||
        space > nul || content.size() - nul - 1 < git.hash_size())
      return Garbled();
    std::optional<uint32_t> mode = ParseMode(content.substr(0, space));
    std::string_view name = content.substr(space + 1, nul - space - 1);
    if (!mode || name.empty() || name.find('/') != std::string_view::npos)
      return Garbled();
    std::string object = ToHex(AsBytes(content.substr(nul + 1, git.hash_size())));
    content.remove_prefix(nul + 1 + git.hash_size());
    for (const std::string& directory : directories) {
      if (*mode == kTreeMode)
        deeper[object].push_back(directory + std::string(name) + "/");
      else
        items.push_back({directory + std::string(name), *mode, 0});
    }
    if (items.size() > git.max_names()) return git.TooMany();
  }
  return Ok();
}

// One run of `cat-file --batch` for all trees of one depth.
Status SpellOutLevel(Git& git, const Trees& trees, std::vector<Item>& items,
                     Trees& deeper) {
  std::string input;
  size_t directories = 0;
  for (const auto& [object, names] : trees) {
    input += object + "\n";
    directories += names.size();
  }
  if (directories > git.max_names()) return git.TooMany();
  BELAY_TRY(std::string output, git.Run({"cat-file", "--batch", "--buffer"}, input));
  std::string_view rest = output;
  for (const auto& [object, names] : trees) {
    size_t line_end = rest.find('\n');
    if (line_end == std::string_view::npos) return Garbled();
    std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(line_end + 1);
    if (line == object + " missing")
      return git.Refused("the contents of " + EscapeForDisplay(names.front()) +
                         " are not in this clone");
    std::string head = object + " tree ";
    if (!line.starts_with(head)) return Garbled();
    line.remove_prefix(head.size());
    size_t size = 0;
    auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), size);
    if (problem != std::errc() || end != line.data() + line.size() ||
        size >= rest.size() || rest[size] != '\n')
      return Garbled();
    BELAY_OK(SpellOut(git, rest.substr(0, size), names, items, deeper));
    rest.remove_prefix(size + 1);
  }
  return rest.empty() ? Ok() : Status(Garbled());
}

Status SpellOutAll(Git& git, Trees trees, std::vector<Item>& items) {
  while (!trees.empty()) {
    Trees deeper;
    BELAY_OK(SpellOutLevel(git, trees, items, deeper));
    trees = std::move(deeper);
  }
  return Ok();
}

// `ls-files --stage -z`: "100644 <object> 0\t<name>" and a NUL, for each entry.
Status ListEntries(Git& git, std::vector<Item>& items, Trees& trees) {
  BELAY_TRY(std::string output, git.Run({"ls-files", "--sparse", "--stage", "-z"}, ""));
  std::string_view rest = output;
  while (!rest.empty()) {
    size_t end = rest.find('\0');
    if (end == std::string_view::npos) return Garbled();
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    size_t tab = line.find('\t');
    size_t space = line.find(' ');
    if (tab == std::string_view::npos || space == std::string_view::npos ||
        tab != space + 1 + git.hash_size() * 2 + 2)
      return Garbled();
    std::optional<uint32_t> mode = ParseMode(line.substr(0, space));
    char stage = line[tab - 1];
    if (!mode || stage < '0' || stage > '3') return Garbled();
    std::string name(line.substr(tab + 1));
    if (*mode == kTreeMode)
      trees[std::string(line.substr(space + 1, git.hash_size() * 2))].push_back(name);
    else
      items.push_back({std::move(name), *mode, static_cast<unsigned>(stage - '0')});
    if (items.size() > git.max_names()) return git.TooMany();
  }
  return Ok();
}

}  // namespace

Result<GitIndex> ReadTracked(Fs& fs, const GitRepository& repository,
                             const AskGitOptions& options) {
  BELAY_TRY(GitIndex index,
            ReadIndex(fs, repository.index(), repository.index_options()));
  if (index.needs_git.empty()) return index;
  // Reading a split index git would set the time of its shared part.
  if (index.unknown_extension && index.split)
    return Error(Errc::kUnsupported,
                 "the index of " + EscapeForDisplay(repository.work_tree.bytes()) +
                     " is split and of a newer git");
  auto runner = GitRunner::Find(fs, repository, options);
  if (!runner.ok())
    return Error(Errc::kNotFound,
                 "git is needed to read this repository's index, and is not installed")
        .WithHint(
            "install git, or make the index a plain one: git sparse-checkout "
            "reapply --no-sparse-index");
  Git git(std::move(*runner), repository, options);
  std::vector<Item> items;
  Trees trees;
  if (index.unknown_extension) {
    BELAY_OK(ListEntries(git, items, trees));
  } else {
    for (const auto& [name, tree] : index.sparse) trees[tree].push_back(name);
  }
  BELAY_OK(SpellOutAll(git, std::move(trees), items));
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    int order = a.name.compare(b.name);
    return order != 0 ? order < 0 : a.stage < b.stage;
  });

  // What the index names itself, and what its directories stand for, in one order.
  TrackedPathsBuilder builder;
  size_t next = 0;
  if (!index.unknown_extension) {
    for (size_t i = 0; i < index.paths.size(); ++i) {
      uint8_t kinds = index.paths.kinds(i);
      if ((kinds & TrackedPaths::kSparseDirectory) != 0) continue;
      const std::string name = index.paths.name(i);
      for (; next < items.size() && items[next].name < name; ++next)
        BELAY_OK(builder.Add(items[next].name, items[next].mode, items[next].stage));
      BELAY_OK(builder.AddKinds(name, kinds));
    }
  }
  for (; next < items.size(); ++next)
    BELAY_OK(builder.Add(items[next].name, items[next].mode, items[next].stage));
  index.paths = builder.Finish();
  if (repository.ignore_case) index.paths.FoldCase();
  index.needs_git.clear();
  index.sparse.clear();
  index.unknown_extension = false;
  return index;
}

}  // namespace belay
