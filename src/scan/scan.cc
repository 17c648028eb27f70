#include "scan/scan.h"

#include <algorithm>

#include "base/fast_hash.h"
#include "base/mutant.h"
#include "scan/scan_internal.h"

namespace belay {

namespace {
Result<Bytes> EncodeTree(const DirView& view) {
  size_t count = 0;
  for (const CacheEntry& e : view.entries) count += InTree(e) ? 1 : 0;
  TreeEncoder encoder(count);
  for (const CacheEntry& e : view.entries)
    if (auto entry = EntryInTree(view, e)) BELAY_OK(encoder.Add(*entry));
  return encoder.Take();
}
}  // namespace

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
    if (!node.draft && !node.obeyed) break;  // nothing was obeyed anew, nothing changed
    const uint64_t now = print_in(node.view());
    if (node.obeyed && now != node.rule_prints[i]) same = false;
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
  if (node.fresh && node.is_late && !BELAY_MUTANT("made-late-was-there") &&
      std::ranges::none_of(draft.entries, &CacheEntry::covered)) {
    node.why = Skip::kChangedLate;
    return Ok();
  }
  draft.head.files = draft.head.bytes = 0;
  draft.head.flags &= ~(BlockHead::kHasSkipped | BlockHead::kHasRuleFiles);
  for (const CacheEntry& e : draft.entries) {
    if (e.has(CacheEntry::kRuleFile)) draft.head.flags |= BlockHead::kHasRuleFiles;
    if (IsSaid(e)) draft.head.flags |= BlockHead::kHasSkipped;
    if (e.kind != CacheKind::kFile && e.kind != CacheKind::kSymlink) continue;
    ++draft.head.files;
    if (e.kind == CacheKind::kFile) draft.head.bytes += e.size;
  }
  auto encoding = EncodeTree(draft.view());
  if (!encoding.ok()) return Context(std::move(encoding).error(), node.path());
  // What it was, as far as the cache knows: most of it is the same.
  auto put = sink_.PutEncodedTree(std::move(*encoding), [&node] {
    if (node.known.head == nullptr) return Bytes();
    auto before = EncodeTree(node.known);
    return before.ok() ? std::move(*before) : Bytes();
  });
  if (!put.ok()) return Context(std::move(put).error(), node.path());
  draft.head.tree = *put;
  return Ok();
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
