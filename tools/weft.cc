#include "tools/program.h"

int main(int argc, char** argv) { return weft::ProgramMain(argc, argv); }
