// The `weft` program as a function, so that your own main can be three lines and your own layers and ops, linked in, are known
// by name:
//
//   #include "tools/program.h"
//   int main(int argc, char** argv) { return weft::ProgramMain(argc, argv); }
#ifndef WEFT_TOOLS_PROGRAM_H_
#define WEFT_TOOLS_PROGRAM_H_

namespace weft {

// Runs the verb of the command line. Results go to stdout, logs, progress and errors to stderr. Returns the exit code: 0 ok, 1
// run-time failure, 2 usage or config, 3 diverged, 130 after SIGINT, 143 after SIGTERM.
int ProgramMain(int argc, char** argv);

}  // namespace weft

#endif  // WEFT_TOOLS_PROGRAM_H_
