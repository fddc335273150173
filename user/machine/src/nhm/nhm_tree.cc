// The host's files, as a file system in persistent memory that is made page by page when the
// guest touches it.
//
// NHM_TREE=ADDRESS,SIZE: where the guest's kernel finds the memory (its parameter memmap=SIZE!ADDRESS
// says the same). It holds an erofs (Documentation/filesystems/erofs.rst and fs/erofs/erofs_fs.h
// of the kernel) of blocks of a page. Its root has two entries:
//
//   host    the host's root folder
//   stdin   what nhm_tree_stdin() names
//
// Addresses are given out in this order, and never taken back, because the guest keeps what it
// has read:
//   - a folder's entries get pages for their inodes when the folder is read: one page, or two for a
//     regular file. lstat at this moment says what they are.
//   - a folder's own content gets pages when its inode is read, since the inode has its size.
//   - a file's data get pages when the guest asks where they are. So its inode is the last thing in
//     the first of its two pages, and the index of its blocks, which follows an inode, is the
//     second. Files that are only looked at cost no more than these two.
//
// Data are copied, not mapped: a page stays as the guest first saw it, and a file that became
// shorter meanwhile cannot stop the emulator. The host opens all files as the user that started it.

#include "bochs.h"
#include "cpu/cpu.h"
#include "memory/memory-bochs.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <map>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

#define LOG_THIS genlog->

void nhm_tell(const std::string &message);   // nhm_ports.cc

