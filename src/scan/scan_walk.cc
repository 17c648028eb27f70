#include <algorithm>
#include <thread>

#include "base/mutant.h"
#include "scan/scan_internal.h"

namespace belay {

namespace {

// Two threads from here on: directories that were found, or bytes of the stat cache;
// about 2,000 files.
constexpr size_t kThreadsFrom = 150;
constexpr uint64_t kThreadsFromCache = uint64_t{192} << 10;

}  // namespace

Status Scan::Walk() {
  const unsigned threads = std::max(1u, request_.threads);
  for (unsigned i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>());
  root_ = &workers_[0]->NewNode();
  root_->block = cache_.root_block();
  root_->rules_changed = cache_.empty() || cache_.config_key() != config_key_;
  queue_->waiting.push_back(root_);
  if (cache_.size() >= kThreadsFromCache) StartWalkers();
  WalkLoop(*workers_[0]);
  for (std::thread& thread : queue_->threads) thread.join();
  if (too_many_) return TooManyFiles();
  if (failed_) return std::move(*failed_);

  // Parents before children, whoever found them.
  size_t nodes = 0;
  for (const auto& worker : workers_) nodes += worker->nodes;
  order_.reserve(nodes);
  order_.push_back(root_);
  for (size_t i = 0; i < order_.size(); ++i)
    order_.insert(order_.end(), order_[i]->children.begin(), order_[i]->children.end());
  size_t captures = 0;
  for (const auto& worker : workers_) captures += worker->captures.size();
  // Mostly one has nearly all: then they are not copied.
  for (const auto& worker : workers_)
    if (worker->captures.capacity() >= captures && captures_.empty())
      captures_ = std::move(worker->captures);
  captures_.reserve(captures);
  for (const auto& worker : workers_) {
    captures_.insert(captures_.end(), std::make_move_iterator(worker->captures.begin()),
                     std::make_move_iterator(worker->captures.end()));
    worker->captures = std::vector<Capture>();
    summary_.listed_dirs += worker->listed;
    total_bytes_ += worker->bytes_to_read;
  }
  summary_.dirs = order_.size();
  // Decisions are made: of half a million names that are 40 MB.
  for (const Node* node : order_)
    if (node->work_tree && node->work_tree->tree)
      if (const TrackedSet* tracked = node->work_tree->tree->tracked()) tracked->Rest();
  return Ok();
}

void Scan::StartWalkers() {
  for (size_t i = 1; i < workers_.size(); ++i)
    queue_->threads.emplace_back([this, i] { WalkLoop(*workers_[i]); });
}

void Scan::WalkLoop(Worker& worker) {
  Queue& queue = *queue_;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queue.waiting.empty() && queue.working > 0 && !stop_) {
      ++queue.hungry;
      queue.more.wait(lock);
      --queue.hungry;
    }
    if (queue.waiting.empty() || stop_) break;
    Node& top = *queue.waiting.back();
    queue.waiting.pop_back();
    ++queue.working;
    lock.unlock();
    WalkBelow(worker, top);
    lock.lock();
    --queue.working;
    // The last one at work wakes those who would wait for ever.
    if (queue.working == 0) queue.more.notify_all();
  }
}

// Depth first, from a directory that is opened by its path.
void Scan::WalkBelow(Worker& worker, Node& top) {
  constexpr size_t kMaxOpen = 24;  // descriptors a thread may hold
  const bool main_thread = &worker == workers_[0].get();
  std::vector<Worker::Open>& open = worker.open;
  Node* node = &top;
  const Fd* above = nullptr;
  for (;;) {
    Fd own;
    Status visited = Visit(worker, *node, above, own);
    if (!visited.ok()) Fail(std::move(visited).error());
    if (main_thread) {
      Report(ScanProgress::Step::kWalk);
      if (queue_->threads.empty() && worker.nodes > kThreadsFrom) StartWalkers();
    }
    if (stop_) break;
    if (!node->children.empty()) {
      open.push_back({.node = node, .dir = std::move(own)});
      open.back().end = node->children.size();
      // Very deep: somebody begins anew there.
      if (open.size() > kMaxOpen)
        GiveAway(worker, open.size() - 1, node->children.size());
    }
    if (queue_->hungry.load(std::memory_order_relaxed) > 0) Share(worker);
    while (!open.empty() && open.back().next == open.back().end) open.pop_back();
    if (open.empty()) break;
    Worker::Open& at = open.back();
    node = at.node->children[at.next++];
    above = at.node == root_ ? &root_fd_ : &at.dir;
  }
  open.clear();
}

