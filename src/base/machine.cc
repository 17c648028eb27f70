#include "base/machine.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace belay {

namespace {

struct Known {
  uint64_t magic;
  std::string_view name;
  bool network;
  bool pseudo = false;
};

// linux/magic.h and the file systems' own sources.
constexpr Known kKnown[] = {
    {0xef53, "ext4", false},
    {0x58465342, "xfs", false},
    {0x9123683e, "btrfs", false},
    {0x01021994, "tmpfs", false},
    {0x794c7630, "overlayfs", false},
    {0x2fc12fc1, "zfs", false},
    {0xf2f52010, "f2fs", false},
    {0xca451a4e, "bcachefs", false},
    {0x4d44, "vfat", false},
    {0x2011bab0, "exfat", false},
    {0x7366746e, "ntfs3", false},
    {0x73717368, "squashfs", false},
    {0x858458f6, "ramfs", false},
    {0x9660, "iso9660", false},
    {0x7461636f, "ocfs2", false},
    {0x6969, "nfs", true},
    {0x517b, "smb", true},
    {0xfe534d42, "smb2", true},
    {0xff534d42, "cifs", true},
    {0x65735546, "fuse", true},
    {0x01021997, "9p", true},
    {0x00c36400, "ceph", true},
    {0x5346414f, "afs", true},
    {0x47504653, "gpfs", true},
    {0x0bd00bd0, "lustre", true},
    {0x9fa0, "proc", false, true},
    {0x62656572, "sysfs", false, true},
    {0x1cd1, "devpts", false, true},
    {0x27e0eb, "cgroup", false, true},
    {0x63677270, "cgroup2", false, true},
    {0x64626720, "debugfs", false, true},
    {0x74726163, "tracefs", false, true},
    {0x73636673, "securityfs", false, true},
    {0x62656570, "configfs", false, true},
    {0x65735543, "fusectl", false, true},
    {0xcafe4a11, "bpf", false, true},
    {0x6165676c, "pstore", false, true},
    {0xde5e81e4, "efivarfs", false, true},
    {0x42494e4d, "binfmt_misc", false, true},
    {0x19800202, "mqueue", false, true},
    {0xf97cff8c, "selinuxfs", false, true},
    {0x6e736673, "nsfs", false, true},
};

const Known* Find(uint64_t magic) {
  for (const Known& known : kKnown)
    if (known.magic == (magic & 0xffffffffu)) return &known;
  return nullptr;
}

// A file without a name.
int OpenNameless(const char* dir) {
  return open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

}  // namespace

KernelAbilities AskKernel() {
  KernelAbilities out;
  utsname name{};
  if (uname(&name) == 0) out.release = name.release;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root >= 0) {
    long fd = syscall(SYS_openat2, root, ".", &how, sizeof how);
    out.openat2 = fd >= 0;
    if (fd >= 0) close(static_cast<int>(fd));
    close(root);
  }
  struct statx stat {};
  if (statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, STATX_TYPE, &stat) == 0)
    out.statx_mount = (stat.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
  return out;
}

std::optional<bool> CanShareBlocks(const AbsPath& dir) {
  int from = OpenNameless(dir.c_str());
  if (from < 0) return std::nullopt;
  int to = OpenNameless(dir.c_str());
  std::optional<bool> can;
  char block[4096];
  std::memset(block, 'b', sizeof block);
  if (to >= 0 && write(from, block, sizeof block) == sizeof block)
    can = ioctl(to, FICLONE, from) == 0;
  close(from);
  if (to >= 0) close(to);
  return can;
}

std::optional<uint64_t> KernelNumber(const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[32];
  ssize_t length = read(fd, text, sizeof text);
  close(fd);
  uint64_t value = 0;
  if (length <= 0) return std::nullopt;
  auto [end, problem] = std::from_chars(text, text + length, value);
  if (problem != std::errc()) return std::nullopt;
  return value;
}

std::string FileSystemName(uint64_t magic) {
  if (const Known* known = Find(magic)) return std::string(known->name);
  char text[32];
  std::snprintf(text, sizeof text, "type 0x%llx",
                static_cast<unsigned long long>(magic & 0xffffffffu));
  return text;
}

bool IsPseudoFileSystem(uint64_t magic) {
  const Known* known = Find(magic);
  return known != nullptr && known->pseudo;
}

bool IsNetworkFileSystem(uint64_t magic) {
  const Known* known = Find(magic);
  return known != nullptr && known->network;
}

}  // namespace belay
