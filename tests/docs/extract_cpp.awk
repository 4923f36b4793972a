# Makes one GoogleTest source, `out`, of the C++ blocks of a document: see CMakeLists.txt. Compiler messages point into the document.
BEGIN { print "#include <gtest/gtest.h>\n" > out }
/^```/ && !inside {
  inside = 1
  kind = $0 == "```cpp" ? "test" : $0 == "```cpp top" ? "top" : ""
  if (kind == "test") {
    ++blocks
    printf "\nTEST(%s, Line%d) {\n", suite, NR + 1 > out
  }
  if (kind != "") printf "#line %d \"%s\"\n", NR + 1, FILENAME > out
  next
}
/^```/ && inside {
  if (kind == "test") print "}" > out
  inside = 0
  kind = ""
  next
}
inside && kind != "" { print > out }
END {
  if (inside || blocks == 0) {
    print FILENAME ": " (inside ? "the last block is not closed" : "has no C++ block") > "/dev/stderr"
    exit 1
  }
}
