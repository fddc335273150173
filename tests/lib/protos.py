# SPDX-License-Identifier: GPL-2.0-only
"""Makes classes of protobuf messages from the text of a .proto file."""
import functools
import importlib
import os
import subprocess
import sys
import tempfile


@functools.cache
def message(name, fields):
    """Returns the class of this message. fields: the text of the .proto file."""
    folder, module = tempfile.mkdtemp(), name.lower()
    # All files of a process share one space of names, and several have messages of the same name.
    fields = fields.replace(";", f"; package {module};", 1)
    with open(os.path.join(folder, f"{module}.proto"), "w", encoding="ascii") as file:
        file.write(fields)
    subprocess.run(["protoc", f"--python_out={folder}", f"-I{folder}", f"{module}.proto"], check=True)
    sys.path.insert(0, folder)
    return getattr(importlib.import_module(f"{module}_pb2"), name)
