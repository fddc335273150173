# SPDX-License-Identifier: GPL-2.0-only
"""What programs of these tests are linked with."""
import os

import compiled
import pytest


@pytest.mark.parametrize("changed, taken", [(None, True), ("user/base/list.c", False), ("user/base/list.h", False), ("gone", False)])
def test_an_object_is_linked_only_if_what_it_was_made_of_is_no_newer(tmp_path, monkeypatch, changed, taken):
    """The notes are as gcc -MMD -MP writes them."""
    of = ["user/base/list.c", "user/base/list.h"]
    for path in of + ["build/user/base/list.o"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
        os.utime(tmp_path / path, (1000, 1000 + (path == changed)))
    if changed == "gone":
        (tmp_path / of[1]).unlink()
    (tmp_path / "build/user/base/list.d").write_text(f"build/user/base/list.o: {of[0]} \\\n {of[1]}\n{of[1]}:\n")
    monkeypatch.setenv("NHMTAP_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(compiled, "HERE", str(tmp_path / "tests"))
    monkeypatch.setattr(compiled, "has_objects", lambda plain: True)
    (tmp_path / "tests").mkdir()
    assert compiled.part("base/list.c") == (str(tmp_path / "build/user/base/list.o") if taken else None)
