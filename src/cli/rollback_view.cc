#include "cli/rollback_view.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/escape.h"
#include "cli/chat_view.h"
#include "cli/rollback_hooks.h"
#include "cli/text.h"

namespace belay {

namespace {

constexpr size_t kStepsShown = 8;
constexpr size_t kListed = 10;

std::string MissingText(const KeptPath& kept, bool dry_run) {
  return StrCat(EscapeForDisplay(kept.path),
                dry_run ? " would not be brought back (" : " was not brought back (",
                ReasonText(kept.why), ")");
}

// What a person may do about what was not brought back, said once of each reason.
std::string WayOut(const KeptPath& kept, const std::string& ref) {
  const std::string path = EscapeForDisplay(kept.path), word = ShellWord(kept.path);
  if (kept.why == "nested_repository")
    return StrCat(
        "  what became a repository since stays whole; what the checkpoint has "
        "of it can be had with: belay cat ",
        ref, " ", word, " >FILE (of a directory: belay ls ", ref, " ", word, ")");
  if (kept.why == "in_the_way")
    return StrCat("  move what is in ", path,
                  " and not covered elsewhere, then roll back again");
  if (kept.why == "others_in_it")
    return StrCat(
        "  what others changed in ", path,
        " is kept, and keeps it a directory; to take that back, too: --exact");
  if (kept.why == "special")
    return StrCat("  move ", path, " elsewhere, then roll back again");
  if (kept.why == "unreadable")
    return StrCat("  as its owner make it readable, then roll back again: chmod u+rwX ",
                  word);
  if (kept.why == "other_mount")
    return StrCat("  unmount ", path, ", then roll back again");
  if (kept.why == "directory_gone")
    return StrCat("  make the directory of ", path, ", then roll back again");
  if (kept.why == "damaged") return "  see what is damaged: belay verify --read-data";
  return "";
}

// "14 files", "1 file and 2 directories".
std::string CountsText(uint64_t files, uint64_t dirs) {
  std::string text;
  if (files > 0 || dirs == 0) text = CountText(files, "file");
  if (dirs == 0) return text;
  const std::string directories =
      dirs == 1 ? "1 directory" : StrCat(std::to_string(dirs), " directories");
  return text.empty() ? directories : StrCat(text, " and ", directories);
}

// Of what gives way to another kind of thing each step has its own kind.
bool IsDirectoryStep(const Step& step) {
  return step.op == "mkdir" || step.op == "rmdir" ||
         (step.op == "chmod" && step.change->after->kind == EntryKind::kDirectory);
}

void WriteHash(JsonWriter& json, const std::optional<PathState>& state) {
  if (state && state->kind == EntryKind::kFile)
    json.String(state->id.hex());
  else
    json.Null();
}

volatile sig_atomic_t asked_to_stop = 0;
void NoteStop(int) { asked_to_stop = 1; }
constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, kStopSignals.size()> before_stop;

}  // namespace

std::string ReasonText(std::string_view why) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"attributes_unknown", "extended attributes that could not be read then"},
      {"damaged", "the store cannot give it back"},
      {"changed_late", "it changed too late for that checkpoint"},
      {"directory_gone", "its directory is gone"},
      {"excluded_then", "excluded by the rules of that time"},
      {"git_dir", "git's own"},
      {"ignored_now", "ignored by today's rules"},
      {"ignored_then", "ignored by the rules of that time"},
      {"in_the_way", "in the way: something not covered is there"},
      {"others_in_it", "in the way: what others changed in it since is kept"},
      {"lost", "lost by damage, and given up by belay repair"},
      {"nested_repository", "a repository now, and none at that checkpoint"},
      {"not_covered", "not covered"},
      {"not_empty", "not empty: something in it stays"},
      {"other_mount", "something else is mounted there"},
      {"other_owner", "it belongs to another user"},
      {"other_root", "a protected directory of its own"},
      {"partial", "the checkpoint is partial"},
      {"purged", "erased by belay purge"},
      {"other_root", "in a protected directory of its own, or not to be touched"},
      {"outside", "changed by others since"},
      {"replaced", "it became something else while it was read"},
      {"reserved_name", "a name that may be taken for .git"},
      {"rules_unknown", "the rules of that time cannot be read"},
      {"secret", "a secret"},
      {"setid_not_given", "setuid and setgid are not given back"},
      {"settings_unknown", "today's settings cannot be read"},
      {"special", "a FIFO, socket or device"},
      {"too_large", "too large: max_file_size"},
      {"unreadable", "it cannot be read"},
  };
  for (const auto& [token, words] : kWords)
    if (token == why) return std::string(words);
  std::string plain(why);
  std::ranges::replace(plain, '_', ' ');
  return plain;
}

