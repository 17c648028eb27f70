// What an attacker, or a damaged disk, may put into a store or a project: trees, change
// lists, journals and rules that lead out of the root, into a git directory, or
// nowhere. Each row is refused when it is read, and nothing outside is written.
//
//   tests/hostile/race_full     a minute of swapping a directory with a symlink

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/escape.h"
#include "restore/journal.h"
#include "scan/rules_record.h"
#include "store/batch_writer.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

struct BadName {
  std::string name;
  bool is_git;  // a legal name that stands for git's directory
};

std::string Utf8(char32_t c) {
  std::string out;
  out += static_cast<char>(0xe0 | (c >> 12));
  out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
  out += static_cast<char>(0x80 | (c & 0x3f));
  return out;
}

// No row of these may ever be one component of a path in a project.
std::vector<BadName> BadNames() {
  std::vector<BadName> out;
  for (const char* name :
       {"", ".", "..", "/", "a/b", "../x", "../../x", "/etc/passwd", "a/../../x", "./x",
        "x/", "x/.", "x/..", "//x", "a//b", "/proc/self/root/etc", "../.git/config"})
    out.push_back({name, false});
  out.push_back({std::string("nul\0inside", 10), false});
  out.push_back({std::string("\0", 1), false});
  out.push_back({std::string("..\0", 3), false});
  out.push_back({std::string(256, 'n'), false});
  out.push_back({std::string(5000, 'n'), false});
  for (const char* name : {".git",
                           ".GIT",
                           ".Git",
                           ".gIT",
                           ".giT",
                           ".git.",
                           ".git..",
                           ".git ",
                           ".git  ",
                           ".git. .",
                           ".git . ",
                           ".GIT.",
                           ".git:",
                           ".git:x",
                           ".git::$DATA",
                           ".git::$INDEX_ALLOCATION",
                           ".git:stream:$DATA",
                           "git~1",
                           "GIT~1",
                           "Git~1",
                           "git~1.",
                           "git~1 ",
                           "git~1::$DATA",
                           "GIT~1."})
    out.push_back({name, true});
  // HFS+ drops these code points wherever they stand.
  const std::string git = ".git";
  for (char32_t c : {0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d,
                     0x202e, 0x206a, 0x206b, 0x206c, 0x206d, 0x206e, 0x206f, 0xfeff})
    for (size_t at = 0; at <= git.size(); ++at)
      out.push_back({git.substr(0, at) + Utf8(c) + git.substr(at), true});
  out.push_back({Utf8(0x200c) + ".G" + Utf8(0x200d) + "iT" + Utf8(0xfeff) + ".", true});
  return out;
}

// The same as paths of several components.
std::vector<std::string> BadPaths() {
  std::vector<std::string> out;
  for (const BadName& bad : BadNames()) {
    if (bad.name == "a/b") continue;  // two names
    out.push_back(bad.name);
    if (bad.name.size() > 300) continue;
    out.push_back("dir/" + bad.name);
    out.push_back(bad.name + "/x");
  }
  return out;
}

std::string Shown(const std::string& text) {
  return "'" + EscapeForDisplay(text.substr(0, 60)) + "'";
}

// As EncodeTree, without its checks.
Bytes RawTree(const std::vector<TreeEntry>& entries) {
  Bytes out;
  ByteWriter w(out);
  w.U8(1);
  w.Varint(entries.size());
  for (const TreeEntry& e : entries) {
    w.Sized(e.name);
    w.U8(static_cast<uint8_t>(e.kind));
    w.U8(e.xattrs.is_zero() ? 0 : 1);
    w.Varint(e.mode);
    w.Varint(e.uid);
    w.Varint(e.gid);
    if (e.kind == EntryKind::kSymlink) {
      w.Sized(e.target);
    } else {
      if (e.kind == EntryKind::kFile) w.Varint(e.size);
      w.Raw(e.id.span());
    }
    if (!e.xattrs.is_zero()) w.Raw(e.xattrs.span());
  }
  return out;
}

TreeEntry FileEntry(const std::string& name, const ObjectId& id, uint64_t size) {
  TreeEntry entry;
  entry.name = name;
  entry.mode = 0644;
  entry.uid = entry.gid = 1000;
  entry.id = id;
  entry.size = size;
  return entry;
}

