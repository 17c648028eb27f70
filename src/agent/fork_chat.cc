#include "agent/fork_chat.h"

#include <algorithm>

#include "agent/opencode_copy.h"
#include "agent/referred.h"
#include "agent/rewind_internal.h"
#include "agent/turn_match.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/roots.h"
#include "restore/fork_note.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::u16string AsUtf16(std::string_view text) {
  std::u16string out;
  for (size_t at = 0; at < text.size();) {
    char32_t code = 0;
    const size_t bytes = DecodeUtf8(text.substr(at), code);
    if (bytes == 0) code = 0xfffd;
    const bool pair = code > 0xffff && !BELAY_MUTANT("a-dash-for-a-letter");
    if (pair) out += static_cast<char16_t>(0xd7c0 + (code >> 10));
    out += static_cast<char16_t>(pair ? 0xdc00 + (code & 0x3ff) : code);
    at += std::max<size_t>(bytes, 1);
  }
  return out;
}

// What Claude Code puts behind a name that it shortens: 31 times what came before, and
// the next unit, as 32 bits with a sign; without the sign, in base 36.
std::string HashOfPath(std::u16string_view path) {
  uint32_t hash = 0;
  for (const char16_t unit : path) hash = hash * 31 + unit;
  uint32_t left = hash >> 31 == 0 ? hash : 0 - hash;
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[left % 36]);
    left /= 36;
  } while (left > 0);
  return digits;
}

// What Claude Code and Qwen Code call the directory of a project: a dash for each unit
// of UTF-16 that is no letter or digit of ASCII. Claude Code (2.1.325) shortens what is
// longer than 200 of them; what Qwen Code does is not known.
std::string Dashed(AgentKind agent, std::string_view cwd) {
  constexpr size_t kLongest = 200;
  const std::u16string path = AsUtf16(cwd);
  std::string out;
  for (const char16_t unit : path)
    out +=
        unit < 0x80 && IsAlnum(static_cast<char>(unit)) ? static_cast<char>(unit) : '-';
  if (agent == AgentKind::kClaude && out.size() > kLongest &&
      !BELAY_MUTANT("long-names-of-projects-are-whole"))
    out = out.substr(0, kLongest) + "-" + HashOfPath(path);
  return out;
}

// What Gemini CLI would like to call it.
std::string Slug(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char lower = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    if (IsAlnum(lower))
      out += lower;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out.empty() ? "project" : out;
}

Name Marker() { return Name::Literal(".project_root"); }

