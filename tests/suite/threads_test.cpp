// The same bits with one thread and with two; elementwise ops on empty and on large tensors.
#include "runnel/base/error.h"
#include "runnel/base/parallel.h"
#include "runnel/tensor/type_sets.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

class ThreadCount {
 public:
  ~ThreadCount() { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

bool is_deterministic(const OpDef& op) { return !op.stateful; }

// Is the op of this sample elementwise over all its inputs, apart from those the host reads?
bool elementwise_inputs(const Case& c, const std::vector<Tensor>& inputs) {
  if (!c.op->elementwise || inputs.empty()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (input_spec(*c.op, inputs, i).host_memory || inputs[i].num_elements() == 0) return false;
  }
  return true;
}

// The elements of `t` broadcast to `shape`, again and again until there are `n`.
Tensor repeated(const Tensor& t, const Shape& shape, int64_t n) {
  Dims stride(static_cast<size_t>(shape.rank()), 0);
  int64_t s = 1;
  for (int k = t.rank() - 1; k >= 0; --k) {
    stride[static_cast<size_t>(shape.rank() - t.rank() + k)] = t.shape()[k] == 1 ? 0 : s;
    s *= t.shape()[k];
  }
  Tensor out = Tensor::empty(t.dtype(), Shape{n});
  data_types.for_each([&]<class T>() {
    if (dtype_of<T> != t.dtype()) return;
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i % shape.num_elements();
      int64_t from = 0;
      for (int k = shape.rank() - 1; k >= 0; --k) {
        from += rest % shape[k] * stride[static_cast<size_t>(k)];
        rest /= shape[k];
      }
      out.mutable_data<T>()[i] = t.data<T>()[from];
    }
  });
  return out;
}

void expect_same_bits(const Case& c, const std::vector<Tensor>& inputs, std::vector<Tensor>* result = nullptr) {
  ThreadCount restore;
  set_num_threads(1);
  const std::vector<Tensor> one = run(*c.op, inputs, c.attrs());
  set_num_threads(2);
  const std::vector<Tensor> two = run(*c.op, inputs, c.attrs());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(same_bits(one[i], two[i]))
        << c.name() << " on " << describe(inputs) << ", output " << i
        << " differs between one and two threads: " << difference(two[i], one[i], 0, 0);
  }
  if (result) *result = one;
}

}  // namespace

void check_same_bits(const Case& c) {
  if (!c.sample().error.empty() || !is_deterministic(*c.op) || c.sample().make) return;
  expect_same_bits(c, c.inputs());
}

void check_large(const Case& c) {
  if (!c.sample().error.empty() || !is_deterministic(*c.op)) return;
  const std::vector<Tensor> inputs = c.inputs();
  if (!elementwise_inputs(c, inputs)) return;
  const std::vector<Tensor> small = run(*c.op, inputs, c.attrs());
  const int64_t n = 200'003;  // no multiple of any vector width
  std::vector<Tensor> large;
  for (const Tensor& t : inputs) large.push_back(repeated(t, small[0].shape(), n));
  std::vector<Tensor> result;
  expect_same_bits(c, large, &result);
  const double tolerance = 1e-6;  // vector and scalar code may round differently
  for (size_t i = 0; i < small.size(); ++i) {
    EXPECT_EQ(difference(result[i], repeated(small[i], small[0].shape(), n), tolerance, tolerance), "")
        << c.name() << " on " << n << " elements, output " << i << ": not what it gives for few";
  }
}

void check_empty(const Case& c) {
  if (!c.sample().error.empty()) return;
  const std::vector<Tensor> inputs = c.inputs();
  if (!elementwise_inputs(c, inputs)) return;
  for (const Shape& shape : {Shape{0}, Shape{0, 3}}) {
    std::vector<Tensor> empty;
    for (const Tensor& t : inputs) empty.push_back(Tensor::empty(t.dtype(), shape));
    try {
      for (const Tensor& y : run(*c.op, empty, c.attrs())) EXPECT_EQ(y.shape(), shape) << c.name();
    } catch (const Error& e) {
      ADD_FAILURE() << c.name() << " on empty tensors: " << e.what();
    }
  }
}

}  // namespace runnel::test
