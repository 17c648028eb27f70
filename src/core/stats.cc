#include "core/stats.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace belay {

namespace {

constexpr size_t kForMedian = 5, kFor95 = 20;

uint64_t NearestRank(const std::vector<uint64_t>& sorted, size_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace

Timing TimingOf(std::vector<uint64_t> took_us) {
  std::sort(took_us.begin(), took_us.end());
  Timing out{.samples = took_us.size()};
  if (took_us.size() >= kForMedian) out.p50_us = NearestRank(took_us, 50);
  if (took_us.size() >= kFor95) out.p95_us = NearestRank(took_us, 95);
  return out;
}

std::optional<double> Stats::SuccessRate() const {
  const uint64_t done = rollbacks + undos + redos;
  const uint64_t tried = done + failed_rollbacks;
  if (tried == 0) return std::nullopt;
  return static_cast<double>(done) / static_cast<double>(tried);
}

std::optional<double> Stats::SessionShare() const {
  if (sessions == 0) return std::nullopt;
  return static_cast<double>(with_either) / static_cast<double>(sessions);
}

Stats StatsOf(const std::vector<RootFigures>& roots) {
  Stats out{.roots = roots.size()};
  std::vector<uint64_t> create, rollback;
  struct Session {
    bool rollback = false, manual = false;
  };
  // A session that worked in two roots is one session.
  std::map<std::string, Session> sessions;
  for (const RootFigures& root : roots) {
    std::unordered_map<RecordId, const std::string*> session_of;
    for (const CheckpointRow& row : root.checkpoints) {
      if (!out.since_ms || row.made_ms < *out.since_ms) out.since_ms = row.made_ms;
      (row.kind == CheckpointKind::kAuto     ? out.automatic
       : row.kind == CheckpointKind::kManual ? out.manual
                                             : out.safety) += 1;
      // A safety checkpoint is a part of its rollback, and plans it on the way.
      if (row.kind != CheckpointKind::kSafety && row.took_us != 0)
        create.push_back(row.took_us);
      if (!row.session) continue;
      session_of.emplace(row.id, &*row.session);
      sessions[*row.session].manual |= row.kind == CheckpointKind::kManual;
    }
    for (const Operation& operation : root.operations) {
      (operation.kind == OperationKind::kRollback ? out.rollbacks
       : operation.kind == OperationKind::kUndo   ? out.undos
                                                  : out.redos) += 1;
      if (operation.recovered) ++out.recovered;
      // What was interrupted took as long as nobody came by.
      if (!operation.recovered && operation.took_us != 0)
        rollback.push_back(operation.took_us);
      if (operation.kind != OperationKind::kRollback || !operation.target) continue;
      auto session = session_of.find(*operation.target);
      if (session != session_of.end()) sessions[*session->second].rollback = true;
    }
    for (const Failure& failure : root.failures) {
      if (failure.code == ErrcName(Errc::kBusy)) continue;
      (failure.what == "checkpoint" ? out.failed_checkpoints : out.failed_rollbacks) +=
          1;
    }
  }
  out.create = TimingOf(std::move(create));
  out.rollback = TimingOf(std::move(rollback));
  out.sessions = sessions.size();
  for (const auto& [id, session] : sessions) {
    out.with_rollback += session.rollback;
    out.with_manual += session.manual;
    out.with_either += session.rollback || session.manual;
  }
  return out;
}

}  // namespace belay