// The directory that Gemini CLI takes this one to be for; empty when it does not say.
std::string MarkedBy(Fs& fs, const AbsPath& dir) {
  constexpr size_t kLimit = 64 << 10;
  auto opened = fs.OpenDir(dir);
  if (!opened.ok()) return {};
  auto bytes = ReadSmallFile(fs, *opened, Marker(), kLimit);
  if (!bytes.ok()) return {};
  std::string text(AsText(*bytes));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

class ForkPlanner {
 public:
  ForkPlanner(Store& store, Catalog& catalog, const ForkChatRequest& request)
      : store_(store), fs_(store.fs()), catalog_(catalog), request_(request) {}

  Result<std::optional<ForkChat>> Run() {
    BELAY_TRY(const AboutSession about, LookUp(catalog_, request_.session));
    BELAY_TRY(turns_, TurnsOf(catalog_, request_.session, request_.from.bytes()));
    out_.agent = about.kind;
    const std::string cwd = about.cwd.empty() ? request_.from.bytes() : about.cwd;
    BELAY_TRY(const RootPaths paths, RootPaths::Read(catalog_));
    were_ = paths.Of(request_.from);
    const std::optional<AbsPath> called = CalledBy(cwd);
    if (called && *called != request_.from) were_.push_back(*called);
    for (const AbsPath& one : were_)
      cwds_.push_back(called ? CwdInFork(cwd, *called, one) : cwd);
    ChatRecord& record = out_.chat.record;
    record.agent = about.agent;
    record.session = request_.session;
    record.cwd = CwdInFork(cwd, called.value_or(request_.from), request_.to);
    if (request_.turn) {
      const TurnOf* turn = FindTurn(turns_, *request_.turn);
      if (turn == nullptr) return NoTurn(request_.session, *request_.turn);
      BELAY_OK(CheckOneTurn(catalog_, request_.session, *request_.turn,
                            request_.from.bytes()));
      BELAY_OK(CheckSaid(catalog_, request_.session, turn->turn));
      record.turn = request_.turn;
      record.inherited = *request_.turn - 1;
      if (turn->turn.anchor) record.message = turn->turn.anchor;
    } else if (!turns_.empty()) {
      record.inherited = turns_.back().turn.turn;
    }
    if (!AgentNamed(about.agent) || about.kind == AgentKind::kGeneric)
      return Error(Errc::kUnsupported, "the host keeps the conversation itself");
    if (!IsValidUtf8(request_.to.bytes()) && !BELAY_MUTANT("json-names-any-directory"))
      return Error(Errc::kUnsupported,
                   "the name of the new directory is not UTF-8, and no conversation "
                   "can name it");
    if (!IsValidUtf8(request_.from.bytes()))
      out_.warnings.push_back(
          "paths in the conversation are not the new directory's: the name of this one "
          "is not UTF-8");
    if (about.kind == AgentKind::kOpencode) return OfOpencode();
    if (!CheckConversation(about.kind).ok())
      return Error(Errc::kUnsupported, "the conversation of " +
                                           EscapeText(about.agent) +
                                           " cannot be copied from outside");
    return OfFile();
  }

 private:
  // What the directory is called by an agent that is at work in `cwd`: it may have come
  // there through a symlink. Nothing when it is somewhere else.
  std::optional<AbsPath> CalledBy(const std::string& cwd) const {
    const auto at = AbsPath::Parse(cwd);
    if (!at.ok()) return std::nullopt;
    if (at->IsWithin(request_.from)) return request_.from;
    if (BELAY_MUTANT("symlinks-to-a-fork-stay")) return std::nullopt;
    for (AbsPath dir = *at; !dir.is_root(); dir = dir.parent())
      if (const auto real = fs_.RealPath(dir); real.ok() && *real == request_.from)
        return dir;
    return std::nullopt;
  }
  bool IsDashed(const std::string& name) const {
    return std::ranges::any_of(
        cwds_, [&](const std::string& cwd) { return Dashed(out_.agent, cwd) == name; });
  }

  Result<std::optional<ForkChat>> OfOpencode() {
    out_.native =
        ForkChat::Native{.session = request_.session, .from = were_, .to = request_.to};
    if (!request_.turn) return std::optional(std::move(out_));
    if (turns_.empty() || turns_[0].turn.turn == *request_.turn)
      return std::optional<ForkChat>();
    const TurnOf* turn = FindTurn(turns_, *request_.turn);
    if (!turn->turn.anchor)
      return Error(Errc::kNotFound, "which message began turn " +
                                        std::to_string(*request_.turn) +
                                        " was not recorded");
    out_.native->message = *turn->turn.anchor;
    if (!BELAY_MUTANT("export-of-the-wrong-session"))
      out_.native->session = turn->turn.session;
    return std::optional(std::move(out_));
  }

  // For a copy of the file of `session`: this one's, or of one that it grew out of.
  Result<ForkRequest> CopyOf(const std::string& session, ConversationPlace place) {
    out_.place = std::move(place);
    ForkRequest wanted{.agent = out_.agent,
                       .session = session,
                       .transcript = out_.place->file(),
                       .moved = ForkRequest::Moved{.from = were_,
                                                   .to = request_.to,
                                                   .cwd_from = cwds_,
                                                   .cwd_to = out_.chat.record.cwd}};
    if (out_.place->copy) wanted.place = out_.place->path;
    if (!BELAY_MUTANT("fork-beside-the-original")) BELAY_OK(FindPlace(wanted));
    BELAY_OK(KnowTurns(catalog_, request_.session, request_.from, wanted.point));
    return wanted;
  }

  Result<ConversationFork> PlanCopy() {
    BELAY_TRY(ConversationPlace place,
              FindConversation(store_, catalog_, request_.session));
    BELAY_TRY(ForkRequest wanted, CopyOf(request_.session, std::move(place)));
    if (request_.turn) wanted.point.turn = FindTurn(turns_, *request_.turn)->turn;
    auto fork = PlanConversationFork(fs_, store_.random(), wanted);
    if (out_.agent != AgentKind::kCodex || BELAY_MUTANT("what-is-referred-to-is-there"))
      return fork;
    BELAY_TRY(Transcript own,
              ReadTranscript(fs_, out_.agent, wanted.transcript, wanted.point.turns));
    if (!own.refers) return fork;
    if (!fork.ok() && request_.turn && fork.error().code == Errc::kNotFound)
      return PlanInOlder(own, std::move(fork).error());
    if (!fork.ok() && (request_.turn || !own.prompts.empty())) return fork;
    const auto first = std::ranges::find(own.prompts, false, &TranscriptPrompt::dead);
    Error no = OnlyRefers(wanted, own,
                          first == own.prompts.end()
                              ? std::nullopt
                              : TurnMatch(own, wanted.point).TurnOf(*first));
    if (fork.ok() && fork->kept_turns > 0) return no;
    // Nothing of its own stays: what is left is the beginning of the other file.
    BELAY_TRY(ConversationFork before, PlanReferred(std::move(own), no));
    before.taken_messages = fork.ok() ? fork->taken_messages : 0;
    before.first_taken = fork.ok() ? fork->first_taken : "";
    return before;
  }

  // Of the turn that the session's own file does not have, one of its older ones.
  Result<ConversationFork> PlanInOlder(const Transcript& own, Error none) {
    ReferredFiles before =
        ReadReferred(store_, catalog_, request_.session, *out_.place, own);
    for (ReferredFile& file : before.files) {
      if (file.session != request_.session) break;
      BELAY_TRY(ForkRequest theirs, CopyOf(file.session, std::move(file.place)));
      theirs.point.turn = FindTurn(turns_, *request_.turn)->turn;
      theirs.until = file.until;
      auto fork = PlanConversationFork(fs_, store_.random(), theirs);
      if (fork.ok() && !fork->refers) return fork;
    }
    return none;
  }

  // A copy of what `own`, of which nothing stays, refers to.
  Result<ConversationFork> PlanReferred(Transcript own, const Error& no) {
    std::string session = request_.session;
    for (size_t left = kMostReferred; left > 0; --left) {
      if (!own.refers_to || !own.refers_until) return no;
      const uint64_t until = *own.refers_until;
      BELAY_TRY(ConversationPlace place,
                FindReferred(store_, catalog_, session, *out_.place, own));
      session = *own.refers_to;
      BELAY_TRY(ForkRequest theirs, CopyOf(session, std::move(place)));
      BELAY_TRY(own, ReadTranscript(fs_, out_.agent, theirs.transcript));
      const auto behind = std::ranges::find_if(own.prompts, [&](const auto& prompt) {
        return prompt.ordinal && *prompt.ordinal >= until;
      });
      const bool counted = std::ranges::all_of(
          own.prompts, [](const auto& prompt) { return prompt.ordinal.has_value(); });
      if (own.refers) {
        if (behind != own.prompts.begin() || !counted) return no;
        own.refers_until = std::min(until, own.refers_until.value_or(0));
        continue;
      }
      if (!counted) return no;
      // It went back since: what comes before the next prompt is not what it was.
      const uint64_t end = behind == own.prompts.end() ? UINT64_MAX : *behind->ordinal;
      if (std::ranges::any_of(
              own.prompts,
              [&](const TranscriptPrompt& prompt) {
                return prompt.dead && *prompt.ordinal < until &&
                       (!prompt.dead_from ||
                        (*prompt.dead_from >= until && *prompt.dead_from < end));
              }) &&
          !BELAY_MUTANT("what-went-since-had-gone-before"))
        return no;
      if (behind != own.prompts.end()) theirs.point.message = behind->anchor;
      return PlanConversationFork(fs_, store_.random(), theirs);
    }
    return no;
  }

  Result<std::optional<ForkChat>> OfFile() {
    ChatRecord& record = out_.chat.record;
    BELAY_TRY(ConversationFork fork, PlanCopy());
    if (fork.IsEmpty()) return std::optional<ForkChat>();
    record.forked = fork.session;
    record.taken = fork.Taken();
    record.kept = fork.Kept();
    record.message.reset();
    if (request_.turn) record.message = fork.first_taken;
    if (marker_)
      fork.files.insert(fork.files.begin(),
                        {.path = *marker_,
                         .mode = 0600,
                         .content = [text = record.cwd](const TranscriptSink& sink) {
                           return sink(AsBytes(text));
                         }});
    BELAY_OK(PlaceFiles(fork));
    return std::optional(std::move(out_));
  }

  // Where the agent, at work in the new directory, looks: `wanted.place` is there.
  Status FindPlace(ForkRequest& wanted) {
    const AbsPath at = wanted.place.value_or(wanted.transcript);
    const std::string& now = out_.chat.record.cwd;
    const Name name = Name::Literal(at.name());
    switch (out_.agent) {
      case AgentKind::kClaude: {
        const AbsPath project = at.parent();
        if (!IsDashed(project.name())) return Elsewhere();
        BELAY_TRY(const Name dir, Name::Parse(Dashed(out_.agent, now)));
        wanted.place = project.parent().Join(dir).Join(name);
        return Ok();
      }
      case AgentKind::kQwen: {
        const AbsPath project = at.parent().parent();
        if (!IsDashed(project.name())) return Elsewhere();
        const Result<Name> dir = Name::Parse(Dashed(out_.agent, now));
        if (!dir.ok()) return Elsewhere();  // longer than names can be
        wanted.place = project.parent()
                           .Join(*dir)
                           .Join(Name::Literal(at.parent().name()))
                           .Join(name);
        return Ok();
      }
      case AgentKind::kGemini:
        return FindGeminiPlace(at, now, name, wanted);
      default:  // by id alone
        return Ok();
    }
  }

  // By a file in it that names the project.
  Status FindGeminiPlace(const AbsPath& at, const std::string& now, const Name& name,
                         ForkRequest& wanted) {
    constexpr int kMostTries = 1000;
    const AbsPath project = at.parent().parent();
    if (MarkedBy(fs_, project).empty()) return Elsewhere();
    const std::string slug = Slug(now.substr(now.rfind('/') + 1));
    for (int i = 0; i < kMostTries; ++i) {
      const Result<Name> dir =
          Name::Parse(i == 0 ? slug : slug + "-" + std::to_string(i));
      if (!dir.ok()) break;
      const AbsPath candidate = project.parent().Join(*dir);
      const bool there = fs_.OpenDir(candidate).ok();
      if (there && MarkedBy(fs_, candidate) != now) continue;
      wanted.place = candidate.Join(Name::Literal(at.parent().name())).Join(name);
      if (!there) marker_ = candidate.Join(Marker());
      return Ok();
    }
    return Elsewhere();
  }

  Status Elsewhere() {
    out_.warnings.push_back(
        "where the agent looks for conversations of the new directory is not known: "
        "the copy is beside the original, and the agent may not find it there");
    return Ok();
  }

  // Directories that are not there yet come with the files, at once.
  Status PlaceFiles(const ConversationFork& fork) {
    AbsPath dir = fork.files.back().path.parent();
    while (!dir.is_root()) {
      auto stat = fs_.OpenDir(dir);
      if (stat.ok()) break;
      if (stat.error().code != Errc::kNotFound) return std::move(stat).error();
      out_.chat.folder = dir.name();
      dir = dir.parent();
    }
    BELAY_TRY(const AbsPath real, fs_.RealPath(dir));
    const AbsPath base =
        out_.chat.folder.empty() ? dir : dir.Join(Name::Literal(out_.chat.folder));
    out_.chat.dir = real;
    out_.chat.uid = fork.uid;
    out_.chat.gid = fork.gid;
    for (const ConversationFile& file : fork.files) {
      const std::optional<std::string> name = file.path.Below(base);
      if (!name) return Error(Errc::kInvalid, "the conversation has no place");
      out_.chat.files.push_back(
          {.name = *name, .mode = file.mode, .content = file.content});
    }
    out_.chat.record.path = fork.files.back().path.bytes();
    return Ok();
  }

  Store& store_;
  Fs& fs_;
  Catalog& catalog_;
  const ForkChatRequest& request_;
  std::vector<TurnOf> turns_;
  std::vector<AbsPath> were_;      // all paths of the directory
  std::vector<std::string> cwds_;  // where the agent works in each of them
  std::optional<AbsPath> marker_;
  ForkChat out_;
};

}  // namespace

