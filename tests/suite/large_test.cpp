// The same bits with one thread and with two for every op, on inputs so large that loops are cut into ranges: samples
// made larger by repeating them along a dimension.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "runnel/base/parallel.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

constexpr int64_t kLarge = 150'000;        // elements: more than any kernel takes in one range
constexpr int64_t kTooLarge = 20'000'000;  // of an output

// Which inputs are repeated, and along which dimension.
enum class Along { first, last, added };
struct Growth {
  std::vector<size_t> inputs;
  Along along;
};

std::vector<Growth> growths(const Case& c, const std::vector<Tensor>& inputs) {
  std::vector<size_t> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool plain = inputs[i].dtype() != DType::resource && inputs[i].dtype() != DType::variant;
    if (plain && !input_spec(*c.op, inputs, i).host_memory && inputs[i].rank() > 0 && inputs[i].num_elements() > 0) {
      all.push_back(i);
    }
  }
  std::vector<Growth> list;
  if (all.empty()) return list;
  for (Along along : {Along::first, Along::last, Along::added}) list.push_back({all, along});
  for (size_t i : all) {
    for (Along along : {Along::first, Along::last, Along::added}) list.push_back({{i}, along});
  }
  if (all.size() > 2) list.push_back({{all[0], all[1]}, Along::first});
  return list;
}

std::vector<Tensor> grown(std::vector<Tensor> inputs, const Growth& how) {
  int64_t size = 0;
  for (size_t i : how.inputs) size = std::max(size, inputs[i].num_elements());
  const int64_t times = kLarge / size + 1;
  for (size_t i : how.inputs) {
    Tensor t = how.along == Along::added ? expand_dims(inputs[i], 0) : inputs[i];
    Dims multiples(static_cast<size_t>(t.rank()), 1);
    (how.along == Along::last ? multiples.back() : multiples.front()) = times;
    inputs[i] = tile(t, multiples);
  }
  return inputs;
}

bool fits_memory(const Case& c, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  InferContext context(*c.op, in, c.attrs(), c.op->num_outputs(c.attrs()));
  c.op->infer(context);
  for (int i = 0; i < context.num_outputs(); ++i) {
    const PartialShape& s = context.output_shape(i);
    if (s.is_static() && Shape(s.dims()).num_elements() > kTooLarge) return false;
  }
  return true;
}

// Compares a larger form of some sample of the op; false when it takes none.
bool compared(const OpDef& op) {
  for (int k = 0; k < static_cast<int>(op.samples.size()); ++k) {
    const Case c{&op, k};
    if (!c.sample().error.empty()) continue;
    const std::vector<Tensor> small = c.inputs();
    for (const Growth& how : growths(c, small)) {
      const std::vector<Tensor> inputs = grown(small, how);
      std::vector<Tensor> one;
      try {
        if (!fits_memory(c, inputs)) continue;
        set_num_threads(1);
        one = run(op, inputs, c.attrs());
      } catch (const Error&) {
        continue;  // larger only in a way that does not suit this op
      }
      set_num_threads(2);
      const std::vector<Tensor> two = run(op, inputs, c.attrs());
      for (size_t i = 0; i < one.size(); ++i) {
        EXPECT_TRUE(same_bits(one[i], two[i]))
            << c.name() << " on " << describe(inputs) << ", output " << i << ": " << difference(two[i], one[i], 0, 0);
      }
      return true;
    }
  }
  return false;
}

Tensor values(const Shape& shape) { return random::stateless_uniform(shape, Tensor{3, 4}, -1, 1); }

template <class F>
Tensor gradient_at(const Tensor& x, F f) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  return tape.gradient(y, x).value();
}

