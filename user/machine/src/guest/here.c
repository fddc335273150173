/*
 * Runs one command in the guest as if it ran on the host: in the host's files, with the
 * user's rights, environment, folder and terminal.
 *
 *     here prepare MODULE...   once: loads the kernel's modules and finds the host's files
 *     here run                 runs the command that standard input describes (struct order)
 *     here replaced PATH       prints the folders below PATH that hide those of the host, each with a NUL
 *     here send PATH...        prints an archive of what is at each PATH and below it, from / on, without files' holes
 *
 * It carries the command's streams itself, through the ports of src/nhm/nhm_ports.cc, and asks the
 * host for input and signals by PORT_EVENT: what arrives there is a word for its kind, a word
 * for its length, and its bytes, padded to 4.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/random.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { PORT_BASE = 0xCE0, PORT_FLUSH = 0xCE4, PORT_WORD = 0xCE7, PORT_REQUEST = 0xCE8, PORT_EVENT = 0xCEC };
enum { INPUT = 1, END_OF_INPUT, SIGNAL, SIZE };	 /* kinds of events */
enum { WANT_INPUT = 1, STOPPED, SIGNALLED, LOST = 6 }; /* words for the host; 4 and 5 are those of forks.py; 6 + stream */
enum { FROM_NULL, FROM_FILE, FROM_STREAM };	 /* kinds of standard input */
enum { INTERACTIVE_MS = 10, SIGNALS_MS = 20 };	 /* between two questions for events */
enum { UNASKED_MOST = 16 };			 /* pieces of output without one: some commands never pause */
enum { TREE_MODE = 0755, BUFFER = 1 << 16 };

/* What here.py writes; the groups and the strings follow: folder, the program's path or nothing, command, environment.
 * Another form has another number. */
__attribute__((used)) static const char form[8] = "order 6";

struct order {
	char form[sizeof(form)];
	uint32_t uid, gid, groups, umask;
	uint32_t terminals; /* bit N: descriptor N is a terminal */
	uint32_t closed; /* bit N: descriptor N is not open */
	uint32_t ignored; /* bit N: the caller ignores signal N, as below nohup(1) or in a shell's background */
	uint32_t one_output; /* standard output and errors are one file */
	uint32_t input;	    /* FROM_... */
	uint32_t offset, offset_high;
	uint32_t rows, columns;
	uint32_t flags[4]; /* of the terminal: input, output, control, local */
	uint8_t control[20];
	uint32_t arguments, variables, bytes;
	uint32_t sets_clock, clock; /* whether the clock is set, and to how many seconds since 1970 */
	uint32_t varies, number; /* whether what is fixed in other runs is another with each number */
	uint32_t few_symbols; /* /proc/kallsyms has the beginning of the kernel's code alone */
	uint32_t breakpoints; /* debuggers and uprobes may set some in the host's programs */
	uint8_t run_id[16]; /* random: nhmtap tells runs apart by it */
};

/* A stream that is carried to the host, or from it. */
struct carried {
	int fd;
	int stream;
};

static char buffer[BUFFER];

static const char *const own[] = {"/proc", "/sys", "/dev", "/run"};
enum { OWN = sizeof(own) / sizeof(*own) };

/* ---------------------------------------------------------------- the host's files */

/* What is to be said of a path that is not there, since the guest sees other files below `own` than the host. */
static const char *why_missing(const char *path)
{
	for (size_t i = 0; i < OWN; i++) {
		size_t length = strlen(own[i]);

		if (errno == ENOENT && !strncmp(path, own[i], length) && path[length] == '/')
			return "; /proc, /sys, /dev and /run are the machine's own";
	}
	return "";
}

static int complain(const char *what)
{
	fprintf(stderr, "run: the guest: %s: %s%s\n", what, strerror(errno), why_missing(what));
	return 125;
}

static int load(const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);
	/* A driver refuses with ENODEV if this processor does not have what it is for. */
	int failed = fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST && errno != ENODEV);
	int status = failed ? complain(module) : 0;

	if (fd >= 0)
		close(fd);
	return status;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	write(fd, text, strlen(text));
	close(fd);
}

