// Writes this whole process to a file, from which restore.c makes another one that goes on where
// this one was: its memory and its registers are all of its state. Descriptors become those of
// the new caller. The pages that the kernel lends to every process (the vDSO) are replaced, so another kernel serves
// as well. Another processor does if the C library uses no instructions that only this one has: nehalem.py asks it to.
//
// While memory is written nothing may change it that matters later, so this file allocates nothing.

#include "nhm_image.h"
#include <asm/prctl.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Returns 0, and what restore.c says whenever a process continues from the image.
extern "C" int nhm_save_registers(nhm_registers *) __attribute__((returns_twice));
asm(".globl nhm_save_registers\n"
    "nhm_save_registers:\n"
    "  mov %rbx, (%rdi)\n  mov %rbp, 8(%rdi)\n"
    "  mov %r12, 16(%rdi)\n  mov %r13, 24(%rdi)\n  mov %r14, 32(%rdi)\n  mov %r15, 40(%rdi)\n"
    "  lea 8(%rsp), %rax\n  mov %rax, 48(%rdi)\n"
    "  mov (%rsp), %rax\n  mov %rax, 56(%rdi)\n"
    "  xor %eax, %eax\n  ret\n");

namespace {

enum : size_t { PAGE = 4096, STACK_ROOM = 8 << 20, HUGE_PAGE = 2 << 20 };
// A hole of fewer pages is left in the file: each mapping costs the start of the new process a microsecond.
enum : size_t { HOLE_PAGES = 32, PAGEMAP_ENTRIES = 4096, WRITE_PAGES = 256 };

nhm_image image;
struct sigaction actions[64];
char maps_text[1 << 18];
int image_fd, pagemap_fd;
size_t file_end;                 // of the memory that is written so far
int failure;                     // the errno that it failed with
bool continued;                  // this process has itself continued from an image

struct Area { size_t from, to; int protection; bool is_private, in_file; const char *name; };

bool is_named(const Area &area, const char *name) { return !strncmp(area.name, name, strlen(name)); }

// A line of /proc/self/maps; returns the next one.
char *parse_area(char *line, Area &area) {
  char *next = strchr(line, '\n'), *at;
  *next++ = 0;
  area.from = strtoul(line, &at, 16);
  area.to = strtoul(at + 1, &at, 16);
  const char *rights = at + 1;
  area.protection = (rights[0] == 'r') * PROT_READ | (rights[1] == 'w') * PROT_WRITE | (rights[2] == 'x') * PROT_EXEC;
  area.is_private = rights[3] == 'p';
  area.in_file = strchr(rights, '/') != NULL;
  const char *name = strchr(rights, '[');
  area.name = name ? name : "";
  return next;
}

void add_mapping(size_t from, size_t to, size_t protection, size_t offset) {
  if (from == to) return;
  if (image.nr_mappings == NHM_IMAGE_MAPS) {
    failure = E2BIG;
    return;
  }
  image.mappings[image.nr_mappings++] = { from, to - from, protection, offset };
}

bool is_zero(size_t at) {
  const uint64_t *word = (const uint64_t *)at;
  for (size_t k = 0; k < PAGE / sizeof *word; k++)
    if (word[k]) return false;
  return true;
}

// Whether a page of an area has content. One that was never touched is not touched by the question.
bool has_content(const Area &area, size_t at) {
  static uint64_t entries[PAGEMAP_ENTRIES];
  static size_t first = 1, end;  // of the entries: addresses
  enum : uint64_t { PRESENT_OR_SWAPPED = 3ull << 62 };
  if (!area.in_file && pagemap_fd >= 0) {
    if (at < first || at >= end) {
      const ssize_t n = pread(pagemap_fd, entries, sizeof entries, at / PAGE * sizeof *entries);
      first = at;
      end = at + (n > 0 ? n / sizeof *entries : 0) * PAGE;
    }
    if (at < end && !(entries[(at - first) / PAGE] & PRESENT_OR_SWAPPED)) return false;
  }
  return !is_zero(at);
}

void write_pages(size_t from, size_t to, size_t offset) {
  while (from < to && !failure) {
    const ssize_t n = pwrite(image_fd, (const void *)from, to - from, offset);
    if (n <= 0) failure = n ? errno : ENOSPC;
    from += n;
    offset += n;
  }
}

// Pages from..to become one mapping; those without content are holes in the file.
void write_run(const Area &area, size_t from, size_t to) {
  size_t begun = from;
  for (size_t at = from; at < to; at += PAGE) {
    const bool wanted = has_content(area, at);
    if (!wanted || at - begun == WRITE_PAGES * PAGE) {
      write_pages(begun, at, file_end + (begun - from));
      begun = wanted ? at : at + PAGE;
    }
  }
  write_pages(begun, to, file_end + (begun - from));
  add_mapping(from, to, area.protection, file_end);
  file_end += to - from;
}

void write_area(const Area &area) {
  size_t zeros = area.from;                        // up to here all is written
  if (area.protection & PROT_READ)
    for (size_t at = area.from; at < area.to && !failure; at += PAGE) {
      if (!has_content(area, at)) continue;
      size_t end = at + PAGE;                      // behind the last page of the run
      for (size_t k = end; k < area.to && k < end + HOLE_PAGES * PAGE; k += PAGE)
        if (has_content(area, k)) end = k + PAGE;
      add_mapping(zeros, at, area.protection, 0);
      write_run(area, at, end);
      zeros = end;
      at = end - PAGE;
    }
  add_mapping(zeros, area.to, area.protection, 0);
}

// The function becomes a system call; both have the same arguments and results.
void replace_function(const char *name, unsigned char *code) {
  static const struct { const char *name; uint32_t number; } calls[] = {
    { "__vdso_clock_gettime", SYS_clock_gettime }, { "__vdso_clock_getres", SYS_clock_getres },
    { "__vdso_gettimeofday", SYS_gettimeofday }, { "__vdso_time", SYS_time }, { "__vdso_getcpu", SYS_getcpu },
    { "__vdso_getrandom", SYS_getrandom },
  };
  for (const auto &call : calls)
    if (!strcmp(name, call.name)) {
      code[0] = 0xb8;                              // mov number, %eax
      memcpy(code + 1, &call.number, 4);
      memcpy(code + 5, "\x0f\x05\xc3", 3);         // syscall; ret
    }
}

// The names of a vDSO follow its symbols; its addresses begin with 0.
void replace_functions(unsigned char *vdso, size_t size) {
  const Elf64_Ehdr *head = (Elf64_Ehdr *)vdso;
  const Elf64_Phdr *segment = (Elf64_Phdr *)(vdso + head->e_phoff);
  size_t symbols = 0, names = 0;
  for (unsigned k = 0; k < head->e_phnum; k++)
    if (segment[k].p_type == PT_DYNAMIC)
      for (const Elf64_Dyn *d = (Elf64_Dyn *)(vdso + segment[k].p_offset); d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB) symbols = d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB) names = d->d_un.d_ptr;
      }
  if (!symbols || names < symbols || names >= size) {
    failure = ENOTSUP;
    return;
  }
  for (const Elf64_Sym *s = (Elf64_Sym *)(vdso + symbols); s + 1 <= (Elf64_Sym *)(vdso + names); s++)
    if (s->st_value && s->st_value + 8 <= size) replace_function((char *)vdso + names + s->st_name, vdso + s->st_value);
}

