#pragma once

// Publication: new files that come to a directory outside of the root, with a rollback
// or not at all: what a conversation goes on with.
//
// Guarantees
//   * Nothing that is there is touched: what comes has a name that nothing has.
//   * It appears at once, complete and durable, by one rename: a file, or a directory
//     with all that is in it.
//   * Interrupted anywhere, what was made ready can be told from what was not; a
//     journal leads to it (Journal::publication), and nothing is left when it is taken
//     back.
//   * Bounded memory, whatever is published. Nothing of it goes to the store: what was
//     said stays where the agent keeps it.
//
// In the directory: `<stage>/new` while it is written, `<stage>/ready` when it is all
// there, then its own name.

#include <optional>
#include <string>
#include <vector>

#include "base/fs.h"
#include "base/sha256.h"
#include "restore/chat_plan.h"

namespace belay {

// As the journal has it.
struct PublicationPlace {
  std::string dir;  // a valid AbsPath, without symlinks on the way
  uint64_t ino = 0;
  std::string name;     // that comes into it
  bool folder = false;  // it is a directory
  bool operator==(const PublicationPlace&) const = default;
};
// kRefused where a conversation that its agent keeps at `path` is one of the files of
// the root, by whatever symlinks.
Status CheckOutside(Fs& fs, const AbsPath& root, const AbsPath& path);
// Of what is planned. kNotFound, kRefused when it cannot come there.
Result<PublicationPlace> PlaceOf(Fs& fs, const AbsPath& root, const ChatPlan& plan);

class Publication {
 public:
  // `stage`: a name for what is ours in the directory. Everything must outlive it.
  Publication(Fs& fs, const PublicationPlace& place, std::string stage)
      : fs_(fs), place_(place), stage_name_(std::move(stage)) {}

  // False: the directory is gone, or another one.
  Result<bool> Open();
  // Writes it all, durable, beside its place.
  Status Prepare(const ChatPlan& plan, uint32_t uid);
  // Of a run before this one: it is all there, in its place or beside it.
  Result<bool> IsPrepared();
  Status Publish();
  // What was published is read again: kIo when it is not what was written.
  Status Verify();
  Status TakeBack();
  // Nothing of ours is left in the directory, and that is durable.
  Status Tidy();

 private:
  Status WriteFile(const Fd& dir, const ChatFile& file, const ChatPlan& plan,
                   uint32_t uid);
  Status WriteBelow(const Fd& folder, const ChatFile& file, const ChatPlan& plan,
                    uint32_t uid);
  Result<bool> Has(const Fd& dir, const Name& name);

  Fs& fs_;
  const PublicationPlace& place_;
  const std::string stage_name_;
  Fd dir_, stage_;
  struct Written {
    std::string name;
    uint64_t size = 0;
    Hash256 hash;
  };
  std::vector<Written> written_;
};

}  // namespace belay
