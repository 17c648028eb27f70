// The log of a store, as the catalogue and the heads read it.

#include <array>
#include <cerrno>

#include "store/catalog.h"

namespace belay {

namespace {

// The store's log. What stands before a position is the trailer of a batch, which holds
// a hash over all of it.
class StoreLog final : public LogSource {
 public:
  explicit StoreLog(Store& store) : store_(store) {}

  Result<HeldLock> Hold() override { return store_.HoldForReading(); }

  Result<LogPosition> Read(
      const std::optional<LogPosition>& after,
      const std::function<Status(const LogRecord&)>& visit) override {
    return store_.ReadLogHeld(after, visit);
  }

  Result<std::optional<Hash256>> Mark(const LogPosition& position) override {
    std::optional<Hash256> none;
    if (position.pack.is_zero()) return std::optional(Hash256());
    Manifest manifest = store_.manifest();
    const Manifest::Pack* pack = manifest.Find(position.pack);
    // Bytes beyond the end of a sealed pack do not exist.
    if (!pack || (pack->sealed && position.offset > *pack->sealed)) return none;
    auto file = store_.fs().Open(store_.packs_dir(), PackFile::FileName(pack->id),
                                 OpenMode::Read());
    // A pack that is damaged or no pack any more has no mark; the log says the rest.
    auto is_damage = [](const Error& e) {
      return e.code == Errc::kNotFound || e.code == Errc::kInvalid || e.sys == EACCES ||
             e.sys == EISDIR || e.sys == ENXIO || e.sys == ESPIPE || IsUnreadable(e);
    };
    if (!file.ok()) {
      if (is_damage(file.error())) return none;
      return std::move(file).error();
    }
    std::array<std::byte, kBatchTrailerSize> before;
    if (position.offset < before.size()) return none;
    auto got = ReadFull(store_.fs(), *file, position.offset - before.size(), before);
    if (!got.ok() && !is_damage(got.error())) return std::move(got).error();
    if (!got.ok() || *got != before.size()) return none;
    return std::optional(Sha256::Of(before));
  }

  void Expect(const RememberedEnd& end) override { store_.Expect(end); }

 private:
  Store& store_;
};

}  // namespace

std::unique_ptr<LogSource> MakeStoreLog(Store& store) {
  return std::make_unique<StoreLog>(store);
}

}  // namespace belay
