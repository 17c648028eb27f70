// Bundles between two machines: what is in them, what is not, and what becomes of it.

#include "bundle/format.h"
#include "core/purged.h"
#include "core/state_view.h"
#include "store/gc.h"
#include "store/pack_format.h"
#include "store/verify.h"
#include "support/bundle_world.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

using Holds = std::map<std::string, std::string>;

class Bundle : public ::testing::Test {
 protected:
  Bundle() { MakeHistory(from); }
  Machine from{1}, to{2};
  const std::vector<std::string> all = {"one", "two", "three"};
};

// Every stored byte of the bundle, decoded, one record after the other.
std::string Decoded(const Bytes& bundle) {
  std::string out;
  Codec codec;
  for (size_t at = kBundleHeaderSize; at < bundle.size() - kBundleTrailerSize;) {
    auto header = DecodeRecordHeader(ByteSpan(bundle).subspan(at, kRecordHeaderSize));
    if (!header) return "no record";
    out += AsText(Must(codec.Decode(
        header->codec,
        ByteSpan(bundle).subspan(at + kRecordHeaderSize, header->stored_length),
        header->raw_length)));
    at += header->total_length();
  }
  return out;
}

TEST_F(Bundle, HoldsAllThatACheckpointNeedsElsewhere) {
  const Bytes bundle = Must(from.Export(all)).bytes;
  const ImportReport report = Must(to.Import(bundle));
  EXPECT_EQ(report.imported, 3u);
  for (const std::string& name : all) {
    const CatalogEntry a = from.Entry(name), b = to.Entry(name);
    Holds expected = from.Holds(a.checkpoint);
    expected.erase(".env");
    expected.erase("deep/server.pem");
    EXPECT_EQ(to.Holds(b.checkpoint), expected) << name;
    EXPECT_EQ(b.checkpoint.id, a.checkpoint.id);
    EXPECT_EQ(b.checkpoint.made_ms, a.checkpoint.made_ms);
    EXPECT_EQ(b.checkpoint.description, a.checkpoint.description);
    EXPECT_EQ(b.checkpoint.files + (name == "three" ? 2 : 2), a.checkpoint.files);
  }
  // Modes, owners and attributes, entry by entry.
  auto a = Must(from.world.Open()), b = Must(to.world.Open());
  auto at = [&](RestoreWorld::Opened& m, const std::string& path) {
    const Checkpoint c = Must(m.catalog->Find(m.root.id, "one")).entry.checkpoint;
    return *Must(
        FindInTree(Must(m.store->GetState(c.state)).tree, P(path), TreesOf(*m.store)));
  };
  for (const char* path : {"src/main.c", "src/copy.c", "src/link", "big", "text"})
    EXPECT_EQ(at(a, path), at(b, path)) << path;
  EXPECT_EQ(at(b, "src/copy.c").uid, 54321u);
  EXPECT_EQ(at(b, "nothing").mode, 0700u);
  EXPECT_EQ(at(b, "nothing").xattrs, at(a, "nothing").xattrs);
  EXPECT_TRUE(Must(b.store->HasContent(at(b, "nothing").xattrs)));
  const VerifyReport whole = Must(VerifyStore(*b.store, {.read_data = true}));
  EXPECT_TRUE(whole.clean()) << (whole.damage.empty() ? "" : whole.damage[0]);
}

// Kills the mutant bundle-keeps-secrets.
TEST_F(Bundle, HoldsNoByteOfASecretAndSaysWhatIsMissing) {
  const Machine::Exported out = Must(from.Export(all));
  const std::string raw(AsText(out.bytes)), decoded = Decoded(out.bytes);
  for (const std::string secret :
       {"correct-horse-battery", "staple-of-the-battery", "another-secret-of-mine"}) {
    EXPECT_EQ(raw.find(secret), std::string::npos);
    EXPECT_EQ(decoded.find(secret), std::string::npos);
  }
  // Nor the hash of one, nor of a state or tree by which one could be guessed.
  std::set<std::string> forbidden;
  auto opened = Must(from.world.Open());
  for (const std::string& name : all) {
    const Checkpoint c =
        Must(opened.catalog->Find(opened.root.id, name)).entry.checkpoint;
    const ObjectId tree = Must(opened.store->GetState(c.state)).tree;
    forbidden.insert(std::string(AsText(c.state.span())));
    forbidden.insert(c.state.hex());
    forbidden.insert(std::string(AsText(tree.span())));
    for (const char* path : {".env", "deep/server.pem", "deep"}) {
      const TreeEntry entry = *Must(FindInTree(tree, P(path), TreesOf(*opened.store)));
      forbidden.insert(std::string(AsText(entry.id.span())));
    }
  }
  for (const std::string& hash : forbidden)
    EXPECT_EQ(decoded.find(hash), std::string::npos) << ToHex(AsBytes(hash));
  EXPECT_EQ(decoded.find(std::string(AsText(opened.store->manifest().store.span()))),
            std::string::npos)
      << "with the store's id the seal could be broken";
  for (const ExportedCheckpoint& one : out.report.checkpoints)
    EXPECT_EQ(one.left_out,
              (std::vector<SkippedPath>{{".env", Skip::kSecret},
                                        {"deep/server.pem", Skip::kSecret}}));
}

