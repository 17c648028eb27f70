// The main job of this version on a scratch store: keep states, survive a power cut in
// the middle of one, and tell the truth about a damaged disk. Exits non-zero when
// anything is not as promised. (Rolling a tree back comes with a later version.)

#include <unistd.h>

#include <map>

#include "base/fault_fs.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "store/batch_writer.h"
#include "store/verify.h"

namespace belay {

namespace {

using Project = std::map<std::string, std::string>;

Project MakeProject() {
  Project project;
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (int line = 0; line < 150; ++line)
      text += "  total += weigh(item_" + std::to_string(i * 7 + line % 23) + ", " +
              std::to_string(line) + ");\n";
    project["module_" + std::to_string(i) + ".cc"] = std::move(text);
  }
  return project;
}

class Demo {
 public:
  explicit Demo(CommandContext& ctx, const AbsPath& dir) : ctx_(ctx), dir_(dir) {}

  Status Run() {
    Say(StrCat("A scratch store, removed at the end: ", dir_.bytes()));
    Project first = MakeProject();
    BELAY_OK(Keep(ctx_.fs, "start", first));
    Project second = first;
    for (int i = 0; i < 10; ++i)
      second["module_" + std::to_string(i) + ".cc"] += "// an agent was here\n";
    BELAY_OK(Keep(ctx_.fs, "ten edits", second));

    // The power goes while a third checkpoint is being written.
    FaultFs dying(ctx_.fs, [] {
      Fault cut = Fault::PowerCut(1);
      cut.only = {FsCall::kWrite};
      return cut;
    }());
    Project third = second;
    third["module_0.cc"] = "broken";
    if (Keep(dying, "never finished", third).ok())
      return Error(Errc::kIo, "a checkpoint was acknowledged without power");
    Say("  the power went while a third one was written: it was not acknowledged");

    BELAY_TRY(auto store, Open(ctx_.fs));
    BELAY_OK(Expect(*store, "start", first));
    BELAY_OK(Expect(*store, "ten edits", second));
    Say("  both earlier checkpoints read back byte for byte");
    VerifyOptions every_byte;
    every_byte.read_data = true;
    BELAY_TRY(VerifyReport clean, VerifyStore(*store, every_byte));
    if (!clean.clean()) return Error(Errc::kCorrupt, clean.damage.front());
    Say("  belay verify: whole");

    BELAY_OK(FlipOneBit(*store, second.at("module_3.cc")));
    BELAY_TRY(VerifyReport report, VerifyStore(*store, every_byte));
    if (report.clean() || report.hit.size() != 1 || report.hit[0].paths.size() != 1 ||
        report.hit[0].paths[0] != "module_3.cc")
      return Error(Errc::kIo, "a flipped bit was not traced to its file");
    Say(StrCat("  one bit flipped on disk: belay verify names ", report.hit[0].paths[0],
               " of '", report.hit[0].checkpoint.name.value_or(""), "'"));
    BELAY_TRY(auto again, Open(ctx_.fs));
    BELAY_OK(Expect(*again, "start", first));
    Say("  and 'start' is untouched. All as promised.");
    return Ok();
  }

 private:
  void Say(std::string_view line) {
    if (!ctx_.term.json()) ctx_.term.Out(StrCat(line, "\n"));
  }

  Result<std::unique_ptr<Store>> Open(Fs& fs) {
    StoreOptions options;
    options.uid = geteuid();
    return Store::Open(fs, clock_, random_, dir_, options, Store::Mode::kWrite);
  }

