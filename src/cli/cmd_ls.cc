#include <cstdio>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "core/purged.h"
#include "core/state_view.h"

namespace belay {

namespace {

// A state to list: a stored one, or the directory as it is.
struct Source {
  ObjectId tree;
  Scan::TreeReader read;
  std::optional<std::string> checkpoint;  // its id
  HeldLock hold;
  PurgedSet purged = {};
  uint64_t seq = 0;
};

Result<Source> OpenNow(CommandContext& ctx, OpenedRoot& root) {
  const Settings settings = LoadSettingsToRescue(ctx, root.path).settings;
  const GitPlaces git = GitPlacesOf(ctx.env);
  BELAY_TRY(ScanRequest request,
            ScanRequestFor(root.store(), *root.catalog, root.root, settings, git));
  Progress progress(ctx.term, root.opened->clock, "reading");
  request.progress = [&](const ScanProgress& p) {
    if (p.step == ScanProgress::Step::kCapture)
      progress.Update(p.bytes, p.total_bytes);
    else
      progress.Count(p.files, "files");
  };
  BELAY_TRY(TreeNow now, LookAtNow(root.store(), request));
  progress.Done();
  return Source{now.summary.tree, std::move(now.read), std::nullopt,
                std::move(now.hold)};
}

Result<Source> OpenSource(CommandContext& ctx, OpenedRoot& root, std::string_view ref) {
  if (IsNow(ref)) return OpenNow(ctx, root);
  BELAY_TRY(FoundRef found, FindCheckpoint(ctx, root, ref));
  BELAY_TRY(HeldLock hold, root.store().HoldForReading());
  BELAY_TRY(StateView view, LoadState(root.store(), found.entry.checkpoint.state));
  BELAY_TRY(PurgedSet purged, PurgedSet::Load(*root.catalog));
  return Source{
      view.state.tree, TreesOf(root.store()), found.entry.checkpoint.id.text(),
      std::move(hold), std::move(purged),     found.entry.checkpoint.seq};
}

std::string_view KindName(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return "file";
    case EntryKind::kSymlink:
      return "symlink";
    case EntryKind::kDirectory:
      return "directory";
  }
  return "file";
}

// "-rw-r--r--", as ls -l has it.
std::string ModeText(const TreeEntry& e) {
  std::string text = e.kind == EntryKind::kDirectory ? "d"
                     : e.kind == EntryKind::kSymlink ? "l"
                                                     : "-";
  for (int shift = 6; shift >= 0; shift -= 3) {
    const uint32_t bits = e.mode >> shift;
    const bool special = (e.mode & (shift == 6   ? 04000u
                                    : shift == 3 ? 02000u
                                                 : 01000u));
    text += (bits & 4) != 0 ? 'r' : '-';
    text += (bits & 2) != 0 ? 'w' : '-';
    const bool run = (bits & 1) != 0;
    if (special)
      text += shift == 0 ? (run ? 't' : 'T') : (run ? 's' : 'S');
    else
      text += run ? 'x' : '-';
  }
  return text;
}

class Lister {
 public:
  explicit Lister(CommandContext& ctx)
      : term_(ctx.term), long_(ctx.args.has("--long")), null_(ctx.args.has("--null")) {}

  void Begin(const Source& source, std::string_view root, std::string_view path) {
    source_ = &source;
    if (!term_.json()) return;
    json_.BeginObject();
    json_.Key("root").PathValue(root);
    json_.Key("checkpoint");
    if (source.checkpoint)
      json_.String(*source.checkpoint);
    else
      json_.Null();
    json_.Key("path").PathValue(path);
    json_.Key("entries").BeginArray();
  }
  void Add(const std::string& path, const TreeEntry& e, bool empty_dir) {
    if (term_.json()) return AddJson(path, e);
    // Directories are told by what is in them.
    const bool directory = e.kind == EntryKind::kDirectory;
    if (directory && !empty_dir && !long_) return;
    std::string line;
    if (long_) {
      char head[64];
      std::snprintf(head, sizeof head, "%s %5u %5u %10s  ", ModeText(e).c_str(), e.uid,
                    e.gid, e.kind == EntryKind::kFile ? SizeText(e.size).c_str() : "");
      line = head;
    }
    line += null_ ? path : EscapeForDisplay(path);
    if (directory) line += '/';
    if (long_ && e.kind == EntryKind::kSymlink)
      line += StrCat(" -> ", null_ ? e.target : EscapeForDisplay(e.target));
    if (!null_ && IsPurged(e)) line += "  (purged)";
    line += null_ ? '\0' : '\n';
    term_.Out(line);
  }
  void End() {
    if (!term_.json()) return;
    json_.EndArray().EndObject();
    term_.OutJson(json_);
  }
  bool tired() const { return term_.out_failed(); }
  bool wants_empty() const { return !term_.json() && !long_; }