class HostileTest : public RestoreTest {
 protected:
  HostileTest() {
    Put("dir/a", "inside");
    Put(".git/config", "[core]\n");
    Must(world.Capture("start"));
    top = Must(disk.OpenDir(AbsPath::Literal("/m")));
    Must(disk.MakeDir(top, N("outside"), 0755));
    Must(PutFile(disk, top, P("outside/x"), "canary"));
    Must(PutFile(disk, top, P("x"), "canary"));
    everything = Everything();
  }
  // All but the store.
  std::string Everything() {
    std::string out = Tree();
    out += Must(TreeText(disk, Must(disk.OpenDir(AbsPath::Literal("/m/outside")))));
    out += Must(GetFile(disk, top, P("x")));
    for (const DirEntry& entry : Must(disk.List(top))) names.insert(entry.name);
    for (const std::string& name : names) out += name + "\n";
    names.clear();
    return out;
  }
  // A checkpoint whose tree is these bytes.
  Result<Outcome> RollbackToTree(const Bytes& bytes,
                                 EntryKind wrap = EntryKind::kFile) {
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(Checkpoint target, world.Named(opened, "start"));
    BELAY_TRY(State state, opened.store->GetState(target.state));
    {
      BELAY_TRY(auto writer, opened.store->Begin());
      BELAY_TRY(state.tree, writer->PutObject(ObjectType::kTree, bytes));
      if (wrap == EntryKind::kDirectory) {
        TreeEntry dir = FileEntry("dir", state.tree, 0);
        dir.kind = EntryKind::kDirectory;
        dir.mode = 0755;
        BELAY_TRY(state.tree, writer->PutObject(ObjectType::kTree, RawTree({dir})));
      }
      BELAY_TRY(target.state,
                writer->PutObject(ObjectType::kState, EncodeState(state)));
      target.id = RecordId(world.world.random.NewId());
      writer->Add(ToRecord(target));
      auto published = writer->Commit();
      if (!published.ok()) return std::move(published).error();
    }
    return belay::Rollback(*opened.store, world.RequestFor(opened.root), target);
  }
  Journal ForgedJournal(std::vector<PathChange> changes) {
    auto opened = Must(world.Open());
    Journal journal;
    journal.operation.id = RecordId(world.world.random.NewId());
    journal.operation.root = opened.root.id;
    journal.operation.changes = Sha256::Of(AsBytes("changes"));
    journal.operation.label = "forged";
    journal.stage = StageName(journal.operation.id);
    journal.changes = std::move(changes);
    return journal;
  }
  Result<std::optional<Recovered>> RecoverBytes(const Bytes& bytes) {
    BELAY_TRY(auto opened, world.Open());
    BELAY_TRY(Fd store, disk.OpenDir(AbsPath::Literal("/m/store")));
    (void)disk.MakeDir(store, N("journal"), 0700);
    BELAY_OK(PutFile(disk, store, P("journal/" + opened.root.id.text()), AsText(bytes),
                     0600));
    return belay::Recover(*opened.store, world.RequestFor(opened.root));
  }
  PathChange Creates(const std::string& path) {
    PathState file;
    file.mode = 0644;
    file.uid = file.gid = 1000;
    file.id = Sha256::Of(AsBytes("inside"));
    file.size = 6;
    return {path, std::nullopt, file};
  }

  Fd top;
  std::string everything;
  std::set<std::string> names;
};

TEST_F(HostileTest, NoTreeNamesAPathOutsideOrGitsDirectory) {
  const ObjectId content = Sha256::Of(AsBytes("inside"));
  for (const BadName& bad : BadNames()) {
    const Bytes tree = RawTree({FileEntry(bad.name, content, 6)});
    EXPECT_FALSE(DecodeTree(tree).ok()) << Shown(bad.name);
    EXPECT_FALSE(EncodeTree(belay::Tree{{FileEntry(bad.name, content, 6)}}).ok())
        << Shown(bad.name);
    for (EntryKind wrap : {EntryKind::kFile, EntryKind::kDirectory}) {
      auto done = RollbackToTree(tree, wrap);
      EXPECT_FALSE(done.ok()) << Shown(bad.name);
      if (done.ok()) continue;
      EXPECT_EQ(done.error().code, Errc::kCorrupt) << done.error().what;
    }
    TreeEntry dir = FileEntry(bad.name, content, 0);
    dir.kind = EntryKind::kDirectory;
    EXPECT_FALSE(DecodeTree(RawTree({dir})).ok()) << Shown(bad.name);
    TreeEntry link = FileEntry(bad.name, {}, 0);
    link.kind = EntryKind::kSymlink;
    link.target = "/etc/passwd";
    EXPECT_FALSE(DecodeTree(RawTree({link})).ok()) << Shown(bad.name);
  }
  EXPECT_EQ(Everything(), everything);
}