namespace {

typedef Bit32u Page;
enum : Bit32u { PAGE = 4096, INODE = 64, SLOT = 32, NO_BLOCK = 0xffffffff };
enum { FLAT_PLAIN = 0, FLAT_INLINE = 2, CHUNK_BASED = 4 };   // layouts of an inode's data
enum { MAX_CHUNK_BITS = 31 };                                // of a chunk's size in blocks
enum { WINDOW = 64 };                                        // pages that are read at once

// The pages that are always there. The guest's kernel looks into the first MiB for partitions and
// for labels of persistent memory, long before the host's files may be looked at.
enum : Page { SUPER_PAGE = 0, HOST_PAGE = 512, STDIN_PAGE, LOST_PAGE = STDIN_PAGE + 2, FIRST_FREE };
enum : Bit32u { ROOT_OFFSET = 2048 };                        // of the root's inode in the first page
enum { HOST_NODE, STDIN_NODE, LOST_NODE };

struct Node {
  Bit32u parent;
  std::string name;                  // or the whole path, of the nodes without a parent
  struct stat is;                    // by lstat
  Page inode, data, pages;           // data: 0 before it is known
  bool told;
  std::string content;               // of a folder or a symbolic link
  std::vector<std::string> names;    // of a folder whose entries are not known yet
};

enum Kind { OF_INODE, OF_INDEX, OF_DATA };
struct Extent { Bit32u node; Kind kind; Page pages; };

std::deque<Node> nodes;
std::map<Page, Extent> extents;      // by their first page
std::vector<bool> made;
Bit8u *base;
Bit64u address;
Page size, used = FIRST_FREE;
bool full;
std::set<std::string> known;         // paths, for folders that the user may enter but not list

// Kernel interfaces of the host that mean nothing in the guest, or wait when they are read.
const long pseudo[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEVPTS_SUPER_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                        DEBUGFS_MAGIC, TRACEFS_MAGIC, BPF_FS_MAGIC, SECURITYFS_MAGIC, EFIVARFS_MAGIC, BINFMTFS_MAGIC,
                        AUTOFS_SUPER_MAGIC, NSFS_MAGIC, SELINUX_MAGIC, PSTOREFS_MAGIC, HUGETLBFS_MAGIC };
const char *const own[] = { "/proc", "/sys", "/dev", "/run" };   // the guest has its own

// Folders of nehalem.py, whose names are random: no command depends on them.
const char machines[] = "nehalem.";

template <class T> void put(Bit8u *at, T value) { memcpy(at, &value, sizeof value); }

Bit8u *at_page(Page page) { return base + size_t(page) * PAGE; }

std::string path_of(Bit32u n) {
  const Node &node = nodes[n];
  if (node.parent == n) return node.name;
  const std::string folder = path_of(node.parent);
  return (folder == "/" ? "" : folder) + "/" + node.name;
}

Page pages_of(Bit64u bytes) { return (bytes + PAGE - 1) / PAGE; }

std::string range() { return "the range of addresses for the host's files (--tree-range " + std::to_string(size / 256) + ")"; }

void tell(Bit32u n, const std::string &what) {
  if (!nodes[n].told) nhm_tell(path_of(n) + ": " + what);
  nodes[n].told = true;
}

void tell_full(Bit32u folder) {
  if (!full) nhm_tell(path_of(folder) + ": " + range() + " is used up; what the machine sees for the first time from here on is empty");
  full = true;
}

// 0 if there are not as many addresses left.
Page allot(Bit32u n, Kind kind, Page pages) {
  if (pages > size - used) return 0;
  const Page at = used;
  extents[at] = { n, kind, pages };
  used += pages;
  return at;
}

Bit64u number_of(const Node &node) {
  const bool last = S_ISREG(node.is.st_mode);
  return (Bit64u(node.inode) * PAGE + (last ? PAGE - INODE : 0)) / SLOT;
}

// A node without pages for its inode is that of all files that are lost.
Bit32u add(Bit32u parent, const std::string &name, const struct stat &is) {
  const Bit32u n = nodes.size();
  nodes.push_back({ parent, name, is, 0, 0, 0, false, "", {} });
  nodes[n].inode = allot(n, OF_INODE, 1);
  if (S_ISREG(is.st_mode) && !allot(n, OF_INDEX, 1)) nodes[n].inode = 0;
  if (nodes[n].inode) return n;
  nodes.pop_back();
  tell_full(parent);
  return LOST_NODE;
}

int type_of(mode_t mode) {
  static const mode_t types[] = { S_IFREG, S_IFDIR, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK };
  for (unsigned k = 0; k < sizeof types / sizeof *types; k++)
    if ((mode & S_IFMT) == types[k]) return k + 1;
  return 0;
}

// ---- folders

struct Entry { std::string name; Bit64u number; int type; };

bool before(const Entry &a, const Entry &b) { return a.name < b.name; }

// Blocks of entries, each followed by the entries' names.
std::string folder_of(std::vector<Entry> entries) {
  enum { ENTRY = 12 };
  std::string out;
  std::sort(entries.begin(), entries.end(), before);
  for (size_t from = 0, to; from < entries.size(); from = to) {
    size_t room = 0;
    for (to = from; to < entries.size() && room + ENTRY + entries[to].name.size() <= PAGE; to++)
      room += ENTRY + entries[to].name.size();
    std::string head, names;
    for (size_t k = from; k < to; k++) {
      Bit8u e[ENTRY] = {};
      put<Bit64u>(e, entries[k].number);
      put<Bit16u>(e + 8, (to - from) * ENTRY + names.size());
      e[10] = entries[k].type;
      head.append((char *)e, ENTRY);
      names += entries[k].name;
    }
    out.resize(pages_of(out.size()) * size_t(PAGE));
    out += head + names;
  }
  return out;
}

bool is_pseudo(const std::string &path) {
  struct statfs fs;
  if (statfs(path.c_str(), &fs)) return false;
  return std::find(std::begin(pseudo), std::end(pseudo), long(fs.f_type)) != std::end(pseudo);
}

bool is_hidden(Bit32u n) {
  const std::string path = path_of(n);
  if (std::find(std::begin(own), std::end(own), path) != std::end(own)) return true;
  return nodes[n].is.st_dev != nodes[nodes[n].parent].is.st_dev && is_pseudo(path);
}

// The names in a folder that lead to a known path.
std::vector<std::string> known_names(const std::string &folder) {
  const std::string start = folder == "/" ? folder : folder + "/";
  std::vector<std::string> names;
  for (auto p = known.lower_bound(start); p != known.end() && !p->compare(0, start.size(), start); ++p) {
    const std::string name = p->substr(start.size(), p->find('/', start.size()) - start.size());
    if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return names;
}

// The size of a folder follows from its names alone.
void read_names(Bit32u n) {
  Node &node = nodes[n];
  std::vector<Entry> entries = { { ".", 0, 0 }, { "..", 0, 0 } };
  const std::string path = path_of(n);
  const bool hidden = is_hidden(n);
  DIR *d = hidden ? NULL : opendir(path.c_str());
  if (!d && !hidden && errno == EACCES) node.names = known_names(path);
  for (const std::string &name : node.names) entries.push_back({ name, 0, 0 });
  while (const dirent *e = d ? readdir(d) : NULL)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strncmp(e->d_name, machines, strlen(machines))) {
      node.names.push_back(e->d_name);
      entries.push_back({ e->d_name, 0, 0 });
    }
  if (d) closedir(d);
  std::sort(node.names.begin(), node.names.end());
  node.content = folder_of(entries);
}

void read_link(Node &node, const std::string &path) {
  char target[PAGE];
  const ssize_t n = readlink(path.c_str(), target, sizeof target);
  node.content.assign(target, n > 0 ? n : 0);
}

void read_folder(Bit32u n) {
  Node &node = nodes[n];
  std::vector<Entry> entries = { { ".", number_of(node), 2 }, { "..", number_of(nodes[node.parent]), 2 } };
  const std::string path = path_of(n);
  for (const std::string &name : node.names) {
    struct stat is;
    // What has gone meanwhile is a file that nobody may open.
    if (lstat((path + "/" + name).c_str(), &is)) {
      memset(&is, 0, sizeof is);
      is.st_mode = S_IFREG;
      is.st_nlink = 1;
    }
    const Bit32u child = add(n, name, is);
    entries.push_back({ name, number_of(nodes[child]), type_of(nodes[child].is.st_mode) });
  }
  node.content = folder_of(entries);
  std::vector<std::string>().swap(node.names);
}

// ---- inodes

// What the user may do with a file can be more or less than its mode says: by an access list, or on
// a server that knows better. The guest's kernel sees only the mode.
mode_t mode_of(const struct stat &is, const std::string &path) {
  if (!geteuid() || S_ISLNK(is.st_mode)) return is.st_mode;
  gid_t groups[1024];
  const int n = getgroups(1024, groups);
  const bool in_group = is.st_gid == getegid() || std::count(groups, groups + std::max(n, 0), is.st_gid);
  const int shift = is.st_uid == geteuid() ? 6 : in_group ? 3 : 0;
  mode_t may = 0;
  for (int right : { R_OK, W_OK, X_OK })
    if (!faccessat(AT_FDCWD, path.c_str(), right, AT_EACCESS)) may |= right;
  return (is.st_mode & ~(7 << shift)) | may << shift;
}

Bit32u device_of(const struct stat &is) {
  const unsigned low = minor(is.st_rdev);
  return (low & 0xff) | major(is.st_rdev) << 8 | (low & ~0xffu) << 12;
}

void put_inode(Bit8u *i, int layout, mode_t mode, Bit64u bytes, Bit32u where, const struct stat &is) {
  put<Bit16u>(i, 1 | layout << 1);   // 1: the form of 64 bytes
  put<Bit16u>(i + 4, mode);
  put<Bit64u>(i + 8, bytes);
  put<Bit32u>(i + 16, where);
  put<Bit32u>(i + 24, is.st_uid);
  put<Bit32u>(i + 28, is.st_gid);
  put<Bit64u>(i + 32, is.st_mtim.tv_sec);
  put<Bit32u>(i + 40, is.st_mtim.tv_nsec);
  put<Bit32u>(i + 44, is.st_nlink);
}

// Of one chunk, so that the index has one entry.
int chunk_bits(Page pages) {
  int bits = 0;
  while (bits < MAX_CHUNK_BITS && Bit64u(1) << bits < pages) bits++;
  return bits;
}

void make_inode(Bit32u n) {
  Node &node = nodes[n];
  if (n == HOST_NODE && lstat("/", &node.is)) BX_PANIC(("no root folder: %s", strerror(errno)));
  const std::string path = path_of(n);
  Bit8u *i = at_page(node.inode);
  mode_t mode = n == STDIN_NODE ? node.is.st_mode : mode_of(node.is, path);
  if (S_ISREG(mode)) {
    node.pages = pages_of(node.is.st_size);
    put_inode(i + PAGE - INODE, CHUNK_BASED, mode, node.is.st_size, chunk_bits(node.pages), node.is);
    return;
  }
  if (S_ISDIR(mode)) read_names(n);
  if (S_ISLNK(mode)) read_link(node, path);
  node.pages = pages_of(node.content.size());
  // A short symbolic link follows its inode.
  if (S_ISLNK(mode) && node.content.size() <= PAGE - INODE) {
    put_inode(i, FLAT_INLINE, mode, node.content.size(), 0, node.is);
    memcpy(i + INODE, node.content.data(), node.content.size());
    return;
  }
  if (node.pages && !(node.data = allot(n, OF_DATA, node.pages))) {
    tell_full(n);
    node.content.clear();
  }
  put_inode(i, FLAT_PLAIN, mode, node.content.size(),
            S_ISCHR(mode) || S_ISBLK(mode) ? device_of(node.is) : node.data, node.is);
}

// ---- data

void tell_unreadable(Bit32u n) {
  tell(n, std::string("cannot be read on the host (") + strerror(errno) + "); the machine sees zeros");
}

// The files that were read last stay open, so that one which is replaced by another of its name
// is not read as a mixture of both.
int file_of(Bit32u n) {
  static struct { Bit32u node; int fd; } open_files[64];
  static unsigned next, opened;
  for (unsigned k = 0; k < opened; k++)
    if (open_files[k].node == n) return open_files[k].fd;
  const std::string path = path_of(n);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (n == STDIN_NODE ? 0 : O_NOFOLLOW));
  if (fd < 0) return fd;
  if (opened < 64) opened++;
  else close(open_files[next].fd);
  open_files[next] = { n, fd };
  next = (next + 1) % 64;
  return fd;
}

