#!/usr/bin/env bash
# Installs the first of the named Debian packages that can be had. Needs root or passwordless sudo.
# Says nothing on stdout; exits 1 where it cannot.
set -euo pipefail
exec >&2 </dev/null

command -v apt-get >/dev/null || exit 1

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || exit 1
    as_root=(sudo -n "${as_root[@]}")
fi

"${as_root[@]}" apt-get update -qq || true
for package in "$@"; do
    echo "Installing $package with apt-get"
    if "${as_root[@]}" apt-get install -qq -y --no-install-recommends "$package"; then
        exit 0
    fi
done
exit 1
