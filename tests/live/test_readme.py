# SPDX-License-Identifier: GPL-2.0-only
"""Every example of the README that begins with $ is run, as it stands."""
import os
import re
import subprocess

import pytest

from records import HERE, NHMTAP, PROGRAMS, check_stream, parse

README = os.path.join(HERE, "..", "README.md")
MODULES = os.path.join(HERE, "..", "user", "python")
EXAMPLES = re.findall(r"^    \$ (.+)$", open(README).read(), re.M)


def test_the_readme_has_examples():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_readme_works(example, tmp_path):
    path = os.pathsep.join([os.path.dirname(os.path.abspath(NHMTAP)), os.path.abspath(PROGRAMS),
                            os.environ["PATH"]])
    done = subprocess.run(["sh", "-c", example.replace("/tmp/nhmtap-readme", str(tmp_path / "x"))],
                          env={**os.environ, "PATH": path, "PYTHONPATH": MODULES,
                               "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout or list(tmp_path.iterdir())
    for text in [done.stdout] + [f.read_text(errors="replace") for f in tmp_path.iterdir()]:
        if text.startswith('{"type":"start"'):
            check_stream(parse(text))
