// The `weft` program with the layers that are linked in beside it.
#include "tools/program.h"

int main(int argc, char** argv) { return weft::ProgramMain(argc, argv); }
