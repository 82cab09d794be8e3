// Calls that no op can do: sizes that cannot be counted, handles to nothing, functions that are not there. Each is one
// Error, whatever a kernel would have made of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <utility>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/sizes.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;

using NamedAttrs = std::vector<std::pair<std::string, AttrValue>>;

void refused(const std::string& op, const std::vector<Tensor>& inputs, const NamedAttrs& attrs, Code code,
             const std::string& text) {
  SCOPED_TRACE(op);
  expect_error([&] { call_op(op, inputs, attrs); }, code, text);
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kWide = int64_t{1} << 32;

TEST(Sizes, ThatCannotBeCountedAreErrors) {
  EXPECT_EQ(checked_times(kMost, 1), kMost);
  EXPECT_EQ(checked_plus(kMost, -1), kMost - 1);
  expect_error([] { checked_times(kWide, kWide); }, Code::invalid_argument, "4294967296 * 4294967296 is more than can");
  expect_error([] { checked_plus(kMost, 1); }, Code::invalid_argument, "more than can be counted");
  EXPECT_EQ(checked_product(Dims{}), 1);
  EXPECT_EQ(checked_product(Dims{kWide, kWide, 0}), 0);
  expect_error([] { checked_product(Dims{2, -1}); }, Code::invalid_argument, "negative size: -1");
}

TEST(Sizes, OfBlocksAndWindows) {
  const Tensor image = zeros({1, 2, 2, 1}), apart = zeros({4, 1, 1, 1}), none = zeros({2, 2}, DType::int64);
  const auto pairs = [](int64_t a, int64_t b) { return Tensor{{a, b}, {int64_t{0}, int64_t{0}}}; };
  const Tensor twos{int64_t{2}, int64_t{2}};
  refused("SpaceToBatchND", {image, twos, pairs(kMost, 1)}, {}, Code::invalid_argument, "more than can be counted");
  refused("BatchToSpaceND", {apart, twos, pairs(kMost, kMost)}, {}, Code::invalid_argument, "leave nothing");
  refused("BatchToSpaceND", {apart, Tensor{kWide, kWide}, none}, {}, Code::invalid_argument,
          "more than can be counted");
  // A product that wraps around to 1.
  refused("SpaceToBatchND", {image, Tensor{int64_t{7}, int64_t{7905747460161236407}}, none}, {}, Code::invalid_argument,
          "more than can be counted");
  refused("Pad", {zeros({2, 2}), pairs(kMost, 1)}, {}, Code::invalid_argument, "more than can be counted");
  const Tensor long_and_empty = Tensor::empty(DType::float32, Shape{int64_t{1} << 62, 0});
  refused("ConcatV2", {long_and_empty, long_and_empty, Tensor(0)}, {}, Code::invalid_argument,
          "more than can be counted");
  // A shape whose number of elements wraps around to that of the tensor.
  expect_error([] { zeros({0}).with_shape(Shape{kWide, kWide}); }, Code::resource_exhausted, "too many elements");
  // The depth of patches that wraps around to 0.
  const std::vector<int64_t> ones{1, 1, 1, 1}, vast{1, int64_t{1} << 22, int64_t{1} << 22, 1};
  refused("ExtractImagePatches", {zeros({1, 1, 1, int64_t{1} << 20})},
          {{"ksizes", vast}, {"strides", ones}, {"rates", ones}, {"padding", std::string("SAME")}},
          Code::invalid_argument, "more than can be counted");
}

TEST(Sizes, MemoryThatIsNotThereIsAnError) {
  refused("SparseFillEmptyRows", {zeros({0, 1}, DType::int64), zeros({0}), Tensor{int64_t{1} << 61}, Tensor(0.f)}, {},
          Code::resource_exhausted, "[SparseFillEmptyRows]");
  // Also of containers inside of an op, whose exceptions are told.
  const auto made_of = [](const auto& e) {
    try {
      throw e;
    } catch (...) {
      return current_error();
    }
  };
  EXPECT_EQ(made_of(std::bad_alloc()).code(), Code::resource_exhausted);
  EXPECT_THAT(made_of(std::bad_alloc()).what(), HasSubstr("not enough memory for what is computed on the way (std::"));
  EXPECT_EQ(made_of(std::length_error("vector::reserve")).code(), Code::resource_exhausted);
  EXPECT_THAT(made_of(std::length_error("vector::reserve")).what(), HasSubstr("any memory (vector::reserve)"));
}

// Whatever kind it is of: the program catches what it has thrown.
template <class E>
void expect_passes(const E& thrown) {
  SCOPED_TRACE(thrown.what());
  const auto expect_thrown = [&](const std::function<void()>& body) {
    try {
      body();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const E& e) {
      EXPECT_TRUE(typeid(e) == typeid(E));
      EXPECT_STREQ(e.what(), thrown.what());
    }
  };
  const Tensor x{1.f};
  const auto call = [&](const Tensor& in) -> Tensor {
    return host_call([&](const std::vector<Tensor>&) -> std::vector<Tensor> { throw thrown; }, {in}, {DType::float32},
                     {PartialShape{1}})[0];
  };
  expect_thrown([&] { call(x); });
  auto traced = function(call);
  expect_thrown([&] { traced(x); });
  auto branch = function([&](const Tensor& in) {
    return cond(
        in[0] > 0, [&] { return call(in); }, [&] { return in; });
  });
  expect_thrown([&] { branch(x); });
  auto loop = function([&](const Tensor& in) {
    return while_loop([](const Tensor& y) { return y[0] < 2; }, [&](const Tensor& y) { return call(y); }, in);
  });
  expect_thrown([&] { loop(x); });
  const auto mapped = data::from_tensors(x).map([&](const Tensor& in) { return call(in); });
  expect_thrown([&] { mapped.make_iterator().next(); });
  // A pipeline that a graph reads, whose callable throws by itself.
  const auto failing = data::from_tensors(x).map([&](const Tensor& in) -> Tensor {
    if (!in.is_symbolic()) throw thrown;  // its dtype is found by tracing it
    return in;
  });
  auto sum = function([&](const Tensor& in) {
    Tensor total = in;
    for (const Tensor& element : failing) total = total + element;
    return total;
  });
  expect_thrown([&] { sum(x); });
  expect_thrown([&] {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = custom_gradient(
        [&](const std::vector<Tensor>& in) -> CustomGradient {
          return {in[0] * 2, [&](const Tensor&) -> Gradients { throw thrown; }};
        },
        {x});
    (void)tape.gradient(y, x);
  });
}

TEST(Exceptions, OfCallbacksPassAsTheyAre) {
  expect_passes(std::length_error("label 7 is too long"));
  expect_passes(std::bad_alloc());
  expect_passes(std::runtime_error("no such label"));
}

TEST(Sizes, RowsOfEmptyTensorsTakeNoMemory) {
  // Legal, and without a single value.
  const Tensor values = Tensor::empty(DType::int32, Shape{int64_t{1} << 36, 0}), none = zeros({0});
  const auto counts = call_op("DenseCountSparseOutput", {values, none}, {{"binary_output", false}});
  EXPECT_THAT(counts[2].to_vector<int64_t>(), ElementsAre(int64_t{1} << 36, 1));
}

TEST(Handles, ToNothingAreErrors) {
  const Tensor key{int64_t{1}}, scalar(int64_t{1}), x{1.f};
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{2}}) {
    SCOPED_TRACE(shape.str());
    const Tensor h = Tensor::empty(DType::resource, shape), v = Tensor::empty(DType::variant, shape);
    const NamedAttrs key_value{{"Tkeys", DType::int64}, {"Tvalues", DType::int64}};
    for (const char* op : {"VarIsInitializedOp", "DisableCopyOnRead", "VariableShape"}) {
      refused(op, {h}, {}, Code::invalid_argument, "is no variable");
    }
    refused("ReadVariableOp", {h}, {{"dtype", DType::float32}}, Code::invalid_argument, "is no variable");
    for (const char* op : {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}) {
      refused(op, {h, x}, {}, Code::invalid_argument, "is no variable");
    }
    refused("DestroyResourceOp", {h}, {}, Code::invalid_argument, "refers to nothing");
    refused("LookupTableSizeV2", {h}, {}, Code::invalid_argument, "is no hash table");
    refused("LookupTableFindV2", {h, key, scalar}, {}, Code::invalid_argument, "is no hash table");
    for (const char* op : {"LookupTableInsertV2", "LookupTableImportV2", "InitializeTableV2"}) {
      refused(op, {h, key, key}, {}, Code::invalid_argument, "is no hash table");
    }
    refused("LookupTableRemoveV2", {h, key}, {}, Code::invalid_argument, "is no hash table");
    refused("LookupTableExportV2", {h}, key_value, Code::invalid_argument, "is no hash table");
    refused("OptionalHasValue", {v}, {}, Code::invalid_argument, "no optional");
    expect_error([&] { Variable::from_handle(h); }, Code::invalid_argument, "is no variable");
    // Traced and followed by tapes it is a value like another.
    GradientTape tape;
    auto f = function([&] { return cast(call_op("VarIsInitializedOp", {h}, {})[0], DType::float32); });
    expect_error([&] { f(); }, Code::invalid_argument, "is no variable");
  }
  refused("TensorListLength", {Tensor::empty(DType::variant, {0})}, {}, Code::invalid_argument,
          "one TensorList needed");
  refused("TensorListLength", {Tensor::empty(DType::variant, {})}, {}, Code::invalid_argument, "no TensorList");
}

