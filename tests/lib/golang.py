# SPDX-License-Identifier: GPL-2.0-only
"""A Go program whose calls are known: from main through above() and between() to bottom(), which has no frame and
takes nearly all of the time."""
import os
import subprocess

SOURCE = """
package main

import (
	"os"
	"strconv"
)

var kept uint64

//go:noinline
func bottom(seed uint64) uint64 {
	for i := uint64(0); i < 300; i++ {
		seed = seed*6364136223846793005 + i
	}
	return seed
}

//go:noinline
func between(seed uint64) uint64 {
	return bottom(seed) + 1
}

//go:noinline
func above(rounds int) {
	for i := 0; i < rounds; i++ {
		kept = between(kept)
	}
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	above(rounds)
}
"""

# Outermost first, as Go's own tracebacks have them.
CHAIN = ("runtime.goexit", "runtime.main", "main.main", "main.above", "main.between", "main.bottom")


# What Go compiles of its library is shared by all tests: for some flags, that is all of it.
CACHE = os.path.join(os.environ["NHMTAP_BUILD"], "go-cache")


def build(folder, *flags, source=SOURCE):
    """Builds a program and returns its path."""
    (folder / "known.go").write_text(source)
    subprocess.run(["go", "build", *flags, "-o", "known", "known.go"], cwd=folder, check=True,
                   env={**os.environ, "GOCACHE": os.path.abspath(CACHE), "GOFLAGS": "", "GO111MODULE": "off"})
    return str(folder / "known")
