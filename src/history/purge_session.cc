// The plan for a session: its records, what only they lead to, and who quotes them.

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/lineage.h"
#include "core/operations.h"
#include "history/purger_internal.h"
#include "store/inventory.h"

namespace belay {

namespace {

// What stands where a name was.
constexpr std::string_view kNotNamed = "a checkpoint that was purged";
// Of a session's and a turn's record.
constexpr uint64_t kOfSession = 1;

bool HasChunkOf(Store& store, const TreeEntry& file,
                const std::unordered_set<ObjectId>& ids) {
  if (file.size <= kMaxBlob) return false;
  auto bytes = store.Get({ObjectType::kChunks, file.id});
  if (!bytes.ok()) return false;
  auto list = DecodeChunks(*bytes);
  return list.ok() && std::ranges::any_of(list->chunks, [&](const Chunk& chunk) {
           return ids.contains(chunk.id);
         });
}

}  // namespace

bool Purger::IsOfSession(const std::optional<std::string>& session) const {
  return session && sessions_.contains(*session);
}

void Purger::FindSubagents() {
  std::vector<SessionRecord> told;
  for (const LogRecord& record : log_.records)
    if (auto one = ToSession(record); one.ok() && log_.IsWanted(record))
      told.push_back(std::move(*one));
  const auto named = WithSubagents(told, *request_.session);
  sessions_.insert(named.begin(), named.end());
}

Status Purger::PlanSession() {
  PurgePlan plan;
  FindSubagents();
  std::unordered_set<RecordId> checkpoints, pinned;
  for (const LogRecord& record : log_.records) {
    if (!log_.IsWanted(record)) continue;
    auto checkpoint = ToCheckpoint(record);
    if (checkpoint.ok() && IsOfSession(checkpoint->session))
      checkpoints.insert(record.id);
  }
  std::set<std::string> grew;
  for (const LogRecord& record : log_.records) {
    if (!log_.IsWanted(record)) continue;
    bool goes = checkpoints.contains(record.id);
    if (record.kind == RecordKind::kSession || record.kind == RecordKind::kTurn ||
        record.kind == RecordKind::kTranscript)
      goes = IsOfSession(record.fields.Text(kOfSession));
    if (auto copy = ToTranscript(record); copy.ok() && goes) {
      ++plan.transcripts;
      if (BELAY_MUTANT("purge-leaves-transcripts")) goes = false;
    }
    // Its file began as a copy of this one's.
    if (auto told = ToSession(record);
        told.ok() && !goes && told->parent && IsOfSession(told->parent))
      grew.insert(told->session);
    if (auto about = AnnotationTarget(record); about && checkpoints.contains(*about)) {
      goes = true;
      if (auto pin = record.fields.Number(kAnnotationPinned)) {
        if (*pin != 0)
          pinned.insert(*about);
        else
          pinned.erase(*about);
      }
    }
    // Whose doing changes were that others show now: nobody's that is known.
    if (record.kind == RecordKind::kAnnotation &&
        !BELAY_MUTANT("purge-leaves-authors")) {
      Checkpoint told;
      ApplyHandedOn(record.fields, told);
      for (const ExternalFile& file : told.external)
        goes = goes || file.session == request_.session;
      for (const Authorship& by : told.by)
        goes = goes || std::ranges::any_of(by.authors, [&](const Author& author) {
                 return author.session == request_.session;
               });
    }
    // A rollback to one of them says what that was called.
    // So do its undo and redo, which come after it.
    if (auto operation = ToOperation(record);
        operation.ok() &&
        ((operation->target && checkpoints.contains(*operation->target)) ||
         (operation->of && dropped_.contains(*operation->of)) ||
         // The checkpoint may have gone before.
         (IsOfSession(operation->session) &&
          !BELAY_MUTANT("purge-leaves-what-was-pruned")) ||
         // One that took its conversation back has a prompt of it.
         (operation->chat &&
          (IsOfSession(operation->chat->session) ||
           IsOfSession(operation->chat->forked)) &&
          !BELAY_MUTANT("purge-leaves-rewinds")))) {
      goes = true;
      ++plan.operations;
    }
    if (goes) dropped_.insert(record.id);
  }
  plan.grew_out_of_it.assign(grew.begin(), grew.end());
  plan.records.assign(dropped_.begin(), dropped_.end());
  std::ranges::sort(plan.records);
  plan.checkpoints = checkpoints.size();
  plan.pinned = pinned.size();
  plan_ = std::move(plan);
  if (dropped_.empty()) return Ok();
  FindWhoQuotes();

  BELAY_TRY(Inventory inventory, TakeInventory(store_));
  Marker theirs(store_, inventory), others(store_, inventory);
  // What its checkpoints have, and what was there when the first was made.
  Marker own(store_, inventory), before(store_, inventory);
  uint64_t began = UINT64_MAX;
  for (const LogRecord& record : log_.records)
    if (checkpoints.contains(record.id)) began = std::min(began, record.seq);
  std::set<ObjectKey> objects;
  for (auto at = log_.records.rbegin(); at != log_.records.rend(); ++at) {
    if (dropped_.contains(at->id) || retitled_.contains(at->id))
      for (const bool implied : {true, false}) {
        LogRecord stored = *at;
        if (implied) stored.seq = 0;
        objects.insert({ObjectType::kLog, Sha256::Of(EncodeLogRecord(stored))});
      }
    if (!log_.Holds(*at)) continue;
    Marker& marker = dropped_.contains(at->id) ? theirs : others;
    BELAY_OK(marker.MarkFrom(*at, log_.purged));
    if (checkpoints.contains(at->id)) BELAY_OK(own.MarkFrom(*at, log_.purged));
    if (&marker == &others && at->seq < began)
      BELAY_OK(before.MarkFrom(*at, log_.purged));
  }
  std::unordered_set<ObjectId> came;  // with the session, and others have it too
  for (const ObjectKey& key : own.live())
    if ((key.type == ObjectType::kBlob || key.type == ObjectType::kChunks) &&
        others.IsLive(key) && !before.IsLive(key))
      came.insert(key.id);
  BELAY_OK(FindWhoKeeps(came));
  if (!theirs.broken().empty())
    return Error(Errc::kCorrupt, theirs.broken().front().what)
        .WithHint("nothing was purged; belay verify names what is damaged");
  for (const PackInventory& pack : inventory.packs)
    for (const InventoryItem& item : pack.items) {
      if (!theirs.IsLive(item.key) || others.IsLive(item.key) ||
          !objects.insert(item.key).second)
        continue;
      if (item.key.type == ObjectType::kBlob || item.key.type == ObjectType::kChunks)
        ++plan_.versions;
      plan_.bytes += item.total_length();
    }
  plan_.objects.assign(objects.begin(), objects.end());
  return Ok();
}

std::vector<LogRecord> Purger::HeirsToldAnew() {
  struct Told {
    SessionRecord latest = {};
    RootId root = {};
    int64_t made_ms = 0;
    std::string parent = {};  // as the latest record says that names one
    uint64_t inherited = 0;
    bool subagent = false;
  };
  std::map<std::string, Told> sessions;
  for (const LogRecord& record : log_.records) {  // oldest first
    auto one = ToSession(record);
    if (!one.ok() || !log_.IsWanted(record)) continue;
    Told& told = sessions[one->session];
    if (one->parent) {
      told.parent = *one->parent;
      told.inherited = one->inherited_turns;
      told.subagent = one->subagent;
    }
    told.latest = std::move(*one);
    told.root = record.root;
    told.made_ms = record.made_ms;
  }
  std::vector<LogRecord> out;
  if (BELAY_MUTANT("purge-parts-grandchildren")) return out;
  for (const auto& [id, told] : sessions) {
    if (sessions_.contains(id) || told.subagent || !sessions_.contains(told.parent))
      continue;
    std::string parent = told.parent;
    uint64_t turns = told.inherited;
    for (size_t left = sessions.size(); sessions_.contains(parent); --left) {
      const auto up = sessions.find(parent);
      const bool ends = left == 0 || up == sessions.end() || up->second.subagent;
      parent = ends ? "" : up->second.parent;
      turns = ends ? 0 : std::min(turns, up->second.inherited);
    }
    if (parent.empty() || turns == 0 || parent == id) continue;
    SessionRecord next = told.latest;
    next.parent = parent;
    next.inherited_turns = turns;
    next.subagent = false;
    next.by = SessionRecord::By::kNone;
    // When it was heard of last is no other time for that.
    out.push_back(
        ToRecord(next, RecordId(store_.random().NewId()), told.root, told.made_ms));
  }
  return out;
}

Status Purger::FindWhoKeeps(const std::unordered_set<ObjectId>& came) {
  if (came.empty()) return Ok();
  std::unordered_map<ObjectId, bool> known;
  for (auto at = log_.records.rbegin(); at != log_.records.rend(); ++at) {
    auto c = ToCheckpoint(*at);
    if (!c.ok() || !log_.IsWanted(*at) || dropped_.contains(at->id)) continue;
    auto state = store_.GetState(c->state);
    if (!state.ok()) continue;
    BELAY_TRY(const bool keeps, HasAnyOf(state->tree, came, known));
    if (!keeps) continue;
    auto told = retitled_.find(c->id);
    KeepsOfSession kept{.id = c->id, .root = {}, .title = c->description};
    if (told != retitled_.end()) kept.title = told->second;
    if (c->name) kept.title = *c->name;
    if (auto root = roots_.find(c->root); root != roots_.end())
      kept.root = root->second.root.path;
    plan_.kept_by.push_back(std::move(kept));
  }
  return Ok();
}

void Purger::FindWhoQuotes() {
  std::set<std::string> quotes;
  std::unordered_map<RecordId, std::string> described;  // by an earlier purge
  std::unordered_set<RecordId> checkpoints;
  auto quote = [](std::set<std::string>& all, const std::string& text) {
    if (text.empty()) return;
    all.insert("'" + text + "'");
    all.insert("'" + EscapeForDisplay(text) + "'");  // as older Belays wrote it
  };
  for (const LogRecord& record : log_.records)
    if (auto c = ToCheckpoint(record); c.ok() && IsOfSession(c->session)) {
      checkpoints.insert(record.id);
      quote(quotes, c->name.value_or(""));
    }
  std::unordered_map<RecordId, std::set<std::string>> of_safety;
  std::unordered_map<uint64_t, std::set<std::string>> of_raced;  // comes right before
  for (const LogRecord& record : log_.records) {
    if (auto about = AnnotationTarget(record)) {
      if (checkpoints.contains(*about))
        quote(quotes, record.fields.Text(kAnnotationName).value_or(""));
      if (auto text = record.fields.Text(kAnnotationDescription))
        described[*about] = std::move(*text);
    }
    auto operation = ToOperation(record);
    if (!operation.ok() || !dropped_.contains(record.id)) continue;
    if (operation->safety) quote(of_safety[*operation->safety], operation->label);
    quote(of_raced[record.seq - 1], operation->label);
  }
  auto without = [](std::string text, const std::set<std::string>& all) {
    for (const std::string& one : all)
      for (size_t at = 0; (at = text.find(one, at)) != std::string::npos;)
        text.replace(at, one.size(), kNotNamed);
    return text;
  };
  for (const LogRecord& record : log_.records) {
    if (!log_.IsWanted(record) || dropped_.contains(record.id)) continue;
    std::string text;
    if (auto c = ToCheckpoint(record); c.ok() && c->kind == CheckpointKind::kSafety)
      text = c->description;
    else if (record.kind == RecordKind::kOperation && !IsPurgeOperation(record))
      text = "'" + record.fields.Text(kPurgeOperationLabel).value_or("") + "'";
    else
      continue;
    if (auto told = described.find(record.id); told != described.end())
      text = told->second;
    std::string after = without(text, quotes);
    if (record.kind == RecordKind::kCheckpoint) {
      after = without(std::move(after), of_safety[record.id]);
      after = without(std::move(after), of_raced[record.seq]);
    }
    if (after != text && !BELAY_MUTANT("purge-leaves-names"))
      retitled_.emplace(record.id, record.kind == RecordKind::kCheckpoint ? after : "");
  }
  plan_.retitled = retitled_.size();
}

Result<bool> Purger::HasAnyOf(const ObjectId& top,
                              const std::unordered_set<ObjectId>& ids,
                              std::unordered_map<ObjectId, bool>& known) {
  std::vector<ObjectId> open{top};
  while (!open.empty()) {
    const ObjectId id = open.back();
    if (known.contains(id)) {
      open.pop_back();
      continue;
    }
    bool has = false, waits = false;
    if (auto tree = store_.GetTree(id); tree.ok())
      for (const TreeEntry& entry : tree->entries) {
        has |= entry.kind == EntryKind::kFile &&
               (ids.contains(entry.id) || HasChunkOf(store_, entry, ids));
        if (entry.kind != EntryKind::kDirectory) continue;
        auto below = known.find(entry.id);
        if (below != known.end()) {
          has |= below->second;
        } else {
          open.push_back(entry.id);
          waits = true;
        }
      }
    if (waits) continue;
    known[id] = has;
    open.pop_back();
  }
  return known[top];
}

}  // namespace belay
