# SPDX-License-Identifier: GPL-2.0-only
"""Makes the manual pages: pages.py NHMTAP FOLDER

The prose is Markdown, one file per page in this folder, in this subset: "# NAME(SECTION): what it
is", "## section", paragraphs, lists with "-", tables of two columns, code that is indented by four,
and `code` and **strong** within a line. The rest comes from the program: synopsis, options and
formats of a command (help --json), and members of records and of CONFIG (schema), which replace the
lines "<!-- records -->" and "<!-- config -->". "<!-- machine -->" is replaced by what the emulated
machine's README says of its exactness.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# groff's names of characters that not every terminal has. groff shows a substitute if necessary.
NAMED = {"…": "...", "≤": r"\(<=", "≥": r"\(>=", "×": r"\(mu", "÷": r"\(di", "→": r"\(->", "±": r"\(+-",
         "–": r"\(en", "·": r"\(bu"}


# In code, characters that groff would replace by those of a text.
PLAIN = {"-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def escaped(text, code=False):
    return text.translate(str.maketrans({"\\": r"\e", **NAMED, **(PLAIN if code else {})}))


def bold(text):
    return rf"\fB{escaped(text, True)}\fR"


def inline(text):
    """Returns a line's text as groff source. A "." or "'" at the start is escaped, because it would
    begin a request."""
    pieces = re.split(r"`([^`]+)`|\*\*([^*]+)\*\*|((?<![\w/-])--?[a-zA-Z][\w-]*|\bnhmtap[\w-]*\(\d\))", text)
    made = "".join(escaped(pieces[i]) + "".join(bold(piece) for piece in pieces[i + 1:i + 4] if piece)
                   for i in range(0, len(pieces), 4))
    return r"\&" + made if made[:1] in (".", "'") else made


def sentence(text):
    text = text[0].upper() + text[1:] if re.match(r"[a-z]+\b(?![-_=(])", text) else text
    return text if text[-1] in ".!?" else text + "."


def item(term, text):
    return [".TP", term, inline(text)]


# --- prose ---------------------------------------------------------------------------------------------


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(lines):
    """Makes a list of terms from a table of two columns. The heading is left out."""
    return [line for row in lines[2:] for line in item(inline(cells(row)[0]), cells(row)[1])]


def code(lines):
    return [".PP", ".RS 4", ".EX", *(r"\&" + escaped(line[4:], True) for line in lines), ".EE", ".RE", ".PP"]


def dashes(lines):
    items = re.split(r"^- ", "\n".join(lines), flags=re.M)[1:]
    return [line for text in items for line in item(r"\(bu", " ".join(text.split()))]


BLOCKS = (("    ", code), ("- ", dashes), ("|", table))


def block(text):
    lines = text.split("\n")
    if text.startswith("## "):
        return [f'.SH "{escaped(text[3:].upper())}"']
    for begin, make in BLOCKS:
        if text.startswith(begin):
            return make(lines)
    return [".PP", *map(inline, lines)]


def blocks(text):
    """Splits text at empty lines. Code continues after an empty line if the next line is indented
    too."""
    pieces = [piece for piece in re.split(r"\n\n+(?!    )|\n\n+(?<=\n)(?=    )", text.strip("\n")) if piece]
    joined = []
    for piece in pieces:
        if joined and piece.startswith("    ") and joined[-1].startswith("    "):
            joined[-1] += "\n\n" + piece
        else:
            joined.append(piece)
    return joined


def prose(text):
    return [line for piece in blocks(text) for line in block(piece)]


# --- commands ------------------------------------------------------------------------------------------


def option_term(option):
    names = ([f"-{option['letter']}"] if "letter" in option else []) + [f"--{option['name']}"]
    space = "" if option.get("argument", "").startswith("[") else " "
    argument = rf"{space}\fI{escaped(option['argument'], True)}\fR" if "argument" in option else ""
    return ", ".join(map(bold, names)) + argument


def options_of(command):
    made = ['.SH "OPTIONS"']
    for option in command["options"]:
        made += item(option_term(option), sentence(option["help"]))
    if command["formats"]:
        made += [".PP", r"\fIFORMAT\fR is one of:"]
    for form in command["formats"]:
        made += item(bold(form["name"]), sentence(form["help"]))
    return made


def synopsis(command):
    arguments = re.sub(r"[A-Z]+", lambda word: rf"\fI{word[0]}\fR", escaped(command["arguments"], True))
    return ['.SH "SYNOPSIS"', bold(f"nhmtap {command['name']}") + " " + arguments]


def commands_of(commands):
    return ['.SH "COMMANDS"', *(line for command in commands
                                for line in item(bold(f"nhmtap-{command['name']}(1)"), sentence(command["help"])))]


# --- schemas -------------------------------------------------------------------------------------------


class Schemas:
    """Makes lists of the members that schemas describe."""

    def __init__(self, schema, definitions):
        self.schema, self.shared = schema, definitions

    def resolve(self, value):
        """Returns a value's schema merged with the definition that it refers to, and the
        definition's name."""
        if "$ref" not in value:
            return value, None
        name = value["$ref"].split("/")[-1]
        return {**self.shared[name], **value}, name

    @staticmethod
    def kind(value):
        if "const" in value:
            return json.dumps(value["const"])
        if "enum" in value:
            return ", ".join(str(word) for word in value["enum"] if len(value["enum"]) <= 12)
        kind = value.get("type", "")
        return " or ".join(kind) if isinstance(kind, list) else kind

    def members(self, schema, path, apart):
        """Lists the members of a schema. Objects in `apart` have a section of their own and are
        only named."""
        made = []
        for name, value in schema.get("properties", {}).items():
            value, of = self.resolve(value) if value not in (True, False) else ({}, None)
            where = path + name
            inner = value
            while inner.get("type") == "array":
                where += "[]"
                inner, of = self.resolve(inner.get("items", {}))
            if name == "type" and "const" in value:
                continue
            see = of in apart
            text = value.get("description") or inner.get("description") or ""
            kind = f"see {of} below" if see else self.kind(value)
            made += item(bold(where) + (f" ({escaped(kind)})" if kind else ""), text)
            if not see:
                made += self.members(inner, where + ".", apart)
        return made

    def section(self, schema, title, apart):
        made = [f'.SS "{escaped(title)}"', inline(schema.get("description", ""))]
        groups = [self.resolve(part)[1] for part in schema.get("allOf", [])]
        shared = ", ".join(of for of in groups if of not in (None, "envelope"))
        if shared:
            made += [".PP", inline(f"Members of {shared}, below, and:")]
        return made + self.members(schema, "", apart)


