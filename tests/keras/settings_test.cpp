// The declared settings of all classes against what their objects write and what there is.
#include "runnel/keras/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "runnel/keras/keras.h"
#include "runnel/keras/member_count.h"
#include "runnel/runnel.h"
#include "source_dir.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

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
    if (c.kind == "initializer") return Initializers::find(empty_object(c.name)).config()["config"];
    if (c.kind == "regularizer") return Regularizers::find(empty_object(c.name)).config()["config"];
    if (c.kind == "constraint") return Constraints::find(empty_object(c.name)).config()["config"];
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
      const Config* value = written.find(s.name);
      ASSERT_NE(value, nullptr) << c.kind << " " << c.name << "." << s.name;
      if (c.kind == "initializer" || c.kind == "regularizer" || c.kind == "constraint") {
        EXPECT_EQ(*value, s.default_value) << c.name << "." << s.name;
      }
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

std::set<std::string> listed_of_kind(const std::string& kind) {
  std::set<std::string> names;
  for (const ClassSettings& c : all_class_settings()) {
    if (c.kind != kind) continue;
    EXPECT_TRUE(names.insert(c.name).second) << kind << " " << c.name << " comes twice";
  }
  return names;
}

// What an Error about a name that is not there says there is: "..., there are a, b, c and what ...".
template <class F>
std::vector<std::string> names_there_are(const F& find) {
  try {
    find();
  } catch (const Error& e) {
    std::string text = e.what();
    text.erase(0, text.find("there are ") + 10);
    text = text.substr(0, text.find(" and what"));
    text = text.substr(0, text.find(" (at "));
    text = text.substr(0, text.find('\n'));
    std::vector<std::string> names;
    std::stringstream parts(text);
    for (std::string name; std::getline(parts, name, ',');) {
      name = name.substr(std::min(name.find_first_not_of(' '), name.size()));
      if (!name.empty() && name.find(' ') == std::string::npos) names.push_back(name);
    }
    return names;
  }
  return {};
}

TEST(KerasSettings, EveryNameIsListed) {
  const auto check = [](const std::string& kind, const auto& find, const auto& class_of) {
    const std::vector<std::string> names = names_there_are(find);
    std::set<std::string> classes;
    for (const std::string& name : names) classes.insert(class_of(name));
    EXPECT_EQ(classes, listed_of_kind(kind));
    EXPECT_GE(names.size(), 3u) << kind;
  };
  const auto itself = [](const std::string& name) { return name; };
  check(
      "loss", [] { losses::get("?"); }, [](const std::string& n) { return losses::get(n)->class_name(); });
  check(
      "metric", [] { metrics::get("?"); },
      [](const std::string& n) -> std::string {  // functions' names, whose metric is a Mean
        const bool is_short = n.size() <= 4 && n != "AUC" && n != "IoU" && n != "Mean" && n != "Sum";
        return is_short || std::islower(static_cast<unsigned char>(n[0])) ? "Mean" : n;
      });
  check(
      "optimizer", [] { optimizers::get("?"); }, itself);
  const auto described = [](const auto& made) { return made.config()["class_name"].as_text(); };
  check(
      "initializer", [] { Initializer("?"); }, [&](const std::string& n) { return described(Initializer(n)); });
  check(
      "regularizer", [] { Regularizer("?"); }, [&](const std::string& n) { return described(Regularizer(n)); });
  check(
      "constraint", [] { Constraint("?"); }, [&](const std::string& n) { return described(Constraint(n)); });
}

std::string source_text(const std::string& path) { return test::read_text(join_path(kSourceDir, path)); }

// What the pattern's group is at every place where it fits.
std::set<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

