#include <algorithm>
#include <unordered_map>

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "commits/anchors.h"
#include "core/annotate.h"
#include "core/sessions.h"
#include "store/search_fold.h"

namespace belay {

namespace {

constexpr uint64_t kDefaultLimit = 20;
constexpr size_t kPathsShown = 3;

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80;
}

// The plain words of what was asked for, as full text takes them, to show where they
// are.
std::vector<std::string> PlainWords(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  auto end = [&] {
    if (!word.empty()) out.push_back(std::exchange(word, {}));
  };
  for (char c : FoldForSearch(text)) {
    if (IsWordByte(c))
      word += c;
    else
      end();
  }
  end();
  return out;
}

// Without a plain word in it: all but blanks and quotes.
std::vector<std::string> Symbols(std::string_view text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c > ' ' && c != '"' && c != 0x7f)
      out.back() += c;
    else if (!out.back().empty())
      out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

// How many of the words begin one in `text`; what is no plain word may be anywhere.
size_t Hits(const std::vector<std::string>& words, std::string_view text) {
  const std::string folded = FoldForSearch(text);
  auto is_plain = [](char c) {
    return IsWordByte(c) && static_cast<unsigned char>(c) < 0x80;
  };
  return static_cast<size_t>(
      std::count_if(words.begin(), words.end(), [&](const std::string& word) {
        const bool anywhere = !std::all_of(word.begin(), word.end(), is_plain);
        for (size_t at = folded.find(word); at != std::string::npos;
             at = folded.find(word, at + 1))
          if (anywhere || at == 0 || !IsWordByte(folded[at - 1])) return true;
        return false;
      }));
}

struct Match {
  std::vector<std::string_view> fields;  // "name", "note", ...
  std::vector<std::string> paths;        // those with most of the words
};

Match WhereIn(const Checkpoint& c, const std::vector<std::string>& words) {
  Match out;
  auto look = [&](std::string_view field, std::string_view text) {
    if (Hits(words, text) > 0) out.fields.push_back(field);
  };
  look("name", c.name.value_or(""));
  look("note", c.note.value_or(""));
  look("description", c.description);
  look("prompt", c.prompt.value_or(""));
  size_t most = 1;
  for (const std::string& path : c.paths) {
    const size_t hits = Hits(words, path);
    if (hits < most) continue;
    if (hits > most) out.paths.clear();
    most = hits;
    out.paths.push_back(path);
  }
  if (!out.paths.empty()) out.fields.push_back("paths");
  return out;
}

}  // namespace

