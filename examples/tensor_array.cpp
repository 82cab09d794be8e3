// A TensorArray filled step by step, then read.
#include <iostream>

#include "runnel/runnel.h"

int main() {
  runnel::TensorArray arr(runnel::float32, 3);
  for (int i = 0; i < 3; ++i) arr = arr.write(i, static_cast<float>(i));
  std::cout << arr.read(0) << ' ' << arr.read(1) << ' ' << arr.read(2) << '\n';
}