std::string AffectedText(const Plan& plan) {
  // By steps, as they are grouped: of a change of kind both count, and so do they for
  // its undo. The log counts paths: where that is another number, it is said.
  uint64_t files = 0, dirs = 0;
  for (const Step& step : StepsOf(plan.changes))
    ++(IsDirectoryStep(step) ? dirs : files);
  if (plan.moves_nothing()) return CountsText(files, dirs);
  const bool git = std::ranges::any_of(
      plan.git, [](const GitPlan& one) { return !one.move.changes.empty(); });
  const size_t outside = ChangesIn(plan.external).size();
  std::string text;
  if (!plan.changes.empty()) text = CountsText(files, dirs);
  if (files + dirs != plan.changes.size())
    text += StrCat(" (", CountText(plan.changes.size(), "path"), ")");
  if (git) text += StrCat(text.empty() ? "" : " and ", "git");
  if (outside > 0)
    text += StrCat(text.empty() ? "" : " and ", CountText(outside, "file"),
                   " outside the project");
  return text;
}

std::string ExternalText(const Plan& plan) {
  const std::vector<PathChange> outside = ChangesIn(plan.external);
  if (outside.empty()) return {};
  std::string out =
      StrCat("  outside ", CountText(outside.size(), "file"), ", not in the project\n");
  for (const Step& step : StepsOf(outside))
    out += StrCat("    ", Pad(step.op, 8), EscapeForDisplay(step.change->path), "\n");
  return out;
}

std::string PlanText(const Plan& plan, bool all) {
  struct Group {
    std::vector<const PathChange*> changes;
    uint64_t bytes = 0;
  };
  std::map<std::string_view, Group> groups;
  for (const Step& step : StepsOf(plan.changes)) {
    Group& group = groups[step.op];
    group.changes.push_back(step.change);
    const auto& state = step.op == "delete" ? step.change->before : step.change->after;
    if (step.op != "chmod" && step.op != "rmdir" && state) group.bytes += state->size;
  }
  std::string out;
  constexpr std::string_view kVerbs[] = {"write", "create", "symlink", "chmod",
                                         "mkdir", "delete", "rmdir"};
  for (std::string_view verb : kVerbs) {
    auto found = groups.find(verb);
    if (found == groups.end()) continue;
    const Group& group = found->second;
    auto is_dir = [&](const PathChange& change) {
      return IsDirectoryStep({verb, &change});
    };
    const uint64_t count = group.changes.size();
    uint64_t dirs = 0;
    for (const PathChange* change : group.changes) dirs += is_dir(*change) ? 1 : 0;
    out += StrCat("  ", Pad(verb, 8), CountsText(count - dirs, dirs));
    if (group.bytes > 0) out += StrCat(", ", SizeText(group.bytes));
    out += "\n";
    for (size_t i = 0; i < count && (all || i < kStepsShown); ++i)
      out += StrCat("    ", EscapeForDisplay(ShownPath(group.changes[i]->path)),
                    is_dir(*group.changes[i]) ? "/" : "", "\n");
    if (!all && count > kStepsShown)
      out += StrCat("    ... and ", std::to_string(count - kStepsShown),
                    " more (all of them with -v)\n");
  }
  for (const std::string& line : GitPlanText(plan.git)) out += StrCat("  ", line, "\n");
  if (plan.bytes_needed > 0)
    out += StrCat("  needs   ", SizeText(plan.bytes_needed), " of room and ",
                  CountText(plan.inodes_needed, "inode"), "\n");
  return out + ExternalText(plan) + KeptText(plan, all);
}

