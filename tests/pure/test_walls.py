# SPDX-License-Identifier: GPL-2.0-only
"""Which file of the program needs which other one, by the objects' symbols: no circles, and a wall around what
runs confined."""
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["NHMTAP_BUILD"]

# Files that need each other, as sorted tuples of "folder/name", each with the reason. There are none.
CIRCLES = {}
# Needs that lead back, against those of the rest of their folders.
BACKWARDS = {
    ("naming", "record"): "inlined frames are written as JSON where they are found",
}


# A function's definition: its type, its name, its parameters, and the brace on a line of its own.
DEFINITION = re.compile(r"^(static )?(?:const |unsigned |struct |enum )*\w[\w ]*?[ *]+(\w+)\([^;{}]*\)\n\{", re.M)

# Of a parameter: its name, which is no part of its type.
PARAMETER = re.compile(r"\w+(?:\[[^]]*\])*$")

STRUCT = re.compile(r"^(?:static )?(?:const )?struct (\w+) \{", re.M)


def sources(ends=".c"):
    """Yields (path below user/, text) of each source. The emulated machine is a program of its own."""
    for folder, folders, names in os.walk(os.path.join(ROOT, "user")):
        folders[:] = [name for name in folders if name != "machine"]
        for path in (os.path.join(folder, name) for name in names if name.endswith(ends) and not name.endswith("_without.c")):
            with open(path, encoding="utf-8") as file:
                yield os.path.relpath(path, os.path.join(ROOT, "user")), file.read()


def needs():
    """Returns {file: files whose functions or data it uses}, as "folder/name". NAME_without.c, for a build without a
    library, is as NAME.c."""
    objects = {os.path.join(BUILD, "user", f"{path[:-2]}.o"): path[:-2] for path, _ in sources()}
    listed = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
    owner, wanted = {}, {name: set() for name in objects.values()}
    for line in listed.splitlines():
        path, _, symbol = line.partition(":")
        *_, kind, name = symbol.split()
        if kind in "TDBR":
            owner[name] = objects[path]
        elif kind == "U":
            wanted[objects[path]].add(name)
    return {file: {owner[name] for name in names if name in owner} - {file} for file, names in wanted.items()}


@pytest.fixture(scope="module")
def files():
    return needs()


def circles(graph):
    """Returns the largest sets of which each member leads to each other one."""
    def reached(start):
        found, queue = set(), [start]
        while queue:
            new = graph.get(queue.pop(), set()) - found
            found |= new
            queue += new
        return found
    after = {name: reached(name) for name in graph}
    return {tuple(sorted({other for other in after[name] if name in after[other]})) for name in graph if name in after[name]}


def test_no_files_need_each_other_but_those_with_a_reason(files):
    assert circles(files) == set(CIRCLES)


def test_no_folder_leads_back_to_one_that_needs_it(files):
    folders = {}
    for file, others in files.items():
        folder = os.path.dirname(file)
        folders.setdefault(folder, set()).update(os.path.dirname(other) for other in others)
    graph = {folder: {other for other in others if other != folder and (folder, other) not in BACKWARDS}
             for folder, others in folders.items()}
    assert circles(graph) == set()
    assert all(behind in folders[folder] for folder, behind in BACKWARDS), "no longer so: remove it from BACKWARDS"


def test_no_function_of_one_file_is_named_as_one_for_all():
    """By the text, because the compiler leaves no symbol of a static function that it has inlined."""
    own, common = {}, {}
    for path, text in sources():
        for static, name in DEFINITION.findall(re.sub(r"__attribute__\(\(.*?\)\)+ ?", "", text)):
            (own if static else common).setdefault(name, set()).add(path)
    assert len(own) > 1500 and len(common) > 900, "definitions look different now"
    assert {name: (own[name], common[name]) for name in own.keys() & common.keys()} == {}


def test_a_name_of_one_word_recurs_for_functions_of_one_type_alone():
    """A hook has the same name in each file that has it: an output's take(), a command's run(). Other functions are not
    alike because of a common verb, so their names say what they do it to."""
    types = {}
    for path, text in sources():
        for definition in DEFINITION.finditer(re.sub(r"__attribute__\(\(.*?\)\)+ ?", "", text)):
            static, name = definition.groups()
            if static and "_" not in name:
                before, _, parameters = definition[0].partition(f"{name}(")
                of = (before.strip(), *(PARAMETER.sub("", " ".join(one.split())).strip()
                                        for one in parameters.rpartition(")")[0].split(",")))
                types.setdefault(name, {}).setdefault(of, []).append(path)
    assert len(types["run"]) == 1 and len(*types["run"].values()) > 10, "definitions look different now"
    assert {name: of for name, of in types.items() if len(of) > 1} == {}


def test_no_two_structs_have_one_name():
    defined = {}
    for path, text in sources((".c", ".h")):
        for name in STRUCT.findall(text):
            defined.setdefault(name, []).append(path)
    assert len(defined) > 300, "definitions look different now"
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


def test_everybody_may_lean_on_base_and_base_on_nobody(files):
    outside = {other for file, others in files.items() if file.startswith("base/")
               for other in others if not other.startswith("base/")}
    assert outside == set()


def test_nothing_calls_into_what_runs_confined(files):
    """It is reached through the worker process alone: by messages."""
    callers = {(file, other) for file, others in files.items() for other in others
               if other.startswith("confined/") and not file.startswith("confined/")}
    assert callers == set()
