#include "store/catalog_internal.h"

namespace belay {

namespace {

// What is shown of each table; one difference already means "build it anew".
constexpr size_t kShown = 5;

struct Table {
  const char* name;
  const char* rows;  // in an order, so that two can be walked side by side
};

// Everything but search_data and search_idx, whose bytes depend on when FTS5 merged;
// those SQLite compares with search_content itself. And but for meta: the schema's hash
// is compared by opening, and how far the log was read has a check of its own; a pack
// that was begun since, and has nothing in it yet, makes it no other log.
constexpr Table kTables[] = {
    {"records", "SELECT * FROM records ORDER BY seq"},
    {"checkpoints", "SELECT * FROM checkpoints ORDER BY seq"},
    {"annotations", "SELECT * FROM annotations ORDER BY target, seq"},
    {"drops", "SELECT * FROM drops ORDER BY id"},
    {"search", "SELECT * FROM search_content ORDER BY id"},
    {"search sizes", "SELECT * FROM search_docsize ORDER BY id"},
    {"search settings", "SELECT * FROM search_config ORDER BY k"},
};

// The same rows reached through each index, as the questions reach them. SQLite's own
// check compares indexes and tables too; this does not depend on what it looks at.
constexpr Table kIndexed[] = {
    {"records by id", "SELECT id, seq FROM records ORDER BY id, seq"},
    {"records by kind", "SELECT kind, root, seq FROM records ORDER BY kind, root, seq"},
    {"checkpoints by root", "SELECT root, seq FROM checkpoints ORDER BY root, seq"},
    {"checkpoints by session",
     "SELECT session, seq FROM checkpoints WHERE session IS NOT NULL "
     "ORDER BY session, seq"},
    {"checkpoints by name",
     "SELECT name, seq FROM checkpoints WHERE name IS NOT NULL ORDER BY name, seq"},
};

Result<std::optional<std::vector<std::string>>> NextRow(Statement& statement) {
  BELAY_TRY(bool row, statement.Step());
  if (!row) return std::optional<std::vector<std::string>>();
  std::vector<std::string> out;
  for (int i = 0; i < statement.columns(); ++i) out.push_back(statement.Show(i));
  return std::optional(std::move(out));
}

Status CompareTable(CatalogDb& mine, CatalogDb& truth, const Table& table,
                    std::vector<std::string>& problems) {
  std::string where = "catalogue, " + std::string(table.name) + ": ";
  BELAY_TRY(Statement * right, truth.Prepare(table.rows));
  auto left = mine.Prepare(table.rows);
  size_t shown = 0;
  for (size_t row = 1; shown < kShown; ++row) {
    if (!left.ok()) {
      problems.push_back(where + left.error().what);
      break;
    }
    auto have = NextRow(**left);
    BELAY_TRY(auto want, NextRow(*right));
    if (!have.ok()) {
      if (have.error().code != Errc::kCorrupt) return have.error();
      problems.push_back(where + have.error().what);
      break;
    }
    if (!*have && !want) break;
    if (*have == want) continue;
    problems.push_back(where + "row " + std::to_string(row) +
                       " is not what the packs say");
    ++shown;
    if (!*have || !want) break;
  }
  // Neither may be left in the middle: an open statement holds on to what it reads.
  right->Start();
  if (left.ok()) (*left)->Start();
  return Ok();
}

}  // namespace

Result<std::vector<std::string>> CatalogDb::CheckStructure() {
  std::vector<std::string> problems;
  auto note = [&problems](Error error) -> Status {
    if (error.code != Errc::kCorrupt) return error;
    problems.push_back(std::move(error.what));
    return Ok();
  };
  auto check = Prepare("PRAGMA integrity_check(10)");
  if (!check.ok()) {
    BELAY_OK(note(check.error()));
  } else {
    for (;;) {
      auto row = (*check)->Step();
      if (!row.ok()) BELAY_OK(note(row.error()));
      if (!row.ok() || !*row) break;
      if ((*check)->Text(0) != "ok")
        problems.push_back("catalogue: " + std::string((*check)->Text(0)));
    }
  }
  Status words = Execute("INSERT INTO search(search) VALUES('integrity-check')");
  if (!words.ok()) BELAY_OK(note(words.error()));
  return problems;
}

Result<std::vector<std::string>> CatalogDb::CompareRows(CatalogDb& truth) {
  std::vector<std::string> problems;
  for (const Table& table : kTables)
    BELAY_OK(CompareTable(*this, truth, table, problems));
  for (const Table& table : kIndexed)
    BELAY_OK(CompareTable(*this, truth, table, problems));
  return problems;
}

}  // namespace belay
