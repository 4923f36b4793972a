#!/usr/bin/env bash
# Installs a build of Weft into a temporary prefix, builds this project against it as any user would, and runs what it made.
# usage: run.sh CMAKE BUILD_DIR BUILD_TYPE GENERATOR CXX [CXX_LAUNCHER]
set -euo pipefail
cmake=$1 build=$2 type=$3 generator=$4 cxx=$5 launcher=${6:-}
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/weft-consumer.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
# What the command prints must have the text.
expect() {
  local text=$1 output
  shift
  echo "== $*"
  output=$("$@") || fail "exit code $? of: $*"
  head -40 <<<"$output"
  grep -qF -- "$text" <<<"$output" || fail "no \"$text\" in the output of: $*"
}

"$cmake" --install "$build" --config "$type" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; fail install; }
[ -x "$work/prefix/bin/weft" ] || fail "no program bin/weft in the package"

# Away from the source tree, so that nothing but the package can be found.
mkdir "$work/project"
cp "$source"/*.cc "$source"/*.h "$source"/CMakeLists.txt "$source"/gate.toml "$work/project"
cd "$work/project"
"$cmake" -S . -B build -G "$generator" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$work/project/bin"
"$cmake" --build build --config "$type" --parallel 2
bin=$work/project/bin
[ -x "$bin/my_weft" ] || bin=$bin/$type  # generators of several configurations add a folder

expect "1 checks, 0 failed" "$bin/my_weft" gradcheck silu_gate
expect "1 checks, 0 failed" "$bin/my_weft" gradcheck gated_feed_forward
expect "gated_feed_forward: " "$bin/my_weft" layers
expect "0 failed" "$bin/my_weft" gradcheck --config gate.toml
echo "== my_weft train gate.toml"
"$bin/my_weft" train gate.toml --set run.dir=run --quiet
expect "decoder.0.gated_feed_forward.gate.weight" "$bin/my_weft" inspect run
expect "examples     100" "$bin/my_weft" eval run
loss=$("$bin/my_weft" eval run --json | sed 's/.*"loss":\([0-9.e-]*\),.*/\1/')
awk -v loss="$loss" 'BEGIN { exit !(loss + 0 > 0 && loss < 1) }' || fail "the held-out loss is $loss after training, expected below 1"
expect "text" "$bin/my_weft" generate run --prompt weft --json
expect "last loss" "$bin/own_loop"

# The program of the package does not know the layer, and says so.
if "$work/prefix/bin/weft" eval run >"$work/eval.log" 2>&1; then fail "weft without the layer read its checkpoint"; fi
grep -q gated_feed_forward "$work/eval.log" || { cat "$work/eval.log"; fail "the error does not name the missing layer"; }
echo "consumer: all passed"
