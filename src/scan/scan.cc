#include "scan/scan.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "base/escape.h"
#include "base/fast_hash.h"
#include "base/mutant.h"

namespace belay {

namespace {

constexpr std::string_view kGitignore = ".gitignore", kBelayignore = ".belayignore",
                           kGit = ".git";
// Two threads from here on: directories that were found, or bytes of the stat cache;
// about 2,000 files.
constexpr size_t kThreadsFrom = 150;
constexpr uint64_t kThreadsFromCache = uint64_t{192} << 10;
// What a thread reads at once, while it walks.
constexpr size_t kAtOnceFiles = 32;
constexpr uint64_t kAtOnceBytes = uint64_t{512} << 10;
constexpr int kReadTries = 3;
constexpr size_t kReadAtOnce = kMaxBlob;

bool IsRuleFile(std::string_view name) {
  return name == kGitignore || name == kBelayignore || name == kGit;
}

std::string Joined(std::string_view dir, std::string_view name) {
  std::string path;
  path.reserve(dir.size() + 1 + name.size());
  path.append(dir);
  if (!path.empty()) path.push_back('/');
  path.append(name);
  return path;
}

// What says something about this file alone, not about the machine or this process.
bool IsAboutTheFile(const Error& error) {
  switch (error.sys) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EINTR:
      return false;
    default:
      return error.sys != 0;
  }
}

bool IsGone(const Error& error) {
  return error.sys == ENOENT || error.sys == ENOTDIR || error.sys == ESTALE;
}

CacheKind KindOf(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return CacheKind::kFile;
    case FileType::kSymlink:
      return CacheKind::kSymlink;
    case FileType::kDirectory:
      return CacheKind::kDirectory;
    default:
      return CacheKind::kNone;
  }
}

IndexHint HintOf(const BlockHead& head) {
  return {.print = head.index_print,
          .names = head.index_names,
          .racy = (head.flags & BlockHead::kIndexRacy) != 0};
}

const ObjectId& EmptyTreeId() {
  static const ObjectId id = Sha256::Of(*EncodeTree(Tree()));
  return id;
}

// In the tree: a directory that was entered only for what is tracked or protected in it
// is not, when there was nothing.
bool InTree(const CacheEntry& e) {
  return e.covered() && !(e.kind == CacheKind::kDirectory &&
                          e.has(CacheEntry::kRestricted) && e.id == EmptyTreeId());
}

// Left out for a reason that is to be listed. Of `.git` everybody knows.
bool IsSaid(const CacheEntry& e) {
  return e.why != Skip::kNone &&
         !(e.why == Skip::kGitDir && e.has(CacheEntry::kRuleFile));
}

// As it stands in the tree, where it does.
std::optional<TreeEntry> EntryInTree(const DirView& view, const CacheEntry& e) {
  if (!InTree(e)) return std::nullopt;
  const std::string_view aux = view.AuxOf(e);
  TreeEntry entry;
  entry.name = view.NameOf(e);
  entry.mode = e.mode;
  entry.uid = e.uid;
  entry.gid = e.gid;
  switch (e.kind) {
    case CacheKind::kFile:
      entry.kind = EntryKind::kFile;
      entry.size = e.size;
      entry.id = e.id;
      break;
    case CacheKind::kSymlink:
      entry.kind = EntryKind::kSymlink;
      entry.target = aux;
      break;
    case CacheKind::kDirectory:
      entry.kind = EntryKind::kDirectory;
      entry.id = e.id;
      break;
    case CacheKind::kNone:
      return std::nullopt;
  }
  if (e.kind != CacheKind::kSymlink && aux.size() == sizeof(ObjectId))
    std::memcpy(entry.xattrs.bytes.data(), aux.data(), aux.size());
  return entry;
}

// An error of the store must not be taken for one of the file that was being read.
Error OfTheStore(Error error) {
  error.sys = 0;
  return error;
}

std::string_view IdText(const ObjectId& id) { return AsText(id.bytes); }

}  // namespace

// One directory of the scan.
struct Scan::Node {
  Node* parent = nullptr;
  size_t entry = 0;  // in the parent's view, where its name is
  uint64_t block = 0;
  DirView known;  // from the cache; head null: not known
  std::unique_ptr<DirDraft> draft;
  DirRules::Ptr rules;
  uint64_t rule_prints[2] = {0, 0};  // of the files that `rules` were made of
  std::unique_ptr<WorkTreeFacts> work_tree;
  bool rules_changed = false;
  bool trusted = false;  // the cache's ids were written under this generation
  bool gone = false;
  bool listed = false;
  bool attributes_unknown = false;  // they could not be read; only when listed
  Skip why = Skip::kNone;           // the directory itself cannot be entered
  uint64_t print = 0;  // of one that is a git directory; 0: look again next time
  uint32_t mode = 0, uid = 0, gid = 0;
  uint32_t saved_as = 0;                // place among those given to StatCache::Save()
  std::unique_ptr<std::string> xattrs;  // id bytes, or none; when listed
  std::vector<Node*> children;          // by entry

  DirView view() const { return draft ? draft->view() : known; }
  const ObjectId& tree() const { return view().head->tree; }
  std::string_view name() const {
    if (parent == nullptr) return {};
    const DirView above = parent->view();
    return above.NameOf(above.entries[entry]);
  }
  // From the root, "" for the root. Made when asked for: of a directory that is as it
  // was nobody asks.
  std::string path() const {
    std::vector<std::string_view> names;
    size_t length = 0;
    for (const Node* at = this; at->parent != nullptr; at = at->parent) {
      names.push_back(at->name());
      length += names.back().size() + 1;
    }
    std::string path;
    path.reserve(length);
    for (size_t i = names.size(); i-- > 0;) {
      path.append(names[i]);
      if (i > 0) path.push_back('/');
    }
    return path;
  }
};

struct Scan::Capture {
  Node* node;
  uint32_t entry;
  bool gone = false;
  bool done = false;                      // was read while walking
  std::unique_ptr<std::string> aux = {};  // few have any, and there may be millions
};

struct Scan::Worker {
  // Nodes stay where they are.
  static constexpr size_t kNodesAtOnce = 64;
  std::vector<std::unique_ptr<Node[]>> node_blocks;
  size_t nodes = 0;
  Node& NewNode() {
    if (nodes % kNodesAtOnce == 0)
      node_blocks.push_back(std::make_unique<Node[]>(kNodesAtOnce));
    return node_blocks.back()[nodes++ % kNodesAtOnce];
  }
  // The way down to where it is at work. Directories are opened relative to the one
  // above, which stays open: one name to look up instead of the whole path.
  struct Open {
    Node* node;
    Fd dir;                    // not of the root
    size_t next = 0, end = 0;  // children that are still to be visited
  };
  std::vector<Open> open;
  std::vector<Capture> captures;
  uint64_t listed = 0;
  uint64_t bytes_to_read = 0;
  size_t read_files = 0;  // while walking
  uint64_t read_bytes = 0;
  Bytes buffer;
};

struct Scan::Queue {
  std::condition_variable more;
  std::vector<Node*> waiting;
  size_t working = 0;
  std::atomic<size_t> hungry{0};  // those who wait for `more`
  std::vector<std::thread> threads;
};

