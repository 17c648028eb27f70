#include <algorithm>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/diff_view.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/pager.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "core/roots.h"
#include "diff/diff_json.h"

namespace belay {

namespace {

// One side, and what it is made from; stays where it is.
struct Side {
  std::optional<std::string> checkpoint;  // its id; none: the directory as it is
  StateView view;
  TreeNow now;
  Fd root;
  DiffSide side;
};

class Diff {
 public:
  // `against`: the root of the second side.
  Diff(CommandContext& ctx, OpenedRoot& root, OpenedRoot& against,
       const Settings& settings)
      : ctx_(ctx),
        term_(ctx.term),
        root_(root),
        against_(against),
        settings_(settings) {
    lists_.secret_patterns = settings.secret_patterns;
  }

  Result<ExitCode> Run() {
    const auto& words = ctx_.args.positional();
    BELAY_TRY(hold_, root_.store().HoldForReading());
    BELAY_OK(Open(root_, words[0], from_));
    BELAY_OK(Open(against_, words.size() > 1 ? words[1] : "now", to_));
    auto selected = SelectedPaths(ctx_, root_.path);
    if (!selected.ok())
      return term_.FailUsage(selected.error().what, selected.error().hint);
    Selection selection(std::move(*selected));
    const bool names = ctx_.args.has("--name-only");
    BELAY_TRY(diff_, DiffStates(from_.side, to_.side, selection,
                                {.renames = !names && !ctx_.args.has("--no-renames")}));
    if (diff_.renames_cut_short)
      term_.Note("too many files came and went to look for all renames among them");
    if (term_.json()) {
      Json();
    } else if (diff_.paths.empty()) {
      if (term_.out_is_terminal()) term_.Say("No differences.");
    } else {
      Pager pager(term_, ctx_.env);
      if (names)
        Names();
      else if (ctx_.args.has("--stat"))
        Stat();
      else
        Patch();
    }
    Summarize();
    return code_;
  }

 private:
  Status Open(OpenedRoot& root, std::string_view ref, Side& out) {
    if (IsNow(ref)) return OpenNow(root, out);
    BELAY_TRY(FoundRef found, FindCheckpoint(ctx_, root, ref));
    const Checkpoint& checkpoint = found.entry.checkpoint;
    BELAY_TRY(out.view, LoadState(root.store(), checkpoint.state));
    if (!out.view.trouble.empty())
      term_.Warn(StrCat("the rules of checkpoint ", checkpoint.id.text().substr(0, 7),
                        " cannot be read: ", out.view.trouble));
    out.checkpoint = checkpoint.id.text();
    out.side = SideOfState(root.store(), out.view, checkpoint.partial, lists_);
    return Ok();
  }

  Status OpenNow(OpenedRoot& root, Side& out) {
    const GitPlaces git = GitPlacesOf(ctx_.env);
    BELAY_TRY(ScanRequest request,
              ScanRequestFor(root.store(), *root.catalog, root.root, settings_, git));
    Progress progress(term_, root.opened->clock, "reading");
    request.progress = [&](const ScanProgress& p) {
      if (p.step == ScanProgress::Step::kCapture)
        progress.Update(p.bytes, p.total_bytes);
      else
        progress.Count(p.files, "files");
    };
    BELAY_TRY(out.now, LookAtNow(root.store(), request));
    progress.Done();
    BELAY_TRY(out.root, ctx_.fs.OpenDir(root.path));
    out.side = SideOfNow(root.store(), out.now, out.root, lists_);
    return Ok();
  }

  FileDiff Load(PathDiff& path) {
    FileDiff file =
        LoadFileDiff(from_.side, to_.side, path, {.as_text = ctx_.args.has("--text")});
    if (file.trouble) {
      troubles_.push_back(
          StrCat(EscapeForDisplay(path.path), ": ", file.trouble->what));
      const ExitCode code = ExitCodeFor(file.trouble->code);
      if (code_ != ExitCode::kDamaged) code_ = code;
    }
    if (path.status == DiffStatus::kUnknown) ++unknown_;
    if (file.shape == FileDiff::Shape::kBinary ||
        file.shape == FileDiff::Shape::kTooLarge)
      ++unshown_;
    if (path.secret && !path.SameContent()) ++secrets_;
    return file;
  }

  void Names() {
    const bool null = ctx_.args.has("--null");
    std::sort(diff_.paths.begin(), diff_.paths.end(),
              [](const PathDiff& a, const PathDiff& b) { return a.path < b.path; });
    for (const PathDiff& path : diff_.paths) {
      if (path.status == DiffStatus::kUnknown) {
        ++unknown_;
        continue;
      }
      const bool dir =
          (path.after ? path.after : path.before)->kind == EntryKind::kDirectory;
      term_.Out(StrCat(null ? path.path : EscapeForDisplay(path.path), dir ? "/" : "",
                       null ? std::string_view("\0", 1) : std::string_view("\n")));
    }
  }

  void Stat() {
    StatTable table;
    for (PathDiff& path : diff_.paths) table.Add(path, Load(path));
    term_.Out(table.Text(term_));
  }

