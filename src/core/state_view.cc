#include "core/state_view.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/escape.h"

namespace belay {

namespace {

using Trees = std::unordered_map<ObjectId, Tree>;

// Ids, and the trees that are in no store.
class TreeSink final : public ScanSink {
 public:
  explicit TreeSink(std::shared_ptr<Trees> trees) : trees_(std::move(trees)) {}
  Result<ObjectId> PutContent(ByteSpan content) override {
    return inner_.PutContent(content);
  }
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override {
    return inner_.PutStream(source);
  }
  Result<ObjectId> PutTree(const Tree& tree) override {
    BELAY_TRY(ObjectId id, inner_.PutTree(tree));
    std::lock_guard guard(mutex_);
    trees_->emplace(id, tree);
    return id;
  }
  Result<bool> HasContent(const ObjectId& id) override { return inner_.HasContent(id); }

 private:
  HashSink inner_;
  std::mutex mutex_;
  const std::shared_ptr<Trees> trees_;
};

}  // namespace

Error AsDamage(Error error) {
  if (error.code != Errc::kNotFound || error.sys != 0) return error;
  error.code = Errc::kCorrupt;
  if (error.hint.empty()) error.hint = "see what is hit: belay verify --read-data";
  return error;
}

std::vector<SkippedPath> StateView::Skipped() const {
  std::vector<SkippedPath> all;
  if (!rules) return all;
  all = rules->skipped;
  for (const std::string& other : rules->other_roots)
    all.push_back({other, Skip::kOtherRoot});
  std::sort(all.begin(), all.end(),
            [](const SkippedPath& a, const SkippedPath& b) { return a.path < b.path; });
  return all;
}

Result<RulesRecord> LoadRules(Store& store, const ObjectId& id) {
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, id}));
  BELAY_TRY(Node node, DecodeNode(bytes));
  return DecodeRules(node, [](const ObjectId&) -> Result<Bytes> { return Bytes(); });
}

Result<StateView> LoadState(Store& store, const ObjectId& id) {
  StateView view;
  auto state = store.GetState(id);
  if (!state.ok()) return AsDamage(std::move(state).error());
  view.state = std::move(*state);
  if (view.state.rules.is_zero()) return view;
  auto rules = [&]() -> Result<RulesRecord> {
    BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, view.state.rules}));
    BELAY_TRY(Node node, DecodeNode(bytes));
    return DecodeRules(node, [&](const ObjectId& content) {
      return store.ReadContentBytes(content, kMaxPatternFile);
    });
  }();
  if (rules.ok()) {
    view.rules = std::move(*rules);
  } else {
    const Error error = AsDamage(std::move(rules).error());
    view.trouble = error.what;
    view.trouble_code = error.code;
  }
  return view;
}

std::vector<std::string> DoubtsOf(const RulesRecord& rules) {
  std::vector<std::string> doubts;
  for (const RulesRecord::Top& top : rules.work_trees)
    if (top.index_unknown)
      doubts.push_back(
          "git's index" +
          (top.path.empty() ? "" : " of " + EscapeForDisplay(top.path)) +
          " could not be read: files that were new, and tracked although ignored, are "
          "not in this checkpoint");
  const auto unread = [](const SkippedPath& s) { return s.why == Skip::kNoAttributes; };
  const auto first = std::ranges::find_if(rules.skipped, unread);
  if (first == rules.skipped.end()) return doubts;
  const auto more = std::ranges::count_if(rules.skipped, unread) - 1;
  doubts.push_back(
      "extended attributes of " + EscapeForDisplay(first->path) +
      (more > 0 ? " and " + std::to_string(more) + " more directories" : "") +
      " could not be read: a rollback to this checkpoint leaves them as "
      "they are then");
  return doubts;
}

Scan::TreeReader TreesOf(Store& store) {
  return [&store](const ObjectId& id) -> Result<Tree> {
    auto tree = store.GetTree(id);
    if (!tree.ok()) return AsDamage(std::move(tree).error());
    return tree;
  };
}

bool IsSecretPath(const RuleLists& lists, const RelPath& path) {
  // Nothing but the patterns and the path counts for this.
  auto config = std::make_shared<const RuleConfig>(lists);
  DirRules::Ptr dir =
      DirRules::Root(config, std::make_shared<WorkTree>(WorkTreeInput()), {});
  std::vector<std::string_view> names = path.Components();
  for (size_t i = 0; i + 1 < names.size(); ++i) dir = dir->Enter(names[i], {});
  return dir->Decide(names.back(), false).secret;
}

Result<TreeNow> LookAtNow(Store& store, ScanRequest& request) {
  TreeNow now;
  BELAY_TRY(now.hold, store.HoldForReading());
  BELAY_OK(store.Refresh());
  request.generation = store.manifest().generation;
  auto cache_dir =
      store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (cache_dir.ok()) request.cache_dir = &*cache_dir;
  auto trees = std::make_shared<Trees>();
  TreeSink sink(trees);
  auto scan = Scan::Run(store.fs(), store.clock(), store.random(), request, sink);
  request.cache_dir = nullptr;
  if (!scan.ok()) return std::move(scan).error();
  now.summary = (*scan)->summary();
  now.read = [&store, trees](const ObjectId& id) -> Result<Tree> {
    if (auto found = trees->find(id); found != trees->end()) return found->second;
    return store.GetTree(id);
  };
  return now;
}

}  // namespace belay
