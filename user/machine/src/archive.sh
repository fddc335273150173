# SPDX-License-Identifier: GPL-2.0-only
# Debian's archive, for a script that has a folder $build of its own, and fail().

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" > "$build/apt.log" 2>&1 || { cat "$build/apt.log" >&2; return 1; }; }

# The first of this machine's package archives that carries Debian itself.
debian_archive() {
  apt-get indextargets --format '$(REPO_URI)|$(LABEL)|$(COMPONENT)' 'Created-By: Packages' |
    awk -F'|' '$2 == "Debian" && $3 == "main" { print $1; exit }'
}

# Runs COMMAND with apt options in "$@" that show apt only one suite of this machine's
# archive. They give apt folders of its own, so that the machine's lists do not change.
with_suite() { # SUITE deb|deb-src COMMAND
  suite=$1 kind=$2 command=$3
  uri=$(debian_archive)
  [ -n "$uri" ] || { apt_get update; uri=$(debian_archive); }
  [ -n "$uri" ] || fail "apt knows no Debian archive"
  a=$build/apt
  rm -rf "$a"
  mkdir -p "$a/lists/partial" "$a/cache/archives/partial"
  echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main" > "$a/sources.list"
  set -- -o Dir::Etc::sourcelist="$a/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$a/lists" -o Dir::Cache="$a/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none
  apt_get "$@" update
  $command "$@"
  rm -rf "$a"
}
