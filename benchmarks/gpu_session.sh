#!/bin/bash
# Tests, rates and the epoch's tail on a machine with a GPU, a part after another, each with a limit of time:
#
#   benchmarks/gpu_session.sh [tests] [groups] [rates] [fused] [sweeps] [tail]      without words: tests, tail, rates
#
# Without words it takes nine minutes at most; TESTS_LIMIT, RATES_LIMIT, GROUPS_LIMIT and SWEEPS_LIMIT are seconds for
# those parts; `sweeps` takes sweeps apart, those of SWEEPS ("linear 256 lenets 1000"). The last
# lines are a summary; whole outputs lie in $OUT. Packages that the machine lacks (pytest, pydantic,
# timm) are taken from build/gpu-packages, which `benchmarks/gpu_session.sh pack` fills where there is a network.
cd "$(dirname "$0")/.." || exit 1
if [ "$1" = pack ]; then
    exec "${PYTHON:-python3}" -m pip install --quiet --upgrade --target build/gpu-packages --no-deps \
        --python-version "${FOR:-3.12}" --only-binary=:all: \
        click pydantic pydantic_core annotated_types typing_inspection pyyaml pytest pluggy iniconfig \
        packaging pygments pytest-xdist execnet timm
fi
python="${PYTHON:-python3}" out="${OUT:-build/gpu-session}"
mkdir -p "$out"
# what the machine has comes first: a package of ours must not hide its own
export PYTHONPATH="$PWD/src:$PWD/tests" PACKED="$PWD/build/gpu-packages"
site="$out/site" && mkdir -p "$site"
printf 'import os, sys\nsys.path.append(os.environ["PACKED"])\n' > "$site/sitecustomize.py"
export PYTHONPATH="$PYTHONPATH:$PWD/$site"
case "$site" in /*) export PYTHONPATH="$PWD/src:$PWD/tests:$site" ;; esac
export TORCHINDUCTOR_CACHE_DIR="${TORCHINDUCTOR_CACHE_DIR:-/tmp/inductor}"

part() { # name, seconds, command…
    local name=$1 limit=$2
    shift 2
    local began=$SECONDS
    timeout -k 10 "$limit" "$@" > "$out/$name.txt" 2>&1
    echo "$name: exit $?, $((SECONDS - began)) s" >> "$out/parts.txt"
}

: > "$out/parts.txt"
for word in ${*:-tests tail rates}; do
    case $word in
    tests) part tests "${TESTS_LIMIT:-200}" "$python" -m pytest -q -p no:cacheprovider --noconftest -o addopts= -n "${WORKERS:-6}" -rA \
        tests/real/test_gpu_steps.py tests/real/test_gpu_checkpoints.py tests/real/test_gpu_groups.py tests/unit/train/test_graph.py ;;
    tail) part tail 40 "$python" benchmarks/epoch_tail.py ;;
    rates) part rates "${RATES_LIMIT:-290}" "$python" benchmarks/run.py rate ;;
    fused) part fused 240 "$python" benchmarks/run.py fused ;;
    groups) part groups "${GROUPS_LIMIT:-90}" "$python" -m pytest -q -p no:cacheprovider --noconftest -o addopts= -n "${WORKERS:-6}" -rA \
        tests/real/test_gpu_groups.py ;;
    # shellcheck disable=SC2086
    sweeps) part sweeps "${SWEEPS_LIMIT:-200}" "$python" benchmarks/swept.py ${SWEEPS:-linear 256 lenets 256 linear 1000 lenets 1000} ;;
    *) echo "no part named $word" >&2 && exit 2 ;;
    esac
done
echo "=== summary"
for name in tests groups rates fused sweeps tail; do
    [ -f "$out/$name.txt" ] || continue
    case $name in
    tests | groups) grep -E "^(FAILED|ERROR)|^E  |reserved:|under the cap:|passed|failed" "$out/$name.txt" | cut -c1-300 | tail -60 ;;
    sweeps) grep -E "^swept:|Error" "$out/sweeps.txt" | cut -c1-600 ;;
    rates | fused) grep -E "^rate:|^bench_|^\||Error|error" "$out/$name.txt" | cut -c1-300 ;;
    tail) grep -E "^tail:|Error" "$out/tail.txt" ;;
    esac
done
cat "$out/parts.txt"
