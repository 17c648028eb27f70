// Prepared statements of the catalogue.

#include <sqlite3.h>

#include <utility>

#include "store/catalog_internal.h"

namespace belay {

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_), stmt_(std::exchange(other.stmt_, nullptr)), next_(other.next_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(db_, other.db_);
  std::swap(stmt_, other.stmt_);
  std::swap(next_, other.next_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(stmt_); }

Statement& Statement::Start() {
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
  next_ = 1;
  return *this;
}

// Binding fails only without memory, or by our mistake; the statement then lacks a
// value that every column requires, or finds nothing.
Statement& Statement::Bind(int64_t value) {
  BELAY_CHECK(sqlite3_bind_int64(stmt_, next_++, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::Bind(ByteSpan blob) {
  // A null pointer would bind NULL, not an empty blob.
  int rc = blob.empty() ? sqlite3_bind_zeroblob(stmt_, next_++, 0)
                        : sqlite3_bind_blob64(stmt_, next_++, blob.data(), blob.size(),
                                              SQLITE_TRANSIENT);
  if (rc == SQLITE_NOMEM) throw std::bad_alloc();
  BELAY_CHECK(rc == SQLITE_OK);
  return *this;
}

Statement& Statement::BindText(std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  int rc = sqlite3_bind_text64(stmt_, next_++, data, text.size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  if (rc == SQLITE_NOMEM) throw std::bad_alloc();
  BELAY_CHECK(rc == SQLITE_OK);
  return *this;
}

Statement& Statement::BindNull() {
  ++next_;
  return *this;
}

Result<bool> Statement::Step() {
  int rc = sqlite3_step(stmt_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) {
    sqlite3_reset(stmt_);
    return false;
  }
  Error error = db_->LastError("query");
  sqlite3_reset(stmt_);
  return error;
}

Status Statement::Run() {
  for (;;) {
    BELAY_TRY(bool row, Step());
    if (!row) return Ok();
  }
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(stmt_, column); }

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}

ByteSpan Statement::Blob(int column) const {
  const void* data = sqlite3_column_blob(stmt_, column);
  return {
      static_cast<const std::byte*>(data),
      data == nullptr ? 0 : static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}

std::string_view Statement::Text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}

int Statement::columns() const { return sqlite3_column_count(stmt_); }

std::string Statement::Show(int column) const {
  switch (sqlite3_column_type(stmt_, column)) {
    case SQLITE_NULL:
      return "null";
    case SQLITE_INTEGER:
      return std::to_string(Int(column));
    case SQLITE_TEXT:
      return "'" + std::string(Text(column)) + "'";
    case SQLITE_BLOB:
      return ToHex(Blob(column));
    default:
      return "a float";  // nothing of ours
  }
}

}  // namespace belay
