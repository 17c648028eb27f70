#pragma once

// Keeps the trees of scans, so that they can be read back without a store.

#include <map>
#include <mutex>
#include <string>

#include "scan/sink.h"

namespace belay::test {

class MemorySink final : public ScanSink {
 public:
  Result<ObjectId> PutContent(ByteSpan content) override { return Sha256::Of(content); }
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override {
    return HashSink().PutStream(source);
  }
  Result<ObjectId> PutTree(const Tree& tree) override {
    BELAY_TRY(ObjectId id, HashSink().PutTree(tree));
    std::lock_guard guard(mutex_);
    trees_[id] = tree;
    return id;
  }
  Result<bool> HasContent(const ObjectId&) override { return true; }

  // Every file and symlink with what is known about it.
  std::map<std::string, std::string> List(const ObjectId& tree) {
    std::map<std::string, std::string> out;
    AddTo(out, tree, "");
    return out;
  }
  // What is in one tree and not so in the other; "" when they are equal.
  std::string Difference(const ObjectId& a, const ObjectId& b) {
    auto one = List(a), two = List(b);
    std::string text;
    for (const auto& [path, about] : one)
      if (!two.contains(path) || two[path] != about) text += "- " + path + about + "\n";
    for (const auto& [path, about] : two)
      if (!one.contains(path) || one[path] != about) text += "+ " + path + about + "\n";
    return text;
  }
  void Forget() { trees_.clear(); }
  Result<Tree> Read(const ObjectId& id) {
    std::lock_guard guard(mutex_);
    auto at = trees_.find(id);
    if (at == trees_.end()) return Error(Errc::kNotFound, "no such tree");
    return at->second;
  }

 private:
  void AddTo(std::map<std::string, std::string>& out, const ObjectId& id,
             const std::string& prefix) {
    if (!trees_.contains(id)) {
      out[prefix] = " unknown tree " + id.hex().substr(0, 8);
      return;
    }
    for (const TreeEntry& e : trees_.at(id).entries) {
      if (e.kind == EntryKind::kDirectory)
        AddTo(out, e.id, prefix + e.name + "/");
      else
        out[prefix + e.name] =
            " mode " + std::to_string(e.mode) + " " +
            (e.kind == EntryKind::kSymlink ? "-> " + e.target
                                           : e.id.hex().substr(0, 8)) +
            " " + e.xattrs.hex().substr(0, 4);
    }
  }
  std::mutex mutex_;
  std::map<ObjectId, Tree> trees_;
};

}  // namespace belay::test
