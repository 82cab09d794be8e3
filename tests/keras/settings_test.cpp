// The declared settings of all classes against what their objects write.
#include "runnel/keras/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"

namespace runnel::keras {
namespace {

Config empty_object(const std::string& name) { return object_config(name, {}); }

// The least that a class must be told.
Config smallest_config(const ClassSettings& c) {
  Config::Map entries;
  for (const Setting& s : c.settings) {
    if (s.name == "num_classes") entries.emplace_back("num_classes", 3);
    if (c.name == "IoU" || c.name == "OneHotIoU") {
      if (s.name == "target_class_ids") entries.emplace_back(s.name, std::vector<int64_t>{1});
    }
    if (s.name == "inner_optimizer") {
      entries.emplace_back(s.name, optimizers::serialize(optimizers::SGD()));
      entries.emplace_back("dynamic", true);
      entries.emplace_back("initial_scale", Config());
      entries.emplace_back("dynamic_growth_steps", Config());
    }
  }
  return object_config(c.name, entries);
}

// What an object of the class with its defaults writes; null for one that cannot be made without settings.
Config written_by_default(const ClassSettings& c) {
  try {
    if (c.kind == "layer") return layer_from_config(empty_object(c.name))->get_config();
    if (c.kind == "loss") return losses::deserialize(empty_object(c.name))->get_config();
    if (c.kind == "metric") return metrics::deserialize(smallest_config(c))->get_config();
    if (c.kind == "optimizer") return optimizers::deserialize(smallest_config(c))->get_config();
    if (c.kind == "schedule") return optimizers::schedules::deserialize(empty_object(c.name))->get_config();
  } catch (const Error&) {
  }
  return {};
}

TEST(KerasSettings, EveryClassIsDescribedAsItIsWritten) {
  // Written only where they were given.
  const std::set<std::string> only_if_given{"input_shape", "batch_input_shape", "input_dim", "thresholds"};
  // The same in every configuration, for Keras's readers.
  const std::set<std::string> fixed{"jit_compile", "is_legacy_optimizer"};
  int compared = 0;
  for (const ClassSettings& c : all_class_settings()) {
    const Config written = written_by_default(c);
    for (const Setting& s : c.settings) {
      EXPECT_NE(s.doc, "") << c.name << "." << s.name;
      EXPECT_NE(s.type, "") << c.name << "." << s.name;
      if (written.is_null() || only_if_given.contains(s.name)) continue;
      EXPECT_NE(written.find(s.name), nullptr) << c.kind << " " << c.name << "." << s.name;
      ++compared;
    }
    if (written.is_null()) continue;
    for (const auto& [key, value] : written.entries()) {
      if (fixed.contains(key)) continue;
      EXPECT_TRUE(std::ranges::any_of(c.settings, [&](const Setting& s) { return s.name == key; }))
          << c.kind << " " << c.name << " writes " << key;
    }
  }
  EXPECT_GT(compared, 500);
}

std::vector<std::string> listed(const std::string& name) {
  std::vector<std::string> names;
  const ClassSettings of_class = class_settings(name).at(0);
  for (const Setting& s : of_class.settings) names.push_back(s.name);
  return names;
}

TEST(KerasSettings, NothingIsLeftOut) {
  EXPECT_THAT(listed("InputLayer"), ::testing::ElementsAre("batch_input_shape", "name", "trainable", "dtype"));
  EXPECT_THAT(listed("Dense"), ::testing::Contains("input_dim"));
  EXPECT_THAT(listed("Embedding"), ::testing::Contains("input_dim").Times(1));
  EXPECT_THAT(listed("RecallAtPrecision"),
              ::testing::ElementsAre("precision", "num_thresholds", "class_id", "name", "dtype"));
  EXPECT_THAT(listed("F1Score"), ::testing::ElementsAre("average", "threshold", "name", "dtype"));
  EXPECT_THAT(listed("LossScaleOptimizer"),
              ::testing::ElementsAre("inner_optimizer", "dynamic", "initial_scale", "dynamic_growth_steps"));
  for (const char* name : {"IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU", "BinaryIoU", "FBetaScore"}) {
    EXPECT_EQ(class_settings(name).at(0).kind, "metric") << name;
  }
}

TEST(KerasSettings, OneClassByName) {
  const std::vector<ClassSettings> both = class_settings("MeanSquaredError");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].kind, "loss");
  EXPECT_EQ(both[1].kind, "metric");
  const ClassSettings conv = class_settings("Conv2D").at(0);
  EXPECT_EQ(conv.settings[0].name, "filters");
  EXPECT_EQ(conv.settings[1].type, "int or list(int)");
  test::expect_error([] { class_settings("Denze"); }, Code::not_found, "no class 'Denze'");
}

TEST(KerasSettings, SharedSettingsPassFromOneStructToAnother) {
  optimizers::AdamWOptions from{.learning_rate = 0.5, .weight_decay = 0.25, .beta_1 = 0.75, .name = "mine"};
  optimizers::AdamOptions to;
  copy_shared_fields(from, to);
  EXPECT_EQ(to.learning_rate.value(), 0.5);
  EXPECT_EQ(to.weight_decay, 0.25);
  EXPECT_EQ(to.beta_1, 0.75);
  EXPECT_EQ(to.name, "mine");
}

}  // namespace
}  // namespace runnel::keras