// The C library has the places of its functions. What they read, vvar, belongs to this kernel, and goes.
void write_vdso(const Area &area) {
  alignas(PAGE) static unsigned char copy[8 * PAGE];
  const size_t size = area.to - area.from;
  if (size > sizeof copy) {
    failure = ENOTSUP;
    return;
  }
  memcpy(copy, (const void *)area.from, size);
  replace_functions(copy, size);
  write_pages((size_t)copy, (size_t)copy + size, file_end);
  add_mapping(area.from, area.to, area.protection, file_end);
  file_end += size;
}

// What the kernel gave to restore.c, and restore.c: the next process has its own. What this one got when it began has no
// such names any more.
bool is_restorers(const Area &area) {
  return (area.from >= NHM_RESTORER && area.to <= NHM_RESTORER_END) || is_named(area, "[stack]") || is_named(area, "[vdso]");
}

void take_area(const Area &area) {
  if (continued && is_restorers(area)) return;
  if (is_named(area, "[vsyscall]") || is_named(area, "[vvar")) return;
  if (is_named(area, "[vdso]")) return write_vdso(area);
  if (!area.is_private) failure = ENOTSUP;
  // The kernel lets a stack grow, but not one that is made of a file.
  if (is_named(area, "[stack]")) add_mapping(area.from - STACK_ROOM, area.from, area.protection, 0);
  write_area(area);
}

