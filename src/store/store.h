#pragma once

// Store keeps immutable objects under the hash of their content, and a log of records,
// in append-only packs.
//
// Guarantees
//   * A batch that Commit() acknowledged survives a power cut, whole. One that was not
//     acknowledged is absent or whole.
//   * Get() re-hashes what it read: a mismatch is kCorrupt, never data.
//   * Any number of processes may read, write and collect at once.
//   * Writing never changes bytes that were acknowledged; only GC, after copying.
// Layout and order of writes: docs/format.md.
//
// Threads: Get, ReadContent, Find, ReadLog may be called from any thread.

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/fs.h"
#include "base/random.h"
#include "store/locks.h"
#include "store/log_record.h"
#include "store/pack_file.h"
#include "store/pack_index.h"

namespace belay {

struct StoreOptions {
  uint32_t uid = 0;  // who we are; a store of somebody else is refused
  int64_t lock_wait_ms = 10'000;
  // A pack is closed when it would grow beyond this; fewer packs, fewer lookups.
  uint64_t pack_target = uint64_t{512} << 20;
  // A writer holding this much goes to disk with what it has, so memory stays flat.
  // At 8 MiB a first checkpoint of 100,000 files peaks 90 MB below what it did at 32.
  uint64_t batch_target = uint64_t{8} << 20;
};

class BatchWriter;

// The records in [from, end) of a pack, with their numbers; false when a part of them
// cannot be read.
Result<bool> ReadRecords(const PackFile& file, uint64_t from, uint64_t end,
                         const std::function<Status(const LogRecord&)>& visit);

// One pack as this process knows it. The open one grows: both marks only move forward,
// after what they promise is true.
struct OpenPack {
  std::shared_ptr<const PackFile> file;  // the open pack's shares the appender's fd
  PackIndex index;
  std::atomic<uint64_t> limit{0};  // what lies beyond is not looked for by index
  // Objects beyond this may be read but not relied on: the batch may still be cut off.
  std::atomic<uint64_t> flushed{0};
};

struct ObjectLocation {
  std::shared_ptr<const OpenPack> pack;
  RecordAt record;
};

// Everything before this point of the log has been read. Valid within one generation.
struct LogPosition {
  uint64_t generation = 0;
  PackId pack;           // zero: the beginning
  uint64_t offset = 0;   // end of the last batch read
  bool whole = true;     // nothing of what was read to get here was damaged or missing
  bool flushed = false;  // a seal or a tail says that all before it is on the disk
};

// How far the log went, all of it flushed, when somebody read it, and the number after
// the last record he knows of.
struct RememberedEnd {
  LogPosition position;
  uint64_t next_seq = 0;
};

class Store {
 public:
  enum class Mode { kRead, kWrite, kWriteExisting };
  // kWrite creates the store when it is absent; the others then give kNotFound. A
  // directory that holds other things is not made a store, and nothing in or of it is
  // changed. `fs`, `clock`, `random` must outlive the store.
  static Result<std::unique_ptr<Store>> Open(Fs& fs, Clock& clock, Random& random,
                                             const AbsPath& dir,
                                             const StoreOptions& options, Mode mode);
  // Why there is none at `dir`, where Open() gave kNotFound: something else is there,
  // or a symlink on the way to it leads nowhere. Ok: there never was one.
  static Status CheckPlace(Fs& fs, const AbsPath& dir);
  // What keeps user `uid` from making one at `dir`, which is not there, as far as that
  // can be known without trying.
  static Status CheckCanBeMade(Fs& fs, const AbsPath& dir, uint32_t uid);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // --- reading -----------------------------------------------------------------------
  // kNotFound when it is nowhere, kPurged when it was erased on purpose, kCorrupt when
  // it is there and damaged. For content (blob or chunks) use ReadContent.
  Result<Bytes> Get(const ObjectKey& key);
  Result<Tree> GetTree(const ObjectId& id);
  Result<State> GetState(const ObjectId& id);
  // Hands the content to `sink` piece by piece; memory stays flat. The last piece is
  // handed out only after the whole hash was found right.
  Status ReadContent(const ObjectId& id, const std::function<Status(ByteSpan)>& sink);
  Result<Bytes> ReadContentBytes(const ObjectId& id, uint64_t limit);
  // Where it is, by the indexes alone; empty on a miss (which a damaged index may
  // cause).
  Result<std::optional<ObjectLocation>> Find(const ObjectKey& key);
  Result<bool> HasContent(const ObjectId& id);