TEST(Functions, CallsMakeNoParameters) {
  const NamedAttrs attrs{{"T", DType::float32}, {"index", int64_t{0}}};
  refused("_Arg", {}, attrs, Code::invalid_argument, "only a graph makes parameters");
  auto f = function([&] { return call_op("_Arg", {}, attrs)[0]; });
  expect_error([&] { f(); }, Code::invalid_argument, "only a graph makes parameters");
}

TEST(Functions, ThatAreNotThereAreErrors) {
  const Tensor yes(true), index(0), x{1.f};
  const std::vector<DType> floats{DType::float32};
  const auto shapes = std::vector<PartialShape>{PartialShape::unknown()};
  for (const bool in_graph : {false, true}) {
    const auto all_refused = [&](const std::string& op, const std::vector<Tensor>& in, const NamedAttrs& attrs,
                                 const std::string& text) {
      SCOPED_TRACE(op + (in_graph ? " in a graph" : ""));
      const auto call = [&] { return call_op(op, in, attrs)[0]; };
      if (!in_graph) return expect_error(call, Code::invalid_argument, text);
      auto f = function(call);
      expect_error([&] { f(); }, Code::invalid_argument, text);
    };
    for (const char* op : {"Case", "StatelessCase"}) {
      const NamedAttrs one{{"Tin", floats}, {"Tout", floats}, {"output_shapes", shapes}};
      all_refused(op, {index, x}, one, "branches");
      NamedAttrs empty = one;
      empty.emplace_back("branches", std::vector<FuncAttr>(1));
      all_refused(op, {index, x}, empty, "attribute 'branches' names no function");
    }
    for (const char* op : {"If", "StatelessIf"}) {
      all_refused(op, {yes, x},
                  {{"Tin", floats}, {"Tout", floats}, {"then_branch", FuncAttr{}}, {"else_branch", FuncAttr{}}},
                  "attribute 'then_branch' names no function");
    }
    for (const char* op : {"While", "StatelessWhile"}) {
      all_refused(op, {x}, {{"T", floats}, {"cond", FuncAttr{}}, {"body", FuncAttr{}}},
                  "attribute 'cond' names no function");
    }
    for (const char* op : {"PartitionedCall", "StatefulPartitionedCall"}) {
      all_refused(op, {x}, {{"Tin", floats}, {"Tout", floats}, {"f", FuncAttr{}}}, "attribute 'f' names no function");
    }
    all_refused("_CustomGradient", {x},
                {{"Tin", floats}, {"Tout", floats}, {"f", FuncAttr{}}, {"has_grad", std::vector<int64_t>{}}},
                "attribute 'f' names no function");
  }
}