TEST_F(HostileTest, NoForgedTreeIsBelieved) {
  const ObjectId content = Sha256::Of(AsBytes("inside"));
  struct Row {
    const char* what;
    Bytes bytes;
  };
  std::vector<Row> table;
  auto good = FileEntry("a", content, 6);
  auto with = [&](const char* what, auto change) {
    TreeEntry entry = good;
    change(entry);
    table.push_back({what, RawTree({entry})});
  };
  with("mode above 07777", [](TreeEntry& e) { e.mode = 010000; });
  with("mode of another universe", [](TreeEntry& e) { e.mode = 0xffffffff; });
  with("uid -1", [](TreeEntry& e) { e.uid = 0xffffffff; });
  with("gid -1", [](TreeEntry& e) { e.gid = 0xffffffff; });
  with("no content", [](TreeEntry& e) { e.id = {}; });
  with("kind 0", [](TreeEntry& e) { e.kind = static_cast<EntryKind>(0); });
  with("kind 4", [](TreeEntry& e) { e.kind = static_cast<EntryKind>(4); });
  auto link = [&](const char* what, std::string target) {
    TreeEntry entry = good;
    entry.kind = EntryKind::kSymlink;
    entry.target = std::move(target);
    table.push_back({what, RawTree({entry})});
  };
  link("an empty link", "");
  link("a link with a NUL", std::string("a\0b", 3));
  link("a link of 4096", std::string(4096, 'x'));
  table.push_back({"twice the same name", RawTree({good, good})});
  table.push_back({"names that fall", RawTree({FileEntry("b", content, 6), good})});
  {
    TreeEntry dir = good;
    dir.kind = EntryKind::kDirectory;
    TreeEntry same = good;
    same.kind = EntryKind::kSymlink;
    same.target = "/";
    table.push_back({"a directory and a link of one name", RawTree({same, dir})});
  }
  Bytes whole = RawTree({good});
  for (size_t length = 0; length < whole.size(); ++length)
    table.push_back(
        {"cut short",
         Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length))});
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  table.push_back({"a byte too many", longer});
  Bytes version = whole;
  version[0] = std::byte{9};
  table.push_back({"another version", version});
  for (const Row& row : table) {
    EXPECT_FALSE(DecodeTree(row.bytes).ok()) << row.what;
    EXPECT_FALSE(RollbackToTree(row.bytes).ok()) << row.what;
  }
  EXPECT_EQ(Everything(), everything);
}

TEST_F(HostileTest, NoChangeListAndNoJournalLeadsOutOrIntoGit) {
  for (const std::string& path : BadPaths()) {
    const Node node = EncodeChanges({Creates(path)});
    EXPECT_FALSE(DecodeChanges(node).ok()) << Shown(path);
    const Bytes bytes = EncodeJournal(ForgedJournal({Creates(path)}));
    EXPECT_FALSE(DecodeJournal(bytes).ok()) << Shown(path);
    auto recovered = RecoverBytes(bytes);
    ASSERT_TRUE(recovered.ok()) << recovered.error().what;
    ASSERT_TRUE(*recovered) << Shown(path);
    EXPECT_EQ((*recovered)->how, Recovered::How::kDropped) << Shown(path);
  }
  EXPECT_EQ(Everything(), everything);
}

TEST_F(HostileTest, NoJournalWidensADirectoryOutsideOrOfGit) {
  for (const std::string& path : BadPaths()) {
    if (path.empty()) continue;  // the root itself
    Journal journal = ForgedJournal({Creates("new")});
    journal.locked.push_back({path, 0777});
    EXPECT_FALSE(DecodeJournal(EncodeJournal(journal)).ok()) << Shown(path);
  }
  for (uint32_t mode : {010000u, 0xffffffffu, 0100644u}) {
    Journal journal = ForgedJournal({Creates("new")});
    journal.locked.push_back({"dir", mode});
    EXPECT_FALSE(DecodeJournal(EncodeJournal(journal)).ok()) << mode;
  }
}

