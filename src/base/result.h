#pragma once

// Result<T> is a value or an Error; Status is a Result without a value.
//
// Failure is the main subject of this program, so it is a return value: each call site
// decides. Exceptions stay switched on for std::bad_alloc and third-party bugs only
// (main() has the one catch). The shape is std::expected's, which g++ 12 does not have.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace belay {

enum class Errc {
  kNotFound,     // the thing named does not exist
  kExists,       // it exists already
  kInvalid,      // wrong input (usage, a name, a setting)
  kCorrupt,      // bytes that are not what they claim to be
  kConflict,     // somebody changed it meanwhile
  kBusy,         // a lock is held, a deadline passed
  kNoSpace,      // ENOSPC, EDQUOT, or our own cap
  kRefused,      // we could, but must not (owner, permission, read-only)
  kUnsupported,  // a newer format, a file system without what we need
  kPurged,       // erased on purpose; not damage
  kIo,           // everything else the kernel says
};

// "corrupt", "no_space" ...: the stable word for --json.
std::string_view ErrcName(Errc code);

struct Error {
  Errc code = Errc::kIo;
  int sys = 0;       // errno, or 0 when the failure is our own judgement
  std::string what;  // "rename manifest.tmp: No space left on device"
  std::string hint;  // what to do next, in the user's words; may be empty

  Error() = default;
  Error(Errc c, std::string w) : code(c), what(std::move(w)) {}
  Error(Errc c, int s, std::string w) : code(c), sys(s), what(std::move(w)) {}
  Error&& WithHint(std::string h) && {
    hint = std::move(h);
    return std::move(*this);
  }
};

// An Error from errno `sys`: the code that fits it and "what: strerror".
Error SysError(int sys, std::string_view what);

// The same error with "context: " put before its text.
Error Context(Error error, std::string_view context);

// Prints the text and aborts. For our own bugs only; see BELAY_CHECK.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

// For our bugs, in release too. Bytes from disk or network never reach it.
#define BELAY_CHECK(condition)                              \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::belay::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

struct Unit {
  bool operator==(const Unit&) const = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    BELAY_CHECK(ok());
    return std::get<0>(v_);
  }
  const T& value() const& {
    BELAY_CHECK(ok());
    return std::get<0>(v_);
  }
  T&& value() && {
    BELAY_CHECK(ok());
    return std::get<0>(std::move(v_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    BELAY_CHECK(!ok());
    return std::get<1>(v_);
  }
  Error&& error() && {
    BELAY_CHECK(!ok());
    return std::get<1>(std::move(v_));
  }

 private:
  std::variant<T, Error> v_;
};

using Status = Result<Unit>;
inline Status Ok() { return Unit{}; }

#define BELAY_CONCAT_INNER(a, b) a##b
#define BELAY_CONCAT(a, b) BELAY_CONCAT_INNER(a, b)

// BELAY_TRY(auto fd, fs.Open(...));  the value, or return the error.
#define BELAY_TRY(target, expression)                             \
  auto BELAY_CONCAT(belay_try_, __LINE__) = (expression);         \
  if (!BELAY_CONCAT(belay_try_, __LINE__).ok()) [[unlikely]]      \
    return std::move(BELAY_CONCAT(belay_try_, __LINE__)).error(); \
  target = std::move(BELAY_CONCAT(belay_try_, __LINE__)).value()

// BELAY_OK(journal.Sync());  the same for a Status.
#define BELAY_OK(expression)                     \
  do {                                           \
    auto belay_ok_status = (expression);         \
    if (!belay_ok_status.ok()) [[unlikely]]      \
      return std::move(belay_ok_status).error(); \
  } while (false)

}  // namespace belay
