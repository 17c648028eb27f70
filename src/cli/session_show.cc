#include "cli/session_show.h"

#include <algorithm>

#include "agent/conversation.h"
#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/text.h"

namespace belay {

namespace {

// Of a turn's messages; all with -v.
constexpr size_t kMessagesShown = 6;

std::string OneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out += blank ? ' ' : c;
  }
  return EscapeText(out);
}

void WritePoints(const std::vector<SessionTurn::Point>& points, JsonWriter& json) {
  json.Key("checkpoints").BeginArray();
  for (const SessionTurn::Point& point : points) {
    json.BeginObject();
    json.Key("id").String(point.row.id.text());
    json.Key("number").Uint(point.number);
    json.Key("kind").String(CheckpointKindName(point.row.kind));
    json.Key("created_at").String(FormatUtcMillis(point.row.made_ms));
    json.Key("changed").Uint(point.row.changed);
    json.Key("pinned").Bool(point.row.pinned);
    json.Key("taken_back_by");
    if (point.taken_back_by)
      json.String(point.taken_back_by->text());
    else
      json.Null();
    json.EndObject();
  }
  json.EndArray();
}

void WriteTurn(const SessionTurn& turn, JsonWriter& json) {
  json.BeginObject();
  json.Key("turn").Uint(turn.turn);
  WriteTextOrNull(json, "session",
                  turn.session.empty() ? std::nullopt : std::optional(turn.session));
  json.Key("prompt").PathValue(turn.prompt);
  WriteTextOrNull(json, "message_id", turn.anchor);
  WriteTextOrNull(
      json, "at",
      turn.made_ms ? std::optional(FormatUtcMillis(*turn.made_ms)) : std::nullopt);
  json.Key("left_by_agent").Bool(turn.left);
  json.Key("taken_back_by");
  if (turn.taken_back_by)
    json.String(turn.taken_back_by->text());
  else
    json.Null();
  json.Key("files_taken_back_by");
  if (turn.files_taken_back_by)
    json.String(turn.files_taken_back_by->text());
  else
    json.Null();
  WriteTextOrNull(json, "taken_back_from",
                  turn.cut ? std::optional(turn.cut->message) : std::nullopt);
  WritePoints(turn.checkpoints, json);
  json.Key("messages").BeginArray();
  for (size_t i = 0; i < turn.messages.size(); ++i) {
    const TranscriptMessage& message = turn.messages[i];
    json.BeginObject();
    json.Key("role").PathValue(message.role);
    json.Key("id").PathValue(message.id);
    json.Key("text").PathValue(message.text);
    json.Key("left_by_agent").Bool(message.dead);
    json.Key("taken_back").Bool(turn.taken_back_by || (turn.cut && i >= turn.cut->at));
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteView(const SessionView& view, const std::string& root, JsonWriter& json) {
  json.BeginObject();
  json.Key("root").PathValue(root);
  json.Key("session").BeginObject();
  WriteSession(view.summary, view.state, view.goes_on, json);
  json.EndObject();
  json.Key("lineage").BeginArray();
  for (size_t i = 1; i < view.lineage.size(); ++i) {
    json.BeginObject();
    json.Key("session").PathValue(view.lineage[i].session);
    json.Key("turns").Uint(view.lineage[i].turns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("transcript");
  if (view.transcript) {
    json.BeginObject();
    json.Key("path");
    if (view.transcript->path.empty())  // told by a host
      json.Null();
    else
      json.PathValue(view.transcript->path);
    json.Key("bytes").Uint(view.transcript->bytes);
    json.Key("copy").Bool(view.transcript->is_copy);
    json.EndObject();
  } else {
    json.Null();
  }
  WriteTextOrNull(json, "trouble",
                  view.trouble.empty() ? std::nullopt : std::optional(view.trouble));
  json.Key("messages_left_out").Uint(view.messages_left_out);
  json.Key("start").BeginObject();
  WritePoints(view.start, json);
  json.EndObject();
  json.Key("turns").BeginArray();
  for (const SessionTurn& turn : view.turns) WriteTurn(turn, json);
  json.EndArray().EndObject();
}

class SessionPage {
 public:
  SessionPage(Terminal& term, const SessionView& view) : term_(term), view_(view) {}

  void Show() {
    Head();
    if (!view_.start.empty()) {
      term_.Out("before the first turn\n");
      Points(view_.start);
    }
    std::string of = view_.summary.id;
    for (const SessionTurn& turn : view_.turns) {
      if (!turn.session.empty() && turn.session != of) {
        of = turn.session;
        Line(of == view_.summary.id ? std::string("of this session")
                                    : StrCat("of session ", EscapeText(of)));
      }
      Turn(turn);
    }
    if (view_.messages_left_out > 0)
      Line(StrCat(CountText(view_.messages_left_out, "older message"),
                  " not shown: the conversation is very long"));
  }

 private:
  void Line(std::string_view text) {
    term_.Out(StrCat(Fit(text, term_.columns()), "\n"));
  }
  void Field(std::string_view label, std::string_view value) {
    Line(StrCat("  ", Pad(label, 13), value));
  }

  void Head() {
    const SessionSummary& s = view_.summary;
    term_.Out(StrCat(term_.Paint(Style::kBold, Fit(StrCat("session ", EscapeText(s.id)),
                                                   term_.columns())),
                     "\n"));
    if (s.agent) Field("agent", EscapeText(*s.agent));
    Field("state", SessionStateName(view_.state));
    Field("since", StrCat(LocalMinute(s.first_ms), " to ", LocalMinute(s.last_ms)));
    Field("holds", SessionFacts(s));
    for (const std::string& path : s.roots)
      Field("root", FitPath(EscapeForDisplay(path), term_.columns() - 15));
    if (const std::string from = LineageText(s); !from.empty()) Field("lineage", from);
    if (const std::string on = GoesOnText(s, view_.goes_on); !on.empty())
      Field("goes on", on.substr(std::string_view("goes on ").size()));
    for (size_t i = 2; i < view_.lineage.size(); ++i)
      Field("", StrCat("before that ", EscapeText(view_.lineage[i].session),
                       " until turn ", std::to_string(view_.lineage[i].turns)));
    if (view_.transcript && view_.transcript->path.empty())
      Field("messages", "as the host told them");
    else if (view_.transcript)
      Field(view_.transcript->is_copy ? "kept copy of" : "transcript",
            FitPath(EscapeForDisplay(view_.transcript->path), term_.columns() - 15));
    if (!view_.trouble.empty())
      Field("messages", StrCat("none: ", EscapeText(view_.trouble)));
  }

  void Turn(const SessionTurn& turn) {
    std::string line = turn.turn ? StrCat("turn ", std::to_string(*turn.turn))
                                 : std::string("not recorded");
    if (turn.made_ms) line += StrCat("  ", LocalMinute(*turn.made_ms));
    const std::string_view mark = turn.taken_back_by         ? "  taken back"
                                  : turn.cut                 ? "  taken back in part"
                                  : turn.left                ? "  left by the agent"
                                  : turn.files_taken_back_by ? "  files taken back"
                                                             : "";
    const size_t room = term_.columns() - line.size() - mark.size() - 2;
    line += StrCat("  ", Fit(OneLine(turn.prompt), room), mark);
    term_.Out(StrCat(
        term_.Paint(turn.taken_back_by || turn.left ? Style::kDim : Style::kBold, line),
        "\n"));
    const size_t shown = term_.verbose()
                             ? turn.messages.size()
                             : std::min(turn.messages.size(), kMessagesShown);
    // The last ones tell how it ended.
    if (shown < turn.messages.size())
      Line(StrCat("    ", CountText(turn.messages.size() - shown, "earlier message"),
                  ": -v"));
    const size_t first = turn.messages.size() - shown;
    for (size_t i = first; i < turn.messages.size(); ++i) {
      const TranscriptMessage& message = turn.messages[i];
      if (turn.cut && !turn.taken_back_by && i == std::max(first, turn.cut->at))
        Line("    taken back:");
      const std::string text = OneLine(message.text);
      Line(StrCat("    ", Pad(EscapeText(message.role), 10), " ",
                  text.empty() ? "(no text)" : text));
    }
    Points(turn.checkpoints);
  }

  // "  * abc1234  3 checkpoints, 2 files changed"
  void Points(const std::vector<SessionTurn::Point>& points) {
    if (points.empty()) return;
    if (!term_.verbose() && points.size() > 1) {
      uint64_t changed = 0, dirs = 0;
      for (const SessionTurn::Point& point : points) {
        changed += point.row.changed;
        dirs += point.row.changed_dirs;
      }
      Line(StrCat(
          "  * ", points[0].row.id.text().substr(0, 7), "  ",
          CountText(points.size(), "checkpoint"),
          changed == 0 ? std::string() : StrCat(", ", ChangedText(changed, dirs)),
          PointMark(points[0])));
      return;
    }
    for (const SessionTurn::Point& point : points)
      Line(StrCat("  * ", point.row.id.text().substr(0, 7), "  ",
                  LocalMinute(point.row.made_ms), "  ",
                  point.row.changed == 0
                      ? std::string("nothing changed")
                      : ChangedText(point.row.changed, point.row.changed_dirs),
                  PointMark(point)));
  }
  static std::string PointMark(const SessionTurn::Point& point) {
    return point.taken_back_by
               ? StrCat(", taken back by ", point.taken_back_by->text().substr(0, 7))
               : std::string();
  }

  Terminal& term_;
  const SessionView& view_;
};

}  // namespace

void WriteSession(const SessionSummary& session, SessionState state,
                  const std::optional<std::string>& goes_on, JsonWriter& json) {
  auto text = [&](std::string_view key, const std::optional<std::string>& value) {
    WriteTextOrNull(json, key, value);
  };
  json.Key("id").PathValue(session.id);
  text("agent", session.agent);
  json.Key("state").String(SessionStateName(state));
  text("parent", session.parent);
  text("goes_on", goes_on);
  json.Key("roots").BeginArray();
  for (const std::string& root : session.roots) json.PathValue(root);
  json.EndArray();
  json.Key("first_at").String(FormatUtcMillis(session.first_ms));
  json.Key("last_at").String(FormatUtcMillis(session.last_ms));
  json.Key("checkpoints").Uint(session.checkpoints);
  json.Key("pinned").Uint(session.pinned);
  json.Key("turns").Uint(session.turns);
  json.Key("inherited_turns").Uint(session.inherited);
  json.Key("is_subagent").Bool(session.is_subagent);
  json.Key("subagents").BeginArray();
  for (const SessionSummary::Subagent& subagent : session.subagents) {
    json.BeginObject();
    json.Key("id").PathValue(subagent.id);
    text("type", subagent.type);
    json.EndObject();
  }
  json.EndArray();
  json.Key("transcript_bytes").Uint(session.transcript_bytes);
  json.Key("file_bytes").Uint(session.file_bytes);
}

std::string SessionFacts(const SessionSummary& session) {
  const uint64_t turns = session.turns + session.inherited;
  std::string out = turns == 0 ? "" : CountText(turns, "turn") + ", ";
  out += CountText(session.checkpoints, "checkpoint");
  if (session.pinned > 0)
    out += StrCat(" (", std::to_string(session.pinned), " pinned)");
  if (!session.subagents.empty())
    out += StrCat(", ", CountText(session.subagents.size(), "subagent"));
  if (const uint64_t bytes = session.file_bytes.value_or(session.transcript_bytes);
      bytes > 0)
    out += StrCat(", conversation ", SizeText(bytes));
  return out;
}

std::string LineageText(const SessionSummary& session) {
  if (!session.parent) return {};
  if (session.is_subagent) return StrCat("subagent of ", EscapeText(*session.parent));
  return StrCat("from ", EscapeText(*session.parent),
                session.inherited == 0
                    ? std::string()
                    : StrCat(" after turn ", std::to_string(session.inherited)));
}

std::string GoesOnText(const SessionSummary& session,
                       const std::optional<std::string>& goes_on) {
  if (!goes_on) return "goes on anew: nothing is left of it";
  return *goes_on == session.id ? std::string()
                                : StrCat("goes on as ", EscapeText(*goes_on));
}

ExitCode ShowSession(CommandContext& ctx, OpenedRoot& root,
                     const std::string& session) {
  auto hold = root.store().HoldForReading();
  if (!hold.ok()) return ctx.term.Fail(hold.error());
  auto view = LookAtSession(root.store(), *root.catalog, root.root, session);
  if (!view.ok()) return ctx.term.Fail(view.error());
  if (ctx.term.json()) {
    JsonWriter json;
    WriteView(*view, root.root.path, json);
    ctx.term.OutJson(json);
  } else {
    SessionPage(ctx.term, *view).Show();
  }
  return ExitCode::kOk;
}

}  // namespace belay