TEST_F(HostileTest, NoJournalStagesAnywhereElse) {
  for (const std::string& stage :
       {std::string(), std::string("."), std::string(".."), std::string(".git"),
        std::string("dir"), std::string("/tmp"), std::string("../outside"),
        std::string("/m/outside"), std::string(".belay-stage-"),
        std::string(".belay-stage-../../outside"), std::string(".belay-stage-x/y"),
        std::string(".belay-stage-" + std::string(300, 'a')),
        std::string(".belay-stage-\0aaaa", 18), std::string("stage"),
        std::string(".belay-stage-.git")}) {
    Journal journal = ForgedJournal({Creates("new")});
    journal.stage = stage;
    const Bytes bytes = EncodeJournal(journal);
    EXPECT_FALSE(DecodeJournal(bytes).ok()) << Shown(stage);
    auto recovered = RecoverBytes(bytes);
    ASSERT_TRUE(recovered.ok() && *recovered);
    EXPECT_EQ((*recovered)->how, Recovered::How::kDropped) << Shown(stage);
  }
  EXPECT_EQ(Everything(), everything);
}

TEST_F(HostileTest, NoByteOfAJournalCanBeChangedOrLost) {
  const Bytes whole = EncodeJournal(ForgedJournal({Creates("new")}));
  ASSERT_TRUE(DecodeJournal(whole).ok());
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes flipped = whole;
    flipped[at] ^= std::byte{1};
    EXPECT_FALSE(DecodeJournal(flipped).ok()) << "byte " << at;
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(at));
    EXPECT_FALSE(DecodeJournal(cut).ok()) << "length " << at;
  }
  for (const Bytes& bytes : {Bytes(), Bytes(8), Bytes(40), Bytes(4096)})
    EXPECT_FALSE(DecodeJournal(bytes).ok());
}

TEST_F(HostileTest, AJournalOfAnotherRootIsNotObeyed) {
  Journal journal = ForgedJournal({Creates("new")});
  journal.operation.root = RootId(world.world.random.NewId());
  const Bytes bytes = EncodeJournal(journal);
  auto recovered = RecoverBytes(bytes);
  ASSERT_TRUE(recovered.ok() && *recovered);
  EXPECT_EQ((*recovered)->how, Recovered::How::kDropped);
  EXPECT_EQ(Everything(), everything);
}

TEST_F(HostileTest, NoForgedChangeIsBelieved) {
  struct Row {
    const char* what;
    std::function<void(ByteWriter&)> write;
  };
  auto state = [](ByteWriter& w, unsigned kind, uint64_t mode, uint64_t uid,
                  uint64_t gid) {
    w.U8(static_cast<uint8_t>(kind));
    w.Varint(mode);
    w.Varint(uid);
    w.Varint(gid);
  };
  auto content = [](ByteWriter& w) {
    w.Varint(6);
    w.Raw(Sha256::Of(AsBytes("inside")).span());
  };
  const std::vector<Row> table = {
      {"nothing at all", [](ByteWriter&) {}},
      {"a path alone", [](ByteWriter& w) { w.Sized("a"); }},
      {"neither before nor after", [](ByteWriter& w) { w.Sized("a"), w.U8(0); }},
      {"unknown flags", [](ByteWriter& w) { w.Sized("a"), w.U8(4); }},
      {"all flags", [](ByteWriter& w) { w.Sized("a"), w.U8(255); }},
      {"flags without a state", [](ByteWriter& w) { w.Sized("a"), w.U8(2); }},
      {"kind 0",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 0, 0644, 0, 0), content(w), w.U8(0);
       }},
      {"kind 4",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 4, 0644, 0, 0), content(w), w.U8(0);
       }},
      {"mode 010000",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 010000, 0, 0), content(w), w.U8(0);
       }},
      {"uid -1",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0xffffffff, 0), content(w), w.U8(0);
       }},
      {"gid of 64 bits",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, uint64_t{1} << 40), content(w),
             w.U8(0);
       }},
      {"content cut short",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, 0), w.Varint(6), w.Raw("abc");
       }},
      {"unknown attributes",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, 0), content(w), w.U8(2);
       }},
      {"attributes that are none",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, 0), content(w), w.U8(1),
             w.Raw(ObjectId().span());
       }},
      {"attributes cut short",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, 0), content(w), w.U8(1),
             w.Raw("x");
       }},
      {"bytes left over",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, 0), content(w), w.U8(0), w.U8(0);
       }},
      {"an empty link",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 2, 0777, 0, 0), w.Sized(""), w.U8(0);
       }},
      {"a link with a NUL",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 2, 0777, 0, 0),
             w.Sized(std::string("a\0b", 3)), w.U8(0);
       }},
      {"a link of 4096",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 2, 0777, 0, 0),
             w.Sized(std::string(4096, 'x')), w.U8(0);
       }},
      {"a file without content",
       [&](ByteWriter& w) {
         w.Sized("a"), w.U8(2), state(w, 1, 0644, 0, 0), w.Varint(6),
             w.Raw(ObjectId().span()), w.U8(0);
       }},
  };
  for (const Row& row : table) {
    Bytes bytes;
    ByteWriter w(bytes);
    row.write(w);
    Node node;
    node.fields.Add(1, bytes);
    EXPECT_FALSE(DecodeChanges(node).ok()) << row.what;
  }
  EXPECT_FALSE(DecodeChanges(EncodeChanges({Creates("b"), Creates("a")})).ok());
  EXPECT_FALSE(DecodeChanges(EncodeChanges({Creates("a"), Creates("a")})).ok());
}