TEST(KerasSettings, EveryClassOfTheHeadersIsListed) {
  const std::string names = source_text("runnel/keras/namespaces.h");
  const auto in_namespace = [&](const std::string& name) {
    const size_t begin = names.find("namespace " + name + " {");
    return all_matches(names.substr(begin, names.find("}", begin) - begin), R"(using keras::(\w+);)");
  };
  std::set<std::string> layers = listed_of_kind("layer");
  // Other names of layers, and what is not a layer.
  layers.merge(std::set<std::string>{"AvgPool1D", "AvgPool2D", "Convolution1D", "Convolution2D", "Convolution3D",
                                     "Deconvolution2D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalMaxPool1D",
                                     "GlobalMaxPool2D", "Input", "Layer", "MaxPool1D", "MaxPool2D"});
  layers.erase("Activation");  // ActivationLayer
  EXPECT_EQ(layers, in_namespace("layers"));
  std::set<std::string> callbacks = listed_of_kind("callback");
  callbacks.merge(std::set<std::string>{"Callback", "CallbackList", "History"});
  EXPECT_EQ(callbacks, in_namespace("callbacks"));
  const auto schedules = all_matches(source_text("runnel/keras/schedules.h"), R"(class RUNNEL_API (\w+) : public S)");
  EXPECT_EQ(schedules, listed_of_kind("schedule"));

  std::set<std::string> told = all_matches(source_text("runnel/data/options.h"), R"(struct (\w+Options) \{)");
  told.merge(all_matches(source_text("runnel/keras/training_options.h"), R"(struct (\w+Options) \{)"));
  EXPECT_EQ(told.size(), listed_of_kind("method").size() + listed_of_kind("dataset").size());
}

// --- every member of a struct is in its list: what is listed is checked for that while the library is compiled ---

struct ManyKinds {
  bool a = false, b = true;
  int64_t c = 0;
  std::optional<std::string> d = {};
  std::optional<double> e = {};
  std::vector<std::string> f = {};
  Tensor g = {};
  PerOutput<LossArg> h = {};
  PerOutput<double> i = {};
  Initializer j = {};
  LearningRate k = {};
  std::optional<SampleData> l = {};
  CellList m = {};
  std::function<double(double)> n = {};
};
struct Forgetful {
  bool listed = false;
  bool forgotten = false;
  static constexpr auto fields() { return field_list(field("listed", &Forgetful::listed)); }
};

