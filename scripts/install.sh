#!/usr/bin/env bash
# Installs into the virtual environment $1 what the other arguments name, in the versions of requirements.lock.
#
# uv does it, in half of pip's time; pip brings uv. uv reads no settings of pip. So pip does it where its
# settings name an index or a proxy, and where uv fails.
set -euo pipefail
exec >&2 </dev/null

venv=$1
shift
pip=("$venv/bin/python" -m pip)
pip_install=("${pip[@]}" install --quiet --disable-pip-version-check -c requirements.lock)
of_pip_alone='\.(index-url|extra-index-url|no-index|proxy|client-cert|trusted-host)='

by_uv() {
    # Not grep -q, which ends before pip has written all, so that pip fails.
    if "${pip[@]}" config list | grep -E "$of_pip_alone" >/dev/null; then
        return 1
    fi
    "${pip_install[@]}" uv &&
        "$venv/bin/uv" pip install --quiet --system-certs --python "$venv/bin/python" -c requirements.lock "$@" &&
        return
    echo "uv cannot install it; pip will"
    return 1
}

by_uv "$@" || "${pip_install[@]}" "$@"