std::string KeptText(const Plan& plan, bool all) {
  std::string out;
  for (const bool missing : {false, true}) {
    std::vector<std::string> lines;
    for (const KeptPath& kept : plan.kept)
      if (kept.missing == missing)
        lines.push_back(StrCat("    ", EscapeForDisplay(kept.path), "  (",
                               ReasonText(kept.why), ")"));
    if (lines.empty()) continue;
    out += StrCat(missing ? "  missing " : "  stays   ",
                  CountText(lines.size(), "path"), "\n");
    const size_t shown = all ? lines.size() : std::min(kListed, lines.size());
    for (size_t i = 0; i < shown; ++i) out += StrCat(lines[i], "\n");
    if (shown < lines.size())
      out += StrCat("    ... and ", std::to_string(lines.size() - shown),
                    " more (all of them with -v)\n");
  }
  return out;
}

bool IsIncomplete(const Plan& plan) {
  return std::any_of(plan.kept.begin(), plan.kept.end(),
                     [](const KeptPath& kept) { return kept.wanted; });
}

void WarnAboutMissing(Terminal& term, const Outcome& outcome,
                      const Checkpoint& target) {
  size_t count = 0;
  std::vector<std::string_view> explained;
  for (const KeptPath& kept : outcome.plan.kept) {
    if (!kept.wanted || ++count > kStepsShown) continue;
    term.Warn(MissingText(kept, outcome.dry_run));
    if (std::ranges::find(explained, kept.why) != explained.end()) continue;
    explained.push_back(kept.why);
    if (std::string way = WayOut(kept, target.id.text().substr(0, 7)); !way.empty())
      term.Note(way);
  }
  if (count > kStepsShown)
    term.Warn(StrCat("... and ", std::to_string(count - kStepsShown), " more"));
}

std::vector<std::string> FirstOf(std::vector<std::string> lines, bool all) {
  if (all || lines.size() <= kListed) return lines;
  const size_t more = lines.size() - kListed;
  lines.resize(kListed);
  lines.push_back(
      StrCat("  and ", std::to_string(more), " more (all of them with -v)"));
  return lines;
}

void WarnAbout(Terminal& term, const Outcome& outcome) {
  for (const std::string& warning : outcome.plan.warnings) term.Warn(warning);
  for (const std::string& warning : outcome.warnings) term.Warn(warning);
  std::vector<std::string> changed;
  for (const std::string& path : outcome.changed_by_others)
    changed.push_back(
        StrCat(EscapeForDisplay(path),
               " was changed by another program meanwhile, and left as it is"));
  for (const std::string& line : FirstOf(std::move(changed), term.verbose()))
    term.Warn(line);
  if (outcome.raced)
    term.Warn(StrCat("what others wrote meanwhile is kept in ",
                     outcome.raced->id.text().substr(0, 7), ": ",
                     EscapeText(outcome.raced->description)));
}

