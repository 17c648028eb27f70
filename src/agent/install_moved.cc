#include "agent/install_moved_internal.h"
#include "base/mutant.h"

namespace belay {

namespace {

bool FileIsGone(Fs& fs, const std::string& path) {
  auto at = AbsPath::Parse(path);
  if (!at.ok()) return false;
  auto real = fs.RealPath(*at);
  return !real.ok() && real.error().code == Errc::kNotFound;
}

}  // namespace

std::optional<MovedRecord> FindMovedRecord(Fs& fs, const InstallRecords& records,
                                           std::string_view agent,
                                           const AbsPath& project, const AbsPath& path,
                                           std::string_view text) {
  const auto below = path.Below(project);
  if (!below || below->empty()) return std::nullopt;
  const std::string tail = "/" + *below;
  std::optional<MovedRecord> found;
  for (const InstallRecord& record : records.all()) {
    if (!record.project || record.agent != agent || !record.path.ends_with(tail) ||
        record.path == path.bytes() || !record.Wrote(text))
      continue;
    // One that is still there is that of another project, of which this is a copy.
    if (!FileIsGone(fs, record.path) && !BELAY_MUTANT("a-copy-is-a-move")) continue;
    const std::string top = record.path.substr(0, record.path.size() - tail.size());
    MovedRecord moved{.was = record.path, .record = record};
    moved.record.path = path.bytes();
    for (std::string& dir : moved.record.made_dirs)
      if (dir.starts_with(top + "/")) dir = project.bytes() + dir.substr(top.size());
    if (found && (found->record.base != moved.record.base ||
                  found->record.made_dirs != moved.record.made_dirs))
      return std::nullopt;
    if (!found) found = std::move(moved);
  }
  return found;
}

}  // namespace belay
