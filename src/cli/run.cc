#include "cli/run.h"

#include <sys/resource.h>

#include <cstdio>

#include "base/clock.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "belay_version.h"
#include "cli/context.h"
#include "cli/help.h"
#include "cli/text.h"

namespace belay {

namespace {

using Words = std::vector<std::string_view>;

bool Mentions(const Words& words, std::string_view flag) {
  return MentionsFlag(words, *FindFlag(nullptr, flag));
}

ExitCode ShowVersion(Terminal& term) {
  if (term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("version").String(kBelayVersion);
    json.Key("revision").String(kBelayRevision);
    json.EndObject();
    term.OutJson(json);
  } else {
    term.Out(StrCat("belay ", kBelayVersion));
    if (kBelayRevision[0] != '\0') term.Out(StrCat(" (", kBelayRevision, ")"));
    term.Out("\n");
  }
  return ExitCode::kOk;
}

// The place of the command among the words, behind global flags; words.size() when
// there is none. An unknown flag on the way is an error.
Result<size_t> FindCommandWord(const Words& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-') || word.size() < 2) return i;
    if (word == "--") return i + 1;
    std::string_view name = word.substr(0, word.find('='));
    const FlagSpec* flag = nullptr;
    if (name.starts_with("--")) {
      flag = FindFlag(nullptr, name);
    } else {
      for (char letter : word.substr(1)) {  // -qh
        flag = FindFlag(nullptr, letter);
        if (flag == nullptr) break;
      }
    }
    if (flag == nullptr) {
      std::string_view nearest = NearestFlag(nullptr, name);
      return Error(Errc::kInvalid,
                   StrCat("unknown flag ", EscapeForDisplay(name.substr(0, 100))))
          .WithHint(nearest.empty() ? "" : StrCat("did you mean ", nearest, "?"));
    }
    if (!flag->value.empty() && name.size() == word.size()) ++i;
  }
  return words.size();
}

// -v: where this command looks, before it does.
void ShowPlaces(const Environment& env, Terminal& term) {
  auto show = [&](std::string_view what, const Result<AbsPath>& path) {
    term.Detail(StrCat(
        what, ": ", path.ok() ? EscapeForDisplay(path->bytes()) : path.error().what));
  };
  show("store", env.StoreDir());
  show("settings", env.UserSettingsFile());
}

// -v: what it took.
void ShowCost(int64_t nanos, Terminal& term) {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return;
  auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  char text[128];
  std::snprintf(text, sizeof text, "took %.1f ms (CPU %.1f ms), peak memory %.1f MiB",
                static_cast<double>(nanos) / 1e6, ms(used.ru_utime) + ms(used.ru_stime),
                static_cast<double>(used.ru_maxrss) / 1024);
  term.Detail(text);
}

ExitCode Dispatch(Fs& fs, const Environment& env, Terminal& term, Words words) {
  bool help = Mentions(words, "--help");
  if (Mentions(words, "--version") && (!help || words[0] == "--version"))
    return ShowVersion(term);
  auto at = FindCommandWord(words);
  if (!at.ok()) return term.FailUsage(at.error().what, at.error().hint);
  if (*at >= words.size()) {
    if (help) {
      term.OutText("help", OverviewHelp());
      return ExitCode::kOk;
    }
    return term.FailUsage("no command given");
  }

  std::string_view name = words[*at];
  const CommandSpec* command = FindCommand(name);
  if (command == nullptr) {
    std::string_view nearest = NearestCommand(name);
    return term.FailUsage(
        StrCat("unknown command '", EscapeForDisplay(name.substr(0, 100)), "'"),
        nearest.empty() ? "" : StrCat("did you mean ", nearest, "?"));
  }
  term.SetName(StrCat("belay ", name));
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(*at));
  if (help) {
    term.OutText("help", CommandHelp(*command));
    return ExitCode::kOk;
  }
  if (!command->available()) return term.NotYet(StrCat("belay ", name));

  auto args = ParseArgs(*command, words);
  if (!args.ok()) {
    const Error& error = args.error();
    if (name == "hook" && !BELAY_MUTANT("a-wrong-word-stops-the-agent")) {
      // Any other exit code may stop the tool that an agent is about to use.
      term.Warn(StrCat(error.what, "; nothing was recorded"));
      return ExitCode::kOk;
    }
    return error.code == Errc::kUnsupported ? term.NotYet(error.what)
                                            : term.FailUsage(error.what, error.hint);
  }
  term.SetVerbosity(args->has("--quiet"), args->has("--verbose"));
  if (command->whole_store && args->has("--root") && !term.quiet())
    term.Warn(
        "this is about the whole store, which all roots share; --root makes no "
        "difference");
  CommandContext ctx{fs, env, term, *command, *args};
  if (!term.verbose()) return command->run(ctx);
  ShowPlaces(env, term);
  const int64_t began = RealClock().SteadyNanos();
  ExitCode code = command->run(ctx);
  ShowCost(RealClock().SteadyNanos() - began, term);
  return code;
}

}  // namespace

int RunCli(Fs& fs, int argc, char** argv) {
  Words words(argv + (argc > 0 ? 1 : 0), argv + argc);
  Environment env = ReadEnvironment();
  Terminal term({.json = Mentions(words, "--json"),
                 .no_color = env.no_color,
                 .columns = env.columns});
  ExitCode code = Dispatch(fs, env, term, std::move(words));
  return static_cast<int>(term.Finish(code));
}

}  // namespace belay
