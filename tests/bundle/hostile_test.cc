// Bundles made to do harm, by hand, one row each: refused with the reason, nothing is
// written, and neither memory nor time is spent on what they claim.

#include <malloc.h>

#include <ctime>
#include <fstream>
#include <iostream>

#include "bundle/hostile_rows.h"

namespace belay::test {
namespace {

std::vector<Row> AllRows() {
  std::vector<Row> all;
  for (const auto rows : {RowsOfTrees(), RowsOfStates()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

// How much more memory than now `work` takes at its peak; what was freed before counts.
long ExtraKilobytes(const std::function<void()>& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins here
  auto read = [](std::string_view field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(field)) return std::atol(line.c_str() + field.size());
    return 0L;
  };
  const long before = read("VmRSS:");
  work();
  return read("VmHWM:") - before;
}

TEST(HostileBundle, WhatTheRowsAreMadeOfIsTaken) {
  Parts parts;
  parts.Good();
  const Bytes bytes = parts.Build();
  Machine machine(3);
  const ImportReport report = Must(machine.Import(bytes));
  EXPECT_EQ(report.imported, 1u);
  EXPECT_EQ(machine.Holds(report.checkpoints[0].checkpoint),
            (std::map<std::string, std::string>{{"f", "hello"}}));
  // With rules too, and content that somebody cut in another way than we do.
  Parts more;
  const std::string large = Noise(9, 1'200'000);
  std::vector<Chunk> chunks;
  for (size_t at = 0; at < large.size(); at += 400'000)
    chunks.push_back({more.Blob(large.substr(at, 400'000)), 400'000});
  const ObjectId id = more.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes(large)),
                                 RawChunks(1'200'000, chunks));
  const ObjectId tree = more.Tree({more.File("big", id, 1'200'000)});
  const ObjectId rules = more.Put(ObjectType::kNode, EncodeNode(GoodRules()));
  LogRecord record = more.CheckpointRecord(more.State(tree, rules), 1, 1'200'000);
  record.id.bytes[1] = std::byte{1};
  more.Log(record);
  const ImportReport second = Must(machine.Import(more.Build()));
  EXPECT_EQ(machine.Holds(second.checkpoints[0].checkpoint).at("big"), large);
}

TEST(HostileBundle, EveryRowIsRefusedForItsReason) {
  Machine machine(3);
  (void)machine.Checkpoints();
  const std::string before = machine.StoreText();
  for (const Row& row : AllRows()) {
    SCOPED_TRACE(row.name);
    Parts parts;
    row.make(parts);
    const Bytes bytes = parts.Build();
    auto source = BundleInMemory(bytes);
    auto reader = BundleReader::Open(*source);
    if (reader.ok()) {
      ADD_FAILURE() << "was taken";
      continue;
    }
    EXPECT_THAT(reader.error().what, ::testing::HasSubstr(row.says));
    EXPECT_FALSE(machine.Import(bytes).ok());
  }
  EXPECT_EQ(machine.StoreText(), before);
  EXPECT_GE(AllRows().size(), 60u);
  std::cout << AllRows().size() << " hostile bundles refused\n";
}

// What claims much is refused by what it claims: no row may take memory or time.
TEST(HostileBundle, NoRowTakesMuchMemoryOrTime) {
#if defined(BELAY_SANITIZED)
  GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
  for (const Row& row : AllRows()) {
    SCOPED_TRACE(row.name);
    Parts parts;
    row.make(parts);
    const Bytes bytes = parts.Build();
    const std::clock_t start = std::clock();  // of this process, not of the wall
    EXPECT_LT(ExtraKilobytes([&] {
                auto source = BundleInMemory(bytes);
                EXPECT_FALSE(BundleReader::Open(*source).ok());
              }),
              160 << 10);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2.0);
  }
}

// The most that one record can make of a few bytes: as many entries as a tree may have,
// as small as they can be.
TEST(HostileBundle, TheLargestTreeTakesBoundedMemory) {
#if defined(BELAY_SANITIZED)
  GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
  Bytes bytes;
  {
    Parts parts;
    Entries links;
    for (uint64_t i = 0; i < kMaxBundleTreeEntries; ++i) {
      // Rising, four bytes.
      std::string name = "aaaa";
      for (uint64_t rest = i, at = 4; at-- > 0; rest /= 50)
        name[at] =
            static_cast<char>('a' + rest % 50 % 26 + (rest % 50 >= 26 ? 128 : 0));
      links.push_back(parts.Link(name, "t"));
    }
    std::sort(links.begin(), links.end(),
              [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
    const uint64_t count = links.size();
    parts.Around(links, count, 0);
    bytes = parts.Build();
  }
  const long extra = ExtraKilobytes([&] {
    auto source = BundleInMemory(bytes);
    Must(BundleReader::Open(*source));
  });
  std::cout << "a bundle of " << bytes.size() << " bytes took " << extra << " KiB\n";
  EXPECT_GT(extra, 10 << 10);
  EXPECT_LT(extra, 400 << 10);
}

}  // namespace
}  // namespace belay::test
