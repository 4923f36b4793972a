// An executable, as the test programs are, since position-independent executables and libraries do not share precompiled headers.
int main() {}
