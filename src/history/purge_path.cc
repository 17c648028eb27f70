// The plan for a path: what it ever held, and what of that stays for others.

#include <algorithm>

#include "base/mutant.h"
#include "core/purged.h"
#include "history/purge_disk.h"
#include "history/purger_internal.h"

namespace belay {

namespace {

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
      auto path = record.fields.Text(kPurgeOperationPath);
      if (!path) path = record.fields.Text(kPurgeOperationLabel);  // of an older Belay
      if (path && (record.fields.Text(kPurgeOperationPath) || *path != kSessionLabel))
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

}  // namespace

Status Purger::Look() {
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

Status Purger::PlanPath() {
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
      plan.purged_before.insert(plan.purged_before.end(), before.begin(), before.end());
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

std::map<RootId, std::vector<std::string>> Purger::ToLeaveOut() {
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

}  // namespace belay
