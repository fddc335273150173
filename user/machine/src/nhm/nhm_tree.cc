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
// Addresses are never taken back, because the guest keeps what it has read:
//   - a folder's entries get pages for their inodes when the folder is read: one page, and for a
//     regular file one more, for its index.
//   - lstat says what an entry is when its inode is read. A folder's own content gets pages then, since the inode has
//     its size, and so does the rest of the index of a file of more than 16 GiB: a page for each 16 GiB.
//   - a file's data get pages when the guest asks where they are, in chunks, one after the other in
//     the order in which it asks. So its inode is the
//     last thing in its first page, and what follows an inode, its attributes and the index of its chunks, begins with
//     the next page. Files that are only looked at cost no more than these. A chunk without data has no pages.
//   - of a large folder, many inodes share a page. Their files are of one chunk, which gets its
//     pages together with the inode.
//
// Where inodes and folders' contents are follows from their paths alone. So files that others make or remove beside
// those that are used move neither the data of these nor the numbers of their inodes, on which caches depend. Two paths
// can have one place, which the one that is seen later does not get. So paths that the command is likely to use have
// places of their own, and so has what is installed: users' files come and go beside both.
//
// What cannot be read on the host, or not any more, lies in pages that are registered as broken: the
// guest's kernel reports an input/output error, also to its root.
//
// Data are copied, not mapped: a page stays as the guest first saw it, and a file that became
// shorter meanwhile cannot stop the emulator. The host opens all files as the user that started it.

#include "bochs.h"
#include "cpu/cpu.h"
#include "memory/memory-bochs.h"
#include "nhm_host.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <vector>

#define LOG_THIS genlog->

void nhm_tell(const std::string &message);   // nhm_ports.cc

