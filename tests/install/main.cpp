#include <iostream>

#include "runnel/runnel.h"

int main() { std::cout << runnel::Tensor{1.f, 2.f} + 1 << "\n"; }
