#include "core/change.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/log_record.h"

namespace belay {

namespace {

constexpr uint64_t kChange = 1, kRootItself = 2;
constexpr uint8_t kHasBefore = 1, kHasAfter = 2;

Error BadChanges(std::string_view what) {
  return {Errc::kCorrupt, "list of changes: " + std::string(what)};
}

void Encode(ByteWriter& out, const PathState& state) {
  out.U8(static_cast<uint8_t>(state.kind));
  out.Varint(state.mode);
  out.Varint(state.uid);
  out.Varint(state.gid);
  if (state.kind == EntryKind::kFile) {
    out.Varint(state.size);
    out.Raw(state.id.span());
  } else if (state.kind == EntryKind::kSymlink) {
    out.Sized(state.target);
  }
  out.U8(state.xattrs.is_zero() ? 0 : 1);
  if (!state.xattrs.is_zero()) out.Raw(state.xattrs.span());
}

Result<PathState> Decode(ByteReader& in) {
  PathState state;
  const uint8_t kind = in.U8();
  if (kind < 1 || kind > 3) return BadChanges("unknown kind");
  state.kind = static_cast<EntryKind>(kind);
  const uint64_t mode = in.Varint(), uid = in.Varint(), gid = in.Varint();
  if (mode > 07777 || uid > UINT32_MAX - 1 || gid > UINT32_MAX - 1)
    return BadChanges("impossible mode or owner");
  state.mode = static_cast<uint32_t>(mode);
  state.uid = static_cast<uint32_t>(uid);
  state.gid = static_cast<uint32_t>(gid);
  if (state.kind == EntryKind::kFile) {
    state.size = in.Varint();
    ByteSpan id = in.Raw(32);
    if (in.failed()) return BadChanges("ends early");
    state.id = ObjectId::FromSpan(id);
    if (state.id.is_zero()) return BadChanges("a file without content");
  } else if (state.kind == EntryKind::kSymlink) {
    state.target = AsText(in.Sized());
    if (state.target.empty() || state.target.size() > 4095 ||
        state.target.find('\0') != std::string::npos)
      return BadChanges("impossible symlink");
  }
  const uint8_t xattrs = in.U8();
  if (xattrs > 1) return BadChanges("unknown flag");
  if (xattrs == 1) {
    ByteSpan id = in.Raw(32);
    if (in.failed()) return BadChanges("ends early");
    state.xattrs = ObjectId::FromSpan(id);
    if (state.xattrs.is_zero()) return BadChanges("no attributes");
  }
  if (in.failed()) return BadChanges("ends early");
  return state;
}

}  // namespace

Status CheckPath(const std::string& bytes) {
  auto path = RelPath::Parse(bytes);
  if (!path.ok()) return BadChanges(path.error().what);
  for (std::string_view name : path->Components())
    if (IsGitAlias(name)) return BadChanges("a path of git's own");
  return Ok();
}

PathState StateOf(const TreeEntry& entry) {
  PathState state = entry;
  state.name.clear();
  if (state.kind == EntryKind::kDirectory) state.id = {};
  return state;
}

PathState RootState(uint32_t mode, uint32_t uid, uint32_t gid) {
  PathState state;
  state.kind = EntryKind::kDirectory;
  state.mode = mode;
  state.uid = uid;
  state.gid = gid;
  return state;
}

bool SameContent(const PathState& a, const PathState& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == EntryKind::kFile) return a.id == b.id;
  return a.kind == EntryKind::kDirectory || a.target == b.target;
}

bool SameAttributes(const PathState& a, const PathState& b) {
  return (a.mode == b.mode || a.kind == EntryKind::kSymlink) && a.uid == b.uid &&
         a.gid == b.gid && a.xattrs == b.xattrs;
}

bool SameState(const std::optional<PathState>& a, const std::optional<PathState>& b) {
  if (!a || !b) return !a && !b;
  return SameContent(*a, *b) && SameAttributes(*a, *b);
}

Node EncodeChanges(const std::vector<PathChange>& sorted) {
  Node node;
  std::set<ObjectKey> refs;
  Bytes root;  // a field of its own, which readers that do not know it pass over
  for (const PathChange& change : sorted) {
    Bytes bytes;
    ByteWriter out(bytes);
    if (!change.path.empty()) out.Sized(change.path);
    out.U8(static_cast<uint8_t>((change.before ? kHasBefore : 0) |
                                (change.after ? kHasAfter : 0)));
    for (const auto* state : {&change.before, &change.after}) {
      if (!*state) continue;
      Encode(out, **state);
      if ((*state)->kind == EntryKind::kFile)
        refs.insert({ObjectType::kBlob, (*state)->id});
      if (!(*state)->xattrs.is_zero())
        refs.insert({ObjectType::kBlob, (*state)->xattrs});
    }
    if (change.path.empty())
      root = std::move(bytes);
    else
      node.fields.Add(kChange, bytes);
  }
  if (!root.empty()) node.fields.Add(kRootItself, root);
  node.refs.assign(refs.begin(), refs.end());
  return node;
}

