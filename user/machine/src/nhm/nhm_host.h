// What the guest sees of the host's files is asked for here. Each call returns in time: files of
// another machine's server, or of a program (FUSE), are asked for by a process that is given up if
// it does not answer.
#ifndef NHM_HOST_H
#define NHM_HOST_H

#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace nhm_host {

typedef std::vector<std::pair<std::string, std::string>> Attributes;

// Like lstat().
int status(const std::string &path, struct stat &is);

// What access(), by the effective user, allows: R_OK | W_OK | X_OK.
int rights(const std::string &path);

// What a folder lists without "." and ".."; -1 and errno if it cannot be listed. `type`: the bits S_IFMT of a mode, as they
// stand in the folder: of a file that is mounted on another one, it may be the other's.
struct Listed { std::string name; mode_t type; };
int list(const std::string &path, std::vector<Listed> &found);

// A symbolic link's target; empty if there is none.
std::string target(const std::string &path);

// The extended attributes that programs use: user.* and security.capability.
Attributes attributes(const std::string &path);

// The first place at or behind `from` where a file has data; its size if there is none, -1 if it
// cannot be read. `follow`: also through a symbolic link.
off_t next_data(const std::string &path, bool follow, off_t from, off_t size);

// Reads like pread(), and what the open file is now. What is no regular file is not read: ESTALE.
ssize_t read(const std::string &path, bool follow, off_t from, void *to, size_t length, struct stat &now);

// Whether a path is where the host's kernel shows itself: /proc, a cgroup, … Also looks for new mounts: ask it
// of a folder before what is in it.
bool is_kernels(const std::string &path);

// In a machine that was forked, or that continues from an image: the process that asks servers is another
// machine's, which would get the answers.
void leave_helper();

// Before an image is written: a machine that continues from it has none of these files, and other mounts.
void close_all();

// Paths of servers that did not answer, since the last call.
std::vector<std::string> silent_mounts();

}

#endif
