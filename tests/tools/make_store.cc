// make_store STORE ROOT: a small store for black-box tests, with one root registered,
// the checkpoints `first`, `second` and `big` (a chunked file), and one that was
// dropped.

#include <unistd.h>

#include <cstdio>

#include "base/real_fs.h"
#include "support/store_fixture.h"

namespace {

using namespace belay;
using namespace belay::test;

Status Make(const AbsPath& dir, const std::string& root_path) {
  RealFs fs;
  World world(fs, 1);
  world.dir = dir;
  world.options.uid = geteuid();
  BELAY_TRY(auto store, world.Open());
  RootId root(world.random.NewId());
  {
    BELAY_TRY(auto writer, store->Begin());
    writer->Add(ToRecord(Root{root, root_path}, RecordId(world.random.NewId()),
                         world.clock.WallMillis()));
    BELAY_TRY(auto published, writer->Commit());
    (void)published;
  }
  auto keep = [&](const char* name, const Files& files) -> Status {
    BELAY_TRY(RecordId id, MakeCheckpoint(*store, name, files, root));
    (void)id;
    return Ok();
  };
  BELAY_OK(keep("first", {{"a.txt", "one\n"}, {"dir/b.txt", Noise(1, 3000)}}));
  BELAY_OK(keep("second", {{"a.txt", "two\n"}, {"dir/b.txt", Noise(1, 3000)}}));
  BELAY_OK(keep("big", {{"large.bin", Noise(2, 2 << 20)}}));
  BELAY_OK(keep("unwanted", {{"junk", Noise(3, 4 << 20)}}));
  return DropCheckpoints(*store, {"unwanted"});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto dir = AbsPath::Parse(argv[1]);
  Status made = dir.ok() ? Make(*dir, argv[2]) : Status(dir.error());
  if (!made.ok()) std::fprintf(stderr, "make_store: %s\n", made.error().what.c_str());
  return made.ok() ? 0 : 1;
}