Result<bool> MakeForkChat(const ForkMaker& maker, ForkChat& along) {
  const ForkChat::Native& native = *along.native;
  ChatRecord& record = along.chat.record;
  Store& store = maker.store;
  const auto recorded = [&]() -> Status {
    BELAY_TRY(auto writer, store.Begin());
    writer->Add(ToRecord(SessionRecord{.session = record.forked,
                                       .agent = record.agent,
                                       .parent = record.session,
                                       .inherited_turns = record.inherited,
                                       .cwd = record.cwd},
                         RecordId(store.random().NewId()), maker.root,
                         store.clock().WallMillis()));
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
    return Ok();
  };
  const auto made = [&]() -> Result<bool> {
    BELAY_TRY(const MovedCopy copy, MakeOpencodeCopy(maker,
                                                     {.session = native.session,
                                                      .message = native.message,
                                                      .from = native.from,
                                                      .to = native.to,
                                                      .cwd = record.cwd},
                                                     record.session));
    if (copy.session.empty()) return false;
    record.forked = copy.session;
    record.kept = copy.kept;
    record.taken = copy.taken;
    if (Status done = recorded(); !done.ok())
      return NamingCopy(std::move(done).error(), copy.session);
    return true;
  };
  auto out = made();
  ForgetFork(store, maker.root);
  return out;
}

std::string CwdInFork(const std::string& cwd, const AbsPath& from, const AbsPath& to) {
  auto path = AbsPath::Parse(cwd);
  if (!path.ok() || !path->IsWithin(from)) return to.bytes();
  const std::optional<std::string> below = path->Below(from);
  return below && !below->empty() ? to.bytes() + "/" + *below : to.bytes();
}

Result<std::optional<ForkChat>> PlanForkChat(Store& store, Catalog& catalog,
                                             const ForkChatRequest& request) {
  return ForkPlanner(store, catalog, request).Run();
}

}  // namespace belay
