#pragma once

// What tests of layers have in common.

#include <gtest/gtest.h>

#include "runnel/keras/layer_of.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/tensors.h"

namespace runnel::test {

// The call inside a traced function that knows nothing of the batch, at this input.
template <class L>
Tensor traced_call(L& layer, const Tensor& x, const keras::CallArgs& args = {}) {
  Dims dims = x.shape().dims();
  dims[0] = kUnknownDim;
  const auto f = function([&](const Tensor& t) -> Tensor { return layer(t, args); },
                          {.input_signature = {TensorSpec{PartialShape(dims), x.dtype(), ""}}});
  return f(x);
}

// The call gives the expected values, eagerly and traced.
template <class L>
void expect_output(L& layer, const Tensor& x, const std::vector<double>& expected, const Shape& shape,
                   const keras::CallArgs& args = {}, double tolerance = 1e-6) {
  {
    SCOPED_TRACE("eager");
    expect_close(layer(x, args), expected, shape, tolerance);
  }
  SCOPED_TRACE("traced");
  expect_close(traced_call(layer, x, args), expected, shape, tolerance);
}

// The configuration reads as `json` after name, trainable and dtype, and makes a layer that has the same one.
template <class L>
void expect_config(const L& layer, const std::string& json) {
  const keras::Config config = layer.get_config();
  keras::Config::Map own;
  for (const auto& [key, value] : config.entries()) {
    if (key != "name" && key != "trainable" && key != "dtype") own.emplace_back(key, value);
  }
  EXPECT_EQ(keras::Config(own).to_json(), json);
  EXPECT_EQ(L::from_config(keras::Config::from_json(config.to_json()))->get_config(), config);
}

}  // namespace runnel::test
