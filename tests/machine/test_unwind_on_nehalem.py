# SPDX-License-Identifier: GPL-2.0-only
"""Stacks walked by tables on the emulated Nehalem, of a program without frame pointers whose calls are known. A precise
sample's instruction is not where the interrupt came, from whose registers the stack is walked."""
import pytest

import chain
import records
import stacks

# What runs in the guest: the program, which is told to make its calls once nhmtap has attached to it.
SCRIPT = """
cat > chain; chmod +x chain; mkfifo in; : > said
./chain < in > said & pid=$!
exec 3> in
until grep -q ready said; do usleep 10000; done
nhmtap profile -g --unwind tables --by symbol,comm --format json -o x {options} -p $pid 3>&- & tool=$!
until [ -s x ]; do usleep 10000; done
echo "{step}" >&3
exec 3>&-
wait $tool
cat x >&2
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    with open(chain.build(tmp_path_factory.mktemp("chain"), static=True), "rb") as file:
        return file.read()


def profile(bench, program, options, step):
    done = bench.run(SCRIPT.format(options=options, step=step), paranoid=-1, stdin=program)
    assert done.stderr.startswith("{"), str(done)[:3000]
    result = records.Result(0, done.stderr, "")
    told = result.of("profile")[0]["stacks"]
    assert result.one("start")["unwind"]["follow"] == "programs"
    return stacks.named(result), told


BEFORE = {after: before for names in (chain.OUTER, chain.INNER) for before, after in zip(names, names[1:])}


def is_possible(names):
    """Whether the program can have these calls: each of its functions is called by the one before it alone."""
    within = names[names.index("main"):] if "main" in names else ()
    return (names[0] == "_start" and bool(within)
            and all(BEFORE.get(after, before) == before for before, after in zip(within, within[1:])
                    if after not in ("own0", "rounds")))


def test_each_page_fault_has_its_whole_chain(any_kernel, program):
    found, told = profile(any_kernel, program, "-e page-faults:u -c 1", "rounds 100")
    assert sum(n for names, n in found.items() if chain.is_whole(names)) == 100
    assert told["whole"] == told["delivered"] and told["guessed"] == 0


@pytest.mark.parametrize("event", ["r01c0:u", "r01c0:up", "r01c0:upp"])
def test_samples_of_each_precision_are_chains_that_the_program_can_have(any_kernel, program, event):
    found, told = profile(any_kernel, program, f"-e {event} -c 743", "calls 2000")
    impossible = {names: n for names, n in found.items() if not is_possible(names)}
    deep = sum(n for names, n in found.items() if "back0" in names and names[:names.index("back0")][-1] == "compare")
    assert sum(found.values()) > 500 and deep > 50
    # Before its first instruction has been sampled, a page of the stack may not be there to be read.
    assert sum(impossible.values()) <= 0.02 * sum(found.values()), impossible
    assert told["whole"] >= 0.98 * told["delivered"]
