// The same when blocks are zeroed, parts change places, or files are gone.

#include "store/damage_sample.h"

namespace belay::test {
namespace {

// --- zeroed blocks -------------------------------------------------------------------

TEST(Damage, AZeroedBlockIsFoundAndCostsOnlyWhatItHits) {
  Findings out("zeroed blocks");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(16)) {
      const uint64_t end = std::min<uint64_t>(at + 512, pack.length);
      DamagedDisk disk;
      disk.Overwrite("packs/" + pack.file, at, Bytes(end - at));
      out.Case(pack.file + " zeros at " + std::to_string(at));
      Toll toll;
      toll.numbers_may_change = true;  // two batch headers may be gone
      int headers = 0;
      int logs = 0;
      for (const Place& place : pack.places) {
        if (place.end <= at || place.begin >= end) continue;
        if (place.kind == Place::Kind::kObject) toll.objects.insert(place.key);
        toll.objects.insert(place.dependents.begin(), place.dependents.end());
        if (place.kind == Place::Kind::kLog) toll.records.insert(place.record);
        headers += place.kind == Place::Kind::kBatchHeader;
        logs += place.kind == Place::Kind::kLog;
      }
      // Where a batch's header is gone nobody can tell its records from bytes that
      // merely look like some, once the chain is broken; nor where two in a row are.
      if (headers > 0 || logs > 1)
        for (const Place& place : pack.places)
          if (place.kind == Place::Kind::kLog && place.begin >= at &&
              place.begin < end + 2000)
            toll.records.insert(place.record);
      Judge(disk.fs(), toll, out);
      if (at % 48 == 0) JudgeRepair(disk.fs(), toll, out);
      if (at % 80 == 0) JudgeCollect(disk.fs(), toll, headers > 0, out);
    }
}

// --- things in the wrong place -------------------------------------------------------

TEST(Damage, TwoSwappedObjectsAreFound) {
  Findings out("swapped objects");
  for (const PackLayout& pack : TheSample().packs()) {
    const Bytes original = DamagedDisk().Read("packs/" + pack.file);
    std::vector<const Place*> objects;
    for (const Place& p : pack.places)
      if (p.kind == Place::Kind::kObject) objects.push_back(&p);
    for (size_t i = 0; i < objects.size(); ++i)
      for (size_t j = i + 1; j < objects.size(); j += 1 + Stride(1) / 8) {
        const Place& a = *objects[i];
        const Place& b = *objects[j];
        const bool same_size = a.end - a.begin == b.end - b.begin;
        Toll toll;
        toll.objects = {a.key, b.key};
        // Header and bytes swapped, both are whole, only not where they were: that is
        // nothing but to what names its base by place.
        Toll moved;
        for (const Place* p : {&a, &b}) {
          toll.objects.insert(p->dependents.begin(), p->dependents.end());
          moved.objects.insert(p->dependents.begin(), p->dependents.end());
          if (p->is_delta) moved.objects.insert(p->key);
        }
        auto part = [&](uint64_t begin, uint64_t end) {
          return ByteSpan(original).subspan(begin, end - begin);
        };
        if (same_size) {
          DamagedDisk whole;
          whole.Overwrite("packs/" + pack.file, a.begin, part(b.begin, b.end));
          whole.Overwrite("packs/" + pack.file, b.begin, part(a.begin, a.end));
          out.Case(pack.file + " records swapped at " + std::to_string(a.begin) +
                   " and " + std::to_string(b.begin));
          Judge(whole.fs(), moved, out);
          // The bytes alone: each header now lies about what follows.
          DamagedDisk bytes;
          bytes.Overwrite("packs/" + pack.file, a.begin + kRecordHeaderSize,
                          part(b.begin + kRecordHeaderSize, b.end));
          bytes.Overwrite("packs/" + pack.file, b.begin + kRecordHeaderSize,
                          part(a.begin + kRecordHeaderSize, a.end));
          out.Case(pack.file + " bytes swapped at " + std::to_string(a.begin) +
                   " and " + std::to_string(b.begin));
          Judge(bytes.fs(), toll, out);
        }
        // The headers alone, of any two.
        DamagedDisk headers;
        headers.Overwrite("packs/" + pack.file, a.begin,
                          part(b.begin, b.begin + kRecordHeaderSize));
        headers.Overwrite("packs/" + pack.file, b.begin,
                          part(a.begin, a.begin + kRecordHeaderSize));
        out.Case(pack.file + " headers swapped at " + std::to_string(a.begin) +
                 " and " + std::to_string(b.begin));
        // A length that is not its own leads the walk astray for a record or two.
        if (!same_size)
          for (const Place& p : pack.places)
            if (p.kind == Place::Kind::kObject) toll.objects.insert(p.key);
        Judge(headers.fs(), toll, out);
      }
  }
}

TEST(Damage, TwoSwappedBatchesAreFound) {
  Findings out("swapped batches");
  for (const PackLayout& pack : TheSample().packs()) {
    const Bytes original = DamagedDisk().Read("packs/" + pack.file);
    std::vector<std::pair<uint64_t, uint64_t>> batches;
    for (const Place& p : pack.places) {
      if (p.kind == Place::Kind::kBatchHeader) batches.emplace_back(p.begin, 0);
      if (p.kind == Place::Kind::kTrailer) batches.back().second = p.end;
    }
    for (size_t i = 0; i < batches.size(); ++i)
      for (size_t j = i + 1; j < batches.size(); ++j) {
        // Everything from the first to the second is written anew, the two exchanged.
        auto [a, a_end] = batches[i];
        auto [b, b_end] = batches[j];
        Bytes swapped(original.begin(), original.end());
        Bytes middle;
        auto add = [&](uint64_t from, uint64_t to) {
          middle.insert(middle.end(), original.begin() + static_cast<ptrdiff_t>(from),
                        original.begin() + static_cast<ptrdiff_t>(to));
        };
        add(b, b_end);
        add(a_end, b);
        add(a, a_end);
        DamagedDisk disk;
        disk.Overwrite("packs/" + pack.file, a, middle);
        out.Case(pack.file + " batches swapped at " + std::to_string(a) + " and " +
                 std::to_string(b));
        Toll toll;
        toll.numbers_may_change = true;
        // Records, which are believed in their place only, and what names its base by
        // place.
        for (const Place& p : pack.places) {
          if (p.is_delta) toll.objects.insert(p.key);
          if (p.kind == Place::Kind::kLog && p.begin >= a && p.begin < b_end)
            toll.records.insert(p.record);
        }
        Judge(disk.fs(), toll, out);
        JudgeCollect(disk.fs(), toll, true, out);
      }
  }
}

TEST(Damage, APackInTheWrongPlaceIsFound) {
  Findings out("misplaced packs");
  const auto& packs = TheSample().packs();
  DamagedDisk disk;
  const Bytes first = disk.Read("packs/" + packs[0].file);
  const Bytes second = disk.Read("packs/" + packs[1].file);
  disk.Truncate("packs/" + packs[1].file, 0);
  disk.Overwrite("packs/" + packs[1].file, 0, first);
  out.Case("the first pack's bytes under the second's name");
  Toll toll = TollOfCut(packs[1], 0);
  Judge(disk.fs(), toll, out);
  JudgeCollect(disk.fs(), toll, true, out);
  JudgeRepair(disk.fs(), toll, out);
}

// Every byte is there, and each pack says which it is.
TEST(Damage, PacksUnderTheNamesOfOthersGetTheirOwn) {
  Findings out("renamed packs");
  const auto& packs = TheSample().packs();
  ASSERT_GE(packs.size(), 3u);
  const std::string other = PackFile::FileName(PackId(IdFor("other"))).bytes();
  struct Row {
    const char* what;
    std::vector<std::pair<std::string, std::string>> moves;  // from, to
  };
  const Row rows[] = {
      {"two exchanged",
       {{packs[0].file, "x"}, {packs[1].file, packs[0].file}, {"x", packs[1].file}}},
      {"three in a circle",
       {{packs[0].file, "x"},
        {packs[1].file, packs[0].file},
        {packs[2].file, packs[1].file},
        {"x", packs[2].file}}},
      {"one under a name nobody has", {{packs[1].file, other}}},
  };
  for (const Row& row : rows)
    for (bool manifest : {true, false}) {
      out.Case(std::string(row.what) + (manifest ? "" : ", and no manifest"));
      DamagedDisk disk;
      Fd dir = Must(disk.fs().OpenDir(AbsPath::Literal("/store/packs")));
      for (const auto& [from, to] : row.moves)
        Must(disk.fs().Rename(dir, Name::Literal(from), dir, Name::Literal(to),
                              RenameHow::kNoReplace));
      if (!manifest) disk.Delete("manifest");
      Toll none;
      none.found = false;
      JudgeRepair(disk.fs(), none, out);
      JudgeAppend(disk.fs(), none, out);
      if (PackFiles(disk.fs()).contains(other)) out.Wrong("the strange name is left");
    }
}

// --- files that are gone -------------------------------------------------------------

TEST(Damage, ADeletedPackIsNamedWithTheCheckpointsItHits) {
  Findings out("deleted packs");
  for (const PackLayout& pack : TheSample().packs()) {
    out.Case(pack.file + " deleted");
    Toll toll = TollOfCut(pack, 0);
    DamagedDisk disk;
    disk.Delete("packs/" + pack.file);
    Judge(disk.fs(), toll, out);
    JudgeCollect(disk.fs(), toll, true, out);
    JudgeRepair(disk.fs(), toll, out);
    JudgeAppend(disk.fs(), toll, out);
  }
}

TEST(Damage, ADeletedManifestIsRepairedWithTheSameAnswers) {
  Findings out("deleted manifest");
  out.Case("manifest deleted");
  DamagedDisk disk;
  disk.Delete("manifest");
  {
    World world = Sample::Over(disk.fs());
    auto opened = world.Open();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Errc::kCorrupt);
    EXPECT_NE(opened.error().hint.find("belay repair"), std::string::npos);
  }
  Toll none;
  none.found = false;
  JudgeRepair(disk.fs(), none, out);
  JudgeAppend(disk.fs(), none, out);
  none.extra = {"new"};
  JudgeCollect(disk.fs(), none, false, out);
}