void look_for_changes(Bit32u n, int fd) {
  struct stat now;
  const struct stat &then = nodes[n].is;
  if (!fstat(fd, &now) && (now.st_ino != then.st_ino || now.st_size != then.st_size ||
                           now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec))
    tell(n, "changed on the host after the machine had looked at it; the machine sees its size of then, and zeros for what is gone");
}

void read_data(Bit32u n, Page page) {
  Node &node = nodes[n];
  const Page from = (page - node.data) / WINDOW * WINDOW, to = std::min(from + WINDOW, node.pages);
  const int fd = file_of(n);
  if (fd < 0) tell_unreadable(n);
  else look_for_changes(n, fd);
  for (Page k = from; k < to; k++) {
    if (made[node.data + k]) continue;
    made[node.data + k] = true;
    if (fd >= 0 && pread(fd, at_page(node.data + k), PAGE, off_t(k) * PAGE) < 0) tell_unreadable(n);
  }
}

void make_content(Bit32u n) {
  Node &node = nodes[n];
  if (S_ISDIR(node.is.st_mode)) read_folder(n);
  memcpy(at_page(node.data), node.content.data(), node.content.size());
  std::fill_n(made.begin() + node.data, node.pages, true);
}

void make_index(Bit32u n, Page page) {
  Node &node = nodes[n];
  if (!node.pages) return;
  node.data = allot(n, OF_DATA, node.pages);
  if (!node.data) tell(n, "does not fit into what is left of " + range() + "; the machine sees zeros");
  put<Bit32u>(at_page(page), node.data ? node.data : NO_BLOCK);
}

