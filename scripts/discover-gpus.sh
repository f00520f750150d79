#!/bin/sh
# Prints the GPUs of this machine as Spark wants to hear it from a discovery script:
#
#     {"name": "gpu", "addresses": ["0", "1"]}
#
# For spark.worker.resource.gpu.discoveryScript (standalone) and
# spark.executor.resource.gpu.discoveryScript (YARN, Kubernetes); see docs/gpu-cluster.md.
# Addresses are the numbers that nvidia-smi gives the GPUs. Says what is wrong and exits 1 without any.
set -u

fail() {
    echo "discover-gpus: $*" >&2
    exit 1
}

command -v nvidia-smi >/dev/null 2>&1 ||
    fail "no nvidia-smi on PATH: this machine has no NVIDIA driver, or the container does not see it"
# Its warnings, on stderr, are for the log; with 14 it warns of an infoROM, and lists the GPUs all the same.
listed=$(nvidia-smi --query-gpu=index --format=csv,noheader) || [ $? -eq 14 ] ||
    fail "nvidia-smi failed: $listed"

addresses=
IFS=$(printf ' \t\n\r')
for index in $listed; do
    case $index in
    *[!0-9]*) fail "nvidia-smi named no GPUs: $listed" ;;
    esac
    addresses="$addresses${addresses:+, }\"$index\""
done
[ -n "$addresses" ] || fail "nvidia-smi names no GPU on this machine"
printf '{"name": "gpu", "addresses": [%s]}\n' "$addresses"