  // --- the log -----------------------------------------------------------------------
  // Records published after `after` (all of them when absent or of another generation),
  // in pack order; dropped ones are included. Damaged batches are read as far as they
  // can be and passed over; `belay verify` names them.
  Result<LogPosition> ReadLog(const std::optional<LogPosition>& after,
                              const std::function<Status(const LogRecord&)>& visit);

  // --- writing -----------------------------------------------------------------------
  Result<std::unique_ptr<BatchWriter>> Begin();

  // Keeps packs from being taken away while held: for whoever reads more than one
  // thing.
  Result<HeldLock> HoldForReading();
  // ReadLog for callers that hold `use` in one mode or the other.
  Result<LogPosition> ReadLogHeld(const std::optional<LogPosition>& after,
                                  const std::function<Status(const LogRecord&)>& visit);

  // --- for the rest of store/
  // ----------------------------------------------------------
  Fs& fs() { return fs_; }
  Clock& clock() { return clock_; }
  Random& random() { return random_; }
  const AbsPath& path() const { return path_; }
  const StoreOptions& options() const { return options_; }
  // Packs are closed earlier than StoreOptions says. Before any thread writes.
  void LimitPacks(uint64_t bytes) {
    options_.pack_target = std::min(options_.pack_target, bytes);
    options_.batch_target = std::min(options_.batch_target, options_.pack_target);
  }
  const Fd& dir() const { return dir_; }
  // Whether its path still leads to it. Who had it open for long, and while others
  // could put a copy in its place, goes on with what is there now.
  bool IsInPlace();
  const Fd& packs_dir() const { return packs_dir_; }
  StoreLocks& locks() { return locks_; }
  // The manifest as it is on disk now. It is only ever replaced whole, so one that is
  // held open and still has its name has not changed: that takes one call.
  Result<Manifest> LoadManifest();
  Status WriteManifest(const Manifest& manifest);
  // The manifest this process last loaded.
  Manifest manifest();
  PackId open_pack();  // of that; zero when there is none
  // The tail when it is whole, and about whatever pack.
  Result<std::optional<Tail>> AnyTail();
  // When it is about a pack, there or gone, that the manifest should name: an older
  // manifest came back. (A collection that was killed left other packs.) `use` is held.
  std::optional<Tail> TailOfUnlisted();
  bool TailIsOfUnlisted();
  // The tail when it is whole and about `pack`: about the bytes that it has.
  Result<std::optional<Tail>> LoadTail(const PackId& pack);
  // Whether the pack may have the batch that the tail says was the last one. Otherwise
  // one of the two is of a copy of the store that went another way, and was laid over
  // this one's: the tail says nothing of the pack's bytes, and some that it was about
  // may be gone. Cheap when it is so.
  Result<bool> Fits(const Tail& tail, const StoreId& store);
  // Such a tail was met: the pack counts as shorter than it was.
  bool HasForeignEnd(const PackId& pack);
  // The same for readers, to whom a tail that cannot be read is as good as none.
  Result<std::optional<Tail>> TailIfReadable(const PackId& pack);
  // A codec with its working memory, and back when done.
  std::unique_ptr<Codec> TakeCodec() { return codecs_.Take(); }
  void ReturnCodec(std::unique_ptr<Codec> codec) { codecs_.Return(std::move(codec)); }
  // Looks at the manifest again and forgets packs that are gone.
  Status Refresh();
  Result<std::shared_ptr<const OpenPack>> Pack(const PackId& id);
  // What `pack` must hold at least: its sealed length, or as far as it is known to be
  // flushed: by the tail, and without one by who has read it.
  // (`vouched`, if given: by its seal or the tail.)
  Result<uint64_t> DueLength(const Manifest::Pack& pack, bool* vouched = nullptr);
  // Tells the store what is remembered of its end, in this process: the catalogue does,
  // and the heads. ExpectRemembered() (store/catalog.h) asks both.
  void Expect(const RememberedEnd& end);
  // What was expected of `pack` under the present generation, by them or by what stat
  // caches rely on (store/relied_on.h; number 0: nobody knows the next). Counts without
  // a tail only: one that is there says how far the pack goes, also when an older copy
  // of both was put back.
  std::optional<RememberedEnd> Expected(const PackId& pack);
  // How far `pack` reaches: its sealed length, or for the open one the end of the last
  // whole batch (`whole` hashes everything beyond the flushed mark).
  Result<uint64_t> EndOf(const Manifest::Pack& pack, const PackFile& file);

