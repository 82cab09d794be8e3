// Checkpoints of many programs and years, through the public functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "runnel/track/object_graph_bytes.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"

namespace runnel::train {
namespace {

using test::expect_error;
using test::fixtures;
using Row = std::vector<std::string>;

std::vector<Row> rows_of(const std::string& table) {
  std::vector<Row> rows;
  std::istringstream text(test::read_bytes(fixtures() / table));
  for (std::string line; std::getline(text, line);) {
    Row& row = rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) row.push_back(cell);
    row.resize(13);
  }
  rows.erase(rows.begin());
  return rows;
}

std::map<std::string, std::vector<Row>> expected_checkpoints() {
  std::map<std::string, std::vector<Row>> by_prefix;
  for (const Row& row : rows_of("EXPECTED_ckpt.tsv")) by_prefix[row[0]].push_back(row);
  return by_prefix;
}

TEST(FixtureFiles, AreListedAndLoaded) {
  RUNNEL_REQUIRE_FIXTURES();
  const auto all = expected_checkpoints();
  EXPECT_EQ(all.size(), 50U);
  for (const auto& [prefix, rows] : all) {
    SCOPED_TRACE(prefix);
    const std::string path = (fixtures() / prefix).string();
    const std::vector<CheckpointVariable> variables = list_variables(path);
    ASSERT_EQ(variables.size(), rows.size());
    const CheckpointContents contents = load_checkpoint(path);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      SCOPED_TRACE(row[1]);
      EXPECT_EQ(variables[i].name, row[1]);
      EXPECT_EQ(dtype_name(variables[i].dtype), row[2]);
      EXPECT_EQ(fmt::format("[{}]", fmt::join(variables[i].shape.dims(), ", ")), row[3]);
      if (row[8] == "NOSHARD") {
        expect_error([&] { (void)contents.get_tensor(row[1]); }, Code::not_found, "the file is missing");
        continue;
      }
      const Tensor value = contents.get_tensor(row[1]);
      EXPECT_EQ(value.shape(), variables[i].shape);
      if (value.dtype() == DType::string) continue;
      const std::vector<double> numbers = cast(value, DType::float64).to_vector<double>();
      double sum = 0;
      for (const double number : numbers) sum += number;
      EXPECT_NEAR(sum, std::stod(row[9]),
                  1e-9 * std::max(1.0, std::abs(sum)) + 1e-9 * static_cast<double>(numbers.size()));
      EXPECT_EQ(numbers.front(), std::stod(row[10]));
      EXPECT_EQ(numbers.back(), std::stod(row[11]));
    }
  }
}

// Whatever program a file is of, restoring it into one without parts names all of its values and does no harm.
TEST(FixtureFiles, RestoreIntoAnEmptyProgram) {
  RUNNEL_REQUIRE_FIXTURES();
  int with_graph = 0, by_name = 0;
  for (const auto& [prefix, rows] : expected_checkpoints()) {
    SCOPED_TRACE(prefix);
    Checkpoint empty;
    const RestoreStatus status = empty.read((fixtures() / prefix).string());
    status.expect_partial();
    std::set<std::string> named, wanted;
    for (const RestoreStatus::Row& row : status.rows()) {
      EXPECT_TRUE(row.state == RestoreStatus::State::pending || row.state == RestoreStatus::State::unused) << row.name;
      named.insert(row.name);
    }
    bool graph = false;
    for (const Row& row : rows) {
      graph = graph || row[1] == kObjectGraphKey;
      if (row[1] != kObjectGraphKey) wanted.insert(short_key(row[1]));
    }
    ++(graph ? with_graph : by_name);
    if (prefix.find("UninitializedVariable") != std::string::npos) {
      EXPECT_TRUE(named.erase("uninitialized_variable"));  // of the graph, without a value
      EXPECT_TRUE(named.erase("sub_module/uninitialized_variable"));
    }
    EXPECT_EQ(named, wanted);
    if (!graph) continue;
    const std::string bytes = load_variable((fixtures() / prefix).string(), kObjectGraphKey).item<std::string>();
    const std::string again = object_graph_to_bytes(object_graph_from_bytes(bytes));
    EXPECT_EQ(object_graph_to_bytes(object_graph_from_bytes(again)), again);
  }
  EXPECT_GT(with_graph, 20);
  EXPECT_GT(by_name, 10);
}

TEST(FixtureFiles, OfSavedModelsGoByTheirFolder) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::string folder =
      (fixtures() / "Intel-tensorflow_tensorflow/tensorflow/cc/saved_model/testdata/CyclicModule").string();
  EXPECT_EQ(list_variables(folder).size(), 2U);
  EXPECT_EQ(load_checkpoint(folder).prefix(), folder + "/variables/variables");
  Checkpoint empty;
  EXPECT_FALSE(empty.read(folder).expect_partial().rows().empty());
}