Scan::Scan(Fs& fs, Clock& clock, Random& random, const ScanRequest& request,
           ScanSink& sink)
    : fs_(fs),
      clock_(clock),
      random_(random),
      request_(request),
      sink_(sink),
      loader_(fs, clock, request.git),
      queue_(std::make_unique<Queue>()) {}

Scan::~Scan() = default;

Result<std::unique_ptr<Scan>> Scan::Run(Fs& fs, Clock& clock, Random& random,
                                        const ScanRequest& request, ScanSink& sink) {
  std::unique_ptr<Scan> scan(new Scan(fs, clock, random, request, sink));
  BELAY_OK(scan->Prepare());
  BELAY_OK(scan->Walk());
  BELAY_OK(scan->CaptureAll());
  BELAY_OK(scan->Build());
  return scan;
}

Status Scan::Prepare() {
  BELAY_TRY(root_fd_, fs_.OpenDir(request_.root));
  BELAY_TRY(FileStat stat, fs_.Stat(root_fd_));
  root_dev_ = stat.dev;
  summary_.dev = stat.dev;
  summary_.ino = stat.ino;
  summary_.mode = stat.mode;
  summary_.uid = stat.uid;
  summary_.gid = stat.gid;
  if (request_.cache_dir != nullptr)
    cache_ = StatCache::Load(fs_, *request_.cache_dir, request_.root_id);
  cache_trusted_ = !cache_.empty() && (!request_.still_has ||
                                       BELAY_MUTANT("trust-cache-of-a-lost-batch") ||
                                       request_.still_has(cache_.place()));
  key_ = cache_.empty() ? random_.U64() : cache_.key();
  loader_.set_key(key_);
  auto below = [&](const AbsPath& path) {
    std::string rest = path.bytes().substr(request_.root.bytes().size());
    return rest.starts_with('/') ? rest.substr(1) : rest;
  };
  for (const AbsPath& other : request_.other_roots)
    if (other != request_.root && other.IsWithin(request_.root))
      elsewhere_.push_back(below(other));
  std::sort(elsewhere_.begin(), elsewhere_.end());
  if (request_.store_dir && *request_.store_dir != request_.root &&
      request_.store_dir->IsWithin(request_.root))
    store_below_ = below(*request_.store_dir);

  // Everything that decides about coverage and is not a file below the root.
  Bytes config;
  ByteWriter out(config);
  // Raised when the same files are decided about in another way. 1: git directories
  // under any name.
  constexpr uint8_t kWayOfDeciding = 1;
  out.U8(kWayOfDeciding);
  const RuleLists& lists = request_.rules->lists();
  for (const auto* list : {&lists.protect, &lists.exclude, &lists.secret_patterns}) {
    out.Varint(list->size());
    for (const std::string& pattern : *list) out.Sized(pattern);
  }
  out.U8(lists.skip_secrets ? 1 : 0);
  out.U8(lists.default_excludes ? 1 : 0);
  out.U64(request_.max_file_size);
  out.Sized(store_below_);
  for (const std::string& other : elsewhere_) out.Sized(other);
  out.Sized(request_.root.bytes());
  for (const std::string& purged : request_.purged) out.Sized(purged);
  config_key_ = FastHash(config, key_);
  return Ok();
}

void Scan::Fail(Error error) {
  std::lock_guard guard(mutex_);
  if (!failed_) failed_ = std::move(error);
  stop_ = true;
  queue_->more.notify_all();
}

void Scan::Report(ScanProgress::Step step) {
  if (!request_.progress) return;
  const int64_t now = clock_.SteadyNanos();
  if (now - reported_ < 50'000'000) return;
  reported_ = now;
  const bool walking = step == ScanProgress::Step::kWalk;
  request_.progress({.step = step,
                     .files = walking ? seen_.load() : done_files_.load(),
                     .bytes = walking ? 0 : done_bytes_.load(),
                     .total_files = walking ? 0 : captures_.size(),
                     .total_bytes = walking ? 0 : total_bytes_});
}

// --- walk ----------------------------------------------------------------------------

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
  captures_.reserve(captures);
  for (const auto& worker : workers_) {
    captures_.insert(captures_.end(), std::make_move_iterator(worker->captures.begin()),
                     std::make_move_iterator(worker->captures.end()));
    worker->captures = std::vector<Capture>();
    summary_.listed_dirs += worker->listed;
    total_bytes_ += worker->bytes_to_read;
  }
  summary_.dirs = order_.size();
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

void Scan::AddChild(Worker& worker, Node& parent, size_t entry, uint64_t block) {
  Node& child = worker.NewNode();
  child.parent = &parent;
  child.entry = entry;
  child.block = block;
  child.rules_changed = parent.rules_changed;
  parent.children.push_back(&child);
}

