#include <algorithm>
#include <map>

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/session_show.h"
#include "cli/take_chat_back.h"
#include "cli/text.h"
#include "commits/anchors.h"
#include "core/annotate.h"
#include "core/purged.h"
#include "core/sessions.h"
#include "core/settings_table.h"
#include "core/state_rules.h"
#include "core/state_view.h"

namespace belay {

namespace {

constexpr size_t kLinesShown = 20;  // lines of a long list; all of it with -v

struct ChangedPath {
  std::string path;
  Change change;
  bool left_out = false;  // no longer covered, which is not deleted
};

std::string_view ChangeName(Change change) {
  switch (change) {
    case Change::kAdded:
      return "added";
    case Change::kModified:
      return "modified";
    case Change::kDeleted:
      return "deleted";
  }
  return "modified";
}

// Everything `show` tells, with what could not be read left out and said.
struct Details {
  FoundRef found;
  StateView view;
  std::vector<SkippedPath> skipped;
  GitRecord git;
  GitStaged staged;
  std::optional<std::string> before;  // id of the checkpoint it is compared with
  std::vector<ChangedPath> changed;
  std::vector<std::string> purged;  // paths it had, by path
  std::vector<std::string> lost;    // the same, whose content was given up
  std::vector<std::string> trouble;
  // Of files outside, those that are in a protected directory by now, and that.
  std::map<std::string, std::string> elsewhere;
};

// "main at abc1234, merge under way".
std::string GitText(const GitRepoRecord& repo) {
  constexpr std::string_view kBranch = "refs/heads/";
  std::string text = repo.path.empty() ? "" : StrCat(repo.path, ": ");
  const std::string_view branch = repo.head_ref;
  text += branch.empty()
              ? "no branch"
              : branch.substr(branch.starts_with(kBranch) ? kBranch.size() : 0);
  text +=
      repo.head.empty() ? ", no commit yet" : StrCat(" at ", repo.head.substr(0, 7));
  if (!repo.in_progress.empty()) text += StrCat(", ", repo.in_progress, " under way");
  if (repo.above) text += ", its top is above this directory";
  if (!repo.trouble.empty()) text += StrCat(" (not kept: ", repo.trouble, ")");
  return text;
}

// What a later checkpoint stored again is not lost any more.
Status FindLost(Store& store, Details& d) {
  Status walked =
      WalkTree(d.view.state.tree, "", TreesOf(store),
               [&](const std::string& path, const TreeEntry& entry) -> Status {
                 if (entry.kind != EntryKind::kFile) return Ok();
                 BELAY_TRY(auto blob, store.Find({ObjectType::kBlob, entry.id}));
                 if (blob) return Ok();
                 BELAY_TRY(auto chunks, store.Find({ObjectType::kChunks, entry.id}));
                 if (!chunks && !std::ranges::binary_search(d.purged, path))
                   d.lost.push_back(path);
                 return Ok();
               });
  if (!walked.ok())
    d.trouble.push_back(StrCat("its directories: ", walked.error().what));
  std::sort(d.lost.begin(), d.lost.end());
  return Ok();
}

void FindElsewhere(Catalog& catalog, Details& d) {
  auto roots = catalog.Roots();
  if (!roots.ok()) return;
  for (const ExternalFile& file : d.found.entry.checkpoint.external)
    for (const RootEntry& entry : *roots)
      if (auto path = AbsPath::Parse(file.path), top = AbsPath::Parse(entry.root.path);
          !entry.root.off && path.ok() && top.ok() && path->IsWithin(*top))
        d.elsewhere.emplace(file.path, entry.root.path);
}

Result<Details> Collect(OpenedRoot& root, FoundRef found) {
  Store& store = root.store();
  Details d;
  d.found = std::move(found);
  const Checkpoint& c = d.found.entry.checkpoint;
  BELAY_TRY(d.view, LoadState(store, c.state));
  if (!d.view.trouble.empty())
    d.trouble.push_back(StrCat("the rules of this state: ", d.view.trouble));
  d.skipped = d.view.Skipped();
  if (auto git = LoadGitRecord(store, d.view.state.git); git.ok())
    d.git = std::move(*git);
  else
    d.trouble.push_back(StrCat("the state of git: ", git.error().what));
  BELAY_TRY(PurgedSet purged, PurgedSet::Load(*root.catalog));
  if (!purged.empty())
    (void)WalkTree(d.view.state.tree, "", TreesOf(store),
                   [&](const std::string& path, const TreeEntry& entry) -> Status {
                     if (entry.kind == EntryKind::kFile && purged.Has(entry.id, c.seq))
                       d.purged.push_back(path);
                     return Ok();
                   });
  std::sort(d.purged.begin(), d.purged.end());
  if (d.found.entry.lost > 0) BELAY_OK(FindLost(store, d));
  if (!c.external.empty()) FindElsewhere(*root.catalog, d);
  BELAY_TRY(auto before, root.catalog->ListCheckpoints(
                             {.root = c.root, .before_seq = c.seq, .limit = 1}));
  ObjectId from;
  std::optional<StateView> before_rules;
  if (!before.empty()) {
    d.before = before[0].checkpoint.id.text();
    auto state = store.GetState(before[0].checkpoint.state);
    if (!state.ok()) {
      d.trouble.push_back(StrCat("the checkpoint before: ", state.error().what));
      return d;
    }
    from = state->tree;
    if (auto view = LoadState(store, before[0].checkpoint.state); view.ok())
      before_rules = std::move(*view);
  }
  auto counted =
      DiffTrees(from, d.view.state.tree, TreesOf(store),
                [&](std::string_view path, Change change) {
                  // What is left out is not deleted.
                  if (change == Change::kDeleted && IsLeftOut(d.skipped, path)) return;
                  d.changed.push_back({std::string(path), change});
                });
  if (before_rules && d.view.rules) {
    // The rules of then covered it, those of now do not: it may well be there still.
    const ContentReader contents = [&](const ObjectId& id) {
      return store.ReadContentBytes(id, kMaxPatternFile);
    };
    StateRules then(*before_rules, TreesOf(store), contents);
    StateRules now(d.view, TreesOf(store), contents);
    uint64_t deleted = 0;
    std::vector<ChangedPath*> unclear;  // was tracked, perhaps: the index is not kept
    for (ChangedPath& changed : d.changed) {
      if (changed.change != Change::kDeleted) continue;
      auto was = then.Ask(changed.path, false), is = now.Ask(changed.path, false);
      const bool not_now = is.ok() && !is->covered;
      changed.left_out = was.ok() && was->covered && not_now;
      deleted += changed.left_out ? 0 : 1;
      if (not_now && !changed.left_out) unclear.push_back(&changed);
    }
    // Who made the checkpoint saw which of them were gone, and counted.
    if (deleted == c.deleted + unclear.size())
      for (ChangedPath* changed : unclear) changed->left_out = true;
  }
  // The root directory has no entry in a tree.
  if (before_rules && before_rules->rules && d.view.rules &&
      before_rules->rules->RootEntry() != d.view.rules->RootEntry())
    d.changed.push_back({".", Change::kModified});
  if (!counted.ok()) {
    d.changed.clear();
    d.trouble.push_back(StrCat("what changed: ", counted.error().what));
  }
  std::sort(d.changed.begin(), d.changed.end(),
            [](const ChangedPath& a, const ChangedPath& b) {
              return std::tie(a.path, a.change) < std::tie(b.path, b.change);
            });
  return d;
}

// Files of rules that are not in the tree itself.
std::vector<std::string> RuleFiles(const RulesRecord& rules) {
  std::vector<std::string> names;
  for (const RulesRecord::Top& top : rules.work_trees) {
    if (top.input.global_excludes) names.push_back(top.input.global_excludes->name);
    if (top.input.info_exclude) names.push_back(top.input.info_exclude->name);
    for (const auto& above : top.input.above_root)
      if (above) names.push_back(above->name);
  }
  for (const RuleBytes& file : rules.loose_rules) names.push_back(file.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void WriteList(JsonWriter& json, std::string_view key,
               const std::vector<std::string>& list) {
  json.Key(key).BeginArray();
  for (const std::string& item : list) json.PathValue(item);
  json.EndArray();
}

// "file", "symlink", "absent"; of what is not kept, nothing.
std::string_view KindOf(const ExternalFile& file) {
  if (file.left_out != 0) return "";
  if (!file.state) return "absent";
  return file.state->kind == EntryKind::kFile ? "file" : "symlink";
}

void WriteExternal(const std::vector<ExternalFile>& external, JsonWriter& json) {
  json.Key("external").BeginArray();
  for (const ExternalFile& file : external) {
    json.BeginObject();
    json.Key("path").PathValue(file.path);
    json.Key("kind");
    if (file.left_out == 0)
      json.String(KindOf(file));
    else
      json.Null();
    json.Key("why");
    if (file.left_out != 0)
      json.String(SkipName(static_cast<Skip>(file.left_out)));
    else
      json.Null();
    json.Key("size").Uint(file.state ? file.state->size : 0);
    json.EndObject();
  }
  json.EndArray();
}

void WriteMore(const Details& d, JsonWriter& json) {
  json.Key("subagent");
  if (d.found.entry.checkpoint.subagent)
    json.PathValue(*d.found.entry.checkpoint.subagent);
  else
    json.Null();
  json.Key("compared_with");
  if (d.before)
    json.String(*d.before);
  else
    json.Null();
  json.Key("changed_paths").BeginArray();
  for (const ChangedPath& changed : d.changed) {
    json.BeginObject();
    json.Key("path").PathValue(changed.path);
    json.Key("change").String(changed.left_out ? "left_out"
                                               : ChangeName(changed.change));
    json.EndObject();
  }
  json.EndArray();
  WriteExternal(d.found.entry.checkpoint.external, json);
  WriteList(json, "purged", d.purged);
  WriteList(json, "lost_paths", d.lost);
  json.Key("rules");
  if (!d.view.rules) {
    json.Null();
  } else {
    const RulesRecord& rules = *d.view.rules;
    json.BeginObject();
    WriteList(json, "protect", rules.lists.protect);
    WriteList(json, "exclude", rules.lists.exclude);
    WriteList(json, "secret_patterns", rules.lists.secret_patterns);
    json.Key("secrets").String(rules.lists.skip_secrets ? "skip" : "local");
    json.Key("default_excludes").Bool(rules.lists.default_excludes);
    json.Key("max_file_size");
    if (rules.max_file_size == UINT64_MAX)
      json.Null();
    else
      json.Uint(rules.max_file_size);
    WriteList(json, "files", RuleFiles(rules));
    json.Key("work_trees").BeginArray();
    for (const RulesRecord::Top& top : rules.work_trees) {
      json.BeginObject();
      json.Key("path").PathValue(top.path);
      json.Key("git").Bool(top.in_git);
      json.Key("index_unknown").Bool(top.index_unknown);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  WriteList(json, "doubts",
            d.view.rules ? DoubtsOf(*d.view.rules) : std::vector<std::string>());
  WriteList(json, "trouble", d.trouble);
}

class ShowPage {
 public:
  ShowPage(Terminal& term) : term_(term) {}  // NOLINT: short-lived

  void Field(std::string_view label, std::string_view value) {
    const size_t at = 2 + kLabel;
    term_.Out(StrCat("  ", Pad(label, kLabel),
                     Wrap(EscapeText(value), at, at, kColumns), "\n"));
  }
  void Maybe(std::string_view label, const std::optional<std::string>& value) {
    if (value) Field(label, std::string_view(*value));
  }
  // `lines` under a title; a long list only with -v.
  void List(std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    term_.Out(StrCat(title, "\n"));
    const size_t shown =
        term_.verbose() ? lines.size() : std::min(lines.size(), kLinesShown);
    for (size_t i = 0; i < shown; ++i) term_.Out(StrCat("  ", lines[i], "\n"));
    if (shown < lines.size())
      term_.Out(StrCat("  ... and ", std::to_string(lines.size() - shown),
                       " more; all of them with -v\n"));
  }

 private:
  static constexpr size_t kLabel = 13;
  Terminal& term_;
};

std::string SecondsText(int64_t ms) {
  std::string utc = FormatUtcMillis(ms);
  return StrCat(LocalMinute(ms), " (", utc, ")");
}

void ShowText(Terminal& term, const Details& d, const std::string& root_path,
              bool anchored) {
  const CatalogEntry& entry = d.found.entry;
  const Checkpoint& c = entry.checkpoint;
  ShowPage page(term);
  term.Out(StrCat(term.Paint(Style::kBold, c.id.text()), "\n"));
  page.Field("number", std::to_string(d.found.number));
  page.Field("kind", CheckpointKindName(c.kind));
  page.Maybe("name", c.name);
  page.Maybe("note", c.note);
  page.Field("description", c.description);
  page.Field("made", SecondsText(c.made_ms));
  page.Field("root", root_path);
  page.Maybe("session", c.session);
  page.Maybe("agent", c.agent);
  page.Maybe("subagent", c.subagent);
  if (c.turn) page.Field("turn", std::to_string(*c.turn));
  // The beginning; all of it with -v.
  constexpr size_t kPromptShown = 4 * kColumns;
  if (c.prompt)
    page.Field("prompt", term.verbose() ? *c.prompt : Fit(*c.prompt, kPromptShown));
  page.Maybe("message", c.message_id);
  if (c.tool_name || c.tool_use_id)
    page.Field("tool",
               StrCat(c.tool_name.value_or("?"), " ", c.tool_use_id.value_or("")));
  for (const auto& [key, value] : c.meta) page.Field("meta", StrCat(key, "=", value));
  page.Field("holds", StrCat(CountText(c.files, "file"), ", ", SizeText(c.bytes), "; ",
                             SizeText(c.stored_bytes), " were new to the store"));
  std::string marks;
  if (entry.pinned) marks += "pinned ";
  if (entry.health) marks += *entry.health == Health::kPass ? "good " : "bad ";
  if (c.partial) marks += "partial: it does not hold everything ";
  if (entry.lost > 0)
    marks += d.lost.empty() ? "incomplete: a part was lost by damage "
                            : "incomplete: what was lost by damage is listed below ";
  if (!marks.empty()) page.Field("marks", marks);
  for (const GitRepoRecord& repo : d.git.repositories)
    page.Field(repo.path.empty() ? "git" : "nested git", GitText(repo));
  if (anchored) page.Field("git ref", StrCat(kAnchorRefs, c.id.text()));
  if (d.staged.paths && !d.staged.paths->empty())
    page.Field("staged", CountText(d.staged.paths->size(), "path"));
  if (d.view.rules) {
    const RulesRecord& rules = *d.view.rules;
    std::string text = StrCat(
        "secrets ", rules.lists.skip_secrets ? "left out" : "kept",
        ", default excludes ", rules.lists.default_excludes ? "on" : "off",
        ", files up to ",
        rules.max_file_size == UINT64_MAX ? "any size" : SizeText(rules.max_file_size));
    page.Field("rules", text);
    for (const std::string& p : rules.lists.protect) page.Field("protect", p);
    for (const std::string& p : rules.lists.exclude) page.Field("exclude", p);
    for (const std::string& name : RuleFiles(rules)) page.Field("rule file", name);
    for (const RulesRecord::Top& top : rules.work_trees)
      if (!top.path.empty() && d.git.Find(top.path) == nullptr)
        page.Field("nested git", top.path);
    for (const std::string& doubt : DoubtsOf(rules)) page.Field("doubt", doubt);
  }
  std::vector<std::string> lines;
  for (const ChangedPath& changed : d.changed)
    lines.push_back(
        StrCat(Pad(changed.left_out ? "left out" : ChangeName(changed.change), 10),
               FitPath(EscapeForDisplay(changed.path), kColumns - 12)));
  page.List(d.before ? StrCat("changed since ", d.before->substr(0, 7), ":")
                     : std::string("the first of this root; it holds:"),
            lines);
  if (lines.empty() && d.before && d.trouble.empty())
    term.Out(StrCat("nothing changed since ", d.before->substr(0, 7), "\n"));
  lines.clear();
  std::map<std::string, std::vector<std::string>> held;  // by the root it is in
  for (const ExternalFile& file : c.external) {
    auto root = d.elsewhere.find(file.path);
    auto& list = root == d.elsewhere.end() ? lines : held[root->second];
    list.push_back(
        StrCat(Pad(file.left_out != 0 ? SkipName(static_cast<Skip>(file.left_out))
                                      : KindOf(file),
                   14),
               FitPath(EscapeForDisplay(file.path), kColumns - 16)));
  }
  page.List("outside the project, as it was (rollback --external-files):", lines);
  for (const auto& [root, list] : held)
    page.List(StrCat("outside the project, as it was; protected by itself now "
                     "(--external-files after: belay off ",
                     ShellWord(root), "):"),
              list);
  lines.clear();
  for (const SkippedPath& skipped : d.skipped)
    if (skipped.why == Skip::kChanging)
      lines.push_back(FitPath(EscapeForDisplay(skipped.path), kColumns - 2));
  page.List("changed while being read, kept as last read:", lines);
  lines.clear();
  for (const SkippedPath& skipped : d.skipped)
    if (skipped.why == Skip::kNoAttributes)
      lines.push_back(
          StrCat(FitPath(EscapeForDisplay(skipped.path), kColumns - 3), "/"));
  page.List("held, but extended attributes could not be read:", lines);
  lines.clear();
  for (const std::string& path : d.purged)
    lines.push_back(FitPath(EscapeForDisplay(path), kColumns - 2));
  page.List("purged, and no longer held:", lines);
  lines.clear();
  for (const std::string& path : d.lost)
    lines.push_back(FitPath(EscapeForDisplay(path), kColumns - 2));
  page.List("lost by damage, and given up by belay repair --accept-loss:", lines);
  lines.clear();
  for (const SkippedPath& skipped : d.skipped)
    if (!IsHeld(skipped.why))
      lines.push_back(StrCat(Pad(SkipName(skipped.why), 14),
                             FitPath(EscapeForDisplay(skipped.path), kColumns - 16)));
  page.List("left out, besides what the rules leave out:", lines);
}

}  // namespace

ExitCode CmdShow(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  const auto session = ctx.args.value("--session");
  if (words.empty() && !session)
    return ctx.term.FailUsage("show needs REF, or --session ID");
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  // A session knows where it worked.
  if (!root.ok() && root.error().code == Errc::kRefused)
    if (auto of =
            OpenRootOfSession(ctx, NeedsRoot::kKnown, session ? *session : words[0]);
        of.ok())
      root = std::move(of);
  if (!root.ok()) return ctx.term.Fail(root.error());
  if (words.empty()) return ShowSession(ctx, *root, std::string(*session));
  auto found = FindCheckpoint(ctx, *root, words[0]);
  // A word that names no checkpoint may be a session.
  if (!found.ok() && found.error().code == Errc::kNotFound && !session)
    if (auto named = FindSessionHere(*root, words[0]); named.ok())
      return ShowSession(ctx, *root, *named);
  if (!found.ok()) return ctx.term.Fail(found.error());
  auto details = Collect(*root, std::move(*found));
  if (!details.ok()) return ctx.term.Fail(details.error());
  if (const GitRepoRecord* git = details->git.Find(""); git != nullptr) {
    auto repository = OpenRepositoryAt(ctx.fs, root->path, ctx.env.git);
    if (repository.ok() && *repository)
      details->staged =
          LookAtStaged(root->store(), **repository, *git, details->view.state.tree,
                       GitPlacesOf(ctx.env).ask);
  }
  for (const std::string& trouble : details->trouble) ctx.term.Warn(trouble);
  const auto anchored = AnchoredIn(ctx.fs, root->path, GitPlacesOf(ctx.env));
  if (ctx.term.json()) {
    JsonWriter json;
    auto taken_back =
        TakenBackBy(*root->catalog, root->root.id, details->found.entry.checkpoint.seq);
    if (!taken_back.ok()) return ctx.term.Fail(taken_back.error());
    WriteCheckpoint(
        details->found.entry, details->found.number, root->root.path,
        {details->view.state.tree, details->skipped, &details->git, &details->staged,
         &anchored},
        json, [&](JsonWriter& more) { WriteMore(*details, more); }, *taken_back);
    ctx.term.OutJson(json);
  } else {
    ShowText(ctx.term, *details, root->root.path,
             anchored.contains(details->found.entry.checkpoint.id.text()));
  }
  return details->trouble.empty() ? ExitCode::kOk : ExitCode::kDamaged;
}

}  // namespace belay
