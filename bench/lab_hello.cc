// The least a program can cost to start; linked statically (cmake/BelayBench.cmake).

#include <unistd.h>

int main() { return write(1, "hello\n", 6) == 6 ? 0 : 1; }
