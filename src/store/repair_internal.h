#pragma once

// The parts of a repair: repair.cc has its order and what lies around the packs,
// repair_packs.cc puts packs and their indexes right, repair_manifest.cc says which
// packs make up the store when the manifest does not.

#include <optional>
#include <string>
#include <vector>

#include "store/lost_records.h"
#include "store/repair.h"

namespace belay {

class Repairer {
 public:
  Repairer(Fs& fs, Clock& clock, Random& random, const AbsPath& dir,
           const StoreOptions& options, const RepairOptions& how)
      : how_(how),
        fs_(fs),
        clock_(clock),
        random_(random),
        dir_(dir),
        options_(options) {}

  Result<RepairReport> Run();

 private:
  void Done(std::string what) {
    if (how_.said != nullptr) how_.said->push_back(what);
    report_.done.push_back(std::move(what));
  }
  // True when the new manifest is there, and not before.
  void OnceListed(std::string what) { once_listed_.push_back(std::move(what)); }
  static std::string CountPacks(uint64_t count) {
    return std::to_string(count) + (count == 1 ? " pack" : " packs");
  }

  // repair.cc
  bool Exists(const Fd& dir, std::string_view name) {
    return fs_.StatAt(dir, Name::Literal(name)).ok();
  }
  // Files that only a store has, and only once something was stored.
  bool HasRemains();
  // The same without the manifest, but for what a damaged one still says.
  bool WasStoredTo();
  Status OpenPacks();
  // A manifest of a newer format is said before anything is moved out of the way.
  Status CheckVersion();
  // A manifest, or at least one pack: otherwise this is somebody's directory, in which
  // not even a lock file is made, or there is nothing left to repair.
  Status CheckIsStore();
  Status CheckWritable();
  // What is not a file under the name of one of ours is kept under another name.
  Status ClearTheWayTo(const Fd& dir, const Name& name, bool fifo_will_do = false);
  // False: there is no such directory (any more); what had its name was moved aside.
  Result<bool> KeepDirectory(const Name& name);
  // Everything in there is built anew when it is next needed.
  Status ClearCache();
  // Packs that lie under the names of other files (stray_pack.h) get their own again,
  // where that is not another pack's. True: the manifest may be there now.
  Result<bool> TakeBackStrays(bool listed);
  // False: it is lost, and what the packs say must do.
  Result<bool> ReadManifest();
  bool ManifestIsLost();
  // No pack is left that says of which store it is, and there were some. One made up
  // would take those for foreign that are put back.
  Error NothingLeft(std::string what);
  // Writers stop at a tail that they cannot read; without one they look for themselves.
  Status MakeTailReadable();
  // None when it is about other bytes than its pack has (PackFile::MayEndAt()).
  Status ReadTail();
  std::optional<Tail> TailOf(const PackId& id) const {
    return tail_ && tail_->pack == id ? tail_ : std::nullopt;
  }
  // What the catalogue and the heads know, before either is built anew. Nobody else
  // does when the manifest is lost or the open pack has no tail.
  void Recall(StoreLocks& locks);
  // How far the open pack went at least, for what relies on it.
  void AskTheCaches();
  // How far `pack` went, for all that anybody knows; 0: nobody does. One that may lack
  // what its tail was about counts as longer than it is.
  uint64_t KnownLength(const PackId& pack);

  // repair_packs.cc
  // kCorrupt when it is damaged, unreadable or no file.
  Result<PackHeader> ReadHeader(const PackId& id);
  // The pack's header, put right when only it is damaged: its id is in the file's name
  // and in every batch.
  Result<PackHeader> HeaderOf(const PackId& id, const std::optional<StoreId>& store);
  // The end of the last whole batch, and the highest sequence number met.
  Result<uint64_t> WholeEnd(const PackFile& file, uint64_t limit);
  // Records that can be read in [from, limit), where no batch is whole. A torn end has
  // none, or was not acknowledged; a damaged one may have been, so it is kept and
  // called damage.
  Result<bool> HasRecords(const PackFile& file, uint64_t from, uint64_t limit);
  // Whole batches, or all of it when there is more that counts or may count.
  Result<uint64_t> SealedLength(const PackFile& file);
  // A pack under the name of another: its header says which it is, and every batch in
  // it. One rename at a time, each of which brings a pack to its name: killed anywhere,
  // it can be done again. Where the name is taken by the pack itself, or by what does
  // not say what it is, all stays as it is.
  Status RenameMisnamed(bool listed);
  Status CheckListed();
  // A pack that was sealed in the middle of a batch, by somebody who could not see all
  // of it, and has that batch: it ends behind it.
  Status EndBehindABatch(Manifest::Pack& pack);
  // Nobody may cut off what he could not read, so a writer that comes to such a place
  // stops. Sealed as long as it is, the pack keeps all it has, and the next checkpoint
  // starts another one.
  Status SealUnreadable();
  // No tail, and the open pack ends before what somebody has read of it: as a writer
  // would, it is sealed at what it should have. Verify then says what it lacks, and
  // that is not forgotten when the catalogue is built anew.
  Status SealCutShort();
  Status RebuildIndexes();

  // repair_manifest.cc
  // No manifest: every pack of this store counts, oldest first. (One that GC had just
  // replaced may come back with it; that brings back the unwanted, never loses the
  // wanted.)
  Status ListFromPacks();
  // Objects that a record needs, and that only stand behind the last whole batch of a
  // pack, in one that lost its end: such a pack is listed as long as it is. (A torn
  // write was acknowledged to nobody, and nothing needs it.)
  Status KeepWhatIsNeededBehindTheEnds();
  // With the packs the manifest may have lost some, and with them records that the
  // catalogue still knows. They go into a pack of their own, which the new manifest
  // names from its first moment: whoever reads the store by it finds them, or finds
  // that what they need is gone. By a later step a kill would leave a store that looks
  // whole without them, and the next question a catalogue that has forgotten them.
  Status BringBackRemembered();
  // A pack that is known to have been there and is not: verify then says what it lacks.
  void ListMissing(const PackId& id, uint64_t length);
  // The manifest is an older one when the tail is of a pack that it does not name, and
  // that no collection took away; where that pack is gone, too, nothing else tells.
  Status ListWhatTheTailMisses();
  // Packs of this store that the manifest does not name, but of another history of it:
  // one record would hide another, or be there twice. What such a pack has is copied
  // (found_again.h).
  Status TakeIn();
  Result<bool> Contradicts(const LogView& log, const PackFile& file, uint64_t end);
  // What the packs hold that are listed so far.
  Result<LogView> ListedLog();
  // Which store this is: what most packs say; where that is no majority, what the tail
  // or the newest record that anybody remembers is of.
  Result<StoreId> WhoseStore(const std::vector<PackId>& ids);
  // What GC would remove as left over is kept under a name it does not know.
  Status SetAside(const PackId& id, std::string_view why);

  const RepairOptions how_;
  Fs& fs_;
  Clock& clock_;
  Random& random_;
  const AbsPath& dir_;
  const StoreOptions& options_;
  Fd home_;
  Fd packs_dir_;
  Manifest manifest_;
  std::string lost_manifest_;  // the text of a damaged one
  uint64_t next_seq_ = 1;
  bool changed_ = false;
  std::vector<std::string> once_listed_;
  std::optional<Tail> tail_;
  PackId foreign_end_;  // the pack that the tail was about, of another history
  std::vector<RememberedEnd> ends_;
  std::vector<RememberedRecord> remembered_;
  RepairReport report_;
};

}  // namespace belay
