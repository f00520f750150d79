#!/usr/bin/env bash
# Makes a virtual environment in the folder $1, unless a working one is there. Messages go to stderr.
#
# Takes the first Python of at least 3.11 among python3.13, python3.12, python3.11 and python3. Where
# Debian's Python comes without its venv module, installs that with apt-get or says how to.
set -euo pipefail
exec >&2 </dev/null

venv=$1
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

makes_venvs() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

if new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

pythons=()
for name in python3.13 python3.12 python3.11 python3; do
    path=$(command -v "$name") && new_enough "$path" && pythons+=("$path")
done
if [ ${#pythons[@]} -eq 0 ]; then
    echo "Coincide needs Python 3.11 or later. Looked for python3.13, python3.12, python3.11 and" \
        "python3 on PATH; found: $(python3 --version 2>&1 || true)"
    exit 1
fi

python=
for path in "${pythons[@]}"; do
    if makes_venvs "$path"; then
        python=$path
        break
    fi
done
if [ -z "$python" ]; then
    python=${pythons[0]}
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if ! "$scripts/apt-install.sh" "python$version-venv" python3-venv || ! makes_venvs "$python"; then
        echo "$python lacks the venv module. On Debian or Ubuntu: sudo apt-get install python$version-venv"
        exit 1
    fi
fi

echo "Making $venv with $python ($("$python" --version 2>&1))"
"$python" -m venv --clear "$venv"
