# SPDX-License-Identifier: GPL-2.0-only
"""A program without frame pointers whose calls are known: from main through its own functions,
those of a shared library, qsort() of the C library and a callback, to leaf(), which touches a new
page in each round."""
import subprocess

OWN, LIBRARY, BACK = 8, 8, 6

# The calls from main to qsort, outermost first. The C library lies between the shared library and the
# comparison function.
OUTER = ("main", "rounds", *(f"own{i}" for i in range(OWN)), *(f"lib{i}" for i in range(LIBRARY)))
INNER = ("compare", *(f"back{i}" for i in range(BACK)), "leaf")

FLAGS = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-icf", "-fno-inline", "-fPIC", "-pthread"]


def links(names, last):
    """Returns the source of functions that call each other, innermost first, with stack frames of
    different sizes."""
    text = ""
    for i, name in reversed(list(enumerate(names))):
        callee = names[i + 1] if i + 1 < len(names) else last
        text += f"""
__attribute__((noinline, noclone)) long {name}(long x)
{{
    volatile char here[{16 + 24 * (i % 5)}];
    here[0] = x;
    return {callee}(x + 1) + here[0];
}}
"""
    return text


LIBRARY_SOURCE = """
#include <stdlib.h>
typedef int (*compare_t)(const void *, const void *);
compare_t comparison;
__attribute__((noinline, noclone)) static long sorted(long x)
{
    int two[2] = {1, 0};
    qsort(two, 2, sizeof(int), comparison);
    return two[0] + x;
}
""" + links([f"lib{i}" for i in range(LIBRARY)], "sorted")

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*compare_t)(const void *, const void *);
extern compare_t comparison;
long lib0(long);
static char *page;

__attribute__((noinline, noclone)) long leaf(long x)
{
    *(volatile char *)page = 1;
    return x;
}
""" + links([f"back{i}" for i in range(BACK)], "leaf") + r"""
int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b + (int)(back0(1) & 0);
}
""" + links([f"own{i}" for i in range(OWN)], "lib0") + r"""
static void rounds(long nr)
{
    for (long i = 0; i < nr; i++) {
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        own0(i);
        munmap(page, 4096);
    }
}

static void on_signal(int signal)
{
    rounds(1);
}

static void *in_thread(void *nr)
{
    rounds((long)nr);
    return NULL;
}

static void calls(long nr)
{
    for (long i = 0; i < nr; i++)
        own0(i);
}

static void look_at_clock(long nr)
{
    struct timespec now;

    for (long i = 0; i < nr; i++)
        clock_gettime(CLOCK_MONOTONIC, &now);
}

/* Does something until it has taken so much of the CPU's time: a slow machine takes longer, and as many samples. */
static void busy(void (*what)(long), long nr, long ms)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do {
        what(nr);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void spin(long ms)
{
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    busy(calls, 100, ms);
}

static void with_child(void (*what)(long), long nr)
{
    pid_t pid = fork();

    if (!pid) {
        what(nr);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    char line[4096];

    comparison = compare;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin)) {
        char *word = strtok(line, " \n"), *rest = strtok(NULL, "\n");
        long nr = rest ? atol(rest) : 0;
        pthread_t thread;

        if (!strcmp(word, "rounds")) {
            rounds(nr);
        } else if (!strcmp(word, "calls")) {
            page = malloc(1);
            calls(nr);
        } else if (!strcmp(word, "mmaps")) {
            busy(rounds, 100, nr);
        } else if (!strcmp(word, "spin")) {
            spin(nr);
        } else if (!strcmp(word, "thread")) {
            pthread_create(&thread, NULL, in_thread, (void *)nr);
            pthread_join(thread, NULL);
        } else if (!strcmp(word, "signals")) {
            signal(SIGUSR1, on_signal);
            for (long i = 0; i < nr; i++)
                raise(SIGUSR1);
        } else if (!strcmp(word, "forks")) {
            for (long i = 0; i < nr; i++)
                with_child(spin, 50);
        } else if (!strcmp(word, "fork")) {
            with_child(rounds, nr);
        } else if (!strcmp(word, "vdso")) {
            busy(look_at_clock, 100000, nr);
        } else if (!strcmp(word, "exec")) {
            execl(rest, rest, (char *)NULL);
        }
        puts("done");
    }
    return 0;
}
"""


def build(folder, *flags, static=False, name="chain"):
    """Builds the program and returns its path."""
    library, source = folder / "libchain.c", folder / "chain.c"
    library.write_text(LIBRARY_SOURCE)
    source.write_text(SOURCE)
    program = folder / name
    if static:
        subprocess.run(["gcc", *FLAGS, *flags, "-static", "-o", program, source, library], check=True)
    else:
        shared = folder / "libchain.so"
        subprocess.run(["gcc", *FLAGS, "-shared", "-o", shared, library], check=True)
        subprocess.run(["gcc", *FLAGS, *flags, "-o", program, source, f"-Wl,-rpath,{folder}", shared, "-ldl"], check=True)
    return str(program)


class Chain:
    """The running program, which reads steps from its input. Use it in a with statement."""

    def __init__(self, program, *before):
        self.process = subprocess.Popen([*before, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def tell(self, step):
        self.process.stdin.write(step + "\n")
        self.process.stdin.flush()

    def do(self, step):
        self.tell(step)
        assert self.process.stdout.readline() == "done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def is_whole(names):
    """Whether the chain is complete and in order from main's caller through the C library's sort to
    leaf."""
    if "main" not in names or "compare" not in names:
        return False
    begin, turn = names.index("main"), names.index("compare")
    between = names[begin + len(OUTER):turn]
    return (begin >= 1 and names[begin:begin + len(OUTER)] == OUTER and names[turn:] == INNER
            and between[0] == "sorted" and "qsort" in between[1] and len(between) <= 4)
