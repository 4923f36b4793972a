#!/usr/bin/env bash
# Fails where a document says of the project what is not so: a block quoted from a file that is not there word for word, a link or a
# file name in backticks that does not exist.
# usage: check_references.sh ROOT DOCUMENT.md
set -euo pipefail
root=$1 document=$2
folder=$(dirname "$document")
awk -v root="$root" '
  function slurp(path,   text, line, status) {
    text = "\n"
    while ((status = (getline line < path)) > 0) text = text line "\n"
    close(path)
    return status < 0 ? "" : text
  }
  /^```/ && !inside {
    inside = 1; path = ""; block = ""; start = NR
    if ($2 ~ /[.\/]/) path = root "/" $2
    next
  }
  /^```/ && inside {
    inside = 0
    if (path == "") next
    ++quotes
    if (block == "" || index(slurp(path), "\n" block) == 0) {
      printf "%s:%d: this block is not in %s word for word\n", FILENAME, start, path
      bad = 1
    }
    next
  }
  inside { block = block $0 "\n" }
  END { printf "%d quotations\n", quotes; exit bad }' "$document" || exit 1

bad=0
# Outside of blocks: [text](path), and `folder/file.ext`.
text=$(awk '/^```/ { inside = !inside; next } !inside' "$document")
while IFS= read -r link; do
  [[ -z $link || $link == http* || $link == '#'* ]] && continue
  [ -e "$folder/${link%%#*}" ] || { echo "$document: a link to $link, which does not exist"; bad=1; }
done < <(grep -o '](\([^)]*\))' <<<"$text" | sed 's/^](//; s/)$//')
while IFS= read -r file; do
  [[ -z $file || -e $root/$file ]] || { echo "$document: names $file, which does not exist"; bad=1; }
done < <(grep -oE '`(autograd|layers|data|train|tools|configs|tests|docs|cmake)/[A-Za-z0-9_./-]*`' <<<"$text" | tr -d '`' | sort -u)
exit $bad
