// The handbook's TensorArray: filled and read inside a function.
#include <iostream>
#include <tuple>

#include "runnel/runnel.h"

using namespace runnel;

int main() {
  auto array_write_and_read = function([] {
    TensorArray arr(float32, 3);
    arr = arr.write(0, constant(0.0));
    arr = arr.write(1, constant(1.0));
    arr = arr.write(2, constant(2.0));
    const Tensor arr_0 = arr.read(0);
    const Tensor arr_1 = arr.read(1);
    const Tensor arr_2 = arr.read(2);
    return std::tuple{arr_0, arr_1, arr_2};
  });

  const auto [a, b, c] = array_write_and_read();
  std::cout << a << " " << b << " " << c << "\n";
}