DirDraft& Scan::DraftOf(Node& node) {
  if (!node.draft)
    node.draft = std::make_unique<DirDraft>(
        node.known.head != nullptr ? DirDraft::Copy(node.known) : DirDraft());
  return *node.draft;
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
  if (stat.type != FileType::kDirectory) {
    SetGone(node);
    return Ok();
  }
  (void)IsLate(stat);  // names may have come and gone
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

// A few changed files of a known directory are read while it is open: both threads are
// at work then, and it need not be opened again. More wait until all is known.
Status Scan::CaptureAtOnce(Worker& worker, const Fd& dir, size_t first,
                           uint64_t bytes) {
  const size_t files = worker.captures.size() - std::min(first, worker.captures.size());
  if (files == 0 || worker.read_files + files > kAtOnceFiles ||
      worker.read_bytes + bytes > kAtOnceBytes)
    return Ok();
  worker.read_files += files;
  worker.read_bytes += bytes;
  for (size_t i = first; i < worker.captures.size(); ++i) {
    Capture& capture = worker.captures[i];
    capture.done = true;
    if (!capture.gone) BELAY_OK(CaptureOne(dir, capture, worker.buffer));
  }
  return Ok();
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

// True when the cached content stands for what is on disk.
bool Scan::TakesOver(const CacheEntry& entry, uint64_t print, const Node& node,
                     Status& failed) {
  if (entry.print != print || entry.has(CacheEntry::kRacy)) return false;
  if (node.trusted || entry.kind != CacheKind::kFile ||
      BELAY_MUTANT("trust-cache-of-any-generation"))
    return true;
  auto has = sink_.HasContent(entry.id);
  if (has.ok() && *has && entry.aux_length == sizeof(ObjectId)) {
    ObjectId xattrs;
    std::string_view aux = node.known.AuxOf(entry);
    std::memcpy(xattrs.bytes.data(), aux.data(), aux.size());
    has = sink_.HasContent(xattrs);
  }
  if (!has.ok()) failed = std::move(has).error();
  return has.ok() && *has;
}

// The names are those of the cache: only what each is like has to be looked at.
Status Scan::VisitKnown(Worker& worker, Node& node, const Fd& dir) {
  uint64_t seen = 0;
  for (size_t i = 0; i < node.known.entries.size(); ++i) {
    const CacheEntry& e = node.known.entries[i];
    const std::string_view name = node.known.NameOf(e);
    if (e.kind == CacheKind::kDirectory) {
      AddChild(worker, node, i, e.size);
      continue;
    }
    if (e.why == Skip::kReserved || e.why == Skip::kOtherRoot ||
        e.why == Skip::kPurged ||
        (e.why == Skip::kGitDir && e.has(CacheEntry::kRuleFile)))
      continue;
    if (e.covered()) ++seen;
    auto stat = fs_.StatAt(dir, NameRef::Known(name));
    if (!stat.ok()) {
      if (!IsAboutTheFile(stat.error())) return std::move(stat).error();
      if (!IsGone(stat.error())) continue;
      DraftOf(node).head.flags |= BlockHead::kRacy;  // look again next time
      if (IsReleased())
        LeaveOut(DraftOf(node).entries[i], Skip::kChangedLate);
      else
        worker.captures.push_back(
            {.node = &node, .entry = static_cast<uint32_t>(i), .gone = true});
      continue;
    }
    Status failed = Ok();
    if (TakesOver(e, Fingerprint(*stat, key_), node, failed)) continue;
    if (!failed.ok()) return failed;
    if (e.kind == CacheKind::kNone && e.print == Fingerprint(*stat, key_) &&
        !e.has(CacheEntry::kRacy))
      continue;
    // A symlink where a file was: somebody is at it right now. The next scan lists.
    DirDraft& draft = DraftOf(node);
    const CacheKind kind = KindOf(stat->type);
    if (e.kind == CacheKind::kNone || kind != e.kind || stat->mount_root) {
      // What it is now, rules and limits included, takes a listing: do that instead.
      node.draft.reset();
      std::erase_if(worker.captures, [&](const Capture& c) { return c.node == &node; });
      node.children.clear();
      BELAY_OK(VisitListed(worker, node, dir));
      if (node.draft) node.draft->head.print = node.known.head->print;
      return Ok();
    }
    if (stat->size > request_.max_file_size && kind == CacheKind::kFile) {
      CacheEntry& mine = draft.entries[i];
      mine.kind = CacheKind::kNone;
      mine.why = Skip::kTooLarge;
      mine.print = Fingerprint(*stat, key_);
      mine.flags &= ~CacheEntry::kRacy;
      draft.head.flags |= BlockHead::kHasSkipped;
      continue;
    }
    worker.captures.push_back({.node = &node, .entry = static_cast<uint32_t>(i)});
    worker.bytes_to_read += stat->size;
  }
  if (seen_.fetch_add(seen) + seen > request_.max_files) {
    too_many_ = true;
    return Error(Errc::kRefused, "too many files");  // Walk() says it better
  }
  return Ok();
}

bool Scan::IsElsewhere(const Node& node, std::string_view name, Skip& why) const {
  if (elsewhere_.empty() && store_below_.empty() && request_.purged.empty())
    return false;
  const std::string path = Joined(node.path(), name);
  why = Skip::kPurged;
  if (std::ranges::binary_search(request_.purged, path) &&
      !BELAY_MUTANT("capture-what-was-purged"))
    return true;
  why = Skip::kOtherRoot;
  return (path == store_below_ && !BELAY_MUTANT("capture-own-store")) ||
         std::binary_search(elsewhere_.begin(), elsewhere_.end(), path);
}

Status Scan::AddFile(Worker& worker, Node& node, std::string_view name,
                     const CacheEntry* known, const FileStat& stat) {
  DirDraft& draft = *node.draft;
  CacheEntry e;
  e.kind = KindOf(stat.type);
  e.print = Fingerprint(stat, key_);
  e.size = stat.size;
  e.mode = static_cast<uint16_t>(stat.mode);
  e.uid = stat.uid;
  e.gid = stat.gid;
  if (IsRuleFile(name)) e.flags |= CacheEntry::kRuleFile;
  if (stat.mount_root) {
    e.kind = CacheKind::kNone;
    e.why = Skip::kOtherMount;
  } else if (e.kind == CacheKind::kNone) {
    e.why = Skip::kSpecial;
  } else if (e.kind == CacheKind::kFile && stat.size > request_.max_file_size) {
    e.kind = CacheKind::kNone;
    e.why = Skip::kTooLarge;
  }
  if (!e.covered()) {
    draft.Add(e, name, {});
    return Ok();
  }
  Status failed = Ok();
  if (known != nullptr && known->kind == e.kind &&
      TakesOver(*known, e.print, node, failed)) {
    e.id = known->id;
    e.why = known->why;
    draft.Add(e, name, node.known.AuxOf(*known));
    return Ok();
  }
  if (!failed.ok()) return failed;
  if (e.kind == CacheKind::kFile) worker.bytes_to_read += stat.size;
  if (known != nullptr && known->kind == e.kind) e.id = known->id;
  draft.Add(e, name, {});
  worker.captures.push_back(
      {.node = &node, .entry = static_cast<uint32_t>(draft.entries.size() - 1)});
  return Ok();
}

Status Scan::VisitListed(Worker& worker, Node& node, const Fd& dir) {
  ++worker.listed;
  node.listed = true;
  auto list = fs_.List(dir);
  if (!list.ok()) {
    node.draft = std::make_unique<DirDraft>();
    if (!IsAboutTheFile(list.error())) return std::move(list).error();
    if (&node == root_) return std::move(list).error();
    if (IsGone(list.error()))
      SetGone(node);
    else
      node.why = Skip::kUnreadable;
    return Ok();
  }
  if (&node != root_) {
    BELAY_OK(DirXattrs(node, dir));
  }
  std::vector<DirEntry>& names = *list;
  std::sort(names.begin(), names.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });

  // 1. The files that decide about the others. They stand in the draft first, so that
  //    RulesOf() finds them.
  node.draft = std::make_unique<DirDraft>();
  DirDraft& draft = *node.draft;
  bool has_git = false;
  std::vector<std::pair<std::string_view, FileStat>> rule_files;
  for (const DirEntry& entry : names) {
    if (!IsRuleFile(entry.name)) continue;
    auto at = fs_.StatAt(dir, NameRef::Known(entry.name));
    if (!at.ok()) {
      if (!IsAboutTheFile(at.error())) return std::move(at).error();
      continue;
    }
    has_git = has_git || entry.name == kGit;
    if (at->type == FileType::kDirectory && entry.name != kGit) continue;
    rule_files.push_back({entry.name, *at});
    CacheEntry e;
    e.print = Fingerprint(*at, key_);
    draft.Add(e, entry.name, {});
  }
  if (node.known.head != nullptr && !node.rules_changed) {
    // Since RuleFilesChanged() looked, one may have come, gone or changed.
    size_t before = 0;
    for (const CacheEntry& e : node.known.entries)
      before += e.has(CacheEntry::kRuleFile) ? 1 : 0;
    bool same = before == rule_files.size();
    for (const auto& [name, at] : rule_files) {
      const CacheEntry* e = node.known.Find(name);
      const bool git_dir = name == kGit && at.type == FileType::kDirectory;
      same = same && e != nullptr && e->print == (git_dir ? 0 : Fingerprint(at, key_));
    }
    node.rules_changed = !same;
  }
  if (has_git && &node != root_ &&
      (node.known.head == nullptr ||
       (node.known.head->flags & BlockHead::kWorkTreeTop) == 0)) {
    BELAY_OK(LoadWorkTree(node));
    node.rules_changed = true;
  }
  BELAY_TRY(bool gits_own, IsGitsOwn(node, dir, names));
  if (gits_own) {
    node.why = Skip::kGitDir;
    return Ok();
  }
  DirRules::Ptr rules;
  auto decide = [&](std::string_view name, bool is_dir) -> Result<Decision> {
    if (!rules) {
      BELAY_TRY(rules, RulesOf(node));
    }
    return rules->Decide(name, is_dir);
  };
  // The placeholders have served once the rules were read.
  if (node.known.head == nullptr || node.rules_changed || !rule_files.empty()) {
    BELAY_TRY(rules, RulesOf(node));
  }
  draft = DirDraft();
  if (has_git) draft.head.flags |= BlockHead::kWorkTreeTop;
  draft.entries.reserve(names.size());
  size_t length = names.size();
  for (const DirEntry& entry : names) length += entry.name.size();
  draft.strings.reserve(length);

  // 2. Everything, in order.
  uint64_t seen = 0;
  for (const DirEntry& entry : names) {
    const std::string_view name = entry.name;
    if (stop_) return Ok();
    const CacheEntry* known =
        node.known.head == nullptr ? nullptr : node.known.Find(name);
    if (name == kGit) {
      CacheEntry e;
      e.why = Skip::kGitDir;
      e.flags = CacheEntry::kRuleFile;
      for (const auto& [rule_name, at] : rule_files)
        if (rule_name == kGit && at.type != FileType::kDirectory)
          e.print = Fingerprint(at, key_);
      draft.head.flags |= BlockHead::kHasRuleFiles;
      draft.Add(e, name, {});
      continue;
    }
    Skip why = Skip::kNone;
    if (IsGitAlias(name) || IsElsewhere(node, name, why)) {
      CacheEntry e;
      e.why = why == Skip::kNone ? Skip::kReserved : why;
      draft.Add(e, name, {});
      continue;
    }
    std::optional<FileStat> at;
    auto look = [&]() -> Result<bool> {
      if (at) return true;
      auto got = fs_.StatAt(dir, NameRef::Known(name));
      if (got.ok()) {
        at = *got;
        return true;
      }
      if (!IsAboutTheFile(got.error())) return std::move(got).error();
      const bool gone = IsGone(got.error());
      if (gone) draft.head.flags |= BlockHead::kRacy;  // look again next time
      if (!gone || IsReleased()) {
        CacheEntry e;
        LeaveOut(e, gone ? Skip::kChangedLate : Skip::kUnreadable);
        draft.Add(e, name, {});
      }
      return false;
    };
    std::optional<FileType> type = entry.type;
    if (!type) {
      BELAY_TRY(bool there, look());
      if (!there) continue;
      type = at->type;
    }
    const bool is_dir = *type == FileType::kDirectory;
    // The rules are the same and so is what it is: so is the decision.
    const bool decided = known != nullptr && !node.rules_changed && known->covered() &&
                         (known->kind == CacheKind::kDirectory) == is_dir;
    Decision decision;
    if (!decided) {
      BELAY_TRY(decision, decide(name, is_dir));
    }
    // It may be covered only because git tracks it, and the index cannot be read: what
    // was covered stays so. It is there, and must not look deleted.
    if (!decided && !decision.covered && known != nullptr && known->covered() &&
        decision.why != Why::kSecret && decision.why != Why::kGitDir &&
        (known->kind == CacheKind::kDirectory) == is_dir && rules->MayBeTracked()) {
      decision.covered = !is_dir;
      if (is_dir) decision.descend = Descend::kNamed;
    }
    if (is_dir) {
      if (!decided && decision.descend == Descend::kNo) continue;
      CacheEntry e;
      e.kind = CacheKind::kDirectory;
      const bool was_dir = known != nullptr && known->kind == CacheKind::kDirectory;
      if (was_dir) {
        e = *known;
      }
      if (!decided)
        e.flags = decision.descend == Descend::kNamed ? CacheEntry::kRestricted : 0;
      draft.Add(e, name, was_dir ? node.known.AuxOf(*known) : std::string_view());
      AddChild(worker, node, draft.entries.size() - 1, was_dir ? known->size : 0);
      continue;
    }
    const bool counts = IsRuleFile(name);
    if (!decided && !decision.covered && !counts && decision.why != Why::kSecret)
      continue;
    BELAY_TRY(bool there, look());
    if (!there) continue;
    if (at->type == FileType::kDirectory) {  // it became one just now
      draft.head.flags |= BlockHead::kRacy;
      continue;
    }
    if (!decided && !decision.covered) {
      CacheEntry e;
      e.why = decision.why == Why::kSecret ? Skip::kSecret : Skip::kIgnored;
      e.print = Fingerprint(*at, key_);
      if (counts) e.flags = CacheEntry::kRuleFile;
      if (IsRacy(*at, Now())) e.flags |= CacheEntry::kRacy;
      draft.Add(e, name, {});
      continue;
    }
    BELAY_OK(AddFile(worker, node, name, known, *at));
    if (draft.entries.back().covered()) ++seen;
  }
  if (seen_.fetch_add(seen) + seen > request_.max_files) {
    too_many_ = true;
    return Error(Errc::kRefused, "too many files");  // Walk() says it better
  }
  return Ok();
}

// A git directory under another name: commits, refs and index are git's, as those in
// `.git` are. One that holds files which the repository around it tracks (fixtures of a
// project about git) is the project's. Costs nothing where the three names are not.
Result<bool> Scan::IsGitsOwn(Node& node, const Fd& dir,
                             const std::vector<DirEntry>& names) {
  if (&node == root_ || BELAY_MUTANT("capture-git-directories")) return false;
  for (const std::string_view name : {"HEAD", "objects", "refs"}) {
    auto at = std::lower_bound(
        names.begin(), names.end(), name,
        [](const DirEntry& e, std::string_view n) { return e.name < n; });
    if (at == names.end() || at->name != name) return false;
  }
  BELAY_TRY(bool looks_so, IsGitDirectory(fs_, dir));
  if (!looks_so) return false;
  BELAY_TRY(DirRules::Ptr rules, RulesOf(node));
  return !rules->HoldsTracked();
}

// Where they are, as far as was seen when the limit was reached: each number is a
// least.
Error Scan::TooManyFiles() const {
  std::unordered_map<const Node*, uint64_t> below;
  std::vector<const Node*> dirs{root_};
  for (size_t i = 0; i < dirs.size(); ++i) {
    const Node* node = dirs[i];
    dirs.insert(dirs.end(), node->children.begin(), node->children.end());
    uint64_t own = 0;
    for (const CacheEntry& e : node->view().entries)
      own += e.covered() && e.kind != CacheKind::kDirectory ? 1 : 0;
    for (const Node* at = node; at != nullptr; at = at->parent) below[at] += own;
  }
  std::erase_if(dirs, [&](const Node* n) {
    // Not the root, and not what is only a way to one directory below.
    return n == root_ ||
           std::any_of(n->children.begin(), n->children.end(),
                       [&](const Node* c) { return below[c] * 10 > below[n] * 9; });
  });
  std::sort(dirs.begin(), dirs.end(),
            [&](const Node* a, const Node* b) { return below[a] > below[b]; });
  std::string hint =
      "leave directories out with a line in .belayignore, or raise max_files";
  std::string largest;
  for (size_t i = 0; i < dirs.size() && i < 3; ++i)
    if (below[dirs[i]] > 0)
      largest += (i == 0 ? " (seen so far: at least " : ", ") +
                 std::to_string(below[dirs[i]]) + " in " +
                 EscapeForDisplay(dirs[i]->path()) + "/";
  if (!largest.empty()) largest += ")";
  return Error(Errc::kRefused, "there are more than " +
                                   std::to_string(request_.max_files) + " files here" +
                                   largest)
      .WithHint(hint);
}

// Of a directory that was listed; its fingerprint tells when they change.
Status Scan::DirXattrs(Node& node, const Fd& dir) {
  auto of = [&](const Fd& readable) -> Status {
    auto got = CaptureXattrs(readable);
    if (!got.ok()) {
      if (got.error().sys == 0 || !IsAboutTheFile(got.error()) || request_.strict)
        return std::move(got).error();
      node.attributes_unknown = true;
      return Ok();
    }
    if (!got->empty()) node.xattrs = std::make_unique<std::string>(std::move(*got));
    return Ok();
  };
  if (node.block == 0) return of(dir);
  auto readable = OpenByPath(node, OpenMode::Directory());
  if (readable.ok()) return of(*readable);
  node.attributes_unknown = IsAboutTheFile(readable.error()) && !request_.strict;
  return node.attributes_unknown ? Ok() : Status(std::move(readable).error());
}

// --- capture -------------------------------------------------------------------------

Status Scan::CaptureAll() {
  if (captures_.empty()) return Ok();
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  size_t left = 0;
  for (const Capture& capture : captures_) left += capture.done ? 0 : 1;
  const bool many = left > 64 || (left > 1 && total_bytes_ > (uint64_t{1} << 20));
  for (size_t i = 1; many && i < workers_.size(); ++i)
    threads.emplace_back([this, &next] { CaptureLoop(next); });
  if (left > 0) CaptureLoop(next);
  for (std::thread& thread : threads) thread.join();
  if (failed_) return std::move(*failed_);
  summary_.read_files = done_files_;
  summary_.read_bytes = done_bytes_;

  // Strings of a draft are shared by its entries: they are set here, by one thread.
  std::vector<Node*> thinned;
  for (Capture& capture : captures_) {
    DirDraft& draft = DraftOf(*capture.node);
    CacheEntry& e = draft.entries[capture.entry];
    draft.SetAux(e, capture.aux ? *capture.aux : std::string_view());
    if (capture.gone) {
      e.kind = CacheKind::kNone;
      e.why = Skip::kNone;
      draft.head.flags |= BlockHead::kRacy;
      thinned.push_back(capture.node);
    }
  }
  std::sort(thinned.begin(), thinned.end());
  thinned.erase(std::unique(thinned.begin(), thinned.end()), thinned.end());
  for (Node* node : thinned) {
    // Children know their place in the list of entries.
    std::vector<CacheEntry>& entries = node->draft->entries;
    std::vector<size_t> place(entries.size());
    size_t kept = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      place[i] = kept;
      if (entries[i].kind == CacheKind::kNone && entries[i].why == Skip::kNone)
        continue;
      entries[kept++] = entries[i];
    }
    entries.resize(kept);
    for (Node* child : node->children) child->entry = place[child->entry];
  }
  captures_ = std::vector<Capture>();
  return Ok();
}

