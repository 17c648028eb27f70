#include "cli/slash.h"

#include <unistd.h>

#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/live.h"

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

constexpr std::string_view kUsage =
    "/rollback lists, /rollback N shows what going back to N would do, "
    "/rollback N yes does it, /rollback undo takes it back, /rollback redo does it "
    "again";

// What the words mean.
struct Asked {
  std::vector<std::string> line;  // of ours
  std::string ref = {};           // of a rollback
  bool does = false;              // ... which is to be done
};

// Nothing when they make no sense.
std::optional<Asked> Understand(std::vector<std::string> words) {
  if (words.empty()) return Asked{.line = {"list", "-n", "15"}};
  if (words[0] == "undo" || words[0] == "redo") {
    if (words.size() == 1) return Asked{.line = {words[0]}};
    if (words.size() == 2 && words[1] == "exact")
      return Asked{.line = {words[0], "--exact"}};
  }
  // A word that looks like a flag is nobody's checkpoint.
  if (words[0].starts_with('-')) return std::nullopt;
  Asked out;
  std::vector<std::string> flags;
  for (; words.size() > 1; words.pop_back()) {
    if (words.back() == "yes")
      out.does = true;
    else if (words.back() == "exact" || words.back() == "keep")
      flags.push_back(words.back() == "exact" ? "--exact" : "--keep-outside");
    else
      break;
  }
  // "@{5 minutes ago}", a name of several words.
  for (const std::string& word : words) out.ref += (out.ref.empty() ? "" : " ") + word;
  if (out.ref.size() > 1 && (out.ref[0] == '"' || out.ref[0] == '\'') &&
      out.ref.back() == out.ref[0])
    out.ref = out.ref.substr(1, out.ref.size() - 2);
  if (out.ref.empty() || out.ref.starts_with('-')) return std::nullopt;
  out.line = {"rollback", out.ref};
  out.line.insert(out.line.end(), flags.begin(), flags.end());
  out.line.push_back(out.does ? "--yes" : "--dry-run");
  return out;
}

bool IsNumber(std::string_view ref) {
  return !ref.empty() && ref.find_first_not_of("0123456789") == std::string_view::npos;
}
// What it names now it may not name in a moment.
bool Wanders(std::string_view ref) {
  return IsNumber(ref) || ref == "latest" || ref == "last-good" ||
         ref.starts_with("@{");
}

// Numbers count from the newest, and others make checkpoints, too: what somebody said
// yes to is what was shown.
class Shown {
 public:
  Shown(CommandContext& ctx, const std::string& dir, const std::string& asked_by)
      : asked_by_(asked_by) {
    auto at = AbsPath::Parse(dir);
    auto root = at.ok() ? OpenRootAt(ctx, NeedsRoot::kRecorded, *at)
                        : OpenRoot(ctx, NeedsRoot::kRecorded);
    if (!root.ok()) return;
    root_.emplace(std::move(*root));
    auto list = root_->catalog->ListCheckpoints({.root = root_->root.id, .limit = 1});
    if (list.ok() && !list->empty()) newest_ = (*list)[0].checkpoint.id.text();
  }

  // Whoever asks saw other numbers.
  bool IsOther() {
    if (!root_) return false;
    const Live live = Live::Load(root_->store(), root_->root.id);
    const LiveSession* asks = WhoAsks(live, asked_by_);
    return asks != nullptr && !asks->shown.empty() && asks->shown != newest_;
  }
  void Remember() {
    if (!root_) return;
    Store& store = root_->store();
    auto alone = store.locks().AcquireRoot(root_->root.id, 500);
    if (!alone.ok()) return;
    Live live = Live::Load(store, root_->root.id);
    const LiveSession* asks = WhoAsks(live, asked_by_);
    if (asks == nullptr || asks->shown == newest_) return;
    live.Meet(std::string(asks->id), asks->seen_ms).shown = newest_;
    (void)live.Save(store, root_->root.id);
  }
  // The id of what a reference names now; the reference where there is none.
  std::string Settle(const std::string& ref) const {
    if (!root_) return ref;
    auto found = ResolveRef(
        *root_->catalog,
        {.root = root_->root.id, .now_ms = root_->opened->clock.WallMillis()}, ref);
    return found.ok() ? found->entry.checkpoint.id.text() : ref;
  }

 private:
  const std::string asked_by_;
  std::optional<OpenedRoot> root_;
  std::string newest_;
};

// What a person types at a shell is typed otherwise here.
std::string InItsWords(std::string text) {
  const std::pair<std::string_view, std::string_view> words[] = {
      {"Look at one: belay show", "What it would do: /rollback"},
      {"    Go back to it: belay rollback", "    Go back: /rollback N yes, N ="},
      {"undo with `belay undo`", "undo with /rollback undo"},
      {"with `belay redo`", "with /rollback redo"},
      {"with `belay undo`", "with /rollback undo"},
      {"belay undo --exact", "/rollback undo exact"},
      {"belay redo --exact", "/rollback redo exact"},
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
  auto asked = Understand(words);
  if (!asked) return std::string(kUsage);
  Shown shown(ctx, dir, asked_by);
  std::string text;
  const bool numbered = IsNumber(asked->ref);
  if (asked->does && numbered && shown.IsOther()) {
    text = StrCat("Checkpoints were made since you looked, so that ", asked->ref,
                  " may be another one by now: nothing was done.\n");
    asked->does = false;
    asked->line.back() = "--dry-run";
  }
  if (Wanders(asked->ref)) {
    asked->line[1] = shown.Settle(asked->ref);
    asked->ref = asked->line[1].substr(0, 7);  // as lists have it
  }
  if (!dir.empty()) asked->line.insert(asked->line.end(), {"--root", dir});
  ProcessOptions options{.program = AbsPath::Literal("/proc/self/exe"),
                         .arguments = asked->line,
                         .environment = ctx.env.all,
                         .timeout_ms = kMaxMs};
  options.environment.push_back(StrCat("BELAY_ASKED_BY=", asked_by));
  auto ran = RunProcess(options);
  if (!ran.ok()) return StrCat("belay could not be run: ", ran.error().what);
  text += ran->output;
  if (!ran->errors.empty()) text += (text.empty() ? "" : "\n") + ran->errors;
  const bool plans = ran->output.starts_with("To ");
  // An error and a plan by name show no number: who asks goes by those seen before.
  const bool shows = numbered ? !asked->does : asked->line[0] == "list";
  if (shows && (ran->code == 0 || plans)) shown.Remember();
  if (!asked->ref.empty() && !asked->does && ran->code == 0 && plans)
    text += StrCat("Do it with: /rollback ", asked->ref, " yes");
  if (ran->code != 0 && words.size() > 1) text += StrCat("\n", kUsage);
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