TEST(Placeholders, WithDefaultsHaveTheShapeThatTheyState) {
  auto negated = function(
      [](const Tensor& x) {
        return -call_op("PlaceholderWithDefault", {x}, {{"shape", PartialShape{100000}}})[0];
      },
      {.input_signature = {TensorSpec({kUnknownDim}, DType::float32)}});
  expect_error(
      [&] {
        negated(Tensor{1.f, 2.f, 3.f});
      },
      Code::invalid_argument, "the input has shape [3], attribute shape says [100000]");
}

TEST(Tables, AreFilledOnce) {
  const auto table = [] {
    return call_op("AnonymousHashTable", {}, {{"key_dtype", DType::string}, {"value_dtype", DType::int64}})[0];
  };
  const auto longs = [](std::vector<int64_t> v) { return Tensor::of<int64_t>(v); };
  const auto found = [](const Tensor& h) {
    return call_op("LookupTableFindV2", {h, Tensor{"a", "b", "c"}, Tensor(int64_t{-1})}, {})[0].to_vector<int64_t>();
  };
  const Tensor h = table();
  call_op("InitializeTableV2", {h, Tensor{"a", "b"}, longs({1, 2})}, {});
  // As TensorFlow: others of the same number are passed over.
  call_op("InitializeTableV2", {h, Tensor{"c", "b"}, longs({3, 9})}, {});
  call_op("LookupTableImportV2", {h, Tensor{"c", "d"}, longs({3, 9})}, {});
  refused("InitializeTableV2", {h, Tensor{"a", "a", "b"}, longs({1, 1, 2})}, {}, Code::failed_precondition,
          "has 2 entries already");
  EXPECT_THAT(found(h), ElementsAre(1, 2, -1));
  // Nothing stays of contents that contradict themselves.
  const Tensor bad = table();
  refused("InitializeTableV2", {bad, Tensor{"a", "a"}, longs({1, 2})}, {}, Code::invalid_argument, "two values");
  refused("LookupTableFindV2", {bad, Tensor{"a"}, Tensor(int64_t{-1})}, {}, Code::failed_precondition,
          "no contents yet");
  EXPECT_EQ(call_op("LookupTableSizeV2", {bad}, {})[0].item<int64_t>(), 0);
}