namespace {

uint64_t FilesIn(const GitMove& move) {
  uint64_t files = move.objects.size();
  for (const PathChange& change : move.changes) {
    const auto& side = change.after ? change.after : change.before;
    files += side->kind != EntryKind::kDirectory ? 1 : 0;
  }
  return files;
}

void WriteGit(const std::vector<GitPlan>& plans, JsonWriter& json) {
  const GitPlan* top = nullptr;
  for (const GitPlan& plan : plans)
    if (plan.path.empty() && !plan.none) top = &plan;
  auto text = [&](std::string_view key, std::string_view value) {
    json.Key(key);
    if (value.empty())
      json.Null();
    else
      json.PathValue(value);
  };
  json.Key("git").BeginObject();
  const bool moves = top != nullptr && !top->move.changes.empty();
  json.Key("action").String(top == nullptr                      ? "none"
                            : !moves                            ? "keep"
                            : top->action == GitAction::kRevert ? "revert"
                                                                : "reset");
  text("from", top == nullptr ? "" : top->from);
  text("to", top == nullptr ? "" : moves ? top->to : top->from);
  json.Key("commits").BeginArray();
  if (moves)
    for (const std::string& commit : top->commits) json.PathValue(commit);
  json.EndArray();
  const bool holds = moves && !top->safety_refs.empty();
  text("safety_ref", holds ? top->safety_refs.front() : "");
  auto refs = [&](std::string_view key, const std::vector<std::string>& names) {
    json.Key(key).BeginArray();
    for (const std::string& name : names) json.PathValue(name);
    json.EndArray();
  };
  refs("safety_refs", moves ? top->safety_refs : std::vector<std::string>());
  refs("held_by", moves ? top->held_by : std::vector<std::string>());
  // `.git` itself comes or goes; how many of git's own files change, and how.
  json.Key("whole").Bool(moves && top->move.whole);
  json.Key("files").Uint(moves ? FilesIn(top->move) : 0);
  refs("notes", moves ? top->notes : std::vector<std::string>());
  json.Key("nested").BeginArray();
  for (const GitPlan& plan : plans) {
    if (plan.path.empty() || plan.move.changes.empty()) continue;
    json.BeginObject();
    json.Key("path").PathValue(plan.path);
    text("from", plan.from);
    text("to", plan.to);
    json.Key("whole").Bool(plan.move.whole);
    json.Key("files").Uint(FilesIn(plan.move));
    refs("notes", plan.notes);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

void WriteOutcome(const Outcome& outcome, const std::optional<RecordId>& target,
                  JsonWriter& json, const std::vector<UserHookRun>& hooks) {
  json.BeginObject();
  auto id = [&](std::string_view key, const auto& value) {
    json.Key(key);
    if (value)
      json.String(value->text());
    else
      json.Null();
  };
  id("target", target);
  json.Key("dry_run").Bool(outcome.dry_run);
  id("operation", outcome.operation ? std::optional(outcome.operation->id)
                                    : std::optional<RecordId>());
  id("safety",
     outcome.safety ? std::optional(outcome.safety->id) : std::optional<RecordId>());
  // Of one that was refused nothing was done to the conversation either.
  const bool refused_both = !outcome.chat && outcome.about_chat;
  json.Key("scope").String(refused_both ? "both" : ScopeName(outcome.chat));
  json.Key("steps").BeginArray();
  const std::vector<PathChange> external = ChangesIn(outcome.plan.external);
  std::vector<Step> steps = StepsOf(outcome.plan.changes);
  const size_t inside = steps.size();
  for (const Step& step : StepsOf(external)) steps.push_back(step);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const PathChange& change = *step.change;
    const bool removes = step.op == "delete" || step.op == "rmdir";
    json.BeginObject();
    json.Key("op").String(step.op);
    json.Key("path").PathValue(ShownPath(change.path));
    json.Key("from");
    WriteHash(json, step.op == "create" && change.before &&
                            change.before->kind == EntryKind::kDirectory
                        ? std::nullopt
                        : change.before);
    json.Key("to");
    WriteHash(json, removes ? std::nullopt : change.after);
    json.Key("size").Uint(removes ? change.before->size : change.after->size);
    json.Key("outside").Bool(std::binary_search(outcome.plan.outside.begin(),
                                                outcome.plan.outside.end(),
                                                ShownPath(change.path)));
    if (i >= inside) json.Key("external").Bool(true);
    json.EndObject();
  }
  json.EndArray();
  json.Key("kept").BeginArray();
  for (const KeptPath& kept : outcome.plan.kept) {
    json.BeginObject();
    json.Key("path").PathValue(kept.path);
    json.Key("why").String(kept.why);
    json.Key("wanted").Bool(kept.wanted);
    if (kept.missing) json.Key("missing").Bool(true);
    json.EndObject();
  }
  json.EndArray();
  json.Key("outside").BeginArray();
  for (const std::string& path : outcome.plan.outside) json.PathValue(path);
  json.EndArray();
  WriteGit(outcome.plan.git, json);
  json.Key("chat");
  if (outcome.chat && outcome.stands)
    WriteChatAgain(*outcome.chat, *outcome.stands, json);
  else
    WriteChat(outcome.chat, outcome.dry_run, json);
  json.Key("conflicts").BeginArray();
  for (const Conflict& conflict : outcome.conflicts) {
    json.BeginObject();
    json.Key("path").PathValue(conflict.path);
    json.Key("what").String(conflict.what);
    json.EndObject();
  }
  json.EndArray();
  WriteHooks(hooks, json);
  json.Key("warnings").BeginArray();
  for (const std::string& warning : outcome.plan.warnings) json.String(warning);
  for (const std::string& warning : outcome.warnings) json.String(warning);
  for (const KeptPath& kept : outcome.plan.kept)
    if (kept.wanted) json.String(MissingText(kept, outcome.dry_run));
  json.EndArray();
  json.Key("changed_by_others").BeginArray();
  for (const std::string& path : outcome.changed_by_others) json.PathValue(path);
  json.EndArray();
  id("raced",
     outcome.raced ? std::optional(outcome.raced->id) : std::optional<RecordId>());
  json.Key("bytes_needed").Uint(outcome.plan.bytes_needed);
  json.Key("inodes_needed").Uint(outcome.plan.inodes_needed);
  json.Key("refused");
  if (outcome.plan.refused)
    json.String(outcome.plan.refused->what);
  else
    json.Null();
  json.Key("verified").Bool(outcome.verified);
  json.EndObject();
}

PlanOptions WhoWeAre() {
  PlanOptions plan;
  plan.uid = geteuid();
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(0, count)));
  plan.groups.push_back(getegid());
  plan.groups.insert(plan.groups.end(), groups.begin(), groups.end());
  return plan;
}