// Ops whose samples cannot be repeated, called through the functions that use them.
const std::map<std::string, std::function<Tensor()>> kWritten = {
    {"AsString", [] { return strings::as_string(range(200'000)); }},
    {"AvgPoolGrad",
     [] {
       return gradient_at(values({20, 40, 40, 8}), [](const Tensor& x) { return nn::avg_pool2d(x); });
     }},
    {"AvgPool3DGrad",
     [] {
       return gradient_at(values({4, 16, 16, 16, 8}), [](const Tensor& x) { return nn::avg_pool3d(x); });
     }},
    {"BroadcastTo",
     [] {
       return broadcast_to(values({500, 1}), {500, 700});
     }},
    {"DecodePng",
     [] {
       return image::decode_png(image::encode_png(cast(values({400, 500, 3}) * 100 + 128, uint8)));
     }},
    {"DecodeJpeg",
     [] {
       return image::decode_jpeg(image::encode_jpeg(cast(values({400, 500, 3}) * 100 + 128, uint8)));
     }},
    {"DecodeImage",
     [] {
       return image::decode_image(image::encode_png(cast(values({400, 500, 3}) * 100 + 128, uint8)),
                                  {.dtype = float32});
     }},
    {"Fill",
     [] {
       return fill({500, 700}, 2.5f);
     }},
    {"InvertPermutation", [] { return invert_permutation(reverse(range(200'000), {0})); }},
    {"LinSpace", [] { return linspace(0.0f, 1.0f, 200'000); }},
    {"Range", [] { return range(200'000); }},
    {"ParseSequenceExampleV2",
     [] {
       const io::SequenceExample one{{},
                                     {{{"frame", io::FeatureList{{io::FloatList{{1, 2}}, io::FloatList{{3, 4}}}}}}}};
       const auto parsed = io::parse_sequence_example(fill({20'000}, Tensor(Bytes(one.serialize()))), {},
                                                      {{"frame", io::FixedLenSequenceFeature{{2}}}});
       return parsed.sequences["frame"].leaf();
     }},
    {"RaggedTensorToTensor",
     [] { return RaggedTensor::from_row_lengths(values({200'000}), fill({50'000}, 4)).to_tensor(); }},
    {"SparseToDense",
     [] {
       const Tensor rows = cast(range(200'000), int64);
       return sparse::to_dense({stack({rows, rows % 3}, 1), values({200'000}), Tensor{int64_t{200'000}, int64_t{3}}});
     }},
    {"StatelessRandomUniformV2", [] { return values({300'001}); }},
    {"StatelessRandomNormalV2",
     [] {
       return random::stateless_normal({300'001}, Tensor{3, 4});
     }},
    {"StatelessTruncatedNormalV2",
     [] {
       return random::stateless_truncated_normal({300'001}, Tensor{3, 4});
     }},
    {"StatelessRandomGammaV3",
     [] {
       return random::stateless_gamma({100'001}, Tensor{3, 4}, Tensor(0.7f));
     }},
    {"StatelessRandomUniformIntV2",
     [] {
       return random::stateless_uniform({300'001}, Tensor{3, 4}, 0, 1000, int32);
     }},
    {"_RecurrentSequenceGrad",
     [] {
       static keras::LSTM layer({.units = 32, .return_sequences = true});
       const Tensor x = values({64, 20, 16});
       GradientTape tape;
       tape.watch(x);
       const Tensor y = layer(x);
       std::vector<GradSource> sources{x};
       for (const Variable& w : layer.trainable_weights()) sources.emplace_back(w);
       std::vector<Tensor> all;
       for (const Gradient& g : tape.gradient(std::vector<Tensor>{y}, sources)) all.push_back(reshape(g.value(), {-1}));
       return concat(all, 0);
     }},
    {"StridedSliceGrad",
     [] {
       return gradient_at(values({800, 500}), [](const Tensor& x) { return strided_slice(x, {1, 2}, {700, 400}); });
     }},
};

// Ops that have no loop over elements, or do their work on the thread that asks.
const std::set<std::string> kWithoutLoops = {
    "MergeSummary",
    "ScalarSummary",
    "Const",
    "Placeholder",
    "_Arg",
    "PartitionedCall",
    "StatelessCase",
    "StatelessIf",
    "StatelessWhile",
    "DecodeAndCropJpeg",
    "DecodeBmp",
    "DecodeGif",
    "DecodeWebP",
    "ExtractJpegShape",
    "ParseTensor",
    "_DecodeJpegAtLeast",
    "_CustomGradient",
    "StatelessRandomGetKeyCounter",
    "ConcatOffset",
    "DecodeWav",
    "Diag",
    "DiagPart",
    "NonMaxSuppressionWithOverlaps",
    "RaggedBincount",
    "RaggedCountSparseOutput",
    "RaggedGather",
    "SetSize",
    "SparseConcat",
    "SparseToSparseSetOperation",
    "UnicodeEncode",
};

TEST(Threads, EveryOpGivesTheSameBitsOnLargeInputs) {
  const int before = num_threads();
  std::set<std::string> left;
  for (const OpDef* op : registry().all()) {
    if (op->stateful || has_handles(*op)) continue;
    if (compared(*op) || kWithoutLoops.contains(op->name)) continue;
    const auto call = kWritten.find(op->name);
    if (call == kWritten.end()) {
      left.insert(op->name);
      continue;
    }
    set_num_threads(1);
    const Tensor one = call->second();
    set_num_threads(2);
    EXPECT_TRUE(same_bits(one, call->second())) << op->name;
  }
  set_num_threads(before);
  EXPECT_THAT(left, ::testing::IsEmpty()) << "ops that no call here makes work on much";
}

}  // namespace
}  // namespace runnel::test
