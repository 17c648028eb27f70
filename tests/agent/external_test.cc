// Files outside of the root that an edit tool named: kept, shown, and brought back only
// when somebody asks for it.

#include "restore/external.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>

#include "bundle/export.h"
#include "history/purge.h"
#include "restore/journal.h"
#include "store/gc.h"
#include "store/verify.h"
#include "support/agent_world.h"
#include "support/crash_harness.h"
#include "support/raw_search.h"
#include "support/truncating_fs.h"

namespace belay::test {
namespace {

class ExternalTest : public ::testing::Test {
 protected:
  ExternalTest() {
    w_.PutAt(kOut, "conf", "v0");
    w_.Start("s");
    w_.Prompt("s");
    target_ = w_.last;
  }
  // A call that names a file outside, and writes it.
  void Edit(const std::string& session, const std::string& id, const std::string& name,
            const std::string& text) {
    w_.Pre(session, id, {"/out/" + name});
    w_.PutAt(kOut, name, text);
    w_.Post(session, id, {"/out/" + name});
  }
  // "path=kind" of what a checkpoint keeps, or why it does not.
  std::string Kept(const Checkpoint& c) {
    std::string out;
    for (const ExternalFile& file : c.external) {
      out += (out.empty() ? "" : " ") + file.path + "=";
      out += file.left_out != 0 ? SkipName(static_cast<Skip>(file.left_out))
             : !file.state      ? "absent"
             : file.state->kind == EntryKind::kFile ? "file"
                                                    : "link";
    }
    return out;
  }
  std::string Names(const std::string& path) {
    std::string out;
    for (const DirEntry& e :
         Must(disk_.List(Must(disk_.OpenDir(AbsPath::Literal(path))))))
      out += e.name + " ";
    return out;
  }
  std::string KeptPaths(const Plan& plan) {
    std::string out;
    for (const KeptPath& kept : plan.kept) out += kept.path + ":" + kept.why + " ";
    return out;
  }
  void Gone(const std::string& path) {
    const AbsPath at = AbsPath::Literal(path);
    Must(disk_.Unlink(Must(disk_.OpenDir(at.parent())),
                      N(path.substr(path.rfind('/') + 1))));
  }

