// Owns the tests' precompiled headers. An executable as they are: libraries are compiled with other flags (-fPIC, not -fPIE).
int main() {}
