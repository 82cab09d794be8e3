// Bad input to every op: one Error that names the op and what was given.
#include <gmock/gmock.h>

#include <functional>

#include "runnel/base/error.h"
#include "tests/suite/suite.h"

namespace runnel::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void expect_refused(const Case& c, const std::vector<Tensor>& inputs, const std::string& what,
                    const std::string& mention) {
  SCOPED_TRACE(c.name() + " with " + what);
  try {
    run(*c.op, inputs, c.attrs());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid_argument) << e.what();
    EXPECT_THAT(e.what(), StartsWith("[" + c.op->name + "] "));
    EXPECT_THAT(e.what(), HasSubstr(mention));
    return;
  }
  ADD_FAILURE() << "no error";
}

// A dtype that this input may not have; invalid when it may have any.
DType forbidden_dtype(const OpDef& op, const ArgSpec& arg) {
  for (DType t : {DType::string, float32, bool_}) {
    if (arg.type_var >= 0 ? !op.type_vars[static_cast<size_t>(arg.type_var)].allows(t)
                          : arg.dtype != DType::invalid && arg.dtype != t) {
      return t;
    }
  }
  return DType::invalid;
}

}  // namespace

void check_wrong_dtype(const Case& c) {
  if (!c.sample().error.empty()) return;
  const std::vector<Tensor> inputs = c.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArgSpec& spec = input_spec(*c.op, inputs, i);
    const DType wrong = forbidden_dtype(*c.op, spec);
    if (wrong == DType::invalid || wrong == inputs[i].dtype()) continue;
    std::vector<Tensor> in = inputs;
    in[i] = Tensor::empty(wrong, inputs[i].shape());
    expect_refused(c, in, spec.name + " of dtype " + dtype_name(wrong), spec.name);
  }
}

void check_input_count(const Case& c) {
  if (!c.sample().error.empty()) return;
  const std::vector<Tensor> inputs = c.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Tensor> in = inputs;
    in[i] = Tensor();
    expect_refused(c, in, "no tensor as input " + std::to_string(i), "refers to nothing");
  }
  if (c.op->has_list_input) return;
  std::vector<Tensor> more = inputs;
  more.emplace_back(1.f);
  expect_refused(c, more, "one input too many", "takes " + std::to_string(inputs.size()));
  if (inputs.empty()) return;
  std::vector<Tensor> fewer = inputs;
  fewer.pop_back();
  expect_refused(c, fewer, "one input too few", "takes " + std::to_string(inputs.size()));
}

}  // namespace runnel::test
