#include "cli/slash.h"

#include <unistd.h>

#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/text.h"

namespace belay {

namespace {

constexpr std::string_view kCommand = "/rollback";
constexpr size_t kMaxAnswer = 8000;
constexpr int64_t kMaxMs = 120'000;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && IsBlank(text[at])) ++at;
    size_t end = at;
    while (end < text.size() && !IsBlank(text[end])) ++end;
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// What the words mean as a command line of ours; nothing when they make no sense.
std::optional<std::vector<std::string>> CommandLine(
    const std::vector<std::string>& words) {
  if (words.empty()) return std::vector<std::string>{"list", "-n", "15"};
  if (words.size() == 1 && (words[0] == "undo" || words[0] == "redo"))
    return std::vector<std::string>{words[0]};
  // A word that looks like a flag is nobody's checkpoint.
  if (words[0].starts_with('-')) return std::nullopt;
  std::vector<std::string> line{"rollback", words[0]};
  bool yes = false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "yes")
      yes = true;
    else if (words[i] == "exact" || words[i] == "keep")
      line.push_back(words[i] == "exact" ? "--exact" : "--keep-outside");
    else
      return std::nullopt;
  }
  line.push_back(yes ? "--yes" : "--dry-run");
  return line;
}

// What a person types at a shell is typed otherwise here.
std::string InItsWords(std::string text) {
  const std::pair<std::string_view, std::string_view> words[] = {
      {"Look at one: belay show", "What it would do: /rollback"},
      {"    Go back to it: belay rollback", "    Go back: /rollback N yes, N ="},
      {"undo with `belay undo`", "undo with /rollback undo"},
      {"with `belay redo`", "with /rollback redo"},
      {"take them back too with --exact, or leave them with --keep-outside",
       "say `yes exact` to take them back too, `yes keep` to leave them"},
  };
  for (const auto& [from, to] : words)
    if (const size_t at = text.find(from); at != std::string::npos)
      text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::optional<std::vector<std::string>> SlashWords(std::string_view prompt) {
  while (!prompt.empty() && IsBlank(prompt.front())) prompt.remove_prefix(1);
  if (!prompt.starts_with(kCommand)) return std::nullopt;
  prompt.remove_prefix(kCommand.size());
  if (!prompt.empty() && !IsBlank(prompt.front())) return std::nullopt;
  return SplitWords(prompt);
}

std::string AnswerSlash(CommandContext& ctx, const std::string& dir,
                        const std::string& asked_by,
                        const std::vector<std::string>& words) {
  auto line = CommandLine(words);
  if (!line)
    return "/rollback lists, /rollback N shows what going back to N would do, "
           "/rollback N yes does it, /rollback undo takes it back";
  const bool asks = line->back() == "--dry-run";
  if (!dir.empty()) line->insert(line->end(), {"--root", dir});
  ProcessOptions options{.program = AbsPath::Literal("/proc/self/exe"),
                         .arguments = *line,
                         .environment = ctx.env.all,
                         .timeout_ms = kMaxMs};
  options.environment.push_back(StrCat("BELAY_ASKED_BY=", asked_by));
  auto ran = RunProcess(options);
  if (!ran.ok()) return StrCat("belay could not be run: ", ran.error().what);
  std::string text = ran->output;
  if (!ran->errors.empty()) text += (text.empty() ? "" : "\n") + ran->errors;
  if (asks && ran->code == 0 && text.starts_with("To "))
    text += StrCat("Do it with: /rollback ", words[0], " yes");
  while (!text.empty() && IsBlank(text.back())) text.pop_back();
  if (text.size() > kMaxAnswer) {
    text.resize(text.rfind('\n', kMaxAnswer));
    text += "\n...";
  }
  return InItsWords(std::move(text));
}

ExitCode CmdSlash(CommandContext& ctx) {
  const auto& given = ctx.args.positional();
  std::string text;
  // Some agents hand all of it over as one word. The first is the agent's name.
  for (size_t i = 1; i < given.size(); ++i) text += StrCat(given[i], " ");
  const std::string asked_by =
      given.empty() ? std::string() : StrCat("agent:", given[0]);
  ctx.term.Out(StrCat(AnswerSlash(ctx, "", asked_by, SplitWords(text)), "\n"));
  return ExitCode::kOk;
}

}  // namespace belay