 private:
  friend class Appender;
  Store(Fs& fs, Clock& clock, Random& random, AbsPath path, const StoreOptions& options,
        Mode mode);
  Status OpenExisting();
  Status Create();
  Status CheckOwner(const FileStat& stat, const std::string& path);
  bool HasRemains(const std::vector<DirEntry>& packs);
  Status SecurePlace(const FileStat& stat);
  struct LoadedManifest {
    Fd file;  // keeps the inode from being used for another file
    FileStat stat;
    Manifest manifest;
  };
  Result<std::shared_ptr<const LoadedManifest>> LoadShared();
  std::shared_ptr<const Manifest> Listed();
  // The file of the open pack and its length, held open from batch to batch while its
  // name leads to it.
  struct SizedFile {
    std::shared_ptr<const PackFile> file;
    uint64_t size = 0;
  };
  Result<SizedFile> HoldFile(const PackId& id, const StoreId& store, bool to_write);
  Status Hold(std::shared_ptr<const PackFile> file, bool writable);
  // The file `tail`, held open; null when there is none.
  Result<std::shared_ptr<const Fd>> TailFile(bool create);
  Result<std::shared_ptr<OpenPack>> LoadPack(const Manifest::Pack& pack,
                                             const StoreId& store_id);
  // Brings what is known of the open pack up to date; false: it must be loaded anew.
  Result<bool> Advance(OpenPack& pack, const StoreId& store_id);
  static void MoveMarks(OpenPack& pack, uint64_t flushed);
  void AskTheCaches(const PackId& pack);
  // A batch of this process is flushed and known by its entries.
  void Grow(const PackId& id, const std::vector<IndexEntry>& entries, uint64_t from,
            uint64_t to);
  // Where everything is, by every record there is and no index. What comes behind is
  // added: who looks for much that is not there reads each byte once, also while he
  // writes.
  struct AllRecords {
    struct End {  // how far a pack was read, and the mark of the batch that ends there
      PackId pack;
      uint64_t offset = 0;
      BatchMark mark{};
    };
    std::vector<End> ends;
    std::unordered_multimap<ObjectKey, std::pair<PackId, uint64_t>> places;
  };
  // All copies there are.
  Result<std::vector<std::pair<PackId, uint64_t>>> Surveyed(const ObjectKey& key);
  Result<std::vector<ObjectLocation>> DeepFind(const ObjectKey& key);
  // What purges name, and whether somebody wanted it gone. Read on in the same way.
  struct Purges {
    LogPosition position;
    BatchMark mark{};
    std::unordered_map<ObjectKey, bool> erased;
  };
  // Nothing: no purge names it.
  Result<std::optional<bool>> WasPurged(const ObjectKey& key);

  Fs& fs_;
  Clock& clock_;
  Random& random_;
  AbsPath path_;
  StoreOptions options_;
  Mode mode_;
  Fd dir_;
  Fd packs_dir_;
  StoreLocks locks_;
  CodecPool codecs_;

  std::mutex mutex_;  // guards what follows; never held over IO
  std::shared_ptr<const LoadedManifest> on_disk_;  // as last read
  std::shared_ptr<const Manifest> manifest_ = std::make_shared<Manifest>();
  std::unordered_map<PackId, std::shared_ptr<OpenPack>> packs_;
  bool open_pack_checked_ = false;  // it is as fresh as the last Refresh()
  struct HeldFile {
    std::shared_ptr<const PackFile> file;  // shared with whoever is just appending
    bool writable = false;
    uint64_t dev = 0, ino = 0;
  };
  HeldFile held_;
  std::shared_ptr<const Fd> tail_;  // shared with a thread that is just using it
  bool tail_writable_ = false;
  // Beyond the mark of the open pack, the last place up to which every batch was found
  // whole, from where, and the mark of the batch that ends there.
  struct Checked {
    PackId pack;
    uint64_t from = 0, whole = 0;
    BatchMark mark{};
  };
  Checked checked_;
  std::unordered_map<PackId, RememberedEnd> expected_;
  PackId caches_asked_;          // the pack of which they have told (ReliedOn())
  std::optional<Tail> fitting_;  // one that was found to fit
  PackId foreign_;               // the pack of one that did not
  // Where this process's own last batch ended: no need to check it again.
  PackId own_pack_;
  uint64_t own_end_ = 0;
  uint64_t own_flushed_ = 0;
  uint64_t own_next_seq_ = 0;

  // Guards what follows, and is held over IO: who waits would read the same bytes.
  // Comes before mutex_.
  std::mutex survey_mutex_;
  AllRecords all_records_;  // after a miss
  Purges purges_;
};

}  // namespace belay
