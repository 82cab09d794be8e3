// The same bits with one thread and with two for the ops on state: those that change variables, by the names of their
// inputs, and those that draw numbers.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "runnel/base/parallel.h"
#include "runnel/runnel.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

constexpr int64_t kRows = 60'000, kWidth = 8;  // of a variable: more than any kernel takes in one range

Tensor uniform_rows(int64_t rows, int seed, float low, float high) {
  return random::stateless_uniform({rows, kWidth}, Tensor{seed, 7}, low, high);
}

const std::map<std::string, float> kScalars = {
    {"lr", 0.1f},        {"alpha", 0.1f},    {"rho", 0.9f},          {"momentum", 0.9f},   {"beta1", 0.9f},
    {"beta2", 0.99f},    {"epsilon", 1e-3f}, {"beta1_power", 0.9f},  {"l1", 0.01f},        {"l2", 0.02f},
    {"lr_power", -0.5f}, {"m_rate", 0.05f},  {"l2_shrinkage", 0.1f}, {"grad_rate", 0.05f}, {"beta2_power", 0.99f}};

struct Call {
  std::vector<Tensor> inputs;
  std::vector<Variable> variables;
};

// Inputs for an op that changes variables; nothing where one of them has a name that is not known here.
std::optional<Call> variable_call(const OpDef& op) {
  const bool sparse = std::any_of(op.inputs.begin(), op.inputs.end(), [](auto& in) { return in.name == "indices"; });
  Call call;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const ArgSpec& in = op.inputs[i];
    const std::set<std::string> as_large = {"grad", "value", "updates", "delta"};
    for (int copy = 0; copy < (in.is_list() ? 2 : 1); ++copy) {
      const int seed = static_cast<int>(i) + 100 * copy;
      if (in.dtype == DType::resource) {
        call.variables.emplace_back(uniform_rows(kRows, seed, 0.5f, 1.5f));
        call.inputs.push_back(call.variables.back().handle());
      } else if (in.name == "indices") {
        call.inputs.push_back(range(50'000) * 7919 % 40'000);  // some of them twice
      } else if (as_large.contains(in.name) && (i + 1 == op.inputs.size() || in.name == "grad")) {
        call.inputs.push_back(uniform_rows(sparse ? 50'000 : kRows, seed, 0.5f, 2));
      } else if (in.name == "global_step") {
        call.inputs.emplace_back(int64_t{3});
      } else if (const auto scalar = kScalars.find(in.name); scalar != kScalars.end()) {
        call.inputs.emplace_back(scalar->second);
      } else {
        return std::nullopt;
      }
    }
  }
  if (call.variables.empty()) return std::nullopt;
  return call;
}

std::vector<Tensor> results_of(const OpDef& op) {
  const std::optional<Call> call = variable_call(op);
  if (!call) return {};
  std::vector<Tensor> results;
  if (op.name == "ResourceGather" || op.name == "ReadVariableOp") {
    results = call_op(op.name, call->inputs, {{"dtype", DType::float32}});
  } else {
    results = call_op(op.name, call->inputs);
  }
  for (const Variable& v : call->variables) results.push_back(v.value());
  return results;
}

Tensor packed(const std::function<Tensor(const Tensor&, const Variable&)>& f, const Tensor& x, const Shape& shape) {
  const Variable w(random::stateless_uniform(shape, Tensor{1, 2}, -1, 1));
  return function([&](const Tensor& in) { return f(in, w); })(x);
}

const std::map<std::string, std::function<Tensor()>> kDraws = {
    {"RandomUniform", [] { return random::uniform({300'001}); }},
    {"RandomUniformInt", [] { return random::uniform({300'001}, 0, 1000, int32); }},
    {"RandomStandardNormal", [] { return random::normal({300'001}); }},
    {"TruncatedNormal", [] { return random::truncated_normal({300'001}); }},
    {"RandomGamma",
     [] {
       return random::gamma({30'000}, Tensor{0.5f, 3.f});
     }},
    {"RandomShuffle", [] { return random::shuffle(range(200'000)); }},
    {"Multinomial",
     [] {
       return random::categorical(zeros({300, 50}), 200);
     }},
    {"_PackedMatMul",
     [] {
       return packed([](const Tensor& x, const Variable& w) { return matmul(x, w) + ones({100}); }, ones({1, 784}),
                     {784, 100});
     }},
    {"_PackedConv2D",
     [] {
       return packed(
           [](const Tensor& x, const Variable& w) { return nn::relu(nn::bias_add(nn::conv2d(x, w), ones({32}))); },
           ones({4, 40, 40, 16}), {3, 3, 16, 32});
     }},
};

// What runs other ops, speaks to the world, or looks up one word after the other on the thread that asks.
const std::set<std::string> kWithoutOwnLoops = {
    "Assert",
    "Case",
    "If",
    "IteratorGetNext",
    "LookupTableFindV2",
    "LookupTableInsertV2",
    "MatchingFiles",
    "NoOp",
    "PrintV2",
    "LookupTableRemoveV2",
    "ReadFile",
    "LookupTableSizeV2",
    "VariableShape",
    "WriteFile",
    "While",
    "StatefulPartitionedCall",
    "_DatasetIterator",
    "_HostCall",
    "_IteratorHasNext",
    "RngReadAndSkip",
    // Tables and variables by name, one element after the other, and the time.
    "AnonymousHashTable",
    "AnonymousMutableDenseHashTable",
    "AnonymousMutableHashTable",
    "AnonymousMutableHashTableOfTensors",
    "CheckNumerics",
    "DestroyResourceOp",
    "DisableCopyOnRead",
    "HashTableV2",
    "InitializeTableFromTextFileV2",
    "InitializeTableV2",
    "LookupTableExportV2",
    "LookupTableImportV2",
    "MutableDenseHashTableV2",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
    "Timestamp",
    "VarHandleOp",
    "VarIsInitializedOp",
    // Writers of summaries: a file, and a thread of their own.
    "CloseSummaryWriter",
    "CreateSummaryFileWriter",
    "FlushSummaryWriter",
    "ImportEvent",
    "SummaryWriter",
    "WriteGraphSummary",
    "WriteRawProtoSummary",
    "WriteSummary",
};

TEST(Threads, EveryOpOnStateGivesTheSameBits) {
  const int before = num_threads();
  std::set<std::string> left;
  int changed = 0;
  for (const OpDef* op : registry().all()) {
    if (!op->stateful || kWithoutOwnLoops.contains(op->name)) continue;
    std::vector<Tensor> results[2];
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      random::set_seed(5);
      const auto draw = kDraws.find(op->name);
      if (draw != kDraws.end()) {
        results[threads - 1] = {draw->second()};
      } else {
        results[threads - 1] = results_of(*op);
      }
    }
    if (results[0].empty()) left.insert(op->name);
    ++changed;
    for (size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_TRUE(same_bits(results[0][i], results[1][i]))
          << op->name << ", result " << i << ": " << difference(results[1][i], results[0][i], 0, 0);
    }
  }
  set_num_threads(before);
  EXPECT_GT(changed, 50);
  EXPECT_THAT(left, ::testing::IsEmpty()) << "ops that no call here makes work on much";
}

}  // namespace
}  // namespace runnel::test