TEST(Tables, NobodySeesAPartOfAnImport) {
  const Tensor h =
      call_op("AnonymousMutableHashTable", {}, {{"key_dtype", DType::int64}, {"value_dtype", DType::int64}})[0];
  const Tensor keys = range(Tensor(int64_t{0}), Tensor(int64_t{1000}), Tensor(int64_t{1}));
  call_op("LookupTableImportV2", {h, keys, keys}, {});
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) call_op("LookupTableImportV2", {h, keys, keys}, {});
  });
  for (int i = 0; i < 2000; ++i) {
    const int64_t size = call_op("LookupTableSizeV2", {h}, {})[0].item<int64_t>();
    if (size != 1000) {
      ADD_FAILURE() << "a table of " << size;
      break;
    }
  }
  writer.join();
}

TEST(Bucketize, ComparesIntegersAsFloats) {
  const Tensor x{int64_t{16777219}};
  const NamedAttrs attrs{{"boundaries", std::vector<double>{16777220}}};
  EXPECT_THAT(call_op("Bucketize", {x}, attrs)[0].to_vector<int32_t>(), ElementsAre(1));
  EXPECT_THAT(call_op("Bucketize", {cast(x, DType::float64)}, attrs)[0].to_vector<int32_t>(), ElementsAre(0));
}

