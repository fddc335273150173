#include "nhm_host.h"
#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace {

// ---- the host's own files

int own_status(const std::string &path, struct stat &is) { return lstat(path.c_str(), &is); }

int own_rights(const std::string &path) {
  int may = 0;
  for (int right : { R_OK, W_OK, X_OK })
    if (!faccessat(AT_FDCWD, path.c_str(), right, AT_EACCESS)) may |= right;
  return may;
}

// Some file systems leave the type to lstat().
mode_t listed_type(DIR *folder, const dirent *e) {
  struct stat is;
  if (e->d_type != DT_UNKNOWN) return DTTOIF(e->d_type);
  return fstatat(dirfd(folder), e->d_name, &is, AT_SYMLINK_NOFOLLOW) ? S_IFREG : is.st_mode & S_IFMT;
}

int own_list(const std::string &path, std::vector<nhm_host::Listed> &found) {
  DIR *d = opendir(path.c_str());
  if (!d) return -1;
  while (const dirent *e = readdir(d))
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) found.push_back({ e->d_name, listed_type(d, e) });
  closedir(d);
  return 0;
}

std::string own_target(const std::string &path) {
  char target[PATH_MAX];
  const ssize_t n = readlink(path.c_str(), target, sizeof target);
  return std::string(target, n > 0 ? n : 0);
}

bool is_wanted(const char *name) { return !strncmp(name, "user.", 5) || !strcmp(name, "security.capability"); }

nhm_host::Attributes own_attributes(const std::string &path) {
  nhm_host::Attributes found;
  char names[2048], value[2048];
  const ssize_t n = llistxattr(path.c_str(), names, sizeof names);
  for (ssize_t at = 0; at < n; at += strlen(names + at) + 1) {
    if (!is_wanted(names + at)) continue;
    const ssize_t size = lgetxattr(path.c_str(), names + at, value, sizeof value);
    if (size >= 0) found.push_back({ names + at, std::string(value, size) });
  }
  return found;
}

// A regular file, or -1. Nothing waits here for a FIFO's other end, and no device is opened twice.
int open_file(const std::string &path, bool follow, struct stat &now) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
  if (fd < 0) return fd;
  if (!fstat(fd, &now) && S_ISREG(now.st_mode)) return fd;
  close(fd);
  errno = ESTALE;
  return -1;
}

// The files that were read last stay open, so that one which is replaced by another of its name
// is not read as a mixture of both.
struct { std::string path; int fd; } files[64];
unsigned next_file, opened;

int cached_file(const std::string &path, bool follow, struct stat &now) {
  for (unsigned k = 0; k < opened; k++)
    if (files[k].path == path) {
      if (!fstat(files[k].fd, &now)) return files[k].fd;
    }
  const int fd = open_file(path, follow, now);
  if (fd < 0) return fd;
  if (opened < 64) opened++;
  else close(files[next_file].fd);
  files[next_file] = { path, fd };
  next_file = (next_file + 1) % 64;
  return fd;
}

off_t own_next_data(const std::string &path, bool follow, off_t from, off_t size) {
  struct stat now;
  const int fd = cached_file(path, follow, now);
  if (fd < 0) return -1;
  const off_t at = lseek(fd, from, SEEK_DATA);
  if (at >= 0) return at;
  return errno == ENXIO ? std::max(from, size) : from;
}

ssize_t own_read(const std::string &path, bool follow, off_t from, void *to, size_t length, struct stat &now) {
  const int fd = cached_file(path, follow, now);
  return fd < 0 ? -1 : pread(fd, to, length, from);
}

// ---- mounts

enum Kind { LOCAL, KERNELS, FOREIGN };

// Kernel interfaces of the host that mean nothing in the guest, or wait when they are read.
const char *const kernels[] = { "proc", "sysfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "bpf",
                                "securityfs", "efivarfs", "binfmt_misc", "autofs", "nsfs", "selinuxfs", "pstore",
                                "hugetlbfs", "mqueue", "configfs", "fusectl", "rpc_pipefs", "nfsd" };
const char *const foreign[] = { "fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs", "coda", "lustre", "virtiofs",
                                "beegfs", "orangefs", "davfs", "ncpfs", "gfs2", "ocfs2", "vboxsf", "vmhgfs", "prl_fs" };

struct Mount { Kind kind; bool silent; };
std::map<std::string, Mount> mounts;      // by their paths
bool any_foreign;
std::vector<std::string> told_silent;
int table = -1;

Kind kind_of(const std::string &type) {
  for (const char *name : kernels)
    if (type == name) return KERNELS;
  for (const char *name : foreign)
    if (!type.compare(0, strlen(name), name) && type != "fusectl") return FOREIGN;
  return LOCAL;
}

// The table has blanks and the like as octal numbers.
std::string unescaped(const std::string &text) {
  std::string out;
  for (size_t k = 0; k < text.size(); k++)
    if (text[k] == '\\' && k + 3 < text.size()) {
      out += char(strtol(text.substr(k + 1, 3).c_str(), NULL, 8));
      k += 3;
    } else out += text[k];
  return out;
}

