#!/usr/bin/env bash
# Makes the virtual environment .venv with everything Genesis Studio needs. Safe to run again: done work is skipped.
#   packaging/setup.sh          what users need
#   packaging/setup.sh --dev    and what tests, linters and benchmarks need
set -euo pipefail
cd "$(dirname "$0")/.."

extra=""
[ "${1:-}" = "--dev" ] && extra="[dev]"
venv=.venv
stamp="$venv/.setup${extra:+-dev}"

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

fingerprint() { cat packaging/setup.sh packaging/apt-packages.txt pyproject.toml | cksum; }
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ] && [ -x "$venv/bin/python" ]; then
    exit 0
fi

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.12 python3.11 python3.13 python3; do
        [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "no Python 3.11, 3.12 or 3.13 found. Install one (Debian: apt-get install python3) or name it: PYTHON=/path/to/python make setup"
}

system_packages() {
    # Debian and Ubuntu only; elsewhere the user's own package manager is asked for the same libraries.
    if ! command -v dpkg-query >/dev/null 2>&1; then
        [ "$(uname -s)" = Linux ] && say "not a Debian/Ubuntu system: please see to the libraries listed in packaging/apt-packages.txt"
        return 0
    fi
    local wanted missing=()
    mapfile -t wanted < <(grep -v '^#' packaging/apt-packages.txt)
    "$python" -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3-venv)
    local package
    for package in "${wanted[@]}"; do
        # Ubuntu 24.04 renamed some libraries with the suffix t64.
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' && continue
        dpkg-query -W -f='${Status}' "${package}t64" 2>/dev/null | grep -q 'ok installed' && continue
        missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
            root=(sudo -n)
        else
            say "these system packages are missing and this user may not install them:"
            printf '    sudo apt-get install -y --no-install-recommends %s\n' "${missing[*]}"
            say "going on; what needs them will say so"
            return 0
        fi
    fi
    say "installing ${#missing[@]} system packages: ${missing[*]}"
    local -a run=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
    "${run[@]}" update -qq || say "apt-get update failed; trying with the package lists at hand"
    "${run[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null \
        || fail "apt-get could not install: ${missing[*]}"
}

has_nvidia() { [ -e /proc/driver/nvidia/version ] || command -v nvidia-smi >/dev/null 2>&1; }

install_torch() {
    "$venv/bin/python" -c 'import torch' 2>/dev/null && return 0
    local version=2.13.0
    if has_nvidia || [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
        say "installing torch"
        pip_install "torch>=2.9,<3"
        return
    fi
    # Plain `pip install torch` would take the CUDA build, gigabytes that are no use here. Where pip's own sources
    # hold a CPU build of this version it is taken, else it comes from PyTorch's index of CPU builds.
    say "installing torch (CPU build: no NVIDIA GPU found)"
    if "$venv/bin/pip" install -q --dry-run --no-deps --ignore-installed --report - "torch==$version" 2>/dev/null \
        | grep -q '"version": "[^"]*+cpu"'; then
        pip_install "torch==$version"
    else
        pip_install "torch==$version" --index-url "${GENESIS_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"
    fi
}

pip_install() {
    "$venv/bin/pip" install -qq --disable-pip-version-check "$@" \
        || fail "pip could not install: $* (see the lines above; the network or the package index may be out of reach)"
}

python=$(find_python)
system_packages
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "could not make $venv with $python (Debian: apt-get install python3-venv)"
fi
install_torch
say "installing Genesis Studio${extra:+ with its development tools} and its packages (a few minutes the first time)"
pip_install -e ".$extra"
fingerprint >"$stamp"
say "set-up complete"
