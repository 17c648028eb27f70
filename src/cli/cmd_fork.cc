#include <unistd.h>

#include "agent/resume.h"
#include "base/escape.h"
#include "cli/chat_view.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/rollback_view.h"
#include "cli/take_chat_back.h"
#include "cli/text.h"
#include "core/place.h"
#include "restore/fork.h"

namespace belay {

namespace {

// Where it is to be: its parent is there. Of the words by which somebody named it the
// last is the name, so that neither `..` nor a symlink there means another place.
Result<AbsPath> PlaceFor(CommandContext& ctx, std::string_view given) {
  BELAY_TRY(AbsPath dir, ctx.env.Resolve(given));
  if (dir.is_root()) return Error(Errc::kRefused, "/ is not empty");
  auto parent = ctx.fs.RealPath(dir.parent());
  if (!parent.ok())
    return Error(parent.error().code,
                 StrCat(EscapeForDisplay(dir.parent().bytes()), " is not there"));
  return parent->Join(
      RelPath::Literal(std::string_view(dir.bytes()).substr(1)).basename());
}

Status CheckForkPlace(CommandContext& ctx, const AbsPath& dir) {
  BELAY_TRY(auto prepared, PrepareStore(ctx));
  auto store_dir = ctx.fs.RealPath(prepared->dir);
  auto home = ctx.env.HomeDir();
  // The directory above stands for one that is not there yet.
  BELAY_TRY(Fd above, ctx.fs.OpenDir(dir.parent()));
  return CheckPlace(ctx.fs, dir, above, store_dir.ok() ? *store_dir : prepared->dir,
                    home.ok() ? std::optional(*home) : std::nullopt, false);
}

// The copy that the agent's own program makes, once the directory is there. What cannot
// be had is said.
void MakeNativeChat(CommandContext& ctx, OpenedRoot& root, DirFork& fork,
                    std::optional<ForkChat>& along) {
  auto made = MakeForkChat({.store = root.store(),
                            .root = fork.root.id,
                            .store_dir = root.opened->dir,
                            .programs = ProgramsOf(ctx.env),
                            .pid = getpid()},
                           *along);
  if (made.ok() && *made) return;
  fork.warnings.push_back(
      made.ok() ? std::string(kNothingGoesAlong)
                : StrCat("the conversation does not go along: ", made.error().what));
  along.reset();
}

void WriteFork(const DirFork& fork, const Checkpoint& target, const Root& source,
               const std::optional<ForkChat>& along, JsonWriter& json) {
  json.BeginObject();
  json.Key("root").PathValue(fork.root.path);
  json.Key("id").String(fork.root.id.text());
  json.Key("checkpoint").String(fork.checkpoint.id.text());
  json.Key("source").PathValue(source.path);
  json.Key("target").String(target.id.text());
  json.Key("files").Uint(fork.files);
  json.Key("bytes").Uint(fork.bytes);
  json.Key("shared_bytes").Uint(fork.shared);
  json.Key("repository").Bool(fork.repository);
  json.Key("chat");
  WriteChat(along ? std::optional(along->chat.record) : std::nullopt, false, json);
  json.Key("warnings").BeginArray();
  for (const std::string& warning : fork.warnings) json.PathValue(warning);
  json.EndArray().EndObject();
}

}  // namespace

ExitCode CmdFork(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  if (IsNow(words[0]))
    return ctx.term.FailUsage("`now` is no checkpoint",
                              "make one first: belay checkpoint; then: belay fork "
                              "latest DIR");
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return ctx.term.Fail(root.error());
  Store& store = root->store();
  auto ended = EndForks(store, *root->catalog);
  if (!ended.ok()) return FailOnStore(ctx, ended.error());
  for (const std::string& line : *ended) ctx.term.Note(line);
  auto found = FindCheckpoint(ctx, *root, words[0]);
  if (!found.ok()) return ctx.term.Fail(found.error());
  auto dir = PlaceFor(ctx, words[1]);
  if (!dir.ok()) return ctx.term.Fail(dir.error());
  if (Status fine = CheckForkPlace(ctx, *dir); !fine.ok())
    return ctx.term.Fail(
        Error(fine.error().code, fine.error().what).WithHint("name another directory"));
  DirForkRequest request{.source = root->root,
                         .target = found->entry.checkpoint,
                         .dir = *dir,
                         .git = GitPlacesOf(ctx.env),
                         .uid = geteuid(),
                         .gid = getegid(),
                         .stop = StopOnSignal::Asked};
  std::optional<ForkChat> along;
  std::vector<std::string> warnings;
  if (!ctx.args.has("--no-chat"))
    along = PlanChatAlong(ctx, *root, request.target, *dir, warnings);
  if (along && !along->native) request.chat = &along->chat;
  auto fork = [&] {
    StopOnSignal signals;
    return ForkDirectory(store, *root->catalog, request);
  }();
  if (!fork.ok()) return FailOnStore(ctx, fork.error());
  fork->warnings.insert(fork->warnings.begin(), warnings.begin(), warnings.end());
  if (along && along->native) MakeNativeChat(ctx, *root, *fork, along);
  ctx.term.WorkIsDone();
  for (const std::string& warning : fork->warnings) ctx.term.Warn(warning);
  if (ctx.term.json()) {
    JsonWriter json;
    WriteFork(*fork, found->entry.checkpoint, root->root, along, json);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  ctx.term.Out(StrCat("forked ", CountText(fork->files, "file"), " of ",
                      found->entry.checkpoint.id.text().substr(0, 7), " to ",
                      EscapeForDisplay(fork->root.path),
                      fork->repository ? ", with a repository of its own" : "", "\n"));
  if (fork->shared > 0)
    ctx.term.Say(StrCat("  ", SizeText(fork->shared), " of ", SizeText(fork->bytes),
                        " take no room of their own: they share blocks with ",
                        EscapeForDisplay(root->root.path)));
  if (along) {
    const ChatRecord& chat = along->chat.record;
    ctx.term.Say(StrCat(
        "  the conversation goes along as session ", EscapeText(chat.forked),
        chat.turn ? StrCat(", from before turn ", std::to_string(*chat.turn), " on")
                  : std::string()));
    ctx.term.Say(StrCat("  go on with: ", ResumeText(ResumptionOf(chat), ctx.env.cwd)));
    ctx.term.Say(StrCat("         or: ", BelayResume(chat.forked)));
  }
  ctx.term.Say(
      StrCat("Compare with: belay diff latest --against ", ShellWord(fork->root.path)));
  return ExitCode::kOk;
}

}  // namespace belay