// ---- the whole

void make_super_page() {
  Bit8u *s = base + 1024, *root = base + ROOT_OFFSET;
  put<Bit32u>(s, 0xE0F5E1E2);
  s[12] = 12;                            // bits of a block's size
  put<Bit16u>(s + 14, ROOT_OFFSET / SLOT);
  put<Bit32u>(s + 36, size);
  put<Bit32u>(s + 80, 4);                // has files of chunks
  const Bit64u number = ROOT_OFFSET / SLOT;
  const std::string content = folder_of({ { ".", number, 2 }, { "..", number, 2 },
    { "host", number_of(nodes[HOST_NODE]), 2 }, { "stdin", number_of(nodes[STDIN_NODE]), 1 } });
  struct stat is = {};
  is.st_nlink = 3;
  put_inode(root, FLAT_INLINE, S_IFDIR | 0755, content.size(), 0, is);
  memcpy(root + INODE, content.data(), content.size());
}

void make(Page page) {
  made[page] = true;
  if (page == SUPER_PAGE) return make_super_page();
  auto next = extents.upper_bound(page);
  if (next == extents.begin()) return;
  const Page first = (--next)->first;
  const Extent extent = next->second;
  if (page - first >= extent.pages) return;
  if (extent.kind == OF_INODE) make_inode(extent.node);
  else if (extent.kind == OF_INDEX) make_index(extent.node, page);
  else if (S_ISREG(nodes[extent.node].is.st_mode)) {
    made[page] = false;
    read_data(extent.node, page);
  } else make_content(extent.node);
}

