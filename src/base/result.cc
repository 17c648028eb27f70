#include "base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace belay {

std::string_view ErrcName(Errc code) {
  switch (code) {
    case Errc::kNotFound:
      return "not_found";
    case Errc::kExists:
      return "exists";
    case Errc::kInvalid:
      return "invalid";
    case Errc::kCorrupt:
      return "damaged";
    case Errc::kConflict:
      return "conflict";
    case Errc::kBusy:
      return "busy";
    case Errc::kNoSpace:
      return "no_space";
    case Errc::kRefused:
      return "refused";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kPurged:
      return "purged";
    case Errc::kIo:
      return "io";
  }
  return "io";
}

namespace {
Errc CodeForErrno(int sys) {
  switch (sys) {
    case ENOENT:
      return Errc::kNotFound;
    case EEXIST:
      return Errc::kExists;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
      return Errc::kInvalid;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::kNoSpace;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kRefused;
    case EAGAIN:
    case ETXTBSY:
    case EBUSY:
      return Errc::kBusy;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENOLCK:
      return Errc::kUnsupported;
    default:
      return Errc::kIo;
  }
}
}  // namespace

Error SysError(int sys, std::string_view what) {
  std::string text(what);
  text += ": ";
  text += std::strerror(sys);
  return Error(CodeForErrno(sys), sys, std::move(text));
}

Error Context(Error error, std::string_view context) {
  if (!context.empty()) error.what.insert(0, ": ").insert(0, context);
  return error;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "belay: internal error: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace belay
