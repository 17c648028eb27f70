#include "history/purge.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/annotate.h"
#include "core/operations.h"
#include "core/purged.h"
#include "history/purge_disk.h"
#include "history/purge_internal.h"
#include "history/purge_survey.h"
#include "restore/journal.h"
#include "restore/look.h"
#include "store/batch_writer.h"
#include "store/catalog.h"
#include "store/gc.h"
#include "store/heads.h"
#include "store/inventory.h"

namespace belay {

namespace {

// Tags of an operation record; docs/format.md.
constexpr uint64_t kName = 1, kLabel = 8, kCount = 11, kPurgedPath = 12;
constexpr std::string_view kPurgeName = "purge", kSessionLabel = "a session";
// What stands where a name was.
constexpr std::string_view kNotNamed = "a checkpoint that was purged";
// Of a session's and a turn's record.
constexpr uint64_t kOfSession = 1;
// Objects that one purge record names at most.
constexpr size_t kObjectsInRecord = 16'384;

// A root as its latest record has it.
struct KnownRoot {
  Root root;
  uint64_t seq = 0;
};
using KnownRoots = std::unordered_map<RootId, KnownRoot>;

KnownRoots RootsIn(const LogView& log) {
  KnownRoots roots;
  for (const LogRecord& record : log.records) {
    if (!log.IsWanted(record)) continue;
    auto root = ToRoot(record);
    if (!root.ok()) continue;
    KnownRoot& known = roots[root->id];
    if (known.seq <= record.seq) known = {std::move(*root), record.seq};
  }
  return roots;
}

bool IsPurgeOperation(const LogRecord& record) {
  return record.kind == RecordKind::kOperation &&
         record.fields.Text(kName) == kPurgeName;
}

// Which paths were purged, and when: as operations say, and where none was written
// (once, when nothing could be erased) as the root's record does, the first to have it.
PurgeSurvey::PurgedPaths PathsPurgedIn(const LogView& log, const KnownRoots& roots) {
  PurgeSurvey::PurgedPaths out;
  std::unordered_map<RootId, std::vector<std::string>> left_out;
  for (const LogRecord& record : log.records) {
    if (!log.IsWanted(record)) continue;
    if (auto root = ToRoot(record); root.ok()) {
      std::vector<std::string>& before = left_out[root->id];
      for (const std::string& path : root->purged)
        if (std::ranges::find(before, path) == before.end())
          out[root->id].push_back({path, record.seq});
      before = std::move(root->purged);
    } else if (IsPurgeOperation(record)) {
      auto path = record.fields.Text(kPurgedPath);
      if (!path) path = record.fields.Text(kLabel);  // of an older Belay
      if (path && (record.fields.Text(kPurgedPath) || *path != kSessionLabel))
        out[record.root].push_back({*path, record.seq});
    }
  }
  // Several ids may mean one root.
  std::map<std::string, std::vector<RootId>> by_path;
  for (const auto& [id, known] : roots) by_path[known.root.path].push_back(id);
  for (const auto& [path, ids] : by_path) {
    if (ids.size() == 1) continue;
    std::vector<PurgeSurvey::PurgedPath> all;
    for (const RootId& id : ids) all.insert(all.end(), out[id].begin(), out[id].end());
    for (const RootId& id : ids) out[id] = all;
  }
  return out;
}

// A record of a long file stays short: several of them name all its chunks.
std::vector<std::vector<KeptChunks>> InRecords(const std::vector<KeptChunks>& kept) {
  std::vector<std::vector<KeptChunks>> records;
  size_t room = 0;
  for (const KeptChunks& one : kept)
    for (size_t at = 0; at < one.chunks.size();) {
      if (room == 0) {
        records.emplace_back();
        room = kObjectsInRecord;
      }
      const size_t count = std::min(room, one.chunks.size() - at);
      const auto from = one.chunks.begin() + static_cast<ptrdiff_t>(at);
      records.back().push_back(
          {one.content, {from, from + static_cast<ptrdiff_t>(count)}});
      at += count;
      room -= count;
    }
  return records;
}

void SortUnique(std::vector<SharedContent>& shared) {
  auto key = [](const SharedContent& s) { return std::tie(s.path, s.root, s.also); };
  // All of it says more than a part of it.
  std::ranges::sort(shared, [](const SharedContent& a, const SharedContent& b) {
    return std::tie(a.path, a.root, a.also, a.part) <
           std::tie(b.path, b.root, b.also, b.part);
  });
  // Not ranges::unique: clang 14 does not compile what it returns.
  auto same = [&](const SharedContent& a, const SharedContent& b) {
    return key(a) == key(b);
  };
  shared.erase(std::unique(shared.begin(), shared.end(), same), shared.end());
}

// Published alone or not at all, by whoever holds the locks.
class Purger {
 public:
  Purger(Store& store, const PurgeRequest& request)
      : store_(store), request_(request) {}