TEST_F(HostileTest, NoRulesRecordNamesAPathOutside) {
  auto store = Must(world.world.Open());
  auto writer = Must(store->Begin());
  BatchSink sink(*writer);
  auto refuses = [&](const RulesRecord& record) {
    Node node = Must(EncodeRules(record, sink));
    return !DecodeRules(node, [](const ObjectId&) -> Result<Bytes> {
              return Bytes();
            }).ok();
  };
  for (const BadName& bad : BadNames()) {
    if (bad.is_git || RelPath::Parse(bad.name).ok()) continue;
    RulesRecord skipped;
    skipped.skipped.push_back({bad.name, Skip::kTooLarge});
    EXPECT_TRUE(refuses(skipped)) << Shown(bad.name);
    RulesRecord other;
    other.other_roots.push_back(bad.name);
    EXPECT_TRUE(refuses(other)) << Shown(bad.name);
    RulesRecord loose;
    loose.loose_rules.push_back({bad.name, "x"});
    EXPECT_TRUE(refuses(loose)) << Shown(bad.name);
    if (bad.name.empty()) continue;  // the root itself
    RulesRecord nested;
    nested.work_trees.push_back({bad.name, true, false, {}});
    EXPECT_TRUE(refuses(nested)) << Shown(bad.name);
    RulesRecord below;
    below.work_trees.push_back({"", true, false, {}});
    below.work_trees[0].input.root_below_top = bad.name;
    EXPECT_TRUE(refuses(below)) << Shown(bad.name);
  }
  for (uint32_t mode : {010000u, 0xffffffffu}) {
    RulesRecord record;
    record.mode = mode;
    EXPECT_TRUE(refuses(record));
  }
}

// A journal that is whole and makes no sense: everything stays inside, and it is not in
// the way for ever.
TEST_F(HostileTest, AJournalThatGoesThroughItsOwnSymlinkStaysInside) {
  PathState link;
  link.kind = EntryKind::kSymlink;
  link.mode = 0777;
  link.uid = link.gid = 1000;
  struct Row {
    const char* link_path;
    const char* target;
    const char* below;
  };
  for (const Row& row :
       {Row{"new", "/m/outside", "new/x"}, Row{"new", "../outside", "new/x"},
        Row{"new", "..", "new/x"}, Row{"dir", "/m/outside", "dir/x"},
        Row{"dir", "../outside", "dir/x"}, Row{"new", ".git", "new/config"},
        Row{"new", "/proc/self/root", "new/x"}}) {
    link.target = row.target;
    Journal journal =
        ForgedJournal({{row.link_path, std::nullopt, link}, Creates(row.below)});
    auto recovered = RecoverBytes(EncodeJournal(journal));
    EXPECT_TRUE(recovered.ok()) << row.target << ": " << recovered.error().what;
    EXPECT_EQ(Must(GetFile(disk, top, P("outside/x"))), "canary") << row.target;
    EXPECT_EQ(Must(GetFile(disk, top, P("x"))), "canary") << row.target;
    EXPECT_EQ(Read(".git/config"), "[core]\n") << row.target;
    EXPECT_EQ(
        Must(disk.List(Must(disk.OpenDir(AbsPath::Literal("/m/outside"))))).size(), 1u);
    Must(world.Recover());
  }
}

