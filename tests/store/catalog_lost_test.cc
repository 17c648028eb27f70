// What a catalogue remembers of records that the log lost: the rows of `lost`.

#include "store/catalog_fixture.h"
#include "store/catalog_internal.h"

namespace belay::test {
namespace {

class CatalogLost : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = CatalogDb::InMemory();
    ASSERT_OK(made);
    db_ = std::move(*made);
    record_.kind = RecordKind::kOperation;
    record_.seq = 7;
    record_.id = RecordId(random_.NewId());
  }
  void Keep(bool sure) { ASSERT_OK(db_->KeepLost({{record_, sure}})); }
  std::vector<RememberedRecord> All() {
    std::optional<Error> unread;
    auto all = db_->AllRecords(unread);
    EXPECT_FALSE(unread);
    return all;
  }

  SeededRandom random_{3};
  std::unique_ptr<CatalogDb> db_;
  LogRecord record_;
};

TEST_F(CatalogLost, WhetherARecordIsSureHasACheck) {
  for (bool sure : {false, true}) {
    SetUp();
    Keep(sure);
    ASSERT_OK(db_->Execute("UPDATE lost SET sure = 1 - sure"));
    ASSERT_EQ(All().size(), 1u);
    EXPECT_EQ(All()[0].sure, sure);
  }
}

TEST_F(CatalogLost, ARowWithAnotherCheckIsPassedOver) {
  Keep(true);
  ASSERT_OK(db_->Execute("UPDATE lost SET row_check = row_check + 1"));
  EXPECT_TRUE(All().empty());
}

TEST_F(CatalogLost, ARowOfAnEarlierBuildIsRead) {
  Keep(true);
  auto put = db_->Prepare("UPDATE lost SET row_check = ?");
  ASSERT_OK(put);
  ASSERT_OK(
      (*put)
          ->Bind(Signed(RowCheck(record_.seq, record_.id, EncodeLogRecord(record_))))
          .Run());
  ASSERT_EQ(All().size(), 1u);
  EXPECT_TRUE(All()[0].sure);
}

}  // namespace
}  // namespace belay::test