ExitCode CmdSearch(CommandContext& ctx) {
  auto limit = LimitOf(ctx.args);
  if (!limit.ok()) return ctx.term.FailUsage(limit.error().what);
  const uint64_t wanted = limit->value_or(kDefaultLimit);
  std::string query;
  for (std::string_view word : ctx.args.positional()) {
    if (!query.empty()) query += ' ';
    query += word;
  }
  std::optional<std::string> session;
  if (auto given = ctx.args.value("--session")) session = std::string(*given);
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  auto found = root->catalog->Search(
      root->root.id, query,
      static_cast<size_t>(std::min<uint64_t>(wanted, UINT32_MAX)) + 1, session);
  if (!found.ok()) {
    if (found.error().code == Errc::kInvalid)
      return ctx.term.FailUsage(found.error().what);
    return ctx.term.Fail(found.error());
  }
  const bool more = found->size() > wanted;
  if (more) found->resize(static_cast<size_t>(wanted));

  // Numbers are places in the list.
  std::unordered_map<uint64_t, uint64_t> numbers;
  History history;
  if (!found->empty()) {
    auto outline = root->catalog->Outline(root->root.id);
    if (!outline.ok()) return ctx.term.Fail(outline.error());
    auto operations = ListOperations(*root->catalog, root->root.id);
    if (!operations.ok()) return ctx.term.Fail(operations.error());
    auto traced = LoadHistory(*root->catalog, root->root.id, *outline, *operations);
    if (!traced.ok()) return ctx.term.Fail(traced.error());
    history = std::move(*traced);
    for (const CatalogEntry& entry : *found) {
      auto at = std::lower_bound(
          outline->begin(), outline->end(), entry.checkpoint.seq,
          [](const CheckpointRow& row, uint64_t seq) { return row.seq > seq; });
      numbers[entry.checkpoint.seq] = static_cast<uint64_t>(at - outline->begin()) + 1;
    }
  }
  if (session && found->empty())
    if (Status known = CheckSession(*root->catalog, root->root.id, *session);
        !known.ok())
      return ctx.term.Fail(known.error());
  std::vector<std::string> words = PlainWords(query);
  if (words.empty()) words = Symbols(query);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(root->root.path);
    json.Key("query").PathValue(query);
    json.Key("more").Bool(more);
    json.Key("checkpoints").BeginArray();
    StateFacts facts(root->store(),
                     AnchoredIn(ctx.fs, root->path, GitPlacesOf(ctx.env)));
    for (const CatalogEntry& entry : *found) {
      const Checkpoint& c = entry.checkpoint;
      const Match match = WhereIn(c, words);
      const StateParts state = facts.Of(c.state);
      WriteCheckpoint(
          entry, numbers[c.seq], root->root.path, state, json,
          [&](JsonWriter& out) {
            out.Key("matched").BeginObject();
            out.Key("fields").BeginArray();
            for (std::string_view field : match.fields) out.String(field);
            out.EndArray();
            out.Key("paths").BeginArray();
            for (const std::string& path : match.paths) out.PathValue(path);
            out.EndArray().EndObject();
          },
          history.TakenBackBy(c.seq));
    }
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  if (found->empty()) {
    if (words.empty())
      ctx.term.Say("Nothing to look for: give words.");
    else
      ctx.term.Say(StrCat("No checkpoint mentions that. (Of each, the first ",
                          std::to_string(kMaxPathsKept),
                          " changed paths are looked through.)"));
    return ExitCode::kOk;
  }
  size_t digits = 1;
  for (const auto& [seq, number] : numbers)
    digits = std::max(digits, std::to_string(number).size());
  for (const CatalogEntry& entry : *found) {
    const Checkpoint& c = entry.checkpoint;
    std::string number = StrCat(std::to_string(numbers[c.seq]), ".");
    number.insert(0, digits + 1 - number.size(), ' ');
    std::string marks;
    if (entry.pinned) marks += "  pinned";
    if (entry.lost > 0) marks += "  incomplete";
    if (history.TakenBackBy(c.seq)) marks += "  taken back";
    ctx.term.Out(StrCat(number, " ",
                        CheckpointLine(entry, kColumns - digits - 2 - marks.size()),
                        marks, "\n"));
    // What the line itself does not show.
    const std::string indent(digits + 4, ' ');
    const Match match = WhereIn(c, words);
    auto line = [&](std::string_view label, std::string_view text) {
      std::string shown = StrCat(indent, label, ": ", EscapeText(text));
      ctx.term.Out(StrCat(Fit(shown, kColumns), "\n"));
    };
    for (std::string_view field : match.fields) {
      if (field == "note") line(field, *c.note);
      if (field == "prompt") line(field, *c.prompt);
      if (field == "description" && c.name) line(field, c.description);
    }
    for (size_t i = 0; i < match.paths.size() && i < kPathsShown; ++i)
      ctx.term.Out(StrCat(
          indent, FitPath(EscapeForDisplay(match.paths[i]), kColumns - indent.size()),
          "\n"));
    if (match.paths.size() > kPathsShown)
      ctx.term.Out(StrCat(indent, "and ",
                          CountText(match.paths.size() - kPathsShown, "more path"),
                          "\n"));
  }
  if (more)
    ctx.term.Say(
        StrCat("There are more: belay search -n ", std::to_string(wanted * 5), " ..."));
  return ExitCode::kOk;
}

}  // namespace belay