  const AbsPath kOut = AbsPath::Literal("/out");
  MemFs disk_;
  AgentWorld w_{disk_};
  Checkpoint target_;
};

TEST_F(ExternalTest, IsKeptBeforeTheCallAndBroughtBackOnlyWhenAskedFor) {
  w_.Pre("s", "t1", {"/out/conf"});
  EXPECT_EQ(Kept(w_.last), "/out/conf=file");
  const Checkpoint before = w_.last;
  w_.PutAt(kOut, "conf", "v1");
  w_.Put("mine", "x");
  w_.Post("s", "t1", {"/out/conf"});
  EXPECT_EQ(Kept(w_.last), "");
  for (const Checkpoint& target : {before, target_}) {
    const Outcome shown = Must(w_.Preview(target));
    ASSERT_EQ(shown.plan.warnings.size(), 1u);
    EXPECT_EQ(shown.plan.warnings[0],
              "1 file outside the project that an edit tool changed is kept; "
              "--external-files brings it back: /out/conf");
    EXPECT_TRUE(shown.plan.external.empty());
  }
  w_.outside = OnOutside::kExact;  // `mine` is nobody's that is named
  Must(w_.Back(target_));
  EXPECT_EQ(w_.At("/out/conf"), "v1");
  EXPECT_EQ(w_.Files(), "old.txt ");
  w_.external_files = true;
  const Outcome done = Must(w_.Back(target_));
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(w_.At("/out/conf"), "v0");
  // What was there is in the safety checkpoint.
  ASSERT_TRUE(done.safety);
  ASSERT_EQ(Kept(*done.safety), "/out/conf=file");
  EXPECT_EQ(done.safety->external[0].state->size, 2u);
  EXPECT_EQ(Names("/out"), "conf ");
  Must(w_.world.Undo());
  EXPECT_EQ(w_.At("/out/conf"), "v1");
  Must(w_.world.Redo());
  EXPECT_EQ(w_.At("/out/conf"), "v0");
  // Nothing is left to be done, or to be offered.
  EXPECT_TRUE(Must(w_.Preview(target_)).plan.moves_nothing());
}

TEST_F(ExternalTest, WhatWasNotThereGoesAndWhatIsGoneComesBack) {
  Edit("s", "t1", "made", "new");
  EXPECT_EQ(w_.At("/out/made"), "new");
  w_.Pre("s", "t2", {"/out/conf"});
  Gone("/out/conf");
  w_.Post("s", "t2", {"/out/conf"});
  w_.external_files = true;
  Must(w_.Back(target_));
  EXPECT_EQ(Names("/out"), "conf ");
  EXPECT_EQ(w_.At("/out/conf"), "v0");
  Must(w_.world.Undo());
  EXPECT_EQ(Names("/out"), "made ");
  EXPECT_EQ(w_.At("/out/made"), "new");
}

TEST_F(ExternalTest, TheFirstThatKeptItCounts) {
  Edit("s", "t1", "conf", "v1");
  w_.Prompt("s");
  const Checkpoint second = w_.last;
  Edit("s", "t2", "conf", "v2");
  Edit("s", "t3", "conf", "v3");
  w_.external_files = true;
  Must(w_.Back(second));
  EXPECT_EQ(w_.At("/out/conf"), "v1");
  Must(w_.Back(target_));
  EXPECT_EQ(w_.At("/out/conf"), "v0");
}

// Also when those that kept it were let go since, and their content collected.
TEST_F(ExternalTest, RetentionAndCollectionsTakeNothingThatIsStillNeeded) {
  Must(w_.world.Capture("by hand"));
  Edit("s", "t1", "conf", "v1");
  Edit("s", "t2", "conf", "v2");
  w_.Put("x", "1");
  w_.Prompt("s");
  w_.Prompt("s");
  ASSERT_GT(w_.Prune(0), 3u);
  {
    auto opened = Must(w_.world.Open());
    GcOptions everything;
    everything.min_garbage = 0;
    Must(CollectGarbage(*opened.store, everything));
  }
  auto opened = Must(w_.world.Open());
  const Checkpoint by_hand = Must(w_.world.Named(opened, "by hand"));
  EXPECT_EQ(Kept(by_hand), "/out/conf=file");
  w_.external_files = true;
  w_.outside = OnOutside::kExact;
  Must(w_.Back(by_hand));
  EXPECT_EQ(w_.At("/out/conf"), "v0");
}

// --- where it is ---------------------------------------------------------------------

TEST_F(ExternalTest, PathsAreReal) {
  Fd top = Must(disk_.OpenDir(AbsPath::Literal("/")));
  Must(disk_.Symlink(top, N("link"), "/out"));
  Must(disk_.Symlink(Must(disk_.OpenDir(kOut)), N("alias"), "conf"));
  w_.Pre("s", "t1", {"/link/conf"});
  EXPECT_EQ(Kept(w_.last), "/out/conf=file");
  // A tool may write the link, or through it.
  w_.Pre("s", "t2", {"/link/alias"});
  EXPECT_EQ(Kept(w_.last), "/out/alias=link /out/conf=file");
  w_.Pre("s", "t3", {"../../out/new/deep"});
  EXPECT_EQ(Kept(w_.last), "/out/new/deep=absent");
}

// A name in the root that leads out of it.
TEST_F(ExternalTest, WhatASymlinkInTheRootLeadsToIsOutside) {
  Fd project = Must(w_.world.Dir());
  Must(disk_.Symlink(project, N("linked"), "/out"));
  Must(disk_.Symlink(project, N("conf"), "/out/conf"));
  w_.Pre("s", "t1", {"linked/conf", "old.txt"});
  EXPECT_EQ(Kept(w_.last), "/out/conf=file");
  w_.Pre("s", "t2", {"conf"});
  EXPECT_EQ(Kept(w_.last), "/out/conf=file");
  w_.Pre("s", "t3", {"linked/new"});
  EXPECT_EQ(Kept(w_.last), "/out/new=absent");
}

TEST_F(ExternalTest, NobodyIsLedElsewhereByASymlink) {
  Edit("s", "t1", "conf", "v1");
  w_.PutAt(AbsPath::Literal("/evil"), "conf", "theirs");
  Fd top = Must(disk_.OpenDir(AbsPath::Literal("/")));
  Must(disk_.Rename(top, N("out"), top, N("moved"), RenameHow::kNoReplace));
  Must(disk_.Symlink(top, N("out"), "/evil"));
  w_.external_files = true;
  const Outcome done = Must(w_.Back(target_));
  EXPECT_EQ(KeptPaths(done.plan), "/out/conf:directory_gone ");
  EXPECT_EQ(w_.At("/evil/conf"), "theirs");
}

TEST_F(ExternalTest, SomePlacesAreNobodysToName) {
  w_.PutAt(AbsPath::Literal("/out/.git/hooks"), "pre-commit", "x");
  w_.PutAt(AbsPath::Literal("/proc"), "version", "x");
  w_.PutAt(AbsPath::Literal("/dev"), "thing", "x");
  w_.PutAt(AbsPath::Literal("/out/.belay-stage-x"), "0.1", "x");
  w_.PutAt(AbsPath::Literal("/bare"), "HEAD", "ref: refs/heads/main\n");
  Must(MakeDirs(disk_, AbsPath::Literal("/bare/objects"), 0755));
  Must(MakeDirs(disk_, AbsPath::Literal("/bare/refs"), 0755));
  w_.Pre("s", "t1",
         {"/top/store/manifest", "/out/.git/hooks/pre-commit", "/proc/version",
          "/dev/thing", "/out/.belay-stage-x/0.1", "/bare/hooks/update", "/out", "/",
          "old.txt"});
  EXPECT_EQ(Kept(w_.last), "");
}

// Mutant: no-way-out-is-said.
TEST_F(ExternalTest, WhatIsInAnotherRootIsThatRootsOwn) {
  {
    Must(MakeDirs(disk_, kOut, 0755));
    auto opened = Must(w_.world.Open());
    Fd dir = Must(disk_.OpenDir(kOut));
    Edit("s", "t0", "conf", "v1");
    Must(RegisterRoot(*opened.store, *opened.catalog, kOut, Must(disk_.Stat(dir)), {}));
  }
  w_.Pre("s", "t1", {"/out/conf"});
  EXPECT_EQ(Kept(w_.last), "");
  // Nor is what was kept before brought back into it.
  w_.external_files = true;
  const Outcome done = Must(w_.Back(target_));
  EXPECT_EQ(KeptPaths(done.plan), "/out/conf:other_root ");
  EXPECT_EQ(w_.At("/out/conf"), "v1");
  ASSERT_EQ(done.plan.warnings.size(), 1u);
  EXPECT_NE(done.plan.warnings[0].find("belay off /out,"), std::string::npos)
      << done.plan.warnings[0];
}

// --- what is kept --------------------------------------------------------------------

TEST_F(ExternalTest, RulesHoldOutsideToo) {
  w_.world.settings.max_file_size = {.bytes = 10};
  w_.world.settings.secrets = Secrets::kSkip;
  w_.PutAt(kOut, "large", "more than ten bytes");
  w_.PutAt(kOut, ".env", "KEY=1");
  w_.Pre("s", "t1", {"/out/large", "/out/.env", "/out/conf"});
  EXPECT_EQ(Kept(w_.last), "/out/.env=secret /out/conf=file /out/large=too_large");
  w_.external_files = true;
  const Outcome shown = Must(w_.Preview(target_));
  EXPECT_EQ(KeptPaths(shown.plan), "/out/.env:secret /out/large:too_large ");
}

TEST_F(ExternalTest, ASecretIsNotDeletedUnlessSomebodySaysSo) {
  Edit("s", "t1", ".env", "KEY=1");
  w_.external_files = true;
  EXPECT_EQ(KeptPaths(Must(w_.Back(target_)).plan), "/out/.env:secret ");
  w_.world.plan.delete_ignored = true;
  Must(w_.Back(target_));
  EXPECT_EQ(w_.At("/out/.env"), "-");
}

// The hook was not waited for: what the tool wrote by then is not what was there
// before.
TEST_F(ExternalTest, WhatMayBeTheToolsOwnIsNotKept) {
  std::atomic<int64_t> released{1'000};  // long ago
  w_.released_ns = &released;
  w_.Pre("s", "t1", {"/out/conf", "/out/nothing"});
  EXPECT_EQ(Kept(w_.last), "/out/conf=changed_late /out/nothing=changed_late");
}

TEST_F(ExternalTest, AFileThatIsBeingEmptiedIsNotKeptAsEmpty) {
  test::TruncatingFs truncating(disk_);
  test::AgentWorld world(truncating, AbsPath::Literal("/another"));
  world.Start("s");
  world.Prompt("s");
  Fd out = Must(disk_.OpenDir(kOut));
  const FileStat before = Must(disk_.StatAt(out, N("conf")));
  std::atomic<int64_t> released{before.ctime_ns + 1'000'000'000};
  world.released_ns = &released;
  disk_.AdvanceTime(2'000'000'000);
  Must(truncating.Begin(out, RelPath::Literal("conf"), 0));
  world.Pre("s", "t1", {"/out/conf"});
  EXPECT_EQ(Kept(world.last), "/out/conf=changed_late");
}

TEST_F(ExternalTest, RecordsAreNotBelieved) {
  TreeEntry state;
  state.mode = 0644;
  state.id = Sha256::Of(AsBytes("x"));
  for (const std::string path :
       {"", "relative", "../up", "/", "/a/../b", "/a//b", "/a/", "/proc/self/mem",
        "/dev/sda", "/sys/power/state", "/home/me/.git/hooks/pre-commit",
        "/home/me/.GIT/config", "/x/.belay-stage-abc/0.0"}) {
    EXPECT_FALSE(IsExternalPath(path)) << path;
    Checkpoint c;
    c.state = state.id;
    c.external = {{.path = path, .state = state}};
    EXPECT_TRUE(Must(ToCheckpoint(ToRecord(c))).external.empty()) << path;
    LogRecord annotation;
    annotation.kind = RecordKind::kAnnotation;
    AddExternal(annotation, c.external);
    EXPECT_TRUE(ExternalIn(annotation).empty()) << path;
    Node node = EncodeChanges({{path.empty() ? "x" : path, state, std::nullopt}});
    EXPECT_FALSE(DecodeExternalChanges(node).ok()) << path;
  }
  Checkpoint c;
  c.state = state.id;
  c.external = {{.path = "/etc/hosts", .state = state, .session = "s"},
                {.path = "/etc/made"},
                {.path = "/etc/shadow", .left_out = 3}};
  EXPECT_EQ(Must(ToCheckpoint(ToRecord(c))).external, c.external);
}

TEST_F(ExternalTest, AJournalLeadsNowhereElse) {
  Journal journal;
  journal.operation.id = RecordId(SeededRandom(1).NewId());
  journal.operation.changes = Sha256::Of(AsBytes("x"));
  journal.stage = StageName(journal.operation.id);
  PathState state;
  state.mode = 0644;
  state.id = Sha256::Of(AsBytes("x"));
  journal.external = {{"/out", 7, {{"conf", std::nullopt, state}}}};
  EXPECT_EQ(Must(DecodeJournal(EncodeJournal(journal))).external, journal.external);
  for (const std::string dir : {"/proc/self", "/home/.git/hooks", "out"}) {
    journal.external[0].dir = dir;
    EXPECT_FALSE(DecodeJournal(EncodeJournal(journal)).ok()) << dir;
  }
}

// --- others --------------------------------------------------------------------------

TEST_F(ExternalTest, WhatAnotherSessionEditedIsItsOwn) {
  w_.PutAt(kOut, "theirs", "t0");
  w_.Start("other");
  Edit("other", "o1", "theirs", "t1");
  Edit("s", "t1", "conf", "v1");
  w_.external_files = true;
  Must(w_.Back(target_));
  EXPECT_EQ(w_.At("/out/theirs"), "t1");
  EXPECT_EQ(w_.At("/out/conf"), "v0");
}

TEST_F(ExternalTest, WhatBothEditedIsAskedAbout) {
  w_.Start("other");
  Edit("s", "t1", "conf", "v1");
  Edit("other", "o1", "conf", "v2");
  w_.external_files = true;
  auto refused = w_.Back(target_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("/out/conf"), std::string::npos);
  EXPECT_EQ(w_.At("/out/conf"), "v2");
  w_.outside = OnOutside::kKeep;
  Must(w_.Back(target_));
  EXPECT_EQ(w_.At("/out/conf"), "v2");
  w_.outside = OnOutside::kExact;
  Must(w_.Back(target_));
  EXPECT_EQ(w_.At("/out/conf"), "v0");
}

TEST_F(ExternalTest, AnUndoSeesWhatChangedSince) {
  Edit("s", "t1", "conf", "v1");
  w_.Put("mine", "x");
  w_.external_files = true;
  w_.outside = OnOutside::kExact;
  Must(w_.Back(target_));
  w_.PutAt(kOut, "conf", "edited since");
  const Outcome undone = Must(w_.world.Undo());
  ASSERT_EQ(undone.conflicts.size(), 1u);
  EXPECT_EQ(undone.conflicts[0].path, "/out/conf");
  EXPECT_EQ(w_.At("/out/conf"), "edited since");
  EXPECT_EQ(w_.Files(), "old.txt ");
  Must(w_.world.Undo(/*exact=*/true));
  EXPECT_EQ(w_.At("/out/conf"), "v1");
  EXPECT_EQ(w_.Files(), "mine old.txt ");
}

// --- travelling, erasing -------------------------------------------------------------

TEST_F(ExternalTest, ABundleHasNoneOfIt) {
  Edit("s", "t1", "conf", "v1");
  auto opened = Must(w_.world.Open());
  ExportRequest request;
  request.checkpoints = w_.List();
  request.root_path = "/top/project";
  const ExportReport report =
      Must(WriteBundle(*opened.store, request, [](ByteSpan) { return Ok(); }));
  ASSERT_FALSE(report.checkpoints.empty());
  for (const ExportedCheckpoint& one : report.checkpoints) {
    EXPECT_TRUE(one.checkpoint.external.empty());
    EXPECT_TRUE(one.checkpoint.more_refs.empty());
  }
}

TEST_F(ExternalTest, APurgeReachesIt) {
  w_.PutAt(kOut, "conf", "the password is swordfish");
  Edit("s", "t1", "conf", "v1");
  Edit("s", "t2", "conf", "v2");
  {
    auto opened = Must(w_.world.Open());
    PurgeRequest request;
    request.path = "/out/conf";
    request.root = opened.root;
    request.lock_wait_ms = 200;
    const PurgeReport report = Must(Purge(*opened.store, request));
    EXPECT_EQ(report.plan.versions, 2u);
    EXPECT_EQ(report.left_out, std::vector<std::string>{"/out/conf"});
  }
  Fd store = Must(disk_.OpenDir(w_.world.world.dir));
  EXPECT_TRUE(Must(RawSearch(disk_, {"swordfish"}).In(store)).empty());
  w_.external_files = true;
  EXPECT_EQ(KeptPaths(Must(w_.Back(target_)).plan), "/out/conf:purged ");
  // And it is not kept again.
  w_.Pre("s", "t3", {"/out/conf"});
  EXPECT_EQ(Kept(w_.last), "/out/conf=purged");
  // Nor wanted back by whoever it is handed on to.
  w_.Prompt("s");
  ASSERT_GT(w_.Prune(0), 0u);
  auto opened = Must(w_.world.Open());
  EXPECT_TRUE(Must(VerifyStore(*opened.store, {.read_data = true})).clean());
}

// --- all or nothing ------------------------------------------------------------------

const AbsPath kTop = AbsPath::Literal("/top");

// Outside: one to be written, one to go, one to come back; inside one of each.
Status Setup(Fs& disk) {
  AgentWorld w(disk);
  const AbsPath out = AbsPath::Literal("/out"), other = AbsPath::Literal("/other");
  w.PutAt(out, "conf", "before");
  w.PutAt(other, "gone", "was here");
  w.Start("s");
  w.Prompt("s", "the target");
  w.Pre("s", "t1", {"/out/conf", "/out/made", "/other/gone", "new", "old.txt"});
  w.PutAt(out, "conf", "after, and longer");
  w.PutAt(out, "made", "by the tool");
  BELAY_TRY(Fd dir, disk.OpenDir(other));
  BELAY_OK(disk.Unlink(dir, N("gone")));
  w.Put("new", "by the tool");
  w.Put("old.txt", "changed");
  w.Post("s", "t1", {"/out/conf", "/out/made", "/other/gone", "new", "old.txt"});
  return Ok();
}

std::string Seen(Fs& fs) {
  std::string out;
  for (const std::string dir : {"/out", "/other", "/top/project"}) {
    auto opened = fs.OpenDir(AbsPath::Literal(dir));
    if (!opened.ok()) return "no " + dir;
    auto text = TreeText(fs, *opened);
    out += dir + ":\n" + (text.ok() ? *text : text.error().what);
  }
  return out;
}

Result<Outcome> RollBack(Fs& fs, uint64_t seed) {
  RestoreWorld world(fs, kTop, seed);
  BELAY_TRY(auto opened, world.Open());
  BELAY_TRY(auto all, opened.catalog->ListCheckpoints({.root = opened.root.id}));
  RollbackRequest request = world.RequestFor(opened.root);
  request.external_files = true;
  for (const CatalogEntry& entry : all)
    if (entry.checkpoint.description == "the target")
      return Rollback(*opened.store, request, entry.checkpoint);
  return Error(Errc::kNotFound, "no target");
}

void Sweep(SweepOptions options) {
  MemFs learn;
  Must(Setup(learn));
  const std::string before = Seen(learn);
  Must(RollBack(learn, 5));
  const std::string after = Seen(learn);
  ASSERT_NE(before, after);
  const SweepResult result = SweepFaults(
      options, Setup,
      [&](Fs& fs, Acks&) -> Status {
        BELAY_TRY(Outcome done, RollBack(fs, 5));
        return done.operation ? Ok() : Status(Error(Errc::kRefused, "nothing done"));
      },
      [&](Fs& disk, const SweepRun& run) -> Status {
        RestoreWorld world(disk, kTop, 9);
        BELAY_TRY(auto recovered, world.Recover());
        const std::string now = Seen(disk);
        if (run.done && now != after)
          return Error(Errc::kCorrupt, "said done, and is not:\n" + now);
        if (now != before && now != after)
          return Error(Errc::kCorrupt, "neither old nor new:\n" + now);
        // What was done can be taken back.
        if (now == before) return Ok();
        BELAY_TRY(Outcome undone, world.Undo());
        return Seen(disk) == before ? Ok()
                                    : Status(Error(Errc::kCorrupt, "not undone"));
      });
  std::cout << result.Text();
  EXPECT_TRUE(result.ok()) << result.Text();
}

TEST(ExternalSweep, EveryPowerCutLeavesAllOldOrAllNew) {
  SweepOptions options{.name = "power cut, external"};
  options.fault.mutating_only = true;
  options.tears = 1;
  options.stride = 3;
  Sweep(options);
}

TEST(ExternalSweep, EveryFailingCallLeavesAllOldOrAllNew) {
  for (int sys : {ENOSPC, EIO}) {
    SweepOptions options{.name = "errno " + std::to_string(sys) + ", external",
                         .fault = Fault::Errno(0, sys, false)};
    options.stride = 13;
    Sweep(options);
    // Each call that writes: few of them come between one directory and the next.
    options.name += ", writing";
    options.fault.mutating_only = true;
    options.stride = 1;
    Sweep(options);
  }
}

}  // namespace
}  // namespace belay::test
