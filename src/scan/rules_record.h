#pragma once

// The rules record of a state: everything that decided what it covers, beyond the
// .gitignore and .belayignore files in the tree itself. With both, a later rollback can
// ask what this state's own rules say about any path.
//
// Two scans that decide alike encode alike: an unchanged directory keeps its state.
// Layout: docs/format.md, "Rules record".

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scan/scan.h"
#include "scan/sink.h"

namespace belay {

struct RulesRecord {
  RuleLists lists;
  uint64_t max_file_size = 0;
  uint32_t mode = 0, uid = 0, gid = 0;  // of the root directory

  struct Top {
    std::string path;  // "" for the one around the root
    bool in_git = false;
    // The index could not be read: new files that were tracked although ignored are
    // not in the tree.
    bool index_unknown = false;
    WorkTreeInput input;  // `tracked` is not kept: a tracked file is in the tree
  };
  std::vector<Top> work_trees;           // by path
  std::vector<RuleBytes> loose_rules;    // rule files that are not in the tree, by path
  std::vector<SkippedPath> skipped;      // by path
  std::vector<std::string> other_roots;  // paths below the root that are not its own

  // The root directory as an entry without a name, tree and attributes.
  TreeEntry RootEntry() const { return RootEntryOf(mode, uid, gid); }
  static TreeEntry RootEntryOf(uint32_t mode, uint32_t uid, uint32_t gid);
};

RulesRecord MakeRulesRecord(const ScanRequest& request, const ScanSummary& summary);

// Puts the files of rules through `sink`; the node refers to them.
Result<Node> EncodeRules(const RulesRecord& record, ScanSink& sink);
// The files of rules that are not in the tree, by path, without reading them.
std::vector<std::pair<std::string, ObjectId>> LooseRulesOf(const Node& node);
using ContentReader = std::function<Result<Bytes>(const ObjectId&)>;
// Strict: kCorrupt when anything makes no sense. `read` gives content by id.
Result<RulesRecord> DecodeRules(const Node& node, const ContentReader& read);

}  // namespace belay