TEST(Damage, ADeletedManifestBesideADamagedPackLosesNoPack) {
  // Repair must list what can still be read in part: what it leaves out, the next
  // collection would remove as a leftover.
  Findings out("deleted manifest and a bit flip");
  for (const PackLayout& pack : TheSample().packs())
    for (uint64_t at = 0; at < pack.length; at += Stride(13)) {
      DamagedDisk disk;
      disk.Delete("manifest");
      disk.Flip("packs/" + pack.file, at, at % 8);
      out.Case("no manifest, " + At(pack.file, at, at % 8));
      Toll toll = Toll::Of(pack.At(at));
      toll.found = false;
      toll.may_be_found = true;  // the end of a pack may look torn
      toll.numbers_may_change = true;
      JudgeRepair(disk.fs(), toll, out);
    }
}

TEST(Damage, DeletedRebuildableFilesChangeNoAnswer) {
  Findings out("deleted indexes, tail and lock");
  std::vector<std::string> files = TheSample().rebuildable();
  files.push_back("lock");
  Toll none;
  none.found = false;
  for (const std::string& file : files) {
    out.Case(file + " deleted");
    DamagedDisk disk;
    disk.Delete(file);
    Judge(disk.fs(), none, out);
    JudgeAppend(disk.fs(), none, out);
    DamagedDisk again;
    again.Delete(file);
    JudgeRepair(again.fs(), none, out);
    JudgeCollect(again.fs(), none, false, out);
  }
  out.Case("all of them deleted");
  DamagedDisk disk;
  for (const std::string& file : files) disk.Delete(file);
  Judge(disk.fs(), none, out);
  JudgeAppend(disk.fs(), none, out);
}

}  // namespace
}  // namespace belay::test
