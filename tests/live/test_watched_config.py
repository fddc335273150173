# SPDX-License-Identifier: GPL-2.0-only
"""run --watch: CONFIG is read again when what is at its path has changed, in each way that files are changed."""
import json
import os
import signal

import pytest
from records import parse
from sessions import Session, faults, until


def written_in_place(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def renamed_over(path, text):
    beside = path.with_name("beside")
    beside.write_text(text)
    beside.rename(path)


def removed_and_made_again(path, text):
    path.unlink()
    path.write_text(text)


def led_elsewhere(path, text):
    other = path.with_name("other")
    other.write_text(text)
    path.unlink()
    path.symlink_to("other")


def renewed_as_a_config_map(path, text):
    """Kubernetes keeps the files in a folder that ..data leads to, and exchanges this link."""
    version = path.with_name("..2")
    version.mkdir()
    (version / path.name).write_text(text)
    link = path.with_name("..data_tmp")
    link.symlink_to(version.name)
    link.rename(path.with_name("..data"))


def as_a_config_map(path):
    version = path.with_name("..1")
    version.mkdir()
    path.rename(version / path.name)
    path.with_name("..data").symlink_to(version.name)
    path.symlink_to(f"..data/{path.name}")


def reloads(records):
    return [record["outcome"] for record in records if record["type"] == "reload"]


def watching(nhmtap, folder, puppet):
    return Session(nhmtap, folder, [faults("old", "stat", pid=str(puppet.pid))], options=["--watch"])


@pytest.mark.parametrize("change", [
    written_in_place, renamed_over, removed_and_made_again, led_elsewhere, renewed_as_a_config_map])
def test_a_changed_config_is_read_once(nhmtap, tmp_path, puppet, change):
    with watching(nhmtap, tmp_path, puppet) as session:
        if change is renewed_as_a_config_map:
            as_a_config_map(session.config)
        new = {**session.members, "activities": [faults("new", "stat", pid=str(puppet.pid))]}
        change(session.config, json.dumps(new))
        session.until(lambda records: any(r["type"] == "start" and r["activity"] == "new" for r in records))
        result = session.end()
    assert [record["outcome"] for record in result.of("reload") if record["begun"]] == ["taken"]
    assert [end["reason"] for end in result.of("end", activity="old")] == ["reloaded"]


def test_a_broken_config_is_refused_and_the_mended_one_taken(nhmtap, tmp_path, puppet):
    with watching(nhmtap, tmp_path, puppet) as session:
        good = session.config.read_text()
        session.config.write_text("{")
        session.until(lambda records: reloads(records) == ["refused"])
        session.config.write_text(good + " ")
        session.until(lambda records: reloads(records) == ["refused", "taken"])
        result = session.end()
    assert "is not JSON" in result.of("error")[0]["why"]
    assert result.of("end", activity="old")[0]["reason"] == "terminated"


def test_a_config_that_is_away_changes_nothing(nhmtap, tmp_path, puppet):
    with watching(nhmtap, tmp_path, puppet) as session:
        text = session.config.read_text()
        session.config.unlink()
        session.config.write_text(text)
        session.until(lambda records: reloads(records) == ["taken"])
        result = session.end()
    assert not result.of("error")


def processes_below(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return {child: open(f"/proc/{child}/comm", encoding="ascii").read().strip() for child in file.read().split()}


def test_nobody_watches_after_the_end(nhmtap, tmp_path, puppet):
    with watching(nhmtap, tmp_path, puppet) as session:
        watcher, = (pid for pid, name in processes_below(session.process.pid).items() if name == "nhmtap-watch")
        session.end()
        until(lambda: not os.path.exists(f"/proc/{watcher}"))


def test_the_end_of_the_watching_process_is_told(nhmtap, tmp_path, puppet):
    with watching(nhmtap, tmp_path, puppet) as session:
        watcher, = (pid for pid, name in processes_below(session.process.pid).items() if name == "nhmtap-watch")
        os.kill(int(watcher), signal.SIGKILL)
        until(lambda: "the process that watches CONFIG has ended; SIGHUP reads it again" in session.said())
        session.hup()
        result = session.end()
    assert reloads(parse(result.out)) == ["taken"]