// The other has nothing to do: half of what is left where most is left, near the top.
void Scan::Share(Worker& worker) {
  for (size_t i = 0; i < worker.open.size(); ++i) {
    const Worker::Open& at = worker.open[i];
    const size_t left = at.end - at.next;
    if (left == 0) continue;
    const bool last = i + 1 == worker.open.size();
    if (left > 1 || !last) GiveAway(worker, i, left > 1 ? left / 2 : 1);
    return;
  }
}

void Scan::GiveAway(Worker& worker, size_t depth, size_t count) {
  Worker::Open& at = worker.open[depth];
  std::lock_guard guard(mutex_);
  for (; count > 0; --count) {
    Node* child = at.node->children[--at.end];
    if (!BELAY_MUTANT("drop-shared-directories")) queue_->waiting.push_back(child);
  }
  queue_->more.notify_all();
}

// Opens it in `own`, below `above` where that is given, and looks at it.
Status Scan::Visit(Worker& worker, Node& node, const Fd* above, Fd& own) {
  const int64_t now = Now();
  const size_t first_capture = worker.captures.size();
  const uint64_t bytes_before = worker.bytes_to_read;
  const Fd* dir = &root_fd_;
  if (&node != root_) {
    // A directory that is not known will be listed; of others a stat is all we need,
    // as a rule.
    const OpenMode mode = node.block == 0 ? OpenMode::Directory()
                                          : OpenMode{.access = OpenMode::Access::kPath};
    auto opened = above != nullptr ? fs_.Open(*above, NameRef::Known(node.name()), mode)
                                   : OpenByPath(node, mode);
    if (!opened.ok()) {
      if (IsGone(opened.error()) || opened.error().sys == ELOOP) {
        SetGone(node);
        return Ok();
      }
      if (!IsAboutTheFile(opened.error())) return std::move(opened).error();
      node.why = Skip::kUnreadable;
      return Ok();
    }
    own = std::move(*opened);
    dir = &own;
  }
  BELAY_TRY(const FileStat stat, fs_.Stat(*dir));
  if (stat.type != FileType::kDirectory || (above == nullptr && IsMoved(node))) {
    SetGone(node);
    return Ok();
  }
  node.is_late = IsLate(stat);  // names may have come and gone
  // Somebody moved it here, whole: nothing in it was changed. Of one that was made only
  // now what is in it tells (BuildNode).
  if (node.fresh && node.is_late && !IsSinceRelease(stat.mtime_ns) &&
      !BELAY_MUTANT("moved-here-was-here")) {
    node.why = Skip::kChangedLate;
    return Ok();
  }
  node.ino = stat.ino;
  node.mode = stat.mode;
  node.uid = stat.uid;
  node.gid = stat.gid;
  if (&node != root_ &&
      (stat.mount_root || (!stat.mount_known && stat.dev != root_dev_))) {
    node.why = Skip::kOtherMount;
    return Ok();
  }
  if (node.block != 0) {
    if (auto view = cache_.Find(node.block)) {
      node.known = *view;
      node.trusted = cache_trusted_ && view->head->generation == request_.generation;
    }
  }
  const BlockHead* head = node.known.head;
  const uint64_t print = Fingerprint(stat, key_);
  bool listed =
      head == nullptr || head->print != print || (head->flags & BlockHead::kRacy) != 0;
  if (head != nullptr && (head->flags & BlockHead::kRulesRacy) != 0)
    node.rules_changed = true;
  if (head != nullptr && (head->flags & BlockHead::kHasRuleFiles) != 0 &&
      !node.rules_changed) {
    BELAY_TRY(node.rules_changed, RuleFilesChanged(node, *dir));
  }
  const bool was_top = head != nullptr && (head->flags & BlockHead::kWorkTreeTop) != 0;
  if (&node == root_ || was_top) {
    BELAY_OK(LoadWorkTree(node));
    if (head == nullptr ||
        head->git_key != (node.work_tree ? node.work_tree->git_key : 0))
      node.rules_changed = true;
  }
  listed = listed || node.rules_changed;
  if (!listed) {
    BELAY_TRY(bool lost, AttributesLost(node));
    listed = lost;
  }

  if (listed) {
    BELAY_OK(VisitListed(worker, node, *dir));
    if (node.why == Skip::kGitDir && !IsRacy(stat, now)) node.print = print;
    if (node.gone || node.why != Skip::kNone) return Ok();
    node.draft->head.print = print;
    if (IsRacy(stat, now)) node.draft->head.flags |= BlockHead::kRacy;
  } else {
    if (!node.trusted) DraftOf(node);
    BELAY_OK(VisitKnown(worker, node, *dir));
  }
  if (node.work_tree) {
    const WorkTreeFacts& facts = *node.work_tree;
    const bool same = head != nullptr && head->git_key == facts.git_key &&
                      HintOf(*head) == facts.index;
    if (!same || node.draft) {
      BlockHead& mine = DraftOf(node).head;
      mine.git_key = facts.git_key;
      mine.index_print = facts.index.print;
      mine.index_names = facts.index.names;
      mine.flags &= ~BlockHead::kIndexRacy;
      if (facts.index.racy) mine.flags |= BlockHead::kIndexRacy;
    }
  }
  if (head == nullptr) return Ok();
  return CaptureAtOnce(worker, *dir, first_capture,
                       worker.bytes_to_read - bytes_before);
}

