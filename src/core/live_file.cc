// The file of what is going on in a root: docs/format.md, "cache/".

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/fast_hash.h"
#include "core/live.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

constexpr std::string_view kLiveMagic = "BELAYLV3";
constexpr size_t kMaxLiveFile = size_t{4} << 20;

Name FileName(const RootId& root) { return Name::Literal(root.text() + ".live"); }

void Put(ByteWriter& out, const std::optional<std::string>& text) {
  out.U8(text ? 1 : 0);
  if (text) out.Sized(*text);
}
std::optional<std::string> TakeText(ByteReader& in) {
  if (in.U8() == 0) return std::nullopt;
  return std::string(AsText(in.Sized()));
}
void Put(ByteWriter& out, const std::optional<uint64_t>& number) {
  out.U8(number ? 1 : 0);
  if (number) out.Varint(*number);
}
std::optional<uint64_t> TakeNumber(ByteReader& in) {
  if (in.U8() == 0) return std::nullopt;
  return in.Varint();
}
std::string TakeString(ByteReader& in) { return std::string(AsText(in.Sized())); }

void Put(ByteWriter& out, const Author& author) {
  out.U8(static_cast<uint8_t>(author.kind));
  for (const auto* text : {&author.session, &author.agent, &author.subagent,
                           &author.tool_name, &author.tool_use_id})
    Put(out, *text);
  Put(out, author.turn);
}
Author TakeAuthor(ByteReader& in) {
  Author author;
  author.kind = static_cast<Author::Kind>(std::min<uint8_t>(in.U8(), 2));
  for (auto* text : {&author.session, &author.agent, &author.subagent,
                     &author.tool_name, &author.tool_use_id})
    *text = TakeText(in);
  author.turn = TakeNumber(in);
  return author;
}

void Put(ByteWriter& out, const LiveCall& call) {
  Put(out, call.author);
  out.Sized(call.fingerprint);
  out.U8(static_cast<uint8_t>((call.anything ? 1 : 0) | (call.background ? 2 : 0) |
                              (call.outlives_turn ? 4 : 0) | (call.unseen ? 8 : 0) |
                              (call.doubtful ? 16 : 0) | (call.quiet ? 32 : 0) |
                              (call.fresh ? 64 : 0) |
                              (call.vouched.empty() ? 0 : 128)));
  out.U8(static_cast<uint8_t>((call.took_root ? 1 : 0) | (call.left ? 2 : 0) |
                              (call.vouched.empty() ? 0 : 4)));
  out.Varint(call.paths.size());
  for (const std::string& path : call.paths) out.Sized(path);
  out.Sized(call.task);
  out.U64(static_cast<uint64_t>(call.begun_ms));
  if (call.vouched.empty()) return;
  out.Varint(call.vouched.size());
  for (const Vouched& what : call.vouched) {
    out.Raw(what.id.span());
    out.U8(what.for_others ? 1 : 0);
    out.Varint(what.paths.size());
    for (const std::string& path : what.paths) out.Sized(path);
    out.Varint(what.beside.size());
    for (const Author& author : what.beside) Put(out, author);
  }
}

// As files of before have it: without `more` the id alone.
Vouched TakeVouched(ByteReader& in, bool more) {
  Vouched what;
  if (ByteSpan id = in.Raw(16); id.size() == 16)
    what.id = RecordId(Id128::FromSpan(id));
  if (!more) return what;
  what.for_others = in.U8() != 0;
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    what.paths.push_back(TakeString(in));
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    what.beside.push_back(TakeAuthor(in));
  return what;
}

LiveCall TakeCall(ByteReader& in) {
  LiveCall call;
  call.author = TakeAuthor(in);
  call.fingerprint = TakeString(in);
  const uint8_t flags = in.U8();
  call.anything = (flags & 1) != 0;
  call.background = (flags & 2) != 0;
  call.outlives_turn = (flags & 4) != 0;
  call.unseen = (flags & 8) != 0;
  call.doubtful = (flags & 16) != 0;
  call.quiet = (flags & 32) != 0;
  call.fresh = (flags & 64) != 0;
  const uint8_t more = in.U8();
  call.took_root = (more & 1) != 0;
  call.left = (more & 2) != 0;
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    call.paths.push_back(TakeString(in));
  call.task = TakeString(in);
  call.begun_ms = static_cast<int64_t>(in.U64());
  if ((flags & 128) != 0)
    for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
      call.vouched.push_back(TakeVouched(in, (more & 4) != 0));
  return call;
}