def records(schema):
    """Describes each type of record, then the shared members."""
    common = schema["$defs"].pop("common")["$defs"]
    schemas = Schemas(schema, common)
    apart = {name for name, value in common.items() if "properties" in value or "allOf" in value} - {"envelope"}
    made = ['.SH "EVERY RECORD"', inline(common["envelope"]["description"])]
    made += schemas.members(common["envelope"], "", apart) + ['.SH "TYPES OF RECORDS"']
    for name, value in sorted(schema["$defs"].items()):
        made += schemas.section(value, name, apart)
    made += ['.SH "SHARED MEMBERS"']
    for name in sorted(apart):
        made += schemas.section(common[name], name, apart - {name})
    return made


def config(schema):
    definitions = schema["$defs"]
    schemas = Schemas(schema, definitions)
    made = ['.SH "MEMBERS"', inline(schema["description"]), *schemas.members(schema, "", {"activity", "output"})]
    made += schemas.section(definitions["output"], "output", {})
    made += schemas.section(definitions["activity"], "activity", {})
    for activity in definitions["activity"]["oneOf"]:
        properties = dict(activity["properties"])
        name = properties["command"]["const"]
        for shared in definitions["activity"]["properties"]:
            properties.pop(shared, None)
        made += schemas.section({"description": f"Its further members are the options of nhmtap-{name}(1).",
                                 "properties": properties}, f"activity with command {name}", {})
    return made


# --- the emulated machine ------------------------------------------------------------------------------


def machine():
    """Returns the sections of the machine's README that concern who measures with it."""
    with open(os.path.join(HERE, "../machine/README.md"), encoding="utf-8") as file:
        sections = re.split(r"^(?=## )", file.read(), flags=re.M)
    concerned = ("## A command as if", "## Snapshots", "## Modelled", "## Accuracy")
    return "".join(section for section in sections if section.startswith(concerned))


# --- pages ---------------------------------------------------------------------------------------------


class Program:
    def __init__(self, path):
        self.path = path
        self.version = self.say("--version").split("\n")[0]
        self.commands = json.loads(self.say("help", "--json"))

    def say(self, *arguments):
        return subprocess.run([self.path, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout

    def generated(self, text):
        """Converts prose, and replaces each mark by what is generated from the schemas."""
        made = []
        for piece in re.split(r"^(<!-- \w+ -->)$", text, flags=re.M):
            if piece == "<!-- records -->":
                made += records(json.loads(self.say("schema")))
            elif piece == "<!-- config -->":
                made += config(json.loads(self.say("schema", "config")))
            elif piece == "<!-- machine -->":
                made += prose(machine())
            else:
                made += prose(piece)
        return made


def page(program, title, text):
    """Returns the path and the text of a page. title: "name(section): what it is"; for a command,
    what it is may be left out and comes from its help."""
    name, section, what = re.fullmatch(r"([\w-]+)\((\d)\)(?:: (.*))?", title).groups()
    command = next((c for c in program.commands if name == f"nhmtap-{c['name']}"), None)
    what = what or command["help"]
    intro, *rest = re.split(r"^(?=## |<!-- )", text, maxsplit=1, flags=re.M)
    made = [r".\" Made by user/manual/pages.py: edit what is there.",
            f'.TH "{escaped(name.upper(), True)}" "{section}" "" "{escaped(program.version)}" "nhmtap"',
            '.SH "NAME"', rf"{escaped(name, True)} \- {escaped(what)}"]
    made += synopsis(command) if command else []
    if intro.strip():
        made += ['.SH "DESCRIPTION"', *prose(intro)]
    made += options_of(command) if command else commands_of(program.commands) if name == "nhmtap" else []
    made += program.generated("".join(rest))
    if name != "nhmtap":
        made += ['.SH "SEE ALSO"', ", ".join(map(bold, ("nhmtap(1)", "nhmtap-events(7)", "nhmtap-records(5)")))]
    return f"man{section}/{name}.{section}", "\n".join(made) + "\n"


def sources(program):
    """Returns title and text of each page. A command without a file gets a page with its
    options."""
    found = {}
    for file in sorted(name for name in os.listdir(HERE) if name.endswith(".md")):
        with open(os.path.join(HERE, file), encoding="utf-8") as source:
            title, text = source.read().split("\n", 1)
        found[file.removesuffix(".md")] = title.removeprefix("# "), text
    for command in program.commands:
        found.setdefault(f"nhmtap-{command['name']}", (f"nhmtap-{command['name']}(1)", ""))
    return found.values()


def main(path, folder):
    program = Program(path)
    for title, text in sources(program):
        name, made = page(program, title, text)
        os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
