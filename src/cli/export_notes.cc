#include "cli/export_notes.h"

#include <algorithm>

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/open_root.h"
#include "cli/text.h"

namespace belay {

namespace {

struct Noted {
  CatalogEntry entry;
  uint64_t number = 0;
};

bool IsAnnotated(const CatalogEntry& entry) {
  const Checkpoint& c = entry.checkpoint;
  return c.name || c.note || entry.pinned || entry.health || !c.meta.empty();
}

// Oldest first: a story.
Result<std::vector<Noted>> Collect(OpenedRoot& root,
                                   const std::optional<std::string>& session) {
  BELAY_TRY(auto entries, root.catalog->ListCheckpoints({.root = root.root.id}));
  if (session && std::ranges::none_of(entries, [&](const CatalogEntry& entry) {
        return entry.checkpoint.session == *session;
      }))
    return Error(Errc::kNotFound,
                 StrCat("no checkpoint of session '", EscapeText(*session), "' here"))
        .WithHint("see them with: belay sessions");
  std::vector<Noted> out;
  for (size_t i = entries.size(); i-- > 0;)
    if (IsAnnotated(entries[i]) &&
        (!session || entries[i].checkpoint.session == *session))
      out.push_back({std::move(entries[i]), i + 1});
  return out;
}

void WriteJson(const OpenedRoot& root, const std::optional<std::string>& session,
               const std::vector<Noted>& notes, JsonWriter& json) {
  auto text = [&](std::string_view key, const std::optional<std::string>& value) {
    WriteTextOrNull(json, key, value);
  };
  json.BeginObject();
  json.Key("root").PathValue(root.root.path);
  text("session", session);
  json.Key("notes").BeginArray();
  for (const Noted& noted : notes) {
    const Checkpoint& c = noted.entry.checkpoint;
    json.BeginObject();
    json.Key("id").String(c.id.text());
    json.Key("seq").Uint(c.seq);
    json.Key("number").Uint(noted.number);
    json.Key("kind").String(CheckpointKindName(c.kind));
    json.Key("created_at").String(FormatUtcMillis(c.made_ms));
    text("name", c.name);
    text("note", c.note);
    json.Key("pinned").Bool(noted.entry.pinned);
    json.Key("health");
    if (noted.entry.health)
      json.String(*noted.entry.health == Health::kPass ? "pass" : "fail");
    else
      json.Null();
    WriteMeta(json, c.meta);
    json.Key("description").PathValue(c.description);
    text("session", c.session);
    text("agent", c.agent);
    json.Key("turn").Uint(c.turn);
    text("prompt", c.prompt);
    text("message_id", c.message_id);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

// Text that means only itself in Markdown, and in the HTML made of it, on one line.
std::string Markdown(std::string_view text) {
  std::string out;
  // Only at the beginning of a line: headings, lists, quotations, rules.
  bool beginning = true;
  for (char c : EscapeText(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      const std::string_view special = beginning ? "\\`*_[]|~#+->=.)" : "\\`*_[]|~";
      if (special.find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    // "12." and "12)" begin a list as well.
    beginning = beginning && (c == ' ' || (c >= '0' && c <= '9'));
  }
  return out;
}

// The same with its lines kept, as a quotation.
std::string Quotation(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out += line.empty() ? ">\n" : StrCat("> ", Markdown(line), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string MarkdownText(const OpenedRoot& root, const std::vector<Noted>& notes) {
  std::string out = StrCat("# Notes on ", Markdown(root.root.path), "\n");
  if (notes.empty()) out += "\nNone yet.\n";
  std::optional<std::optional<std::string>> session;  // of the section we are in
  for (const Noted& noted : notes) {
    const Checkpoint& c = noted.entry.checkpoint;
    if (!session || *session != c.session) {
      // Without sessions there is nothing to tell apart.
      if (c.session)
        out += StrCat("\n## Session ", Markdown(*c.session),
                      c.agent ? StrCat(" (", Markdown(*c.agent), ")") : "", "\n");
      else if (session)
        out += "\n## Without a session\n";
      session = c.session;
    }
    out += StrCat("\n### ", Markdown(CheckpointTitle(c)), "\n\n");
    out += StrCat(LocalMinute(c.made_ms), ", ", CheckpointKindName(c.kind), ", `",
                  c.id.text(), "`");
    if (c.turn) out += StrCat(", turn ", std::to_string(*c.turn));
    if (noted.entry.pinned) out += ", pinned";
    if (noted.entry.health)
      out += *noted.entry.health == Health::kPass ? ", good" : ", bad";
    out += "\n";
    if (c.name && !c.description.empty())
      out += StrCat("\n", Markdown(c.description), "\n");
    if (c.note) out += StrCat("\n", Quotation(*c.note));
    if (!c.meta.empty()) out += "\n";
    for (const auto& [key, value] : c.meta)
      out += StrCat("- ", Markdown(key), ": ", Markdown(value), "\n");
  }
  return out;
}

}  // namespace

ExitCode ExportNotes(CommandContext& ctx) {
  if (!ctx.args.positional().empty())
    return ctx.term.FailUsage("--notes takes no REF: it is about all of them");
  const auto format = ctx.args.value("--format");
  const bool as_json = format ? *format == "json" : ctx.term.json();
  if (ctx.term.json() && !as_json)
    return ctx.term.FailUsage("--json and --format md exclude each other");
  std::optional<std::string> session;
  if (auto given = ctx.args.value("--session")) session = std::string(*given);
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  auto notes = Collect(*root, session);
  if (!notes.ok()) return ctx.term.Fail(notes.error());
  std::string text;
  if (as_json) {
    JsonWriter json;
    WriteJson(*root, session, *notes, json);
    text = json.Take() + "\n";
  } else {
    text = MarkdownText(*root, *notes);
  }
  const auto file = ctx.args.value("--output");
  if (!file || *file == "-") {
    ctx.term.Out(text);
    return ExitCode::kOk;
  }
  auto path = ctx.env.Resolve(*file);
  if (!path.ok()) return ctx.term.Fail(path.error());
  auto written = [&]() -> Status {
    const std::string& bytes = path->bytes();
    BELAY_TRY(Name name, Name::Parse(bytes.substr(bytes.rfind('/') + 1)));
    BELAY_TRY(Fd dir, ctx.fs.OpenDir(path->parent()));
    if (auto there = ctx.fs.StatAt(dir, name);
        there.ok() && (!ctx.args.has("--force") || there->type != FileType::kRegular))
      return Error(Errc::kExists, StrCat(EscapeForDisplay(*file), " is there already"))
          .WithHint("give another name, or --force to replace a file");
    return ReplaceFile(ctx.fs, dir, name, AsBytes(text));
  }();
  if (!written.ok()) return ctx.term.Fail(written.error());
  ctx.term.WorkIsDone();
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("file").PathValue(path->bytes());
    json.Key("notes").Uint(notes->size());
    json.EndObject();
    ctx.term.OutJson(json);
  } else {
    ctx.term.Say(StrCat(CountText(notes->size(), "checkpoint"),
                        " with notes: ", EscapeForDisplay(path->bytes())));
  }
  return ExitCode::kOk;
}

}  // namespace belay
