#include "store/sqlite_fs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cerrno>

#include "base/fault_fs.h"
#include "base/mem_fs.h"

namespace belay::test {
namespace {

class SqliteFsTest : public ::testing::Test {
 protected:
  struct Closer {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  using Db = std::unique_ptr<sqlite3, Closer>;

  std::unique_ptr<SqliteFs> Register(Fs& fs) {
    dir_ = fs.OpenDir(AbsPath::Literal("/")).value();
    auto vfs = SqliteFs::Register(fs, clock_, random_, dir_);
    EXPECT_TRUE(vfs.ok());
    return std::move(*vfs);
  }
  Db Open(SqliteFs& vfs, const char* file, int more = SQLITE_OPEN_CREATE) {
    sqlite3* db = nullptr;
    last_ = sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | more, vfs.name());
    if (last_ != SQLITE_OK) return Db(db);
    Run(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY");
    int reserve = SqliteFs::kPageCheckSize;
    EXPECT_EQ(sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve),
              SQLITE_OK);
    return Db(db);
  }
  int Run(sqlite3* db, const char* sql) {
    return last_ = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  }
  int64_t Number(sqlite3* db, const char* sql) {
    int64_t out = -1;
    auto take = [](void* to, int, char** values, char**) {
      *static_cast<int64_t*>(to) = std::strtoll(values[0], nullptr, 10);
      return 0;
    };
    last_ = sqlite3_exec(db, sql, take, &out, nullptr);
    return out;
  }
  static constexpr const char* kFill =
      "PRAGMA journal_mode=WAL; CREATE TABLE t(a);"
      "INSERT INTO t VALUES(1), (2), (3)";