// Kills the mutant bundle-takes-git.
TEST_F(Bundle, OfARepositoryHoldsNothingOfGitsState) {
  for (const char* dir : {".git", ".git/objects", ".git/refs", ".git/refs/heads"})
    from.MakeDir(dir);
  from.Put(".git/HEAD", "ref: refs/heads/hidden-name\n");
  const Captured made = Must(from.world.Capture("in git"));
  ASSERT_NE(made.git.Find(""), nullptr);
  const Bytes bundle = Must(from.Export({"in git"})).bytes;
  EXPECT_EQ(Decoded(bundle).find("hidden-name"), std::string::npos);
  Must(to.Import(bundle));
  auto opened = Must(to.world.Open());
  const Checkpoint there = to.Entry("in git").checkpoint;
  EXPECT_TRUE(Must(opened.store->GetState(there.state)).git.is_zero());
}

// Kills the mutant bundle-forgets-skipped.
TEST_F(Bundle, NamesSecretsAsLeftOutWhereItIsImported) {
  Must(to.Import(Must(from.Export(all)).bytes));
  auto opened = Must(to.world.Open());
  for (const std::string& name : all) {
    const StateView view = Must(LoadState(
        *opened.store,
        Must(opened.catalog->Find(opened.root.id, name)).entry.checkpoint.state));
    ASSERT_TRUE(view.rules) << view.trouble;
    EXPECT_EQ(view.Skipped(),
              (std::vector<SkippedPath>{{".env", Skip::kSecret},
                                        {"deep/server.pem", Skip::kSecret}}));
  }
}

TEST_F(Bundle, LeavesOutWhatIsASecretByTodaysPatternsToo) {
  from.world.settings.secret_patterns.push_back("deep/*/and/");
  from.world.settings.secret_patterns.push_back("/src/copy.c");
  const Machine::Exported out = Must(from.Export({"one"}));
  EXPECT_EQ(out.report.checkpoints[0].left_out,
            (std::vector<SkippedPath>{{".env", Skip::kSecret},
                                      {"deep/er/and/deeper/file", Skip::kSecret},
                                      {"deep/server.pem", Skip::kSecret},
                                      {"src/copy.c", Skip::kSecret}}));
}

