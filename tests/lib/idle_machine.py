# SPDX-License-Identifier: GPL-2.0-only
"""The folder of an emulated machine that looks as if it was built, with a driver that starts none."""

# It shows how it was called.
DRIVER = """#!/bin/sh
printf '%s\\n' "$NHM_BUILD" "$PWD" "$@"
exit {status}
"""
BUILT = ["nhm-bochs", "nhm-restore", "here", "base.cpio", "apart.cpio", "boot.rom", "BIOS-bochs-latest", "vgabios-stdvga.bin"]


def idle_machine(folder, status):
    """Makes the folder, for $NHMTAP_MACHINE. The driver ends with that status."""
    built = folder / "built"
    (built / "kernel" / "6.1").mkdir(parents=True)
    (built / "kernel" / "6.1" / "boot.json").write_text("{}")
    (built / "kernel" / "unfinished").mkdir()
    for path, text in ((folder / "run", DRIVER.format(status=status)), *((built / name, "") for name in BUILT)):
        path.write_text(text)
        path.chmod(0o755)
    return folder
