# SPDX-License-Identifier: GPL-2.0-only
"""What a process has mapped, by notes of the kernel, against a model that searches plain lists."""
import resource
import subprocess

import pytest
from compiled import compiled
from hypothesis import given, settings
from hypothesis import strategies as st

PAGE = 4096
PAGES = 12  # so few that mappings often overlap

pages = st.integers(0, PAGES)
pids = st.integers(1, 3)
steps = st.lists(st.one_of(
    st.tuples(st.just("map"), pids, pages, pages, st.integers(0, 3), st.sampled_from("abc")),
    st.tuples(st.just("fork"), pids, pids),
    st.tuples(st.just("exec"), pids)), max_size=40)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mapped")
    compiled(folder, "mapped")
    return folder / "mapped"


def found(program, lines, **kwargs):
    text = "".join(" ".join(map(str, line)) + "\n" for line in lines)
    return subprocess.run([program], input=text, capture_output=True, text=True, check=True,
                          **kwargs).stdout.splitlines()


def follow(steps):
    """Returns the current mappings of each process as {page: (path, offset)}, and all that it ever had."""
    now, ever = {}, {}
    for step in steps:
        kind, pid = step[:2]
        if kind == "map":
            begin, end, offset, path = step[2:]
            new = {page: (f"/nonexistent/{path}", (offset + page - begin) * PAGE) for page in range(begin, end)}
            now.setdefault(pid, {}).update(new)
        elif kind == "exec":
            now[pid] = {}
        elif step[2] in now and step[2] != pid:
            now[pid] = dict(now[step[2]])
            for page, places in ever[step[2]].items():
                ever.setdefault(pid, {}).setdefault(page, set()).update(places)
        for page, place in now.get(pid, {}).items():
            ever.setdefault(pid, {}).setdefault(page, set()).add(place)
        ever.setdefault(pid, {})
    return now, ever


@settings(max_examples=150, deadline=None)
@given(steps=steps)
def test_an_address_is_found_in_what_is_mapped_there_now_or_was_before(program, steps):
    lines = [("map", step[1], step[2] * PAGE, step[3] * PAGE, step[4] * PAGE, f"/nonexistent/{step[5]}")
             if step[0] == "map" else step for step in steps]
    asked = [(pid, page) for pid in (1, 2, 3) for page in range(PAGES)]
    finds = [("find", pid, page * PAGE + 1) for pid, page in asked]
    told = found(program, [line for each in lines for line in (each, *finds)] + finds)[-len(finds):]
    now, ever = follow(steps)
    for (pid, page), line in zip(asked, told):
        place = None if line == "-" else (line.split()[0], int(line.split()[1]) - 1)
        if page in now.get(pid, {}):
            assert place == now[pid][page]
        else:
            assert place is None or place in ever[pid][page]


def test_a_process_may_have_very_many_mappings(program):
    """A search through all mappings for each new one would take minutes."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))

    # MAPPINGS_MOST is 262,144.
    assert found(program, [("many", 1, 250_000), ("many", 1, 250_000), ("find", 1, 2 * 100_000 * PAGE)],
                 preexec_fn=limit) == [f"/nonexistent/many {100_000 * PAGE}"]


@pytest.mark.parametrize("what, nr", [("forks", 500_000), ("execs", 60_000), ("files", 60_000)])
def test_what_has_ended_is_forgotten_before_it_takes_much_memory(program, what, nr):
    """Nobody asks for it to be forgotten. What still runs is kept."""
    before = ("map", 1, PAGE, 2 * PAGE, 0, "/nonexistent/parent")
    size, place = found(program, [before, (what, 1, nr), ("bytes",), ("find", 1, PAGE)])
    assert int(size) < 20 << 20
    assert place.split()[0] == "/nonexistent/parent" or what == "files" and place.endswith(f"{nr - 1} 0")