void Scan::CaptureLoop(std::atomic<size_t>& next) {
  constexpr size_t kAtOnce = 16;
  Bytes buffer;
  Fd dir;
  const Node* opened = nullptr;
  const bool main_thread = std::this_thread::get_id() == main_thread_;
  for (;;) {
    const size_t begin = next.fetch_add(kAtOnce);
    if (begin >= captures_.size() || stop_) return;
    const size_t end = std::min(begin + kAtOnce, captures_.size());
    for (size_t i = begin; i < end && !stop_; ++i) {
      Capture& capture = captures_[i];
      if (capture.gone || capture.done) continue;
      if (opened != capture.node) {
        opened = nullptr;
        if (capture.node == root_) {
          auto again = fs_.Duplicate(root_fd_);
          if (!again.ok()) return Fail(std::move(again).error());
          dir = std::move(*again);
        } else {
          auto there = OpenByPath(*capture.node, {.access = OpenMode::Access::kPath});
          if (!there.ok()) {
            if (!IsAboutTheFile(there.error())) return Fail(std::move(there).error());
            LeaveOut(capture, there.error());
            continue;
          }
          dir = std::move(*there);
        }
        opened = capture.node;
      }
      Status done = CaptureOne(dir, capture, buffer);
      if (!done.ok()) return Fail(std::move(done).error());
    }
    if (main_thread) Report(ScanProgress::Step::kCapture);
  }
}

