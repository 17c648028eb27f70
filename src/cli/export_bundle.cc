#include "cli/export_bundle.h"

#include <cerrno>

#include "base/escape.h"
#include "bundle/export.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/rollback_view.h"
#include "cli/text.h"

namespace belay {

namespace {

// A new file that has its name only when it is whole and durable. Destroyed before
// Publish(), nothing is left of it.
class NewFile {
 public:
  static Result<NewFile> Create(Fs& fs, Random& random, const AbsPath& path,
                                bool replace) {
    const std::string shown = EscapeForDisplay(path.bytes());
    if (path.is_root()) return Error(Errc::kInvalid, StrCat(shown, " is a directory"));
    BELAY_TRY(Name name,
              Name::Parse(
                  std::string_view(path.bytes()).substr(path.bytes().rfind('/') + 1)));
    NewFile file(fs, name, replace);
    auto dir = fs.OpenDir(path.parent());
    if (!dir.ok()) {
      Error error = std::move(dir).error();
      if (error.hint.empty())
        error.hint = "give -o a file in a directory that is there";
      return error;
    }
    file.dir_ = std::move(*dir);
    // Before any work is done; Publish() does not replace one that came meanwhile.
    BELAY_OK(file.CheckFree(shown));
    BELAY_TRY(Name temporary,
              Name::Parse(StrCat(".belay-export-", random.NewId().text(), ".tmp")));
    BELAY_TRY(file.file_, fs.Open(file.dir_, temporary, OpenMode::CreateNew()));
    file.temporary_ = temporary;
    return file;
  }
  NewFile(NewFile&&) = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (dir_.is_open() && temporary_) (void)fs_.Unlink(dir_, *temporary_);
  }

  Status Write(ByteSpan bytes) {
    BELAY_OK(WriteFull(fs_, file_, offset_, bytes));
    offset_ += bytes.size();
    return Ok();
  }
  Status Publish(const std::string& shown) {
    BELAY_OK(fs_.Sync(file_));
    BELAY_OK(file_.Close());
    if (!replace_) {
      Status moved = fs_.Rename(dir_, *temporary_, dir_, name_, RenameHow::kNoReplace);
      if (!moved.ok() && moved.error().code == Errc::kExists) return Taken(shown);
      // A file system that cannot promise it: a second name fails where there is one.
      if (!moved.ok() && moved.error().sys == EINVAL) {
        moved = fs_.Link(dir_, *temporary_, dir_, name_);
        if (!moved.ok() && moved.error().code == Errc::kExists) return Taken(shown);
        if (moved.ok()) moved = fs_.Unlink(dir_, *temporary_);
      }
      BELAY_OK(moved);
    } else {
      BELAY_OK(CheckFree(shown));
      BELAY_OK(fs_.Rename(dir_, *temporary_, dir_, name_, RenameHow::kReplace));
    }
    temporary_.reset();
    return fs_.Sync(dir_);
  }

 private:
  NewFile(Fs& fs, Name name, bool replace)
      : fs_(fs), name_(std::move(name)), replace_(replace) {}
  static Error Taken(const std::string& shown) {
    return Error(Errc::kExists, StrCat(shown, " is there already"))
        .WithHint("give another name, or --force to replace it");
  }
  Status CheckFree(const std::string& shown) {
    auto stat = fs_.StatAt(dir_, name_);
    if (!stat.ok()) {
      if (stat.error().code == Errc::kNotFound) return Ok();
      return std::move(stat).error();
    }
    if (stat->type != FileType::kRegular)
      return Error(Errc::kRefused, StrCat(shown, " is ", FileTypeName(stat->type)))
          .WithHint("-o - writes to standard output");
    if (!replace_) return Taken(shown);
    return Ok();
  }