namespace {

Status DecodeSides(ByteReader& in, PathChange& change) {
  const uint8_t flags = in.U8();
  if (flags == 0 || flags > (kHasBefore | kHasAfter))
    return BadChanges("unknown flags");
  if (flags & kHasBefore) {
    BELAY_TRY(change.before, Decode(in));
  }
  if (flags & kHasAfter) {
    BELAY_TRY(change.after, Decode(in));
  }
  return in.done() ? Ok() : BadChanges("bytes left over");
}

Status CheckGitDirPath(const std::string& bytes) {
  constexpr std::string_view kGit = ".git";
  if (bytes == kGit) return Ok();
  if (!bytes.starts_with(".git/")) return BadChanges("a path outside of .git");
  return CheckPath(bytes.substr(kGit.size() + 1));
}

Result<std::vector<PathChange>> DecodeList(const Node& node,
                                           Status (*check)(const std::string& path)) {
  std::vector<PathChange> out;
  const auto roots = node.fields.All(kRootItself);
  if (roots.size() > 1) return BadChanges("two roots");
  for (ByteSpan raw : roots) {
    ByteReader in(raw);
    PathChange change;
    BELAY_OK(DecodeSides(in, change));
    for (const auto* side : {&change.before, &change.after})
      if (*side &&
          ((*side)->kind != EntryKind::kDirectory || !(*side)->xattrs.is_zero()))
        return BadChanges("a root that is no plain directory");
    out.push_back(std::move(change));
  }
  for (ByteSpan raw : node.fields.All(kChange)) {
    ByteReader in(raw);
    PathChange change;
    change.path = AsText(in.Sized());
    BELAY_OK(check(change.path));
    BELAY_OK(DecodeSides(in, change));
    if (!out.empty() && !(out.back().path < change.path))
      return BadChanges("not in order");
    out.push_back(std::move(change));
  }
  return out;
}

}  // namespace

Result<std::vector<PathChange>> DecodeChanges(const Node& node) {
  return DecodeList(node, CheckPath);
}

Status CheckFits(const std::vector<PathChange>& sorted) {
  for (size_t i = 1; i < sorted.size(); ++i)
    if (!(sorted[i - 1].path < sorted[i].path))
      return Error(Errc::kConflict, "two of " + EscapeForDisplay(sorted[i].path));
  if (BELAY_MUTANT("changes-need-not-fit")) return Ok();
  std::unordered_map<std::string_view, const PathChange*> by_path(sorted.size());
  for (const PathChange& change : sorted) by_path.emplace(change.path, &change);
  auto above = [](std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == path.npos ? std::string_view() : path.substr(0, slash);
  };
  for (auto side : {&PathChange::before, &PathChange::after}) {
    std::string_view checked;  // neighbours mostly share their directory
    for (const PathChange& change : sorted) {
      if (!(change.*side) || above(change.path) == checked) continue;
      checked = above(change.path);
      // The nearest is enough: what is above that is checked for itself.
      for (std::string_view dir = checked; !dir.empty(); dir = above(dir)) {
        auto found = by_path.find(dir);
        if (found == by_path.end()) continue;
        const std::optional<PathState>& state = found->second->*side;
        if (state && state->kind == EntryKind::kDirectory) break;
        return Error(Errc::kConflict, "something is beneath " + EscapeForDisplay(dir) +
                                          ", which is no directory");
      }
    }
  }
  return Ok();
}

Result<std::vector<PathChange>> DecodeGitDirChanges(const Node& node) {
  if (node.fields.has(kRootItself)) return BadChanges("a root");
  return DecodeList(node, CheckGitDirPath);
}

Result<std::vector<PathChange>> DecodeExternalChanges(const Node& node) {
  if (node.fields.has(kRootItself)) return BadChanges("a root");
  BELAY_TRY(auto changes, DecodeList(node, [](const std::string& path) -> Status {
              if (IsExternalPath(path)) return Ok();
              return BadChanges("a path that is no file's outside of the root");
            }));
  for (const PathChange& change : changes)
    for (const auto* side : {&change.before, &change.after})
      if (*side && (*side)->kind == EntryKind::kDirectory)
        return BadChanges("a directory outside of the root");
  return changes;
}

std::vector<PathChange> Reversed(std::vector<PathChange> changes) {
  for (PathChange& change : changes) std::swap(change.before, change.after);
  return changes;
}

}  // namespace belay