  void Patch() {
    std::unique_ptr<PatchWriter> writer;
    const bool porcelain = ctx_.args.has("--word-porcelain");
    const bool words = porcelain || ctx_.args.has("--word");
    if (words)
      writer = std::make_unique<WordWriter>(
          term_, porcelain ? WordWriter::Form::kPorcelain : WordWriter::Form::kPlain);
    else if (ctx_.args.has("--side-by-side"))
      writer = std::make_unique<ColumnWriter>(term_);
    else
      writer = std::make_unique<PatchWriter>(PatchTo(term_));
    for (PathDiff& path : diff_.paths) {
      const FileDiff file = Load(path);
      writer->Write(path, file);
      if (term_.out_failed()) return;
    }
    is_patch_ = !words && !ctx_.args.has("--side-by-side");
  }

  void Json() {
    const DiffDetail detail = ctx_.args.has("--name-only") ? DiffDetail::kNames
                              : ctx_.args.has("--stat")    ? DiffDetail::kCounts
                                                           : DiffDetail::kHunks;
    JsonWriter json;
    auto id = [&](std::string_view key, const Side& side) {
      json.Key(key);
      if (side.checkpoint)
        json.String(*side.checkpoint);
      else
        json.Null();
    };
    json.BeginObject();
    json.Key("root").PathValue(root_.root.path);
    if (&against_ != &root_) json.Key("against").PathValue(against_.root.path);
    id("from", from_);
    id("to", to_);
    json.Key("files").BeginArray();
    DiffJson writer(detail);
    LineCounts all;
    for (PathDiff& path : diff_.paths) {
      FileDiff file;
      if (detail != DiffDetail::kNames) file = Load(path);
      writer.Write(path, file, json);
      const LineCounts counts = CountsFor(path, file);
      all.added += counts.added;
      all.deleted += counts.deleted;
    }
    json.EndArray();
    json.Key("totals").BeginObject();
    json.Key("files").Uint(diff_.paths.size());
    if (detail != DiffDetail::kNames) {
      json.Key("added").Uint(all.added);
      json.Key("deleted").Uint(all.deleted);
    }
    json.EndObject();
    json.Key("renames_cut_short").Bool(diff_.renames_cut_short);
    json.EndObject();
    term_.OutJson(json);
  }

  // What the output alone does not tell whoever applies it.
  void Summarize() {
    for (const std::string& trouble : troubles_) term_.Warn(trouble);
    auto note = [&](uint64_t count, std::string_view one, std::string_view many,
                    std::string_view what) {
      if (count > 0)
        term_.Note(
            StrCat(std::to_string(count), " ", count == 1 ? one : many, " ", what));
    };
    if (ctx_.args.has("--name-only"))
      note(unknown_, "path is", "paths are",
           "not listed: covered on one side only; the diff itself says more");
    if (!is_patch_ || term_.out_is_terminal()) return;
    note(unshown_, "binary file is", "binary files are",
         "only marked: the patch does not bring the content along");
    note(secrets_, "secret is", "secrets are", "only named: not in the patch");
  }

  CommandContext& ctx_;
  Terminal& term_;
  OpenedRoot& root_;
  OpenedRoot& against_;
  const Settings& settings_;
  RuleLists lists_;
  HeldLock hold_;
  Side from_, to_;
  StateDiff diff_;
  ExitCode code_ = ExitCode::kOk;
  std::vector<std::string> troubles_;
  uint64_t unknown_ = 0, unshown_ = 0, secrets_ = 0;
  bool is_patch_ = false;
};

// Another protected directory, by its name.
Result<OpenedRoot> OpenOther(CommandContext& ctx, std::string_view given) {
  BELAY_TRY(AbsPath dir, ctx.env.Resolve(given));
  if (auto real = ctx.fs.RealPath(dir); real.ok()) dir = *real;
  BELAY_TRY(auto opened, OpenStore(ctx, Store::Mode::kRead));
  BELAY_TRY(auto catalog, Catalog::Open(*opened->store));
  BELAY_TRY(auto found, FindRootFor(*catalog, dir));
  if (!found)
    return Error(Errc::kNotFound,
                 StrCat(EscapeForDisplay(dir.bytes()), " is not protected"))
        .WithHint("see the directories that are with: belay roots");
  BELAY_TRY([[maybe_unused]] auto recovered, RecoverFirst(ctx, opened, found->root));
  // A recovery opens the store anew.
  BELAY_TRY(catalog, Catalog::Open(*opened->store));
  BELAY_TRY(AbsPath path, AbsPath::Parse(found->root.path));
  return OpenedRoot{std::move(opened), std::move(catalog), found->root,
                    std::move(path)};
}

}  // namespace

ExitCode CmdDiff(CommandContext& ctx) {
  std::string_view given;
  for (std::string_view flag :
       {"--stat", "--name-only", "--side-by-side", "--word", "--word-porcelain"}) {
    if (!ctx.args.has(flag)) continue;
    if (!given.empty())
      return ctx.term.FailUsage(StrCat(given, " and ", flag, " exclude each other"));
    given = flag;
  }
  if (ctx.args.has("--null") && given != "--name-only")
    return ctx.term.FailUsage("--null goes with --name-only");
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return ctx.term.Fail(root.error());
  const Settings settings = LoadSettingsToRescue(ctx, root->path).settings;
  std::optional<OpenedRoot> other;
  if (auto dir = ctx.args.value("--against")) {
    auto opened = OpenOther(ctx, *dir);
    if (!opened.ok()) return ctx.term.Fail(opened.error());
    other = std::move(*opened);
  }
  auto code = Diff(ctx, *root, other ? *other : *root, settings).Run();
  if (!code.ok()) return ctx.term.Fail(code.error());
  return *code;
}

}  // namespace belay
