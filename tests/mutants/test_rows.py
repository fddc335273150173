# SPDX-License-Identifier: GPL-2.0-only
"""The faults of `make mutants` concern the program as it is now."""
import mutation
import rows
import trees


def test_each_fault_still_fits_its_file_and_its_test():
    assert mutation.misfits(rows.MUTANTS, trees.ROOT) == []