TEST(AsString, IsAsLongAsItNeeds) {
  EXPECT_EQ(strings::as_string(Tensor::of<double>({1e300}), {.precision = 400}).item<std::string>().size(),
            301u + 1u + 400u);
  EXPECT_EQ(strings::as_string(Tensor(1.5f), {.precision = 600}).item<std::string>(), "1.5" + std::string(599, '0'));
  EXPECT_EQ(strings::as_string(Tensor(1.5f), {.width = 60000}).item<std::string>().size(), 60000u);
}

TEST(Ragged, RangesEndWhereIntegersDo) {
  const auto parts =
      call_op("RaggedRange", {Tensor(2147483646), Tensor(2147483647), Tensor(2147483647)}, {{"Tsplits", DType::int64}});
  EXPECT_EQ(parts[0].to_vector<int64_t>(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(parts[1].to_vector<int32_t>(), (std::vector<int32_t>{2147483646}));
}

TEST(Ragged, RowsOfValuesAreInOrder) {
  const Tensor values{10, 20, 30};
  expect_error([&] { ragged::from_value_rowids(values, Tensor{1, 0, 1}); }, Code::invalid_argument, "must not fall");
  expect_error(
      [&] {
        ragged::from_value_rowids(values, Tensor{-1, 0, 1});
      },
      Code::invalid_argument, "must not be negative");
  expect_error(
      [&] {
        ragged::from_value_rowids(values, Tensor{0, 1, 3}, Tensor(2));
      },
      Code::invalid_argument, "less than nrows");
  auto f = function([&](const Tensor& ids) { return ragged::from_value_rowids(values, ids, Tensor(2)).row_splits(); },
                    {.input_signature = {TensorSpec({3}, DType::int32)}});
  EXPECT_THAT(f(Tensor{0, 0, 1}).to_vector<int64_t>(), ElementsAre(0, 2, 3));
  expect_error([&] { f(Tensor{1, 0, 1}); }, Code::invalid_argument, "must not fall");
}

TEST(Sparse, TheDefaultOfEmptyRowsHasItsOwnGradient) {
  const Tensor indices{{int64_t{0}, int64_t{0}}}, whole{int64_t{2}, int64_t{1}}, value{1.f}, other(9.f);
  for (const float large : {1e8f, INFINITY}) {
    GradientTape tape;
    tape.watch(other);
    const sparse::FilledRows filled = sparse::fill_empty_rows({indices, value, whole}, other);
    const Tensor loss = reduce_sum(filled.sp_ordered_output.values * Tensor{large, 1.f});
    EXPECT_EQ(tape.gradient(loss, other).value().item<float>(), 1.f) << large;
  }
}

TEST(Einsum, GradientsOfWhatSpreadsUnderTheEllipsis) {
  const Tensor a{{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}, b{{2.f, 3.f}};
  const auto gradients = [](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(y);
    const Tensor z = call_op("Einsum", {x, y}, {{"equation", std::string("...i,...i->...")}})[0];
    const auto all = tape.gradient(z, std::vector<Tensor>{x, y});
    return std::pair(all[0].value(), all[1].value());
  };
  const auto check = [](const std::pair<Tensor, Tensor>& d) {
    EXPECT_THAT(d.first.to_vector<float>(), ElementsAre(2, 3, 2, 3, 2, 3));
    EXPECT_THAT(d.second.to_vector<float>(), ElementsAre(9, 12));
  };
  check(gradients(a, b));
  auto traced = function(gradients, {.input_signature = {TensorSpec({kUnknownDim, kUnknownDim}, DType::float32),
                                                         TensorSpec({kUnknownDim, kUnknownDim}, DType::float32)}});
  check(traced(a, b));
}

}  // namespace
}  // namespace runnel
