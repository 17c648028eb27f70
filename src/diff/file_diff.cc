#include "diff/file_diff.h"

#include <algorithm>
#include <cstring>

#include "base/mutant.h"

namespace belay {

namespace {

constexpr size_t kLooked = 8000;
// What is no longer than this is read at once.
constexpr uint64_t kReadWhole = uint64_t{1} << 20;

bool LooksBinary(std::string_view text) {
  return std::memchr(text.data(), 0, std::min(text.size(), kLooked)) != nullptr;
}

// A long file whose beginning tells; what cannot be read is told by who reads it all.
bool BeginsBinary(const DiffSide& side, const std::string& path,
                  const std::optional<TreeEntry>& entry) {
  if (!entry || entry->size <= kReadWhole || !side.beginning) return false;
  const auto first = side.beginning(path, *entry, kLooked);
  return first.ok() && LooksBinary(AsText(*first));
}

Status Read(const DiffSide& side, const std::string& path, TreeEntry& entry,
            Bytes& out) {
  if (entry.kind == EntryKind::kSymlink) {
    out = ToBytes(entry.target);
    return Ok();
  }
  auto read = side.content(path, entry, kMaxDiffFile);
  if (!read.ok() && read.error().code == Errc::kPurged)
    return Error(Errc::kPurged, "its content was purged");
  if (!read.ok()) return std::move(read).error();
  out = std::move(*read);
  if (side.is_now) {
    // Somebody may have written since the scan; what was read is what is shown.
    entry.size = out.size();
    entry.id = Sha256::Of(out);
  }
  return Ok();
}

}  // namespace

FileDiff LoadFileDiff(const DiffSide& from, const DiffSide& to, PathDiff& diff,
                      const FileDiffOptions& options) {
  FileDiff out;
  auto is_dir = [](const std::optional<TreeEntry>& entry) {
    return entry && entry->kind == EntryKind::kDirectory;
  };
  if (diff.status == DiffStatus::kUnknown || diff.secret || is_dir(diff.before) ||
      is_dir(diff.after)) {
    out.shape = FileDiff::Shape::kHidden;
    return out;
  }
  if (diff.SameContent()) return out;
  for (const auto* entry : {&diff.before, &diff.after}) {
    if (!*entry || (*entry)->kind != EntryKind::kFile) continue;
    if ((*entry)->size > kMaxDiffFile) {
      out.shape = FileDiff::Shape::kTooLarge;
      return out;
    }
  }
  const std::string& old_path = diff.old_path.empty() ? diff.path : diff.old_path;
  const bool files = (!diff.before || diff.before->kind == EntryKind::kFile) &&
                     (!diff.after || diff.after->kind == EntryKind::kFile);
  const bool may_be_binary =
      files && !options.as_text && !BELAY_MUTANT("diff-binary-as-text");
  if (may_be_binary && (BeginsBinary(from, old_path, diff.before) ||
                        BeginsBinary(to, diff.path, diff.after))) {
    out.shape = FileDiff::Shape::kBinary;
    return out;
  }
  if (diff.before) {
    Status read = Read(from, old_path, *diff.before, out.old_bytes);
    if (!read.ok()) out.trouble = std::move(read).error();
  }
  if (diff.after && !out.trouble) {
    Status read = Read(to, diff.path, *diff.after, out.new_bytes);
    if (!read.ok()) out.trouble = std::move(read).error();
  }
  if (out.trouble) return out;
  if (may_be_binary && (LooksBinary(out.old_text()) || LooksBinary(out.new_text()))) {
    out.shape = FileDiff::Shape::kBinary;
    return out;
  }
  // What became another kind of thing is shown as gone and as new.
  if (diff.status != DiffStatus::kTypeChanged)
    out.edits = DiffLines(out.old_text(), out.new_text());
  return out;
}

}  // namespace belay
