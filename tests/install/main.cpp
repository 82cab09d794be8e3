#include <cstdio>

#include "runnel/base/version.h"

int main() { return std::printf("runnel %s\n", runnel::version()) > 0 ? 0 : 1; }
