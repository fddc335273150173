# SPDX-License-Identifier: GPL-2.0-only
# nhmtap. `make help` lists the targets. V=1 shows commands, O=DIR builds elsewhere, SANITIZE=1 adds
# ASan and UBSan, SANITIZE=thread adds TSan (each in a folder of its own), WITHOUT=curl,microhttpd,seccomp,ncurses,capstone
# leaves these libraries out (any of them), DESTDIR and prefix are the destination of install.

V      ?= 0
prefix ?= /usr/local
CC     ?= gcc
CLANG  ?= clang
# Debian's Python, because the test modules are Debian packages. A python3 in PATH may lack them.
PYTHON ?= /usr/bin/python3

SANITIZE ?= 0
O        ?= build$(if $(filter 1,$(SANITIZE)),-sanitize)$(if $(filter thread,$(SANITIZE)),-threads)
Q        := $(if $(filter 1,$(V)),,@)
say       = $(if $(filter 1,$(V)),@:,@printf '  %-8s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all demo test test-inside test-lent test-rootless check-threads mutants coverage bench bench-compare search soak soak-machine soak-sidecar install uninstall format clean help packages

# --- what can be left out ------------------------------------------------------------------------
# Each part is a library, and the file that calls it. Without it, FILE_without.c takes the place of FILE.c.
comma      := ,
parts      := curl microhttpd seccomp ncurses capstone
curl       := user/output/push
microhttpd := user/session/listen
seccomp    := user/confined/filter
ncurses    := user/top/screen
capstone   := user/confined/disassemble
WITHOUT    ?=
left_out   := $(subst $(comma), ,$(WITHOUT))
unknown    := $(filter-out $(parts),$(left_out))
$(if $(unknown),$(error WITHOUT: no part is called '$(firstword $(unknown))'; there are $(parts)))
taken      := $(filter-out $(left_out),$(parts))
replaced   := $(foreach part,$(parts),$($(part))$(if $(filter $(part),$(taken)),_without).c)

# --- what the build and the tests need -------------------------------------------------------
# Installs missing packages if possible (as root, with apt-get), and lists them otherwise.
packages: $(O)/.build-packages $(O)/.test-packages
sanitizer := $(if $(filter 1,$(SANITIZE)),address,$(filter thread,$(SANITIZE)))
$(O)/.build-packages: needed = build $(taken) $(sanitizer)
$(O)/.test-packages:  needed = test image
$(O)/.%-packages: needed = $*
$(O)/.build-packages $(O)/nhmtap: $(O)/.taken
$(O)/.%-packages: user/packaging/packages.txt user/packaging/install-packages
	@mkdir -p $(O)
	@CC='$(CC)' CLANG='$(CLANG)' PYTHON='$(PYTHON)' user/packaging/install-packages $(O) $(needed)
	@touch $@

# Rewritten only when other parts are taken.
$(O)/.taken: FORCE
	@mkdir -p $(O)
	@echo '$(taken)' | cmp -s - $@ || echo '$(taken)' > $@

# --- libperf ------------------------------------------------------------------------------------
# From pkg-config if the distribution packages it, otherwise built from Debian's package of the
# kernel source, of which 2.9 MB are extracted.
LIBPERF := $(abspath $(O))/libperf
ifeq ($(shell pkg-config --exists libperf 2>/dev/null && echo yes),yes)
libperf_ready  := $(O)/.build-packages
libperf_cflags  = $(shell pkg-config --cflags libperf)
libperf_libs    = $(shell pkg-config --libs libperf)
# One file includes libperf's internal headers, which are in the folder of the public ones.
libperf_version = $(shell pkg-config --modversion libperf)
internal_cflags = $(libperf_cflags) -I$(shell pkg-config --variable=includedir libperf) -Iuser/collection/tools
else
libperf_ready  := $(LIBPERF)/ready
tools           = $(LIBPERF)/source/tools
libperf_cflags := -I$(LIBPERF)/inst/usr/include
libperf_libs   := $(LIBPERF)/inst/usr/lib/libperf.a $(LIBPERF)/obj/libapi.a
libperf_version = of $(shell ls /usr/src/linux-source-*.tar.xz | sort -V | tail -1 | xargs -r basename -s .tar.xz)
internal_cflags = -DLIBPERF_TREE -I$(tools)/lib/perf/include -I$(tools)/lib -I$(tools)/include \
		  -I$(tools)/arch/x86/include

$(LIBPERF)/ready: | $(O)/.build-packages
	$(call say,LIBPERF,$(@D))
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/source $(@D)/obj $(@D)/inst
	$(Q)tarball=$$(ls /usr/src/linux-source-*.tar.xz | sort -V | tail -1) && \
	name=$$(basename $$tarball .tar.xz) && \
	tar xf $$tarball -C $(@D)/source --strip-components=1 $$(for part in lib/perf lib/api lib/zalloc.c \
		lib/str_error_r.c build scripts include arch/x86/include; do echo $$name/tools/$$part; done) && \
	env -u MAKEFLAGS -u MAKELEVEL -u O -u V $(MAKE) -j2 -C $(@D)/source/tools/lib/perf \
		EXTRA_CFLAGS='$(CFLAGS) $(reproducible)' O=$(@D)/obj prefix=/usr libdir=/usr/lib DESTDIR=$(@D)/inst \
		install_lib install_headers > $(@D)/log 2>&1 || { tail -20 $(@D)/log >&2; exit 1; }
	@touch $@
endif

# --- the program --------------------------------------------------------------------------------
version  := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' user/python/nhmtap/version.py)
schema_version := $(shell cat schema/VERSION)
warnings := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wno-unused-parameter \
	    -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=implicit-function-declaration $(if $(CI),-Werror)
# After fork() TSan starts a thread in the child, too. If this happens before the child's events
# have their BPF programs, the thread's events have none; the kernel may swap them with the child's
# at execve(), and samples are lost. After _Fork() TSan starts no thread.
sanitize_threads := -fsanitize=thread -Dfork=_Fork
sanitize := $(if $(filter 1,$(SANITIZE)),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined) \
	    $(if $(filter thread,$(SANITIZE)),$(sanitize_threads))
# Most of the time of a sanitized build is the optimizing of its checks. With less of that gcc warns of what is no fault; all its
# warnings are in the usual build.
CFLAGS   ?= $(if $(filter 1,$(SANITIZE)),-O1 -w,-O2) -g
# A short run under ASan takes two thirds of the time so: a program with a fixed address does not relocate what ASan notes
# about each global, and the search for leaks does not read the memory of a second runtime.
sanitize_link := $(if $(filter 1,$(SANITIZE)),-no-pie $(if $(findstring clang,$(CC)),,-static-libubsan))
# Keeps the build folder's path out of the program, because the emulated machine's behaviour depends
# on file sizes.
reproducible := -ffile-prefix-map=$(CURDIR)=.
# Libraries, by their names in pkg-config.
packaged := libbpf jansson zlib libprotobuf-c libdw libelf liblzma
# Libraries that are loaded when they are needed: user/base/late.h.
late     := $(patsubst libcapstone,capstone,$(patsubst libncurses,ncursesw,$(taken:%=lib%)))
soname    = $(shell readelf -d $$($(CC) -print-file-name=$1.so) | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
cflags    = -std=gnu11 -D_GNU_SOURCE $(warnings) $(CFLAGS) $(sanitize) $(reproducible) -Iuser -Ibpf -Ievents -I$(O)/gen -MMD -MP \
	    $(libperf_cflags) $(shell pkg-config --cflags $(packaged) $(late))
libs      = $(libperf_libs) $(shell pkg-config --libs $(packaged)) -liberty -lm
bpf_flags = -g -O2 -target bpf -mcpu=v3 -Wall -Wextra $(reproducible) $(if $(CI),-Werror) -D__TARGET_ARCH_x86 -Ibpf -Ivmlinux -MMD -MP \
	    $(addprefix -I,$(wildcard /usr/include/$(shell $(CC) -print-multiarch))) $(shell pkg-config --cflags libbpf)

protos   := pprof otlp_profiles
sources  := $(filter-out $(replaced),$(sort $(wildcard user/*.c user/*/*.c)))
objects  := $(sources:%.c=$(O)/%.o) $(O)/gen/known_events.o $(protos:%=$(O)/gen/%.pb-c.o)
# Programs with a table, or which include such a one, are built with smaller tables, too: TABLES_SHIFT in bpf/shared.h.
tabled   := $(shell grep -lE '"(table\.bpf\.h|[a-z_]+\.bpf\.c)"' $(sort $(wildcard bpf/*.bpf.c)))
smaller  := quarter sixteenth
programs := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard bpf/*.bpf.c))) \
	    $(foreach size,$(smaller),$(tabled:%.bpf.c=$(O)/%-$(size).bpf.o))
schemas  := $(sort $(wildcard schema/*.json))
embedded := $(programs) $(schemas) events/schema.json user/output/flamegraph.html user/view/report.html \
	    user/command/completion.bash user/command/completion.zsh

all: $(O)/nhmtap $(O)/nhmtap-known $(O)/man/made ## build: build the program (O=DIR, V=1, SANITIZE=1, WITHOUT=curl,microhttpd,seccomp,ncurses,capstone)

$(O)/nhmtap: $(objects)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(sanitize) $(sanitize_link) $(LDFLAGS) -o $@ $(objects) $(libs)

# The program that doctor --selftest measures. It has no libraries, so that all of its instructions
# are known.
$(O)/nhmtap-known: $(O)/user/selftest/known.o
	$(call say,LINK,$@)
	$(Q)$(CC) -nostdlib -static -no-pie -o $@ $<

$(O)/user/selftest/known.o: user/selftest/known.S | $(O)/.build-packages
	$(call say,AS,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<

# The lists of options and records come from the program itself.
$(O)/man/made: user/manual/pages.py $(wildcard user/manual/*.md) $(O)/nhmtap
	$(call say,MANUAL,$(@D))
	$(Q)rm -rf $(@D)
	$(Q)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) $< $(O)/nhmtap $(@D)
	@touch $@

# Additional flags of single sources, for every kind of compilation. Only what names the versions is made anew with them.
versioned := $(shell grep -lE 'NHMTAP_VERSION|SCHEMA_VERSION' $(sources))
own_of = $(own_flags_$(subst /,_,$(1))) \
	 $(if $(filter $(1),$(versioned)),-DNHMTAP_VERSION='"$(version)"' -DSCHEMA_VERSION='"$(schema_version)"')
own_flags_user_collection_libperf_fd.c = $(internal_cflags)
# libperf from the kernel's source has no version of its own, so the source's is used.
own_flags_user_command_versions.c = -DLIBPERF_VERSION='"$(libperf_version)"'
own_flags_user_output_push.c     = -DLIBCURL_SONAME='"$(call soname,libcurl)"'
own_flags_user_session_listen.c  = -DLIBMICROHTTPD_SONAME='"$(call soname,libmicrohttpd)"'
# The development file of ncurses is a linker script; the library's name has its major version.
own_flags_user_top_screen.c      = -DLIBNCURSES_SONAME='"libncursesw.so.6"'
own_flags_user_confined_disassemble.c = -DLIBCAPSTONE_SONAME='"$(call soname,libcapstone)"'
own_flags_user_confined_filter.c = -DLIBSECCOMP_SONAME='"$(call soname,libseccomp)"'

$(versioned:%.c=$(O)/%.o): user/python/nhmtap/version.py schema/VERSION
$(O)/user/%.o: user/%.c | $(libperf_ready)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(cflags) $(call own_of,$<) -c -o $@ $<

$(O)/bpf/%.bpf.o: bpf/%.bpf.c | $(O)/.build-packages
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(bpf_flags) -c -o $@ $<

shift_of_quarter   := 2
shift_of_sixteenth := 4
define with_smaller_tables
$(O)/bpf/%-$1.bpf.o: bpf/%.bpf.c | $(O)/.build-packages
	$$(call say,BPF,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(CLANG) $$(bpf_flags) -DTABLES_SHIFT=$(shift_of_$1) -c -o $$@ $$<
endef
$(foreach size,$(smaller),$(eval $(call with_smaller_tables,$(size))))

# Rewritten only when the list changes, so that nothing is rebuilt unnecessarily.
$(O)/gen/embedded.inc: FORCE
	@mkdir -p $(@D)
	@printf 'EMBED(%s)\n' $(foreach f,$(embedded),'"$(notdir $f)"$(comma) "$(f)"') > $@.new
	@cmp -s $@.new $@ || mv $@.new $@; rm -f $@.new
$(O)/user/base/embedded.o: $(embedded) $(O)/gen/embedded.inc
FORCE:

# The reader of --events-dir also compiles the built-in tables.
table_reader := events/compile.c $(patsubst %,user/tables/%.c,tables loader rows row_layout checks draft names compose formula) \
		$(patsubst %,user/base/%.c,memory refusal apart copied guarded json_file json_schema list local nearest packet)
$(O)/compile-tables: $(table_reader) $(wildcard user/tables/*.h) | $(O)/.build-packages
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(warnings) $(CFLAGS) $(sanitize) -Iuser -DFORM_FOLDER='"$(abspath events)"' \
		-o $@ $(filter %.c,$^) $(shell pkg-config --cflags --libs jansson)

$(O)/gen/known_events.c: $(O)/compile-tables
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(O)/compile-tables events -o $@ --depfile $(@:.c=.d.gen)
$(O)/gen/known_events.o: $(O)/gen/known_events.c | $(libperf_ready)
	$(call say,CC,$<)
	$(Q)$(CC) $(cflags) -c -o $@ $<

$(O)/gen/%.pb-c.c $(O)/gen/%.pb-c.h: user/output/%.proto | $(O)/.build-packages
	$(call say,GEN,$(O)/gen/$*.pb-c.c)
	@mkdir -p $(O)/gen
	$(Q)protoc-c --c_out=$(O)/gen -Iuser/output $(<F)
$(O)/gen/%.pb-c.o: $(O)/gen/%.pb-c.c
	$(call say,CC,$<)
	$(Q)$(CC) $(cflags) -Wno-shadow -c -o $@ $<
$(protos:%=$(O)/user/output/%.o): $(O)/user/output/%.o: $(O)/gen/%.pb-c.h
$(protos:%=$(O)/user/output/%_halves.o): $(O)/user/output/%_halves.o: $(O)/gen/%.pb-c.h
$(O)/user/output/process_context.o: $(O)/gen/otlp_profiles.pb-c.h

-include $(objects:.o=.d) $(programs:.o=.d) $(O)/gen/known_events.d.gen

# --- trying it, testing it, measuring it --------------------------------------------------------
workloads := $(patsubst tests/programs/%.c,$(O)/programs/%,$(wildcard tests/programs/*.c))
# Frame layout and inlining must be as the programs' comments say, regardless of CFLAGS.
$(O)/programs/%: tests/programs/%.c | $(O)/.build-packages
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -Wall -Wextra -O1 -g $(reproducible) -fno-inline -fno-omit-frame-pointer -pthread -MMD -MP -o $@ $<
-include $(workloads:=.d)

demo: $(O)/nhmtap $(O)/programs/demo $(O)/programs/levels ## build: install what is missing, build, profile a small workload, and sample another one's loads on the emulated Nehalem
	@echo '$$ nhmtap profile --top 5 --format table -- demo'
	@$(O)/nhmtap profile --top 5 --format table -- $(O)/programs/demo
	@echo
	@echo '$$ nhmtap stat -e task-clock,page-faults,context-switches --format table -- demo'
	@$(O)/nhmtap stat -e task-clock,page-faults,context-switches --format table -- $(O)/programs/demo
	@echo
	$(Q)$(MACHINE)/setup --least
	@echo '$$ nhmtap mem --machine -c 50 --top 5 --format table -- levels'
	@$(O)/nhmtap mem --machine -c 50 --top 5 --format table -- $(O)/programs/levels

# A failed test is retried once; a pass on retry is reported as flaky. Tests often wait for intervals
# and timeouts, so one job more than there are CPUs keeps all CPUs busy.
jobs   ?= $(shell expr $$(nproc) + 1)
pytest  = NHMTAP=$(abspath $(O)/nhmtap) NHMTAP_PROGRAMS=$(abspath $(O)/programs) NHMTAP_BUILD=$(abspath $(O)) \
	  NHMTAP_LIBPERF=$(LIBPERF) $(PYTHON) -m pytest --reruns 1 -n $(jobs) --dist loadgroup $(if $(TIMES),--times $(TIMES))

# T selects files, tests, or options of pytest. The machine is built only if its tests are selected.
asked         = $(if $(filter tests%,$(T)),$(T),tests $(T))
needs_machine = $(if $(filter 1,$(SANITIZE)),,$(filter tests tests/ tests/machine%,$(asked)))
# What is thorough is left to CI. There every test runs once: the plain ones in the usual build, all
# others in one with sanitizers. With T, all selected tests are run in the usual build.
few           = $(if $(filter 1,$(SANITIZE)),--ignore tests/machine -m 'not plain',$(if $(T),,$(if $(CI),-m plain,-m 'not thorough')))
# Both run at once: guests keep the CPUs busy, and of the other tests most wait. The others have a process group of their
# own, which is ended as a whole when the plain ones are interrupted.
in_sanitized      = SANITIZE=1 O=$(O)/sanitize LIBPERF=$(LIBPERF) NHMTAP_PYCACHE=$(abspath $(O))/pycache
jobs_in_sanitized = $(if $(filter file,$(origin jobs)),$(shell expr 2 '*' $$(nproc)),$(jobs))

test: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known $(O)/man/made $(workloads) $(if $(needs_machine),machine) ## test: install, build, and test; with CI=1 every test, most of them under ASan and UBSan; T=tests/pure/test_plan.py runs that and nothing else
ifeq ($(SANITIZE)$(T)$(if $(CI),,few),0)
	@$(MAKE) --no-print-directory -j$$(nproc) $(in_sanitized) all
	$(Q)setsid make --no-print-directory $(in_sanitized) jobs=$(jobs_in_sanitized) test > $(O)/sanitize/test.log 2>&1 & \
	trap "kill -- -$$! 2> /dev/null" INT TERM HUP; \
	$(pytest) $(asked) $(few); plain=$$?; wait $$!; sanitized=$$?; \
	cat $(O)/sanitize/test.log; exit $$((plain | sanitized))
else
	$(pytest) $(asked) $(few)
endif

check-spellings: $(O)/.test-packages $(O)/nhmtap ## check: compare every event of libpfm4's nhm, wsm, snb and snb_ep with every modifier
	NHMTAP_ALL_SPELLINGS=1 $(pytest) tests/events/test_spellings.py $(T)

# SEARCH has further options of search.py: --seed N, --only soak faults.
search: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known $(workloads) machine ## search: run the fuzzers, failing calls, seeded sessions, random ends, spellings, verdicts, soak and a varied machine in turns, each with a seed, for S= seconds (3600)
	$(Q)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/lib/search.py $(or $(S),3600) $(SEARCH)

soak: $(O)/.test-packages $(O)/nhmtap $(workloads) ## search: run a session among all kinds of trouble for S= seconds (600), and judge it
	$(Q)NHMTAP=$(abspath $(O)/nhmtap) NHMTAP_PROGRAMS=$(abspath $(O)/programs) PYTHONPATH=tests/lib PYTHONDONTWRITEBYTECODE=1 \
		$(PYTHON) tests/lib/soak.py $(or $(S),600) $(if $(SEED),--seed $(SEED))

soak-machine: export NHMTAP_SOAK_TURNS = $(or $(R),50)
soak-machine: $(O)/.test-packages $(O)/nhmtap machine ## search: the same on the emulated Nehalem, where a CPU goes and comes R= times (50)
	$(Q)$(pytest) -n 0 -s tests/machine/test_hotplug.py -k stays_true

soak-sidecar: export NHMTAP_SIDECAR_SECONDS = $(or $(S),600)
soak-sidecar: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known ## search: follow a container that is made again three times in S= seconds (600), with 64 MiB and 5 % of a CPU
	$(Q)$(pytest) -n 0 -s tests/live/test_image.py -k is_made_again

# Threads make names and unwinding tables, and libraries serve and send data in threads. Tests that
# need samples of a program that runs for a fraction of a second are left out, because startup takes
# ten times as long with TSan.
# TSan's dlopen() looks for a library in the working directory first: it would be stuck itself.
threaded := $(patsubst %,tests/live/test_%.py,names unwind symbolize_a_run listen push outputs reload stalled_outputs \
		stalled_files stalled_commands)
check-threads: ## test: run what has threads with ThreadSanitizer
	@$(MAKE) --no-print-directory SANITIZE=thread test \
		T='$(threaded) -k "not those_of_perf_script and not had_to_make_room and not third_of_a_second \
			and not (stuck_before_it_begins and directory)"'

test-inside: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known $(O)/man/made $(workloads) ## check: run the live tests in a pid namespace of their own
	unshare --pid --fork --kill-child --mount-proc env $(pytest) $(or $(T),tests/live)

# nhmtap run by others than root: tests/lib/callers.py.
test-lent: ## check: run the live tests with nhmtap as nobody's, from a copy with file capabilities
test-rootless: ## check: run the live tests with nhmtap as root of a user namespace, as in a rootless container
test-lent test-rootless: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known $(O)/man/made $(workloads)
	NHMTAP_CALLER=$(@:test-%=%) $(pytest) $(or $(T),tests/live)

check-debian12: suite = bookworm
check-debian13: suite = trixie
check-debian12 check-debian13: $(O)/.minimal-packages ## check: run both commands of the README on a minimal Debian 12 or 13 that debootstrap makes
	$(Q)tests/minimal-debian $(O)/minimal $(suite) sh -c '$(or $(T),make demo && make test)'

# M selects faults by their names. The tests of the machine run on its build, which stays as it is.
mutants: $(O)/.test-packages $(O)/nhmtap $(O)/nhmtap-known $(O)/man/made $(workloads) machine ## check: break the program in small ways, one at a time; each must be noticed (M='NAME …')
	$(Q)NHMTAP_BUILD=$(abspath $(O)) PYTHONPATH=tests/lib PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/mutants/program_mutants.py $(M)

# The tests run on a build of its own, whose counts begin at zero.
coverage: $(libperf_ready) ## measure: lines and branches that the pure and live tests reach, by folder (T=tests/pure: by those)
	$(Q)find $(O)/coverage -name '*.gcda' -delete 2> /dev/null || true
	$(Q)rm -rf $(O)/coverage/pure
	$(Q)NHMTAP_COVERAGE=$(abspath $(O)/coverage) $(MAKE) --no-print-directory O=$(O)/coverage LIBPERF=$(LIBPERF) SANITIZE=0 CI= CFLAGS='-O0 -g --coverage' \
		T='$(or $(T),tests --ignore tests/machine -m "not thorough and not plain")' test || true
	$(Q)PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/lib/reached.py $(if $(T),,--whole) $(O)/coverage

bench: $(O)/.test-packages $(O)/nhmtap $(workloads) ## measure: measure the costs: ratios of two things run side by side
	$(Q)NHMTAP=$(abspath $(O)/nhmtap) NHMTAP_PROGRAMS=$(abspath $(O)/programs) $(PYTHON) tests/bench/bench.py $(B)

bench-compare: ## measure: say what got slower or faster between two runs of make bench B=--json (A=FILE B=FILE)
	$(Q)$(PYTHON) tests/bench/figures.py $(A) $(B)

# Where Python looks for modules below the prefix: Debian's own folders for /usr and /usr/local.
pythondir ?= $(shell $(PYTHON) -c 'import sysconfig as c; \
	paths = [c.get_path("purelib", s) for s in ("deb_system", c.get_default_scheme()) if s in c.get_scheme_names()]; \
	print(next((p for p in paths if p.startswith("$(prefix)/lib/")), \
		   c.get_path("purelib", "posix_prefix", {"base": "$(prefix)"})))')

# What pip would install of user/python. Debian's pip refuses to install for the system.
dist_info     = $(pythondir)/nhmtap-$(version).dist-info
python_files := $(wildcard user/python/nhmtap/*.py user/python/nhmtap/*.json) user/python/nhmtap/py.typed

install: $(O)/nhmtap $(O)/nhmtap-known $(O)/man/made ## build: install the program, its manual, its completion and its Python package (DESTDIR, prefix, pythondir)
	install -D -m 755 $(O)/nhmtap $(DESTDIR)$(prefix)/bin/nhmtap
	install -D -m 755 $(O)/nhmtap-known $(DESTDIR)$(prefix)/lib/nhmtap/nhmtap-known
	install -D -m 644 user/command/completion.bash $(DESTDIR)$(prefix)/share/bash-completion/completions/nhmtap
	install -D -m 644 user/command/completion.zsh $(DESTDIR)$(prefix)/share/zsh/site-functions/_nhmtap
	for page in $(O)/man/man*/*; do \
		install -D -m 644 $$page $(DESTDIR)$(prefix)/share/man/$${page#$(O)/man/} || exit 1; done
	install -d $(DESTDIR)$(pythondir)/nhmtap $(DESTDIR)$(dist_info)
	install -m 644 $(python_files) $(DESTDIR)$(pythondir)/nhmtap
	printf 'Metadata-Version: 2.1\nName: nhmtap\nVersion: $(version)\n' > $(DESTDIR)$(dist_info)/METADATA
	printf '[pytest11]\nnhmtap.plugin = nhmtap.plugin\n' > $(DESTDIR)$(dist_info)/entry_points.txt

uninstall: ## build: remove what install put there
	rm -f $(DESTDIR)$(prefix)/bin/nhmtap $(DESTDIR)$(prefix)/share/bash-completion/completions/nhmtap \
	      $(DESTDIR)$(prefix)/share/zsh/site-functions/_nhmtap
	rm -f $(foreach section,1 5 7,$(addprefix $(DESTDIR)$(prefix)/share/man/man$(section)/,nhmtap.$(section) nhmtap-*.$(section)))
	rm -rf $(DESTDIR)$(prefix)/lib/nhmtap
	rm -rf $(DESTDIR)$(pythondir)/nhmtap $(DESTDIR)$(dist_info)

# The emulated machine's C++ follows the style of the emulator that it is part of. Only what has changed since the
# last time is formatted, since all of it takes a minute.
newer = xargs sh -c 'find "$$@" -newer $<' sh
format: $(O)/.formatted ## test: bring all C and Python files into the form of .clang-format and .pep8
	$(Q)git ls-files '*.c' '*.h' | grep -v -E '^(tests|user)/machine/' | $(newer) | xargs -r clang-format -i
	$(Q)git ls-files '*.py' | $(newer) | xargs -r $(PYTHON) -m autopep8 -i
	$(Q)touch $<
$(O)/.formatted: .clang-format .pep8
	$(Q)mkdir -p $(@D) && touch -d @0 $@

clean: ## build: remove what was built
	rm -rf $(O)

# A target's text begins with its use: build, test, check (what takes longer), search or measure.
help: ## build: this list
	@awk -F': ' '/^[a-z-]+:.*## /{ target = $$1; sub(/.*## /, ""); text[$$1] = text[$$1] \
		sprintf("  make %-21s %s\n", target, substr($$0, length($$1) + 3)) } \
		END { n = split("build test check search measure", uses, " "); \
		for (i = 1; i <= n; i++) printf("%s%s\n%s", (i > 1 ? "\n" : ""), uses[i], text[uses[i]]) }' $(MAKEFILE_LIST)

include tests/bench/bench.mk
include tests/fuzz/fuzz.mk
include tests/static/static.mk
include tests/pipelines/pipelines.mk
include tests/readers/readers.mk
include tests/fleet/fleet.mk
include tests/foreign/foreign.mk
include user/machine/machine.mk
include tests/machine/machine.mk
include user/packaging/packaging.mk