TEST(FixtureFiles, ThatAreDamagedSayWhere) {
  RUNNEL_REQUIRE_FIXTURES();
  int seen = 0;
  for (const Row& row : rows_of("DERIVED_EXPECT.tsv")) {
    if (!row[0].starts_with("derived/ckpt/") || !row[1].starts_with("(as an")) continue;
    SCOPED_TRACE(row[0]);
    ++seen;
    const std::string path = (fixtures() / row[0] / "ckpt").string();
    Checkpoint checkpoint;
    if (row[3].starts_with("open fails")) {
      expect_error([&] { (void)list_variables(path); }, Code::data_loss, path + ".index");
      expect_error([&] { checkpoint.restore(path); }, Code::data_loss, path + ".index");
      continue;
    }
    const CheckpointContents contents = load_checkpoint(path);
    const Code code = row[0].ends_with("missing_shard") ? Code::not_found : Code::data_loss;
    for (const CheckpointVariable& variable : contents.variables()) {
      const auto load = [&] { (void)contents.get_tensor(variable.name); };
      if (row[3].find("'" + variable.name + "'") == std::string::npos) {
        EXPECT_NO_THROW(load());
      } else {
        expect_error(load, code, variable.name);
      }
    }
    if (row[0].ends_with("flip_objectgraph_len")) {
      expect_error([&] { checkpoint.restore(path); }, Code::data_loss, kObjectGraphKey);
    }
  }
  EXPECT_EQ(seen, 9);
}

// --- the handbook's model, trained by TensorFlow in 2019 ---

struct HandbookMlp : keras::Model {
  keras::layers::Flatten flatten{this, "flatten"};
  keras::layers::Dense dense1{this, "dense1", {.units = 100, .activation = nn::relu}};
  keras::layers::Dense dense2{this, "dense2", {.units = 10}};
  Tensor call(const Tensor& inputs, const keras::CallArgs&) override {
    return nn::softmax(dense2(dense1(flatten(inputs))));
  }
};

struct TestImages {
  Tensor images, labels;
};

// Nothing where MNIST is neither in the cache nor to be had.
std::optional<TestImages> test_images() {
  try {
    const auto [train, test] = keras::datasets::mnist::load_data();
    return TestImages{expand_dims(cast(test.first, float32) / 255.f, -1), test.second};
  } catch (const Error& error) {
    if (error.code() != Code::unavailable) throw;
    return std::nullopt;
  }
}

int64_t num_right(HandbookMlp& model, const TestImages& data) {
  const std::vector<int64_t> found = argmax(model(data.images), -1).to_vector<int64_t>();
  const std::vector<uint8_t> labels = data.labels.to_vector<uint8_t>();
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += found[i] == labels[i];
  return right;
}

TEST(FixtureFiles, OfTheHandbookClassifyAsTheyDid) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::optional<TestImages> data = test_images();
  if (!data) GTEST_SKIP() << "MNIST is neither in the cache nor to be had";
  const std::string folder = (fixtures() / "handbook/docs/_static/code/zh/tools/save_and_restore/save").string();
  const std::map<std::string, int64_t> expected{{"ckpt-900", 9346}, {"ckpt-1000", 9458}, {"ckpt-1100", 9467}};
  for (const auto& [name, right] : expected) {
    for (const bool delayed : {true, false}) {
      SCOPED_TRACE(name + (delayed ? ", before the first call" : ", after it"));
      HandbookMlp model;
      if (!delayed) model(zeros({1, 28, 28, 1}));
      Checkpoint checkpoint({{"myAwesomeModel", &model}});
      const RestoreStatus status = checkpoint.restore(folder + "/" + name);
      if (!delayed) status.assert_consumed();
      EXPECT_EQ(num_right(model, *data), right);
      status.assert_consumed();
    }
  }
  HandbookMlp model;
  Checkpoint checkpoint({{"myAwesomeModel", &model}});
  EXPECT_EQ(latest_checkpoint(folder), folder + "/ckpt-1100");
  checkpoint.restore(latest_checkpoint(folder));
  EXPECT_EQ(checkpoint.save_counter().value().item<int64_t>(), 11);
  EXPECT_EQ(num_right(model, *data), 9467);
}

// The model as a SavedModel: its variables are a checkpoint whose root is the model.
TEST(FixtureFiles, OfTheHandbooksSavedModelClassifyAsTheyDid) {
  RUNNEL_REQUIRE_FIXTURES();
  const std::optional<TestImages> data = test_images();
  if (!data) GTEST_SKIP() << "MNIST is neither in the cache nor to be had";
  HandbookMlp model;
  Checkpoint checkpoint(model);
  const RestoreStatus status =
      checkpoint.read((fixtures() / "handbook/docs/_static/code/zh/savedmodel/custom/saved").string());
  EXPECT_EQ(num_right(model, *data), 9494);
  status.assert_existing_objects_matched().expect_partial();
}

}  // namespace
}  // namespace runnel::train
