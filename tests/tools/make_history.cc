// make_history STORE ROOT COUNT: a store with COUNT checkpoints of one root in 50
// sessions, as months of use leave it: prompts, paths, some names, notes and pins, and
// a rollback for every hundred. All have one state: this is about lists, not content.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/real_fs.h"
#include "core/operations.h"
#include "support/store_fixture.h"

namespace {

using namespace belay;
using namespace belay::test;

constexpr const char* kWords[] = {
    "parser", "login", "form",   "fix",   "test",   "build",  "cache",
    "render", "page",  "index",  "query", "error",  "handle", "config",
    "schema", "route", "auth",   "token", "upload", "queue",  "retry",
    "layout", "style", "button", "modal", "store",  "sync"};

Status Make(const AbsPath& dir, const std::string& root_path, uint64_t count) {
  RealFs fs;
  World world(fs, 1);
  world.dir = dir;
  world.options.uid = geteuid();
  BELAY_TRY(auto store, world.Open());
  SeededRandom& random = world.random;
  auto word = [&] { return std::string(kWords[random.Below(std::size(kWords))]); };
  const RootId root(random.NewId());
  RecordId last[2];  // the newest two
  for (uint64_t made = 0; made < count;) {
    BELAY_TRY(auto writer, store->Begin());
    if (made == 0)
      writer->Add(ToRecord(Root{root, root_path}, RecordId(random.NewId()),
                           world.clock.WallMillis()));
    BELAY_TRY(ObjectId state, PutFiles(*writer, {{"a.txt", "one\n"}}));
    for (uint64_t i = 0; i < 100 && made < count; ++i, ++made) {
      Checkpoint c;
      c.id = RecordId(random.NewId());
      c.root = root;
      world.clock.SleepNanos(60'000'000'000);
      c.made_ms = world.clock.WallMillis();
      c.state = state;
      const uint64_t session = made * 50 / count;
      c.session = "session-" + std::to_string(session) + "-0123456789abcdef";
      c.turn = made / 4;
      c.agent = "claude";
      c.prompt = "please " + word() + " the " + word() + " and " + word() + " it again";
      c.tool_name = "Write";
      c.tool_use_id = "toolu_" + std::to_string(made);
      for (uint64_t p = 0; p < 3; ++p)
        c.paths.push_back("src/" + word() + "/" + word() + "_" + word() + ".ts");
      c.description = "before Write " + c.paths[0];
      if (made % 40 == 0) {
        c.kind = CheckpointKind::kManual;
        c.name = word() + "-" + std::to_string(made);
      }
      c.files = 1000;
      c.modified = 3;
      c.took_us = 1000 + random.Below(5000);
      last[1] = last[0];
      last[0] = c.id;
      writer->Add(ToRecord(c));
      if (made % 50 == 0) {
        LogRecord note;
        note.kind = RecordKind::kAnnotation;
        note.id = RecordId(random.NewId());
        note.root = root;
        note.made_ms = c.made_ms;
        note.fields.Add(kAnnotationTarget, c.id.span());
        note.fields.Add(kAnnotationNote, "the " + word() + " works");
        note.fields.AddNumber(kAnnotationPinned, 1);
        writer->Add(std::move(note));
      }
    }
    Operation o;
    o.id = RecordId(random.NewId());
    o.root = root;
    o.made_ms = world.clock.WallMillis();
    BELAY_TRY(o.changes, writer->PutObject(ObjectType::kNode, EncodeNode(Node())));
    o.target = last[1];
    o.safety = last[0];
    o.label = "before Write";
    o.took_us = 5000 + random.Below(9000);
    writer->Add(ToRecord(o));
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  }
  return Ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  auto dir = AbsPath::Parse(argv[1]);
  Status made = dir.ok() ? Make(*dir, argv[2], std::strtoull(argv[3], nullptr, 10))
                         : Status(dir.error());
  if (!made.ok()) std::fprintf(stderr, "make_history: %s\n", made.error().what.c_str());
  return made.ok() ? 0 : 1;
}
