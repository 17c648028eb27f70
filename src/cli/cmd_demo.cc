// The main job on a scratch project: an "agent" (a shell script) makes a mess, a
// rollback takes it back, and everything is compared byte for byte. Then undo, redo,
// and a rollback that is cut off in the middle. Exits non-zero when anything differs.

#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/fault_fs.h"
#include "base/random.h"
#include "base/subprocess.h"
#include "base/tree_text.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/rollback_view.h"
#include "cli/text.h"
#include "core/roots.h"
#include "restore/journal.h"
#include "store/verify.h"

namespace belay {

namespace {

constexpr std::string_view kProject = R"sh(
mkdir -p src/net src/ui docs empty data
for i in $(seq 1 40); do
  { echo "// module $i"; seq 1 60 | sed "s/.*/  total += weigh(item_&, $i);/"; } >src/module_$i.cc
done
for i in 1 2 3; do seq 1 200 >src/net/socket_$i.cc; done
echo '{"cells":[{"source":"print(1)"}]}' >docs/plot.ipynb
head -c 3000000 /dev/zero | tr '\0' 'x' >data/table.bin
printf 'int main() { return 0; }\n' >src/main.cc
printf '#!/bin/sh\nexec make\n' >run.sh; chmod 755 run.sh
printf 'API_KEY=do-not-lose-me\n' >.env; chmod 600 .env
printf '.env\n*.o\n' >.gitignore
ln -s src/main.cc start
echo notes >docs/notes.md
)sh";

constexpr std::string_view kAgent = R"sh(
for i in $(seq 1 9); do echo "// an agent was here" >>src/module_$i.cc; done
printf 'int main() { return 1; }\n' >src/main.cc
echo new >src/brand_new.cc; mkdir -p src/generated; echo gen >src/generated/x.cc
rm -rf src/net docs/notes.md
chmod 644 run.sh
rm start; ln -s src/brand_new.cc start
rm data/table.bin; rmdir empty
rm docs/plot.ipynb; mkdir docs/plot.ipynb; echo no >docs/plot.ipynb/file
rm .env
echo 'results/' >>.gitignore; mkdir -p results; echo precious >results/run1.csv
)sh";

constexpr size_t kPathColumn = 7;  // of base/tree_text.h: "d 0755 path"

class Demo {
 public:
  Demo(CommandContext& ctx, const AbsPath& dir)
      : ctx_(ctx),
        dir_(dir),
        project_(dir.Join(RelPath::Literal("project"))),
        store_dir_(dir.Join(RelPath::Literal("store"))) {}