TEST_F(Bundle, IsTheSameWhateverTheOrderAndTheStore) {
  const Bytes first = Must(from.Export(all)).bytes;
  EXPECT_EQ(Must(from.Export({"three", "one", "two", "one"})).bytes, first);

  // Another store, with a history of its own, gets them one by one, backwards, and
  // collects its garbage in between.
  to.Put("other", SourceText(1, 100'000));
  Must(to.world.Capture("other"));
  for (const char* name : {"three", "one", "two"}) {
    Must(to.Import(Must(from.Export({name})).bytes));
    auto opened = Must(to.world.Open());
    Must(CollectGarbage(*opened.store, {.everything = true}));
  }
  EXPECT_EQ(Must(to.Export(all)).bytes, first);

  // The first store too: deltas become whole, packs others.
  {
    auto opened = Must(from.world.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(MakeDrop(RecordId(from.world.world.random.NewId()), 1,
                         {from.Entry("three").checkpoint.id}));
    Must(writer->Commit());
    EXPECT_TRUE(
        Must(CollectGarbage(*opened.store, {.everything = true})).generation_changed);
  }
  from.world.world.clock.SetWallMillis(5'000'000'000'000);
  EXPECT_EQ(Must(from.Export({"two", "one"})).bytes,
            Must(to.Export({"one", "two"})).bytes);
}

TEST_F(Bundle, KeepsNamesNotesPinsHealthAndMetaAsTheyStand) {
  from.Annotate("one", [](Fields& f) { f.Add(kAnnotationNote, "a note"); });
  from.Annotate("one", [](Fields& f) { f.AddNumber(kAnnotationPinned, 1); });
  from.Annotate("two", [](Fields& f) { f.AddNumber(kAnnotationHealth, 2); });
  from.Annotate("three", [](Fields& f) { f.Add(kAnnotationName, "third"); });
  const Bytes bundle = Must(from.Export({"one", "two", "third"})).bytes;
  Must(to.Import(bundle));
  EXPECT_EQ(to.Entry("one").checkpoint.note, "a note");
  EXPECT_TRUE(to.Entry("one").checkpoint.imported);
  EXPECT_FALSE(from.Entry("one").checkpoint.imported);
  EXPECT_TRUE(to.Entry("one").pinned);
  EXPECT_FALSE(to.Entry("two").pinned);
  EXPECT_EQ(to.Entry("two").health, Health::kFail);
  EXPECT_EQ(to.Entry("third").checkpoint.id, from.Entry("third").checkpoint.id);
  EXPECT_EQ(to.Entry("one").checkpoint.meta.at("origin.path"), "/m/project");
  EXPECT_EQ(Must(to.Export({"one", "two", "third"})).bytes, bundle);
}

TEST_F(Bundle, ImportedTwiceChangesNothing) {
  const Bytes bundle = Must(from.Export(all)).bytes;
  Must(to.Import(bundle));
  (void)to.Checkpoints();
  const std::string before = to.StoreText();
  const ImportReport again = Must(to.Import(bundle));
  EXPECT_EQ(again.imported, 0u);
  EXPECT_TRUE(again.checkpoints[2].was_there);
  EXPECT_EQ(to.StoreText(), before);
  // Nor where it comes from, though the state there has the secrets.
  EXPECT_EQ(Must(from.Import(bundle)).imported, 0u);
}

TEST_F(Bundle, ImportsOnlyWhatIsMissing) {
  Must(to.Import(Must(from.Export({"two"})).bytes));
  const ImportReport report = Must(to.Import(Must(from.Export(all)).bytes));
  EXPECT_EQ(report.imported, 2u);
  EXPECT_TRUE(report.checkpoints[1].was_there);
  EXPECT_EQ(to.Holds(to.Entry("one").checkpoint).at("text"), SourceText(6, 200'000));
  auto opened = Must(to.world.Open());
  EXPECT_TRUE(Must(VerifyStore(*opened.store, {.read_data = true})).clean());
}

TEST_F(Bundle, PartOfABundleBringsNothingOfTheRest) {
  const Bytes bundle = Must(from.Export(all)).bytes;
  Must(to.Import(bundle));
  {
    auto opened = Must(to.world.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(MakeDrop(RecordId(to.world.world.random.NewId()), 1,
                         {to.Entry("three").checkpoint.id}));
    Must(writer->Commit());
    Must(CollectGarbage(*opened.store, {.everything = true}));
  }
  // Only three is missing, and only what three alone needs is stored.
  const ImportReport report = Must(to.Import(bundle));
  EXPECT_EQ(report.imported, 1u);
  EXPECT_EQ(to.Holds(to.Entry("three").checkpoint).at("new"), "3");
  auto opened = Must(to.world.Open());
  const GcReport gc =
      Must(CollectGarbage(*opened.store, {.everything = true, .dry_run = true}));
  EXPECT_EQ(gc.objects_removed, 0u);
}

// Kills the mutant import-reuses-ids.
TEST_F(Bundle, AnIdThatIsTakenIsReplacedAndFoundAgain) {
  const Bytes bundle = Must(from.Export({"one"})).bytes;
  Must(to.Import(bundle));
  const RecordId id = to.Entry("one").checkpoint.id;
  {
    auto opened = Must(to.world.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(MakeDrop(RecordId(to.world.world.random.NewId()), 1, {id}));
    Must(writer->Commit());
  }
  EXPECT_TRUE(to.Checkpoints().empty());
  // A drop is for ever: under its own id it could not come back.
  const ImportReport report = Must(to.Import(bundle));
  EXPECT_EQ(report.imported, 1u);
  ASSERT_EQ(to.Checkpoints().size(), 1u);
  EXPECT_NE(to.Entry("one").checkpoint.id, id);
  EXPECT_EQ(Must(to.Import(bundle)).imported, 0u);
}

TEST_F(Bundle, WhatWasPurgedIsLeftOutToo) {
  auto opened = Must(from.world.Open());
  const Checkpoint c =
      Must(opened.catalog->Find(opened.root.id, "three")).entry.checkpoint;
  const ObjectId tree = Must(opened.store->GetState(c.state)).tree;
  const TreeEntry entry = *Must(FindInTree(tree, P("new"), TreesOf(*opened.store)));
  auto writer = Must(opened.store->Begin());
  writer->Add(MakePurge(RecordId(from.world.world.random.NewId()), 1,
                        {{ObjectType::kBlob, entry.id}}, "test"));
  Must(writer->Commit());
  Must(CollectGarbage(*opened.store, {.everything = true}));
  opened = Must(from.world.Open());
  auto gone = opened.store->Get({ObjectType::kBlob, entry.id});
  ASSERT_FALSE(gone.ok());
  ASSERT_EQ(gone.error().code, Errc::kPurged);
  const Machine::Exported out = Must(from.Export({"three"}));
  EXPECT_THAT(out.report.checkpoints[0].left_out,
              ::testing::Contains(SkippedPath{"new", Skip::kPurged}));
  Must(to.Import(out.bytes));
  EXPECT_FALSE(to.Holds(to.Entry("three").checkpoint).contains("new"));
}

// As `belay purge` publishes it. The bytes go with the next collection.
void PurgeIn(Machine& m, const std::vector<ObjectKey>& keys) {
  auto opened = Must(m.world.Open());
  auto writer = Must(opened.store->Begin());
  writer->Add(MakePurge(RecordId(m.world.world.random.NewId()), 1, keys, "test",
                        /*erased=*/true));
  Must(writer->Commit());
}
void DropIn(Machine& m, const std::vector<RecordId>& ids) {
  auto opened = Must(m.world.Open());
  auto writer = Must(opened.store->Begin());
  writer->Add(MakeDrop(RecordId(m.world.world.random.NewId()), 1, ids));
  Must(writer->Commit());
  Must(CollectGarbage(*opened.store, {.everything = true}));
}
std::vector<ObjectKey> ContentKeys(Machine& m, const std::string& name,
                                   const std::string& path) {
  auto opened = Must(m.world.Open());
  const Checkpoint c =
      Must(opened.catalog->Find(opened.root.id, name)).entry.checkpoint;
  const ObjectId tree = Must(opened.store->GetState(c.state)).tree;
  const ObjectId id = Must(FindInTree(tree, P(path), TreesOf(*opened.store)))->id;
  return {{ObjectType::kBlob, id}, {ObjectType::kChunks, id}};
}
void ExpectWhole(Machine& m) {
  auto opened = Must(m.world.Open());
  const VerifyReport whole = Must(VerifyStore(*opened.store, {.read_data = true}));
  EXPECT_TRUE(whole.clean()) << (whole.damage.empty() ? "" : whole.damage[0]);
}

// Kills the mutant import-brings-back.
TEST_F(Bundle, ImportDoesNotBringBackWhatWasPurged) {
  const Bytes bundle = Must(from.Export({"one", "three"})).bytes;
  const auto small = ContentKeys(from, "three", "new");
  const auto big = ContentKeys(from, "one", "big");
  const RecordId one = from.Entry("one").checkpoint.id;
  const RecordId three = from.Entry("three").checkpoint.id;
  PurgeIn(from, small);
  PurgeIn(from, big);
  DropIn(from, {one, three});

  ImportReport report = Must(from.Import(bundle));
  EXPECT_EQ(report.imported, 2u);
  EXPECT_EQ(report.purged, 2u);
  EXPECT_TRUE(report.checkpoints[0].lacks_purged);
  EXPECT_TRUE(report.checkpoints[1].lacks_purged);
  {
    auto opened = Must(from.world.Open());
    for (const auto& keys : {small, big})
      EXPECT_EQ(opened.store->ReadContentBytes(keys[0].id, 64 << 20).error().code,
                Errc::kPurged);
    const Checkpoint c =
        Must(opened.catalog->Find(opened.root.id, "three")).entry.checkpoint;
    const Heads heads = Must(Heads::Read(*opened.store));
    const Purged purged = Must(PurgedSince(*opened.store, heads, opened.root, c.seq));
    EXPECT_TRUE(purged.Lacks(small[0].id));
    EXPECT_FALSE(purged.Lacks(ContentKeys(from, "three", "src/main.c")[0].id));
  }
  ExpectWhole(from);
  // Found again, by its id.
  EXPECT_EQ(Must(from.Import(bundle)).imported, 0u);
  // And nothing of it on another machine.
  report = Must(to.Import(bundle));
  EXPECT_EQ(report.purged, 0u);
  EXPECT_EQ(to.Holds(to.Entry("three").checkpoint).at("new"), "3");
}

TEST_F(Bundle, WhatSomebodyStoredSinceThePurgeIsImported) {
  const Bytes bundle = Must(from.Export({"three"})).bytes;
  PurgeIn(from, ContentKeys(from, "three", "new"));
  DropIn(from, {from.Entry("three").checkpoint.id});
  from.Put("elsewhere", "3");
  Must(from.world.Capture("since"));
  EXPECT_EQ(Must(from.Import(bundle)).purged, 0u);
  EXPECT_EQ(from.Holds(from.Entry("three").checkpoint).at("new"), "3");
  EXPECT_EQ(from.Holds(from.Entry("since").checkpoint).at("elsewhere"), "3");
  ExpectWhole(from);
}

TEST_F(Bundle, ContentOfNoBytesIsNoSecret) {
  const Bytes bundle = Must(from.Export({"one"})).bytes;
  PurgeIn(from, ContentKeys(from, "one", "empty"));
  DropIn(from, {from.Entry("one").checkpoint.id, from.Entry("two").checkpoint.id,
                from.Entry("three").checkpoint.id});
  EXPECT_EQ(Must(from.Import(bundle)).purged, 0u);
  EXPECT_EQ(from.Holds(from.Entry("one").checkpoint).at("empty"), "");
}

TEST_F(Bundle, ACheckpointThatWasErasedWithItsSessionStaysAway) {
  const Bytes bundle = Must(to.Import(Must(from.Export(all)).bytes)).imported == 3
                           ? Must(to.Export(all)).bytes
                           : Bytes();
  const Checkpoint three = to.Entry("three").checkpoint;
  PurgeIn(to, {{ObjectType::kState, three.state}});
  DropIn(to, {three.id});
  const ImportReport report = Must(to.Import(bundle));
  EXPECT_EQ(report.imported, 0u);
  ASSERT_EQ(report.checkpoints.size(), 3u);
  EXPECT_TRUE(report.checkpoints[2].was_purged);
  EXPECT_EQ(to.Checkpoints().size(), 2u);
  ExpectWhole(to);
}

TEST_F(Bundle, WhoPurgesOrStoresWhileItIsImportedIsHeeded) {
  const Bytes bundle = Must(from.Export({"three"})).bytes;
  const auto keys = ContentKeys(from, "three", "new");
  auto source = BundleInMemory(bundle);
  auto reader = Must(BundleReader::Open(*source));
  auto import = [&](const std::function<void()>& meanwhile) {
    auto opened = Must(to.world.Open());
    bool once = false;
    ImportRequest request{
        .root = opened.root, .settings = &to.world.settings, .lock_wait_ms = 200};
    request.progress = [&](uint64_t, uint64_t) {
      if (!once) meanwhile();
      once = true;
    };
    return Must(ImportBundle(*opened.store, *reader, request));
  };
  EXPECT_EQ(import([&] { PurgeIn(to, keys); }).purged, 1u);
  EXPECT_FALSE(Must(Must(to.world.Open()).store->HasContent(keys[0].id)));
  ExpectWhole(to);

  DropIn(to, {to.Entry("three").checkpoint.id});
  to.Put("mine", "3");
  EXPECT_EQ(import([&] { Must(to.world.Capture("mine")); }).purged, 0u);
  EXPECT_EQ(to.Holds(to.Entry("mine").checkpoint).at("mine"), "3");
  ExpectWhole(to);
}

TEST_F(Bundle, OneImportAtATime) {
  const Bytes bundle = Must(from.Export({"one"})).bytes;
  auto opened = Must(to.world.Open());
  // As another process does.
  RootId import;
  std::copy_n(AsBytes("import").begin(), 6, import.bytes.begin());
  auto held = Must(opened.store->locks().AcquireRoot(import, 0));
  auto refused = to.Import(bundle);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kBusy);
  EXPECT_EQ(refused.error().what, "another import is under way");
}

TEST_F(Bundle, MetaThatSomebodyMadeUpDoesNotSpoilIt) {
  from.Annotate("one", [](Fields& f) {
    for (const char* key : {"origin.seq", "origin.store"}) {
      Fields pair;
      pair.Add(1, std::string_view(key));
      pair.Add(2, std::string_view("nonsense"));
      f.AddNested(kAnnotationMeta, pair);
    }
  });
  ASSERT_EQ(from.Entry("one").checkpoint.meta.at("origin.seq"), "nonsense");
  EXPECT_EQ(Must(to.Import(Must(from.Export({"one"})).bytes)).imported, 1u);
}

TEST_F(Bundle, CapAndFloorHold) {
  const Bytes bundle = Must(from.Export(all)).bytes;
  to.world.settings.store_cap = {.bytes = 1 << 20};
  auto refused = to.Import(bundle);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  EXPECT_TRUE(to.Checkpoints().empty());
}

// Kills the mutant import-records-first.
TEST_F(Bundle, AFileThatChangesAfterItWasCheckedIsNotImported) {
  Bytes bundle = Must(from.Export({"one"})).bytes;
  auto source = BundleInMemory(bundle);
  auto reader = Must(BundleReader::Open(*source));
  auto opened = Must(to.world.Open());
  // A byte of a stored blob, in the middle of the big file.
  bundle[bundle.size() / 2] ^= std::byte{1};
  auto imported = ImportBundle(*opened.store, *reader, {.root = opened.root});
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().code, Errc::kConflict);
  EXPECT_TRUE(to.Checkpoints().empty());
}

// --- damage --------------------------------------------------------------------------

class SmallBundle : public ::testing::Test {
 protected:
  SmallBundle() {
    from.Put("a", "content of a");
    from.Put("d/b", SourceText(1, 3000));
    from.SetXattr("a", "user.x", "y");
    from.Link("l", "a");
    Must(from.world.Capture("small"));
    from.Annotate("small", [](Fields& f) { f.AddNumber(kAnnotationPinned, 1); });
    bundle = Must(from.Export({"small"})).bytes;
    (void)to.Checkpoints();
    before = to.StoreText();
  }
  // How it was refused, or "taken".
  std::string Try(ByteSpan bytes) {
    auto source = BundleInMemory(bytes);
    auto reader = BundleReader::Open(*source);
    return reader.ok() ? "taken" : reader.error().what;
  }
  Machine from{1}, to{2};
  Bytes bundle;
  std::string before;
};

TEST_F(SmallBundle, EveryFlippedBitIsNoticed) {
  ASSERT_EQ(Try(bundle), "taken");
  for (size_t at = 0; at < bundle.size(); ++at) {
    const int bits = RunEverything() ? 8 : 1;
    for (int bit = 0; bit < bits; ++bit) {
      Bytes flipped = bundle;
      flipped[at] ^= std::byte{1} << (bits == 8 ? bit : static_cast<int>(at % 8));
      ASSERT_NE(Try(flipped), "taken") << "byte " << at << ", bit " << bit;
    }
  }
  Bytes flipped = bundle;
  flipped[bundle.size() / 2] ^= std::byte{4};
  EXPECT_FALSE(to.Import(flipped).ok());
  EXPECT_EQ(to.StoreText(), before);
}

TEST_F(SmallBundle, EveryLengthButTheRightOneIsNoticed) {
  for (size_t length = 0; length < bundle.size(); ++length)
    ASSERT_NE(Try(ByteSpan(bundle).first(length)), "taken") << length;
  for (size_t more : {1, 47, 48, 80}) {
    Bytes longer = bundle;
    longer.resize(bundle.size() + more);
    ASSERT_NE(Try(longer), "taken") << more;
  }
  EXPECT_FALSE(to.Import(ByteSpan(bundle).first(bundle.size() - 1)).ok());
  EXPECT_EQ(to.StoreText(), before);
}

// Each byte changed, with the hash of the whole made right again:
// what then stands alone are the checks of each record.
TEST_F(SmallBundle, EveryChangedByteIsNoticedThoughTheWholeIsHashedAnew) {
  const size_t end = bundle.size() - kBundleTrailerSize;
  auto trailer = *DecodeBundleTrailer(ByteSpan(bundle).subspan(end));
  for (size_t at = 0; at < end; ++at) {
    Bytes changed = bundle;
    changed[at] ^= std::byte{0x55};
    Sha256 whole;
    whole.Update(ByteSpan(changed).first(end + kBundleHashAt));
    trailer.hash = whole.Finish();
    const auto encoded = Encode(trailer);
    std::copy(encoded.begin(), encoded.end(),
              changed.begin() + static_cast<ptrdiff_t>(end));
    // A compressed frame may say the same in another way.
    if (Try(changed) == "taken") {
      ASSERT_EQ(Decoded(changed), Decoded(bundle)) << "byte " << at;
    }
  }
}

}  // namespace
}  // namespace belay::test
