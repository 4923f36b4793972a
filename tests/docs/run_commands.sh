#!/usr/bin/env bash
# Runs the ```sh blocks of a document, in order, as one script that ends at the first command that fails. They run in a scratch folder
# that has configs/, docs/ and the .md files of the project, with `weft` on the PATH: the built program, except that `weft train` is cut
# to a few updates and a small held-out split, so that commands can stand in a document as a reader would type them.
# usage: run_commands.sh ROOT DOCUMENT.md WEFT
set -euo pipefail
root=$1 document=$2 weft=$3
scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft-docs.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
shopt -s nullglob
mkdir "$scratch/bin" "$scratch/work"
cp -r "$root/configs" "$root/docs" "$scratch/work"
for file in "$root"/*.md; do cp "$file" "$scratch/work"; done

cat >"$scratch/bin/weft" <<'SHIM'
#!/usr/bin/env bash
arguments=("$@")
if [ "${1:-}" = train ]; then
  for i in "${!arguments[@]}"; do
    # Of two lengths on the command line neither wins, so this one takes the place of the other.
    [[ ${arguments[i]} == train.epochs=* ]] && arguments[i]=train.steps=20
    if [[ ${arguments[i]} == *.toml ]] && grep -qs '^kind = "task"' "${arguments[i]}"; then arguments+=(--set data.valid_size=50); fi
  done
  arguments+=(--set train.steps=20)
fi
exec "$WEFT_OF_DOCS" "${arguments[@]}"
SHIM
chmod +x "$scratch/bin/weft"

awk '/^```/ { run = !inside && $0 == "```sh"; inside = !inside; next } run' "$document" >"$scratch/commands.sh"
cd "$scratch/work"
WEFT_OF_DOCS=$weft PATH="$scratch/bin:$PATH" bash -euxo pipefail "$scratch/commands.sh" </dev/null