void Scan::LeaveOut(CacheEntry& e, Skip why) {
  e.kind = CacheKind::kNone;
  e.why = why;
  e.flags |= CacheEntry::kRacy;
}

// It vanished, became something else since it was looked at, or cannot be read.
void Scan::LeaveOut(Capture& capture, const Error& error) {
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  const bool gone = IsGone(error);
  if (!gone && error.sys != ELOOP && error.sys != EINVAL)
    LeaveOut(e, Skip::kUnreadable);
  else if (IsReleased())
    LeaveOut(e, Skip::kChangedLate);
  else if (gone)
    capture.gone = true;
  else
    LeaveOut(e, Skip::kReplaced);
}

// A directory that was seen and is not there any more.
void Scan::SetGone(Node& node) {
  if (IsReleased())
    node.why = Skip::kChangedLate;
  else
    node.gone = true;
}

// Nobody waits any longer. What is seen to vanish, which has no time to be asked,
// counts as gone since then.
bool Scan::IsReleased() {
  if (request_.released_ns == nullptr || BELAY_MUTANT("late-removals-count"))
    return false;
  if (request_.released_ns->load(std::memory_order_acquire) == 0) return false;
  late_ = true;
  return true;
}

Status Scan::CaptureOne(const Fd& dir, Capture& capture, Bytes& buffer) {
  // The draft was made when the capture was queued, except for entries of the cache.
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  for (int tries = 1;; ++tries) {
    bool again = false;
    Status done = e.kind == CacheKind::kSymlink
                      ? CaptureLink(dir, capture, again)
                      : CaptureFile(dir, capture, buffer, again);
    if (!done.ok()) {
      if (!IsAboutTheFile(done.error())) return done;
      LeaveOut(capture, done.error());
      return Ok();
    }
    if (!again) {
      done_files_.fetch_add(1, std::memory_order_relaxed);
      return Ok();
    }
    if (tries < kReadTries) continue;
    // What was read last is kept, and said to be of an uncertain moment.
    e.flags |= CacheEntry::kRacy;
    e.why = Skip::kChanging;
    return Ok();
  }
}

// Changed at or after the release, less the tick of a kernel's clock.
bool Scan::IsLate(const FileStat& stat) {
  constexpr int64_t kTick = 10'000'000;
  if (request_.released_ns == nullptr) return false;
  const int64_t released = request_.released_ns->load(std::memory_order_acquire);
  if (released == 0 || stat.ctime_ns < released - kTick) return false;
  if (BELAY_MUTANT("late-changes-count")) return false;
  late_ = true;
  return true;
}

