#pragma once

// Two machines for bundle tests: each a project and a store in memory.

#include "bundle/export.h"
#include "bundle/import.h"
#include "support/restore_fixture.h"

namespace belay::test {

class Machine : private MemoryDisk, public Project {
 public:
  explicit Machine(uint64_t seed)
      : Project(MemoryDisk::disk, AbsPath::Literal("/m"), 1000) {
    world.world.random = SeededRandom(seed);
  }
  using MemoryDisk::disk;

  CatalogEntry Entry(const std::string& name) {
    auto opened = Must(world.Open());
    return Must(opened.catalog->Find(opened.root.id, name)).entry;
  }
  void Annotate(const std::string& name, const std::function<void(Fields&)>& say) {
    auto opened = Must(world.Open());
    LogRecord record;
    record.kind = RecordKind::kAnnotation;
    record.id = RecordId(world.world.random.NewId());
    record.root = opened.root.id;
    record.made_ms = 5;
    record.fields.Add(
        kAnnotationTarget,
        Must(opened.catalog->Find(opened.root.id, name)).entry.checkpoint.id.span());
    say(record.fields);
    auto writer = Must(opened.store->Begin());
    writer->Add(record);
    Must(writer->Commit());
  }

  struct Exported {
    Bytes bytes;
    ExportReport report;
  };
  Result<Exported> Export(const std::vector<std::string>& names) {
    auto opened = Must(world.Open());
    ExportRequest request;
    for (const std::string& name : names)
      request.checkpoints.push_back(
          Must(opened.catalog->Find(opened.root.id, name)).entry);
    request.root_path = opened.root.path;
    request.secret_patterns = world.settings.secret_patterns;
    Exported out;
    BELAY_TRY(out.report,
              WriteBundle(*opened.store, request, [&](ByteSpan piece) -> Status {
                out.bytes.insert(out.bytes.end(), piece.begin(), piece.end());
                return Ok();
              }));
    return out;
  }
  Result<ImportReport> Import(ByteSpan bytes) {
    auto source = BundleInMemory(bytes);
    BELAY_TRY(auto reader, BundleReader::Open(*source));
    BELAY_TRY(auto opened, world.Open());
    return ImportBundle(
        *opened.store, *reader,
        {.root = opened.root, .settings = &world.settings, .lock_wait_ms = 200});
  }
  std::string StoreText() {
    Fd store = Must(disk.OpenDir(AbsPath::Literal("/m/store")));
    return Must(TreeText(disk, store));
  }
};

// A project with every kind of thing, and three checkpoints of it.
inline void MakeHistory(Machine& m) {
  m.Put("src/main.c", "int main() { return 0; }\n", 0755);
  m.Put("src/copy.c", "int main() { return 0; }\n");
  m.Put("empty", "");
  m.Put(std::string("odd\nname \xff"), "odd");
  m.MakeDir("nothing", 0700);
  m.Link("src/link", "main.c");
  m.Link("away", "/etc/passwd");
  m.Put("big", Noise(5, 2'500'000));
  m.Put("text", SourceText(6, 200'000));
  m.Put("deep/er/and/deeper/file", "deep");
  m.SetXattr("src/main.c", "user.note", "kept");
  m.SetXattr("nothing", "user.dir", "kept too");
  m.Chown("src/copy.c", 54321, 54322);
  m.Put(".env", "TOKEN=correct-horse-battery");
  m.Put("deep/server.pem", "-----BEGIN staple-of-the-battery");
  Must(m.world.Capture("one"));
  m.Put("text", SourceText(6, 199'000) + "changed");
  m.Put("src/main.c", "int main() { return 1; }\n", 0755);
  Must(m.world.Capture("two"));
  m.Remove("deep/er");
  m.Put("new", "3");
  m.Put(".env", "TOKEN=another-secret-of-mine");
  Must(m.world.Capture("three"));
}

}  // namespace belay::test