TEST(KerasSettings, AMemberThatIsNotListedIsNoticed) {
  EXPECT_TRUE((has_member_count<ManyKinds, 14>));
  EXPECT_FALSE((has_member_count<ManyKinds, 13>));
  EXPECT_FALSE((has_member_count<ManyKinds, 15>));
  EXPECT_TRUE((has_member_count<NoAttrs, 0>));
  EXPECT_EQ(count_names(Forgetful::fields()), 1u);
  EXPECT_FALSE((has_member_count<Forgetful, count_names(Forgetful::fields())>));
  EXPECT_TRUE((has_member_count<FitOptions, count_names(FitOptions::fields())>));
  // A name that comes twice is one member.
  EXPECT_EQ(count_names(joined_fields(Forgetful::fields(), Forgetful::fields())), 1u);
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

const Setting& setting(const std::string& of, const std::string& name) {
  static std::vector<ClassSettings> found;
  found = class_settings(of);
  const auto at = std::ranges::find(found.at(0).settings, name, &Setting::name);
  if (at == found[0].settings.end()) throw std::runtime_error(of + " has no " + name);
  return *at;
}

TEST(KerasSettings, TypesAndDefaults) {
  EXPECT_EQ(class_settings("Model.fit").at(0).kind, "method");
  EXPECT_EQ(class_settings("TFRecordDataset").at(0).kind, "dataset");
  EXPECT_EQ(setting("Model.fit", "batch_size").type, "optional(int)");  // 32, but datasets come in batches
  EXPECT_EQ(setting("Model.fit", "epochs").default_value, Config(1));
  EXPECT_EQ(setting("Model.fit", "class_weight").type, "dict(int, float)");
  // What has no form that can be written has no default.
  for (const auto& [name, type] : std::vector<std::pair<std::string, std::string>>{
           {"callbacks", "list(Callback)"}, {"validation_data", "optional(SampleData)"}, {"sample_weight", "Tensor"}}) {
    EXPECT_EQ(setting("Model.fit", name).type, type);
    EXPECT_TRUE(setting("Model.fit", name).default_value.is_null()) << name;
  }
  EXPECT_EQ(setting("Model.compile", "optimizer").type, "Optimizer");
  EXPECT_EQ(setting("Model.compile", "loss").type, "Loss, list(Loss) or dict(str, Loss)");
  EXPECT_EQ(setting("Dataset.padded_batch", "padded_shapes").type, "list(shape)");
  EXPECT_EQ(setting("Dataset.shuffle", "seed").type, "optional(int)");
  EXPECT_EQ(setting("csv", "field_delim").default_value, Config(","));
  EXPECT_EQ(setting("GlorotUniform", "seed").type, "optional(int)");
  EXPECT_EQ(setting("MaxNorm", "axis").default_value, Config(0));
  EXPECT_EQ(setting("Softmax", "axis").default_value, Config(-1));
  EXPECT_EQ(setting("LambdaCallback", "on_epoch_end").type, "function");
  EXPECT_EQ(setting("CSVLogger", "separator").default_value, Config(","));
  EXPECT_EQ(setting("Dense", "kernel_initializer").type, "Initializer");
  EXPECT_EQ(setting("Bidirectional", "layer").type, "Layer");
  EXPECT_EQ(setting("Adam", "learning_rate").default_value, Config(0.001));
  EXPECT_TRUE(class_settings("TerminateOnNaN").at(0).settings.empty());
}

TEST(KerasSettings, FunctionsTakeTheirSettingsByNameOrInOrder) {
  const auto json = [](const auto& described) { return described.config().to_json(); };
  EXPECT_EQ(json(initializers::constant({.value = 2})), json(initializers::constant(2)));
  EXPECT_EQ(json(initializers::identity({.gain = 2})), json(initializers::identity(2)));
  EXPECT_EQ(json(initializers::he_normal({.seed = 3})), json(initializers::he_normal(3)));
  EXPECT_EQ(json(initializers::orthogonal({.gain = 2, .seed = 3})), json(initializers::orthogonal(2, 3)));
  EXPECT_EQ(json(regularizers::l1_l2({.l1 = 0.1, .l2 = 0.5})), json(regularizers::l1_l2(0.1, 0.5)));
  EXPECT_EQ(json(constraints::max_norm({.max_value = 3, .axis = 1})), json(constraints::max_norm(3, 1)));
  EXPECT_EQ(json(constraints::min_max_norm({.rate = 0.5, .axis = {0, 1}})),
            json(constraints::min_max_norm(0, 1, 0.5, {0, 1})));
  EXPECT_EQ(json(constraints::unit_norm(constraints::UnitNormOptions{.axis = 1})), json(constraints::unit_norm(1)));
  const auto unit = constraints::unit_norm({0});  // NOLINT(clang-diagnostic-braced-scalar-init): as users write it
  EXPECT_EQ(json(unit), R"({"class_name":"UnitNorm","config":{"axis":0}})");
}

// 0 is a seed like others: the numbers are the same every time, and it is written.
TEST(KerasSettings, InitializersTakeTheSeedZero) {
  const Initializer fixed = initializers::glorot_uniform(0);
  EXPECT_EQ(fixed.config().to_json(), R"({"class_name":"GlorotUniform","config":{"seed":0}})");
  EXPECT_TRUE(reduce_all(fixed({2, 3}) == fixed({2, 3})).item<bool>());
  EXPECT_TRUE(reduce_all(fixed({2, 3}) == Initializer::from_config(fixed.config())({2, 3})).item<bool>());
}

TEST(KerasSettings, CallbacksTakeTheirSettingsByName) {
  const test::TempDir dir;
  const std::string path = dir.file("log.csv");
  Sequential model({Dense({.units = 1, .kernel_initializer = "ones"})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  LearningRateScheduler still({.schedule = [](int64_t) { return 0.0; }});
  const Tensor x = ones({4, 1});
  model.fit(x, x + 2,
            {.epochs = 2, .verbose = 0, .callbacks = {still, CSVLogger({.filename = path, .separator = ";"})}});
  model.fit(x, x + 2, {.verbose = 0, .callbacks = {still, CSVLogger({.filename = path, .append = true})}});
  EXPECT_EQ(test::read_text(path), "epoch;loss;lr\n0;4;0\n1;4;0\n0,4,0\n");
  test::expect_error([] { LearningRateScheduler(LearningRateSchedulerOptions{}); }, Code::invalid_argument,
                     "[LearningRateScheduler] there is no schedule");
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