  Status Run() {
    BELAY_TRY([[maybe_unused]] Fd made, MakeDirs(ctx_.fs, project_, 0755));
    Say(StrCat("A scratch project, removed at the end: ", dir_.bytes()));
    BELAY_OK(Shell(kProject));
    BELAY_TRY(Opened opened, Open(ctx_.fs));
    settings_.store_cap = settings_.store_floor = {};
    BELAY_TRY(FileStat stat, ctx_.fs.Stat(made));
    BELAY_TRY(Registered root, RegisterRoot(*opened.store, *opened.catalog, project_,
                                            stat, std::nullopt));
    root_ = root.root;

    Command("belay checkpoint -m 'before the agent'");
    CaptureRequest capture;
    capture.root = root_;
    capture.settings = &settings_;
    capture.git = GitPlacesOf(ctx_.env);
    capture.name = "before the agent";
    BELAY_TRY(Captured first, CaptureCheckpoint(*opened.store, capture));
    Say(StrCat("  kept: ", CountText(first.checkpoint.files, "file"), ", ",
               SizeText(first.checkpoint.bytes), ", in ",
               Milliseconds(first.checkpoint.took_us)));
    BELAY_TRY(std::string good, Tree());

    Say("");
    Say("An agent works for a while: edits ten files, makes two, removes a directory, "
        "a");
    Say("notebook, a 3 MB file and .env by shell, swaps a file for a directory, "
        "changes");
    Say("modes and links, and adds a line to .gitignore.");
    BELAY_OK(Shell(kAgent));
    BELAY_TRY(std::string mess, Tree());
    capture.name = "after the agent";
    BELAY_TRY([[maybe_unused]] Captured last,
              CaptureCheckpoint(*opened.store, capture));

    Command("belay list");
    BELAY_TRY(const auto timeline, opened.catalog->ListCheckpoints({.root = root_.id}));
    for (size_t i = 0; i < timeline.size(); ++i) {
      const Checkpoint& c = timeline[i].checkpoint;
      Say(StrCat("  ", std::to_string(i + 1), ". ", CheckpointLine(timeline[i], 50),
                 "  (",
                 CountText(c.added + c.modified + c.deleted - c.changed_dirs, "file"),
                 " changed)"));
    }

    Command("belay rollback 'before the agent' --dry-run");
    BELAY_TRY(Outcome preview,
              PreviewRollback(*opened.store, Request(), first.checkpoint));
    const std::string plan = PlanText(preview.plan, false);
    for (size_t at = 0, end; (end = plan.find('\n', at)) != std::string::npos;
         at = end + 1)
      Say(std::string_view(plan).substr(at, end - at));
    BELAY_OK(Expect(mess, "the preview changed something"));

    // What the target does not have and today's rules ignore stays.
    Command("belay rollback 'before the agent' --yes");
    BELAY_TRY(Outcome back, Rollback(*opened.store, Request(), first.checkpoint));
    if (!back.operation || !back.verified)
      return Error(Errc::kIo, "the rollback was not verified");
    Say(StrCat("  rolled back ", AffectedText(back.plan), " in ",
               Milliseconds(back.operation->took_us)));
    BELAY_OK(ExpectBut(good, "results", "the rollback missed something"));
    Say("  every byte, mode and link is as it was; results/, which is ignored now, "
        "stayed");

    Command("belay undo");
    BELAY_TRY(Outcome undone,
              Undo(*opened.store, *opened.catalog, Request(), std::nullopt, false));
    BELAY_OK(Expect(mess, "undo missed something"));
    Say("  the agent's work is back, every byte of it");
    Command("belay redo");
    BELAY_TRY(Outcome redone, Redo(*opened.store, *opened.catalog, Request()));
    BELAY_OK(ExpectBut(good, "results", "redo missed something"));
    Say("  and gone again");

    Say("");
    Say("Now a rollback is cut off in the middle, as by a power cut:");
    BELAY_OK(Shell(kAgent));
    BELAY_OK(CutOff(first.checkpoint));
    BELAY_OK(ExpectBut(good, "results", "recovery left a mixture"));
    Say("  the next command finished it: again every byte is as it was");
    BELAY_TRY(Opened again, Open(ctx_.fs));
    BELAY_TRY(VerifyReport report, VerifyStore(*again.store, {.read_data = true}));
    if (!report.clean()) return Error(Errc::kCorrupt, report.damage.front());
    Say("  belay verify: the store is whole");
    Say("All as promised.");
    return Ok();
  }

 private:
  struct Opened {
    std::unique_ptr<Store> store;
    std::unique_ptr<Catalog> catalog;
  };

  void Say(std::string_view line) { ctx_.term.Say(line); }
  void Command(std::string_view line) {
    Say("");
    Say(StrCat("$ ", line));
  }

  Result<Opened> Open(Fs& fs) {
    Opened out;
    StoreOptions options;
    options.uid = geteuid();
    BELAY_TRY(out.store, Store::Open(fs, clock_, random_, store_dir_, options,
                                     Store::Mode::kWrite));
    BELAY_TRY(out.catalog, Catalog::Open(*out.store));
    return out;
  }

  RollbackRequest Request() {
    RollbackRequest request;
    request.root = root_;
    request.settings = &settings_;
    request.git = GitPlacesOf(ctx_.env);
    request.pid = getpid();
    request.plan = WhoWeAre();
    request.stop = StopOnSignal::Asked;
    return request;
  }

  // Asked before and after each script and by each rollback; all else is quick.
  static Status Stopped() {
    if (!StopOnSignal::Asked()) return Ok();
    return Error(Errc::kRefused, "stopped");
  }

  Status Shell(std::string_view script) {
    BELAY_OK(Stopped());
    BELAY_TRY(ProcessResult ran,
              RunProcess({.program = AbsPath::Literal("/bin/sh"),
                          .arguments = {"-ec", std::string(script)},
                          .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"},
                          .directory = project_}));
    BELAY_OK(Stopped());
    if (ran.ok()) return Ok();
    return Error(Errc::kIo, StrCat("the script failed: ", ran.errors));
  }