// The attributes that the cache knows of a directory are no longer in the store: its
// parent's entry was written under another generation. They are read again then.
Result<bool> Scan::AttributesLost(const Node& node) {
  if (node.parent == nullptr || node.parent->trusted ||
      BELAY_MUTANT("trust-attributes-of-any-generation"))
    return false;
  const DirView above = node.parent->view();
  const std::string_view aux = above.AuxOf(above.entries[node.entry]);
  if (aux.size() != sizeof(ObjectId)) return false;
  ObjectId id;
  std::memcpy(id.bytes.data(), aux.data(), aux.size());
  BELAY_TRY(bool has, sink_.HasContent(id));
  return !has;
}

Result<bool> Scan::RuleFilesChanged(Node& node, const Fd& dir) {
  for (const CacheEntry& e : node.known.entries) {
    if (!e.has(CacheEntry::kRuleFile)) continue;
    // A directory .git changes with every commit; what of it matters is in git_key.
    const std::string_view name = node.known.NameOf(e);
    auto stat = fs_.StatAt(dir, NameRef::Known(name));
    if (!stat.ok()) {
      if (!IsAboutTheFile(stat.error())) return std::move(stat).error();
      return true;
    }
    if (name == kGit && stat->type == FileType::kDirectory && e.print == 0) continue;
    if (e.has(CacheEntry::kRacy) || Fingerprint(*stat, key_) != e.print) return true;
  }
  return false;
}

Result<Fd> Scan::OpenByPath(const Node& node, const OpenMode& mode) {
  BELAY_TRY(RelPath path, RelPath::Parse(node.path()));
  return fs_.OpenBeneath(root_fd_, path, mode);
}