/* The pages from BROKEN_PAGE on of nhm_tree.cc, where what the host cannot read is, in sectors. Linux 6.1 puts
 * more than 512 at a time into a wrong order, and does not find them. */
static void register_broken(void)
{
	enum { FIRST = 8192, SECTORS = 32768, STEP = 512 };
	char line[32];

	for (int at = FIRST; at < FIRST + SECTORS; at += STEP) {
		snprintf(line, sizeof(line), "%d %d", at, STEP);
		write_file("/sys/block/pmem0/badblocks", line);
	}
}

static int mount_files(const char *options)
{
	if (mount("/dev/pmem0", "/files", "erofs", MS_RDONLY | MS_NOATIME, options))
		return complain("the host's files");
	return 0;
}

static int warm_up(void);

static int prepare(char **modules)
{
	for (; *modules; modules++)
		if (load(*modules))
			return 125;
	register_broken();
	mkdir("/files", TREE_MODE);
	mkdir("/layer", TREE_MODE);
	mkdir("/here", TREE_MODE);
	return mount_files("dax=always") || warm_up() ? 125 : 0;
}

/* What is free, but for a tenth: beyond that the kernel would end programs. */
static unsigned long long size_of_layer(void)
{
	struct sysinfo s;

	sysinfo(&s);
	return (unsigned long long)s.freeram * s.mem_unit / 10 * 9;
}

/* What takes what is written. */
static int lay_layer(void)
{
	char options[128];

	snprintf(options, sizeof(options), "mode=755,size=%llu", size_of_layer());
	if (mount("layer", "/layer", "tmpfs", 0, options))
		return complain("the layer above the host's files");
	mkdir("/layer/upper", TREE_MODE);
	mkdir("/layer/work", TREE_MODE);
	return 0;
}

/* /here: the host's files below the layer, with this kernel's own /proc and so on. */
static int lay_out(const char *files)
{
	char options[128], to[16];

	snprintf(options, sizeof(options),
		 "lowerdir=%s,upperdir=/layer/upper,workdir=/layer/work,redirect_dir=off,metacopy=off,index=off,xino=off", files);
	if (mount("here", "/here", "overlay", 0, options))
		return complain("the layer above the host's files");
	for (size_t k = 0; k < OWN; k++) {
		snprintf(to, sizeof(to), "/here%s", own[k]);
		mkdir(to, TREE_MODE); /* a container's files may lack it */
		if (mount(own[k], to, NULL, MS_BIND | MS_REC, NULL))
			return complain(to);
	}
	return 0;
}

/* As switch_root(8) does it: after a chroot alone, user namespaces would be refused. The mounts are made in the namespace,
 * which otherwise got a copy of each. */