RollbackRequest RequestFor(CommandContext& ctx, const OpenedRoot& root,
                           const Settings& settings) {
  RollbackRequest request;
  request.root = root.root;
  request.settings = &settings;
  request.git = GitPlacesOf(ctx.env);
  request.pid = getpid();
  request.plan = WhoWeAre();
  request.stop = StopOnSignal::Asked;
  for (auto [prefix, into] : {std::pair("session:", &request.asked_by.session),
                              std::pair("agent:", &request.asked_by.agent)})
    if (ctx.env.asked_by.starts_with(prefix))
      *into = ctx.env.asked_by.substr(std::string_view(prefix).size());
  request.waiting = SayWaiting(ctx.term);
  return request;
}

StopOnSignal::StopOnSignal() {
  asked_to_stop = 0;
  struct sigaction note {};
  note.sa_handler = NoteStop;
  note.sa_flags = SA_RESTART;
  sigemptyset(&note.sa_mask);
  for (size_t i = 0; i < kStopSignals.size(); ++i)
    sigaction(kStopSignals[i], &note, &before_stop[i]);
}

StopOnSignal::~StopOnSignal() {
  for (size_t i = 0; i < kStopSignals.size(); ++i)
    sigaction(kStopSignals[i], &before_stop[i], nullptr);
}

bool StopOnSignal::Asked() { return asked_to_stop != 0; }

}  // namespace belay
