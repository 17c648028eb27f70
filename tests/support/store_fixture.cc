#include "support/store_fixture.h"

#include <algorithm>

#include "store/inventory.h"

namespace belay::test {

namespace {
std::map<std::string, Files> Below(const Files& files) {
  std::map<std::string, Files> below;
  for (const auto& [path, content] : files)
    if (size_t slash = path.find('/'); slash != std::string::npos)
      below[path.substr(0, slash)][path.substr(slash + 1)] = content;
  return below;
}

void Sort(Tree& tree) {
  std::sort(tree.entries.begin(), tree.entries.end(),
            [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
}

// What PutDirectory() would put.
Tree DirectoryOf(const Files& files) {
  Tree tree;
  for (const auto& [path, content] : files) {
    if (path.find('/') != std::string::npos) continue;
    TreeEntry e;
    e.name = path;
    e.mode = 0644;
    e.size = content.size();
    e.id = Sha256::Of(AsBytes(content));
    tree.entries.push_back(std::move(e));
  }
  for (const auto& [name, inner] : Below(files)) {
    TreeEntry e;
    e.name = name;
    e.kind = EntryKind::kDirectory;
    e.mode = 0755;
    e.id = Sha256::Of(*EncodeTree(DirectoryOf(inner)));
    tree.entries.push_back(std::move(e));
  }
  Sort(tree);
  return tree;
}

// Builds one directory out of the paths that begin with it.
Result<ObjectId> PutDirectory(BatchWriter& writer, const Files& files,
                              const Files& before) {
  Tree tree;
  for (const auto& [path, content] : files) {
    size_t slash = path.find('/');
    if (slash != std::string::npos) continue;
    TreeEntry e;
    e.name = path;
    e.mode = 0644;
    e.size = content.size();
    auto was = before.find(path);
    BELAY_TRY(e.id,
              writer.PutContent(
                  AsBytes(content),
                  was == before.end() ? ObjectId() : Sha256::Of(AsBytes(was->second))));
    tree.entries.push_back(std::move(e));
  }
  auto below_before = Below(before);
  for (const auto& [name, inner] : Below(files)) {
    TreeEntry e;
    e.name = name;
    e.kind = EntryKind::kDirectory;
    e.mode = 0755;
    BELAY_TRY(e.id, PutDirectory(writer, inner, below_before[name]));
    tree.entries.push_back(std::move(e));
  }
  Sort(tree);
  return writer.PutTree(tree, DirectoryOf(before));
}

Status ReadDirectory(Store& store, const ObjectId& id, const std::string& prefix,
                     Files& out) {
  BELAY_TRY(Tree tree, store.GetTree(id));
  for (const TreeEntry& e : tree.entries) {
    if (e.kind == EntryKind::kDirectory) {
      BELAY_OK(ReadDirectory(store, e.id, prefix + e.name + "/", out));
      continue;
    }
    if (e.kind == EntryKind::kSymlink) {
      out[prefix + e.name] = "-> " + e.target;
      continue;
    }
    BELAY_TRY(Bytes bytes, store.ReadContentBytes(e.id, uint64_t{1} << 30));
    out[prefix + e.name] = std::string(AsText(bytes));
  }
  return Ok();
}
}  // namespace

Result<ObjectId> PutFiles(BatchWriter& writer, const Files& files,
                          const Files& before) {
  State state;
  BELAY_TRY(state.tree, PutDirectory(writer, files, before));
  return writer.PutObject(ObjectType::kState, EncodeState(state));
}

RecordId IdFor(const std::string& name) {
  return RecordId(Id128::FromSpan(Sha256::Of(AsBytes(name)).span().first(16)));
}

Result<RecordId> MakeCheckpoint(Store& store, const std::string& name,
                                const Files& files, const RootId& root,
                                const Files& before) {
  BELAY_TRY(auto writer, store.Begin());
  Checkpoint c;
  BELAY_TRY(c.state, PutFiles(*writer, files, before));
  c.id = IdFor(name);
  c.root = root;
  c.kind = CheckpointKind::kManual;
  c.name = name;
  c.made_ms = store.clock().WallMillis();
  c.files = files.size();
  writer->Add(ToRecord(c));
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  return c.id;
}

Status DropCheckpoints(Store& store, const std::vector<std::string>& names) {
  BELAY_TRY(auto writer, store.Begin());
  std::vector<RecordId> ids;
  for (const std::string& name : names) ids.push_back(IdFor(name));
  writer->Add(MakeDrop(RecordId(store.random().NewId()), 0, ids));
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  return Ok();
}

Result<Files> ReadFiles(Store& store, const ObjectId& state_id) {
  BELAY_TRY(State state, store.GetState(state_id));
  Files files;
  BELAY_OK(ReadDirectory(store, state.tree, "", files));
  return files;
}

Result<Checkpoints> ReadAll(Store& store) {
  LogView log;
  BELAY_OK(ReadOn(store, log));
  Checkpoints all;
  for (const LogRecord& r : log.records) {
    if (r.kind != RecordKind::kCheckpoint || !log.IsWanted(r)) continue;
    BELAY_TRY(Checkpoint c, ToCheckpoint(r));
    BELAY_TRY(all[c.name.value_or("?")], ReadFiles(store, c.state));
  }
  return all;
}

std::string SourceText(uint64_t seed, size_t length) {
  static constexpr const char* kWords[] = {"int ",   "return ", "for (",  "if (x",
                                           "value",  "+= 1;\n", "}\n",    "{\n",
                                           "const ", "auto& ",  "name_ ", "// note "};
  SeededRandom random(seed);
  std::string text;
  while (text.size() < length) {
    text += kWords[random.Below(std::size(kWords))];
    if (random.Below(4) == 0) text += std::to_string(random.Below(100000));
  }
  text.resize(length);
  return text;
}

std::string Noise(uint64_t seed, size_t length) {
  SeededRandom random(seed);
  std::string bytes(length, '\0');
  random.Fill(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace belay::test
