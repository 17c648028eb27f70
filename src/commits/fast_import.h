#pragma once

// FastImport: one commit, streamed into a repository by `git fast-import`.
//
// Guarantees
//   * Bytes, names and modes go in exactly: no filter, no attribute, no hook, no
//     signature, no setting of the user's decides.
//   * No ref is made, moved or looked at: the commit is there, and nothing names it.
//     Who wants it kept makes a ref (MakeRef). The index, HEAD and the work tree are
//     not touched.
//   * Memory stays flat on our side.
//   * An error on the way leaves objects that nothing names, which git's own garbage
//     collection takes away. Only a kill -9 of this program may also leave a
//     fast_import_crash_* report in the git directory, as it does for git itself.

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "git/run_git.h"

namespace belay {

struct CommitHead {
  std::string identity;  // "Name <mail>"
  int64_t seconds = 0;   // when, UTC
  std::string message;
  std::string parent = {};  // hex; empty: none
};

class FastImport {
 public:
  static Result<std::unique_ptr<FastImport>> Start(GitRunner& git, GitHash hash);
  ~FastImport();

  // First. The tree begins as the parent's; empty without one.
  Status Begin(const CommitHead& head);
  Status Clear();                           // nothing is in the tree
  Status SetTree(const std::string& tree);  // hex: it is as this one
  Status Delete(const std::string& path);   // with all below; need not be there
  Status Symlink(const std::string& path, std::string_view target);
  // `read` hands the content to what it is given. What fails before the first byte
  // leaves no trace in the tree.
  using Reader = std::function<Status(const std::function<Status(ByteSpan)>&)>;
  Status File(const std::string& path, bool executable, uint64_t size,
              const Reader& read);
  // The commit, in hex: its objects are in the repository, flushed as git does.
  Result<std::string> Finish();
  // Ends without one, so that git has nothing to complain about.
  void Abandon();

 private:
  FastImport(GitRunner& git, GitHash hash) : git_(git), hash_(hash) {}
  Status Put(std::string_view text);
  Status Flush();

  GitRunner& git_;
  const GitHash hash_;
  std::unique_ptr<RunningProcess> process_;
  std::string buffer_;
  std::string ref_;       // a name for the stream alone
  uint64_t missing_ = 0;  // bytes that were announced and did not come
  bool in_data_ = false;
  bool began_ = false;
};

// Creates `ref` ("refs/heads/x") for the commit: kExists when there is one by that
// name, which is never moved. Git's own locks; no hook.
Status MakeRef(GitRunner& git, const std::string& ref, const std::string& commit,
               const std::string& identity, std::string_view reflog);

}  // namespace belay