 private:
  void AddJson(const std::string& path, const TreeEntry& e) {
    json_.BeginObject();
    json_.Key("path").PathValue(path);
    json_.Key("kind").String(KindName(e.kind));
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", e.mode);
    json_.Key("mode").String(mode);
    json_.Key("uid").Uint(e.uid);
    json_.Key("gid").Uint(e.gid);
    if (e.kind == EntryKind::kFile) json_.Key("size").Uint(e.size);
    if (e.kind == EntryKind::kSymlink)
      json_.Key("target").PathValue(e.target);
    else
      json_.Key("hash").String(e.id.hex());
    if (!e.xattrs.is_zero()) json_.Key("xattrs").String(e.xattrs.hex());
    json_.Key("purged").Bool(IsPurged(e));
    json_.EndObject();
  }

  bool IsPurged(const TreeEntry& e) const {
    return e.kind == EntryKind::kFile && source_->purged.Has(e.id, source_->seq);
  }

  Terminal& term_;
  const Source* source_ = nullptr;  // while it is listed
  const bool long_;
  const bool null_;
  JsonWriter json_;
};

Status List(const Source& source, const std::string& path, Lister& lister) {
  // A directory is known to be empty only once it was read.
  auto is_empty = [&](const TreeEntry& e) -> Result<bool> {
    if (e.kind != EntryKind::kDirectory || !lister.wants_empty()) return false;
    BELAY_TRY(Tree tree, source.read(e.id));
    return tree.entries.empty();
  };
  auto visit = [&](const std::string& at, const TreeEntry& e) -> Status {
    BELAY_TRY(bool empty, is_empty(e));
    lister.Add(at, e, empty);
    // The reader has seen enough.
    if (lister.tired()) return Error(Errc::kIo, "");
    return Ok();
  };
  if (path.empty()) return WalkTree(source.tree, "", source.read, visit);
  BELAY_TRY(RelPath below, RelPath::Parse(path));
  BELAY_TRY(auto found, FindInTree(source.tree, below, source.read));
  if (!found)
    return Error(Errc::kNotFound, StrCat("it does not hold ", EscapeForDisplay(path)))
        .WithHint("`belay why PATH` says whether it is covered");
  if (found->kind != EntryKind::kDirectory) return visit(path, *found);
  return WalkTree(found->id, path, source.read, visit);
}

}  // namespace

ExitCode CmdLs(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return ctx.term.Fail(root.error());
  std::string path;
  if (words.size() > 1) {
    auto below = FindBelow(ctx, root->path, words[1]);
    if (!below.ok()) return ctx.term.Fail(below.error());
    if (!*below)
      return ctx.term.Fail(
          Error(Errc::kInvalid, StrCat(EscapeForDisplay(words[1]), " is outside ",
                                       EscapeForDisplay(root->root.path))));
    path = (*below)->path;
  }
  auto source = OpenSource(ctx, *root, words[0]);
  if (!source.ok()) return ctx.term.Fail(source.error());
  Lister lister(ctx);
  lister.Begin(*source, root->root.path, path);
  Status listed = List(*source, path, lister);
  if (!listed.ok() && !lister.tired()) return ctx.term.Fail(listed.error());
  lister.End();
  return ExitCode::kOk;
}

}  // namespace belay