static int enter(const char *files)
{
	if (unshare(CLONE_NEWNS))
		return complain("a mount namespace");
	if (lay_out(files))
		return 125;
	if (chdir("/here") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		return complain("the host's files");
	return 0;
}

/* ---------------------------------------------------------------- the command */

static int open_input(const struct order *o)
{
	int fd;

	if (o->input != FROM_FILE)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	fd = open("/files/stdin", O_RDONLY | O_CLOEXEC);
	lseek(fd, (off_t)o->offset_high << 32 | o->offset, SEEK_SET);
	return fd;
}

static char **take(char **text, uint32_t count)
{
	char **list = calloc(count + 1, sizeof(*list));

	for (uint32_t k = 0; k < count; k++) {
		list[k] = *text;
		*text += strlen(*text) + 1;
	}
	return list;
}

static void become(const struct order *o)
{
	const gid_t *groups = (const gid_t *)(o + 1);
	char *text = (char *)(groups + o->groups);
	const char *folder = text, *program;
	char **argv;

	text += strlen(text) + 1;
	program = text;
	text += strlen(text) + 1;
	argv = take(&text, o->arguments);
	environ = take(&text, o->variables);
	umask(o->umask);
	if (setgroups(o->groups, groups) || setresgid(o->gid, o->gid, o->gid) || setresuid(o->uid, o->uid, o->uid))
		_exit(complain("the user"));
	if (chdir(folder))
		_exit(complain(folder));
	if (*program)
		execv(program, argv);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s%s\n", argv[0], strerror(errno), why_missing(argv[0]));
	_exit(errno == ENOENT ? 127 : 126);
}

/* ---------------------------------------------------------------- its streams */

static void send_bytes(int stream, const char *at, size_t length)
{
	size_t words = length / 4, rest = length % 4;

	__asm__ volatile("rep outsl" : "+S"(at), "+c"(words) : "d"(PORT_BASE + stream) : "memory");
	__asm__ volatile("rep outsb" : "+S"(at), "+c"(rest) : "d"(PORT_BASE + stream) : "memory");
	outb(0, PORT_FLUSH);
}

static void read_words(void *to, size_t bytes)
{
	size_t words = (bytes + 3) / 4;

	__asm__ volatile("rep insl" : "+D"(to), "+c"(words) : "d"(PORT_REQUEST) : "memory");
}

/* Carries what there is to the host. At its end, or if nobody reads it there, the stream is closed. */
static int forward(struct carried *c)
{
	ssize_t n = read(c->fd, buffer, BUFFER);

	if (n > 0) {
		send_bytes(c->stream, buffer, n);
		if (!(inl(PORT_FLUSH) & 1u << c->stream))
			return 1;
		outl(LOST + c->stream, PORT_WORD);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	close(c->fd);
	c->fd = -1;
	return 0;
}

/* Input that the host has sent and the command has not taken yet. */
struct input {
	int fd;
	int wanted; /* the host was asked for more */
	int ends;
	uint32_t at, length;
	char bytes[BUFFER];
};

static void feed(struct input *i)
{
	ssize_t n = write(i->fd, i->bytes + i->at, i->length - i->at);

	if (n > 0)
		i->at += n;
	else if (errno != EAGAIN && errno != EINTR)
		i->at = i->length, i->ends = 1;
}

/* What the terminal itself would say at the end of its input: nothing but its end-of-file character. */
static void end_input(struct input *i, int terminal)
{
	if (!terminal)
		close(i->fd);
	i->fd = -1;
}

/* ---------------------------------------------------------------- events */

struct running {
	pid_t pid;
	int terminal; /* the side of it that is ours, or -1 */
	struct carried outputs[3];
	struct input *input;
	int ended; /* a signalfd for SIGCHLD */
	int status;
};

/* A terminal's signals go to all of a job, those of kill(1) to one process. */
static void pass_on(const struct running *r, int number)
{
	int of_terminal = number == SIGINT || number == SIGQUIT || number == SIGHUP || number == SIGCONT;

	kill(of_terminal ? -r->pid : r->pid, number);
	outl(SIGNALLED, PORT_WORD);
}

static void take_event(struct running *r)
{
	uint32_t head[2], words[2];

	read_words(head, sizeof(head));
	if (head[0] == INPUT) {
		r->input->at = r->input->wanted = 0;
		r->input->length = head[1];
		read_words(r->input->bytes, head[1]);
	} else if (head[0] == END_OF_INPUT) {
		r->input->ends = 1;
	} else {
		read_words(words, head[1]);
		if (head[0] == SIGNAL)
			pass_on(r, words[0]);
		else if (r->terminal >= 0)
			ioctl(r->terminal, TIOCSWINSZ, &(struct winsize){.ws_row = words[0], .ws_col = words[1]});
	}
}

static int wants_input(const struct input *i) { return i->fd >= 0 && !i->ends && i->at == i->length; }

/* Asks the host; waits for it if nothing else happens in the machine, so that its time does not run away. */
static void ask(struct running *r)
{
	struct pollfd p = {r->input->fd, POLLOUT, 0};

	if (wants_input(r->input) && !r->input->wanted && poll(&p, 1, 0) > 0) {
		r->input->wanted = 1;
		outl(WANT_INPUT, PORT_WORD);
	}
	outl(r->input->wanted ? INTERACTIVE_MS : 0, PORT_EVENT);
	while (inl(PORT_EVENT))
		take_event(r);
}

static int reap(struct running *r)
{
	struct signalfd_siginfo info;
	int status, running = 1;
	pid_t who;

	while (read(r->ended, &info, sizeof(info)) > 0)
		;
	while ((who = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (who != r->pid)
			continue;
		if (WIFSTOPPED(status)) {
			outl(STOPPED, PORT_WORD);
			continue;
		}
		r->status = status;
		running = 0;
	}
	return running;
}

/* What is in the pipes when the command has ended; not their end, since others may hold them. */
static void drain(struct running *r)
{
	for (int k = 0; k < 3; k++) {
		struct pollfd p = {r->outputs[k].fd, POLLIN, 0};

		while (p.fd >= 0 && poll(&p, 1, 0) > 0 && forward(&r->outputs[k]))
			;
	}
}

static void follow(struct running *r, int terminal_input)
{
	int unasked = 0;

	for (int running = 1; running;) {
		struct input *i = r->input;
		struct pollfd p[5] = {{r->ended, POLLIN, 0}, {i->at < i->length ? i->fd : -1, POLLOUT, 0}};
		int waiting = i->wanted || wants_input(i);

		for (int k = 0; k < 3; k++)
			p[2 + k] = (struct pollfd){r->outputs[k].fd, POLLIN, 0};
		if (!poll(p, 5, waiting ? INTERACTIVE_MS : SIGNALS_MS) || waiting || ++unasked == UNASKED_MOST) {
			ask(r);
			unasked = 0;
		}
		if (p[1].revents)
			feed(i);
		if (i->ends && i->at == i->length && i->fd >= 0)
			end_input(i, terminal_input);
		for (int k = 0; k < 3; k++)
			if (p[2 + k].revents)
				forward(&r->outputs[k]);
		if (p[0].revents)
			running = reap(r);
	}
	drain(r);
}

/* ---------------------------------------------------------------- its terminal */

static int open_terminal(const struct order *o, int *ours)
{
	struct winsize size = {.ws_row = o->rows, .ws_col = o->columns};
	struct termios t;
	int theirs, unlock = 0;

	*ours = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (*ours < 0 || ioctl(*ours, TIOCSPTLCK, &unlock))
		return -1;
	theirs = ioctl(*ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (theirs < 0 || tcgetattr(theirs, &t))
		return -1;
	t.c_iflag = o->flags[0];
	t.c_oflag = o->flags[1];
	t.c_lflag = o->flags[3];
	for (size_t k = 0; k < sizeof(o->control) && k < NCCS; k++)
		t.c_cc[k] = o->control[k];
	tcsetattr(theirs, TCSANOW, &t);
	ioctl(theirs, TIOCSWINSZ, &size);
	ioctl(theirs, TIOCSCTTY, 0); /* the guest's channel made this process a session's leader */
	fchown(theirs, o->uid, 5);
	fchmod(theirs, 0620);
	return theirs;
}

/* ---------------------------------------------------------------- all of it */

static void carry(struct carried *c, int fd, int stream)
{
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	*c = (struct carried){fd, stream};
}

/* A process group of its own, in our session: so the terminal can stop it, and it is in front. */
static void be_a_job(int terminal)
{
	setpgid(0, 0);
	if (terminal < 0)
		return;
	signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(terminal, getpid());
	signal(SIGTTOU, SIG_DFL);
}

static void start(const struct order *o, const char *files, int fds[3], int terminal, const sigset_t *before)
{
	iopl(0);
	be_a_job(terminal);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	for (uint32_t left = o->ignored; left; left &= left - 1)
		signal(__builtin_ctz(left), SIG_IGN);
	sigprocmask(SIG_SETMASK, before, NULL);
	for (int k = 0; k < 3; k++)
		if (o->closed >> k & 1)
			close(k);
		else
			dup2(fds[k], k);
	if (enter(files))
		_exit(125);
	become(o);
}

static int run(const struct order *o, const char *files)
{
	static struct input input;
	struct running r = {.terminal = -1, .input = &input};
	int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, fds[3], theirs = -1;
	int terminal_output = o->terminals & 6;
	sigset_t child, before;

	if (o->terminals && (theirs = open_terminal(o, &r.terminal)) < 0)
		return complain("a terminal");
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return complain("pipes");
	if (o->input != FROM_STREAM)
		fds[0] = open_input(o);
	else
		fds[0] = o->terminals & 1 ? theirs : in[0];
	fds[1] = o->terminals & 2 ? theirs : out[1];
	fds[2] = o->terminals & 4 ? theirs : o->one_output ? out[1] : err[1];

	input.fd = o->input != FROM_STREAM ? -1 : o->terminals & 1 ? r.terminal : in[1];
	if (input.fd >= 0)
		fcntl(input.fd, F_SETFL, O_NONBLOCK);
	carry(&r.outputs[0], out[0], 0);
	carry(&r.outputs[1], err[0], 1);
	carry(&r.outputs[2], r.terminal, terminal_output == 4 ? 1 : 0);

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	r.ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	r.pid = fork();
	if (r.pid == 0)
		start(o, files, fds, theirs, &before);
	if (r.pid < 0)
		return complain("fork");
	close(theirs);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	follow(&r, o->terminals & 1);
	return WIFSIGNALED(r.status) ? 128 + WTERMSIG(r.status) : WEXITSTATUS(r.status);
}

/* ---------------------------------------------------------------- what is fixed unless asked for */

/* Addresses, random numbers, pids, and the phase of the clock's ticks. The number decides about all of them. */
static int vary(uint32_t number)
{
	char text[16];
	int pool = open("/dev/urandom", O_RDWR | O_CLOEXEC);

	if (write(pool, &number, sizeof(number)) != sizeof(number) || ioctl(pool, RNDRESEEDCRNG))
		return complain("/dev/urandom");
	read(pool, &number, sizeof(number));
	close(pool);
	write_file("/proc/sys/kernel/randomize_va_space", "2");
	snprintf(text, sizeof(text), "%u", 300 + number % 30000);
	write_file("/proc/sys/kernel/ns_last_pid", text);
	for (volatile uint32_t passes = number % 1000000; passes; passes--)
		;
	return 0;
}

/* Perf reads all of the kernel's symbols several times, for some seconds each. With these two lines it still finds where
 * the kernel's code begins. */
static int hide_symbols(void)
{
	static const char path[] = "/proc/kallsyms", few[] = "/run/kallsyms";
	FILE *all = fopen(path, "r"), *kept = fopen(few, "w");
	char line[256];
	int nr = 0;

	while (all && kept && nr < 2 && fgets(line, sizeof(line), all))
		if (strstr(line, " _text\n") || strstr(line, " _stext\n"))
			nr++, fputs(line, kept);
	if (nr < 2 || fclose(all) || fclose(kept) || mount(few, path, NULL, MS_BIND, NULL))
		return complain(path);
	return 0;
}

/*
 * Puts the host's files into the page cache when they are read, and maps them from there. In pages of persistent memory Linux
 * has breakpoints that break programs: where a debugger writes into one, its program gets a copy of what the debugger itself
 * has at that address (mm/memory.c, __wp_page_copy_user() for a page that vm_normal_page() does not know); where a uprobe is
 * put, its program ends by SIGBUS (kernel/events/uprobes.c, __copy_insn() fills a page of the cache, which dax_iomap_fault()
 * does not expect).
 */
static int cache_files(void)
{
	return umount("/files") ? complain("the host's files") : mount_files("dax=never");
}

/* Where base/unique.c looks for it. */
static int leave_run_id(const struct order *o)
{
	int fd = open("/run/nhmtap-run", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	if (fd < 0 || write(fd, o->run_id, sizeof(o->run_id)) != sizeof(o->run_id) || close(fd))
		return complain("/run/nhmtap-run");
	return 0;
}

static int set_up(const struct order *o)
{
	if (leave_run_id(o))
		return 125;
	if (o->few_symbols && hide_symbols())
		return 125;
	if (o->breakpoints && cache_files())
		return 125;
	if (o->sets_clock && clock_settime(CLOCK_REALTIME, &(struct timespec){.tv_sec = o->clock}))
		return complain("the clock");
	return o->varies ? vary(o->number) : 0;
}

/* ---------------------------------------------------------------- the machine's first command */

/* Files like the host's, of which no command sees anything. */
static int lay_out_scratch(void)
{
	char to[16];

	mkdir("/warm", TREE_MODE);
	for (size_t k = 0; k < OWN; k++) {
		snprintf(to, sizeof(to), "/warm%s", own[k]);
		mkdir(to, TREE_MODE);
	}
	if (link("/bin/busybox", "/warm/true"))
		return complain("/warm");
	return lay_layer();
}

static int forget_decoded(void)
{
	outl(0, PORT_REQUEST);
	return 0;
}

/*
 * Runs a command as the ones to come, in files of its own. The emulator has decoded then what the kernel executes for
 * each command, and nothing else: a machine that continues from a snapshot taken later does half as much for its first
 * one, in few pages of the host's memory.
 */
static int warm_up(void)
{
	static const struct {
		struct order order;
		char strings[32];
	} usual = {{.umask = 022, .arguments = 1, .variables = 1, .input = FROM_NULL}, "/\0/true\0/true\0PATH=/"};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) || iopl(3) || forget_decoded() || lay_out_scratch() || run(&usual.order, "/warm"));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return complain("a first command");
	return 0;
}

static int print_if_replaced(const char *path, const struct stat *s, int kind, struct FTW *where)
{
	char value[2];

	(void)s;
	(void)where;
	if (kind == FTW_D && getxattr(path, "trusted.overlay.opaque", value, sizeof(value)) > 0 && value[0] == 'y')
		fwrite(path, strlen(path) + 1, 1, stdout);
	return 0;
}

/* ---------------------------------------------------------------- what --out brings back */

/* Busybox's tar would send a file's holes, which take the guest no memory, as zeros. */
enum { BLOCK = 512 };

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[8];
	char user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};

/* Files of several links that were sent, by their first name. */
static struct sent {
	dev_t dev;
	ino_t ino;
	char *name;
} *sent;
static size_t nr_sent;

static void put_padding(off_t length)
{
	static const char zeros[BLOCK];

	fwrite(zeros, (BLOCK - length % BLOCK) % BLOCK, 1, stdout);
}

/* A number that has no room is in the extended header in front. */
static void put_octal(char *at, size_t room, unsigned long long value)
{
	unsigned long long most = (1ull << 3 * (room - 1)) - 1;

	for (at[--room] = '\0'; room; value >>= 3)
		at[--room] = '0' + (value <= most ? value & 7 : 0);
}

static void put_header(const char *name, char type, off_t size, const struct stat *s, const char *link)
{
	struct header h = {.type = type, .magic = "ustar\00000"};
	unsigned sum = 0;

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	memcpy(h.link, link, strnlen(link, sizeof(h.link)));
	put_octal(h.mode, sizeof(h.mode), s->st_mode & 07777);
	put_octal(h.uid, sizeof(h.uid), s->st_uid);
	put_octal(h.gid, sizeof(h.gid), s->st_gid);
	put_octal(h.size, sizeof(h.size), size);
	put_octal(h.mtime, sizeof(h.mtime), s->st_mtime);
	put_octal(h.major, sizeof(h.major), major(s->st_rdev));
	put_octal(h.minor, sizeof(h.minor), minor(s->st_rdev));
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t k = 0; k < sizeof(h); k++)
		sum += ((const unsigned char *)&h)[k];
	snprintf(h.sum, sizeof(h.sum), "%06o", sum);
	fwrite(&h, sizeof(h), 1, stdout);
}

/* A line of an extended header begins with its own length. */
static void put_line(FILE *to, const char *key, const char *value)
{
	int rest = strlen(key) + strlen(value) + 3, length = rest + 1;

	while (length < rest + snprintf(NULL, 0, "%d", length))
		length++;
	fprintf(to, "%d %s=%s\n", length, key, value);
}

static void put_size(FILE *to, const char *key, off_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	put_line(to, key, text);
}

static void put_date(FILE *to, const struct timespec *date)
{
	char text[40];

	snprintf(text, sizeof(text), "%lld.%09ld", (long long)date->tv_sec, date->tv_nsec);
	put_line(to, "mtime", text);
}

/* The date, what else ustar has no room for, and of a file with holes that a map is in front of its data. */
static void put_extended(const char *name, const char *link, off_t size, const struct stat *s, int has_holes)
{
	char *lines;
	size_t length;
	FILE *f = open_memstream(&lines, &length);

	if (has_holes) {
		put_line(f, "GNU.sparse.major", "1");
		put_line(f, "GNU.sparse.minor", "0");
		put_line(f, "GNU.sparse.name", name);
		put_size(f, "GNU.sparse.realsize", s->st_size);
	} else if (strlen(name) > sizeof(((struct header *)0)->name)) {
		put_line(f, "path", name);
	}
	if (strlen(link) > sizeof(((struct header *)0)->link))
		put_line(f, "linkpath", link);
	if (size >= 1ll << 33)
		put_size(f, "size", size);
	put_date(f, &s->st_mtim);
	fclose(f);
	put_header("extended", 'x', length, &(struct stat){.st_mode = 0600}, "");
	fwrite(lines, length, 1, stdout);
	put_padding(length);
	free(lines);
}

static int unread; /* whether something was not sent as it is */

static void say_unread(const char *path)
{
	unread = 1;
	fprintf(stderr, "run: the guest: /%s: %s\n", path, strerror(errno));
}

/* Zeros for what a file that became shorter meanwhile has no more, and for what can't be read, which is said. */
static void put_bytes(int fd, const char *path, off_t from, off_t length)
{
	for (int said = 0; length;) {
		size_t most = length < BUFFER ? length : BUFFER;
		ssize_t n = pread(fd, buffer, most, from);

		if (n < 0 && !said++)
			say_unread(path);
		if (n <= 0)
			memset(buffer, 0, n = most);
		fwrite(buffer, n, 1, stdout);
		from += n;
		length -= n;
	}
}

/* The map of a file's data, as version 1.0 of GNU's sparse files has it: how many parts, where each begins and its
 * length, in lines. */
static char *map_of(int fd, off_t size, size_t *length, off_t *data)
{
	char *lines, *map;
	size_t nr = 0, bytes;
	FILE *f = open_memstream(&lines, &bytes);

	*data = 0;
	for (off_t from = 0, to; (from = lseek(fd, from, SEEK_DATA)) >= 0 && from < size; from = to) {
		to = lseek(fd, from, SEEK_HOLE);
		to = to < from || to > size ? size : to;
		fprintf(f, "%lld\n%lld\n", (long long)from, (long long)(to - from));
		*data += to - from;
		nr++;
	}
	fclose(f);
	*length = asprintf(&map, "%zu\n%s", nr, lines);
	free(lines);
	return map;
}

static void put_sparse(int fd, const char *name, const struct stat *s)
{
	size_t length, padded;
	off_t data, from, bytes;
	char *map = map_of(fd, s->st_size, &length, &data), *at = map;

	padded = (length + BLOCK - 1) / BLOCK * BLOCK;
	put_extended(name, "", padded + data, s, 1);
	put_header(name, '0', padded + data, s, "");
	fwrite(map, length, 1, stdout);
	put_padding(length);
	for (size_t nr = strtoull(at, &at, 10); nr; nr--) {
		from = strtoll(at, &at, 10);
		bytes = strtoll(at, &at, 10);
		put_bytes(fd, name, from, bytes);
	}
	put_padding(data);
	free(map);
}

static void put_file(const char *path, const char *name, const struct stat *s)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		say_unread(name);
		return;
	}
	if (s->st_blocks * BLOCK < s->st_size) {
		put_sparse(fd, name, s);
	} else {
		put_extended(name, "", s->st_size, s, 0);
		put_header(name, '0', s->st_size, s, "");
		put_bytes(fd, name, 0, s->st_size);
		put_padding(s->st_size);
	}
	close(fd);
}

