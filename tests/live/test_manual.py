# SPDX-License-Identifier: GPL-2.0-only
"""The manual pages: man accepts them, and they contain everything that the program has."""
import glob
import json
import os
import re
import runpy
import subprocess
import sys
import types

import manual
import pytest
from records import NHMTAP

GENERATOR = os.path.join(manual.ROOT, "user", "manual", "pages.py")
COMMANDS = json.loads(subprocess.run([NHMTAP, "help", "--json"], stdout=subprocess.PIPE, check=True).stdout)
NAMES = [command["name"] for command in COMMANDS]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, "-B", GENERATOR, NHMTAP, path], check=True)
    return path


def man(*arguments, locale="C.UTF-8"):
    environment = {**os.environ, "LC_ALL": locale, "MANWIDTH": "100", "MAN_KEEP_FORMATTING": ""}
    done = subprocess.run(["man", *map(str, arguments)], capture_output=True, check=False, env=environment)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def shown(folder, name):
    path, = glob.glob(f"{folder}/man*/{name}.*")
    return man("-l", path)[1]


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_man_has_nothing_to_complain_of(folder, locale):
    pages = glob.glob(f"{folder}/man*/*")
    assert len(pages) >= len(NAMES) + 5
    for page in pages:
        status, _, warnings = man("--warnings", "-l", page, locale=locale)
        assert (status, warnings) == (0, ""), page


def test_man_would_complain(tmp_path):
    (tmp_path / "bad.1").write_text('.TH BAD 1\n.SH NAME\nbad \\- is bad\n.nosuch\n\\[nosuch]\n')
    assert man("--warnings", "-l", tmp_path / "bad.1")[2]


def test_each_page_can_be_found_by_what_it_is_about(folder):
    for page in glob.glob(f"{folder}/man*/*"):
        name = os.path.basename(page)[:-2]
        said = subprocess.run(["lexgrog", page], stdout=subprocess.PIPE, check=True, text=True).stdout
        assert re.search(rf'"{name} - \S', said), said


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_a_commands_page_has_prose_and_every_option_and_format(folder, command):
    assert len(manual.text_of(f"nhmtap-{command['name']}.md").splitlines()) > 3
    text = shown(folder, f"nhmtap-{command['name']}")
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
        assert f"\n{section}\n" in text
    for option in command["options"]:
        assert re.search(rf"^ +(-\w, )?--{option['name']}\b", text, re.M), option["name"]
    for form in command["formats"]:
        assert re.search(rf"^ +{form['name']}( |$)", text, re.M), form["name"]


def test_every_member_of_every_record_has_its_place(folder):
    text = shown(folder, "nhmtap-records")
    schema = json.loads(subprocess.run([NHMTAP, "schema"], stdout=subprocess.PIPE, check=True).stdout)
    records = {name: value for name, value in schema["$defs"].items() if name != "common"}
    shared = schema["$defs"]["common"]["$defs"]
    groups = {name: {part["$ref"].split("/")[-1] for part in value.get("allOf", ()) if "$ref" in part} - {"envelope"}
              for name, value in records.items()}
    for name, value in [*records.items(), *((group, shared[group]) for group in set().union(*groups.values()))]:
        _, section = re.split(rf"^   {name}$", text, maxsplit=1, flags=re.M)
        section = re.split(r"^   \w+$", section, maxsplit=1, flags=re.M)[0]
        for member in set(value["properties"]) - {"type"}:
            assert re.search(rf"^       {re.escape(member)}(\[\])?( |$)", section, re.M), f"{name}.{member}"
        for group in groups.get(name, ()):
            assert re.search(rf"Members of [^:]*\b{group}\b[^:]*:", section), f"{name} has members of {group}"


def test_every_member_of_config_has_its_place(folder):
    text = shown(folder, "nhmtap-config")
    schema = json.loads(subprocess.run([NHMTAP, "schema", "config"], stdout=subprocess.PIPE, check=True).stdout)
    for value in [schema, schema["$defs"]["output"], *schema["$defs"]["activity"]["oneOf"]]:
        for member in value["properties"]:
            assert re.search(rf"^       {re.escape(member)}(\[\])?( |$)", text, re.M), member


def test_help_shows_the_page_of_a_command(nhmtap):
    said = nhmtap("help", "stat")
    assert said.status == 0 and said.out.startswith("NHMTAP-STAT(1)") and "--expect" in said.out
    assert nhmtap("help", "events").out.startswith("NHMTAP-EVENTS(7)")


def test_help_knows_all_pages_and_refuses_others(nhmtap, folder):
    pages = {os.path.basename(path)[:-2].partition("-")[2] for path in glob.glob(f"{folder}/man*/*")} - {""}
    said = {page: nhmtap("help", page) for page in sorted(pages)}
    assert all(each.status == 0 and each.out.startswith(f"NHMTAP-{page.upper()}(") for page, each in said.items())
    wrong = nhmtap("help", "profil")
    assert (wrong.status, wrong.err) == (1, "nhmtap: 'profil': there is no such command. Next: did you mean profile?\n")


def test_help_without_man_says_what_to_do(nhmtap, tmp_path):
    said = nhmtap("help", "stat", env={**os.environ, "PATH": str(tmp_path)})
    assert said.status == 2
    assert said.err == ("nhmtap: the manual page nhmtap-stat: man can't be run: No such file or directory. "
                        "Next: nhmtap stat --help lists the options.\n")


def test_pages_that_are_referred_to_exist(folder):
    there = {os.path.basename(path)[:-2] for path in glob.glob(f"{folder}/man*/*")}
    for source in manual.SOURCES:
        assert set(re.findall(r"\b(nhmtap[\w-]*)\(\d\)", manual.text_of(os.path.basename(source)))) <= there


def test_a_command_that_nobody_wrote_about_has_its_options(folder):
    """Like a command of an extension, for which pages.py needs no prose."""
    pages = types.SimpleNamespace(**runpy.run_path(GENERATOR))
    program = pages.Program(NHMTAP)
    program.commands = [{"name": "purr", "arguments": "[OPTIONS]", "help": "purrs", "formats": [],
                         "options": [{"name": "loud", "help": "as loud as it can"}]}]
    name, text = pages.page(program, *dict((title, (title, text)) for title, text in pages.sources(program))[
        "nhmtap-purr(1)"])
    assert name == "man1/nhmtap-purr.1"
    assert "nhmtap\\-purr \\- purrs" in text and "\\-\\-loud" in text and "As loud as it can." in text