  // With `use` held.
  Status Look() {
    log_ = LogView();
    BELAY_OK(ReadOn(store_, log_));
    if (!log_.whole)
      return Error(Errc::kCorrupt, "a part of the log cannot be read")
          .WithHint("nothing was purged; run: belay repair");
    roots_ = RootsIn(log_);
    if (request_.session) return PlanSession();
    std::unordered_set<RootId> mine{request_.root.id};
    for (const auto& [id, known] : roots_)
      if (known.root.path == request_.root.path) mine.insert(id);
    auto purged = PathsPurgedIn(log_, roots_);
    was_purged_ = std::ranges::any_of(purged[request_.root.id],
                                      [&](const PurgeSurvey::PurgedPath& before) {
                                        return IsAtOrBelow(*request_.path, before.path);
                                      });
    survey_ = std::make_unique<PurgeSurvey>(store_, log_, *request_.path, mine,
                                            std::move(purged));
    BELAY_OK(survey_->Run());
    return PlanPath();
  }

  const PurgePlan& plan() const { return plan_; }
  PurgePlan TakePlan() { return std::move(plan_); }

  // Roots besides the request's own whose content goes.
  std::set<RootId> OtherRoots() const {
    std::set<RootId> others;
    if (request_.everywhere)
      for (const SharedContent& shared : plan_.shared) others.insert(shared.root_id);
    for (const SharedContent& shared : plan_.purged_before)
      others.insert(shared.root_id);
    for (const LogRecord& record : log_.records)
      if (!record.root.is_zero() && dropped_.contains(record.id))
        others.insert(record.root);
    others.erase(request_.root.id);
    return others;
  }

  // The locks of the roots are held. Says no (kConflict) when somebody stored the same
  // content under another path by then: plan again.
  Status Publish(std::vector<std::string>& left_out) {
    const int64_t now = store_.clock().WallMillis();
    auto new_id = [&] { return RecordId(store_.random().NewId()); };
    BELAY_TRY(auto writer, store_.Begin());
    for (size_t at = 0; at < plan_.objects.size(); at += kObjectsInRecord) {
      const size_t end = std::min(at + kObjectsInRecord, plan_.objects.size());
      writer->Add(MakePurge(new_id(), now,
                            {plan_.objects.begin() + static_cast<ptrdiff_t>(at),
                             plan_.objects.begin() + static_cast<ptrdiff_t>(end)},
                            request_.session ? "session" : "path", /*erased=*/true));
    }
    for (const std::vector<KeptChunks>& kept : InRecords(plan_.kept_chunks))
      writer->Add(MakePurge(new_id(), now, {}, "path", /*erased=*/true, kept));
    if (!plan_.records.empty()) writer->Add(MakeDrop(new_id(), now, plan_.records));
    for (const LogRecord& record : log_.records) {
      auto text = retitled_.find(record.id);
      if (text == retitled_.end()) continue;
      LogRecord annotation;
      annotation.kind = RecordKind::kAnnotation;
      annotation.id = new_id();
      annotation.root = record.root;
      annotation.made_ms = now;
      annotation.fields.Add(kAnnotationTarget, record.id.span());
      annotation.fields.Add(kAnnotationDescription, text->second);
      writer->Add(std::move(annotation));
    }
    for (auto& [root, paths] : ToLeaveOut()) {
      Root next = roots_.at(root).root;
      bool more = false;
      for (const std::string& path : paths) {
        if (std::ranges::find(next.purged, path) != next.purged.end()) continue;
        next.purged.push_back(path);
        more = true;
      }
      std::ranges::sort(next.purged);
      for (const std::string& path : paths) left_out.push_back(next.path + "/" + path);
      if (more) writer->Add(ToRecord(next, new_id(), now));
    }
    std::ranges::sort(left_out);
    // Also when all of it stays, because of another path: the purge of that one then
    // knows that this one is no reason.
    const bool log = !plan_.empty() || !plan_.shared.empty();
    if (log) AddToTheLog(*writer, now);
    if (!log && left_out.empty()) return Ok();
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit([&] {
      return BELAY_MUTANT("purge-trusts-its-look") ? Ok() : StillTrue();
    }));
    return Ok();
  }