/* The name by which a file was sent already, or NULL. */
static const char *name_of_sent(const char *name, const struct stat *s)
{
	for (size_t k = 0; k < nr_sent; k++)
		if (sent[k].dev == s->st_dev && sent[k].ino == s->st_ino)
			return sent[k].name;
	sent = realloc(sent, (nr_sent + 1) * sizeof(*sent));
	sent[nr_sent++] = (struct sent){s->st_dev, s->st_ino, strdup(name)};
	return NULL;
}

static int send_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
	static const struct {
		mode_t mode;
		char type;
	} types[] = {{S_IFDIR, '5'}, {S_IFLNK, '2'}, {S_IFCHR, '3'}, {S_IFBLK, '4'}, {S_IFIFO, '6'}};
	const char *name = path, *first = NULL;
	char link[4096] = "";

	(void)where;
	if (kind == FTW_NS)
		return 0;
	if (S_ISREG(s->st_mode) && s->st_nlink > 1)
		first = name_of_sent(name, s);
	if (S_ISREG(s->st_mode) && !first) {
		put_file(path, name, s);
		return 0;
	}
	if (S_ISLNK(s->st_mode) && readlink(path, link, sizeof(link) - 1) < 0)
		return 0;
	for (size_t k = 0; !first && k < sizeof(types) / sizeof(*types); k++)
		if ((s->st_mode & S_IFMT) == types[k].mode) {
			put_extended(name, link, 0, s, 0);
			put_header(name, types[k].type, 0, s, link);
		}
	if (first) {
		put_extended(name, first, 0, s, 0);
		put_header(name, '1', 0, s, first);
	}
	return 0;
}

