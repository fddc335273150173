# SPDX-License-Identifier: GPL-2.0-only
"""branch on this machine's kernel: the verifier accepts its program, and an event without a last
branch record is refused."""
import ctypes
import os
import re

import pytest

from records import NHMTAP

PERF_EVENT = 7  # BPF_PROG_TYPE_PERF_EVENT, linux/bpf.h
STATISTICS = 4  # BPF_LOG_STATS: only the verifier's statistics
BUILD = os.environ.get("NHMTAP_BUILD", os.path.dirname(NHMTAP))


def verified(constants):
    """Loads branch.bpf.o with these by_ constants set. Returns the verifier's statistics."""
    bpf = ctypes.CDLL("libbpf.so.1")
    for name in ("bpf_object__open_file", "bpf_object__next_program", "bpf_object__find_map_by_name"):
        getattr(bpf, name).restype = ctypes.c_void_p
    path = os.path.join(BUILD, "bpf/branch.bpf.o").encode()
    log = ctypes.create_string_buffer(1 << 20)
    opened = ctypes.c_void_p(bpf.bpf_object__open_file(path, None))
    try:
        program = ctypes.c_void_p(bpf.bpf_object__next_program(opened, None))
        rodata = ctypes.c_void_p(bpf.bpf_object__find_map_by_name(opened, b".rodata"))
        bpf.bpf_program__set_type(program, PERF_EVENT)
        bpf.bpf_program__set_log_level(program, STATISTICS)
        bpf.bpf_program__set_log_buf(program, log, ctypes.c_size_t(len(log)))
        bpf.bpf_map__set_initial_value(rodata, bytes(constants), ctypes.c_size_t(len(constants)))
        assert bpf.bpf_object__load(opened) == 0, log.value.decode()[-2000:]
    finally:
        bpf.bpf_object__close(opened)
    return log.value.decode()


@pytest.mark.parametrize("by", [(1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (1, 1, 1, 1, 1)])
def test_the_verifier_takes_the_loop_over_a_stack_with_room_to_spare(by):
    # The kernel gives up at a million instructions (BPF_COMPLEXITY_LIMIT_INSNS).
    assert int(re.search(r"processed (\d+) insns", verified(by))[1]) < 250_000


def test_an_event_without_a_branch_record_is_refused_with_the_reason(nhmtap):
    result = nhmtap("branch", "-e", "page-faults", "-c", 1, "--", "true")
    assert result.status == 2
    error = result.one("error")
    assert error["errno"] == "EOPNOTSUPP"
    assert "only the core's own events come with the branches" in error["why"]
    assert error["remedy"]