// "36 35 98:0 /root /mount options … - type source options". Of several on a path the last is seen.
void take_mount(const std::string &line, std::map<std::string, Mount> &found) {
  size_t at = 0;
  for (int k = 0; k < 4; k++) at = line.find(' ', at) + 1;
  const std::string path = unescaped(line.substr(at, line.find(' ', at) - at));
  const size_t type = line.find(" - ");
  if (type == std::string::npos) return;
  const Kind kind = kind_of(line.substr(type + 3, line.find(' ', type + 3) - type - 3));
  const auto before = mounts.find(path);
  found[path] = { kind, before != mounts.end() && before->second.kind == kind && before->second.silent };
}

void read_mounts() {
  std::string text;
  char part[4096];
  for (ssize_t n; (n = pread(table, part, sizeof part, text.size())) > 0;) text.append(part, n);
  std::map<std::string, Mount> found;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    take_mount(text.substr(at, end - at), found);
  mounts.swap(found);
  any_foreign = std::any_of(mounts.begin(), mounts.end(), [](const auto &m) { return m.second.kind == FOREIGN; });
}

// The kernel tells whoever has the table open when it has changed.
void look_for_mounts() {
  pollfd p = { table, POLLPRI, 0 };
  const bool first = table < 0;
  if (first) table = p.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (table >= 0 && (poll(&p, 1, 0) > 0 || first)) read_mounts();
}

// The mount that a path is on. The root is as local as this program.
Mount *mount_of(const std::string &path) {
  if (table < 0) look_for_mounts();
  for (std::string at = path; at.size() > 1; at.resize(std::max<size_t>(at.rfind('/'), 1))) {
    const auto found = mounts.find(at);
    if (found != mounts.end()) return &found->second;
    if (at.rfind('/') == 0) break;
  }
  return NULL;
}

// ---- the process that asks foreign servers

enum Asked { STATUS, RIGHTS, LIST, TARGET, ATTRIBUTES, NEXT_DATA, READ };
enum { PATIENCE_MS = 5000 };

struct Question { Asked asked; int follow; off_t from; size_t length; size_t path; };
struct Answer { ssize_t result; int error; struct stat is; size_t bytes; };

int helper = -1;
pid_t helper_pid;