Status Scan::CaptureLink(const Fd& dir, Capture& capture, bool& again) {
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  const NameRef name = NameRef::Known(capture.node->draft->view().NameOf(e));
  const int64_t now = Now();
  BELAY_TRY(FileStat before, fs_.StatAt(dir, name));
  if (before.type != FileType::kSymlink) return SysError(EINVAL, "readlink");
  if (IsLate(before)) {
    LeaveOut(e, Skip::kChangedLate);
    e.print = Fingerprint(before, key_);
    return Ok();
  }
  BELAY_TRY(std::string target, fs_.ReadLink(dir, name));
  BELAY_TRY(FileStat after, fs_.StatAt(dir, name));
  e.print = Fingerprint(before, key_);
  again = Fingerprint(after, key_) != e.print;
  e.size = 0;
  e.id = Sha256::Of(AsBytes(target));  // of no use to the tree; says that it was read
  e.mode = static_cast<uint16_t>(before.mode);
  e.uid = before.uid;
  e.gid = before.gid;
  e.why = Skip::kNone;
  e.flags &= static_cast<uint8_t>(~CacheEntry::kRacy);
  if (IsRacy(before, now)) e.flags |= CacheEntry::kRacy;
  capture.aux = std::make_unique<std::string>(std::move(target));
  return Ok();
}

Status Scan::CaptureFile(const Fd& dir, Capture& capture, Bytes& buffer, bool& again) {
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  const NameRef name = NameRef::Known(capture.node->draft->view().NameOf(e));
  const int64_t now = Now();
  BELAY_TRY(Fd file, fs_.Open(dir, name, OpenMode::Read()));
  BELAY_TRY(FileStat before, fs_.Stat(file));
  if (before.type != FileType::kRegular) return SysError(ELOOP, "open");
  auto left_out = [&](Skip why) {
    e.kind = CacheKind::kNone;
    e.why = why;
    e.print = Fingerprint(before, key_);
    e.flags |= CacheEntry::kRacy;
    return Ok();
  };
  if (IsLate(before)) return left_out(Skip::kChangedLate);
  if (before.size > request_.max_file_size) return left_out(Skip::kTooLarge);
  ObjectId id;
  uint64_t length = 0;
  if (before.size <= kReadAtOnce) {
    // One byte more than it should have: a file that grew is seen without a second
    // call.
    if (buffer.size() < before.size + 1)
      buffer.resize(std::max<size_t>(static_cast<size_t>(before.size) + 1, 1 << 16));
    BELAY_TRY(size_t got,
              fs_.Read(file, 0,
                       std::span(buffer).first(static_cast<size_t>(before.size) + 1)));
    length = got;
    if (got < before.size) {
      BELAY_TRY(size_t rest,
                ReadFull(fs_, file, got,
                         std::span(buffer).subspan(
                             got, static_cast<size_t>(before.size) - got + 1)));
      length += rest;
    }
    BELAY_TRY(FileStat after, fs_.Stat(file));
    again =
        length != before.size || Fingerprint(after, key_) != Fingerprint(before, key_);
    if (BELAY_MUTANT("ignore-change-while-reading")) again = false;
    length = std::min<uint64_t>(length, before.size);
    // Until it is captured the entry has the id that the cache knew.
    auto put =
        sink_.PutChanged(ByteSpan(buffer).first(static_cast<size_t>(length)), e.id);
    if (!put.ok()) return OfTheStore(std::move(put).error());
    id = *put;
  } else {
    bool over = false;
    std::optional<Error> read_failed;
    auto put = sink_.PutStream([&](std::span<std::byte> out) -> Result<size_t> {
      auto got = fs_.Read(file, length, out);
      if (!got.ok()) {
        read_failed = got.error();
        return std::move(got).error();
      }
      length += *got;
      done_bytes_.fetch_add(*got, std::memory_order_relaxed);
      if (std::this_thread::get_id() == main_thread_)
        Report(ScanProgress::Step::kCapture);
      if (length > request_.max_file_size) {
        over = true;
        return size_t{0};
      }
      return *got;
    });
    if (over) return left_out(Skip::kTooLarge);
    if (read_failed) return std::move(*read_failed);
    if (!put.ok()) return OfTheStore(std::move(put).error());
    id = *put;
    BELAY_TRY(FileStat after, fs_.Stat(file));
    again =
        length != before.size || Fingerprint(after, key_) != Fingerprint(before, key_);
    done_bytes_.fetch_sub(length, std::memory_order_relaxed);
  }
  done_bytes_.fetch_add(length, std::memory_order_relaxed);
  BELAY_TRY(std::string xattrs, CaptureXattrs(file));
  if (!xattrs.empty()) capture.aux = std::make_unique<std::string>(std::move(xattrs));
  e.id = id;
  e.size = length;
  e.print = Fingerprint(before, key_);
  e.mode = static_cast<uint16_t>(before.mode);
  e.uid = before.uid;
  e.gid = before.gid;
  e.why = Skip::kNone;
  e.flags &= static_cast<uint8_t>(~CacheEntry::kRacy);
  if (IsRacy(before, now)) e.flags |= CacheEntry::kRacy;
  return Ok();
}

Result<std::string> Scan::CaptureXattrs(const Fd& file) {
  BELAY_TRY(std::vector<std::string> names, fs_.ListXattrs(file));
  std::erase_if(names, [](const std::string& n) { return !KeepsXattr(n); });
  if (names.empty()) return std::string();
  std::sort(names.begin(), names.end());
  std::vector<std::pair<std::string, Bytes>> all;
  for (std::string& name : names) {
    auto value = fs_.GetXattr(file, name);
    if (!value.ok()) {
      if (value.error().sys == ENODATA) continue;  // removed meanwhile: ctime tells
      return std::move(value).error();
    }
    all.push_back({std::move(name), std::move(*value)});
  }
  if (all.empty()) return std::string();
  auto put = sink_.PutContent(EncodeXattrs(all));
  if (!put.ok()) return OfTheStore(std::move(put).error());
  return std::string(IdText(*put));
}

bool KeepsXattr(std::string_view name) {
  return name.starts_with("user.") || name == "system.posix_acl_access" ||
         name == "system.posix_acl_default" || name == "security.capability" ||
         name.starts_with("trusted.");
}

Bytes EncodeXattrs(const std::vector<std::pair<std::string, Bytes>>& sorted) {
  Bytes out;
  ByteWriter writer(out);
  writer.Varint(sorted.size());
  for (const auto& [name, value] : sorted) {
    writer.Sized(name);
    writer.Sized(value);
  }
  return out;
}

Result<std::vector<std::pair<std::string, Bytes>>> DecodeXattrs(ByteSpan bytes) {
  ByteReader in(bytes);
  std::vector<std::pair<std::string, Bytes>> all;
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left) {
    std::string name(AsText(in.Sized()));
    ByteSpan value = in.Sized();
    if (in.failed() || (!all.empty() && all.back().first >= name) ||
        !KeepsXattr(name) || name.find('\0') != std::string::npos)
      return Error(Errc::kCorrupt, "extended attributes that make no sense");
    all.push_back({std::move(name), Bytes(value.begin(), value.end())});
  }
  if (!in.done() || all.empty())
    return Error(Errc::kCorrupt, "extended attributes that make no sense");
  return all;
}

// --- build ---------------------------------------------------------------------------

