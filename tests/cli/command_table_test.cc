#include "cli/command_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cli/args.h"
#include "cli/help.h"
#include "cli/text.h"

namespace belay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<const CommandSpec*> AllCommands() {
  std::vector<const CommandSpec*> out;
  for (const CommandGroup& group : CommandGroups())
    for (const CommandSpec& command : group.commands) out.push_back(&command);
  return out;
}

// The words of a usage line that are flags: "[--git", "--conflict=mark|..." -> names.
std::set<std::string> FlagsIn(std::string_view usage) {
  std::set<std::string> out;
  std::string word;
  for (size_t i = 0; i <= usage.size(); ++i) {
    char c = i < usage.size() ? usage[i] : ' ';
    bool part = (c >= 'a' && c <= 'z') || c == '-';
    if (part) {
      word += c;
      continue;
    }
    if (word.size() > 1 && word[0] == '-' && word != "--") out.insert(word);
    word.clear();
  }
  return out;
}

TEST(CommandTable, EveryCommandIsDocumentedAndNamedOnce) {
  std::set<std::string_view> names;
  for (const CommandSpec* command : AllCommands()) {
    EXPECT_TRUE(names.insert(command->name).second) << command->name;
    EXPECT_FALSE(command->summary.empty()) << command->name;
    EXPECT_FALSE(command->about.empty()) << command->name;
    EXPECT_FALSE(command->usage.empty()) << command->name;
    EXPECT_FALSE(command->examples.empty()) << command->name;
    EXPECT_EQ(FindCommand(command->name), command);
    for (std::string_view usage : command->usage)
      EXPECT_TRUE(
          (std::string(usage) + " ").starts_with(std::string(command->name) + " "))
          << usage;
    for (const Example& example : command->examples)
      EXPECT_THAT(std::string(example.command),
                  HasSubstr(StrCat("belay ", command->name)));
  }
}

TEST(CommandTable, UsageLinesAndFlagsAgree) {
  for (const CommandSpec* command : AllCommands()) {
    std::set<std::string> in_usage;
    for (std::string_view usage : command->usage) in_usage.merge(FlagsIn(usage));
    for (const FlagSpec& flag : command->flags) {
      std::string letter = {'-', flag.letter};
      EXPECT_EQ(in_usage.erase(std::string(flag.name)) + in_usage.erase(letter), 1u)
          << command->name << " " << flag.name;
      EXPECT_FALSE(flag.help.empty()) << command->name << " " << flag.name;
    }
    EXPECT_THAT(in_usage, IsEmpty()) << command->name;
  }
}

TEST(CommandTable, NoFlagHidesAGlobalOne) {
  for (const CommandSpec* command : AllCommands()) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (auto flags : {command->flags, GlobalFlags()})
      for (const FlagSpec& flag : flags) {
        EXPECT_TRUE(names.insert(flag.name).second) << command->name << flag.name;
        if (flag.letter != 0) {
          EXPECT_TRUE(letters.insert(flag.letter).second) << command->name << flag.name;
        }
      }
  }
}

TEST(CommandTable, HelpFitsEightyColumns) {
  auto check = [](std::string_view name, const std::string& help) {
    size_t start = 0;
    for (size_t end; (end = help.find('\n', start)) != std::string::npos;
         start = end + 1)
      EXPECT_LE(end - start, 80u) << name << ": " << help.substr(start, end - start);
  };
  check("overview", OverviewHelp());
  for (const CommandSpec* command : AllCommands())
    check(command->name, CommandHelp(*command));
}

// A command with some of everything.
constexpr FlagSpec kFlags[] = {
    {.name = "--name", .letter = 'm', .value = "NAME"},
    {.name = "--meta", .value = "K=V", .repeatable = true},
    {.name = "--kind", .value = "auto|manual"},
    {.name = "--dry-run"},
    {.name = "--later", .available = false},
};
constexpr PositionalSpec kOptional[] = {{.name = "A"}, {.name = "B", .optional = true}};
constexpr PositionalSpec kMany[] = {{.name = "A", .many = true}};
constexpr CommandSpec kPaths = {.name = "x",
                                .summary = "",
                                .usage = {},
                                .about = "",
                                .flags = kFlags,
                                .args = kOptional,
                                .rest = "PATH"};
constexpr CommandSpec kPlain = {.name = "x",
                                .summary = "",
                                .usage = {},
                                .about = "",
                                .flags = kFlags,
                                .args = kMany};
constexpr CommandSpec kRunner = {
    .name = "x", .summary = "", .usage = {}, .about = "", .rest = "COMMAND"};

Result<Args> Parse(const CommandSpec& command, std::vector<std::string_view> words) {
  return ParseArgs(command, words);
}