/* The archive is empty if nothing is there. Without what can't be read, it fails. */
static int send_files(char **paths)
{
	static const char end[2 * BLOCK];

	for (; *paths && !chdir("/"); paths++)
		nftw(*paths, send_one, 32, FTW_PHYS);
	fwrite(end, sizeof(end), 1, stdout);
	return fflush(stdout) || unread;
}

static struct order *read_order(void)
{
	struct stat s;
	char *at;

	if (fstat(0, &s) || !(at = calloc(1, s.st_size + 1)))
		return NULL;
	for (off_t done = 0; done < s.st_size;) {
		ssize_t n = read(0, at + done, s.st_size - done);

		if (n <= 0)
			return NULL;
		done += n;
	}
	return (struct order *)at;
}

/* Of the machine's first process (channel.c), in a child. */
int here(int argc, char **argv)
{
	const struct order *o;

	if (argc > 1 && !strcmp(argv[1], "prepare"))
		return prepare(argv + 2);
	if (argc > 2 && !strcmp(argv[1], "replaced"))
		return nftw(argv[2], print_if_replaced, 32, FTW_PHYS) != 0;
	if (argc > 2 && !strcmp(argv[1], "send"))
		return send_files(argv + 2);
	if (iopl(3) || !(o = read_order()))
		return complain("the order");
	if (memcmp(o->form, form, sizeof(form))) {
		fprintf(stderr, "run: the guest: its driver is of another version than the machine, which `make machine` builds\n");
		return 125;
	}
	if (set_up(o))
		return 125;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* at the end of the terminal, whose session this process leads */
	return lay_layer() ? 125 : run(o, "/files/host");
}
