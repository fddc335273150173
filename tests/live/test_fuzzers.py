# SPDX-License-Identifier: GPL-2.0-only
"""The fuzzers of tests/fuzz, on the objects that are already built. `make search` looks for more."""
import os
import subprocess

import pytest
from records import sanitized
from trees import BUILD, LIBPERF, OURS, ROOT


@pytest.mark.timeout(1860)
def test_each_fuzzer_can_be_built_and_runs_its_first_inputs(tmp_path):
    """A moment instead of the default minute: the seeds and what follows from them. It shows that the fuzzers are built
    from the present program, and finds little that is new."""
    clean = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(["make", f"-j{os.cpu_count()}", f"O={os.path.relpath(BUILD, ROOT)}", f"LIBPERF={LIBPERF}", f"SANITIZE={int(sanitized())}",
                           "FUZZ_BUILT=1", f"fuzz_folder={tmp_path}", "FUZZ_LIMIT=-runs=500 -seed=1", "fuzz"],
                          cwd=ROOT, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    targets = [name for name in os.listdir(os.path.join(ROOT, "tests", "fuzz")) if name.endswith(".c")]
    assert len(targets) >= 14 and done.stderr.count("DONE") == len(targets)