  Fs& fs_;
  Name name_;
  bool replace_;
  Fd dir_;
  Fd file_;
  std::optional<Name> temporary_;
  uint64_t offset_ = 0;
};

Result<std::vector<CatalogEntry>> Chosen(CommandContext& ctx, OpenedRoot& root) {
  std::vector<CatalogEntry> out;
  for (std::string_view ref : ctx.args.positional()) {
    if (IsNow(ref))
      return Error(Errc::kInvalid, "`now` is no checkpoint")
          .WithHint("make one first: belay checkpoint");
    BELAY_TRY(FoundRef found, FindCheckpoint(ctx, root, ref));
    out.push_back(std::move(found.entry));
  }
  auto session = ctx.args.value("--session");
  if (!out.empty() || !session) return out;
  BELAY_TRY(out, root.catalog->ListCheckpoints(
                     {.root = root.root.id, .session = std::string(*session)}));
  if (out.empty())
    return Error(Errc::kNotFound,
                 StrCat("no checkpoint of session '", EscapeText(*session), "' here"))
        .WithHint("see them with: belay sessions");
  return out;
}

void WriteJson(const ExportReport& report, std::string_view file, JsonWriter& json) {
  json.BeginObject();
  json.Key("file").PathValue(file);
  json.Key("bytes").Uint(report.length);
  json.Key("objects").Uint(report.objects);
  json.Key("checkpoints").BeginArray();
  for (const ExportedCheckpoint& one : report.checkpoints) {
    json.BeginObject();
    json.Key("id").String(one.checkpoint.id.text());
    json.Key("name");
    if (one.checkpoint.name)
      json.PathValue(*one.checkpoint.name);
    else
      json.Null();
    json.Key("state").String(one.checkpoint.state.hex());
    json.Key("files").Uint(one.checkpoint.files);
    json.Key("bytes").Uint(one.checkpoint.bytes);
    json.Key("left_out").BeginArray();
    for (const SkippedPath& path : one.left_out) {
      json.BeginObject();
      json.Key("path").PathValue(path.path);
      json.Key("why").String(SkipName(path.why));
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
}

std::string LeftOutText(const ExportReport& report, bool secrets) {
  std::vector<std::string> paths;
  for (const ExportedCheckpoint& one : report.checkpoints)
    for (const SkippedPath& path : one.left_out)
      if ((path.why == Skip::kSecret) == secrets) paths.push_back(path.path);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return FirstPaths(paths);
}

void Tell(CommandContext& ctx, const ExportReport& report, std::string_view file,
          bool to_stdout) {
  const std::string line =
      StrCat(to_stdout ? "written" : EscapeForDisplay(file), ": ",
             CountText(report.checkpoints.size(), "checkpoint"), ", ",
             CountText(report.objects, "object"), ", ", SizeText(report.length));
  if (to_stdout)
    ctx.term.Note(line);
  else
    ctx.term.Out(StrCat(line, "\n"));
  if (const std::string secrets = LeftOutText(report, true); !secrets.empty())
    ctx.term.Note(StrCat("secrets are not in it: ", secrets));
  if (const std::string purged = LeftOutText(report, false); !purged.empty())
    ctx.term.Note(StrCat("not in it, because it was purged: ", purged));
}

}  // namespace

ExitCode ExportBundle(CommandContext& ctx) {
  auto file = ctx.args.value("--output");
  if (!file)
    return ctx.term.FailUsage("where to? -o FILE names the file to write",
                              "-o - writes to standard output");
  if (ctx.args.positional().empty() && !ctx.args.value("--session"))
    return ctx.term.FailUsage("which checkpoints? name one or more, or a --session",
                              "see them with: belay list");
  if (ctx.args.has("--format")) return ctx.term.FailUsage("--format is for --notes");
  const bool to_stdout = *file == "-";
  if (to_stdout && ctx.term.json())
    return ctx.term.FailUsage("--json and -o - would write to the same place");
  if (to_stdout && ctx.term.out_is_terminal())
    return ctx.term.FailUsage("a bundle is not for a terminal",
                              "send standard output to a file or a program");

  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto chosen = Chosen(ctx, *root);
  if (!chosen.ok()) return ctx.term.Fail(chosen.error());
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());

  ExportRequest request;
  request.checkpoints = std::move(*chosen);
  request.root_path = root->root.path;
  request.secret_patterns = settings->secret_patterns;
  Progress progress(ctx.term, root->opened->clock, "writing the bundle");
  request.progress = [&](uint64_t objects) { progress.Count(objects, "objects"); };

  if (to_stdout) {
    auto report = WriteBundle(root->store(), request, [&](ByteSpan bytes) -> Status {
      ctx.term.Out(AsText(bytes));
      if (ctx.term.out_failed()) return Error(Errc::kIo, "");
      return Ok();
    });
    progress.Done();
    if (ctx.term.out_failed()) return ExitCode::kProblem;
    if (!report.ok()) return FailOnStore(ctx, report.error());
    ctx.term.FlushOut();
    if (!ctx.term.out_failed()) Tell(ctx, *report, *file, true);
    return ExitCode::kOk;
  }

  auto path = ctx.env.Resolve(*file);
  if (!path.ok()) return ctx.term.Fail(path.error());
  const std::string shown = EscapeForDisplay(*file);
  // Ctrl-C leaves no half of a file behind.
  StopOnSignal stop;
  auto out =
      NewFile::Create(ctx.fs, root->opened->random, *path, ctx.args.has("--force"));
  if (!out.ok()) return ctx.term.Fail(out.error());
  auto report = WriteBundle(root->store(), request, [&](ByteSpan bytes) -> Status {
    if (StopOnSignal::Asked()) return Error(Errc::kRefused, "stopped");
    return out->Write(bytes);
  });
  progress.Done();
  if (!report.ok()) return FailOnStore(ctx, report.error());
  if (Status published = out->Publish(shown); !published.ok())
    return FailOnStore(ctx, published.error());
  ctx.term.WorkIsDone();
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(*report, *file, json);
    ctx.term.OutJson(json);
  } else {
    Tell(ctx, *report, *file, false);
  }
  return ExitCode::kOk;
}

}  // namespace belay