bool read_maps() {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t have = 0;
  for (ssize_t n; (n = read(fd, maps_text + have, sizeof maps_text - 1 - have)) > 0;) have += n;
  close(fd);
  maps_text[have] = 0;
  return have && have < sizeof maps_text - 1;
}

// Which of the files a descriptor is, or is a copy of. Two of them may be one file of the host, but not of the
// next caller's.
int place_of(int fd, const struct stat &is, const int *files, unsigned nr_files) {
  int place = -1;
  for (unsigned k = 0; k < nr_files; k++) {
    struct stat of;
    if (fd == files[k]) return k;
    if (!fstat(files[k], &of) && of.st_dev == is.st_dev && of.st_ino == is.st_ino) place = k;
  }
  return place;
}

void take_descriptors(const int *files, unsigned nr_files) {
  image.nr_descriptors = 0;
  for (int fd = 0; fd < 1024; fd++) {
    struct stat is;
    if (fd == image_fd || fstat(fd, &is)) continue;
    const int place = place_of(fd, is, files, nr_files);
    if (image.nr_descriptors == NHM_IMAGE_FILES) {
      failure = EMFILE;
      return;
    }
    image.descriptors[image.nr_descriptors++] = { fd, place };
  }
}

void write_image() {
  if (!read_maps()) failure = EFBIG;
  pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  image.magic = NHM_IMAGE_MAGIC;
  image.nr_mappings = 0;
  file_end = (sizeof image + PAGE - 1) / PAGE * PAGE;
  Area area;
  for (char *line = maps_text; *line && !failure;) {
    line = parse_area(line, area);
    take_area(area);
  }
  if (pagemap_fd >= 0) close(pagemap_fd);
  write_pages((size_t)&image, (size_t)(&image + 1), 0);
  if (!failure && ftruncate(image_fd, file_end)) failure = errno;
}

void take_signals(bool back) {
  for (int k = 1; k < 64; k++)
    if (back) sigaction(k, &actions[k], NULL);
    else sigaction(k, NULL, &actions[k]);
}

} // namespace

// Writes the image to the file `fd`; `files` are the descriptors that get new ones. Returns 0 if
// this is a process that continues from the image, whose caller is *caller; else 1, with the errno
// in *error, or 0 there.
int nhm_snapshot(int fd, const int *files, unsigned nr_files, int *error, int *caller) {
  failure = 0;
  image_fd = fd;
  take_signals(false);
  take_descriptors(files, nr_files);
  syscall(SYS_arch_prctl, ARCH_GET_FS, &image.fs);
  if (const int who = nhm_save_registers(&image.registers)) {
    take_signals(true);
    continued = true;
    // The heap's end is the new process's own, which is higher; malloc() takes it for somebody
    // else's memory between the two.
    if (brk(NULL)) _exit(1);
    *caller = who;
    return 0;
  }
  write_image();
  *error = failure;
  return 1;
}

// A process that continues from an image gets huge pages when it has run for a while: clearing one
// costs more than a short command does with the little of it that it uses.
void nhm_ask_for_huge_pages() {
  if (!read_maps()) return;
  Area area;
  for (char *line = maps_text; *line;) {
    line = parse_area(line, area);
    if (!area.in_file && area.is_private && (area.protection & PROT_WRITE) && area.to - area.from >= HUGE_PAGE)
      madvise((void *)area.from, area.to - area.from, MADV_HUGEPAGE);
  }
}
