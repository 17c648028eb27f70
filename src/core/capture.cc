#include "core/capture.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/capped_sink.h"
#include "core/chat.h"
#include "core/failures.h"
#include "core/git_authors.h"
#include "core/last_failure.h"
#include "core/lineage.h"
#include "core/retention.h"
#include "core/roots.h"
#include "core/space.h"
#include "core/state_view.h"
#include "scan/rules_record.h"
#include "store/batch_writer.h"
#include "store/heads.h"
#include "store/inventory.h"
#include "store/unlisted.h"
#include "store/usage.h"

namespace belay {

namespace {

constexpr size_t kManualPerSession = 50;
// How much room is made for a checkpoint at first.
constexpr uint64_t kRoomToBegin = uint64_t{64} << 10;
constexpr int64_t kPatienceForRoomMs = 30'000;

Result<Fd> OpenCacheDir(Store& store) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (dir.ok() || dir.error().code != Errc::kNotFound) return dir;
  Status made = store.fs().MakeDir(store.dir(), StatCache::DirName(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return std::move(made).error();
  return store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
}

// Trees that may not be in the store yet, for whoever wants to read them. Encoded: that
// takes a third.
class RememberingSink final : public ScanSink {
 public:
  explicit RememberingSink(ScanSink& inner) : inner_(inner) {}
  Result<ObjectId> PutContent(ByteSpan content) override {
    return inner_.PutContent(content);
  }
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override {
    return inner_.PutStream(source);
  }
  Result<ObjectId> PutTree(const Tree& tree) override {
    BELAY_TRY(Bytes encoding, EncodeTree(tree));
    return PutEncodedTree(std::move(encoding), [] { return Bytes(); });
  }
  Result<ObjectId> PutEncodedTree(Bytes encoding,
                                  const std::function<Bytes()>& before) override {
    Bytes kept = encoding;
    BELAY_TRY(ObjectId id, inner_.PutEncodedTree(std::move(encoding), before));
    std::lock_guard guard(mutex_);
    trees_.emplace(id, std::move(kept));
    return id;
  }
  Result<bool> HasContent(const ObjectId& id) override { return inner_.HasContent(id); }
  // Null when it was not put. They stay where they are.
  const Bytes* Find(const ObjectId& id) {
    std::lock_guard guard(mutex_);
    auto found = trees_.find(id);
    return found == trees_.end() ? nullptr : &found->second;
  }

 private:
  ScanSink& inner_;
  std::mutex mutex_;
  std::unordered_map<ObjectId, Bytes> trees_;
};

// The first of the paths that changed, by name: what a checkpoint is found by later.
class FirstPaths {
 public:
  void Add(std::string_view path) {
    if (paths_.size() >= kMaxPathsKept && path > *paths_.rbegin()) return;
    paths_.emplace(path);
    if (paths_.size() > kMaxPathsKept) paths_.erase(std::prev(paths_.end()));
  }
  std::vector<std::string> Take() const {
    std::vector<std::string> out;
    size_t bytes = 0;
    for (const std::string& path : paths_) {
      bytes += path.size();
      if (bytes > kMaxPathBytes) break;
      out.push_back(path);
    }
    return out;
  }
  std::string first() const { return paths_.empty() ? "" : *paths_.begin(); }

 private:
  std::set<std::string, std::less<>> paths_;
};

// What people and agents say with a checkpoint; short text is lost in what a record
// takes anyway.
uint64_t TextOf(const CaptureRequest& request) {
  uint64_t bytes = request.description.size();
  for (const auto* text : {&request.name, &request.note, &request.prompt})
    bytes += *text ? (*text)->size() : 0;
  for (const auto& [key, value] : request.meta) bytes += key.size() + value.size();
  return bytes < 1024 ? 0 : bytes;
}

std::string Files(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

// "src/app.ts and 2 more changed", "first checkpoint (1234 files)".
std::string Describe(const ChangeCounts& counts, bool first, uint64_t files,
                     const std::string& one_path, const std::string& of_root) {
  if (first) return "first checkpoint (" + Files(files) + ")";
  const uint64_t total = counts.total();
  if (total == 0) return "nothing changed";
  if (total == 1 && !of_root.empty()) return of_root + " of . changed";
  const std::string_view verb = counts.modified == total  ? " changed"
                                : counts.added == total   ? " added"
                                : counts.deleted == total ? " deleted"
                                                          : " changed";
  std::string text = one_path;
  if (total > 1) text += " and " + std::to_string(total - 1) + " more";
  text += verb;
  return text;
}

// What of the root directory itself is not as the rules record has it: "mode", "owner"
// or nothing.
std::string ChangeOfRoot(const RulesRecord& then, const ScanSummary& now) {
  if (then.mode != now.mode) return "mode";
  return then.uid != now.uid || then.gid != now.gid ? "owner" : "";
}

// What was left out then, and is not now: it is covered, or it is gone. No tree tells
// that it went, since the one before lacks it as well.
std::vector<std::string> NoLongerLeftOut(const RulesRecord& then,
                                         const ScanSummary& now) {
  std::vector<std::string> out;
  if (BELAY_MUTANT("left-out-goes-unseen")) return out;
  for (const SkippedPath& skipped : then.skipped)
    if (!IsHeld(skipped.why) && !IsLeftOut(now.skipped, skipped.path))
      out.push_back(skipped.path);
  return out;
}

// In words; empty when git is as it was, or was not known then.
std::string GitChangeSince(Store& store, const Heads::Last& last, const ObjectId& id,
                           const GitRecord& now) {
  auto before = store.GetState(last.state);
  if (!before.ok() || before->git == id) return {};
  auto record = LoadGitRecord(store, before->git);
  return record.ok() ? DescribeGitChange(*record, now) : std::string();
}

// Repositories in which git moved since the state before; none where what they were is
// not known.
std::vector<std::string> GitMovedSince(Store& store, const State& before,
                                       const ObjectId& id, const GitRecord& now) {
  if (before.git == id) return {};
  auto record = LoadGitRecord(store, before.git);
  return record.ok() ? MovedRepositories(*record, now) : std::vector<std::string>();
}

// A directory that was made anew is known again after a move by what it is now. In a
// batch of its own: whatever somebody said of the root meanwhile (`off`, another place)
// is the last word, and the checkpoint is made all the same.
Status KnowAgain(Store& store, const Root& known, const ScanSummary& now) {
  BELAY_TRY(Heads heads, Heads::Read(store));
  auto entry = std::ranges::find(heads.roots(), known.id,
                                 [](const RootEntry& e) { return e.root.id; });
  if (entry == heads.roots().end() || entry->root.off || entry->root.path != known.path)
    return Ok();
  Root root = entry->root;
  root.dev = now.dev;
  root.ino = now.ino;
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(
      ToRecord(root, RecordId(store.random().NewId()), store.clock().WallMillis()));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit([&]() -> Status {
    BELAY_TRY(bool latest, heads.IsLatest(store, root.id));
    if (latest || BELAY_MUTANT("known-again-though-off")) return Ok();
    return Error(Errc::kConflict, "the root changes meanwhile");
  }));
  return Ok();
}

}  // namespace

bool IsLeftOut(const std::vector<SkippedPath>& skipped, std::string_view path) {
  if (skipped.empty()) return false;
  for (;;) {
    auto at = std::lower_bound(
        skipped.begin(), skipped.end(), path,
        [](const SkippedPath& s, std::string_view p) { return s.path < p; });
    if (at != skipped.end() && at->path == path) return !IsHeld(at->why);
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return false;
    path = path.substr(0, slash);
  }
}

std::shared_ptr<const RuleConfig> RulesFrom(const Settings& settings) {
  return std::make_shared<RuleConfig>(
      RuleLists{.protect = settings.protect,
                .exclude = settings.exclude,
                .secret_patterns = settings.secret_patterns,
                .skip_secrets = settings.secrets == Secrets::kSkip,
                .default_excludes = settings.default_excludes});
}

Result<ScanRequest> ScanRequestFor(Store& store, Catalog& catalog, const Root& root,
                                   const Settings& settings, const GitPlaces& git) {
  BELAY_TRY(std::vector<RootEntry> roots, catalog.Roots());
  return ScanRequestFor(store, roots, root, settings, git);
}

Result<ScanRequest> ScanRequestFor(Store& store, std::span<const RootEntry> roots,
                                   const Root& root, const Settings& settings,
                                   const GitPlaces& git) {
  BELAY_TRY(AbsPath path, AbsPath::Parse(root.path));
  ScanRequest scan{.root = std::move(path),
                   .root_id = root.id,
                   .rules = RulesFrom(settings),
                   .git = git};
  BELAY_TRY(scan.other_roots, RootsInside(roots, root));
  // As the log has it now: whoever asks may have looked the root up before a purge.
  auto known = std::ranges::find(
      roots, root.path, [](const RootEntry& entry) { return entry.root.path; });
  scan.purged = known == roots.end() ? root.purged : known->root.purged;
  auto store_dir = store.fs().RealPath(store.path());
  scan.store_dir = store_dir.ok() ? *store_dir : store.path();
  scan.max_file_size =
      settings.max_file_size.bytes == 0 ? UINT64_MAX : settings.max_file_size.bytes;
  scan.protect_git = settings.git_protect;
  scan.max_files =
      settings.max_files == 0 ? UINT64_MAX : static_cast<uint64_t>(settings.max_files);
  return scan;
}

Status CheckRoom(Store& store, const Settings& settings) {
  BELAY_TRY(Space space, Space::Of(store, settings, /*exact=*/true));
  // The least that a checkpoint takes.
  Status fits = space.Check(1);
  if (fits.ok()) return fits;
  auto some = MayMakeRoom(store, settings);
  if (some.ok() && *some) return Ok();
  // What it would collect first. Less than a fiftieth of a pack is not.
  auto usage = MeasureUsage(store);
  if (!usage.ok() || !usage->damage.empty()) return fits;
  uint64_t garbage =
      usage->reclaimable * 50 >= usage->pack_bytes ? usage->reclaimable : 0;
  auto left = UnlistedPacks(store);  // of a collection that was killed
  auto others = LookAtUnlisted(store);
  if (left.ok() && others.ok() && others->kept.empty())
    for (const PackId& id : *left)
      if (auto stat = store.fs().StatAt(store.packs_dir(), PackFile::FileName(id));
          stat.ok() && std::ranges::find(others->foreign, id) == others->foreign.end())
        garbage += stat->allocated;
  space.Forget(garbage);
  return garbage > 0 && space.Check(1).ok() ? Ok() : fits;
}

namespace {

Captured NotPublished() {
  Captured none;
  none.published = false;
  return none;
}

// What goes on in the root, and what is told of it when the capture is over.
struct InStep {
  InStep(Store& s, const RootId& r, LiveStep* given)
      : store(s), root(r), step(given), live(Live::Load(s, r)) {
    live.Judge(s.clock().WallMillis(), /*by_agent=*/step != nullptr);
  }
  ~InStep() {
    bool news = step != nullptr;
    if (step != nullptr) {
      if (!looked) live.KeepUnwatched();
      const std::vector<LiveCall> before = live.calls();
      step->Done(live, published);
      if (!looked && !BELAY_MUTANT("unseen-calls-did-nothing"))
        live.KeepUnseen(before, root_is_gone);
    }
    if (looked) news = live.Looked(store.clock().WallMillis()) || news;
    if (BELAY_MUTANT("doubts-are-forgotten-first")) (void)live.Save(store, root);
    // Before the calls are forgotten: killed in between, it is said again.
    std::vector<LiveCall> never_ended = live.TakeNeverEnded();
    const Status named = NameOutside(store, root, never_ended);
    if (!named.ok()) {
      CountFailure(store, root, "hook", named.error());
      if (!BELAY_MUTANT("doubts-are-said-once"))
        live.KeepNeverEnded(std::move(never_ended));
    }
    if (news) (void)live.Save(store, root);
  }
  InStep(const InStep&) = delete;
  InStep& operator=(const InStep&) = delete;
  Store& store;
  RootId root;
  LiveStep* step;
  Live live;
  bool published = false;
  bool looked = false;  // at the directory: whose doing all until now is, is recorded
  bool root_is_gone = false;
};

// Alone on the root, in the step that was begun. `needed`: what it takes at least,
// known when there is not so much room.
Result<Captured> CaptureAlone(Store& store, const CaptureRequest& request,
                              InStep& in_step, int64_t began, uint64_t& needed) {
  const Settings& settings = *request.settings;
  BELAY_TRY(Heads heads, Heads::Read(store));
  const std::optional<Heads::Last> last = heads.LastOf(request.root.id);
  BELAY_TRY(ScanRequest scan_request,
            ScanRequestFor(store, heads.roots(), request.root, settings, request.git));
  BELAY_TRY(auto writer, store.Begin());
  scan_request.generation = store.manifest().generation;
  bool lost = false;
  scan_request.still_has = [&](const BatchPlace& place) {
    auto has = StillHas(store, place);
    lost = !has.ok() || !*has;
    return !lost;
  };
  scan_request.strict = request.kind == CheckpointKind::kSafety;
  scan_request.threads = request.threads;
  scan_request.progress = request.progress;
  scan_request.released_ns = request.released_ns;
  auto cache_dir = OpenCacheDir(store);
  if (cache_dir.ok()) scan_request.cache_dir = &*cache_dir;
  std::optional<Space> space;
  const uint64_t text = TextOf(request) * kTextTimes;
  if (request.kind != CheckpointKind::kSafety) {
    BELAY_TRY(space, Space::Of(store, settings, /*exact=*/text != 0));
  }
  CappedSink sink(store, settings, *writer, space);
  struct Needed {
    const CappedSink& sink;
    uint64_t text;
    uint64_t& out;
    ~Needed() { out = sink.needed() + text; }
  } on_return{sink, text, needed};
  BELAY_OK(sink.Check(BELAY_MUTANT("text-over-the-cap") ? 0 : text));

  // 2. Look at the directory; what is new goes into the batch.
  RememberingSink remembering(sink);
  ScanSink& scan_sink = request.amend ? static_cast<ScanSink&>(remembering) : sink;
  BELAY_TRY(auto scan, Scan::Run(store.fs(), store.clock(), store.random(),
                                 scan_request, scan_sink));
  const ScanSummary& summary = scan->summary();
  BELAY_TRY(Node rules, EncodeRules(MakeRulesRecord(scan_request, summary), sink));
  State state{.tree = summary.tree, .git = {}, .rules = {}};
  GitCapture git(store, scan_request);
  BELAY_TRY(state.git,
            git.Run(summary, writer.get(), sink, last,
                    request.released_ns == nullptr ? 0 : request.released_ns->load()));
  BELAY_OK(sink.Full());
  std::vector<ObjectKey> more_refs;
  std::vector<ExternalFile> external;
  if (request.amend) {
    Draft draft{.writer = *writer,
                .sink = sink,
                .scan = summary,
                .trees = [&](const ObjectId& id) -> Result<Tree> {
                  if (const Bytes* tree = remembering.Find(id))
                    return DecodeTree(*tree);
                  return store.GetTree(id);
                },
                .tree = summary.tree,
                .git = git.record()};
    BELAY_OK(request.amend(draft));
    if (!draft.publish) {
      Captured none = NotPublished();
      none.tree = summary.tree;
      none.skipped = summary.skipped;
      none.scan = summary;
      none.git = git.record();
      return none;
    }
    state.tree = draft.tree;
    more_refs = std::move(draft.more_refs);
    external = std::move(draft.external);
    for (const ObjectKey& key : RefsOf(external)) more_refs.push_back(key);
    BELAY_OK(sink.Full());
  }
  BELAY_TRY(state.rules, writer->PutObject(ObjectType::kNode, EncodeNode(rules)));
  BELAY_TRY(ObjectId state_id,
            writer->PutObject(ObjectType::kState, EncodeState(state)));

  // 3. What changed since the checkpoint before. One that cannot be read is damage for
  //    `belay verify` to name, no reason to have no checkpoint now.
  Captured captured;
  ChangeCounts counts;
  FirstPaths paths;
  // A program under `belay run` has just ended.
  if (request.tool_name && !request.session)
    in_step.live.AddUnheard(
        {.author = {.kind = Author::Kind::kRun, .tool_name = request.tool_name}});
  WhoWrote who(in_step.live);
  uint64_t left_out = 0;  // not in the tree any more, and not deleted
  std::string of_root;
  std::vector<std::string> git_moved;
  const bool first = !last;
  if (!first) {
    auto before = store.GetState(last->state);
    if (before.ok()) {
      git_moved = GitMovedSince(store, *before, state.git, git.record());
      auto changed = scan->ChangesSince(
          before->tree, [&](const ObjectId& id) { return store.GetTree(id); },
          [&](std::string_view path, Change change) {
            if (change == Change::kDeleted && IsLeftOut(summary.skipped, path)) {
              ++left_out;
              return;
            }
            paths.Add(path);
            who.Add(path);
          });
      if (changed.ok()) {
        counts = *changed;
        counts.deleted -= std::min(left_out, counts.deleted);
        if (before->rules != state.rules && !before->rules.is_zero()) {
          const auto were = LoadRules(store, before->rules);
          if (were.ok()) {
            of_root = ChangeOfRoot(*were, summary);
            if (!of_root.empty()) who.Add(".");
            for (const std::string& path : NoLongerLeftOut(*were, summary))
              who.Add(path);
          }
        }
        counts.directories = std::min(counts.directories, counts.total());
        if (!of_root.empty()) counts.Add(Change::kModified, true);
      } else
        captured.warnings.push_back("the checkpoint before cannot be read: " +
                                    changed.error().what);
    } else {
      captured.warnings.push_back("the checkpoint before cannot be read: " +
                                  before.error().what);
    }
  } else {
    BELAY_TRY(counts, scan->ChangesSince({}, {}, [&](std::string_view path, Change) {
      paths.Add(path);
    }));
  }

  // 4. Publish: one batch, one flush.
  Checkpoint& c = captured.checkpoint;
  c.id = RecordId(store.random().NewId());
  c.root = request.root.id;
  c.made_ms = store.clock().WallMillis();
  c.state = state_id;
  c.kind = request.kind;
  c.name = request.name;
  c.note = request.note;
  c.description = request.description.empty()
                      ? Describe(counts, first, summary.files, paths.first(), of_root)
                      : request.description;
  if (request.description.empty() && !first && counts.total() == 0) {
    if (std::string moved = GitChangeSince(store, *last, state.git, git.record());
        !moved.empty())
      c.description = std::move(moved);
  }
  c.session = request.session;
  c.agent = request.agent;
  c.subagent = request.subagent;
  c.prompt = request.prompt;
  c.message_id = request.message_id;
  c.message_index = request.message_index;
  c.tool_name = request.tool_name;
  c.tool_use_id = request.tool_use_id;
  c.turn = request.turn;
  c.meta = request.meta;
  c.paths = paths.Take();
  // Where nobody tells what is at work, the checkpoint's own words are all there is.
  // One that saw no change says which one it is like: when that is let go, it shows
  // what that one did.
  if (request.step != nullptr || !in_step.live.sessions().empty()) {
    c.by = who.Take();
    if (!git_moved.empty()) c.by.push_back({who.rest(), std::move(git_moved)});
    if (last) c.since = last->id;
  }
  c.more_refs = std::move(more_refs);
  c.external = std::move(external);
  c.partial = summary.late;
  c.files = summary.files;
  c.bytes = summary.bytes;
  c.added = counts.added;
  c.modified = counts.modified;
  c.deleted = counts.deleted;
  c.changed_dirs = counts.directories;
  c.stored_bytes = writer->bytes_so_far();
  c.took_us = static_cast<uint64_t>(store.clock().SteadyNanos() - began) / 1000;
  captured.same_state = last && last->state == state_id;
  std::optional<std::vector<LogRecord>> more;
  if (request.step != nullptr) {
    if (first) c.by = {{{Author()}, {}}};  // it was all there before anybody looked
    more = request.step->Settle(in_step.live, c, captured.same_state);
    if (!more) {
      in_step.looked = true;
      captured.published = false;
      captured.tree = state.tree;
      return captured;
    }
  }
  writer->Add(ToRecord(c));  // the first of them: its number is the batch's
  if (more)
    for (LogRecord& record : *more) writer->Add(std::move(record));
  BELAY_TRY(auto published, writer->Commit());
  c.seq = published.first_seq;
  // What was seen and is in no checkpoint is for the next look to tell whose it is.
  in_step.looked = in_step.published = true;
  in_step.live.Vouch(c);

  // 5. Only now may the cache rely on what was stored. Without it the next checkpoint
  //    is slower, not wrong.
  (void)scan->SaveCache(published.place);
  git.SaveCache(published.place);
  // Without this it is known by what it was, and the next one tries again.
  for (const RootEntry& entry : heads.roots())
    if (entry.root.id == request.root.id && entry.root.path == request.root.path &&
        (entry.root.dev != summary.dev || entry.root.ino != summary.ino))
      (void)KnowAgain(store, request.root, summary);

  if (lost) {
    auto damage = GlanceAtPacks(store);
    if (damage.ok() && !damage->empty())
      captured.warnings.push_back(
          "the store is damaged: " + damage->front() +
          "; what of it is still in the directory was stored again; run: belay verify");
  }
  captured.tree = state.tree;
  captured.skipped = summary.skipped;
  for (const SkippedPath& path : summary.skipped) {
    const std::string_view name =
        std::string_view(path.path).substr(path.path.rfind('/') + 1);
    if (IsHeld(path.why) || (name != ".gitignore" && name != ".belayignore")) continue;
    captured.warnings.push_back(EscapeForDisplay(path.path) + " is not obeyed (" +
                                std::string(SkipName(path.why)) +
                                "): what it leaves out is covered");
  }
  for (const ScanSummary::AtPath& top : summary.work_trees)
    for (const std::string& trouble : top.facts.trouble)
      captured.warnings.push_back(trouble);
  captured.scan = summary;
  captured.git = git.record();
  for (const GitRepoRecord& repo : captured.git.repositories)
    if (!repo.trouble.empty())
      captured.warnings.push_back(
          "the state of git" +
          (repo.path.empty() ? "" : " in " + EscapeForDisplay(repo.path)) +
          " is not kept: " + repo.trouble);
  for (const GitRepoRecord& repo : captured.git.repositories)
    if (!repo.whole.trouble.empty())
      captured.warnings.push_back(
          "git.protect does not cover all of git" +
          (repo.path.empty() ? "" : " in " + EscapeForDisplay(repo.path)) + ": " +
          repo.whole.trouble);
  return captured;
}

// Manual checkpoints of a session are limited.
Result<bool> HasAllItMayHave(Catalog& catalog, const RootId& root,
                             const std::string& session) {
  BELAY_TRY(auto mine, catalog.ListCheckpoints({.root = root,
                                                .session = session,
                                                .kind = CheckpointKind::kManual,
                                                .limit = kManualPerSession}));
  return mine.size() >= kManualPerSession;
}

// As the agent at work there would have it; nobody asked for a session, so that one
// that has all it may have keeps nobody from making it.
Result<std::optional<CaptureRequest>> OfActiveSession(Store& store,
                                                      const CaptureRequest& given) {
  const Live live = Live::Load(store, given.root.id);
  const LiveSession* at = live.Active(store.clock().WallMillis());
  if (at == nullptr) return std::optional<CaptureRequest>();
  BELAY_TRY(auto catalog, Catalog::Open(store));
  // What a subagent does is its parent's, which has the turns.
  BELAY_TRY(const std::string main, WhoseSubagent(*catalog, at->id));
  if (const LiveSession* parent = live.Find(main)) at = parent;
  CaptureRequest out = given;
  out.session = at->id;
  if (!at->agent.empty()) out.agent = at->agent;
  if (at->turn > 0) {
    out.turn = at->turn;
    out.message_index = at->message_index;
    if (!out.message_id && given.settings->transcripts != Transcripts::kOff)
      out.message_id = at->message || at->message_index ? at->message : at->anchor;
  }
  // Taken back since it was heard of last: of what goes on.
  BELAY_TRY(const Chats chats, Chats::Read(*catalog));
  const Chats::GoesOn on = chats.Follow(at->id);
  if (on.by != nullptr && at->seen_ms <= on.by->made_ms) {
    if (on.anew) return std::optional<CaptureRequest>();
    out.session = on.session;
    out.message_id = given.message_id;
    out.message_index.reset();
    out.turn.reset();
    if (on.by->chat->inherited > 0) out.turn = on.by->chat->inherited;
  }
  BELAY_TRY(const bool full, HasAllItMayHave(*catalog, given.root.id, *out.session));
  if (full) return std::optional<CaptureRequest>();
  return std::optional(std::move(out));
}

Result<Captured> CaptureOnce(Store& store, const CaptureRequest& given,
                             uint64_t& needed) {
  const int64_t began = store.clock().SteadyNanos();
  std::optional<CaptureRequest> completed;
  if (given.step != nullptr) completed = given;
  if (given.of_active_session && !given.session) {
    // Without one when that cannot be found out (a damaged catalogue): it is no reason
    // not to make it.
    auto active = OfActiveSession(store, given);
    if (active.ok()) completed = std::move(*active);
  }
  const CaptureRequest& request = completed ? *completed : given;
  if (given.session && given.kind == CheckpointKind::kManual) {
    BELAY_TRY(auto catalog, Catalog::Open(store));
    BELAY_TRY(const bool full,
              HasAllItMayHave(*catalog, given.root.id, *given.session));
    if (full)
      return Error(Errc::kRefused, "this session has " +
                                       std::to_string(kManualPerSession) +
                                       " checkpoints of its own already")
          .WithHint("leave --session out, or name another session");
  }
  // 1. Alone on this root; then the store is kept as it is until we have published.
  HeldLock root_lock;
  if (!request.holds_root_lock) {
    BELAY_TRY(root_lock,
              store.locks().AcquireRoot(request.root.id, request.lock_wait_ms));
  }
  InStep in_step(store, request.root.id, given.step);
  if (given.step != nullptr) {
    BELAY_TRY(bool wanted, given.step->Begin(in_step.live, *completed));
    if (!wanted) return NotPublished();
  }
  Result<Captured> made = CaptureAlone(store, request, in_step, began, needed);
  if (!made.ok() && made.error().code == Errc::kNotFound) {
    auto path = AbsPath::Parse(request.root.path);
    const auto there = path.ok() ? store.fs().OpenDir(*path) : Result<Fd>(Fd());
    in_step.root_is_gone = !there.ok() && there.error().code == Errc::kNotFound;
  }
  // It is told again once there is room; EndStep() tells it when there will be none.
  if (!made.ok() && made.error().code == Errc::kNoSpace &&
      !BELAY_MUTANT("no-second-step"))
    in_step.step = nullptr;
  return made;
}

}  // namespace

namespace {

// There was no room to record it, and it happened all the same.
void EndStep(Store& store, const CaptureRequest& request) {
  auto lock = store.locks().AcquireRoot(request.root.id, request.lock_wait_ms);
  if (lock.ok()) InStep(store, request.root.id, request.step);
}

Result<Captured> CaptureWithRoom(Store& store, const CaptureRequest& request) {
  const Settings& settings = *request.settings;
  store.LimitPacks(Space::PackTarget(settings.store_cap.bytes));
  uint64_t needed = 0;
  Result<Captured> made = CaptureOnce(store, request, needed);
  // Who must be stored whatever the limits say, and who holds the root, lets nothing
  // go.
  if (request.kind == CheckpointKind::kSafety || request.holds_root_lock) return made;
  // Whoever is making room already is waited for: nobody waits for this but a program
  // that goes on without it.
  const int64_t patience_ms = std::max(request.lock_wait_ms, kPatienceForRoomMs);
  const int64_t deadline = store.clock().SteadyNanos() + patience_ms * 1'000'000;
  uint64_t gone = 0;
  int refused = 0;
  // Others may take the room that was made here: then once more.
  while (!made.ok() && made.error().code == Errc::kNoSpace) {
    auto room = MakeRoom(store, settings, std::max(needed, kRoomToBegin), patience_ms);
    if (!room.ok()) break;  // damaged, busy: the first reason stands
    gone += room->checkpoints;
    if (!room->enough && room->checkpoints == 0) break;
    // Room there is, and the system refuses all the same (a quota, a limit for files):
    // letting go does not help. Once more, because others may have let go.
    if (room->checkpoints == 0 && made.error().sys != 0 && refused++ > 0 &&
        !BELAY_MUTANT("spin-at-a-quota"))
      break;
    const bool late = store.clock().SteadyNanos() >= deadline;
    made = CaptureOnce(store, request, needed);
    if (late) break;
  }
  const std::string went =
      std::to_string(gone) + (gone == 1 ? " old automatic checkpoint was let go"
                                        : " old automatic checkpoints were let go");
  if (made.ok() && gone > 0) made->warnings.push_back("the store was full: " + went);
  if (made.ok() || made.error().code != Errc::kNoSpace) return made;
  if (request.step != nullptr) EndStep(store, request);
  Error error = std::move(made).error();
  if (gone > 0) error.what += "; " + went + " in vain";
  return error;
}

}  // namespace

Status TakeStep(Store& store, const Root& root, int64_t lock_wait_ms, LiveStep& step) {
  BELAY_TRY(HeldLock lock, store.locks().AcquireRoot(root.id, lock_wait_ms));
  InStep in_step(store, root.id, &step);
  CaptureRequest request;
  BELAY_TRY(bool wanted, step.Begin(in_step.live, request));
  if (!wanted) return Ok();
  Checkpoint none;
  auto records = step.Settle(in_step.live, none, /*same_state=*/true);
  if (!records || records->empty()) return Ok();
  BELAY_TRY(auto writer, store.Begin());
  for (LogRecord& record : *records) writer->Add(std::move(record));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  in_step.published = true;
  return Ok();
}

Result<Captured> CaptureCheckpoint(Store& store, const CaptureRequest& request) {
  auto captured = CaptureWithRoom(store, request);
  // Why a rollback could not be made is the rollback's to say.
  if (captured.ok() || captured.error().code == Errc::kBusy ||
      request.kind == CheckpointKind::kSafety)
    return captured;
  LastFailure failure{
      .at_ms = store.clock().WallMillis(), .after = {}, .what = captured.error().what};
  if (auto heads = Heads::Read(store); heads.ok())
    if (auto last = heads->LastOf(request.root.id)) failure.after = last->id;
  RememberFailure(store, request.root.id, failure);
  return captured;
}

}  // namespace belay
