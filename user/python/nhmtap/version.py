# SPDX-License-Identifier: GPL-2.0-only
"""The version of the package. find() accepts programs of the same major version."""
__version__ = "0.1.0"
