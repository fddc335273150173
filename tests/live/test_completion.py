# SPDX-License-Identifier: GPL-2.0-only
"""Completion of command lines in real shells, and the words that the program offers them."""
import json
import os
import re

import pytest

from records import NHMTAP
from terminal import Terminal

SHELLS = {
    "bash": "bash --norc --noprofile -i",
    "zsh": "zsh -f -i",
}
BEGIN = {
    "bash": "PS1='> '; source <(nhmtap completion bash); clear\n",
    "zsh": "PS1='> '; autoload -U compinit; compinit -u -d {dump}; source <(nhmtap completion zsh); clear\n",
}


@pytest.fixture(scope="session")
def dump(tmp_path_factory):
    """The file in which zsh keeps its list of completion functions. Making it takes seconds, so shells share it."""
    return tmp_path_factory.mktemp("zsh") / "zcompdump"


@pytest.fixture(params=SHELLS)
def typed(request, tmp_path, dump):
    """A function that types a line and the tab key, and waits for the completed line."""
    path = os.pathsep.join([os.path.dirname(os.path.abspath(NHMTAP)), os.environ["PATH"]])
    with Terminal(f"cd {tmp_path}; {SHELLS[request.param]}", PATH=path, HOME=str(tmp_path), columns=120) as shell:
        shell.until(lambda screen: screen)
        shell.type(BEGIN[request.param].replace("{dump}", str(dump)))
        shell.until(lambda screen: screen.strip() == ">")

        def become(line, expected):
            shell.type(line + "\t")
            shell.until(lambda screen: screen.splitlines()[0].rstrip() == f"> {expected}")
        yield become


@pytest.mark.parametrize("line, whole", [
    ("nhmtap prof", "nhmtap profile"),
    ("nhmtap stat --interval-c", "nhmtap stat --interval-count"),
    ("nhmtap stat -e page-f", "nhmtap stat -e page-faults"),
    ("nhmtap stat -e task-clock,page-f", "nhmtap stat -e task-clock,page-faults"),
    ("nhmtap stat --event=page-f", "nhmtap stat --event=page-faults"),
    ("nhmtap stat -M cpus_u", "nhmtap stat -M cpus_utilized"),
    ("nhmtap profile --by comm,sym", "nhmtap profile --by comm,symbol"),
    ("nhmtap branch --format auto", "nhmtap branch --format autofdo"),
    ("nhmtap branch --sort mis", "nhmtap branch --sort mispredicted"),
    ("nhmtap mach", "nhmtap machine"),
    ("nhmtap machine --model westmere-e", "nhmtap machine --model westmere-ex"),
    ("nhmtap stat --machine=sandybridge-", "nhmtap stat --machine=sandybridge-ep"),
    ("nhmtap explain --cpu westmere-ex", "nhmtap explain --cpu westmere-ex"),
    ("nhmtap mem --by cacheli", "nhmtap mem --by cacheline")])
def test_a_shell_completes_a_line(typed, line, whole):
    typed(line, whole)


def test_a_file_is_the_shells_to_complete(typed, tmp_path):
    (tmp_path / "stored.jsonl").touch()
    typed("nhmtap symbolize stor", "nhmtap symbolize stored.jsonl")


@pytest.fixture
def offered(nhmtap):
    def offer(*words):
        result = nhmtap("completion", "words", "--", *words)
        assert (result.status, result.err) == (0, "")
        return result.out.split()
    return offer


def test_every_option_that_help_lists_is_offered(nhmtap, offered):
    for command in offered(""):
        if command.startswith("-"):
            continue
        listed = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", nhmtap(command, "--help").out, re.M)
        assert listed and set(offered(command, "--")) == set(listed), command


def test_processes_and_cgroups_are_those_there_are(offered):
    assert str(os.getpid()) in offered("stat", "-p", "")
    assert str(os.getpid()) in [word.removeprefix("1,") for word in offered("stat", "-p", "1,")]
    assert all(path.startswith("/") for path in offered("stat", "-G", ""))


def test_behind_the_command_that_is_measured_nothing_is_offered(offered):
    assert offered("stat", "--", "--") == [] and offered("nothing", "--") == []


@pytest.mark.parametrize("command", ["profile", "mem", "branch"])
def test_every_key_that_is_offered_is_one(nhmtap, offered, tmp_path, command):
    config = tmp_path / "config.json"

    def is_key(key):
        config.write_text(json.dumps({"activities": [{"name": "one", "command": command, "event": "page-faults",
                                                      "count": 1, "by": key}]}))
        result = nhmtap("run", "--check", config, "--", "true")
        return f"there is no key '{key}'" not in result.out + result.err

    keys = offered(command, "--by", "")
    assert len(keys) >= 9 and all(map(is_key, keys))
    assert command == "branch" or not is_key("color")  # a branch event is refused first


def test_another_shell_is_refused(nhmtap):
    result = nhmtap("completion", "fish")
    assert result.status == 1 and "bash or zsh" in result.err
    assert nhmtap("completion").status == 1
