#pragma once

// Log records: everything Belay knows that is not content. Roots, checkpoints, notes,
// pins, sessions, turns, operations, drops and purges are all records in batches,
// ordered by a sequence number given under the append lock. Later kinds need no new
// format. Layout: docs/format.md, "log record".

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "store/object.h"

namespace belay {

enum class RecordKind : uint16_t {
  kRoot = 1,
  kCheckpoint = 2,
  kAnnotation = 3,
  kSession = 4,
  kTurn = 5,
  kOperation = 6,
  kDrop = 7,
  kPurge = 8,
  kRelease = 9,
  kTranscript = 10,
};

struct LogRecord {
  RecordKind kind = RecordKind::kRoot;
  uint64_t seq = 0;  // given when published
  RecordId id;
  RootId root;  // zero = none
  int64_t made_ms = 0;
  std::vector<ObjectKey> refs;  // objects this record keeps alive
  Fields fields;
  bool operator==(const LogRecord&) const = default;
};

Bytes EncodeLogRecord(const LogRecord& record);
Result<LogRecord> DecodeLogRecord(ByteSpan bytes);

// --- the kinds the engine writes itself, as values
// ---------------------------------------

enum class CheckpointKind : uint8_t { kAuto = 0, kManual = 1, kSafety = 2 };

// Whose doing a change is.
struct Author {
  enum class Kind : uint8_t {
    kOutside = 0,  // a person, an editor, another program
    kSession = 1,  // an agent: a tool call, or something in a turn of it
    kRun = 2,      // a program under `belay run`
    kUnknown = 3,  // what was recorded of it was let go
  };
  Kind kind = Kind::kOutside;
  std::optional<std::string> session = {}, agent = {}, subagent = {}, tool_name = {},
                             tool_use_id = {};
  std::optional<uint64_t> turn = {};
  bool operator==(const Author&) const = default;
};

// Who made the changes that a checkpoint shows. Several authors: one of them, or more
// than one, and nobody can tell.
struct Authorship {
  std::vector<Author> authors;
  std::vector<std::string> paths;  // none: all that no other entry names
  bool operator==(const Authorship&) const = default;
};

// A file outside of the root that an edit tool named, as it was when the checkpoint was
// made.
struct ExternalFile {
  std::string path;  // IsExternalPath()
  // A file or a symlink, without a name; nothing: nothing was there.
  std::optional<TreeEntry> state = {};
  uint8_t left_out = 0;  // why nothing is known of it: a Skip (scan/stat_cache.h)
  std::optional<std::string> session = {};  // of the call that named it
  bool operator==(const ExternalFile&) const = default;
};
// Absolute and clean, not of git's own, no device and nothing the kernel makes up, and
// no staging directory. Records that say otherwise are not believed.
bool IsExternalPath(std::string_view path);
inline constexpr size_t kMaxExternal = 256;  // files in one record

struct Checkpoint {
  RecordId id;
  uint64_t seq = 0;
  RootId root;
  int64_t made_ms = 0;
  ObjectId state;
  CheckpointKind kind = CheckpointKind::kAuto;
  std::optional<std::string> name, note;
  std::string description;
  std::optional<std::string> session, agent, subagent, prompt, message_id;
  std::optional<std::string> tool_name, tool_use_id;
  std::optional<uint64_t> turn, message_index;
  uint64_t files = 0, bytes = 0, added = 0, modified = 0, deleted = 0;
  // Of what was added, modified and deleted: directories, empty or with other
  // attributes. (Older Belays did not say.)
  uint64_t changed_dirs = 0;
  uint64_t stored_bytes = 0, took_us = 0;
  bool partial = false;
  std::map<std::string, std::string> meta;
  std::vector<ObjectKey> more_refs;  // kept alive besides the state
  // What changed since the one before, to be searched for: the first of them by name,
  // within kMaxPathsKept and kMaxPathBytes. None of a root's first.
  std::vector<std::string> paths;
  // Empty when nothing changed, and of checkpoints that nobody looked after (a first
  // one, and those that were made before there were authors).
  std::vector<Authorship> by;
  RecordId since = {};  // the checkpoint before, which `by` is about; zero: not said
  std::vector<ExternalFile> external = {};  // by path; their content is in `more_refs`
  // It came in a bundle, or was made of a commit: nobody looked at the directory.
  bool imported = false;
  bool operator==(const Checkpoint&) const = default;
};
// Who made the change of `path` that the checkpoint shows. Never empty.
std::vector<Author> AuthorsOf(const Checkpoint& checkpoint, std::string_view path);

inline constexpr size_t kMaxPathsKept = 100, kMaxPathBytes = 8192;
LogRecord ToRecord(const Checkpoint& checkpoint);
Result<Checkpoint> ToCheckpoint(const LogRecord& record);
// Of a checkpoint's record, or of an annotation that hands some on.
std::vector<ExternalFile> ExternalIn(const LogRecord& record);
// What keeps their content alive.
std::vector<ObjectKey> RefsOf(const std::vector<ExternalFile>& external);

struct Root {
  RootId id;
  std::string path;  // bytes of the real path
  bool off = false;  // no longer protected; its history stays
  // Of the directory when it was last registered, to know it again after a move.
  uint64_t dev = 0, ino = 0;
  // What was purged while it was in the directory, from the root on, rising: no
  // checkpoint holds it, nor what is below it, from then on.
  std::vector<std::string> purged = {};
  bool operator==(const Root&) const = default;
};
// `id` is the record's own. Of several records of one root the latest counts; whether
// they share an id is up to the writer, and a drop of an id takes all that have it.
LogRecord ToRecord(const Root& root, const RecordId& id, int64_t made_ms);
Result<Root> ToRoot(const LogRecord& record);

// A conversation, as far as it is known. The latest record of a session counts.
struct SessionRecord {
  std::string session;
  std::optional<std::string> agent = {}, parent = {};
  // Turns of the parent that belong to this one too: those with this number and below.
  uint64_t inherited_turns = 0;
  std::optional<std::string> transcript_path = {};
  bool ended = false;
  std::string cwd = {};
  // It is a subagent's: the parent started it, and it goes on with nothing of that.
  bool subagent = false;
  std::optional<std::string> subagent_type = {};  // "Explore"
  // Written because an operation took its conversation back, or brought it back: the
  // session goes on from there (kGoesOn), or no longer does (kReset). Beside the
  // operation, in one batch.
  enum class By : uint8_t { kNone = 0, kGoesOn = 1, kReset = 2 };
  By by = By::kNone;
  bool operator==(const SessionRecord&) const = default;
};
LogRecord ToRecord(const SessionRecord& session, const RecordId& id, const RootId& root,
                   int64_t made_ms);
Result<SessionRecord> ToSession(const LogRecord& record);

// What was asked for, and where the agent keeps it.
struct TurnRecord {
  std::string session;
  uint64_t turn = 0;
  std::string prompt;
  std::optional<std::string> anchor = {};
  // No checkpoint was made when it was submitted: granularity = "session". (Older
  // Belays did not say.)
  bool stateless = false;
  bool operator==(const TurnRecord&) const = default;
};
LogRecord ToRecord(const TurnRecord& turn, const RecordId& id, const RootId& root,
                   int64_t made_ms);
Result<TurnRecord> ToTurn(const LogRecord& record);

// A copy of the file in which an agent keeps a conversation (core/transcripts.h). One
// that grew replaces the one before; what a file was before it became another stays.
struct TranscriptRecord {
  std::string session;
  std::optional<std::string> agent = {}, subagent = {};
  std::string path = {};      // as it was read
  ObjectId content = {};      // a node: docs/format.md, "Transcript"
  uint64_t bytes = 0;         // of the file that are kept
  uint64_t dev = 0, ino = 0;  // of the file
  uint64_t whole = 0;         // how long it was when all of it was last read
  bool operator==(const TranscriptRecord&) const = default;
};
LogRecord ToRecord(const TranscriptRecord& transcript, const RecordId& id,
                   const RootId& root, int64_t made_ms);
Result<TranscriptRecord> ToTranscript(const LogRecord& record);

LogRecord MakeDrop(const RecordId& id, int64_t made_ms,
                   const std::vector<RecordId>& dropped);
std::vector<RecordId> DroppedBy(const LogRecord& record);  // empty for other kinds

// Of a long content that a purge names: chunks that stay, because others have them.
struct KeptChunks {
  ObjectId content;
  std::vector<ObjectId> chunks;
  bool operator==(const KeptChunks&) const = default;
};
// `erased`: somebody wanted it gone; otherwise it was lost, and given up.
LogRecord MakePurge(const RecordId& id, int64_t made_ms,
                    const std::vector<ObjectKey>& purged, std::string_view why,
                    bool erased = false, const std::vector<KeptChunks>& kept = {});
std::vector<KeptChunks> KeptBy(const LogRecord& record);   // empty for other kinds
std::vector<ObjectKey> PurgedBy(const LogRecord& record);  // empty for other kinds
bool WasErased(const LogRecord& record);                   // by such a purge

// The records it names stay, as history; what they refer to is no longer kept alive
// for their sake (operations beyond the undo horizon).
LogRecord MakeRelease(const RecordId& id, const RootId& root, int64_t made_ms,
                      const std::vector<RecordId>& released);
std::vector<RecordId> ReleasedBy(const LogRecord& record);  // empty for other kinds

// The record an annotation is about.
std::optional<RecordId> AnnotationTarget(const LogRecord& record);
inline constexpr uint64_t kAnnotationTarget = 1, kAnnotationName = 2,
                          kAnnotationNote = 3, kAnnotationPinned = 4,
                          kAnnotationHealth = 5, kAnnotationMeta = 6,
                          kAnnotationDescription = 7, kAnnotationLost = 8,
                          kAnnotationBy = 9, kAnnotationSince = 10,
                          kAnnotationExternal = 11;
// What was handed on to a checkpoint by those beside it that were let go, or is known
// since (NameOutside): instead of its own `by` and `since`, and of its own `external`.
void AddAuthors(Fields& annotation, const std::vector<Authorship>& by,
                const RecordId& since);
void AddExternal(LogRecord& annotation, const std::vector<ExternalFile>& external);
void ApplyHandedOn(const Fields& annotation, Checkpoint& checkpoint);

}  // namespace belay