namespace {

typedef Bit32u Page;
enum : Bit32u { PAGE = 4096, INODE = 64, SLOT = 32, NO_BLOCK = 0xffffffff };
enum { FLAT_PLAIN = 0, FLAT_INLINE = 2, CHUNK_BASED = 4 };   // layouts of an inode's data
enum { CHUNK_BITS = 12, MAX_CHUNK_BITS = 31 };               // of a chunk's size in blocks
enum : Bit32u { ENTRIES = PAGE / 4 };                        // chunks in a page of the index
enum : Bit32u { PACKED = PAGE / INODE, PACKED_FROM = 16384 };   // inodes in a page, for folders of so many entries
enum { WINDOW = 64 };                                        // pages that are read at once

// The pages that are always there. The guest's kernel looks into the first MiB for partitions and
// for labels of persistent memory, long before the host's files may be looked at.
// here.c registers as many as broken, from 4 MiB on.
enum : Page { SUPER_PAGE = 0, HOST_PAGE = 512, STDIN_PAGE, STDIN_INDEX = 64, LOST_PAGE = STDIN_PAGE + 1 + STDIN_INDEX,
              BROKEN_PAGE = 1024, BROKEN = 1 << CHUNK_BITS, FIRST_FREE = BROKEN_PAGE + BROKEN };
enum : Bit32u { ROOT_OFFSET = 2048 };                        // of the root's inode in the first page
enum { HOST_NODE, STDIN_NODE, LOST_NODE };

struct Node {
  Bit32u parent;
  std::string name;                  // or the whole path, of the nodes without a parent
  struct stat is;                    // by lstat; before the inode is read only its type, by the folder
  Page inode, data;                  // data: of what is no regular file
  Bit64u pages;
  Bit32u slot, index, chunk_bits;    // place in the inode's page; pages of the index
  bool told;
  std::string content;               // of a folder or a symbolic link
  std::string attributes;            // as they follow an inode
  std::vector<nhm_host::Listed> listed;   // of a folder whose entries have no inodes yet
  std::vector<std::string> leading;  // those that lead to a known path, in order
  Bit64u names;                      // of a folder: a hash of what it lists
};

enum Kind { OF_INODE, OF_PACKED, OF_INDEX, OF_DATA };
struct Extent { Bit32u node; Kind kind; Page pages; Bit64u from; };   // from: of a chunk, its place in the file

std::deque<Node> nodes;
std::map<Page, Extent> extents;      // by their first page
std::vector<bool> made;
Bit8u *base;
Bit64u address;
Page size, used = FIRST_FREE;        // used: from here on no data are

// Pages for inodes and folders' contents. Together they are the last quarter of all.
struct Area { Bit32u sixteenths; Page first, pages, used; };

enum { OF_KNOWN, OF_INSTALLED, OF_OTHERS, AREAS };
Area areas[AREAS] = { { 2, 0, 0, 0 }, { 7, 0, 0, 0 }, { 7, 0, 0, 0 } };
bool full;
std::set<std::string> known;         // paths that the command is likely to use

const char *const own[] = { "/proc", "/sys", "/dev", "/run" };   // the guest has its own
const char *const installed[] = { "/usr", "/etc", "/opt" };      // what packages bring is there

std::set<std::string> shared;         // folders whose other names come and go

// Folders of nehalem.py and machine.py, whose names are random: no command depends on them.
bool is_machines(const std::string &name) {
  static const char start[] = "nehalem.";
  enum { START = sizeof start - 1, DIGITS = 12 };
  return !name.compare(0, START, start) && name.size() == START + DIGITS &&
         name.find_first_not_of("0123456789abcdef", START) == std::string::npos;
}

template <class T> void put(Bit8u *at, T value) { memcpy(at, &value, sizeof value); }

Bit8u *at_page(Page page) { return base + size_t(page) * PAGE; }

std::string path_of(Bit32u n) {
  const Node &node = nodes[n];
  if (node.parent == n) return node.name;
  const std::string folder = path_of(node.parent);
  return (folder == "/" ? "" : folder) + "/" + node.name;
}

Bit64u pages_of(Bit64u bytes) { return bytes / PAGE + (bytes % PAGE != 0); }

std::string range() { return "the range of addresses for the host's files (--tree-range " + std::to_string(size / 256) + ")"; }

void tell(Bit32u n, const std::string &what) {
  if (!nodes[n].told) nhm_tell(path_of(n) + ": " + what);
  nodes[n].told = true;
}

void tell_full(Bit32u folder) {
  if (!full) nhm_tell(path_of(folder) + ": " + range() + " is used up; what the machine sees for the first time from here on is empty");
  full = true;
}

// The first run of so many free pages, or 0.
Page find_free(Page from, Page to, Bit64u pages) {
  auto next = extents.upper_bound(from);
  if (next != extents.begin()) from = std::max(from, std::prev(next)->first + std::prev(next)->second.pages);
  for (; next != extents.end() && next->first < from + pages; ++next) from = next->first + next->second.pages;
  return from + pages <= to ? from : 0;
}

// 0 if there are not as many addresses left.
Page allot(Bit32u n, Kind kind, Bit64u pages, Bit64u from = 0) {
  const Page at = find_free(used, size, pages);
  if (!at) return 0;
  extents[at] = { n, kind, Page(pages), from };
  used = at + pages;
  return at;
}

// FNV-1a: the same in all builds.
Bit64u hash_of(const std::string &text) {
  Bit64u hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

bool is_below(const std::string &path, const std::string &folder) {
  return !path.compare(0, folder.size(), folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string start_of(const std::string &folder) { return folder == "/" ? folder : folder + "/"; }

// The names in a folder that lead to a known path.
std::vector<std::string> known_names(const std::string &folder) {
  const std::string start = start_of(folder);
  std::vector<std::string> names;
  for (auto p = known.lower_bound(start); p != known.end() && !p->compare(0, start.size(), start); ++p) {
    const std::string name = p->substr(start.size(), p->find('/', start.size()) - start.size());
    if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return names;
}

Area &area_of(const std::string &path) {
  if (known.count(path) || !known_names(path).empty()) return areas[OF_KNOWN];
  const bool is = std::any_of(std::begin(installed), std::end(installed), [&](const char *folder) { return is_below(path, folder); });
  return areas[is ? OF_INSTALLED : OF_OTHERS];
}

// The same at a place that follows from the path, or where that is taken, behind it. When many are taken, it is that of
// the next data.
Page allot_by_path(Bit32u n, const std::string &path, Kind kind, Bit64u pages) {
  Area &area = area_of(path);
  const Page end = area.first + area.pages;
  Page at = 0;
  if (area.used + pages <= area.pages / 8 * 7) at = find_free(std::max(used, area.first + Page(hash_of(path) % area.pages)), end, pages);
  if (!at) return allot(n, kind, pages);
  extents[at] = { n, kind, Page(pages), 0 };
  area.used += pages;
  return at;
}

Bit64u number_of(const Node &node) { return (Bit64u(node.inode) * PAGE + node.slot) / SLOT; }

// So that an index has an entry for each chunk.
Bit32u bits_for(Bit64u pages, Bit64u entries) {
  Bit32u bits = 0;
  const Bit64u one = std::min<Bit64u>(pages, 1u << CHUNK_BITS);
  while (Bit64u(1) << bits < one || (bits < MAX_CHUNK_BITS && pages > entries << bits)) bits++;
  return bits;
}

// Those that the pages of its index have room for. Its attributes come first.
Bit64u entries_of(const Node &node) { return node.index * Bit64u(ENTRIES) - node.attributes.size() / 4; }

Bit64u chunks_of(const Node &node) {
  const Bit64u chunk = Bit64u(1) << node.chunk_bits;
  return node.pages / chunk + (node.pages % chunk != 0);
}

// Attributes as they follow an inode.
std::string packed(const nhm_host::Attributes &attributes) {
  std::string out(12, 0);
  for (const auto &a : attributes) {
    const bool is_users = !a.first.compare(0, 5, "user.");
    const std::string name = a.first.substr(is_users ? 5 : strlen("security."));
    std::string entry(4, 0);
    entry[0] = name.size();
    entry[1] = is_users ? 1 : 6;
    put<Bit16u>((Bit8u *)&entry[2], a.second.size());
    entry += name + a.second;
    entry.resize((entry.size() + 3) / 4 * 4);
    if (out.size() + entry.size() <= PAGE / 2) out += entry;
  }
  return attributes.empty() ? "" : out;
}

Bit32u push(Bit32u parent, const std::string &name, const struct stat &is) {
  Node node = {};
  node.parent = parent;
  node.name = name;
  node.is = is;
  nodes.push_back(node);
  return nodes.size() - 1;
}

// A regular file may be mounted on any of what is neither a folder nor a link.
void place(Bit32u n) {
  Node &node = nodes[n];
  if (!S_ISDIR(node.is.st_mode) && !S_ISLNK(node.is.st_mode)) {
    node.slot = PAGE - INODE;
    node.index = 1;
  }
  node.inode = allot_by_path(n, path_of(n), OF_INODE, 1 + node.index);
  if (!node.inode || !node.index) return;
  extents[node.inode].pages = 1;
  extents[node.inode + 1] = { n, OF_INDEX, node.index, 0 };
}

struct stat of_type(mode_t type) {
  struct stat is = {};
  is.st_mode = type;
  is.st_nlink = 1;
  return is;
}

// A node without pages for its inode is that of all files that are lost.
Bit32u add(Bit32u parent, const nhm_host::Listed &listed) {
  const Bit32u n = push(parent, listed.name, of_type(listed.type));
  place(n);
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

// Blocks of entries, each followed by the entries' names. Linux finds a name by halving the blocks, of which it reads the
// first names, and then within one block. So that this takes the same for a name that leads to a known path, whatever
// else there is, such a name is the first one of its block, and the last one of them the only one. The entry ".."
// closes the block behind it, so that there is one: nobody looks it up. It is first in a block only where no name is
// behind the last known one: names behind it would be looked for in its block.
// More blocks, and more to read, are only where one is not enough for all names before or behind it, or between two.
std::string folder_of(std::vector<Entry> entries, const std::vector<std::string> &leading) {
  enum { ENTRY = 12 };
  const auto leads = [&](const Entry &entry) { return std::binary_search(leading.begin(), leading.end(), entry.name); };
  std::string out;
  std::sort(entries.begin(), entries.end(), before);
  if (std::any_of(entries.begin(), entries.end(), leads)) {
    const auto parent = std::find_if(entries.begin(), entries.end(), [](const Entry &entry) { return entry.name == ".."; });
    std::rotate(parent, parent + 1, entries.end());
  }
  const size_t last = entries.rend() - std::find_if(entries.rbegin(), entries.rend(), leads);   // behind it, or 0
  for (size_t from = 0, to; from < entries.size(); from = to) {
    size_t room = 0;
    for (to = from; to < entries.size() && room + ENTRY + entries[to].name.size() <= PAGE; to++) {
      if (to > from && (to == last || leads(entries[to]))) break;
      room += ENTRY + entries[to].name.size();
    }
    if (last && to + 1 == entries.size() && to - from > 1) to--;
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

void tell_silent() {
  for (const std::string &path : nhm_host::silent_mounts())
    nhm_tell(path + ": the file system's server does not answer; the machine sees nothing of it");
}

bool is_hidden(Bit32u n) {
  const std::string path = path_of(n);
  return std::find(std::begin(own), std::end(own), path) != std::end(own) || nhm_host::is_kernels(path);
}

// Whether a folder is shared, or below one that is, and only leads to what is known.
bool is_shared(const std::string &path) {
  for (const std::string &folder : shared)
    if (is_below(path, folder))
      return std::none_of(known.begin(), known.end(), [&](const std::string &one) { return is_below(one, folder) && is_below(path, one); });
  return false;
}

// What has gone meanwhile is a file that nobody may open.
struct stat status_of(const std::string &path) {
  struct stat is = {};
  return nhm_host::status(path, is) ? of_type(S_IFREG) : is;
}

// What others make and remove meanwhile is not seen. It would change what a look-up takes the kernel, and where all
// that is read later gets its place.
void leave_known(const std::vector<std::string> &leading, std::vector<nhm_host::Listed> &found) {
  const auto leads = [&](const nhm_host::Listed &one) { return std::binary_search(leading.begin(), leading.end(), one.name); };
  found.erase(std::remove_if(found.begin(), found.end(), std::not_fn(leads)), found.end());
}

// What leads to a known path, from a folder that the user may not list.
void look_at_known(const std::string &start, const std::vector<std::string> &leading, std::vector<nhm_host::Listed> &found) {
  for (const std::string &name : leading) found.push_back({ name, status_of(start + name).st_mode & S_IFMT });
}

std::vector<std::string> leading_from(const std::string &folder) {
  std::vector<std::string> names = known_names(folder);
  std::sort(names.begin(), names.end());
  return names;
}

// What the guest sees in a folder.
std::vector<nhm_host::Listed> listed_in(Bit32u n, const std::vector<std::string> &leading) {
  const std::string path = path_of(n);
  std::vector<nhm_host::Listed> found;
  if (!is_hidden(n) && nhm_host::list(path, found) && errno == EACCES) look_at_known(start_of(path), leading, found);
  if (is_shared(path)) leave_known(leading, found);
  found.erase(std::remove_if(found.begin(), found.end(), [](const auto &one) { return is_machines(one.name); }), found.end());
  std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  return found;
}

Bit64u hash_of(const std::vector<nhm_host::Listed> &listed) {
  std::string all;
  for (const auto &one : listed) all += one.name + "/" + std::to_string(one.type) + "/";
  return hash_of(all);
}

// The size of a folder follows from its names alone.
void read_names(Bit32u n) {
  Node &node = nodes[n];
  std::vector<Entry> entries = { { ".", 0, 0 }, { "..", 0, 0 } };
  node.leading = leading_from(path_of(n));
  node.listed = listed_in(n, node.leading);
  node.names = hash_of(node.listed);
  for (const auto &one : node.listed) entries.push_back({ one.name, 0, 0 });
  node.content = folder_of(entries, node.leading);
}

// Many inodes in a page.
void add_packed(Bit32u n) {
  const Bit32u first = nodes.size(), count = nodes[n].listed.size();
  const Page at = allot_by_path(first, path_of(n), OF_PACKED, (count + PACKED - 1) / PACKED);
  if (!at) return tell_full(n);
  for (Bit32u k = 0; k < count; k++) {
    const nhm_host::Listed listed = nodes[n].listed[k];
    Node &child = nodes[push(n, listed.name, of_type(listed.type))];
    child.inode = at + k / PACKED;
    child.slot = k % PACKED * INODE;
  }
}

void read_folder(Bit32u n) {
  Node &node = nodes[n];                 // a deque's elements stay where they are
  std::vector<Entry> entries = { { ".", number_of(node), 2 }, { "..", number_of(nodes[node.parent]), 2 } };
  const Bit32u first = nodes.size();
  const bool is_large = node.listed.size() >= PACKED_FROM;
  if (is_large) add_packed(n);
  for (size_t k = 0; k < node.listed.size(); k++) {
    Bit32u child = first + k < nodes.size() ? first + k : Bit32u(LOST_NODE);
    if (!is_large) child = add(n, node.listed[k]);
    entries.push_back({ node.listed[k].name, number_of(nodes[child]), type_of(nodes[child].is.st_mode) });
  }
  node.content = folder_of(entries, node.leading);
  std::vector<nhm_host::Listed>().swap(node.listed);
  std::vector<std::string>().swap(node.leading);
  tell_silent();
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
  return (is.st_mode & ~(7 << shift)) | nhm_host::rights(path) << shift;
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

// A large file's index takes what is free behind its first page. With fewer pages than that, its chunks are larger.
void extend_index(Bit32u n) {
  Node &node = nodes[n];
  const Bit64u wanted = std::min<Bit64u>(node.pages / (Bit64u(ENTRIES) << CHUNK_BITS) + 1, ENTRIES);
  const Page first = node.inode + 1;
  const auto next = extents.upper_bound(first);
  const Page end = std::min(size, next == extents.end() ? size : next->first);
  node.index = std::max<Bit64u>(1, std::min<Bit64u>(wanted, end - first));
  extents[first].pages = node.index;
}

// A word of its attributes counts as one, the first three as one.
void put_regular(Bit32u n, Bit8u *i, mode_t mode) {
  Node &node = nodes[n];
  if (n != STDIN_NODE) {
    node.pages = pages_of(node.is.st_size);
    node.attributes = packed(nhm_host::attributes(path_of(n)));
    extend_index(n);
    node.chunk_bits = bits_for(node.pages, entries_of(node));
  }
  put_inode(i, CHUNK_BASED, mode, node.is.st_size, node.chunk_bits, node.is);
  if (!node.attributes.empty()) put<Bit16u>(i + 2, 1 + (node.attributes.size() - 12) / 4);
}

void read_content(Bit32u n) {
  Node &node = nodes[n];
  if (S_ISDIR(node.is.st_mode)) read_names(n);
  if (S_ISLNK(node.is.st_mode)) node.content = nhm_host::target(path_of(n));
  node.pages = pages_of(node.content.size());
}

void put_special(Bit32u n, Bit8u *i, mode_t mode) {
  Node &node = nodes[n];
  if (node.pages && !(node.data = allot_by_path(n, path_of(n), OF_DATA, node.pages))) {
    tell_full(n);
    node.content.clear();
  }
  put_inode(i, FLAT_PLAIN, mode, node.content.size(),
            S_ISCHR(mode) || S_ISBLK(mode) ? device_of(node.is) : node.data, node.is);
}

// A folder or a link that has become a regular file has no room for an index.
void look_at(Bit32u n) {
  Node &node = nodes[n];
  if (n == HOST_NODE && lstat("/", &node.is)) BX_PANIC(("no root folder: %s", strerror(errno)));
  if (n <= LOST_NODE) return;
  node.is = status_of(path_of(n));
  if (!S_ISREG(node.is.st_mode) || node.index || !node.is.st_size) return;
  tell(n, "changed on the host after the machine had looked at it; the machine sees an empty file");
  node.is = of_type(S_IFREG);
}

void make_inode(Bit32u n) {
  Node &node = nodes[n];
  look_at(n);
  Bit8u *i = at_page(node.inode) + node.slot;
  mode_t mode = n == STDIN_NODE ? node.is.st_mode : mode_of(node.is, path_of(n));
  if (S_ISREG(mode) && node.index) return put_regular(n, i, mode);
  read_content(n);
  // A short symbolic link follows its inode.
  if (!S_ISLNK(mode) || node.content.size() > PAGE - INODE - node.slot) return put_special(n, i, mode);
  put_inode(i, FLAT_INLINE, mode, node.content.size(), 0, node.is);
  memcpy(i + INODE, node.content.data(), node.content.size());
}

// ---- data

void tell_unreadable(Bit32u n) {
  tell(n, std::string("cannot be read on the host (") + strerror(errno) + "); the machine sees an input/output error");
}

bool are_equal(const timespec &a, const timespec &b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool has_same_content(const struct stat &now, const struct stat &then) {
  return now.st_ino == then.st_ino && now.st_size == then.st_size && are_equal(now.st_mtim, then.st_mtim);
}

void look_for_changes(Bit32u n, const struct stat &now) {
  if (!has_same_content(now, nodes[n].is))
    tell(n, "changed on the host after the machine had looked at it; the machine sees its size of then, and zeros for what is gone");
}

// A window of pages is read at once, but for those that are known already.
void read_data(const Extent &extent, Page first, Page page) {
  const Bit32u n = extent.node;
  static Bit8u window[WINDOW * PAGE];
  const Page from = (page - first) / WINDOW * WINDOW, to = std::min(from + WINDOW, extent.pages);
  struct stat now;
  const ssize_t got = nhm_host::read(path_of(n), n == STDIN_NODE, off_t(extent.from + from) * PAGE, window, (to - from) * PAGE, now);
  if (got < 0) tell(n, std::string("cannot be read on the host any more (") + strerror(errno) + "); the machine sees zeros");
  else look_for_changes(n, now);
  for (Page k = from; k < to; k++) {
    if (made[first + k]) continue;
    made[first + k] = true;
    const ssize_t rest = got - ssize_t(k - from) * PAGE;
    if (rest > 0) memcpy(at_page(first + k), window + (k - from) * PAGE, std::min<ssize_t>(rest, PAGE));
  }
  tell_silent();
}

void make_content(Bit32u n) {
  Node &node = nodes[n];
  if (S_ISDIR(node.is.st_mode)) read_folder(n);
  memcpy(at_page(node.data), node.content.data(), node.content.size());
  std::fill_n(made.begin() + node.data, node.pages, true);
}

// Where a chunk of a file is: its first page, NO_BLOCK if it has no data, or that of what is broken.
Page place_of_chunk(Bit32u n, Bit64u from, Bit64u pages, off_t next) {
  if (next < 0) return BROKEN_PAGE;
  if (Bit64u(next) / PAGE >= from + pages) return NO_BLOCK;
  if (const Page at = allot(n, OF_DATA, pages, from)) return at;
  // What is broken is shorter than the chunks of files of more than 16 TiB.
  const bool fits = pages <= BROKEN;
  tell(n, "does not fit into what is left of " + range() + "; the machine sees " + (fits ? "an input/output error" : "zeros"));
  return fits ? Page(BROKEN_PAGE) : Page(NO_BLOCK);
}

void make_index(Bit32u n, Page page) {
  Node &node = nodes[n];
  const std::string path = path_of(n);
  const Bit64u chunk = Bit64u(1) << node.chunk_bits, all = chunks_of(node);
  const Bit64u words = node.attributes.size() / 4, word = Bit64u(page - node.inode - 1) * ENTRIES;
  const Bit64u first = word ? word - words : 0, end = word + ENTRIES - words;
  Bit8u *to = at_page(page);
  if (!word) to = std::copy(node.attributes.begin(), node.attributes.end(), to);
  off_t next = 0;
  for (Bit64u k = first; k < std::min(end, all); k++) {
    const off_t from = off_t(k * chunk) * PAGE;
    if (next >= 0 && next <= from) next = nhm_host::next_data(path, n == STDIN_NODE, from, node.is.st_size);
    if (next < 0) tell_unreadable(n);
    put<Bit32u>(to + (k - first) * 4, place_of_chunk(n, k * chunk, std::min(chunk, node.pages - k * chunk), next));
  }
  tell_silent();
}

// ---- inodes that share a page

void put_packed_file(Bit32u n, Bit8u *i, mode_t mode) {
  Node &node = nodes[n];
  Page at = 0;
  if (node.is.st_size) {
    node.pages = pages_of(node.is.st_size);
    if (nhm_host::rights(path_of(n)) & R_OK) at = allot(n, OF_DATA, node.pages);
    if (!at) {
      errno = EACCES;
      at = BROKEN_PAGE;
      node.is.st_size = std::min<off_t>(node.is.st_size, off_t(BROKEN) * PAGE);
      tell_unreadable(n);
    }
  }
  put_inode(i, FLAT_PLAIN, mode, node.is.st_size, at, node.is);
}

void make_packed(const Extent &extent, Page first, Page page) {
  const Bit32u from = extent.node + (page - first) * PACKED;
  for (Bit32u n = from; n < from + PACKED && n < nodes.size() && nodes[n].inode == page; n++) {
    Bit8u *i = at_page(page) + nodes[n].slot;
    nodes[n].is = status_of(path_of(n));
    const mode_t mode = mode_of(nodes[n].is, path_of(n));
    if (S_ISREG(mode)) {
      put_packed_file(n, i, mode);
      continue;
    }
    read_content(n);
    put_special(n, i, mode);
  }
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
    { "host", number_of(nodes[HOST_NODE]), 2 }, { "stdin", number_of(nodes[STDIN_NODE]), 1 } }, {});
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
  else if (extent.kind == OF_PACKED) make_packed(extent, first, page);
  else if (extent.kind == OF_INDEX) make_index(extent.node, page);
  else if (S_ISREG(nodes[extent.node].is.st_mode)) {
    made[page] = false;
    read_data(extent, first, page);
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

void add_fixed(Page page, const char *path, mode_t mode, Bit32u index) {
  struct stat is = {};
  is.st_mode = mode;
  is.st_nlink = 1;
  const Bit32u n = push(nodes.size(), path, is);
  Node &node = nodes[n];
  node.inode = page;
  node.index = index;
  extents[page] = { n, OF_INODE, 1, 0 };
  if (!index) return;
  node.slot = PAGE - INODE;
  extents[page + 1] = { n, OF_INDEX, index, 0 };
}

// Whether a file still is what the guest was shown of it. A folder is what it lists: its dates change when others make
// files in it that have gone again.
bool is_unchanged(Bit32u n) {
  const Node &node = nodes[n];
  if (!made[node.inode]) return true;
  const std::string path = path_of(n);
  const struct stat now = status_of(path);
  Bit16u mode;
  memcpy(&mode, at_page(node.inode) + node.slot + 4, sizeof mode);
  if (mode_of(now, path) != mode || now.st_uid != node.is.st_uid || now.st_gid != node.is.st_gid) return false;
  if (S_ISDIR(mode)) return hash_of(listed_in(n, leading_from(path))) == node.names;
  return has_same_content(now, node.is) && are_equal(now.st_ctim, node.is.st_ctim);
}

} // namespace

bool nhm_tree_is_unchanged() {
  for (Bit32u n = 0; n < nodes.size(); n++)
    if (n != STDIN_NODE && n != LOST_NODE && !is_unchanged(n)) return false;
  return true;
}

// The file that the guest sees as its standard input.
void nhm_tree_stdin(const char *path) {
  if (!base) return;
  nodes[STDIN_NODE].name = path;
  if (stat(path, &nodes[STDIN_NODE].is) || !S_ISREG(nodes[STDIN_NODE].is.st_mode)) {
    nodes[STDIN_NODE].is = {};
    nodes[STDIN_NODE].is.st_mode = S_IFREG;
  }
  Node &node = nodes[STDIN_NODE];
  node.is.st_mode |= 0444;
  node.pages = pages_of(node.is.st_size);
  node.chunk_bits = bits_for(node.pages, entries_of(node));
}

// A path that the command is likely to use.
void nhm_tree_know(const char *path) { known.insert(path); }

// A folder of which the guest sees only what leads to known paths.
void nhm_tree_share(const char *path) { shared.insert(path); }

// The host's root folder is looked at when the guest first asks for it.
void nhm_place_tree() {
  const char *where = getenv("NHM_TREE");
  if (!where) return;
  char *end;
  address = strtoull(where, &end, 0);
  const Bit64u bytes = *end == ',' ? strtoull(end + 1, NULL, 0) : 0;
  size = bytes / PAGE;
  Page first = size - size / 4;
  for (Area &area : areas) {
    area.first = first;
    area.pages = size / 4 / 16 * area.sixteenths;
    first += area.pages;
  }
  if (size <= FIRST_FREE) BX_PANIC(("NHM_TREE wants ADDRESS,SIZE"));
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) BX_PANIC(("no addresses for the host's files: %s", strerror(errno)));
  base = (Bit8u *)memory;
  made.resize(size);
  add_fixed(HOST_PAGE, "/", S_IFDIR, 0);
  add_fixed(STDIN_PAGE, "", S_IFREG, STDIN_INDEX);
  add_fixed(LOST_PAGE, "", S_IFIFO, 0);
  BX_MEM(0)->registerMemoryHandlers(NULL, read_memory, write_memory, direct_access, address, address + bytes - 1);
}
