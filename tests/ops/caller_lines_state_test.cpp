// The same for text, files, random numbers, variables, tables and sequences; for tensors that were never given a value,
// in functions and in callbacks.
#include "runnel/runnel.h"
#include "tests/support/caller_lines.h"

namespace runnel {
namespace {

struct StateCallerLines : testing::Test {
  const Tensor x{1.f, 2.f};
  const Tensor m{{1.f, 2.f}, {3.f, 4.f}};
  const Tensor i{1, 2};
  const Tensor text{"a", "b"};
};

TEST_F(StateCallerLines, TextFilesAndExamples) {
  EXPECT_NAMES_THIS_LINE(strings::split(x));
  EXPECT_NAMES_THIS_LINE(strings::unicode_decode(x));
  EXPECT_NAMES_THIS_LINE(strings::unicode_split(x));
  EXPECT_NAMES_THIS_LINE(io::decode_csv(text, {Tensor()}));
  EXPECT_NAMES_THIS_LINE(io::parse_example(Tensor("a"), {{"f", io::VarLenFeature{}}}));
  EXPECT_NAMES_THIS_LINE(io::parse_single_example(text, {{"f", io::VarLenFeature{}}}));
  EXPECT_NAMES_THIS_LINE(io::parse_single_sequence_example(x, {{"f", io::VarLenFeature{}}}, {}));
  EXPECT_NAMES_THIS_LINE(io::parse_sequence_example(text, {}, {{"f", io::FixedLenFeature{}}}));
  EXPECT_NAMES_THIS_LINE(assert_(true, {Tensor()}));
  EXPECT_NAMES_THIS_LINE(host_call([](const std::vector<Tensor>& in) { return in; }, {Tensor()}, {}));
}

TEST_F(StateCallerLines, Random) {
  random::Generator generator = random::Generator::from_seed(1);
  EXPECT_NAMES_THIS_LINE(random::uniform({2}, 0, 1, DType::string));
  EXPECT_NAMES_THIS_LINE(random::uniform({2}, 0.5f, 2.f, DType::int32));
  EXPECT_NAMES_THIS_LINE(random::normal({2}, Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(random::truncated_normal({2}, 0, i));
  EXPECT_NAMES_THIS_LINE(random::gamma({2}, x, i));
  EXPECT_NAMES_THIS_LINE(random::stateless_uniform({2}, {1, 2}, 0, 1, DType::string));
  EXPECT_NAMES_THIS_LINE(random::stateless_normal({2}, {1, 2}, i));
  EXPECT_NAMES_THIS_LINE(random::stateless_truncated_normal({2}, {1}));
  EXPECT_NAMES_THIS_LINE(random::stateless_gamma({2}, {1, 2}, x, i));
  EXPECT_NAMES_THIS_LINE(random::Generator::from_state(x));
  EXPECT_NAMES_THIS_LINE(generator.reset_from_state(x));
  EXPECT_NAMES_THIS_LINE(generator.uniform({-1}));
  EXPECT_NAMES_THIS_LINE(generator.normal(x));
  EXPECT_NAMES_THIS_LINE(generator.truncated_normal({2}, i));
  EXPECT_NAMES_THIS_LINE(generator.make_seeds(-1));
  EXPECT_NAMES_THIS_LINE(generator.split(-1));
}

TEST_F(StateCallerLines, State) {
  const Variable v(x), whole(i);
  const Gradient none;
  EXPECT_NAMES_THIS_LINE(Variable(2.5f, {.dtype = DType::int32}));
  EXPECT_NAMES_THIS_LINE(Variable(x, {.shape = PartialShape{3}}));
  EXPECT_NAMES_THIS_LINE(Variable().value());
  EXPECT_NAMES_THIS_LINE(Variable() + x);
  EXPECT_NAMES_THIS_LINE(v.assign(i));
  EXPECT_NAMES_THIS_LINE(whole.assign(2.5f));
  EXPECT_NAMES_THIS_LINE(Variable().assign_add(1));
  EXPECT_NAMES_THIS_LINE(v.assign_sub(Tensor{1.f}));
  EXPECT_NAMES_THIS_LINE(v.scatter_add({x, Tensor{8, 9}, {}}));
  EXPECT_NAMES_THIS_LINE(v.scatter_update({i, i, {}}));
  EXPECT_NAMES_THIS_LINE(Variable().sparse_read(i));
  EXPECT_NAMES_THIS_LINE(none.value());
  EXPECT_NAMES_THIS_LINE(none + x);
  EXPECT_NAMES_THIS_LINE(training::apply_gradient_descent(v, 0.1, none));
  EXPECT_NAMES_THIS_LINE(training::apply_momentum(v, v, {}, i));
  EXPECT_NAMES_THIS_LINE(training::apply_keras_momentum(v, v, {}, m));
  EXPECT_NAMES_THIS_LINE(training::apply_adam(v, v, v, {}, IndexedSlices{x, Tensor{8, 9}, {}}));
  EXPECT_NAMES_THIS_LINE(training::apply_adam_with_amsgrad(v, v, v, v, {}, i));
  EXPECT_NAMES_THIS_LINE(training::apply_adamax(v, v, v, {}, IndexedSlices{x, Tensor{8, 9}, {}}));
  EXPECT_NAMES_THIS_LINE(training::apply_rms_prop(v, v, v, {}, i));
  EXPECT_NAMES_THIS_LINE(training::apply_centered_rms_prop(v, v, v, v, {}, i));
  EXPECT_NAMES_THIS_LINE(training::apply_adagrad(v, v, 0.1, 0.1, i));
  EXPECT_NAMES_THIS_LINE(training::apply_adadelta(v, v, v, 0.1, 0.1, 0.1, i));
  EXPECT_NAMES_THIS_LINE(training::apply_ftrl(v, v, v, {}, i));
  EXPECT_NAMES_THIS_LINE(lookup::StaticHashTable(x, i, 0));
  EXPECT_NAMES_THIS_LINE(lookup::StaticHashTable(i, i, 0.5f));
  EXPECT_NAMES_THIS_LINE(lookup::MutableHashTable(DType::int32, DType::int32, 0.5f));
}

TEST_F(StateCallerLines, Sequences) {
  const TensorArray ta(DType::float32, 2);
  const TensorArray mixed = TensorArray(DType::float32, 2, {.infer_shape = false}).write(0, x).write(1, m);
  EXPECT_NAMES_THIS_LINE(TensorArray(DType::float32, 2.5f));
  EXPECT_NAMES_THIS_LINE(ta.read(5));
  EXPECT_NAMES_THIS_LINE(ta.write(0, i));
  EXPECT_NAMES_THIS_LINE(ta.write(0, x).write(1, m));
  EXPECT_NAMES_THIS_LINE(ta.gather(Tensor{9}));
  EXPECT_NAMES_THIS_LINE(ta.scatter(Tensor{0, 1}, i));
  EXPECT_NAMES_THIS_LINE(ta.unstack(Tensor{1.f, 2.f, 3.f}));
  EXPECT_NAMES_THIS_LINE(ta.split(x, Tensor{5, 6}));
  EXPECT_NAMES_THIS_LINE(mixed.stack());
  EXPECT_NAMES_THIS_LINE(mixed.concat());
  EXPECT_NAMES_THIS_LINE(TensorArray().size());
  EXPECT_NAMES_THIS_LINE(RaggedTensor::from_row_splits(x, Tensor{0, 5}));
  EXPECT_NAMES_THIS_LINE(RaggedTensor::from_row_lengths(x, text));
  EXPECT_NAMES_THIS_LINE(RaggedTensor::from_nested_row_splits(x, {}));
  EXPECT_NAMES_THIS_LINE(RaggedTensor::from_tensor(x));
  EXPECT_NAMES_THIS_LINE(RaggedTensor::from_tensor(m, text));
  EXPECT_NAMES_THIS_LINE(RaggedTensor::of<int>({{1, 2}, {3}}).to_tensor(x));
  EXPECT_NAMES_THIS_LINE(RaggedTensor::of<int>({{1, 2}, {3}}).ragged_row(0));
}

// A tensor that was never given a value.
TEST_F(StateCallerLines, Nothing) {
  const Tensor none;
  EXPECT_NAMES_THIS_LINE(reduce_sum(none));
  EXPECT_NAMES_THIS_LINE(transpose(none));
  EXPECT_NAMES_THIS_LINE(reshape(none, {1}));
  EXPECT_NAMES_THIS_LINE(gather(none, i, 0, 1));
  EXPECT_NAMES_THIS_LINE(matrix_diag(none));
  EXPECT_NAMES_THIS_LINE(matrix_diag_part(none));
  EXPECT_NAMES_THIS_LINE(identity_n({none}));
  EXPECT_NAMES_THIS_LINE(zeros_like(none, DType::int32));
  EXPECT_NAMES_THIS_LINE(ones_like(none, DType::int32));
  EXPECT_NAMES_THIS_LINE(constant(none, DType::int32));
  EXPECT_NAMES_THIS_LINE(abs(none));
  EXPECT_NAMES_THIS_LINE(conj(none));
  EXPECT_NAMES_THIS_LINE(real(none));
  EXPECT_NAMES_THIS_LINE(imag(none));
  EXPECT_NAMES_THIS_LINE(none + x);
  EXPECT_NAMES_THIS_LINE(x / none);
  EXPECT_NAMES_THIS_LINE(none[0]);
  EXPECT_NAMES_THIS_LINE(sparse::from_dense(none));
  EXPECT_NAMES_THIS_LINE(nn::embedding_lookup(none, i));
}

// What is traced keeps the line, for errors while tracing and for those of the graph when it runs.
TEST_F(StateCallerLines, InFunctions) {
  EXPECT_NAMES_THIS_LINE(function([](Tensor y) { return repeat(y, Tensor{1, 2, 3}, 0); })(x));
  const Variable v(x);
  function([&](Tensor y) {
    EXPECT_NAMES_THIS_LINE(v.assign(cast(y, float64)));
    EXPECT_NAMES_THIS_LINE(v.assign(concat({y, y}, 0)));
    EXPECT_NAMES_THIS_LINE(v.assign_add(concat({y, y}, 0)));
    return y;
  })(x);
  const FunctionOptions any_length{.input_signature = {{{kUnknownDim}, DType::float32, ""}}};
  EXPECT_NAMES_THIS_LINE(function([](Tensor y) { return linalg::matvec(Tensor{{1.f}}, y); }, any_length)(x));
}

// The ops of a callback are nobody's parts.
TEST_F(StateCallerLines, CallbacksHaveTheirOwn) {
  const HostFunction wrong = [&](const std::vector<Tensor>& in) {
    EXPECT_NAMES_THIS_LINE(in[0] + i);
    return in;
  };
  host_call(wrong, {x}, {DType::float32});
}

}  // namespace
}  // namespace runnel
