#pragma once

// The store's operations as things to be interrupted, and the one check of what an
// interruption may leave. The same operations run on MemFs (power cuts, errnos) and on
// a real directory (SIGKILL).
//
// A checkpoint's content follows from its name, so whoever finds a checkpoint knows
// what must be in it, and a half one cannot hide.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/crash_harness.h"
#include "support/store_fixture.h"

namespace belay::test {

// Sizes; another variant visits other calls.
struct Scale {
  uint64_t seed = 1;
  size_t bytes = 900;  // of one file
  size_t files = 3;
};
Files ContentOf(const std::string& name, const Scale& scale);

// One process's view: options, clock and ids of its own.
struct Process {
  Process(Fs& fs, const AbsPath& store, uint64_t seed, const StoreOptions& options);
  Result<std::unique_ptr<Store>> Open() { return world.Open(); }
  World world;
};

struct StoreOp {
  std::string name;
  Scale scale;
  StoreOptions options;
  std::vector<std::string> before;   // acknowledged by setup, wanted
  std::vector<std::string> dropped;  // dropped by setup: never seen again
  std::vector<std::string> makes;    // what the operation may make
  std::vector<std::string> drops;    // what the operation may drop
  bool repairs = false;              // setup leaves a store that needs repair
  uint64_t salt = 0;                 // another run, other ids

  std::function<Status(const StoreOp&, Fs&, const AbsPath&)> setup;
  std::function<Status(const StoreOp&, Fs&, const AbsPath&, Acks&)> run;
};
// Every operation: create, append, roll, batches, drop, gc, gc_beside_writer, delta,
// delta_roll, delta_gc, delta_gc_beside_writer, repair.
std::vector<StoreOp> StoreOps(const Scale& scale);
StoreOp OpNamed(const std::string& name, const Scale& scale = {});

class ListedAcks final : public Acks {
 public:
  explicit ListedAcks(std::vector<std::string>& list) : list_(list) {}
  void Add(std::string_view promise) override { list_.emplace_back(promise); }

 private:
  std::vector<std::string>& list_;
};

// Makes a checkpoint and promises it: "made <name> <seq>".
Status MakeAndAck(const StoreOp& op, Store& store, const std::string& name, Acks& acks);

// What must hold on the disk an interrupted `op` left: the store opens, everything
// acknowledged reads back byte for byte, nothing else is there by half, verify reads
// everything and finds nothing, sequence numbers rise and none is given twice, another
// checkpoint can be made, and a collection leaves no file that nobody names.
struct Expected {
  std::vector<std::string> acks;
  bool retry = false;  // run the operation once more, without faults
};
Status CheckStore(const StoreOp& op, Fs& fs, const AbsPath& store,
                  const Expected& expected);

// Files in packs/ that the manifest does not name, and temporaries beside it.
Result<std::vector<std::string>> Leftovers(Store& store);

}  // namespace belay::test