TEST(Args, FlagsMayStandAnywhereAndInEveryForm) {
  struct Row {
    std::vector<std::string_view> words;
    std::string_view name;
  };
  for (const Row& row :
       {Row{{"a", "--name", "v"}, "v"}, Row{{"--name=v", "a"}, "v"},
        Row{{"--name=v=w", "a"}, "v=w"}, Row{{"-m", "v", "a"}, "v"},
        Row{{"-mv", "a"}, "v"}, Row{{"-qm", "v", "a"}, "v"}, Row{{"-qvmv", "a"}, "v"},
        Row{{"-m", "-", "a"}, "-"}, Row{{"-m", "-wip", "a"}, "-wip"},
        Row{{"--name", "old", "--name", "new", "a"}, "new"}}) {
    Result<Args> args = Parse(kPaths, row.words);
    ASSERT_TRUE(args.ok()) << testing::PrintToString(row.words) << args.error().what;
    EXPECT_EQ(args->value("--name"), row.name) << testing::PrintToString(row.words);
    EXPECT_THAT(args->positional(), ElementsAre("a"));
  }
}

TEST(Args, RepeatedFlagsKeepTheirOrder) {
  Args args = Parse(kPaths, {"--meta", "a=1", "x", "--meta=b=2", "--dry-run"}).value();
  EXPECT_THAT(args.values("--meta"), ElementsAre("a=1", "b=2"));
  EXPECT_TRUE(args.has("--dry-run"));
  EXPECT_FALSE(args.has("--kind"));
}

TEST(Args, TwoDashesEndTheFlags) {
  Args paths = Parse(kPaths, {"a", "--", "--dry-run", "--", "-m"}).value();
  EXPECT_THAT(paths.positional(), ElementsAre("a"));
  EXPECT_THAT(paths.rest(), ElementsAre("--dry-run", "--", "-m"));
  EXPECT_FALSE(paths.has("--dry-run"));

  Args plain = Parse(kPlain, {"a", "--", "--dry-run", ""}).value();
  EXPECT_THAT(plain.positional(), ElementsAre("a", "--dry-run", ""));
  EXPECT_THAT(plain.rest(), IsEmpty());

  EXPECT_THAT(Parse(kRunner, {"--", "make", "-j"})->rest(), ElementsAre("make", "-j"));
}

TEST(Args, WrongUsageIsSaid) {
  struct Row {
    const CommandSpec* command;
    std::vector<std::string_view> words;
    std::string_view what;
    std::string_view hint = {};
  };
  for (const Row& row :
       {Row{&kPaths, {}, "needs A"},
        Row{&kPaths,
            {"a", "b", "c"},
            "too many arguments: 'c'",
            "put PATH behind `--`"},
        Row{&kPaths, {"a", "--nam", "v"}, "unknown flag --nam", "did you mean --name?"},
        Row{&kPaths, {"a", "--name"}, "--name needs a value"},
        Row{&kPaths, {"a", "-m"}, "-m needs a value"},
        Row{&kPaths, {"a", "--name", "--dry-run"}, "--name needs a value"},
        Row{&kPaths, {"a", "--name", "--"}, "--name needs a value"},
        Row{&kPaths, {"a", "-m", "-q"}, "-m needs a value"},
        Row{&kPaths, {"a", "--name="}, "--name needs a value that is not empty"},
        Row{&kPaths, {"a", "--dry-run=1"}, "--dry-run takes no value"},
        Row{&kPaths, {"a", "--kind", "safety"}, "--kind must be one of auto|manual"},
        Row{&kPaths, {"a", "-x"}, "unknown flag -x"},
        Row{&kPaths, {"a", "-1"}, "unknown flag -1"},
        Row{&kRunner,
            {"make"},
            "too many arguments: 'make'",
            "put COMMAND behind `--`"},
        Row{&kRunner, {}, "needs a COMMAND behind `--`"},
        Row{&kRunner, {"--"}, "needs a COMMAND behind `--`"}}) {
    Result<Args> args = ParseArgs(*row.command, row.words);
    ASSERT_FALSE(args.ok()) << testing::PrintToString(row.words);
    EXPECT_EQ(args.error().code, Errc::kInvalid);
    EXPECT_THAT(args.error().what, HasSubstr(std::string(row.what)));
    EXPECT_THAT(args.error().hint, HasSubstr(std::string(row.hint)));
  }
}

TEST(Args, AFlagOfALaterVersionIsNotWrongUsage) {
  Result<Args> args = Parse(kPaths, {"a", "--later"});
  ASSERT_FALSE(args.ok());
  EXPECT_EQ(args.error().code, Errc::kUnsupported);
  EXPECT_EQ(args.error().what, "belay x --later");
}

TEST(Text, ScrubLeavesNoControlCharacterAndKeepsBackslashes) {
  EXPECT_EQ(Scrub("a\\x1b\x1b[0m\nb\\"), "a\\x1b\\x1b[0m\\nb\\");
  EXPECT_EQ(Scrub("h\xc3\xa9\xff"), "h\xc3\xa9\\xff");
}

TEST(Text, WrapBreaksAtBlanksOutsideBrackets) {
  EXPECT_EQ(Wrap("aa bb cc", 0, 2, 5), "aa bb\n  cc");
  EXPECT_EQ(Wrap("aa [b b] c", 0, 0, 6), "aa\n[b b]\nc");
  EXPECT_EQ(Wrap("averylongword b", 0, 0, 4), "averylongword\nb");
  EXPECT_EQ(Wrap("", 0, 0, 4), "");
}

}  // namespace
}  // namespace belay
