#include "commits/fast_import.h"

#include "base/mutant.h"

namespace belay {

namespace {

constexpr size_t kImportBuffer = size_t{256} << 10;
const std::vector<std::string> kImportCommand = {"fast-import", "--quiet", "--done",
                                                 // Deltas against whatever came before
                                                 // it cost time and save little; `git
                                                 // gc` makes good ones.
                                                 "--depth=0", "--date-format=raw"};

// As C writes a string: what the stream takes for any bytes.
std::string Quoted(std::string_view path) {
  std::string out = "\"";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7F) {
      out += '\\';
      for (const int shift : {6, 3, 0})
        out += static_cast<char>('0' + ((byte >> shift) & 7));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string Data(std::string_view text) {
  return "data " + std::to_string(text.size()) + "\n" + std::string(text) + "\n";
}

}  // namespace

Result<std::unique_ptr<FastImport>> FastImport::Start(GitRunner& git, GitHash hash) {
  std::unique_ptr<FastImport> out(new FastImport(git, hash));
  BELAY_TRY(out->process_, git.Start(kImportCommand));
  out->buffer_.reserve(kImportBuffer);
  // In the stream a commit belongs to a branch. This one is taken away again in the
  // same stream, before git writes any.
  out->ref_ = "refs/belay/none";
  return out;
}

FastImport::~FastImport() {
  if (process_) Abandon();
}

Status FastImport::Flush() {
  Status written = process_->Write(AsBytes(buffer_));
  buffer_.clear();
  if (written.ok()) return Ok();
  // Why it takes no more is for git to say.
  if (written.error().code == Errc::kIo) {
    auto ended = process_->Finish();
    process_.reset();
    if (ended.ok()) BELAY_OK(git_.Judge(kImportCommand, *ended));
  }
  return written;
}

Status FastImport::Put(std::string_view text) {
  if (!process_) return Error(Errc::kIo, "git fast-import has ended");
  if (buffer_.size() + text.size() > kImportBuffer) BELAY_OK(Flush());
  buffer_ += text;
  return Ok();
}

Status FastImport::Begin(const CommitHead& head) {
  began_ = true;
  const std::string who = head.identity + " " + std::to_string(head.seconds) + " +0000";
  BELAY_OK(Put("commit " + ref_ + "\nmark :1\nauthor " + who + "\ncommitter " + who +
               "\n" + Data(head.message)));
  if (!head.parent.empty()) BELAY_OK(Put("from " + head.parent + "\n"));
  return Ok();
}

Status FastImport::Clear() { return Put("deleteall\n"); }

Status FastImport::SetTree(const std::string& tree) {
  return Put("M 040000 " + tree + " \n");
}

Status FastImport::Delete(const std::string& path) {
  return Put("D " + Quoted(path) + "\n");
}

Status FastImport::Symlink(const std::string& path, std::string_view target) {
  return Put("M 120000 inline " + Quoted(path) + "\n" + Data(target));
}

Status FastImport::File(const std::string& path, bool executable, uint64_t size,
                        const Reader& read) {
  bool announced = false;
  uint64_t left = size;
  auto announce = [&]() -> Status {
    if (announced) return Ok();
    announced = true;
    return Put(std::string("M ") + (executable ? "100755" : "100644") + " inline " +
               Quoted(path) + "\ndata " + std::to_string(size) + "\n");
  };
  const Status done = read([&](ByteSpan piece) -> Status {
    BELAY_OK(announce());
    in_data_ = true;
    if (piece.size() > left)
      return Error(Errc::kCorrupt, "a tree is wrong about the size of its content");
    left -= piece.size();
    missing_ = left;
    while (!piece.empty()) {
      const size_t part = std::min(piece.size(), kImportBuffer / 2);
      BELAY_OK(Put(AsText(piece.first(part))));
      piece = piece.subspan(part);
    }
    return Ok();
  });
  BELAY_OK(done);
  BELAY_OK(announce());
  in_data_ = true;
  missing_ = left;
  if (left != 0)
    return Error(Errc::kCorrupt, "a tree is wrong about the size of its content");
  in_data_ = false;
  return Put("\n");
}

Result<std::string> FastImport::Finish() {
  BELAY_OK(Put("get-mark :1\nreset " + ref_ + "\nfrom " +
               std::string(2 * GitHashSize(hash_), '0') + "\n\ndone\n"));
  BELAY_OK(Flush());
  auto ended = process_->Finish();
  process_.reset();
  if (!ended.ok()) return std::move(ended).error();
  BELAY_OK(git_.Judge(kImportCommand, *ended));
  std::string id = std::move(ended->output);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  if (id.size() != 2 * GitHashSize(hash_) ||
      id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
  return id;
}

void FastImport::Abandon() {
  if (!process_) return;
  // A stream that just ends is a crash to git, with a report in the git directory.
  const std::string zeros(kImportBuffer / 2, '\0');
  bool fine = true;
  if (in_data_) {
    while (fine && missing_ > 0) {
      const size_t part =
          static_cast<size_t>(std::min<uint64_t>(missing_, zeros.size()));
      fine = Put(std::string_view(zeros).substr(0, part)).ok();
      missing_ -= part;
    }
    fine = fine && Put("\n").ok();
  }
  if (fine && began_)
    fine = Put("reset " + ref_ + "\nfrom " + std::string(2 * GitHashSize(hash_), '0') +
               "\n\n")
               .ok();
  if (fine && Put("done\n").ok() && Flush().ok()) (void)process_->Finish();
  process_.reset();
}

Status MakeRef(GitRunner& git, const std::string& ref, const std::string& commit,
               const std::string& identity, std::string_view reflog) {
  const size_t mail = identity.rfind(" <");
  const std::vector<std::string> who = {
      "GIT_COMMITTER_NAME=" + identity.substr(0, mail),
      "GIT_COMMITTER_EMAIL=" + identity.substr(mail + 2, identity.size() - mail - 3)};
  std::vector<std::string> command = {"update-ref", "-m", std::string(reflog),
                                      "--stdin", "-z"};
  // `create` fails, under the ref's own lock, where there is one already.
  std::string input = "create " + ref + '\0' + commit + '\0';
  if (BELAY_MUTANT("export-overwrites-refs"))
    input = "update " + ref + '\0' + commit + '\0' + '\0';
  BELAY_TRY(ProcessResult result, git.Try(command, input, who));
  if (!result.ok() &&
      result.errors.find("reference already exists") != std::string::npos)
    return Error(Errc::kExists, ref + " is there already");
  return git.Judge(command, result);
}

}  // namespace belay
