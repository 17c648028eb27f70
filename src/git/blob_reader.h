#pragma once

// BlobReader: contents of a repository by their ids, one after the other, through
// `git cat-file --batch`. Nothing is fetched; memory stays flat.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "git/run_git.h"

namespace belay {

class BlobReader {
 public:
  // Will be asked for these, in this order. `git` must outlive it.
  static Result<std::unique_ptr<BlobReader>> Start(GitRunner& git,
                                                   std::vector<std::string> ids);
  // The same of `count` that `id` knows, whatever it refers to outliving the reader.
  using IdAt = std::function<std::string(size_t)>;
  static Result<std::unique_ptr<BlobReader>> Start(GitRunner& git, size_t count,
                                                   IdAt id);

  // Goes on to the next one; what is left of the one before is passed over. Its size,
  // or nothing when the repository does not have it.
  Result<std::optional<uint64_t>> Next();
  // Of the present one; 0 at its end.
  Result<size_t> Read(std::span<std::byte> out);

 private:
  BlobReader(GitRunner& git, size_t count, IdAt id)
      : git_(git), count_(count), id_(std::move(id)) {}
  Status Ask();
  Status Fill();
  Error Broken();

  GitRunner& git_;
  const size_t count_;
  const IdAt id_;
  std::unique_ptr<RunningProcess> process_;
  size_t asked_ = 0, next_ = 0;
  Bytes buffer_;
  size_t at_ = 0;      // of buffer_
  uint64_t left_ = 0;  // of the present one
  bool open_ = false;  // the newline behind it is still to come
};

}  // namespace belay
