#!/usr/bin/env bash
# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Sets a checkout up: system packages, Python, the virtual environments, Go. Safe to repeat; a second run only looks.
# setup.sh quick: what `make lint` and `make test-quick` need.  setup.sh full: that, and what the lab needs.
# The only line on standard output is the Python of the virtual environment; it lies in the cache, beside everything else that is built.

set -euo pipefail

readonly level=${1:-full}
case $level in
    quick | full) ;;
    *) echo "setup.sh: the level is quick or full, not $level" >&2 && exit 2 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
readonly cache=${GPUNODE_CACHE:-$HOME/.cache/gpunode-hygiene}
readonly begun=$SECONDS
readonly log=$cache/setup.log

say() { printf '[%4ds] %s\n' "$((SECONDS - begun))" "$*" >&2; }

# What was seen, why it stops, what to do.
stop() {
    say "STOP: $1"
    say "      $2"
    say "      $3"
    exit 1
}

warn() { say "WARNING: $1"; say "         $2"; }

package_names() { sed 's/#.*//' "$@" | awk 'NF {print $1}' | sort -u; }

missing_packages() {
    local installed
    # shellcheck disable=SC2016  # the format is dpkg-query's
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | awk '$1 == "ii" || $1 == "hi" {print $2}' | sort -u)
    comm -23 <(package_names "$@") <(printf '%s\n' "$installed")
}

# Services that a package brings would listen on the machine; the tests start their own on loopback.
# Until the installation ends policy-rc.d refuses every start, and afterwards the units that came are disabled.
install_packages() {
    local packages=("$@") policy=/usr/sbin/policy-rc.d units_before unit
    units_before=$(unit_files)
    if [ ! -e "$policy" ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' > "$policy"
        chmod 755 "$policy"
    fi
    apt_install "${packages[@]}" || { apt-get update >> "$log" 2>&1 && apt_install "${packages[@]}"; } \
        || stop "apt-get could not install: ${packages[*]}" "$(tail -n 1 "$log")" "See $log, put apt right, and run the same command again."
    if [ "$(trap -p EXIT)" ]; then
        rm -f "$policy"
        trap - EXIT
    fi
    command -v systemctl > /dev/null || return 0  # no systemd, so no unit starts
    for unit in $(comm -13 <(printf '%s\n' "$units_before") <(unit_files)); do
        systemctl disable "$unit" >> "$log" 2>&1 || stop "systemctl could not disable $unit" "It came with the packages and would start with the machine." "See $log."
    done
}

apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@" < /dev/null >> "$log" 2>&1; }

# Units and, for packages that bring no unit, init scripts.
unit_files() { find /lib/systemd/system /etc/init.d -maxdepth 1 \( -path '*/init.d/*' -printf '%f.service\n' -o -name '*.service' ! -name '*@*' -printf '%f\n' \) | sort -u; }

system_packages() {
    local lists=("$root/tests/tools/packages.txt") missing
    [ "$level" = full ] && lists+=("$root/tests/lab/packages.txt")
    command -v dpkg-query > /dev/null || stop "This machine has no dpkg." "The set-up knows Debian and Ubuntu only." \
        "Use Debian 12 or Ubuntu 22.04 and later; the packages needed are in ${lists[*]}."
    missing=$(missing_packages "${lists[@]}")
    [ -z "$missing" ] && return
    missing=$(paste -s -d ' ' <<< "$missing")
    [ "$(id -u)" = 0 ] || stop "These system packages are missing: $missing" "Installing them takes root, and this is uid $(id -u)." \
        "Run 'sudo apt-get install $missing', then the same command again. $(still_runs)"
    say "system packages: installing $missing (about 1 to 3 minutes; log: $log)"
    # shellcheck disable=SC2086  # one word per package
    install_packages $missing
    say "system packages: done"
}

still_runs() {
    if [ "$level" = full ] && [ -z "$(missing_packages "$root/tests/tools/packages.txt")" ]; then
        echo "What still runs without them: 'make lint' and 'make test-quick'. The lab, 'make test' and 'make demo' do not."
    else
        echo "Nothing of the tests runs without them."
    fi
}

# Prints the first interpreter of the given minor versions (3.13, 3.12, …) that can make virtual environments.
find_python() {
    local minor candidate
    for minor in "$@"; do
        for candidate in "$(command -v "python$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$minor".*/bin/python3 \
            "$cache"/python/cpython-"$minor".*/bin/python3; do
            if [ -x "$candidate" ] && "$candidate" -c "import ensurepip, ssl, sys, venv; sys.exit(sys.version_info[:2] != (${minor/./, }))" 2> /dev/null; then
                echo "$candidate"
                return
            fi
        done
    done
    return 1
}

# Debian 12 has no Python that ansible-core 2.21 runs on; PyPI's uv brings one.
python_by_uv() {
    local uv=$cache/uv/bin/uv
    say "Python $1: none is installed; fetching it with uv (about 1 minute)"
    [ -x "$uv" ] || { python3 -m venv --clear "$cache/uv" && "$cache/uv/bin/pip" install --quiet uv; } >> "$log" 2>&1 || return 1
    UV_PYTHON_INSTALL_DIR=$cache/python "$uv" python install --no-bin "$1" >> "$log" 2>&1
}

# The folder of a virtual environment; tests/tools/environments.py finds it by the same rule.
environment_folder() { echo "$cache/venv/$1-$(sha256sum "$root/tests/requirements/$1.txt" | cut -c 1-16)"; }

# environment NAME PYTHON-MINOR...: a virtual environment with the locked versions of tests/requirements/NAME.txt.
environment() {
    local name=$1 lock=$root/tests/requirements/$1.txt folder python
    folder=$(environment_folder "$name")
    shift
    [ -e "$folder/complete" ] && return
    python=$(find_python "$@") || { python_by_uv "$1" && python=$(find_python "$@"); } || return 1
    say "virtual environment $name: installing $(grep -c '==' "$lock") locked packages with $("$python" --version) (about 1 minute)"
    "$python" -m venv --clear "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$lock" >> "$log" 2>&1 \
        || stop "pip could not install $lock: $(tail -n 1 "$log")" "The tests run with the locked versions only." \
            "See $log; make PyPI, or the index that pip is configured for, reachable, and run the same command again."
    touch "$folder/complete"
    say "virtual environment $name: done"
}

virtual_environments() {
    environment dev 3.13 3.12 3.14 || stop "There is no Python 3.12 or later, and uv could not fetch one: $(tail -n 1 "$log")" \
        "ansible-core 2.21 does not run on an older one." "Install python3.13 (pyenv, or your distribution), and run the same command again."
    if [ "$level" = full ]; then
        environment core218 3.13 3.12 || warn "There is no Python that ansible-core 2.18 runs on, and uv could not fetch one." \
            "The part core218 of the tests will fail. Install python3.13 (pyenv)."
    fi
    environment host-py39 3.9 || warn "There is no Python 3.9, and uv could not fetch one: $(tail -n 1 "$log")" \
        "Host code cannot be tested on the oldest Python that it supports: the part host-py39 of the tests will fail. Install python3.9 (pyenv)."
}

go_toolchain() {
    PYTHONPATH=$root/tests/lab "$(environment_folder dev)/bin/python" -c "
from gpunode_lab import cache, gotool, progress
gotool.find_go(progress.Progress(cache.cache_root() / 'durations.json'))
"
}

mkdir -p "$cache"
exec 9> "$cache/setup.lock"
flock 9
: > "$log"
system_packages
virtual_environments
if [ "$level" = full ]; then go_toolchain; fi
say "set-up: complete"
echo "$(environment_folder dev)/bin/python"