bool send_all(int fd, const void *from, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t n = send(fd, (const char *)from + done, length - done, MSG_NOSIGNAL);
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

bool receive_all(int fd, void *to, size_t length, int patience) {
  for (size_t done = 0; done < length;) {
    pollfd p = { fd, POLLIN, 0 };
    if (poll(&p, 1, patience) <= 0) return false;
    const ssize_t n = recv(fd, (char *)to + done, length - done, 0);
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

std::string joined(const std::vector<std::string> &parts) {
  std::string all;
  for (const std::string &part : parts) {
    const uint32_t size = part.size();
    all.append((const char *)&size, sizeof size) += part;
  }
  return all;
}

std::vector<std::string> apart(const std::string &all) {
  std::vector<std::string> parts;
  uint32_t size;
  for (size_t at = 0; at + sizeof size <= all.size(); at += sizeof size + size) {
    memcpy(&size, &all[at], sizeof size);
    parts.push_back(all.substr(at + sizeof size, size));
  }
  return parts;
}

// A part is the type, then the name.
int packed_list(const std::string &path, std::vector<std::string> &parts) {
  std::vector<nhm_host::Listed> found;
  const int result = own_list(path, found);
  for (const auto &listed : found) parts.push_back(std::string((const char *)&listed.type, sizeof listed.type) + listed.name);
  return result;
}

nhm_host::Listed unpacked(const std::string &part) {
  nhm_host::Listed listed;
  memcpy(&listed.type, part.data(), sizeof listed.type);
  listed.name = part.substr(sizeof listed.type);
  return listed;
}

Answer answer_to(const Question &q, const std::string &path, std::string &bytes) {
  Answer a = {};
  std::vector<std::string> parts;
  errno = 0;
  if (q.asked == STATUS) a.result = own_status(path, a.is);
  else if (q.asked == RIGHTS) a.result = own_rights(path);
  else if (q.asked == LIST) a.result = packed_list(path, parts);
  else if (q.asked == TARGET) bytes = own_target(path);
  else if (q.asked == NEXT_DATA) a.result = own_next_data(path, q.follow, q.from, q.length);
  else if (q.asked == READ) {
    bytes.resize(q.length);
    a.result = own_read(path, q.follow, q.from, &bytes[0], q.length, a.is);
    bytes.resize(std::max<ssize_t>(a.result, 0));
  } else
    for (const auto &attribute : own_attributes(path)) {
      parts.push_back(attribute.first);
      parts.push_back(attribute.second);
    }
  a.error = errno;
  if (!parts.empty()) bytes = joined(parts);
  a.bytes = bytes.size();
  return a;
}

[[noreturn]] void serve(int fd) {
  Question q;
  while (receive_all(fd, &q, sizeof q, -1)) {
    std::string path(q.path, 0), bytes;
    if (!receive_all(fd, &path[0], q.path, -1)) break;
    const Answer a = answer_to(q, path, bytes);
    if (!send_all(fd, &a, sizeof a) || !send_all(fd, bytes.data(), bytes.size())) break;
  }
  _exit(0);
}

void start_helper() {
  int ends[2];
  const pid_t parent = getpid();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return;
  helper_pid = fork();
  if (!helper_pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    dup2(ends[1], 3);
    syscall(SYS_close_range, 4u, ~0u, 0u);
    serve(3);
  }
  close(ends[1]);
  helper = ends[0];
}

// Without an answer the helper ends, as soon as the server lets it, and so does the mount for the guest.
bool ask(const std::string &path, Question q, Answer &a, std::string &bytes) {
  Mount *mount = mount_of(path);
  a = {};
  a.result = -1;
  a.error = ETIMEDOUT;
  if (mount->silent) return false;
  if (helper < 0) start_helper();
  q.path = path.size();
  if (helper >= 0 && send_all(helper, &q, sizeof q) && send_all(helper, path.data(), path.size()) &&
      receive_all(helper, &a, sizeof a, PATIENCE_MS)) {
    bytes.resize(a.bytes);
    if (receive_all(helper, &bytes[0], a.bytes, PATIENCE_MS)) return true;
  }
  a.result = -1;
  a.error = ETIMEDOUT;
  bytes.clear();
  if (helper >= 0) {
    kill(helper_pid, SIGKILL);
    close(helper);
  }
  helper = -1;
  mount->silent = true;
  told_silent.push_back(path);
  return false;
}

bool is_foreign(const std::string &path) {
  if (table >= 0 && !any_foreign) return false;
  const Mount *mount = mount_of(path);
  return mount && mount->kind == FOREIGN;
}

// The answer's result with its errno.
ssize_t result_of(const std::string &path, const Question &q, std::string &bytes, struct stat *is = NULL) {
  Answer a;
  ask(path, q, a, bytes);
  if (is) *is = a.is;
  errno = a.error;
  return a.result;
}

} // namespace

int nhm_host::status(const std::string &path, struct stat &is) {
  std::string none;
  return is_foreign(path) ? result_of(path, { STATUS }, none, &is) : own_status(path, is);
}

int nhm_host::rights(const std::string &path) {
  std::string none;
  return is_foreign(path) ? std::max<int>(result_of(path, { RIGHTS }, none), 0) : own_rights(path);
}

int nhm_host::list(const std::string &path, std::vector<Listed> &found) {
  if (!is_foreign(path)) return own_list(path, found);
  std::string bytes;
  const int result = result_of(path, { LIST }, bytes);
  for (const std::string &part : apart(bytes)) found.push_back(unpacked(part));
  return result;
}

std::string nhm_host::target(const std::string &path) {
  if (!is_foreign(path)) return own_target(path);
  std::string bytes;
  result_of(path, { TARGET }, bytes);
  return bytes;
}

nhm_host::Attributes nhm_host::attributes(const std::string &path) {
  if (!is_foreign(path)) return own_attributes(path);
  std::string bytes;
  result_of(path, { ATTRIBUTES }, bytes);
  const std::vector<std::string> parts = apart(bytes);
  Attributes found;
  for (size_t k = 0; k + 1 < parts.size(); k += 2) found.push_back({ parts[k], parts[k + 1] });
  return found;
}

off_t nhm_host::next_data(const std::string &path, bool follow, off_t from, off_t size) {
  std::string none;
  return is_foreign(path) ? result_of(path, { NEXT_DATA, follow, from, size_t(size) }, none)
                          : own_next_data(path, follow, from, size);
}

ssize_t nhm_host::read(const std::string &path, bool follow, off_t from, void *to, size_t length, struct stat &now) {
  if (!is_foreign(path)) return own_read(path, follow, from, to, length, now);
  std::string bytes;
  const ssize_t n = result_of(path, { READ, follow, from, length }, bytes, &now);
  memcpy(to, bytes.data(), std::min(bytes.size(), length));
  return n;
}

bool nhm_host::is_kernels(const std::string &path) {
  look_for_mounts();
  const auto found = mounts.find(path);
  return found != mounts.end() && found->second.kind == KERNELS;
}

std::vector<std::string> nhm_host::silent_mounts() {
  std::vector<std::string> told;
  told.swap(told_silent);
  return told;
}

void nhm_host::leave_helper() {
  if (helper >= 0) close(helper);
  helper = -1;
}

void nhm_host::close_all() {
  leave_helper();
  while (opened) close(files[--opened].fd);
  next_file = 0;
  if (table >= 0) close(table);
  table = -1;
  mounts.clear();
}
