#include "core/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/settings_table.h"

namespace belay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Result<Settings> Parse(std::string_view user, std::string_view project = "") {
  return ParseSettings(user, "config.toml", project, ".belay.toml");
}

std::string Shown(const Settings& settings, std::string_view key) {
  const SettingInfo* info = FindSetting(key);
  return info == nullptr ? "?" : SettingText(settings, *info);
}

std::string_view SourceOf(const Settings& settings, std::string_view key) {
  auto index = static_cast<size_t>(FindSetting(key) - SettingTable().data());
  return SettingSourceName(settings.sources[index]);
}

TEST(Settings, MissingFilesMeanTheDocumentedDefaults) {
  Settings settings = Parse("").value();
  struct Row {
    std::string_view key, text;
  };
  for (const Row& row : {Row{"enabled", "true"},
                         {"auto", "false"},
                         {"granularity", "tool"},
                         {"strict", "false"},
                         {"deadline_ms", "2000"},
                         {"run_wait_ms", "2000"},
                         {"exclude", "[]"},
                         {"protect", "[]"},
                         {"default_excludes", "true"},
                         {"secrets", "local"},
                         {"max_file_size", "512MiB"},
                         {"max_files", "2000000"},
                         {"retention.auto", "200"},
                         {"retention.days", "30"},
                         {"retention.undo", "50"},
                         {"store.cap", "10GiB"},
                         {"store.floor", "5%"},
                         {"on_outside", "ask"},
                         {"git.action", "auto"},
                         {"git.refs", "false"},
                         {"git.refs_keep", "20"},
                         {"git.protect", "false"},
                         {"transcripts", "keep"},
                         {"notice", "false"},
                         {"hooks.before_rollback", "[]"},
                         {"hooks.after_rollback", "[]"},
                         {"hooks.on_session_end", "[]"},
                         {"hooks.summarize", "[]"}}) {
    EXPECT_EQ(Shown(settings, row.key), row.text) << row.key;
    EXPECT_EQ(SourceOf(settings, row.key), "default") << row.key;
  }
  EXPECT_THAT(settings.secret_patterns, testing::IsSupersetOf({".env", "*.pem"}));
  EXPECT_TRUE(settings.ToolEnabled("Bash"));
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(Settings, ReadsEveryTypeOfValue) {
  Settings settings = Parse(R"(
granularity = "session"
deadline_ms = 50
exclude = ["*.iso", "tmp/"]
max_file_size = 1048576
[store]
cap = "0"
floor = "1GiB"
[hooks]
before_rollback = ["notify", "about to"]
after_rollback = [["a"], ["b", "c"]]
[tools]
Bash = false
"mcp:x.y" = false
)")
                          .value();
  EXPECT_EQ(settings.granularity, Granularity::kSession);
  EXPECT_EQ(settings.deadline_ms, 50);
  EXPECT_THAT(settings.exclude, ElementsAre("*.iso", "tmp/"));
  EXPECT_EQ(settings.max_file_size, SizeSetting{.bytes = 1048576});
  EXPECT_EQ(settings.store_cap, SizeSetting{});
  EXPECT_EQ(settings.StoreFloorBytes(1), uint64_t{1} << 30);
  EXPECT_THAT(settings.before_rollback, ElementsAre(Argv{"notify", "about to"}));
  EXPECT_THAT(settings.after_rollback, ElementsAre(Argv{"a"}, Argv{"b", "c"}));
  EXPECT_FALSE(settings.ToolEnabled("Bash"));
  EXPECT_FALSE(settings.ToolEnabled("mcp:x.y"));
  EXPECT_TRUE(settings.ToolEnabled("Write"));
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(Settings, AShareOfTheDiskIsAtMostTwoGibibytes) {
  Settings settings;
  EXPECT_EQ(settings.StoreFloorBytes(uint64_t{1000} << 20), uint64_t{50} << 20);
  EXPECT_EQ(settings.StoreFloorBytes(uint64_t{4} << 40), uint64_t{2} << 30);
}

TEST(Settings, BadValuesAreRefusedWithFileAndLine) {
  struct Row {
    std::string_view text, error;
  };
  for (const Row& row :
       {Row{"enabled = 1", "config.toml:1: enabled must be true or false"},
        {"\n\nenabled = \"true\"", "config.toml:3: enabled must be true or false"},
        {"granularity = \"Tool\"",
         "config.toml:1: granularity must be one of \"tool\", \"turn\", \"session\""},
        {"granularity = 3", "config.toml:1: granularity must be one of"},
        {"secrets = \"\"", "config.toml:1: secrets must be one of \"local\", \"skip\""},
        {"deadline_ms = -1",
         "config.toml:1: deadline_ms must be a whole number from 0"},
        {"deadline_ms = 1.5", "config.toml:1: deadline_ms must be a whole number"},
        {"max_files = 0", "config.toml:1: max_files must be a whole number from 1"},
        {"max_file_size = \"0\"", "config.toml:1: max_file_size must be more than 0"},
        {"max_file_size = -5", "config.toml:1: max_file_size must be a size"},
        {"max_file_size = \"5%\"", "config.toml:1: max_file_size must be a size"},
        {"[store]\nfloor = \"101%\"", "config.toml:2: store.floor must be a size"},
        {"exclude = \"x\"", "config.toml:1: exclude must be a list of strings"},
        {"exclude = [1]", "config.toml:1: exclude must be a list of strings"},
        {"exclude = [\"a\\nb\"]", "config.toml:1: exclude must hold patterns of one"},
        {"exclude = [\"\"]", "config.toml:1: exclude must hold patterns of one line"},
        {"exclude = [\"a\\u0000b\"]", "config.toml:1: exclude must not hold a NUL"},
        {"hooks.after_rollback = [[]]",
         "config.toml:1: hooks.after_rollback must name"},
        {"hooks.after_rollback = [\"\"]",
         "config.toml:1: hooks.after_rollback must name"},
        {"hooks.after_rollback = \"rm -rf /\"",
         "config.toml:1: hooks.after_rollback must be a list"},
        {"tools.Bash = 0", "config.toml:1: tools.Bash must be true or false"},
        {"enabled = true\nenabled = true", "config.toml:2: not valid TOML"},
        {"[tools]\n\u00e9 = true\n\"\\u00e9\" = false",
         "config.toml:2: not valid TOML"},
        {"[tools]\n\"\u00e9\" = true\n\"\\u00e9\" = false",
         "config.toml:3: not valid TOML: the key is there twice"},
        {"[secrets]\nvalue = \"skip\"",
         "config.toml:2: secrets must be a value, not a table"},
        {"[[store]]\ncap = \"1GiB\"", "config.toml:1: store must be a table: [store]"},
        {"store = \"1GiB\"", "config.toml:1: store must be a table"},
        {"tools = true", "config.toml:1: tools must be a table"},
        {"tools.Bash.x = true", "config.toml:1: tools.Bash must be true or false"},
        {"auto = true\n\"au\\u0074o\" = false",
         "config.toml:2: not valid TOML: the key is there twice"},
        {"enabled =", "config.toml:1: not valid TOML"},
        {"enabled", "config.toml:1: not valid TOML"}}) {
    Result<Settings> parsed = Parse(row.text);
    ASSERT_FALSE(parsed.ok()) << row.text;
    EXPECT_EQ(parsed.error().code, Errc::kInvalid) << row.text;
    EXPECT_THAT(parsed.error().what, StartsWith(row.error)) << row.text;
  }
}

TEST(Settings, UnknownKeysAreNamedWithTheNearestKnownOne) {
  Settings settings =
      Parse("enabeld = false\ncap = 1\n[nothing.like]\nthis = 1\n[tols]\nBash = true\n")
          .value();
  EXPECT_TRUE(settings.enabled);
  EXPECT_THAT(
      settings.warnings,
      ElementsAre("config.toml:1: enabeld is not a setting; did you mean enabled?",
                  "config.toml:2: cap is not a setting; did you mean store.cap?",
                  "config.toml:4: nothing.like.this is not a setting",
                  "config.toml:6: tols.Bash is not a setting; did you mean "
                  "tools.Bash?"));
}

TEST(Settings, AQuotedDotIsNotASeparator) {
  Settings settings = Parse("\"store.cap\" = 1\n").value();
  EXPECT_EQ(Shown(settings, "store.cap"), "10GiB");
  EXPECT_THAT(settings.warnings, ElementsAre(HasSubstr("is not a setting")));
}

TEST(Settings, ProjectFileComesOverTheUsersFile) {
  Settings settings =
      Parse("granularity = \"turn\"\nnotice = true\n", "granularity = \"session\"")
          .value();
  EXPECT_EQ(settings.granularity, Granularity::kSession);
  EXPECT_EQ(SourceOf(settings, "granularity"), "project");
  EXPECT_EQ(SourceOf(settings, "notice"), "user");
  EXPECT_EQ(SourceOf(settings, "strict"), "default");
}

TEST(Settings, ProjectFileCannotReachWhatIsTheUsers) {
  struct Row {
    std::string_view project, key;
  };
  for (const Row& row :
       {Row{"secrets = \"skip\"", "secrets"},
        {"hooks.before_rollback = [\"evil\"]", "hooks.before_rollback"},
        {"hooks.after_rollback = [\"evil\"]", "hooks.after_rollback"},
        {"[hooks]\non_session_end = [\"evil\"]", "hooks.on_session_end"},
        {"[hooks]\nsummarize = [\"evil\"]", "hooks.summarize"},
        {"store = { cap = 1 }", "store.cap"},
        {"store.floor = \"100%\"", "store.floor"}}) {
    Result<Settings> parsed = Parse("", row.project);
    ASSERT_TRUE(parsed.ok()) << row.project;
    EXPECT_EQ(Shown(*parsed, row.key), Shown(Settings(), row.key)) << row.project;
    EXPECT_EQ(SourceOf(*parsed, row.key), "default") << row.project;
    EXPECT_THAT(parsed->warnings, ElementsAre(HasSubstr("only your own settings file")))
        << row.project;
  }
}

// Mutant: a-project-takes-back-unasked.
TEST(Settings, AProjectTakesNothingBackUnasked) {
  Result<Settings> settings = Parse("on_outside = \"keep\"",
                                    "on_outside = \"exact\"\ngit.action = \"reset\"\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->on_outside, OnOutside::kKeep);
  EXPECT_EQ(settings->git_action, GitAction::kAuto);
  EXPECT_THAT(settings->warnings,
              ElementsAre(HasSubstr("on_outside = \"exact\" is left out"),
                          HasSubstr("git.action = \"reset\" is left out")));
  // It may ask for more care, and the user for less.
  settings = Parse("on_outside = \"exact\"\ngit.action = \"reset\"\n", "");
  EXPECT_EQ(settings->on_outside, OnOutside::kExact);
  EXPECT_EQ(settings->git_action, GitAction::kReset);
  settings = Parse("on_outside = \"exact\"\ngit.action = \"reset\"\n",
                   "on_outside = \"ask\"\ngit.action = \"keep\"\n");
  EXPECT_EQ(settings->on_outside, OnOutside::kAsk);
  EXPECT_EQ(settings->git_action, GitAction::kKeep);
}

// Mutant: project-lifts-secrets.
TEST(Settings, AProjectBringsNoSkippedSecretsBack) {
  const std::string project = "protect = [\".env\", \"conf/\"]\n";
  Result<Settings> settings =
      Parse("secrets = \"skip\"\nprotect = [\"mine\"]\n", project);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->protect, std::vector<std::string>({"mine"}));
  ASSERT_EQ(settings->warnings.size(), 1u);
  EXPECT_NE(settings->warnings[0].find("a project cannot bring them back"),
            std::string::npos);
  settings = Parse("", project);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->protect.size(), 2u);
}

TEST(Settings, ProjectListsOnlyAdd) {
  Settings settings =
      Parse("secret_patterns = [\"mine\"]\nprotect = [\"keep/\"]\nexclude = [\"a\"]",
            "secret_patterns = [\"!mine\", \"theirs\"]\nprotect = [\"!keep/\"]\n"
            "exclude = [\"b\"]")
          .value();
  EXPECT_THAT(settings.secret_patterns, ElementsAre("mine", "theirs"));
  EXPECT_THAT(settings.protect, ElementsAre("keep/"));
  EXPECT_THAT(settings.exclude, ElementsAre("a", "b"));
  EXPECT_THAT(settings.warnings,
              ElementsAre(StartsWith(".belay.toml:1: secret_patterns"),
                          StartsWith(".belay.toml:2: protect")));
}

std::string Repeat(std::string_view piece, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += piece;
  return out;
}

TEST(Settings, HostileTextIsRefusedWithoutHarm) {
  constexpr size_t kMany = 500'000;
  struct Row {
    std::string_view name;
    std::string text;
  };
  const Row rows[] = {
      {"open brackets", Repeat("[", kMany * 2)},
      {"array of arrays", "a = " + Repeat("[", kMany)},
      {"array of arrays over lines", "a = " + Repeat("[\n", kMany)},
      {"inline tables", "a = " + Repeat("{a=", kMany / 3)},
      {"dotted key", Repeat("a.", kMany) + "a = 1"},
      {"dotted header", "[" + Repeat("a.", kMany) + "a]"},
      {"dotted header of tables", "[[" + Repeat("a.", kMany - 1) + "a]]"},
      {"dotted quoted key", Repeat("\"a\".", kMany / 2) + "a = 1"},
      {"dotted literal key", Repeat("'a' . ", kMany / 4) + "a = 1"},
      {"dots in an inline table", "a = { " + Repeat("a.", kMany / 2) + "a = 1 }"},
      {"dots after a multi-line string",
       "a = [ \"\"\"\"\"\" , { " + Repeat("a.", 9999) + "a = 1 } ]"},
      {"dots behind six quotes", "a = [''''''', {" + Repeat("a.", 9999) + "a = 1}]"},
      {"key that is a multi-line string",
       "\"\"\"\n" + Repeat("a.", 9999) + "\"\"\" = 1"},
      {"open string", "a = \"" + Repeat("x", kMany)},
      {"open multi-line string", "a = \"\"\"" + Repeat("x\n", kMany / 2)},
      {"lone backslash at the end", "a = \"\\"},
      {"lone carriage return", "# x\ra.b = 1"},
      {"form feed", "a = 1\f"},
      {"NUL", std::string("a\0= 1", 6)},
      {"not UTF-8", "a = \"\xff\""},
      {"too large", Repeat("# x\n", 262'145)},
      {"star in a header", "# c\n[*.jks"},
      {"star as a key", "* = 1"},
      {"letter outside quotes", "a =\xcf\xbb\"x\""},
      {"letter in a bare key", "\xcf\xbb = 1"},
      {"letter in a string to us, and not to the parser",
       "a = 7b='''=c'd''e'f=''@\xc8\xbf@'= [["},
      {"no key", "= 1"},
      {"empty header", "[]"},
      {"open header", "[a"},
      {"half-closed header of tables", "[[a]"},
      {"text behind a header", "[a] b"},
      {"dot at the end of a key", "a. = 1"},
      {"two dots in a key", "a..b = 1"},
      {"surrogate escape", "a = \"\\ud800\""},
      {"number too large", "deadline_ms = 99999999999999999999"},
  };
  for (const Row& row : rows) {
    Result<Settings> user = Parse(row.text);
    EXPECT_FALSE(user.ok()) << row.name;
    if (!user.ok()) {
      EXPECT_EQ(user.error().code, Errc::kInvalid) << row.name;
      EXPECT_THAT(user.error().what, StartsWith("config.toml:")) << row.name;
      EXPECT_LT(user.error().what.size(), 2000u) << row.name;
    }
    EXPECT_FALSE(Parse("", row.text).ok()) << row.name;
  }
}

TEST(Settings, LargeButHarmlessTextIsRead) {
  struct Row {
    std::string_view name;
    std::string text;
  };
  const Row rows[] = {
      {"comments with dots", "# " + Repeat("a.", 400'000)},
      {"strings with dots", "exclude = [\"" + Repeat("a.", 1000) + "\"]"},
      {"strings with brackets", "exclude = ['" + Repeat("[", 1000) + "']"},
      {"many patterns", "exclude = [" + Repeat("\"*.o\",\n", 50'000) + "]"},
      {"byte order mark",
       "\xef\xbb\xbf"
       "enabled = true"},
      {"carriage returns", "enabled = true\r\nexclude = [\r\n'a' ]\r\n"},
      {"escapes in a key", "\"\\u0041\\\"]\" = 1\n[\"]\\\"\"]\n"},
      {"letters in quotes", "exclude = ['\xcf\xbb'] # \xcf\xbb\n'\xcf\xbb' = 1"},
      {"empty quoted key", "'' = 1"},
      {"quotes before closing", "exclude = [\"\"\"a\"\"\"\"\", '''b''''']"},
  };
  for (const Row& row : rows) {
    Result<Settings> parsed = Parse(row.text);
    EXPECT_TRUE(parsed.ok()) << row.name << ": " << parsed.error().what;
  }
}

TEST(Settings, LettersComeThroughAsTheyAre) {
  // With marks that are none among them: by words, and by an escape.
  Settings settings = Parse(
                          "exclude = ['\xcf\xbb', \"Z0yce\", '''Z1\xc8\xbf"
                          "z''', \"\\u00fc\\u005a1yff\"]\n"
                          "[tools]\n'Z0y\xc3\xa9' = false\n")
                          .value();
  EXPECT_THAT(settings.exclude, ElementsAre("\xcf\xbb", "Z0yce",
                                            "Z1\xc8\xbf"
                                            "z",
                                            "\xc3\xbcZ1yff"));
  EXPECT_TRUE(settings.tools.contains("Z0y\xc3\xa9"));
  auto bad = Parse("enabled = \"\xc3\xa9\" x");
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().what, testing::Not(HasSubstr("Z0y")));
}

TEST(Settings, SizesAreReadStrictly) {
  struct Row {
    std::string_view text;
    uint64_t bytes;
  };
  for (const Row& row : {Row{"0", 0},
                         {"4096", 4096},
                         {"1B", 1},
                         {"1KiB", 1024},
                         {"512MiB", 536870912},
                         {"10GiB", 10737418240},
                         {"2TiB", 2199023255552},
                         {"10GB", 10000000000},
                         {"3kB", 3000}}) {
    Result<SizeSetting> size = ParseSize(row.text, false);
    ASSERT_TRUE(size.ok()) << row.text;
    EXPECT_EQ(size->bytes, row.bytes) << row.text;
    EXPECT_EQ(ParseSize(FormatSize(*size), false)->bytes, row.bytes) << row.text;
  }
  for (std::string_view text :
       {"", "MiB", "-1", "+1", " 1", "1 ", "1 MiB", "1.5GiB", "1mib", "0x10", "1e3",
        "1PiB", "5%", "9223372036854775808", "99999999999999999999", "8388608TiB",
        "1MiBx"})
    EXPECT_FALSE(ParseSize(text, false).ok()) << text;
  EXPECT_EQ(ParseSize("5%", true)->percent, 5);
  EXPECT_EQ(ParseSize("100%", true)->percent, 100);
  EXPECT_EQ(ParseSize("0%", true).value(), SizeSetting{});
  EXPECT_FALSE(ParseSize("101%", true).ok());
  EXPECT_FALSE(ParseSize("1.5%", true).ok());
}

std::string Set(std::string_view text, std::string_view key, std::string_view value,
                bool project = false) {
  Result<std::string> changed = SetInText(text, "f.toml", key, value, project);
  return changed.ok() ? *changed : "error: " + changed.error().what;
}

TEST(SettingsEdit, PutsAKeyWhereItBelongs) {
  struct Row {
    std::string_view name, before, key, value, after;
  };
  for (const Row& row : {
           Row{"empty file", "", "notice", "true", "notice = true\n"},
           {"no line end", "auto = true", "notice", "true",
            "auto = true\nnotice = true\n"},
           {"replaced", "a = 1 # x\nnotice = false   # why\nb=2", "notice", "true",
            "a = 1 # x\nnotice = true   # why\nb=2"},
           {"before the sections", "auto = true # c\n\n# s\n[store]\ncap = 1\n",
            "notice", "true",
            "auto = true # c\nnotice = true\n\n# s\n[store]\ncap = 1\n"},
           {"above a section's comment", "# s\n# t\n[store]\ncap = 1\n", "notice",
            "true", "notice = true\n\n# s\n# t\n[store]\ncap = 1\n"},
           {"into a section", "[store]\ncap = 1\n\n[git]\nrefs = true\n", "store.floor",
            "7%", "[store]\ncap = 1\nfloor = \"7%\"\n\n[git]\nrefs = true\n"},
           {"into an empty section", "[store]", "store.cap", "0",
            "[store]\ncap = \"0\"\n"},
           {"replaced in a section", "[ store ]\n'cap' = 1", "store.cap", "1GiB",
            "[ store ]\n'cap' = \"1GiB\""},
           {"replaced as dotted", "store . cap = 1", "store.cap", "1GiB",
            "store . cap = \"1GiB\""},
           {"new dotted", "auto = true\n", "store.cap", "1GiB",
            "auto = true\nstore.cap = \"1GiB\"\n"},
           {"list", "exclude = [\n  'a',\n  'b' ]  # c\n", "exclude", "[\"x\", 'y']",
            "exclude = [\"x\", \"y\"]  # c\n"},
           {"list of one", "", "exclude", "*.o", "exclude = [\"*.o\"]\n"},
           {"carriage returns", "auto = true\r\n", "notice", "true",
            "auto = true\r\nnotice = true\r\n"},
           {"tool", "", "tools.Bash", "false", "tools.Bash = false\n"},
           {"odd tool", "[tools]\n", "tools.mcp:a.b", "false",
            "[tools]\n\"mcp:a.b\" = false\n"},
           {"escapes", "", "exclude", "a\"b\\c", "exclude = [\"a\\\"b\\\\c\"]\n"},
       }) {
    EXPECT_EQ(Set(row.before, row.key, row.value), row.after) << row.name;
  }
}

TEST(SettingsEdit, IsNotFooledByTextInStringsAndComments) {
  std::string_view text =
      "secret_patterns = ['''x''', \"[store]\"]\n# notice = false\nexclude = ['notice "
      "= 1']\n";
  EXPECT_EQ(Set(text, "notice", "true"), std::string(text) + "notice = true\n");
}

TEST(SettingsEdit, RefusesWhatItCannotDoSafely) {
  struct Row {
    std::string_view name, text, key, value, error;
  };
  for (const Row& row : {
           Row{"inline table", "store = { cap = 1 }", "store.cap", "1GiB",
               "cannot be set"},
           {"comment inside", "exclude = [\n'a', # why\n]", "exclude", "b",
            "has comments"},
           {"broken file", "auto = ", "notice", "true", "f.toml:1: not valid TOML"},
           {"wrong type", "", "notice", "yes", "notice must be true or false"},
           {"wrong choice", "", "granularity", "all", "granularity must be one of"},
           {"wrong number", "", "max_files", "1e3", "max_files must be a whole number"},
           {"negative", "", "deadline_ms", "-1", "deadline_ms must be a whole number"},
           {"injection", "", "exclude", "[]\nsecrets = \"skip\"",
            "exclude must be a list"},
           {"broken list", "", "exclude", "[", "exclude "},
           {"not UTF-8", "", "exclude", "\xff", "exclude must be valid UTF-8"},
           {"tool value", "", "tools.Bash", "no", "tools.Bash must be true or false"},
           {"unknown", "", "notise", "true", "notise is not a setting"},
           {"no tool name", "", "tools.", "true", "tools. is not a setting"},
       }) {
    EXPECT_THAT(Set(row.text, row.key, row.value), StartsWith("error: ")) << row.name;
    EXPECT_THAT(Set(row.text, row.key, row.value), HasSubstr(row.error)) << row.name;
  }
  for (const SettingInfo& info : SettingTable())
    if (info.user_only) {
      EXPECT_THAT(Set("", info.key, "x", true), HasSubstr("your own settings file"))
          << info.key;
    }
}

TEST(SettingsEdit, AProjectTakesNothingBackUnasked) {
  EXPECT_THAT(Set("", "on_outside", "exact", true),
              HasSubstr("your own settings file"));
  EXPECT_THAT(Set("", "git.action", "reset", true),
              HasSubstr("your own settings file"));
  EXPECT_THAT(Set("", "on_outside", "keep", true), HasSubstr("keep"));
}

TEST(SettingsEdit, EveryDefaultCanBeWrittenAndReadBack) {
  Settings defaults;
  std::string text;
  for (const SettingInfo& info : SettingTable()) {
    Result<std::string> changed =
        SetInText(text, "f.toml", info.key, SettingText(defaults, info), false);
    ASSERT_TRUE(changed.ok()) << info.key << ": " << changed.error().what;
    text = *changed;
  }
  Settings read = Parse(text).value();
  for (const SettingInfo& info : SettingTable()) {
    EXPECT_EQ(SettingText(read, info), SettingText(defaults, info)) << info.key;
    EXPECT_EQ(SourceOf(read, info.key), "user") << info.key;
  }
}

TEST(RepairSettings, PutsLinesThatMakeNoSenseIntoComments) {
  auto same = RepairSettings("# mine\nnotice = true\n", "f", false).value();
  EXPECT_EQ(same.text, "# mine\nnotice = true\n");
  EXPECT_TRUE(same.repaired.empty());
  auto one =
      RepairSettings("notice = maybe\ngranularity = \"turn\"\n", "f", false).value();
  EXPECT_EQ(one.text, "# notice = maybe\ngranularity = \"turn\"\n");
  ASSERT_EQ(one.repaired.size(), 1u);
  EXPECT_TRUE(one.repaired[0].starts_with("f:1: ")) << one.repaired[0];
  auto last = RepairSettings("auto = true\n\n[git]\nrefs = 7", "f", false).value();
  EXPECT_EQ(last.text, "auto = true\n\n[git]\n# refs = 7");
  EXPECT_EQ(RepairSettings("", "f", false).value().text, "");
  // What a project may not set is left out there whatever it says.
  const std::string days = "retention.days = 0\nmax_files = 7\n";
  EXPECT_TRUE(RepairSettings(days, "f", true).value().repaired.empty());
  EXPECT_EQ(RepairSettings(days, "f", false).value().repaired.size(), 1u);
}

TEST(RepairSettings, GivesUpRatherThanCommentEverythingOut) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "this is no setting\n";
  EXPECT_FALSE(RepairSettings(text, "f", false).ok());
}

}  // namespace
}  // namespace belay