  Result<std::string> Tree() {
    BELAY_TRY(Fd dir, ctx_.fs.OpenDir(project_));
    return TreeText(ctx_.fs, dir);
  }
  Status Expect(const std::string& wanted, std::string_view otherwise) {
    BELAY_TRY(std::string now, Tree());
    if (now == wanted) return Ok();
    return Error(Errc::kIo, std::string(otherwise));
  }
  // The same, but for what lies in the directory `name`.
  Status ExpectBut(const std::string& wanted, const std::string& name,
                   std::string_view otherwise) {
    BELAY_TRY(std::string now, Tree());
    std::string rest;
    bool seen = false;
    for (size_t at = 0; at < now.size();) {
      size_t end = now.find('\n', at);
      end = end == std::string::npos ? now.size() : end + 1;
      const std::string_view line = std::string_view(now).substr(at, end - at);
      const std::string_view path = line.substr(std::min(kPathColumn, line.size()));
      if (path.starts_with(name + "/") || path.starts_with(name + "\n"))
        seen = true;
      else
        rest += line;
      at = end;
    }
    if (rest == wanted && seen) return Ok();
    return Error(Errc::kIo, std::string(otherwise));
  }

  // A disk that stops at the third rename: nothing after it happens.
  Status CutOff(const Checkpoint& target) {
    {
      Fault cut = Fault::PowerCut(3);
      cut.only = {FsCall::kRename};
      FaultFs dying(ctx_.fs, cut);
      auto opened = Open(dying);
      if (opened.ok() && Rollback(*opened->store, Request(), target).ok())
        return Error(Errc::kIo, "a rollback was acknowledged without power");
      if (!dying.fired()) return Error(Errc::kIo, "the power did not go");
    }
    BELAY_TRY(Opened opened, Open(ctx_.fs));
    BELAY_TRY(auto recovered, Recover(*opened.store, Request()));
    if (!recovered) return Error(Errc::kIo, "nothing was found to recover");
    const std::string text = StrCat("  ", Wrap(recovered->text, 2, 4, 80), "\n");
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      Say(std::string_view(text).substr(at, text.find('\n', at) - at));
    if (recovered->how == Recovered::How::kFinished) return Ok();
    BELAY_TRY(Outcome done, Rollback(*opened.store, Request(), target));
    return Ok();
  }

  CommandContext& ctx_;
  const AbsPath dir_;
  const AbsPath project_;
  const AbsPath store_dir_;
  RealClock clock_;
  RealRandom random_;
  Settings settings_;
  Root root_;
};

// The demo made every file below `dir`; all of them go.
Status RemoveTree(Fs& fs, const Fd& parent, const Name& name) {
  BELAY_TRY(Fd dir, fs.Open(parent, name, OpenMode::Directory()));
  BELAY_TRY(auto entries, fs.List(dir));
  for (const DirEntry& e : entries) {
    BELAY_TRY(Name child, Name::Parse(e.name));
    BELAY_TRY(FileStat stat, fs.StatAt(dir, child));
    BELAY_OK(stat.type == FileType::kDirectory ? RemoveTree(fs, dir, child)
                                               : fs.Unlink(dir, child));
  }
  return fs.RemoveDir(parent, name);
}

}  // namespace

ExitCode CmdDemo(CommandContext& ctx) {
  RealRandom random;
  auto resolved = ctx.env.Resolve(ctx.env.tmpdir.empty() ? "/tmp" : ctx.env.tmpdir);
  if (!resolved.ok()) return ctx.term.Fail(resolved.error());
  auto real = ctx.fs.RealPath(*resolved);
  if (!real.ok()) return ctx.term.Fail(real.error());
  const Name name = Name::Literal("belay-demo-" + random.NewId().text().substr(0, 10));
  auto parent = ctx.fs.OpenDir(*real);
  if (!parent.ok()) return ctx.term.Fail(parent.error());
  StopOnSignal signals;  // Ctrl-C leaves nothing behind either
  Status done = Demo(ctx, real->Join(name)).Run();
  if (!done.ok() && StopOnSignal::Asked()) done = Error(Errc::kRefused, "stopped");
  Status removed = RemoveTree(ctx.fs, *parent, name);
  if (!done.ok()) return ctx.term.Fail(done.error());
  if (!removed.ok()) return ctx.term.Fail(removed.error());
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject().Key("ok").Bool(true).EndObject();
    ctx.term.OutJson(json);
  }
  return ExitCode::kOk;
}

}  // namespace belay
