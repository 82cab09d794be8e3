#include <iostream>

#include "runnel/runnel.h"

void settings();

int main() {
  settings();
  std::cout << runnel::Tensor{1.f, 2.f} + 1 << "\n";
}