void Put(ByteWriter& out, const LiveSession& session) {
  for (const auto* text : {&session.id, &session.agent, &session.prompt,
                           &session.transcript, &session.cwd})
    out.Sized(*text);
  Put(out, session.anchor);
  Put(out, session.message_index);
  out.Varint(session.turn);
  out.Varint(session.inherited);
  out.Varint(static_cast<uint64_t>(
      (session.in_turn ? 1 : 0) | (session.recorded ? 2 : 0) |
      (session.searched ? 4 : 0) | (session.ended ? 8 : 0) |
      (session.knows_operation > 0 ? 16 : 0) | (session.message ? 32 : 0) |
      (session.shown.empty() ? 0 : 64) | (session.heard.empty() ? 0 : 128) |
      (session.print.empty() ? 0 : 256) | (session.silent ? 512 : 0)));
  out.Varint(session.subagents.size());
  for (const std::string& subagent : session.subagents) out.Sized(subagent);
  out.U64(static_cast<uint64_t>(session.seen_ms));
  if (session.knows_operation > 0) out.Varint(session.knows_operation);
  if (session.message) out.Sized(*session.message);
  if (!session.shown.empty()) out.Sized(session.shown);
  if (!session.print.empty()) out.Sized(session.print);
  if (session.heard.empty()) return;
  out.Varint(session.heard.size());
  for (const auto& [anchor, turn] : session.heard) {
    out.Sized(anchor);
    out.Varint(turn);
  }
}

LiveSession TakeSession(ByteReader& in) {
  LiveSession session;
  for (auto* text : {&session.id, &session.agent, &session.prompt, &session.transcript,
                     &session.cwd})
    *text = TakeString(in);
  session.anchor = TakeText(in);
  session.message_index = TakeNumber(in);
  session.turn = in.Varint();
  session.inherited = in.Varint();
  const uint64_t flags = in.Varint();
  session.in_turn = (flags & 1) != 0;
  session.recorded = (flags & 2) != 0;
  session.searched = (flags & 4) != 0;
  session.ended = (flags & 8) != 0;
  session.silent = (flags & 512) != 0;
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    session.subagents.push_back(TakeString(in));
  session.seen_ms = static_cast<int64_t>(in.U64());
  if ((flags & 16) != 0) session.knows_operation = in.Varint();
  if ((flags & 32) != 0) session.message = TakeString(in);
  if ((flags & 64) != 0) session.shown = TakeString(in);
  if ((flags & 256) != 0) session.print = TakeString(in);
  if ((flags & 128) != 0)
    for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left) {
      std::string anchor = TakeString(in);
      session.heard.emplace_back(std::move(anchor), in.Varint());
    }
  return session;
}

}  // namespace

Live Live::Load(Store& store, const RootId& root) {
  Fs& fs = store.fs();
  auto dir = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return {};
  auto bytes = ReadSmallFile(fs, *dir, FileName(root), kMaxLiveFile);
  if (!bytes.ok() || bytes->size() < kLiveMagic.size() + 8) return {};
  const ByteSpan body = ByteSpan(*bytes).first(bytes->size() - 8);
  if (LoadU64(bytes->data() + body.size()) != Check64(body)) return {};
  ByteReader in(body);
  if (AsText(in.Raw(kLiveMagic.size())) != kLiveMagic) return {};
  Live live;
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    live.sessions_.push_back(TakeSession(in));
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    live.calls_.push_back(TakeCall(in));
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left)
    live.ended_.push_back(TakeString(in));
  if (!in.done()) return {};
  return live;
}

// Not flushed, and replaced by rename: old, new or none.
Status Live::Save(Store& store, const RootId& root) const {
  Bytes out;
  ByteWriter writer(out);
  writer.Raw(kLiveMagic);
  writer.Varint(sessions_.size());
  for (const LiveSession& session : sessions_) Put(writer, session);
  writer.Varint(calls_.size());
  for (const LiveCall& call : calls_) Put(writer, call);
  writer.Varint(ended_.size());
  for (const std::string& key : ended_) writer.Sized(key);
  writer.U64(Check64(out));
  Fs& fs = store.fs();
  Status made = fs.MakeDir(store.dir(), StatCache::DirName(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return made;
  BELAY_TRY(Fd dir, fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory()));
  const Name temporary = Name::Literal(root.text() + ".live.tmp");
  BELAY_TRY(Fd file, fs.Open(dir, temporary,
                             {.access = OpenMode::Access::kReadWrite,
                              .create = true,
                              .truncate = true,
                              .mode = 0600}));
  BELAY_OK(WriteFull(fs, file, 0, out));
  BELAY_OK(file.Close());
  return fs.Rename(dir, temporary, dir, FileName(root), RenameHow::kReplace);
}

}  // namespace belay
