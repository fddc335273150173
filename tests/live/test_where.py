# SPDX-License-Identifier: GPL-2.0-only
"""--where: a condition that the kernel's program checks. What it lets through is compared with the same condition on
a stream of all samples of the same run."""
import json
import random
import shutil

import pytest
from records import Result, program

OPS = ("==", "!=", "<", "<=", ">", ">=")
N = 300


def condition(chance, samples, depth=0):
    """A random condition, and the same as a function of a sample. Its constants are of the samples, or near them."""
    kind = chance.random()
    if depth < 3 and kind < 0.55:
        left, holds_left = condition(chance, samples, depth + 1)
        right, holds_right = condition(chance, samples, depth + 1)
        if kind < 0.28:
            return f"({left} && {right})", lambda sample: holds_left(sample) and holds_right(sample)
        return f"({left}||{right})", lambda sample: holds_left(sample) or holds_right(sample)
    if kind < 0.65 and depth < 3:
        inner, holds = condition(chance, samples, depth + 1)
        return f"!({inner})", lambda sample: not holds(sample)
    field = chance.choice(("comm", "pid", "tid", "cpu", "ip", "addr", "period"))
    known = chance.choice(samples)
    if field == "comm":
        op, text = chance.choice(OPS[:2]), chance.choice((known["comm"], "nobody"))
        return f'{field}{op}"{text}"', lambda sample: (sample["comm"] == text) == (op == "==")
    number = value(known, field) + chance.choice((0, 0, 1))
    op = chance.choice(OPS)
    return f"{field} {op} {hex(number)}", lambda sample: eval(f"{value(sample, field)}{op}{number}")


def value(sample, field):
    return {"ip": lambda: int(sample["ip"], 16), "addr": lambda: int(sample["address"], 16)}.get(field, lambda: sample[field])()


FIXED = ["setarch", "-R"]  # the same addresses in each run


@pytest.mark.parametrize("seed", range(6))
def test_a_condition_lets_through_what_it_says(nhmtap, tmp_path, seed):
    fields = "comm,pid,tid,cpu,ip,addr,period"
    faults = {"event": "page-faults:u", "count": 1}
    first = nhmtap.into(tmp_path / "first", "stream", "-e", "page-faults:u", "-c", "1", "--fields", fields, "--", *FIXED,
                        program("pages"), N).of("sample")
    chance = random.Random(seed)
    conditions = [condition(chance, first) for _ in range(8)]
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"outputs": [{"path": str(tmp_path / "out")}], "activities": [
        {"name": "all", "command": "stream", "fields": fields, **faults},
        *({"name": f"w{i}", "command": "profile", "by": "pid", "where": text, **faults} for i, (text, _) in enumerate(conditions))]}))
    nhmtap("run", config, "--", *FIXED, program("pages"), N)
    result = Result(0, (tmp_path / "out").read_text(), "")
    samples = result.of("sample")
    for i, (text, holds) in enumerate(conditions):
        record, = (r for r in result.of("profile") if r["activity"] == f"w{i}")
        wanted = sum(map(holds, samples))
        assert record["samples"]["aggregated"] == wanted, text
        assert record["samples"].get("filtered", 0) == len(samples) - wanted, text
        assert record["value"] == len(samples)


def test_the_start_record_has_the_condition(nhmtap):
    result = nhmtap("profile", "-e", "page-faults", "-c", "1", "--where", "pid>0", "--", "true")
    assert result.one("start")["where"] == "pid>0"


def test_where_nothing_is_let_through_it_says_so(nhmtap):
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "comm", "--where", "comm==nobody", "--", "true")
    assert result.one("profile")["no_samples"] == "none of its samples met the condition (--where)"
    assert "none of its samples met the condition" in result.err


@pytest.mark.parametrize("text, why, remedy", [
    ("", "column 1: a field is expected here", "latency>=100"),
    ("pid", "column 4: a comparison is expected here", "=="),
    ("pid==", "column 6: a value is expected here", "a number"),
    ("pid==1 &&", "column 10: a field is expected here", "latency>=100"),
    ("(pid==1", "column 8: a ')' is expected here", "&&"),
    ("pid==1)", "column 7: the condition ends here", "&&"),
    ("pidd==1", "column 1: 'pidd' is no field", "did you mean pid"),
    ("latency>5", "column 1: this command does not read 'latency' of its samples", "nhmtap stream and nhmtap mem do"),
    ("symbol==main", "column 1: 'symbol' is no field", "fields:"),
    ("pid==1x", "column 6: a number is expected here", "0x"),
    ("comm>a", "column 6: a name is equal or not", "=="),
    ('comm=="a', "column 7: a value is expected here", '"'),
    ("cgroup==/no/such", "column 9: there is no cgroup at this path", "/proc/PID/cgroup"),
    ("&&".join(["pid==1"] * 17), "more comparisons", "leave some out"),
    ('comm=="é" && pidd==1', "column 14: 'pidd' is no field", "did you mean pid"),
    ("\tpid\t==\tx", "column 9: a number is expected here", "0x"),
    ("cpu==-1", "column 6: a number is expected here", "0x"),
    ("cpu==-18446744073709551616", "column 6: a number is expected here", "0x"),
    ("pid==18446744073709551616", "column 6: the number has more than 64 bits", "18446744073709551615"),
    ('comm=="a\\"', "column 7: a value is expected here", '"'),
    ("(" * 40 + "pid==1", "nested too deeply", "fewer parentheses"),
])
def test_a_fault_in_the_condition_is_told_by_its_column(nhmtap, text, why, remedy):
    result = nhmtap("profile", "-e", "page-faults", "-c", "1", "--where", text, "--", "true")
    error = result.one("error")
    assert result.status == 1
    assert why in error["why"] and remedy in error["remedy"]


@pytest.mark.parametrize("command, field", [("stream", "latency"), ("stream", "source"), ("mem", "latency")])
def test_what_samples_of_software_never_have_is_refused(nhmtap, command, field):
    result = nhmtap(command, "-e", "page-faults", "-c", "1", "--where", f"{field}==0x10", "--", "true")
    assert result.status == 1 and f"samples of 'page-faults' have no {field}" in result.one("error")["why"]


def test_a_text_may_have_quotation_marks_and_backslashes(nhmtap, tmp_path):
    path = shutil.copy(program("pages"), tmp_path / 'a"b\\c')
    result = nhmtap.into(tmp_path / "out", "stream", "-e", "page-faults:u", "-c", "1", "--fields", "comm",
                         "--where", r'comm=="a\"b\\c"', "--", path, N)
    samples = result.of("sample")
    assert len(samples) >= N and {sample["comm"] for sample in samples} == {path.name}


def test_a_number_that_begins_with_zero_is_decimal(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "9", "--by", "pid",
                         "--where", "period<010", "--", program("pages"), N)
    samples = result.one("profile")["samples"]
    assert samples["aggregated"] and not samples.get("filtered")


def test_as_many_comparisons_as_fit_pass_the_verifier(nhmtap):
    text = "||".join(["comm==a"] * 7 + ["pid==1"] * 2)
    assert nhmtap("profile", "-e", "page-faults", "-c", "1", "-g", "--where", text, "--", "true").status == 0
