#pragma once

// Test fixtures for restore: a project in memory (RestoreTest) or on a real disk
// (RealRestoreTest), shorthand to edit it, and ways to look into checkpoints.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "support/restore_world.h"
#include "support/temp_dir.h"

namespace belay::test {

class Project {
 public:
  Project(Fs& fs, const AbsPath& top, uint32_t uid)
      : disk_fs(fs), world(fs, top, 1, uid) {
    Must(MakeDirs(fs, top, 0755));
    root = Must(world.Dir());
  }

  void MakeDir(std::string_view path, uint32_t mode = 0755) {
    Parent at = Must(OpenParent(disk_fs, root, P(path)));
    Must(disk_fs.MakeDir(at.dir, at.name, mode));
  }
  // Makes the directories that are missing.
  void Put(std::string_view path, std::string_view content, uint32_t mode = 0644) {
    for (size_t slash = 0; (slash = path.find('/', slash)) != std::string_view::npos;
         ++slash)
      if (!Exists(path.substr(0, slash))) MakeDir(path.substr(0, slash));
    Must(PutFile(disk_fs, root, P(path), content, mode));
  }
  void Link(std::string_view path, std::string_view target) {
    Parent at = Must(OpenParent(disk_fs, root, P(path)));
    Must(disk_fs.Symlink(at.dir, at.name, target));
  }
  void HardLink(std::string_view from, std::string_view to) {
    Parent a = Must(OpenParent(disk_fs, root, P(from)));
    Parent b = Must(OpenParent(disk_fs, root, P(to)));
    Must(disk_fs.Link(a.dir, a.name, b.dir, b.name));
  }
  // A file, a link, or a directory with all that is in it.
  void Remove(std::string_view path) {
    Parent at = Must(OpenParent(disk_fs, root, P(path)));
    if (Must(disk_fs.StatAt(at.dir, at.name)).type == FileType::kDirectory)
      Must(RemoveTree(disk_fs, at.dir, at.name));
    else
      Must(disk_fs.Unlink(at.dir, at.name));
  }
  void Chmod(std::string_view path, uint32_t mode) {
    Fd handle =
        Must(disk_fs.OpenBeneath(root, P(path), {.access = OpenMode::Access::kPath}));
    Must(disk_fs.SetMode(handle, mode));
  }
  void Chown(std::string_view path, uint32_t uid, uint32_t gid) {
    Parent at = Must(OpenParent(disk_fs, root, P(path)));
    Fd handle =
        Must(disk_fs.Open(at.dir, at.name, {.access = OpenMode::Access::kPath}));
    Must(disk_fs.SetOwner(handle, uid, gid));
  }
  void SetXattr(std::string_view path, const std::string& name,
                std::string_view value) {
    Must(disk_fs.SetXattr(Handle(path), name, AsBytes(value)));
  }
  std::string Xattr(std::string_view path, const std::string& name) {
    auto value = disk_fs.GetXattr(Handle(path), name);
    return value.ok() ? std::string(AsText(*value)) : "none";
  }
  bool Exists(std::string_view path) {
    auto at = OpenParent(disk_fs, root, P(path));
    return at.ok() && disk_fs.StatAt(at->dir, at->name).ok();
  }
  FileStat Stat(std::string_view path) {
    Parent at = Must(OpenParent(disk_fs, root, P(path)));
    return Must(disk_fs.StatAt(at.dir, at.name));
  }
  std::string Read(std::string_view path) {
    auto content = GetFile(disk_fs, root, P(path));
    return content.ok() ? *content : content.error().what;
  }
  Fd Handle(std::string_view path) {
    const bool dir = Stat(path).type == FileType::kDirectory;
    return Must(disk_fs.OpenBeneath(root, P(path),
                                    dir ? OpenMode::Directory() : OpenMode::Read()));
  }
  std::string Tree() { return world.Tree(); }

  // --- looking into the store --------------------------------------------------------
  // "path" -> content of a file, "-> target" of a link, "dir" of a directory.
  std::map<std::string, std::string> Holds(const Checkpoint& checkpoint) {
    auto store = Must(world.world.Open());
    std::map<std::string, std::string> out;
    AddTo(*store, Must(store->GetState(checkpoint.state)).tree, "", out);
    return out;
  }
  std::vector<CatalogEntry> Checkpoints() {
    auto opened = Must(world.Open());
    return Must(opened.catalog->ListCheckpoints({.root = opened.root.id}));
  }
  std::vector<Operation> Operations() {
    auto opened = Must(world.Open());
    return Must(ListOperations(*opened.catalog, opened.root.id));
  }
  // The content is in some checkpoint of the project.
  bool IsStoredSomewhere(const std::string& path, const std::string& content) {
    for (const CatalogEntry& entry : Checkpoints()) {
      auto holds = Holds(entry.checkpoint);
      if (auto found = holds.find(path);
          found != holds.end() && found->second == content)
        return true;
    }
    return false;
  }

  Fs& disk_fs;
  RestoreWorld world;
  Fd root;

 private:
  void AddTo(Store& store, const ObjectId& id, const std::string& prefix,
             std::map<std::string, std::string>& out) {
    const belay::Tree tree = Must(store.GetTree(id));
    for (const TreeEntry& entry : tree.entries) {
      const std::string path = prefix + entry.name;
      if (entry.kind == EntryKind::kDirectory) {
        out[path] = "dir";
        AddTo(store, entry.id, path + "/", out);
      } else if (entry.kind == EntryKind::kSymlink) {
        out[path] = "-> " + entry.target;
      } else {
        out[path] =
            std::string(AsText(Must(store.ReadContentBytes(entry.id, 64 << 20))));
      }
    }
  }
};

// "write a, delete b/c": the plan in the command line's words, by path.
inline std::string Steps(const Plan& plan) {
  std::string out;
  for (const Step& step : StepsOf(plan.changes))
    out += (out.empty() ? "" : ", ") + std::string(step.op) + " " +
           ShownPath(step.change->path);
  return out;
}
// "a ignored_then, b secret"
inline std::string Kept(const Plan& plan) {
  std::string out;
  for (const KeptPath& kept : plan.kept)
    out += (out.empty() ? "" : ", ") + kept.path + " " + kept.why;
  return out;
}
inline bool Mentions(const std::vector<std::string>& warnings, std::string_view text) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
    return warning.find(text) != std::string::npos;
  });
}

struct MemoryDisk {
  MemFs disk;
};

class RestoreTest : public ::testing::Test, protected MemoryDisk, public Project {
 protected:
  RestoreTest() : Project(MemoryDisk::disk, AbsPath::Literal("/m"), 1000) {}
};

struct RealDisk {
  TempDir temp;
  RealFs real_fs;
};

class RealRestoreTest : public ::testing::Test, private RealDisk, public Project {
 protected:
  RealRestoreTest() : Project(RealDisk::real_fs, temp.path(), geteuid()) {
    // Nothing is older than this: no time stamp is trusted.
    world.world.clock.SetWallMillis(1'000'000'000'000);
    world.plan.uid = geteuid();
    world.plan.groups = {getegid()};
  }
  using RealDisk::temp;
  std::string PathTo(std::string_view below) {
    return world.project.bytes() + "/" + std::string(below);
  }
};

}  // namespace belay::test
