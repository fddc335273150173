# SPDX-License-Identifier: GPL-2.0-only
"""Runs nhmtap as another caller than root. The tests themselves still run as root. NHMTAP_CALLER is
one of

lent      nobody, from a copy of the program with file capabilities
rootless  root of a user namespace (`unshare -Ur`), as in a rootless container
"""
import atexit
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
LENT = "cap_perfmon,cap_bpf,cap_syslog,cap_sys_ptrace,cap_dac_read_search,cap_dac_override,cap_sys_admin+ep"
CALLER = os.environ.get("NHMTAP_CALLER")
HERE = pathlib.Path(__file__).parents[1]


def paranoid():
    """This kernel's perf_event_paranoid."""
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        return int(file.read())


def prepare():
    """Replaces nhmtap by a program that becomes the caller first, and copies everything to where
    the caller may read it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nhmtap-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    program, programs = (pathlib.Path(os.environ[name]) for name in ("NHMTAP", "NHMTAP_PROGRAMS"))
    (folder / "bin").mkdir()
    copy = folder / "bin" / "nhmtap"
    for beside in (program, program.parent / "nhmtap-known"):
        shutil.copy(beside, folder / "bin")
    shutil.copytree(program.parent / "man", folder / "bin" / "man")
    shutil.copytree(programs, folder / "programs")
    if CALLER == "lent":
        subprocess.run(["setcap", LENT, copy], check=True)
    (folder / "caller").mkdir()
    subprocess.run(["gcc", "-static", "-O1", "-Wall", f'-DCALLER="{CALLER}"', f'-DPROGRAM="{copy}"', "-D_GNU_SOURCE",
                    "-o", folder / "caller" / "nhmtap", HERE / "shims" / "caller.c"], check=True)
    os.environ.update(NHMTAP=str(folder / "caller" / "nhmtap"), NHMTAP_FILE=str(copy),
                      NHMTAP_PROGRAMS=str(folder / "programs"))


if CALLER:
    os.umask(0)
    if "NHMTAP_FILE" not in os.environ:  # otherwise this is a worker process, and its parent has done it
        prepare()


def pytest_configure():
    """Makes the folders that pytest makes from now on accessible to the caller."""
    factory = pytest.TempPathFactory
    make = factory.mktemp

    def mktemp(*arguments, **options):
        path = make(*arguments, **options)
        path.chmod(0o777)
        for parent in path.parents:
            if parent.name.startswith(("pytest-", "popen-")):
                parent.chmod(0o755)
        return path
    factory.mktemp = mktemp
    if CALLER == "rootless":
        subprocess.Popen = Watched


# --- tests that fail for a caller -----------------------------------------------------------------

# By the reason. A test that passes again has to be removed from its list.
HOST_ROOT = "a --host-root is read with the caller's own rights, and nothing is opened with those that are lent"
COMMAND = "its command needs root: for namespaces, cgroups, bpf()"
BOUNDED = "a program with capabilities that the bounding set lacks isn't executed"
PRELOADED = "what is preloaded has no effect in a program with capabilities"
ROOTS = "it says which capabilities root keeps"
OWN_FILE = "the Python package, which is root's here, has the records written into a file of its own"
ROOTS_FILES = "its CONFIG and outputs are in a folder of root's"
OTHER_MACHINE = "its --host-root is of a machine where capabilities count: the reasons are that one's"
NARROWED = "only the user's side is counted, and is called so"
UNREAD = "nhmtap refuses it, and the test reads elsewhere than on stderr, or first"
GOES_ON = "a session goes on with what isn't refused, or tries that again"
NOT_RUN = {GOES_ON}  # these would wait for minutes
APART = {"lent": {
    HOST_ROOT: ["test_attr_as_perf.py::test_groups_are_opened_as_perf_stat_opens_them",
                "test_attr_as_perf.py::test_there_is_one_call_an_event",
                "test_denied.py::test_a_kernel_without_bpf_says_so",
                "test_denied.py::test_a_limit_of_locked_memory_is_named",
                "test_denied.py::test_a_refusal_at_any_step_of_loading",
                "test_denied.py::test_the_second_event_that_is_refused",
                "test_names.py::test_a_bpf_program_that_goes_while_the_kernels_symbols_are_read",
                "test_names.py::test_where_the_kernel_hides_its_symbols_that_is_said"],
    COMMAND: ["test_accounting.py::test_samples_that_the_kernel_skips_are_missed",
              "test_cgroups_that_come_and_go.py::test_one_that_was_gone_before_anybody_looked_has_its_path",
              "test_cgroups_that_come_and_go.py::test_a_name_that_begins_with_a_dot",
              "test_cgroups_that_come_and_go.py::test_what_a_pattern_fits_is_measured_before_the_command_runs",
              "test_flat.py::test_a_container_is_told_by_its_cgroup",
              "test_names.py::test_a_program_that_deletes_itself_is_named",
              "test_names.py::test_a_path_is_that_of_the_processs_own_mount_namespace",
              "test_names.py::test_a_program_in_a_root_of_its_own_is_named",
              "test_names.py::test_a_program_in_a_container_is_named",
              "test_names.py::test_the_vdso_of_a_32_bit_program",
              "test_names.py::test_the_kernels_code_is_named_by_its_own_symbols",
              "test_names.py::test_a_bpf_program_that_is_loaded_later_is_named_by_itself",
              "test_names.py::test_bpf_programs_at_one_address_one_after_the_other",
              "test_names.py::test_what_ran_before_a_process_entered_its_root_is_named",
              "test_names.py::test_a_map_that_is_another_users_does_not_hide_the_jitdump",
              "test_names.py::test_a_map_is_looked_for_by_the_pid",
              "test_names.py::test_a_map_that_leads_to_what_its_process_may_not_read",
              "test_pid_namespaces.py::test_a_program_in_a_deeper_namespace",
              "test_pid_namespaces.py::test_without_the_kernels_types",
              "test_profile.py::test_the_key_cgroup_is_the_path_below_the_mount",
              "test_profile.py::test_a_cgroup_that_has_gone_keeps_its_number"],
    BOUNDED: ["test_cgroups_that_come_and_go.py::test_one_that_was_there_before_has_its_path[no handles",
              "test_cgroups_that_come_and_go.py::test_without_handles_the_hierarchy",
              "test_denied.py::test_a_seccomp_filter_that_refuses_bpf_is_named[EPERM]",
              "test_doctor_trials.py::test_in_short_it_fits_a_screen[as_nobody]",
              "test_doctor_trials.py::test_nobody_lacks_each_permission",
              "test_doctor_trials.py::test_one_capability_of_the_two",
              "test_doctor_trials.py::test_both_capabilities_are_enough",
              "test_reading.py::test_counts_of_each_cpu_are_what_was_done_there[1-by read(2)]",
              "test_reading.py::test_counts_of_each_cpu_are_what_was_done_there[20-by read(2)]",
              "test_reading.py::test_several_cgroups_on_several_cpus_are_not_mixed_up[by read(2)]",
              "test_reading.py::test_clocks_of_cpus_are_enabled_all_of_each_interval[by read(2)]",
              "test_reading.py::test_nobody_is_moved_to_read[by read(2)]"],
    PRELOADED: ["test_clock.py::test_a_clock_that_is_set",
                "test_containers.py::test_those_that_come_are_measured_and_those_that_go_are_not_missed[stat --for-each-cgroup old]",
                "test_memory.py::test_without_memory", "test_memory.py::test_the_end_record_says"],
    ROOTS: ["test_privileges.py::test_a_session_of_root", "test_privileges.py::test_a_command_of_root",
            "test_privileges.py::test_registers_are_kept"],
    ROOTS_FILES: ["test_soak.py::test_a_session_among_everything"],
    OWN_FILE: [*(f"test_python.py::test_{name}" for name in (
                   "counts_of_a_command", "a_comparison_that_fails", "metrics_are_there", "without_names", "the_commands_status",
                   "what_the_command_writes", "a_command_that_is_not_there", "an_event_that_is_not_there", "several_counts",
                   "a_timeout")),
               "test_readme.py::test_an_example_works[python3 "],
}, "rootless": {
    OTHER_MACHINE: [*(f"test_attr_as_perf.py::test_groups_are_opened_as_perf_stat_opens_them[{group}]" for group in (
                        "{page-faults,cs}", "{task-clock,page-faults,cs}", "{page-faults:k,cs}",
                        "page-faults,{cs,migrations},dummy", "{page-faults,cs},{cs,dummy}", "mine{page-faults,cs}",
                        r"mine \t{ page-faults , cs }", "{page-faults,cs}:D", "{page-faults:k,faults}:u")),
                    "test_attr_as_perf.py::test_there_is_one_call_an_event",
                    "test_denied.py::test_a_kernel_without_bpf_says_so",
                    "test_denied.py::test_a_limit_of_locked_memory_is_named",
                    "test_denied.py::test_a_refusal_at_any_step_of_loading",
                    "test_denied.py::test_the_second_event_that_is_refused",
                    "test_names.py::test_where_the_kernel_hides_its_symbols_that_is_said"],
    NARROWED: [*(f"test_python.py::test_{name}" for name in (
                   "counts_of_a_command", "a_comparison_that_fails", "metrics_are_there", "without_names", "several_counts")),
               "test_metrics.py::test_a_table_says_the_metric_with_its_unit_or_the_reason",
               "test_push.py::test_a_run_that_ends_waits_for_what_is_on_its_way",
               "test_readme.py::test_an_example_works[python3 ",
               "test_stat.py::test_the_default_events", "test_stat.py::test_without_options_each_count",
               "test_stat.py::test_the_table_has_the_meaning"],
    ROOTS: ["test_doctor_trials.py::test_what_needs_no_pmu_works_for_root",
            "test_doctor_trials.py::test_what_works_has_been_seen_to_work",
            "test_privileges.py::test_a_session_of_root", "test_privileges.py::test_a_command_of_root",
            "test_privileges.py::test_registers_are_kept",
            "test_privileges.py::test_a_file_that_is_there_keeps_its_mode_and_its_owner",
            "test_user_namespaces.py::test_in_the_first_user_namespace_they_count"],
    UNREAD: ["test_cgroups_that_come_and_go.py::test_without_handles_the_hierarchy",
             "test_cpu_share.py::test_what_would_cost_a_fifth", "test_doctor_trials.py::test_nothing_stays_open",
             "test_map_bytes.py::test_a_slot_holds_what_was_asked_for_and_zeros[profile-always0]",
             "test_map_bytes.py::test_a_slot_holds_what_was_asked_for_and_zeros[mem-always1]",
             "test_names.py::test_a_bpf_program_that_goes_while_the_kernels_symbols_are_read",
             "test_outputs.py::test_messages_wait_for_no_reader_either",
             "test_outputs.py::test_an_output_that_is_non_blocking_already_is_no_error",
             "test_pages.py::test_who_reads_a_page_finds_it_whole_at_any_time",
             "test_readme.py::test_an_example_works[nhmtap profile -F 99 -I 1000 --top 20",
             "test_readme.py::test_an_example_works[nhmtap profile -e page-faults -c 1 --format flat -- demo | mlr",
             *(f"test_schema.py::test_{name}" for name in (
                 "each_record_satisfies_its_own_schema_and_the_whole[frames]",
                 "each_record_satisfies_its_own_schema_and_the_whole[profile]",
                 "no_record_satisfies_the_schema_of_another_type[frames]",
                 "no_record_satisfies_the_schema_of_another_type[profile]",
                 "every_object_refuses_an_unknown_member[frames]", "every_object_refuses_an_unknown_member[profile]",
                 "every_required_member_is_missed[frames]", "every_required_member_is_missed[profile]",
                 "a_wrong_value_is_refused[profile-entries-wrong11]", "only_a_later_part_may_leave_out_what_the_first_has")),
             "test_stream.py::test_it_is_an_activity_like_the_others",
             "test_terminal.py::test_live_shows_one_interval", "test_terminal.py::test_live_fits_the_screen",
             "test_verbose.py::test_a_table_says_that_the_processes_have_ended",
             "test_verbose.py::test_a_table_says_why_there_is_no_count"],
    GOES_ON: [*(f"test_session.py::test_{name}" for name in (
                  "activities_on_a_command_give_together", "an_activity_that_cannot_start",
                  "an_event_that_this_machine_has_not", "with_retry_an_activity_is_tried_again", "without_retry",
                  "the_session_waits_for_one_that_is_tried_again", "an_activity_with_retry_that_has_had_enough"))],
}}


def pytest_collection_modifyitems(items):
    for item in items:
        name = item.nodeid.removeprefix("tests/live/")
        for why, names in APART[CALLER].items():
            if name.startswith(tuple(names)):
                item.add_marker(pytest.mark.xfail(reason=why, strict=True, run=why not in NOT_RUN))


# --- root of a user namespace ---------------------------------------------------------------------


def name_of(event):
    """Returns the name of an event in records. It ends in ":u" if the caller may count user mode
    only."""
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        return f"{event}:u" if CALLER == "rootless" and int(file.read()) == 2 and ":" not in event else event


class Watched(subprocess.Popen):
    """A process whose status and output are kept for pytest_runtest_makereport()."""
    of_test = []

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.said = ""
        names = [getattr(options.get(stream), "name", None) for stream in ("stdout", "stderr")]
        self.files = [pathlib.Path(name) for name in names if isinstance(name, (str, os.PathLike))]
        Watched.of_test.append(self)

    def communicate(self, *arguments, **options):
        both = super().communicate(*arguments, **options)
        self.said += "".join(text if isinstance(text, str) else (text or b"").decode(errors="replace") for text in both)
        return both

    def is_refused(self):
        """Whether it says so while it goes on, for example because it waits for a reader."""
        return bool(REFUSAL.search(self.in_files()))

    def in_files(self):
        return "".join(file.read_text(encoding="utf-8", errors="replace") for file in self.files if file.is_file())

    def words(self):
        """Returns its output, and if it has ended also what nobody has read yet."""
        for stream in (self.stdout, self.stderr):
            if self.returncode is not None and stream and not stream.closed:
                os.set_blocking(stream.fileno(), False)
                with contextlib.suppress(BlockingIOError):
                    self.said += os.read(stream.fileno(), 1 << 20).decode(errors="replace")
        return self.said + self.in_files()


REFUSAL = re.compile(r'(?:nhmtap: |"why":")(.*user namespace.*)')


def refusal():
    """Returns the message with which nhmtap refused a request of this test because of the user
    namespace, or None."""
    for process in Watched.of_test:
        if process.poll() == 2 or process.is_refused():
            found = REFUSAL.search(process.words())
            if found:
                return found[1]
    return None


PATIENCE_S = 1.5


class Impatience:
    """Ends a test that waits for what will never come, because nhmtap has refused a request of it a while ago:
    a thread sends a signal, whose handler fails in the test."""
    on = False

    def __enter__(self):
        self.over = threading.Event()
        self.watch = threading.Thread(target=self.wait, daemon=True)
        signal.signal(signal.SIGUSR2, self.fail)
        self.on = True
        self.watch.start()

    def __exit__(self, *_):
        self.on = False
        self.over.set()
        self.watch.join()

    def wait(self):
        since = None
        while not self.over.wait(0.5):
            ended, goes_on = (any(map(is_so, [*Watched.of_test]))
                              for is_so in (lambda process: process.poll() == 2, Watched.is_refused))
            since = (since or time.monotonic()) if ended or goes_on else None
            if since and time.monotonic() - since > PATIENCE_S * (1 if ended else 4):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR2)
                since = time.monotonic()

    def fail(self, *_):
        why = refusal() if self.on else None
        assert not why, why


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup():
    with Impatience() if CALLER == "rootless" else contextlib.nullcontext():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    with Impatience() if CALLER == "rootless" else contextlib.nullcontext():
        yield


CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test may fail because nhmtap refuses a request, if the message names the user namespace. A
    test that hangs, or in which nhmtap crashes, still counts as failed."""
    report = (yield).get_result()
    if CALLER == "rootless" and report.failed and call.excinfo and call.when != "teardown":
        hangs = call.excinfo.errisinstance(subprocess.TimeoutExpired) or "Timeout >" in str(call.excinfo.value)
        # A terminal wraps long lines.
        shown = re.sub(r"\nE +", "", report.longreprtext) + "".join(text for _, text in report.sections)
        why = refusal() or (REFUSAL.search(shown) or [None, None])[1]
        if why and not hangs and not CRASHES & {process.poll() for process in Watched.of_test}:
            report.outcome, report.wasxfail = "skipped", f"refused: {why}"
    if call.when == "teardown":
        Watched.of_test.clear()
