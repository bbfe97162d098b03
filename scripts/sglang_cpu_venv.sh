#!/usr/bin/env bash
# Makes a virtual environment in which a real SGLang serves on the CPU, and prints its interpreter:
#
#     SGLANG_CPU_PYTHON=$(scripts/sglang_cpu_venv.sh [FOLDER]) pytest -m sglang
#
# FOLDER (build/sglang-cpu by default) takes 2.7 GB and is left as it is once it is complete.
# Where the index offers torch for CUDA only, name one with CPU builds in PIP_EXTRA_INDEX_URL.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/sglang-cpu}
lock=scripts/sglang_cpu.lock

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
exec 9>"$folder.lock"
flock 9

if ! cmp -s "$lock" "$folder/installed.lock"; then
    {
        python3 -m venv --clear "$folder"
        # torch with its dependencies: a build for CUDA does not import without its libraries.
        "$folder/bin/pip" install -q --disable-pip-version-check -c "$lock" "$(grep '^torch==' "$lock")"
        "$folder/bin/pip" install -q --disable-pip-version-check --no-deps -r "$lock"
        cp "$lock" "$folder/installed.lock"
    } >&2
fi
echo "$folder/bin/python"