  Status Keep(Fs& fs, const std::string& name, const Project& project) {
    const int64_t began = clock_.SteadyNanos();
    BELAY_TRY(auto store, Open(fs));
    BELAY_TRY(auto writer, store->Begin());
    Tree tree;
    uint64_t bytes = 0;
    for (const auto& [file, text] : project) {
      TreeEntry entry;
      entry.name = file;
      entry.mode = 0644;
      entry.size = text.size();
      BELAY_TRY(entry.id, writer->PutContent(AsBytes(text)));
      tree.entries.push_back(std::move(entry));
      bytes += text.size();
    }
    State state;
    BELAY_TRY(state.tree, writer->PutTree(tree));
    Checkpoint checkpoint;
    BELAY_TRY(checkpoint.state,
              writer->PutObject(ObjectType::kState, EncodeState(state)));
    checkpoint.id = RecordId(random_.NewId());
    checkpoint.kind = CheckpointKind::kManual;
    checkpoint.name = name;
    checkpoint.files = project.size();
    checkpoint.bytes = bytes;
    checkpoint.made_ms = clock_.WallMillis();
    writer->Add(ToRecord(checkpoint));
    BELAY_TRY(auto published, writer->Commit());
    states_[name] = checkpoint.state;
    char took[32];
    std::snprintf(took, sizeof took, "%.1f ms",
                  static_cast<double>(clock_.SteadyNanos() - began) / 1e6);
    Say(StrCat("  checkpoint '", name, "': ", CountText(project.size(), "file"), ", ",
               SizeText(bytes), "; stored ", SizeText(published.stats.bytes_stored),
               " in ", took, ", durable"));
    return Ok();
  }

  Status Expect(Store& store, const std::string& name, const Project& project) {
    BELAY_TRY(State state, store.GetState(states_.at(name)));
    BELAY_TRY(Tree tree, store.GetTree(state.tree));
    if (tree.entries.size() != project.size())
      return Error(Errc::kIo, "'" + name + "' has lost files");
    for (const TreeEntry& entry : tree.entries) {
      BELAY_TRY(Bytes bytes, store.ReadContentBytes(entry.id, kMaxBlob));
      if (AsText(bytes) != project.at(entry.name))
        return Error(Errc::kIo, entry.name + " of '" + name + "' differs");
    }
    return Ok();
  }

  Status FlipOneBit(Store& store, const std::string& content) {
    BELAY_TRY(auto found,
              store.Find({ObjectType::kBlob, Sha256::Of(AsBytes(content))}));
    if (!found) return Error(Errc::kNotFound, "the content is not in the store");
    BELAY_TRY(Fd pack, ctx_.fs.Open(store.packs_dir(),
                                    PackFile::FileName(found->pack->file->id()),
                                    OpenMode::ReadWrite()));
    const uint64_t at = found->record.offset + kRecordHeaderSize +
                        found->record.header.stored_length / 2;
    std::byte one[1];
    BELAY_OK(ReadExact(ctx_.fs, pack, at, one));
    one[0] ^= std::byte{1};
    BELAY_OK(WriteFull(ctx_.fs, pack, at, one));
    return pack.Close();
  }

  CommandContext& ctx_;
  const AbsPath& dir_;
  RealClock clock_;
  RealRandom random_;
  std::map<std::string, ObjectId> states_;
};

// The demo made every file below `dir`; all of them go.
Status RemoveTree(Fs& fs, const Fd& parent, const Name& name) {
  BELAY_TRY(Fd dir, fs.Open(parent, name, OpenMode::Directory()));
  BELAY_TRY(auto entries, fs.List(dir));
  for (const DirEntry& e : entries) {
    BELAY_TRY(Name child, Name::Parse(e.name));
    BELAY_TRY(FileStat stat, fs.StatAt(dir, child));
    BELAY_OK(stat.type == FileType::kDirectory ? RemoveTree(fs, dir, child)
                                               : fs.Unlink(dir, child));
  }
  return fs.RemoveDir(parent, name);
}

}  // namespace

ExitCode CmdDemo(CommandContext& ctx) {
  RealRandom random;
  auto resolved = ctx.env.Resolve(ctx.env.tmpdir.empty() ? "/tmp" : ctx.env.tmpdir);
  if (!resolved.ok()) return ctx.term.Fail(resolved.error());
  const AbsPath tmp = *resolved;
  const Name name = Name::Literal("belay-demo-" + random.NewId().text().substr(0, 10));
  auto parent = ctx.fs.OpenDir(tmp);
  if (!parent.ok()) return ctx.term.Fail(parent.error());
  const AbsPath dir = tmp.Join(name);
  Status done = Demo(ctx, dir).Run();
  Status removed = RemoveTree(ctx.fs, *parent, name);
  if (!done.ok()) return ctx.term.Fail(done.error());
  if (!removed.ok()) return ctx.term.Fail(removed.error());
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject().Key("ok").Bool(true).EndObject();
    ctx.term.OutJson(json);
  }
  return ExitCode::kOk;
}

}  // namespace belay
