# SPDX-License-Identifier: GPL-2.0-only
"""OpenTelemetry's profiles of hardware events, precise loads and branch records, by classes made from the published fields."""
import otlp_profiles
import pytest
import records

COMMANDS = {"profile": "-e MEM_INST_RETIRED.LOADS:u,instructions:u --by stack,comm,pid", "mem": "--ldlat 3 --side u --by stack,source",
            "branch": "--filter any,u --by stack,symbol,comm"}
WAYS = {"period": "-c 1009", "frequency": "-F 4000 -I 10", "share": "-c 1009 --cpu-share 10% -I 10"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS)
def test_each_interval_of_samples_has_what_its_records_have(guest, tmp_path, command, way):
    """Sums by all keys, a branch's two ends among them; periods, times, and what was lost."""
    guest.say(f"/opt/nhmtap {command} {COMMANDS[command]} {WAYS[way]} -o json=x.jsonl -o otlp-profiles-json=x.json -- uneven", paranoid=-1)
    with guest.guest.fetch("x.jsonl", "x.json") as tar:
        tar.extractall(tmp_path)
    found = records.parse((tmp_path / "tmp/x.jsonl").read_text())
    messages = [otlp_profiles.read(line) for line in (tmp_path / "tmp/x.json").read_text().splitlines()]
    wanted = otlp_profiles.of_records(found)
    assert otlp_profiles.of_messages(messages) == wanted
    assert sum(profile["sums"].total() for profile in wanted.values()) > 100
    ends = {dict(keys).get("nhmtap.to_symbol") for profile in wanted.values() for keys in profile["sums"]}
    assert {"thick", "thin"} <= ends or command != "branch"
    assert all(found[0]["resource"].items() <= message.resource.items() for message in messages)
