#pragma once

// What the sources of Scan share: a directory of a scan (Node), a file that is to be
// read (Capture), what a thread has at hand (Worker), and small questions about cache
// entries and errors.
//
//   scan.cc          from the cache to the trees, and the cache again
//   scan_walk.cc     threads, and which directories are listed; rules
//   scan_visit.cc    one directory: what is known of it, or a listing
//   scan_capture.cc  content and attributes
//   scan_changes.cc  what differs from an earlier tree

#include <cerrno>
#include <condition_variable>
#include <cstring>

#include "scan/scan.h"
#include "store/tree_encoder.h"

namespace belay {

inline constexpr std::string_view kGitignore = ".gitignore",
                                  kBelayignore = ".belayignore", kGit = ".git";

inline bool IsRuleFile(std::string_view name) {
  return name == kGitignore || name == kBelayignore || name == kGit;
}

inline std::string Joined(std::string_view dir, std::string_view name) {
  std::string path;
  path.reserve(dir.size() + 1 + name.size());
  path.append(dir);
  if (!path.empty()) path.push_back('/');
  path.append(name);
  return path;
}

// What says something about this file alone, not about the machine or this process.
inline bool IsAboutTheFile(const Error& error) {
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

inline bool IsGone(const Error& error) {
  return error.sys == ENOENT || error.sys == ENOTDIR || error.sys == ESTALE;
}

inline CacheKind KindOf(FileType type) {
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

inline IndexHint HintOf(const BlockHead& head) {
  return {.print = head.index_print,
          .names = head.index_names,
          .racy = (head.flags & BlockHead::kIndexRacy) != 0};
}

inline const ObjectId& EmptyTreeId() {
  static const ObjectId id = Sha256::Of(*EncodeTree(Tree()));
  return id;
}

// In the tree: a directory that was entered only for what is tracked or protected in it
// is not, when there was nothing.
inline bool InTree(const CacheEntry& e) {
  return e.covered() && !(e.kind == CacheKind::kDirectory &&
                          e.has(CacheEntry::kRestricted) && e.id == EmptyTreeId());
}

// Left out for a reason that is to be listed. Of `.git` everybody knows.
inline bool IsSaid(const CacheEntry& e) {
  return e.why != Skip::kNone &&
         !(e.why == Skip::kGitDir && e.has(CacheEntry::kRuleFile));
}

// As it stands in the tree, where it does.
inline std::optional<TreeEntryView> EntryInTree(const DirView& view,
                                                const CacheEntry& e) {
  if (!InTree(e)) return std::nullopt;
  const std::string_view aux = view.AuxOf(e);
  TreeEntryView entry;
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

inline std::string_view IdText(const ObjectId& id) { return AsText(id.bytes); }

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
  bool obeyed = false;  // `rules` were made, and asked
  bool rules_changed = false;
  bool trusted = false;  // the cache's ids were written under this generation
  bool gone = false;
  bool listed = false;
  bool fresh = false;               // the cache knows that there was no such directory
  bool is_late = false;             // it changed after the release
  bool attributes_unknown = false;  // they could not be read; only when listed
  Skip why = Skip::kNone;           // the directory itself cannot be entered
  uint64_t print = 0;  // of one that is a git directory; 0: look again next time
  uint64_t ino = 0;    // when it was looked at
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

}  // namespace belay
