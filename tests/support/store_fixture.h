#pragma once

// A small world for store tests: a disk, a clock, a seed, and checkpoints made of plain
// maps from path to content, so that a test can say what it expects in one line.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "store/batch_writer.h"
#include "store/store.h"

namespace belay::test {

using Files = std::map<std::string, std::string>;  // "dir/name" -> content

struct World {
  explicit World(Fs& disk, uint64_t seed = 1) : fs(disk), random(seed) {}
  Fs& fs;
  FakeClock clock;
  SeededRandom random;
  AbsPath dir = AbsPath::Literal("/store");
  StoreOptions options{.uid = 1000, .lock_wait_ms = 200};

  Result<std::unique_ptr<Store>> Open(Store::Mode mode = Store::Mode::kWrite) {
    return Store::Open(fs, clock, random, dir, options, mode);
  }
};

// Puts trees and state into `writer`; the state's id. What `before` holds under the
// same paths is given as what it was made from.
Result<ObjectId> PutFiles(BatchWriter& writer, const Files& files,
                          const Files& before = {});
// A manual checkpoint of `files`, committed. Its record id is made from `name`, so that
// it can be found again without remembering anything.
Result<RecordId> MakeCheckpoint(Store& store, const std::string& name,
                                const Files& files, const RootId& root = RootId(),
                                const Files& before = {});
RecordId IdFor(const std::string& name);
Status DropCheckpoints(Store& store, const std::vector<std::string>& names);

// Names and contents of all checkpoints that are wanted, read back whole.
using Checkpoints = std::map<std::string, Files>;
Result<Checkpoints> ReadAll(Store& store);
Result<Files> ReadFiles(Store& store, const ObjectId& state);

// Text that compresses like source; bytes that do not compress at all.
std::string SourceText(uint64_t seed, size_t length);
std::string Noise(uint64_t seed, size_t length);

}  // namespace belay::test