  MemFs disk_;
  FakeClock clock_;
  SeededRandom random_{1};
  Fd dir_;
  int last_ = 0;
};

TEST_F(SqliteFsTest, KeepsAWalDatabaseInTheDirectory) {
  auto vfs = Register(disk_);
  vfs->AllowWrites(true);
  {
    Db db = Open(*vfs, "a.db");
    ASSERT_EQ(Run(db.get(), kFill), SQLITE_OK);
    EXPECT_EQ(Number(db.get(), "SELECT sum(a) FROM t"), 6);
    EXPECT_TRUE(disk_.StatAt(dir_, Name::Literal("a.db-wal")).ok());
  }
  Db db = Open(*vfs, "a.db");
  EXPECT_EQ(Number(db.get(), "SELECT sum(a) FROM t"), 6);
}

TEST_F(SqliteFsTest, APageThatChangedIsNotReadUnlessAskedFor) {
  auto vfs = Register(disk_);
  vfs->AllowWrites(true);
  {
    Db db = Open(*vfs, "a.db");
    ASSERT_EQ(Run(db.get(), "CREATE TABLE t(a); INSERT INTO t VALUES('needle')"),
              SQLITE_OK);
  }
  Fd file = disk_.Open(dir_, Name::Literal("a.db"), OpenMode::ReadWrite()).value();
  Bytes bytes(disk_.Stat(file)->size);
  ASSERT_EQ(ReadFull(disk_, file, 0, bytes).value(), bytes.size());
  const size_t at = AsText(bytes).find("needle");
  ASSERT_NE(at, std::string::npos);
  ASSERT_TRUE(WriteFull(disk_, file, at, AsBytes("beetle")).ok());
  constexpr const char* kAsk = "SELECT count(*) FROM t WHERE a='beetle'";
  {
    Db db = Open(*vfs, "a.db");
    EXPECT_EQ(Number(db.get(), kAsk), -1);
    auto error = vfs->TakeError();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Errc::kCorrupt);
    EXPECT_EQ(error->what, "page 2 is not what was written");
  }
  vfs->CheckPages(false);
  Db db = Open(*vfs, "a.db");
  EXPECT_EQ(Number(db.get(), kAsk), 1);
}

TEST_F(SqliteFsTest, EveryJournalModeWorks) {
  auto vfs = Register(disk_);
  vfs->AllowWrites(true);
  for (const char* mode : {"DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"}) {
    SCOPED_TRACE(mode);
    std::string file = std::string(mode) + ".db";
    std::string set = "PRAGMA journal_mode=" + std::string(mode);
    Db db = Open(*vfs, file.c_str());
    ASSERT_EQ(Run(db.get(), set.c_str()), SQLITE_OK);
    EXPECT_EQ(Run(db.get(), "CREATE TABLE t(a); INSERT INTO t VALUES(7)"), SQLITE_OK);
    EXPECT_EQ(Number(db.get(), "SELECT a FROM t"), 7);
    EXPECT_EQ(Run(db.get(), "PRAGMA integrity_check"), SQLITE_OK);
  }
}

TEST_F(SqliteFsTest, TwoAtOnceDoNotMeet) {
  MemFs other_disk;
  auto one = Register(disk_);
  Fd other_dir = other_disk.OpenDir(AbsPath::Literal("/")).value();
  auto two = SqliteFs::Register(other_disk, clock_, random_, other_dir);
  ASSERT_TRUE(two.ok());
  one->AllowWrites(true);
  (*two)->AllowWrites(true);
  Db a = Open(*one, "x.db");
  Db b = Open(**two, "x.db");
  ASSERT_EQ(Run(a.get(), kFill), SQLITE_OK);
  EXPECT_EQ(Number(b.get(), "SELECT count(*) FROM sqlite_schema"), 0);
}

TEST_F(SqliteFsTest, IsGoneAfterwards) {
  std::string name;
  {
    auto vfs = Register(disk_);
    name = vfs->name();
    EXPECT_NE(sqlite3_vfs_find(name.c_str()), nullptr);
  }
  EXPECT_EQ(sqlite3_vfs_find(name.c_str()), nullptr);
}

TEST_F(SqliteFsTest, WritesNothingUnlessAllowed) {
  auto vfs = Register(disk_);
  vfs->AllowWrites(true);
  {
    Db db = Open(*vfs, "a.db");
    ASSERT_EQ(Run(db.get(), kFill), SQLITE_OK);
    int on = 1;
    sqlite3_file_control(db.get(), "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    sqlite3_db_config(db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  std::string before = disk_.TreeText();
  vfs->AllowWrites(false);
  Db db = Open(*vfs, "a.db");
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  EXPECT_EQ(Number(db.get(), "SELECT sum(a) FROM t"), 6);
  EXPECT_NE(Run(db.get(), "INSERT INTO t VALUES(4)"), SQLITE_OK);
  EXPECT_NE(sqlite3_wal_checkpoint_v2(db.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE,
                                      nullptr, nullptr),
            SQLITE_OK);
  db.reset();
  EXPECT_EQ(disk_.TreeText(), before);
}

TEST_F(SqliteFsTest, SaysWhatTheFileSystemSaid) {
  struct FaultRow {
    int sys;
    int sqlite;
    Errc code;
  };
  for (FaultRow row : {FaultRow{ENOSPC, SQLITE_FULL, Errc::kNoSpace},
                       FaultRow{EDQUOT, SQLITE_FULL, Errc::kNoSpace},
                       FaultRow{EIO, SQLITE_IOERR, Errc::kIo}}) {
    SCOPED_TRACE(row.sys);
    MemFs disk;
    Fault fault = Fault::Errno(1, row.sys, /*sticky=*/true);
    fault.only = {FsCall::kWrite};
    FaultFs fs(disk, fault);
    auto vfs = Register(fs);
    vfs->AllowWrites(true);
    {
      Db db = Open(*vfs, "a.db");
      EXPECT_EQ(Run(db.get(), "CREATE TABLE t(a)") & 0xff, row.sqlite);
    }
    auto error = vfs->TakeError();
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, row.code);
    EXPECT_EQ(error->sys, row.sys);
    EXPECT_FALSE(vfs->TakeError().has_value());
    EXPECT_FALSE(vfs->flush_failed());
    vfs.reset();
    dir_ = Fd();
  }
}

TEST_F(SqliteFsTest, RemembersAFailedFlush) {
  Fault fault = Fault::Errno(1, EIO);
  fault.only = {FsCall::kSync, FsCall::kSyncData};
  FaultFs fs(disk_, fault);
  auto vfs = Register(fs);
  vfs->AllowWrites(true);
  {
    Db db = Open(*vfs, "a.db");
    EXPECT_NE(Run(db.get(), kFill), SQLITE_OK);
  }
  EXPECT_TRUE(vfs->flush_failed());
  vfs.reset();
  dir_ = Fd();
}

TEST_F(SqliteFsTest, RefusesNamesThatLeaveTheDirectory) {
  auto vfs = Register(disk_);
  for (const char* name : {"", "..", "a/b", "../a.db", "/a.db", "a\nb/../c"}) {
    Db db = Open(*vfs, name);
    // The empty name is a temporary database, which is opened when first used.
    if (last_ == SQLITE_OK) Run(db.get(), "PRAGMA temp_store=FILE; CREATE TABLE t(a)");
    auto entries = disk_.List(dir_);
    ASSERT_TRUE(entries.ok());
    EXPECT_TRUE(entries->empty()) << name;
  }
}

TEST_F(SqliteFsTest, WalsNameIsDurableBeforeItIsReliedOn) {
  FaultFs fs(disk_);
  auto vfs = Register(fs);
  vfs->AllowWrites(true);
  {
    Db db = Open(*vfs, "a.db");
    ASSERT_EQ(Run(db.get(), kFill), SQLITE_OK);
    ASSERT_EQ(sqlite3_wal_checkpoint_v2(db.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                        nullptr, nullptr),
              SQLITE_OK);
    sqlite3_db_config(db.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  vfs.reset();
  dir_ = Fd();
  disk_.Crash(CrashPolicy::DropUnsynced());
  auto again = Register(disk_);
  again->AllowWrites(true);
  EXPECT_TRUE(disk_.StatAt(dir_, Name::Literal("a.db-wal")).ok());
  Db db = Open(*again, "a.db", 0);
  EXPECT_EQ(Number(db.get(), "SELECT sum(a) FROM t"), 6);
}

TEST_F(SqliteFsTest, TellsTheClocksTime) {
  auto vfs = Register(disk_);
  clock_.SetWallMillis(1'700'000'000'000);
  Db db = Open(*vfs, "a.db");
  EXPECT_EQ(Number(db.get(), "SELECT strftime('%s', 'now')"), 1'700'000'000);
}

}  // namespace
}  // namespace belay::test