// Nobody waits any longer, and the path leads elsewhere by now: a directory on the way,
// or the node itself, is not the one that was looked at. What is in it may be old, and
// is not what was here.
bool Scan::IsMoved(const Node& node) {
  if (!IsAlone() || BELAY_MUTANT("late-swaps-count")) return false;
  for (const Node* at = &node; at != root_; at = at->parent) {
    auto there = OpenByPath(*at, {.access = OpenMode::Access::kPath});
    if (!there.ok()) return true;
    auto stat = fs_.Stat(*there);
    if (!stat.ok() || (at->ino != 0 && stat->ino != at->ino)) return true;
  }
  return false;
}

Status Scan::LoadWorkTree(Node& node) {
  const IndexHint hint =
      node.known.head != nullptr ? HintOf(*node.known.head) : IndexHint();
  std::lock_guard guard(rules_mutex_);
  if (&node == root_) {
    BELAY_TRY(WorkTreeFacts facts, loader_.AroundRoot(request_.root, hint));
    node.work_tree = std::make_unique<WorkTreeFacts>(std::move(facts));
    return Ok();
  }
  BELAY_TRY(RelPath path, RelPath::Parse(node.path()));
  BELAY_TRY(auto facts, loader_.At(request_.root, request_.root.Join(path), hint));
  node.work_tree = facts ? std::make_unique<WorkTreeFacts>(std::move(*facts)) : nullptr;
  return Ok();
}

// The rules of a directory, made when first needed: in a tree where nothing but content
// changed nobody asks.
Result<DirRules::Ptr> Scan::RulesOf(Node& node) {
  std::lock_guard guard(rules_mutex_);
  // The directories from the nearest one with rules down to this one.
  std::vector<Node*> chain;
  for (Node* at = &node; at != nullptr && !at->rules; at = at->parent)
    chain.push_back(at);
  while (!chain.empty()) {
    Node& at = *chain.back();
    chain.pop_back();
    std::optional<std::string> texts[2];
    const std::string_view names[2] = {kGitignore, kBelayignore};
    for (int i = 0; i < 2; ++i) {
      const CacheEntry* e =
          at.view().head == nullptr ? nullptr : at.view().Find(names[i]);
      // A draft that is being made lists rule files before anybody asks.
      if (e == nullptr) continue;
      at.rule_prints[i] = e->print;  // of one that cannot be read
      BELAY_TRY(RelPath path, RelPath::Parse(Joined(at.path(), names[i])));
      auto file = fs_.OpenBeneath(root_fd_, path, OpenMode::Read());
      if (!file.ok()) {
        if (!IsAboutTheFile(file.error())) return std::move(file).error();
        // As in git, one that cannot be read says nothing. It may be readable again
        // without any time stamp telling; a symlink (ELOOP) will not.
        if (file.error().sys != ELOOP) at.rule_prints[i] = ~e->print;
        continue;
      }
      auto stat = fs_.Stat(*file);
      if (!stat.ok()) {
        at.rule_prints[i] = ~e->print;
        continue;
      }
      if (stat->type != FileType::kRegular || stat->size > kMaxPatternFile) continue;
      at.rule_prints[i] = Fingerprint(*stat, key_);
      std::string text(static_cast<size_t>(stat->size), '\0');
      auto got = ReadFull(fs_, *file, 0, std::as_writable_bytes(std::span(text)));
      if (!got.ok()) {
        if (!IsAboutTheFile(got.error())) return std::move(got).error();
        at.rule_prints[i] = ~e->print;
        continue;
      }
      text.resize(*got);
      texts[i] = std::move(text);
    }
    at.obeyed = true;
    DirFiles files{.gitignore = texts[0], .belayignore = texts[1]};
    if (at.parent == nullptr) {
      at.rules = DirRules::Root(request_.rules, at.work_tree->tree, files);
    } else {
      const std::string_view name = at.name();
      at.rules = at.work_tree
                     ? at.parent->rules->EnterWorkTree(name, at.work_tree->tree, files)
                     : at.parent->rules->Enter(name, files);
    }
  }
  return node.rules;
}

}  // namespace belay