 private:
  Status PlanPath() {
    PurgePlan plan;
    plan.paths.assign(survey_->paths().begin(), survey_->paths().end());
    plan.links = survey_->links();
    plan.was_purged = was_purged_;
    plan.on_disk = IsStillThere(store_.fs(), request_.root, *request_.path);
    plan.git_copies = survey_->git_copies();
    plan.git_may_hold = survey_->git_may_hold();
    std::set<ObjectKey> objects;
    auto add = [&](const ObjectId& content) {
      // Whoever asks for content asks for a blob first: both names mean it.
      objects.insert({ObjectType::kBlob, content});
      objects.insert({ObjectType::kChunks, content});
    };
    // True: somebody else has it, and it stays.
    auto shared = [&](const ObjectId& id, const std::string& path, bool part) {
      auto found = survey_->others().find(id);
      if (found == survey_->others().end()) return false;
      bool stays = false;
      std::vector<SharedContent> before;
      for (const PurgeSurvey::Place& place : found->second) {
        auto root = roots_.find(place.root);
        stays |= !place.purged;
        (place.purged ? before : plan.shared)
            .push_back({path, place.root,
                        root == roots_.end() ? "" : root->second.root.path, place.path,
                        part});
      }
      stays = stays && !request_.everywhere && !BELAY_MUTANT("purge-what-is-shared");
      if (!stays)
        plan.purged_before.insert(plan.purged_before.end(), before.begin(),
                                  before.end());
      return stays;
    };
    std::map<ObjectId, std::vector<ObjectId>> long_ones;  // that go, with their chunks
    // True: at least one of them goes.
    auto add_chunks = [&](const PurgeSurvey::Content& content) -> Result<bool> {
      bool any = false;
      for (const ObjectId& chunk : content.chunks) {
        if (shared(chunk, content.path, true)) continue;
        any = true;
        objects.insert({ObjectType::kBlob, chunk});
        // Nobody can put together what lacks a part.
        auto wholes = survey_->wholes().find(chunk);
        if (wholes == survey_->wholes().end()) continue;
        for (const ObjectId& whole : wholes->second) {
          add(whole);
          BELAY_TRY(long_ones[whole], survey_->ChunksOf(whole));
        }
      }
      return any;
    };
    for (const auto& [id, content] : survey_->mine()) {
      if (shared(id, content.path, false)) continue;
      ++(survey_->git_mine().contains(id) ? plan.git_files : plan.versions);
      plan.bytes += content.size;
      add(id);
      long_ones[id] = content.chunks;
      BELAY_TRY([[maybe_unused]] bool any, add_chunks(content));
    }
    for (const auto& [id, content] : survey_->remains()) {
      BELAY_TRY(bool any, add_chunks(content));
      plan.versions += any ? 1 : 0;
      plan.bytes += any ? content.size : 0;
    }
    for (auto& [id, chunks] : long_ones) {
      std::erase_if(chunks, [&](const ObjectId& chunk) {
        return objects.contains({ObjectType::kBlob, chunk});
      });
      if (!chunks.empty() && !BELAY_MUTANT("purge-forgets-what-it-keeps"))
        plan.kept_chunks.push_back({id, std::move(chunks)});
    }
    plan.objects.assign(objects.begin(), objects.end());
    SortUnique(plan.shared);
    SortUnique(plan.purged_before);
    std::erase_if(plan.purged_before, [&](const SharedContent& before) {
      return std::ranges::find(plan.shared, before) != plan.shared.end();
    });
    std::unordered_set<ObjectId> contents;
    for (const ObjectKey& key : objects) contents.insert(key.id);
    BELAY_TRY(plan.checkpoints, survey_->CountCheckpoints(contents));
    plan_ = std::move(plan);
    return Ok();
  }

