#include <algorithm>

#include "agent/install_record_internal.h"
#include "agent/jsonc.h"
#include "base/bytes.h"
#include "base/escape.h"

namespace belay {

namespace {

constexpr std::string_view kMagic = "BELAYAG1", kAnyMagic = "BELAYAG", kSuffix = ".was";
constexpr size_t kMaxRecord = Jsonc::kMaxText + (size_t{1} << 20);
constexpr size_t kMaxWritten = 16;  // hashes; older ones are given up
constexpr size_t kMaxDirs = 4096;

constexpr size_t kMaxPrograms = 32;  // older ones are given up

Name AgentsName() { return Name::Literal("agents"); }
Name ProgramsName() { return Name::Literal("programs"); }
Name FileName(std::string_view path) {
  const std::string hex = Sha256::Of(AsBytes(path)).hex().substr(0, 32);
  return Name::Literal(hex + std::string(kSuffix));
}

Bytes Encode(const InstallRecord& record) {
  Bytes bytes;
  ByteWriter out(bytes);
  out.Raw(kMagic);
  out.Sized(record.agent);
  out.U8(record.project ? 1 : 0);
  out.U8(static_cast<uint8_t>(record.part));
  out.Sized(record.path);
  out.U8(record.base ? 1 : 0);
  out.Sized(record.base.value_or(""));
  out.Varint(record.written.size());
  for (const Hash256& hash : record.written) out.Raw(hash.bytes);
  out.Varint(record.made_dirs.size());
  for (const std::string& dir : record.made_dirs) out.Sized(dir);
  out.U64(Check64(bytes));
  return bytes;
}

std::optional<InstallRecord> Decode(ByteSpan bytes) {
  if (bytes.size() < kMagic.size() + 8) return std::nullopt;
  const ByteSpan body = bytes.first(bytes.size() - 8);
  if (LoadU64(bytes.data() + body.size()) != Check64(body)) return std::nullopt;
  ByteReader in(body);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return std::nullopt;
  InstallRecord record;
  record.agent = AsText(in.Sized());
  record.project = in.U8() != 0;
  const uint8_t part = in.U8();
  if (part > static_cast<uint8_t>(FileChange::Part::kTrust)) return std::nullopt;
  record.part = static_cast<FileChange::Part>(part);
  record.path = AsText(in.Sized());
  const bool has_base = in.U8() != 0;
  const std::string base(AsText(in.Sized()));
  if (has_base) record.base = base;
  const uint64_t hashes = in.Varint();
  if (hashes > kMaxWritten) return std::nullopt;
  for (uint64_t i = 0; i < hashes; ++i) {
    const ByteSpan hash = in.Raw(32);
    if (in.failed()) return std::nullopt;
    record.written.push_back(Hash256::FromSpan(hash));
  }
  const uint64_t dirs = in.Varint();
  if (dirs > kMaxDirs) return std::nullopt;
  for (uint64_t i = 0; i < dirs && !in.failed(); ++i)
    record.made_dirs.emplace_back(AsText(in.Sized()));
  if (!in.done()) return std::nullopt;
  return record;
}

}  // namespace

bool InstallRecord::Wrote(std::string_view text) const {
  return std::find(written.begin(), written.end(), Sha256::Of(AsBytes(text))) !=
         written.end();
}

Result<InstallRecords> InstallRecords::Load(Fs& fs, const AbsPath& store) {
  InstallRecords out(fs, store);
  auto dir = fs.OpenDir(store.Join(AgentsName()));
  if (!dir.ok()) {
    if (dir.error().code == Errc::kNotFound) return out;
    return Context(std::move(dir).error(), "what is remembered of agents");
  }
  out.dir_ = std::move(*dir);
  BELAY_TRY(auto entries, fs.List(out.dir_));
  for (const DirEntry& entry : entries) {
    if (!entry.name.ends_with(kSuffix)) continue;
    BELAY_TRY(Name name, Name::Parse(entry.name));
    auto bytes = ReadSmallFile(fs, out.dir_, name, kMaxRecord);
    if (!bytes.ok()) continue;  // as one that is damaged: only what is ours goes then
    const std::string_view text = AsText(*bytes);
    if (text.starts_with(kAnyMagic) && !text.starts_with(kMagic))
      return Error(Errc::kUnsupported,
                   "agents were connected by a newer version of Belay")
          .WithHint("use that version for it; nothing was changed");
    auto record = Decode(*bytes);
    if (record && AbsPath::Parse(record->path).ok())
      out.records_.push_back(std::move(*record));
  }
  // A line each, which is an absolute path.
  if (auto bytes = ReadSmallFile(fs, out.dir_, ProgramsName(), size_t{1} << 20);
      bytes.ok()) {
    std::string_view rest = AsText(*bytes);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (AbsPath::Parse(rest.substr(0, end)).ok())
        out.programs_.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::sort(
      out.records_.begin(), out.records_.end(),
      [](const InstallRecord& a, const InstallRecord& b) { return a.path < b.path; });
  return out;
}

const InstallRecord* InstallRecords::Find(const AbsPath& path) const {
  for (const InstallRecord& record : records_)
    if (record.path == path.bytes()) return &record;
  return nullptr;
}

Status InstallRecords::Lock(Clock& clock) {
  BELAY_TRY(dir_, MakeDirs(*fs_, store_.Join(AgentsName()), 0700));
  BELAY_TRY(lock_, fs_->Open(dir_, Name::Literal("lock"), OpenMode::OpenOrCreate()));
  const int64_t deadline = clock.SteadyNanos() + 10'000'000'000;
  for (;; clock.SleepNanos(5'000'000)) {
    BELAY_TRY(bool mine, fs_->TryLock(lock_, 0, LockMode::kExclusive));
    if (mine) break;
    if (clock.SteadyNanos() >= deadline)
      return Error(Errc::kBusy, "another belay process changes agents' settings")
          .WithHint("try again in a moment");
  }
  // What it did counts.
  BELAY_TRY(InstallRecords now, Load(*fs_, store_));
  records_ = std::move(now.records_);
  programs_ = std::move(now.programs_);
  return Ok();
}

Status InstallRecords::Put(const InstallRecord& record) {
  InstallRecord kept = record;
  if (kept.written.size() > kMaxWritten)
    kept.written.erase(kept.written.begin(), kept.written.end() - kMaxWritten);
  BELAY_OK(ReplaceFile(*fs_, dir_, FileName(kept.path), Encode(kept)));
  std::erase_if(records_,
                [&](const InstallRecord& old) { return old.path == kept.path; });
  records_.push_back(std::move(kept));
  return Ok();
}

Status InstallRecords::PutProgram(const AbsPath& program) {
  const std::string& path = program.bytes();
  if (path.ends_with("/belay") || path.find('\n') != std::string::npos ||
      std::find(programs_.begin(), programs_.end(), path) != programs_.end())
    return Ok();
  programs_.push_back(path);
  if (programs_.size() > kMaxPrograms) programs_.erase(programs_.begin());
  std::string text;
  for (const std::string& one : programs_) text += one + "\n";
  return ReplaceFile(*fs_, dir_, ProgramsName(), AsBytes(text));
}

Status InstallRecords::Drop(const std::string& path) {
  std::erase_if(records_, [&](const InstallRecord& old) { return old.path == path; });
  Status gone = fs_->Unlink(dir_, FileName(path));
  if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  if (records_.empty() && !programs_.empty()) {
    programs_.clear();
    gone = fs_->Unlink(dir_, ProgramsName());
    if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  }
  return fs_->Sync(dir_);
}

}  // namespace belay
