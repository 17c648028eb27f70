// What happens to a small store when bits of its files are flipped, or the files cut
// short: found, named, nothing wrong handed out, nothing else lost.

#include "store/damage_sample.h"

namespace belay::test {
namespace {

// --- the sample itself ---------------------------------------------------------------

TEST(Damage, TheSampleHasWhatItShould) {
  const Sample& s = TheSample();
  EXPECT_EQ(s.packs().size(), 3u);
  EXPECT_EQ(s.wanted().size(), 8u);
  EXPECT_EQ(s.records().size(), 15u);
  EXPECT_GE(s.deltas(), 6u);
  uint64_t total = 0;
  for (const PackLayout& p : s.packs()) {
    total += p.length;
    uint64_t at = 0;
    for (const Place& place : p.places) {
      EXPECT_EQ(place.begin, at);
      at = place.end;
    }
    EXPECT_EQ(at, p.length);
  }
  std::printf("sample: %llu bytes of packs\n", static_cast<unsigned long long>(total));
  Findings out("undamaged");
  out.Case("as it was made");
  DamagedDisk disk;
  Toll none;
  none.found = false;
  Judge(disk.fs(), none, out);
  JudgeAppend(disk.fs(), none, out);
  DamagedDisk again;
  JudgeRepair(again.fs(), none, out);
  JudgeCollect(again.fs(), none, false, out);
}

// --- bit flips -----------------------------------------------------------------------

TEST(Damage, AFlippedBitAnywhereInAPackIsFoundAndCostsOnlyWhatItHits) {
  Findings out("bit flips in packs");
  for (const PackLayout& pack : TheSample().packs()) {
    for (uint64_t at = 0; at < pack.length; at += Stride(1)) {
      const Place& place = pack.At(at);
      bool header = place.kind == Place::Kind::kPackHeader ||
                    place.kind == Place::Kind::kBatchHeader;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (!header && bit != at % 8) continue;
        // Of what headers do not say every third byte.
        if (!header && at % 3 != 0 && !RunEverything()) continue;
        DamagedDisk disk;
        disk.Flip("packs/" + pack.file, at, bit);
        out.Case(At(pack.file, at, bit));
        Judge(disk.fs(), Toll::Of(place), out);
      }
    }
  }
}

TEST(Damage, WritingGoesOnBesideAFlippedBitInAPack) {
  Findings out("appends beside bit flips");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(5)) {
      DamagedDisk disk;
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case(At(pack.file, at, at % 8));
      JudgeAppend(disk.fs(), Toll::Of(pack.At(at)), out);
    }
}

TEST(Damage, RepairAfterAFlippedBitMakesNothingWorse) {
  Findings out("repairs of bit flips");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(3)) {
      DamagedDisk disk;
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case(At(pack.file, at, at % 8));
      Toll toll = Toll::Of(pack.At(at));
      // Only a pack's header can be put right.
      if (pack.At(at).kind == Place::Kind::kPackHeader) toll.found = false;
      JudgeRepair(disk.fs(), toll, out);
    }
}

TEST(Damage, CollectingBesideAFlippedBitTakesNothingThatIsWanted) {
  Findings out("collections of bit flips");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(3)) {
      DamagedDisk disk;
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case(At(pack.file, at, at % 8));
      const Place& place = pack.At(at);
      JudgeCollect(disk.fs(), Toll::Of(place), GcMustRefuse(place), out);
    }
}

TEST(Damage, AFlippedBitInTheManifestIsFoundAndRepaired) {
  Findings out("bit flips in the manifest");
  const uint64_t length = DamagedDisk().Read("manifest").size();
  for (uint64_t at = 0; at < length; at += Stride(1)) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      DamagedDisk disk;
      disk.Flip("manifest", at, bit);
      out.Case(At("manifest", at, bit));
      World world = Sample::Over(disk.fs());
      auto opened = world.Open();
      if (opened.ok()) {
        out.Wrong("opened all the same");
        continue;
      }
      if (opened.error().code == Errc::kUnsupported) {
        if (at != 12) out.Wrong("called a newer version");
        continue;
      }
      if (opened.error().code != Errc::kCorrupt) out.Wrong("not called damage");
      if (opened.error().hint.find("belay repair") == std::string::npos)
        out.Wrong("no hint at repair");
      Toll toll;
      toll.found = false;
      if (bit == at % 8) {
        JudgeRepair(disk.fs(), toll, out);
        JudgeAppend(disk.fs(), toll, out);
      }
    }
  }
}

TEST(Damage, AFlippedBitInARebuildableFileChangesNoAnswer) {
  Findings out("bit flips in indexes and tail");
  for (const std::string& file : TheSample().rebuildable()) {
    const uint64_t length = DamagedDisk().Read(file).size();
    const Bytes original = DamagedDisk().Read(file);
    for (uint64_t at = 0; at < length; at += Stride(1)) {
      // Most of a table is empty: of that, one byte in five.
      if (original[at] == std::byte{} && at % 5 != 0 && !RunEverything()) continue;
      DamagedDisk disk;
      disk.Flip(file, at, at % 8);
      out.Case(At(file, at, at % 8));
      Toll none;
      none.found = false;
      Judge(disk.fs(), none, out);
      if (at % 4 == 0 || file == "tail") JudgeAppend(disk.fs(), none, out);
    }
  }
}

// --- truncation ----------------------------------------------------------------------

TEST(Damage, APackCutShortAtAnyLengthIsFoundAndKeepsWhatIsLeft) {
  Findings out("packs cut short");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t length = 0; length < pack.length;
         length += RunEverything() ? 1 : Stride(3)) {
      DamagedDisk disk;
      disk.Truncate("packs/" + pack.file, length);
      out.Case(pack.file + " cut to " + std::to_string(length));
      Toll toll = TollOfCut(pack, length);
      Judge(disk.fs(), toll, out);
      if (length % 7 == 0) JudgeCollect(disk.fs(), toll, true, out);
      if (length % 5 == 0) JudgeRepair(disk.fs(), toll, out);
      if (length % 11 == 0) JudgeAppend(disk.fs(), toll, out);
    }
}

TEST(Damage, TheManifestCutShortAtAnyLengthIsFoundAndRepaired) {
  Findings out("manifest cut short");
  const uint64_t size = DamagedDisk().Read("manifest").size();
  for (uint64_t length = 0; length < size; length += Stride(1)) {
    DamagedDisk disk;
    disk.Truncate("manifest", length);
    out.Case("manifest cut to " + std::to_string(length));
    World world = Sample::Over(disk.fs());
    auto opened = world.Open();
    if (opened.ok() || opened.error().code != Errc::kCorrupt) out.Wrong("not refused");
    Toll none;
    none.found = false;
    JudgeRepair(disk.fs(), none, out);
  }
}

TEST(Damage, ARebuildableFileCutShortChangesNoAnswer) {
  Findings out("indexes and tail cut short");
  for (const std::string& file : TheSample().rebuildable()) {
    const uint64_t size = DamagedDisk().Read(file).size();
    for (uint64_t length = 0; length < size; length += Stride(1)) {
      if (length > 200 && length % 7 != 0 && !RunEverything()) continue;
      DamagedDisk disk;
      disk.Truncate(file, length);
      out.Case(file + " cut to " + std::to_string(length));
      Toll none;
      none.found = false;
      Judge(disk.fs(), none, out);
      if (length % 8 == 0) JudgeAppend(disk.fs(), none, out);
    }
  }
}

}  // namespace
}  // namespace belay::test