Status Scan::Build() {
  for (size_t i = order_.size(); i-- > 0;) BELAY_OK(BuildNode(*order_[i]));
  summary_.tree = root_->tree();
  summary_.late = late_;
  for (Node* node : order_) {
    if (node->gone || node->why != Skip::kNone) continue;
    const DirView view = node->view();
    summary_.files += view.head->files;
    summary_.bytes += view.head->bytes;
    if (node->work_tree)
      summary_.work_trees.push_back({node->path(), *node->work_tree});
    if ((view.head->flags & BlockHead::kHasSkipped) == 0) continue;
    for (const CacheEntry& e : view.entries) {
      if (!IsSaid(e)) continue;
      if (e.why != Skip::kIgnored) {
        summary_.skipped.push_back({Joined(node->path(), view.NameOf(e)), e.why});
        if (e.why == Skip::kPurged) continue;  // its bytes must not come back this way
        if (view.NameOf(e) != kGitignore && view.NameOf(e) != kBelayignore) continue;
      }
      // A rule file that is ignored itself, or too large for the tree: the rules of
      // this state need its bytes.
      BELAY_TRY(DirRules::Ptr rules, RulesOf(*node));
      const PatternFile* file =
          view.NameOf(e) == kGitignore ? rules->gitignore() : rules->belayignore();
      if (file != nullptr)
        summary_.loose_rules.push_back(
            {Joined(node->path(), view.NameOf(e)), file->bytes()});
    }
  }
  std::sort(summary_.skipped.begin(), summary_.skipped.end(),
            [](const SkippedPath& a, const SkippedPath& b) { return a.path < b.path; });
  std::sort(summary_.loose_rules.begin(), summary_.loose_rules.end(),
            [](const RuleBytes& a, const RuleBytes& b) { return a.name < b.name; });
  std::sort(summary_.work_trees.begin(), summary_.work_trees.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return Ok();
}

// Children are ready. Makes the tree of a directory that changed, or whose children
// did.
Status Scan::BuildNode(Node& node) {
  if (node.gone || node.why != Skip::kNone) return Ok();
  if (node.attributes_unknown) DraftOf(node).head.flags |= BlockHead::kRacy;
  for (Node* child : node.children) {
    const CacheEntry& old = node.view().entries[child->entry];
    if (!child->draft && !child->gone && child->why == Skip::kNone &&
        old.kind == CacheKind::kDirectory && old.why == Skip::kNone &&
        old.mode == child->mode && old.uid == child->uid && old.gid == child->gid &&
        old.id == child->known.head->tree)
      continue;  // as nearly all are
    CacheEntry now = old;
    std::string_view aux = node.view().AuxOf(old);
    if (child->gone) {
      now.kind = CacheKind::kNone;
      now.why = Skip::kNone;
    } else if (child->why != Skip::kNone) {
      now.kind = CacheKind::kNone;
      now.why = child->why;
      // Of a git directory its fingerprint tells whether it may still be one; others
      // are looked at each time.
      now.print = child->print;
      now.flags = child->print != 0 ? 0 : CacheEntry::kRacy;
    } else {
      now.id = child->tree();
      now.mode = static_cast<uint16_t>(child->mode);
      now.uid = child->uid;
      now.gid = child->gid;
      if (child->listed)
        now.why =
            child->attributes_unknown && !BELAY_MUTANT("unread-attributes-are-none")
                ? Skip::kNoAttributes
                : Skip::kNone;
      if (now.why == Skip::kNoAttributes) {
        // As they were known last: so that they do not look removed. That this is not
        // known is listed, and the directory looked at again next time.
        BELAY_TRY(bool lost, AttributesLost(*child));
        if (lost) aux = {};
      } else if (child->listed) {
        aux = child->xattrs ? std::string_view(*child->xattrs) : std::string_view();
      }
    }
    const bool same = now.kind == old.kind && now.why == old.why && now.id == old.id &&
                      now.mode == old.mode && now.uid == old.uid &&
                      now.gid == old.gid && aux == node.view().AuxOf(old);
    if (same) continue;
    std::string kept(aux);
    DirDraft& draft = DraftOf(node);
    CacheEntry& e = draft.entries[child->entry];
    const uint64_t block = e.size;
    const uint32_t name_at = e.name_at, aux_at = e.aux_at;
    const uint16_t aux_length = e.aux_length;
    e = now;
    e.size = block;
    e.name_at = name_at;
    e.aux_at = aux_at;
    e.aux_length = aux_length;
    draft.SetAux(e, kept);
    if (child->gone) draft.head.flags |= BlockHead::kRacy;
  }
  // The rules that were obeyed, here and below, are those of the files as they are
  // recorded? Unless they changed, they are those of the cache.
  bool same = true;
  for (size_t i = 0; i < 2; ++i) {
    auto print_in = [&](const DirView& view) -> uint64_t {
      const CacheEntry* e = view.head == nullptr
                                ? nullptr
                                : view.Find(i == 0 ? kGitignore : kBelayignore);
      return e != nullptr && e->has(CacheEntry::kRuleFile) ? e->print : 0;
    };
    if (!node.draft && !node.rules) break;  // nothing was obeyed anew, nothing changed
    const uint64_t now = print_in(node.view());
    if (node.rules && now != node.rule_prints[i]) same = false;
    if (!node.rules_changed && now != print_in(node.known)) same = false;
  }
  if (node.work_tree) {
    WorkTreeFacts& facts = *node.work_tree;
    std::lock_guard guard(facts.late->mutex);
    if (facts.late->what) {
      facts.trouble.push_back(*facts.late->what);
      facts.index_unknown = true;
      same = false;
    }
  }
  const uint32_t racy =
      same || BELAY_MUTANT("forget-raced-rules") ? 0 : BlockHead::kRulesRacy;
  if ((node.view().head->flags & BlockHead::kRulesRacy) != racy) {
    BlockHead& head = DraftOf(node).head;
    head.flags = (head.flags & ~BlockHead::kRulesRacy) | racy;
  }
  if (!node.draft) return Ok();
  DirDraft& draft = *node.draft;
  Tree tree;
  draft.head.files = draft.head.bytes = 0;
  draft.head.flags &= ~(BlockHead::kHasSkipped | BlockHead::kHasRuleFiles);
  for (const CacheEntry& e : draft.entries) {
    if (e.has(CacheEntry::kRuleFile)) draft.head.flags |= BlockHead::kHasRuleFiles;
    if (IsSaid(e)) draft.head.flags |= BlockHead::kHasSkipped;
    std::optional<TreeEntry> entry = EntryInTree(draft.view(), e);
    if (!entry) continue;
    if (e.kind != CacheKind::kDirectory) {
      ++draft.head.files;
      draft.head.bytes += entry->size;
    }
    tree.entries.push_back(std::move(*entry));
  }
  // What it was, as far as the cache knows: most of it is the same.
  Tree before;
  if (node.known.head != nullptr)
    for (const CacheEntry& e : node.known.entries)
      if (auto entry = EntryInTree(node.known, e))
        before.entries.push_back(std::move(*entry));
  auto put = sink_.PutChangedTree(tree, before);
  if (!put.ok()) return Context(std::move(put).error(), node.path());
  draft.head.tree = *put;
  return Ok();
}

// --- what changed
// ---------------------------------------------------------------------

namespace {

// One path that is in one of two trees only, with everything below it.
class TreeCounter {
 public:
  using Disk = std::function<bool(const std::string& path, bool directory)>;
  TreeCounter(const Scan::TreeReader& read, Disk disk, const ChangeVisitor& visit,
              ChangeCounts& counts)
      : read_(read), disk_(std::move(disk)), visit_(visit), counts_(counts) {}

  void Count(std::string_view path, Change change) {
    if (visit_) visit_(path, change);
    switch (change) {
      case Change::kAdded:
        ++counts_.added;
        break;
      case Change::kModified:
        ++counts_.modified;
        break;
      case Change::kDeleted:
        ++counts_.deleted;
        break;
    }
  }
  // A directory counts by what is in it, an empty one by itself. `gone`: it is known
  // not to be there; else it may only be covered no longer.
  Status Deleted(std::string path, const TreeEntry& entry, bool gone) {
    struct Old {
      std::string path;
      TreeEntry entry;
      bool gone;
    };
    std::vector<Old> stack;
    stack.push_back(
        {std::move(path), entry, gone || BELAY_MUTANT("ignored-is-deleted")});
    while (!stack.empty()) {
      Old at = std::move(stack.back());
      stack.pop_back();
      const bool was_dir = at.entry.kind == EntryKind::kDirectory;
      if (!at.gone) {
        at.gone = !disk_(at.path, was_dir);
        if (!at.gone && !was_dir) continue;
      }
      if (!was_dir) {
        Count(at.path, Change::kDeleted);
        continue;
      }
      BELAY_TRY(Tree tree, read_(at.entry.id));
      if (tree.entries.empty() && at.gone) Count(at.path, Change::kDeleted);
      for (TreeEntry& e : tree.entries) {
        std::string below = Joined(at.path, e.name);
        stack.push_back({std::move(below), std::move(e), at.gone});
      }
    }
    return Ok();
  }

 private:
  const Scan::TreeReader& read_;
  const Disk disk_;
  const ChangeVisitor& visit_;
  ChangeCounts& counts_;
};

bool SameAttributes(const CacheEntry& e, std::string_view aux, const TreeEntry& base) {
  if (e.mode != base.mode || e.uid != base.uid || e.gid != base.gid) return false;
  if (e.kind == CacheKind::kSymlink) return aux == base.target;
  return base.xattrs.is_zero() ? aux.empty() : aux == IdText(base.xattrs);
}

EntryKind ToEntryKind(CacheKind kind) {
  return kind == CacheKind::kFile      ? EntryKind::kFile
         : kind == CacheKind::kSymlink ? EntryKind::kSymlink
                                       : EntryKind::kDirectory;
}

}  // namespace

// What cannot be looked at counts as there.
bool Scan::IsStillThere(const std::string& path, bool directory) const {
  auto below = RelPath::Parse(path);
  if (!below.ok()) return false;
  auto there = fs_.OpenBeneath(root_fd_, *below, {.access = OpenMode::Access::kPath});
  if (!there.ok()) return !IsGone(there.error());
  auto stat = fs_.Stat(*there);
  return stat.ok() && (stat->type == FileType::kDirectory) == directory;
}

Result<ChangeCounts> Scan::ChangesSince(const ObjectId& base, const TreeReader& read,
                                        const ChangeVisitor& visit) const {
  ChangeCounts counts;
  if (base == root_->tree()) return counts;
  TreeCounter counter(
      read,
      [this](const std::string& path, bool directory) {
        return IsStillThere(path, directory);
      },
      visit, counts);
  // Pairs of directories that differ; a null tree: everything here is new.
  std::vector<std::pair<const Node*, std::optional<ObjectId>>> stack;
  stack.push_back({root_, base.is_zero() ? std::nullopt : std::optional(base)});
  while (!stack.empty()) {
    auto [node, base_id] = stack.back();
    stack.pop_back();
    Tree tree;
    if (base_id && node->known.head != nullptr &&
        (node->known.head->tree == *base_id || BELAY_MUTANT("cache-for-any-tree"))) {
      // What the cache knew is that very tree.
      for (const CacheEntry& e : node->known.entries)
        if (auto entry = EntryInTree(node->known, e))
          tree.entries.push_back(std::move(*entry));
    } else if (base_id) {
      BELAY_TRY(tree, read(*base_id));
    }
    const DirView view = node->view();
    const std::string path = node->path();
    auto old = tree.entries.begin();
    size_t child = 0;
    bool any = false;
    for (size_t i = 0; i < view.entries.size(); ++i) {
      const CacheEntry& e = view.entries[i];
      if (!InTree(e)) continue;
      any = true;
      const std::string_view name = view.NameOf(e);
      for (; old != tree.entries.end() && old->name < name; ++old)
        BELAY_OK(counter.Deleted(Joined(path, old->name), *old, false));
      const TreeEntry* before = nullptr;
      if (old != tree.entries.end() && old->name == name) before = &*old++;
      if (before != nullptr && before->kind != ToEntryKind(e.kind)) {
        BELAY_OK(counter.Deleted(Joined(path, name), *before, true));
        before = nullptr;
      }
      if (e.kind != CacheKind::kDirectory) {
        const std::string_view aux = view.AuxOf(e);
        if (before == nullptr)
          counter.Count(Joined(path, name), Change::kAdded);
        else if (!SameAttributes(e, aux, *before) ||
                 (e.kind == CacheKind::kFile && e.id != before->id))
          counter.Count(Joined(path, name), Change::kModified);
        continue;
      }
      if (before != nullptr && !SameAttributes(e, view.AuxOf(e), *before))
        counter.Count(Joined(path, name), Change::kModified);
      if (before != nullptr && before->id == e.id) continue;
      while (child < node->children.size() && node->children[child]->entry < i) ++child;
      BELAY_CHECK(child < node->children.size() && node->children[child]->entry == i);
      stack.push_back({node->children[child],
                       before != nullptr ? std::optional(before->id) : std::nullopt});
    }
    for (; old != tree.entries.end(); ++old)
      BELAY_OK(counter.Deleted(Joined(path, old->name), *old, false));
    if (!any && !base_id && node != root_) counter.Count(path, Change::kAdded);
  }
  return counts;
}

Status Scan::SaveCache(const BatchPlace& place) {
  if (request_.cache_dir == nullptr) return Ok();
  const bool any = std::any_of(order_.begin(), order_.end(), [](const Node* node) {
    return node->draft != nullptr && !node->gone && node->why == Skip::kNone;
  });
  if (!any && cache_.config_key() == config_key_) return Ok();
  std::vector<StatCache::Dir> dirs;
  dirs.reserve(order_.size());
  for (Node* node : order_) {
    if (node->gone || node->why != Skip::kNone) continue;
    node->saved_as = static_cast<uint32_t>(dirs.size());
    dirs.push_back({.block = node->known.head != nullptr ? node->block : 0,
                    .draft = node->draft.get(),
                    .parent = node->parent == nullptr ? 0 : node->parent->saved_as,
                    .entry = static_cast<uint32_t>(node->entry)});
  }
  return cache_.Save(fs_, *request_.cache_dir,
                     {.root = request_.root_id,
                      .generation = request_.generation,
                      .config_key = config_key_,
                      .tree = summary_.tree,
                      .key = key_,
                      .place = place},
                     dirs);
}

}  // namespace belay
