#include "restore/fork_note.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

namespace {

constexpr std::string_view kNoteMagic = "BELAYFK1";
constexpr uint64_t kAgent = 1, kSession = 2, kForked = 3, kPid = 4;
constexpr size_t kNoteLimit = 64 << 10;

Name NoteDir() { return Name::Literal("journal"); }
Name NoteName(const RootId& root) { return Name::Literal(root.text() + ".fork"); }
Name FileName(const RootId& root) { return Name::Literal(root.text() + ".fork.json"); }

bool IsAtWork(Fs& fs, int64_t pid) {
  return pid > 0 && fs.OpenDir(AbsPath::Literal("/proc/" + std::to_string(pid))).ok();
}

}  // namespace

Status NoteFork(Store& store, const RootId& root, const ForkNote& note) {
  Fields f;
  f.Add(kAgent, note.agent);
  f.Add(kSession, note.session);
  if (!note.forked.empty()) f.Add(kForked, note.forked);
  f.AddNumber(kPid, static_cast<uint64_t>(note.pid));
  Bytes bytes;
  ByteWriter out(bytes);
  out.Raw(kNoteMagic);
  f.Encode(out);
  Status made = store.fs().MakeDir(store.dir(), NoteDir(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return made;
  BELAY_OK(store.fs().Sync(store.dir()));
  BELAY_TRY(Fd dir, store.fs().Open(store.dir(), NoteDir(), OpenMode::Directory()));
  return ReplaceFile(store.fs(), dir, NoteName(root), bytes);
}

void ForgetFork(Store& store, const RootId& root) {
  auto dir = store.fs().Open(store.dir(), NoteDir(), OpenMode::Directory());
  if (!dir.ok()) return;
  if (!BELAY_MUTANT("what-was-to-be-imported-stays")) RemoveForkFile(store, root);
  (void)store.fs().Unlink(*dir, NoteName(root));
}

void RemoveForkFile(Store& store, const RootId& root) {
  auto dir = store.fs().Open(store.dir(), NoteDir(), OpenMode::Directory());
  if (dir.ok()) (void)store.fs().Unlink(*dir, FileName(root));
}

Result<RelPath> WriteForkFile(Store& store, const RootId& root,
                              const std::function<Status(const ForkFileSink&)>& text) {
  Fs& fs = store.fs();
  BELAY_TRY(Fd dir, fs.Open(store.dir(), NoteDir(), OpenMode::Directory()));
  if (Status gone = fs.Unlink(dir, FileName(root));
      !gone.ok() && gone.error().code != Errc::kNotFound)
    return std::move(gone).error();
  BELAY_TRY(Fd file, fs.Open(dir, FileName(root), OpenMode::CreateNew(0600)));
  uint64_t size = 0;
  const ForkFileSink put = [&](ByteSpan bytes) {
    const uint64_t at = size;
    size += bytes.size();
    return WriteFull(fs, file, at, bytes);
  };
  BELAY_OK(text(put));
  BELAY_OK(file.Close());
  return RelPath(NoteDir()).Join(RelPath(FileName(root)));
}

std::optional<ForkNote> LoadForkNote(Store& store, const RootId& root) {
  auto dir = store.fs().Open(store.dir(), NoteDir(), OpenMode::Directory());
  if (!dir.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(store.fs(), *dir, NoteName(root), kNoteLimit);
  if (!bytes.ok() || !AsText(*bytes).starts_with(kNoteMagic)) return std::nullopt;
  ByteReader in(ByteSpan(*bytes).subspan(kNoteMagic.size()));
  auto f = Fields::Decode(in);
  if (!f.ok()) return std::nullopt;
  return ForkNote{.agent = f->Text(kAgent).value_or(""),
                  .session = f->Text(kSession).value_or(""),
                  .forked = f->Text(kForked).value_or(""),
                  .pid = static_cast<int64_t>(f->Number(kPid).value_or(0))};
}

std::optional<std::string> SettleForkNote(Store& store, const RootId& root) {
  const auto note = LoadForkNote(store, root);
  if (!note || IsAtWork(store.fs(), note->pid)) return std::nullopt;
  auto catalog = Catalog::Open(store);
  if (!catalog.ok()) return std::nullopt;
  auto operations = ListOperations(**catalog, root);
  if (!operations.ok()) return std::nullopt;
  auto known = LatestSession(**catalog, note->forked);
  const bool used = !note->forked.empty() &&
                    ((known.ok() && *known) ||
                     std::ranges::any_of(*operations, [&](const Operation& o) {
                       return o.chat && o.chat->forked == note->forked;
                     }));
  ForgetFork(store, root);
  if (used || BELAY_MUTANT("orphans-are-forgotten")) return std::nullopt;
  const std::string session =
      "the conversation of session " + EscapeText(note->session);
  if (note->forked.empty())
    return EscapeText(note->agent) + " was about to copy " + session +
           " when belay was interrupted; a copy that nothing uses may be among its "
           "sessions, and the session itself goes on as it was";
  return EscapeText(note->agent) + " was asked for a copy of " + session + ", " +
         EscapeText(note->forked) +
         ", before belay was interrupted; nothing uses it, and the session itself goes "
         "on as it was";
}

}  // namespace belay