  // A session: its records go, with what only they lead to.
  Status PlanSession() {
    PurgePlan plan;
    std::unordered_set<RecordId> checkpoints, pinned;
    for (const LogRecord& record : log_.records) {
      if (!log_.IsWanted(record)) continue;
      auto checkpoint = ToCheckpoint(record);
      if (checkpoint.ok() && checkpoint->session == request_.session)
        checkpoints.insert(record.id);
    }
    for (const LogRecord& record : log_.records) {
      if (!log_.IsWanted(record)) continue;
      bool goes = checkpoints.contains(record.id);
      if (record.kind == RecordKind::kSession || record.kind == RecordKind::kTurn)
        goes = record.fields.Text(kOfSession) == request_.session;
      if (auto about = AnnotationTarget(record);
          about && checkpoints.contains(*about)) {
        goes = true;
        if (auto pin = record.fields.Number(kAnnotationPinned)) {
          if (*pin != 0)
            pinned.insert(*about);
          else
            pinned.erase(*about);
        }
      }
      // A rollback to one of them says what that was called.
      // So do its undo and redo, which come after it.
      if (auto operation = ToOperation(record);
          operation.ok() &&
          ((operation->target && checkpoints.contains(*operation->target)) ||
           (operation->of && dropped_.contains(*operation->of)))) {
        goes = true;
        ++plan.operations;
      }
      if (goes) dropped_.insert(record.id);
    }
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

  // Which checkpoints go on holding what came with the session.
  Status FindWhoKeeps(const std::unordered_set<ObjectId>& came) {
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

  // Who quotes the name of one of its checkpoints, had now or before: what a rollback
  // to it made, and whatever went to that in turn. A checkpoint without a name is
  // quoted by its description, which others may have as well: there only what is known
  // to belong to such a rollback counts.
  void FindWhoQuotes() {
    std::set<std::string> quotes;
    std::unordered_map<RecordId, std::string> described;  // by an earlier purge
    std::unordered_set<RecordId> checkpoints;
    auto quote = [](std::set<std::string>& all, const std::string& text) {
      if (text.empty()) return;
      all.insert("'" + text + "'");
      all.insert("'" + EscapeForDisplay(text) + "'");  // as older Belays wrote it
    };
    for (const LogRecord& record : log_.records)
      if (auto c = ToCheckpoint(record); c.ok() && c->session == request_.session) {
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
        text = "'" + record.fields.Text(kLabel).value_or("") + "'";
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
        retitled_.emplace(record.id,
                          record.kind == RecordKind::kCheckpoint ? after : "");
    }
    plan_.retitled = retitled_.size();
  }

  // Each tree once, from the leaves up; what cannot be read has nothing.
  Result<bool> HasAnyOf(const ObjectId& top, const std::unordered_set<ObjectId>& ids,
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
          has |= entry.kind == EntryKind::kFile && ids.contains(entry.id);
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

  // Of each root, what is there now and must not be stored again.
  std::map<RootId, std::vector<std::string>> ToLeaveOut() {
    std::map<RootId, std::vector<std::string>> out;
    if (!request_.path) return out;
    if (roots_.contains(request_.root.id) && !BELAY_MUTANT("purge-goes-on-storing")) {
      std::vector<std::string>& paths = out[request_.root.id];
      if (plan_.on_disk) paths.push_back(*request_.path);
      // No more copies are made of these; what comes to be at the path is covered.
      if (plan_.git_copies)
        for (const std::string& git : survey_->git_paths())
          if (!IsAtOrBelow(git, *request_.path)) paths.push_back(git);
      if (paths.empty()) out.erase(request_.root.id);
    }
    if (!request_.everywhere) return out;
    const std::set<ObjectKey> erased(plan_.objects.begin(), plan_.objects.end());
    for (const SharedContent& shared : plan_.shared) {
      auto root = roots_.find(shared.root_id);
      if (root == roots_.end() || shared.also.empty()) continue;
      auto hash = HashOnDisk(store_.fs(), root->second.root, shared.also);
      if (!hash || !erased.contains({ObjectType::kBlob, *hash})) continue;
      std::vector<std::string>& paths = out[shared.root_id];
      if (std::ranges::find(paths, shared.also) == paths.end())
        paths.push_back(shared.also);
    }
    return out;
  }

  // For `belay log`. Of a session nothing but that it went.
  void AddToTheLog(BatchWriter& writer, int64_t now) {
    auto record = [&](const RootId& root, std::string_view label, uint64_t count,
                      const std::optional<std::string>& path) {
      LogRecord operation;
      operation.kind = RecordKind::kOperation;
      operation.id = RecordId(store_.random().NewId());
      operation.root = root;
      operation.made_ms = now;
      operation.fields.Add(kName, kPurgeName);
      operation.fields.Add(kLabel, label);
      operation.fields.AddNumber(kCount, count);
      if (path) operation.fields.Add(kPurgedPath, *path);
      writer.Add(std::move(operation));
    };
    if (request_.path) {
      record(request_.root.id, *request_.path, plan_.checkpoints, request_.path);
      return;
    }
    std::map<RootId, uint64_t> counts;
    for (const LogRecord& r : log_.records)
      if (!r.root.is_zero() && dropped_.contains(r.id))
        counts[r.root] += r.kind == RecordKind::kCheckpoint ? 1 : 0;
    for (const auto& [root, count] : counts) record(root, kSessionLabel, count, {});
  }

  // Under `append`: nobody publishes meanwhile.
  Status StillTrue() {
    std::unordered_set<RecordId> known;
    for (const LogRecord& record : log_.records) known.insert(record.id);
    const size_t before = log_.records.size();
    BELAY_OK(ReadOn(store_, log_));
    if (log_.records.size() == before) return Ok();
    for (const LogRecord& record : log_.records) {
      if (known.contains(record.id) || !log_.Holds(record)) continue;
      // What we keep because of a path is kept no longer when that is purged.
      if (IsPurgeOperation(record)) return Changed();
      if (record.refs.empty()) continue;
      if (request_.session) return Changed();
      BELAY_TRY(bool same, survey_->LookAtOther(record));
      if (!same) return Changed();
    }
    return Ok();
  }
  static Error Changed() {
    return Error(Errc::kConflict, "others have stored the same content meanwhile")
        .WithHint("nothing was erased; try again");
  }

  Store& store_;
  const PurgeRequest& request_;
  LogView log_;
  KnownRoots roots_;
  std::unique_ptr<PurgeSurvey> survey_;
  bool was_purged_ = false;
  PurgePlan plan_;
  std::unordered_set<RecordId> dropped_;
  // What checkpoints are described as from now on; of operations, nothing.
  std::unordered_map<RecordId, std::string> retitled_;
};

Status RefuseInterrupted(Store& store, const RootId& root) {
  BELAY_TRY(bool interrupted, JournalFile::Exists(store, root));
  if (!interrupted) return Ok();
  return Error(Errc::kRefused, "a rollback of this directory was interrupted")
      .WithHint("finish it first: belay status; nothing was purged");
}

bool IsShown(const PurgePlan& shown, const SharedContent& shared) {
  return std::ranges::find(shown.shared, shared) != shown.shared.end();
}

}  // namespace

Result<PurgePlan> PlanPurge(Store& store, const PurgeRequest& request) {
  BELAY_TRY(HeldLock use, store.HoldForReading());
  Purger purger(store, request);
  BELAY_OK(purger.Look());
  return purger.TakePlan();
}

Result<PurgeReport> Purge(Store& store, const PurgeRequest& request) {
  PurgeReport report;
  {
    // What would keep the packs from being written anew is said before anything is
    // published.
    GcOptions options;
    options.dry_run = true;
    auto possible = CollectGarbage(store, options);
    if (!possible.ok() && possible.error().code != Errc::kBusy) {
      Error error = std::move(possible).error();
      if (error.code == Errc::kCorrupt)
        error.hint = "nothing was purged; run: belay repair";
      return error;
    }
  }
  {
    // 1. Alone on the root: no checkpoint or rollback of it is under way, and the next
    //    one knows what is left out.
    HeldLock alone;
    if (!request.session) {
      BELAY_TRY(alone,
                store.locks().AcquireRoot(request.root.id, request.lock_wait_ms));
      BELAY_OK(RefuseInterrupted(store, request.root.id));
    }
    const int64_t deadline =
        store.clock().SteadyNanos() + request.lock_wait_ms * 1'000'000;
    for (;;) {
      Purger purger(store, request);
      {
        BELAY_TRY(HeldLock use, store.HoldForReading());
        BELAY_OK(purger.Look());
      }
      if (request.shown && request.everywhere)
        for (const SharedContent& shared : purger.plan().shared)
          if (!IsShown(*request.shown, shared))
            return Error(Errc::kConflict, "by now " + EscapeForDisplay(shared.also) +
                                              " in " + EscapeForDisplay(shared.root) +
                                              " has the same content too")
                .WithHint("nothing was erased; look again with --dry-run");
      // 2. The same for others, without waiting: nobody waits for a second one.
      std::vector<HeldLock> held;
      bool busy = false;
      for (const RootId& root : purger.OtherRoots()) {
        auto lock = store.locks().AcquireRoot(root, 0);
        busy = !lock.ok() && lock.error().code == Errc::kBusy &&
               store.clock().SteadyNanos() < deadline;
        if (busy) break;
        if (!lock.ok()) return std::move(lock).error();
        held.push_back(std::move(*lock));
        BELAY_OK(RefuseInterrupted(store, root));
      }
      if (busy) {
        held.clear();
        store.clock().SleepNanos(20'000'000);
        continue;
      }
      // 3. One batch: from here on nobody brings it back, and it is finished by
      //    whoever comes next.
      report.left_out.clear();
      Status published = purger.Publish(report.left_out);
      if (published.ok()) {
        report.plan = purger.TakePlan();
        break;
      }
      if (published.error().code != Errc::kConflict ||
          store.clock().SteadyNanos() >= deadline)
        return std::move(published).error();
    }
  }
  // 4. Beside everybody else.
  BELAY_OK(Erase(store, request, report));
  return report;
}

Status AllowAgain(Store& store, const Root& root, const std::string& path,
                  int64_t lock_wait_ms) {
  BELAY_TRY(HeldLock alone, store.locks().AcquireRoot(root.id, lock_wait_ms));
  BELAY_TRY(Heads heads, Heads::Read(store));
  Root next = root;
  for (const RootEntry& entry : heads.roots())
    if (entry.root.path == root.path) next = entry.root;
  if (std::erase(next.purged, path) == 0)
    return Error(Errc::kNotFound,
                 EscapeForDisplay(path) + " is not left out by a purge")
        .WithHint("why it is covered or not: belay why PATH");
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(
      ToRecord(next, RecordId(store.random().NewId()), store.clock().WallMillis()));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

}  // namespace belay