Bit8u *host_address(bx_phy_address at) {
  const Bit64u offset = at - address;
  if (!made[offset / PAGE]) make(offset / PAGE);
  return base + offset;
}

// Nothing in the guest writes to a read-only file system.
Bit8u *direct_access(bx_phy_address at, unsigned rw, void *) { return rw & 1 ? NULL : host_address(at); }

bool read_memory(bx_phy_address at, unsigned length, void *to, void *) {
  memcpy(to, host_address(at), length);
  return true;
}

bool write_memory(bx_phy_address, unsigned, void *, void *) { return true; }

void add_fixed(Page page, const char *path, mode_t mode) {
  const Bit32u n = nodes.size();
  struct stat is = {};
  is.st_mode = mode;
  is.st_nlink = 1;
  nodes.push_back({ n, path, is, page, 0, 0, false, "", {} });
  extents[page] = { n, OF_INODE, 1 };
  if (S_ISREG(mode)) extents[page + 1] = { n, OF_INDEX, 1 };
}

} // namespace

// The file that the guest sees as its standard input.
void nhm_tree_stdin(const char *path) {
  if (!base) return;
  nodes[STDIN_NODE].name = path;
  if (stat(path, &nodes[STDIN_NODE].is) || !S_ISREG(nodes[STDIN_NODE].is.st_mode)) {
    nodes[STDIN_NODE].is = {};
    nodes[STDIN_NODE].is.st_mode = S_IFREG;
  }
  nodes[STDIN_NODE].is.st_mode |= 0444;
}

// A path that the command is likely to use.
void nhm_tree_know(const char *path) { known.insert(path); }

// The host's root folder is looked at when the guest first asks for it.
void nhm_place_tree() {
  const char *where = getenv("NHM_TREE");
  if (!where) return;
  char *end;
  address = strtoull(where, &end, 0);
  const Bit64u bytes = *end == ',' ? strtoull(end + 1, NULL, 0) : 0;
  size = bytes / PAGE;
  if (size <= FIRST_FREE) BX_PANIC(("NHM_TREE wants ADDRESS,SIZE"));
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) BX_PANIC(("no addresses for the host's files: %s", strerror(errno)));
  base = (Bit8u *)memory;
  made.resize(size);
  add_fixed(HOST_PAGE, "/", S_IFDIR);
  add_fixed(STDIN_PAGE, "", S_IFREG);
  add_fixed(LOST_PAGE, "", S_IFIFO);
  BX_MEM(0)->registerMemoryHandlers(NULL, read_memory, write_memory, direct_access, address, address + bytes - 1);
}
