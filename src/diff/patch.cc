#include "diff/patch.h"

#include <cstdio>

#include "base/bytes.h"
#include "base/mutant.h"
#include "base/sha1.h"

namespace belay {

namespace {

std::string Octal(uint32_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", mode);
  return text;
}

// As `git hash-object` of a SHA-1 repository has it.
std::string GitBlobId(std::string_view text) {
  std::string blob = "blob " + std::to_string(text.size());
  blob += '\0';
  blob += text;
  Sha1 hash;
  hash.Update(AsBytes(blob));
  return ToHex(hash.Finish());
}

LineEdit Whole(std::string_view a, std::string_view b) {
  auto all = [](std::string_view text) {
    LineRange range;
    for (size_t at = 0; at < text.size(); at += LineAt(text, at).size()) ++range.count;
    range.length = static_cast<uint32_t>(text.size());
    return range;
  };
  return {all(a), all(b)};
}

}  // namespace

std::string QuoteForPatch(std::string_view name) {
  std::string out;
  bool quoted = false;
  for (char c : name) {
    const auto u = static_cast<unsigned char>(c);
    const char* found = nullptr;
    constexpr std::string_view kFrom = "\a\b\t\n\v\f\r\"\\";
    constexpr const char* kTo[] = {"\\a", "\\b", "\\t",  "\\n", "\\v",
                                   "\\f", "\\r", "\\\"", "\\\\"};
    if (const size_t at = kFrom.find(c); at != std::string_view::npos) found = kTo[at];
    if (found != nullptr) {
      out += found;
      quoted = true;
    } else if (u < 0x20 || u >= 0x7f) {
      char text[8];
      std::snprintf(text, sizeof text, "\\%03o", u);
      out += text;
      quoted = true;
    } else {
      out += c;
    }
  }
  return quoted ? '"' + out + '"' : out;
}

std::string_view GitMode(const TreeEntry& entry) {
  if (entry.kind == EntryKind::kSymlink) return "120000";
  return (entry.mode & 0100) != 0 ? "100755" : "100644";
}

std::string SecretText(const TreeEntry& entry) {
  if (entry.kind == EntryKind::kSymlink)
    return "sha256 " + Sha256::Of(AsBytes(entry.target)).hex() + " (symlink)";
  return "sha256 " + entry.id.hex() + " (" + std::to_string(entry.size) +
         (entry.size == 1 ? " byte)" : " bytes)");
}

std::string UnknownText(const PathDiff& diff) {
  const std::string side = diff.before ? "only the old side has it; the new one "
                                       : "only the new side has it; the old one ";
  if (diff.why == "partial")
    return side + "is a partial checkpoint, which may have missed it";
  if (diff.why == "ignored_now") return side + "does not cover it, and it is there";
  return side + "left it out (" + diff.why + ")";
}

void PatchWriter::Note(const std::string& text) {
  Line(PatchLine::kNote, "# " + text);
  bare_ = false;
}

void PatchWriter::Marker(const std::string& text) {
  if (bare_) Line(PatchLine::kNote, "#");
  Line(PatchLine::kNote, text);
  bare_ = false;
}

// What git has no words for.
void PatchWriter::Attributes(const PathDiff& diff) {
  if (!diff.before || !diff.after) return;
  const TreeEntry &a = *diff.before, &b = *diff.after;
  const std::string name = QuoteForPatch(diff.path);
  const bool link = b.kind == EntryKind::kSymlink;
  auto plain = [](uint32_t mode) { return mode == 0644 || mode == 0755; };
  if (a.mode != b.mode && a.kind == b.kind && !link &&
      !(b.kind == EntryKind::kFile && plain(a.mode) && plain(b.mode)))
    Note("mode of " + name + ": " + Octal(a.mode) + " -> " + Octal(b.mode));
  if (a.uid != b.uid || a.gid != b.gid)
    Note("owner of " + name + ": " + std::to_string(a.uid) + ":" +
         std::to_string(a.gid) + " -> " + std::to_string(b.uid) + ":" +
         std::to_string(b.gid));
  if (a.xattrs != b.xattrs) Note("extended attributes of " + name + " differ");
}

void PatchWriter::Write(const PathDiff& diff, const FileDiff& file) {
  const std::string name = QuoteForPatch(diff.path);
  if (diff.status == DiffStatus::kUnknown) return Note(name + ": " + UnknownText(diff));
  Attributes(diff);
  const TreeEntry& any = diff.after ? *diff.after : *diff.before;
  if (any.kind == EntryKind::kDirectory) {
    if (!diff.before) Note("new empty directory " + name);
    if (!diff.after) Note("deleted empty directory " + name);
    return;
  }
  const std::string& old_path = diff.old_path.empty() ? diff.path : diff.old_path;
  const std::string old_name =
      diff.before ? QuoteForPatch("a/" + old_path) : "/dev/null";
  const std::string new_name =
      diff.after ? QuoteForPatch("b/" + diff.path) : "/dev/null";
  if (diff.secret && !diff.SameContent())
    return Note("secret " + old_name + " " + new_name + ": " +
                (diff.before ? SecretText(*diff.before) : "absent") + " -> " +
                (diff.after ? SecretText(*diff.after) : "absent"));
  if (file.trouble)
    return Note(name + " cannot be shown: " + QuoteForPatch(file.trouble->what));
  if (file.shape == FileDiff::Shape::kTooLarge)
    Note(old_name + " and " + new_name + " differ and are too large to show");
  if (file.shape == FileDiff::Shape::kBinary)
    Marker("Binary files " + old_name + " and " + new_name + " differ");
  Section(diff, file);
}

void PatchWriter::Section(const PathDiff& diff, const FileDiff& file) {
  const bool shown = file.shape == FileDiff::Shape::kText ||
                     (file.shape == FileDiff::Shape::kHidden && diff.SameContent());
  const std::string& old_path = diff.old_path.empty() ? diff.path : diff.old_path;
  const std::string a = QuoteForPatch("a/" + old_path);
  const std::string b = QuoteForPatch("b/" + diff.path);
  auto head = [&](const std::string& line) { Line(PatchLine::kHead, line); };
  // git leaves blanks as they are here; then patch(1) finds no names.
  auto quoted = [](const std::string& name) {
    return name.find(' ') == std::string::npos || name.starts_with('"')
               ? name
               : '"' + name + '"';
  };
  const std::string first = "diff --git " + quoted(a) + " " + quoted(b);
  if (diff.before && diff.after && diff.status != DiffStatus::kTypeChanged) {
    const bool mode = GitMode(*diff.before) != GitMode(*diff.after);
    const bool renamed = diff.status == DiffStatus::kRenamed;
    if (!mode && !renamed && file.edits.empty()) return;
    head(first);
    if (mode) {
      head("old mode " + std::string(GitMode(*diff.before)));
      head("new mode " + std::string(GitMode(*diff.after)));
    }
    if (renamed) {
      head("similarity index " + std::to_string(diff.similarity) + "%");
      head("rename from " + QuoteForPatch(old_path));
      head("rename to " + QuoteForPatch(diff.path));
    }
    // Without it patch(1) would take a symlink for a file.
    if (!file.edits.empty() && diff.after->kind == EntryKind::kSymlink)
      head("index " + GitBlobId(file.old_text()) + ".." + GitBlobId(file.new_text()) +
           " 120000");
    return Body(a, b, file.old_text(), file.new_text(), file.edits);
  }
  if (!shown) return;
  if (diff.before) {
    head(first);
    head("deleted file mode " + std::string(GitMode(*diff.before)));
    // Without it patch(1) finds nothing to do for an empty file, and asks.
    if (file.old_text().empty())
      head("index " + GitBlobId({}) + ".." + std::string(40, '0'));
    const LineEdit edit = Whole(file.old_text(), {});
    Body(a, "/dev/null", file.old_text(), {}, {&edit, edit.a.count > 0 ? 1u : 0u});
  }
  if (diff.after) {
    head(first);
    head("new file mode " + std::string(GitMode(*diff.after)));
    const LineEdit edit = Whole({}, file.new_text());
    Body("/dev/null", b, {}, file.new_text(), {&edit, edit.b.count > 0 ? 1u : 0u});
  }
}

void PatchWriter::Body(const std::string& old_name, const std::string& new_name,
                       std::string_view a, std::string_view b,
                       std::span<const LineEdit> edits) {
  bare_ = edits.empty();
  if (bare_) return;
  // A tab ends a name with a blank in it: patch(1) takes what follows for a date.
  // One that ends with a blank it finds only in quotes.
  auto tab = [](const std::string& name) {
    if (name.ends_with(' ')) return '"' + name + '"';
    return name.find(' ') == std::string::npos ? name : name + '\t';
  };
  Line(PatchLine::kHead, "--- " + tab(old_name));
  Line(PatchLine::kHead, "+++ " + tab(new_name));
  Hunks(a, b, edits);
}

void PatchWriter::Hunks(std::string_view a, std::string_view b,
                        std::span<const LineEdit> edits) {
  std::string text;
  for (const Hunk& hunk : HunksOf(a, b, edits)) {
    text = HunkRange(hunk);
    if (const std::string_view heading = HunkHeading(a, hunk); !heading.empty())
      text.append(" ").append(heading);
    Line(PatchLine::kRange, text);
    ForEachLine(a, b, hunk, [&](char op, std::string_view line) {
      const bool ends = line.ends_with('\n');
      text.assign(1, op);
      text.append(ends ? line.substr(0, line.size() - 1) : line);
      Line(op == ' '   ? PatchLine::kSame
           : op == '-' ? PatchLine::kOld
                       : PatchLine::kNew,
           text);
      if (!ends && !BELAY_MUTANT("diff-forget-no-newline"))
        Line(PatchLine::kNoEnd, "\\ No newline at end of file");
    });
  }
}

}  // namespace belay
