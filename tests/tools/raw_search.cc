// raw_search DIR WORD...: every file below DIR in which a WORD stands, as it is or
// packed (tests/support/raw_search.h). Exits 1 when there is none.

#include "support/raw_search.h"

#include <cstdio>

#include "base/real_fs.h"

int main(int argc, char** argv) {
  using namespace belay;
  if (argc < 3) {
    std::fprintf(stderr, "usage: raw_search DIR WORD...\n");
    return 2;
  }
  RealFs fs;
  auto path = AbsPath::Parse(argv[1]);
  auto dir = path.ok() ? fs.OpenDir(*path) : Result<Fd>(path.error());
  auto found = dir.ok() ? test::RawSearch(fs, {argv + 2, argv + argc}).In(*dir)
                        : Result<std::vector<std::string>>(dir.error());
  if (!found.ok()) {
    std::fprintf(stderr, "raw_search: %s\n", found.error().what.c_str());
    return 2;
  }
  for (const std::string& place : *found) std::printf("%s\n", place.c_str());
  return found->empty() ? 1 : 0;
}
