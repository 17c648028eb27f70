#pragma once

// Purges of a project in memory: by path and by session, and ways to look for what must
// be gone.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "history/purge.h"
#include "store/verify.h"
#include "support/capture_request.h"
#include "support/raw_search.h"
#include "support/restore_fixture.h"

namespace belay::test {

class PurgeTest : public RestoreTest {
 protected:
  PurgeRequest Of(RestoreWorld::Opened& opened, const std::string& path) {
    PurgeRequest request;
    request.path = path;
    request.root = opened.root;
    request.lock_wait_ms = 200;
    return request;
  }
  Result<PurgeReport> Erase(const std::string& path, bool everywhere = false) {
    BELAY_TRY(auto opened, world.Open());
    PurgeRequest request = Of(opened, path);
    request.everywhere = everywhere;
    return Purge(*opened.store, request);
  }
  Result<PurgeReport> EraseSession(const std::string& session) {
    BELAY_TRY(auto opened, world.Open());
    PurgeRequest request;
    request.session = session;
    request.lock_wait_ms = 200;
    return Purge(*opened.store, request);
  }
  // Everywhere in the store.
  std::vector<std::string> Find(std::vector<std::string> needles) {
    Fd dir = Must(disk.OpenDir(world.world.dir));
    return Must(RawSearch(disk, std::move(needles)).In(dir));
  }
  std::vector<std::string> Find(const std::string& secret) {
    return Find(std::vector<std::string>{secret});
  }
  void ExpectWhole() {
    auto opened = Must(world.Open());
    VerifyReport report = Must(VerifyStore(*opened.store, {.read_data = true}));
    EXPECT_TRUE(report.clean()) << report.damage[0];
  }
  // What the checkpoint still has of a path: its content, or the kind of error.
  std::string Has(const std::string& name, const std::string& path) {
    auto opened = Must(world.Open());
    const Checkpoint c = Must(world.Named(opened, name));
    const ObjectId tree = Must(opened.store->GetState(c.state)).tree;
    auto entry = Must(FindInTree(tree, P(path), TreesOf(*opened.store)));
    if (!entry) return "absent";
    auto bytes = opened.store->ReadContentBytes(entry->id, 64 << 20);
    return bytes.ok() ? std::string(AsText(*bytes))
                      : std::string(ErrcName(bytes.error().code));
  }
};

}  // namespace belay::test