// Legal, however odd: such names come back as they were, inside.
TEST_F(HostileTest, OddNamesAreNames) {
  const std::string names_then[] = {
      "new\nline", "\xff\xfe\xfd", "\xc3\x28", "..x", "...",
      ".gitx",     ".git-",        "git~2",    "-rf", "a\\..\\b",
      "\x1b[31m",  ".gitignore",   ".gi"};
  for (const std::string& name : names_then) Put("odd/" + name, "then");
  Must(world.Capture("odd"));
  const std::string then = Tree();
  Remove("odd");
  Must(world.Rollback("odd"));
  EXPECT_EQ(Tree(), then);
}

TEST_F(HostileTest, TheTablesHaveThreeHundredRows) {
  const size_t names_count = BadNames().size(), paths_count = BadPaths().size();
  std::cout << "hostile rows: " << names_count << " names, " << paths_count
            << " paths as changes and as locks\n";
  EXPECT_GE(names_count + 2 * paths_count, 300u);
}

// --- a racer -------------------------------------------------------------------------

class SwapRaceTest : public RealRestoreTest {};

TEST_F(SwapRaceTest, NotAByteOutsideTheRoot) {
  const char* seconds = std::getenv("BELAY_RACE_SECONDS");
  const double wanted = seconds != nullptr ? std::atof(seconds) : 1.5;
  const AbsPath outside = temp / "outside";
  Must(MakeDirs(disk_fs, outside.Join(P("sub")), 0755));
  Fd canary = Must(disk_fs.OpenDir(outside));
  for (const char* name : {"a", "b", "sub/c"}) {
    Must(PutFile(disk_fs, canary, P(name), "canary"));
    Put(std::string("dir/") + name, "then");
  }
  Link("trap", outside.bytes());
  Must(world.Capture("start"));
  const std::string untouched = Must(TreeText(disk_fs, canary));
  const FileStat before = Must(disk_fs.Stat(canary));

  std::atomic<bool> stop = false;
  std::atomic<uint64_t> swaps = 0;
  const std::string dir = PathTo("dir"), trap = PathTo("trap");
  std::thread racer([&] {
    while (!stop) {
      if (syscall(SYS_renameat2, AT_FDCWD, dir.c_str(), AT_FDCWD, trap.c_str(),
                  RENAME_EXCHANGE) == 0)
        ++swaps;
    }
  });
  uint64_t rollbacks = 0, done = 0;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(wanted);
  while (std::chrono::steady_clock::now() < until) {
    // Through whichever is the directory just now, never through the link.
    for (const char* name : {"dir/a", "dir/new", "trap/b", "dir/sub/c", "trap/new"})
      (void)PutFile(disk_fs, root, P(name), "now " + std::to_string(rollbacks));
    auto gone = OpenParent(disk_fs, root, P("dir/sub"));
    if (gone.ok() && rollbacks % 3 == 0)
      (void)RemoveTree(disk_fs, gone->dir, gone->name);
    auto result = rollbacks % 4 == 3 ? world.Undo(true) : world.Rollback("start");
    ++rollbacks;
    if (result.ok()) ++done;
    ASSERT_EQ(Must(TreeText(disk_fs, canary)), untouched) << "after " << rollbacks;
  }
  stop = true;
  racer.join();
  std::cout << "race: " << rollbacks << " rollbacks (" << done << " done), " << swaps
            << " swaps\n";
  EXPECT_EQ(Must(TreeText(disk_fs, canary)), untouched);
  const FileStat after = Must(disk_fs.Stat(canary));
  EXPECT_EQ(after.ctime_ns, before.ctime_ns) << "something was made there and removed";
  EXPECT_EQ(after.mode, before.mode);
  EXPECT_GT(swaps, 100u);
  EXPECT_GT(rollbacks, 2u);
  // Now that nobody races, all is well again.
  auto recovered = world.Recover();
  EXPECT_TRUE(recovered.ok()) << recovered.error().what;
  Must(world.Rollback("start"));
  for (const char* name : {"a", "b", "sub/c"})
    EXPECT_EQ(Read(std::string("dir/") + name), "then");
}

}  // namespace
}  // namespace belay::test
