// A training that is interrupted at any step and resumed in a fresh model gives what the uninterrupted one gives, bit
// by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_reader.h"
#include "runnel/io/checkpoint_writer.h"
#include "runnel/keras/keras.h"
#include "runnel/ops/random_state.h"
#include "runnel/runnel.h"
#include "runnel/track/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras {
namespace {

using test::expect_error;
using test::TempDir;

struct ResumeSamples {
  Tensor x = random::stateless_normal({60, 4}, {1, 2});
  Tensor y = cast(random::stateless_uniform({60}, {3, 4}) * 3.0, int32);
};

std::shared_ptr<Sequential> dropout_model() {
  auto model = std::make_shared<Sequential>(std::initializer_list<LayerArg>{
      Dense({.units = 8, .activation = "relu"}), BatchNormalization(), Dropout(0.5), Dense({.units = 3})});
  model->compile({.optimizer = "adam",
                  .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                  .metrics = {"accuracy"}});
  return model;
}

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Keeps the loss of every step, by the number of the step; throws after `stop_after` steps.
struct StepRecorder : Callback {
  void on_train_batch_end(int64_t, const Logs& logs) override {
    const int64_t step = model()->optimizer().iterations().value().item<int64_t>();
    const auto [at, is_new] = losses.try_emplace(step, logs["loss"]);
    EXPECT_EQ(at->second, logs["loss"]) << "step " << step;
    if (--stop_after == 0) throw Interrupted();
  }
  std::map<int64_t, double> losses;
  int64_t stop_after = -1;
};

struct Outcome {
  std::map<int64_t, double> losses;
  std::map<std::string, std::vector<double>> history;
  std::vector<std::vector<float>> weights;
  double rate = 0;
};

using TrainingRun = std::function<History(Model& model, FitOptions options)>;

void finish(Outcome& out, const Model& model, const History& history) {
  out.history = history.history;
  for (const Tensor& t : model.get_weights()) out.weights.push_back(t.to_vector<float>());
  out.rate = cast(model.optimizer().learning_rate(), float64).item<double>();
}

using Extra = std::function<std::vector<CallbackPtr>()>;
const Extra kNoCallbacks = [] { return std::vector<CallbackPtr>(); };

Outcome uninterrupted(const TrainingRun& run, const Extra& extra) {
  utils::set_random_seed(7);
  const auto model = dropout_model();
  const auto recorder = std::make_shared<StepRecorder>();
  std::vector<CallbackPtr> callbacks = extra();
  callbacks.push_back(recorder);
  Outcome out;
  finish(out, *model, run(*model, {.epochs = 4, .verbose = 0, .callbacks = callbacks}));
  out.losses = recorder->losses;
  return out;
}

// Interrupted after every `steps` steps, every time in another model, whose random numbers begin elsewhere.
Outcome interrupted(const TrainingRun& run, const Extra& extra, int64_t steps, int64_t save_every) {
  const TempDir dir;
  const auto recorder = std::make_shared<StepRecorder>();
  for (int64_t attempt = 0; attempt < 200; ++attempt) {
    const bool has_state = Env::posix().exists(dir.file("checkpoint"));
    utils::set_random_seed(has_state ? 1000 + attempt : 7);
    const auto model = dropout_model();
    recorder->stop_after = steps;
    std::vector<CallbackPtr> callbacks = extra();
    callbacks.push_back(recorder);
    FitOptions options{.epochs = 4, .verbose = 0, .callbacks = callbacks};
    options.resume = dir.path();
    options.resume_freq = save_every;
    try {
      Outcome out;
      finish(out, *model, run(*model, options));
      out.losses = recorder->losses;
      return out;
    } catch (const Interrupted&) {
    }
  }
  ADD_FAILURE() << "the training does not come to its end";
  return {};
}

void expect_same(const Outcome& got, const Outcome& wanted) {
  EXPECT_EQ(got.losses, wanted.losses);
  EXPECT_EQ(got.history, wanted.history);
  EXPECT_EQ(got.weights, wanted.weights);
  EXPECT_EQ(got.rate, wanted.rate);
}

void expect_resumes(const TrainingRun& run, const Extra& extra = kNoCallbacks) {
  const Outcome wanted = uninterrupted(run, extra);
  EXPECT_GE(wanted.losses.size(), 8u);
  for (const auto& [steps, save_every] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {3, 2}, {5, 1}, {7, 3}, {11, 0}}) {
    SCOPED_TRACE(testing::Message() << "interrupted after " << steps << ", saved after " << save_every);
    expect_same(interrupted(run, extra, steps, save_every), wanted);
  }
}

TEST(Resume, SamplesThatAreShuffled) {
  expect_resumes([](Model& model, FitOptions options) {
    options.batch_size = 16;
    const ResumeSamples samples;
    return model.fit(samples.x, samples.y, options);
  });
}

data::AnyDataset noisy_batches() {
  const ResumeSamples samples;
  return data::AnyDataset(data::from_tensor_slices(samples.x, samples.y)
                              .shuffle(20)
                              .map(
                                  [](const Tensor& x, const Tensor& y) {
                                    return std::tuple{x + random::normal({4}, 0, 0.1), y};
                                  },
                                  {.num_parallel_calls = 3})
                              .batch(16)
                              .prefetch(2));
}

TEST(Resume, ParallelMapsThatDraw) {
  expect_resumes([](Model& model, FitOptions options) { return model.fit(noisy_batches(), options); });
}

TEST(Resume, OneIteratorForAllEpochs) {
  expect_resumes([](Model& model, FitOptions options) {
    options.steps_per_epoch = 3;
    return model.fit(noisy_batches().repeat(), options);
  });
}

TEST(Resume, WithValidation) {
  expect_resumes([](Model& model, FitOptions options) {
    options.batch_size = 16;
    options.validation_split = 0.2;
    const ResumeSamples samples;
    return model.fit(samples.x, samples.y, options);
  });
}

TEST(Resume, CallbacksThatWait) {
  const Extra extra = [] {
    return std::vector<CallbackPtr>{
        std::make_shared<ReduceLROnPlateau>(
            ReduceLROnPlateauOptions{.monitor = "accuracy", .factor = 0.5, .patience = 1}),
        std::make_shared<LearningRateScheduler>([](int64_t, double rate) { return rate * 0.9; }),
        std::make_shared<EarlyStopping>(
            EarlyStoppingOptions{.monitor = "loss", .min_delta = 0.05, .patience = 2, .restore_best_weights = true})};
  };
  expect_resumes(
      [](Model& model, FitOptions options) {
        options.batch_size = 16;
        const ResumeSamples samples;
        return model.fit(samples.x, samples.y, options);
      },
      extra);
}

TEST(Resume, FilesOfCallbacks) {
  const TempDir dir;
  const auto run_to = [&](const std::string& name) {
    return [&dir, name] {
      return std::vector<CallbackPtr>{
          std::make_shared<CSVLogger>(dir.file(name + ".csv")),
          std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.filepath = dir.file(name + "-{epoch}.h5"),
                                                                   .monitor = "loss",
                                                                   .save_best_only = true,
                                                                   .save_weights_only = true})};
    };
  };
  const TrainingRun run = [](Model& model, FitOptions options) {
    options.batch_size = 16;
    const ResumeSamples samples;
    return model.fit(samples.x, samples.y, options);
  };
  expect_same(interrupted(run, run_to("b"), 3, 2), uninterrupted(run, run_to("a")));
  EXPECT_EQ(test::read_text(dir.file("b.csv")), test::read_text(dir.file("a.csv")));
  std::vector<std::string> a, b;
  for (const std::string& name : Env::posix().list(dir.path())) (name[0] == 'a' ? a : b).push_back(name.substr(1));
  EXPECT_EQ(a, b);
}

TEST(Resume, ATrainingThatHasEnded) {
  const TempDir dir;
  const ResumeSamples samples;
  FitOptions options{.batch_size = 16, .epochs = 2, .verbose = 0};
  options.resume = dir.path();
  const auto model = dropout_model(), again = dropout_model();
  const History first = model->fit(samples.x, samples.y, options);
  const History second = again->fit(samples.x, samples.y, options);
  EXPECT_EQ(first.history, second.history);
  EXPECT_EQ(first.epoch, second.epoch);
  EXPECT_EQ(model->get_weights()[0].to_vector<float>(), again->get_weights()[0].to_vector<float>());
  options.epochs = 3;  // goes on from there
  EXPECT_EQ(again->fit(samples.x, samples.y, options).epoch, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(again->optimizer().iterations().value().item<int64_t>(), 12);
  // The newest state only.
  EXPECT_EQ(Env::posix().list(dir.path()).size(), 3u);
}

TEST(Resume, BackupAndRestoreOfKeras) {
  const TempDir dir;
  const ResumeSamples samples;
  const auto attempt = [&](int64_t stop_after) {
    const auto model = dropout_model();
    const auto recorder = std::make_shared<StepRecorder>();
    recorder->stop_after = stop_after;
    const CallbackPtr backup = std::make_shared<BackupAndRestore>(dir.path());
    model->fit(samples.x, samples.y,
               {.batch_size = 16, .epochs = 3, .verbose = 0, .callbacks = std::vector<CallbackPtr>{backup, recorder}});
    return recorder->losses.size();
  };
  EXPECT_THROW(attempt(6), Interrupted);
  EXPECT_TRUE(Env::posix().exists(dir.file("chief/checkpoint")));
  EXPECT_EQ(attempt(-1), 8u);  // the second and the third epoch, of 4 batches each
  EXPECT_FALSE(Env::posix().exists(dir.file("chief")));
}

TEST(Resume, RefusesWhatIsAnotherTraining) {
  const TempDir dir;
  const ResumeSamples samples;
  FitOptions options{.batch_size = 16, .verbose = 0};
  options.resume = dir.path();
  dropout_model()->fit(samples.x, samples.y, options);
  options.epochs = 2;
  Sequential other({Dense({.units = 9}), Dense({.units = 3})});
  other.compile({.optimizer = "sgd", .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  EXPECT_THROW(other.fit(samples.x, samples.y, options), Error);
  Sequential fewer({Dense({.units = 3})});
  fewer.compile({.optimizer = "sgd", .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  EXPECT_THROW(fewer.fit(samples.x, samples.y, options), Error);
  options.batch_size = 20;
  expect_error([&] { dropout_model()->fit(samples.x, samples.y, options); }, Code::failed_precondition,
               "an epoch had 4 batches");
  options.callbacks = CallbackList{BackupAndRestore(dir.file("b"))};
  expect_error([&] { dropout_model()->fit(samples.x, samples.y, options); }, Code::invalid_argument, "one place");
  FitOptions nowhere{.verbose = 0};
  nowhere.resume_freq = 3;
  expect_error([&] { dropout_model()->fit(samples.x, samples.y, nowhere); }, Code::invalid_argument, "resume_freq");
}

// A model that has its weights: `units` are those of its layers.
std::shared_ptr<Sequential> built_model(const std::vector<int64_t>& units) {
  auto model = std::make_shared<Sequential>(std::initializer_list<LayerArg>{Input({4})});
  for (const int64_t n : units) model->add(Dense(n));
  model->compile({.optimizer = "adam", .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  return model;
}

struct BeginCounter : Callback {
  void on_train_begin(const Logs&) override { ++begins; }
  int begins = 0;
};

// A training of this model from the folder is an Error, and all is as if it had never been tried.
void expect_refuses(const std::shared_ptr<Sequential>& model, const std::string& folder, const std::string& text) {
  const TempDir dir;
  const std::string csv = dir.file("log.csv");
  Env::posix().write_file(csv, as_bytes("epoch,loss\n0,1\n"));
  const auto counter = std::make_shared<BeginCounter>();
  FitOptions options{.batch_size = 16, .epochs = 3, .verbose = 0};
  options.callbacks = std::vector<CallbackPtr>{std::make_shared<CSVLogger>(csv), counter};
  options.resume = folder;
  const auto random_state = [] { return random::program_state()->savable_values()[0].get()[0].to_vector<int64_t>(); };
  const auto weights = [&] {
    std::vector<std::vector<float>> all;
    for (const Tensor& t : model->get_weights()) all.push_back(t.to_vector<float>());
    return all;
  };
  const auto weights_before = weights();
  const auto random_before = random_state();
  const ResumeSamples samples;
  try {
    model->fit(samples.x, samples.y, options);
    ADD_FAILURE() << "no error, wanted: " << text;
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_THAT(said, testing::HasSubstr(text));
    EXPECT_THAT(said, testing::HasSubstr("resume_test.cpp"));  // the line of fit
    EXPECT_THAT(said, testing::Not(testing::HasSubstr("fit_backup.cpp")));
  }
  EXPECT_EQ(weights(), weights_before);
  EXPECT_EQ(random_state(), random_before);
  for (const Tensor& t : model->optimizer().get_weights()) {  // iterations, and Adam's averages, which begin at zero
    EXPECT_EQ(reduce_max(abs(cast(t, float64))).item<double>(), 0);
  }
  EXPECT_EQ(counter->begins, 0);
  EXPECT_EQ(test::read_text(csv), "epoch,loss\n0,1\n");
}

// What a training of two epochs leaves in a folder; returns the prefix.
std::string leave_state(const std::string& folder) {
  const ResumeSamples samples;
  FitOptions options{.batch_size = 16, .epochs = 2, .verbose = 0};
  options.resume = folder;
  built_model({8, 3})->fit(samples.x, samples.y, options);
  return train::latest_checkpoint(folder).value();
}

TEST(Resume, AnotherModelChangesNothing) {
  const TempDir dir;
  leave_state(dir.path());
  expect_refuses(built_model({9, 3}), dir.path(), "does not fit the program");
  expect_refuses(built_model({8, 3, 3}), dir.path(), "had another model");  // known after the first layers have values
}

TEST(Resume, ADamagedStateChangesNothing) {
  const TempDir dir;
  const std::string shard = io::checkpoint_shards_on_disk(leave_state(dir.path())).at(0);
  std::vector<std::byte> bytes = Env::posix().read_file(shard);
  std::vector<std::byte> damaged = bytes;
  damaged[bytes.size() / 2] ^= std::byte{1};
  Env::posix().write_file(shard, damaged);
  expect_refuses(built_model({8, 3}), dir.path(), shard);
  damaged = bytes;
  damaged.resize(bytes.size() / 2);
  Env::posix().write_file(shard, damaged);
  expect_refuses(built_model({8, 3}), dir.path(), shard);
  Env::posix().write_file(shard, bytes);
  const ResumeSamples samples;
  FitOptions options{.batch_size = 16, .epochs = 3, .verbose = 0};
  options.resume = dir.path();
  EXPECT_EQ(built_model({8, 3})->fit(samples.x, samples.y, options).epoch, (std::vector<int64_t>{0, 1, 2}));
}

// Written whole, by a program that is not ours.
TEST(Resume, AStateWithoutItsLogsIsAnError) {
  const TempDir dir;
  const std::string prefix = leave_state(dir.path());
  const std::string key = "progress/.ATTRIBUTES/STATE";
  std::vector<std::string> texts = train::load_variable(prefix, key).to_vector<std::string>();
  const auto logs = std::ranges::find(texts, "logs/values");
  ASSERT_NE(logs, texts.end());
  texts.erase(logs, logs + 3);
  {
    const io::CheckpointReader reader(prefix);
    io::CheckpointWriter writer(prefix);
    for (const io::CheckpointEntry& entry : reader.entries()) {
      if (entry.key == key) continue;
      writer.add_raw(entry.key, entry.dtype, entry.shape, entry.crc32c, reader.read_raw(entry));
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::vector<int64_t> shape{static_cast<int64_t>(texts.size())};
    writer.add_strings(key, shape, views);
    writer.finish();
  }
  expect_refuses(built_model({8, 3}), dir.path(), "has no 'logs/values' of a training");
}

TEST(Resume, AStateFileThatLeadsNowhereIsAnError) {
  const TempDir dir;
  const std::string prefix = leave_state(dir.path());
  const std::string state = test::read_text(dir.file("checkpoint"));
  for (const std::string text : {"", "garbage {", "model_checkpoint_path: \"ckp"}) {
    Env::posix().write_file(dir.file("checkpoint"), as_bytes(text));
    expect_refuses(built_model({8, 3}), dir.path(), dir.file("checkpoint"));
  }
  Env::posix().write_file(dir.file("checkpoint"), as_bytes(state));
  Env::posix().remove(io::checkpoint_index_path(prefix));
  expect_refuses(built_model({8, 3}), dir.path(), "whose index is missing");
  EXPECT_EQ(io::checkpoint_shards_on_disk(prefix).size(), 1u);  // what is left is not removed
}

TEST(Resume, AFolderThatCannotBeWrittenIsAnErrorOfTheCall) {
  const TempDir dir;
  Env::posix().write_file(dir.file("file"), as_bytes("no folder"));
  const ResumeSamples samples;
  FitOptions options{.verbose = 0};
  options.resume = dir.file("file/state");
  try {
    built_model({3})->fit(samples.x, samples.y, options);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("resume_test.cpp"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("fit_backup.cpp")));
  }
}

// The same in a loop of one's own: model, optimizer, iterator and random state in one checkpoint.
TEST(Resume, LoopsOfYourOwn) {
  const TempDir dir;
  struct Training {
    std::shared_ptr<Sequential> model = std::make_shared<Sequential>(
        std::initializer_list<LayerArg>{Input({4}), Dense({.units = 8}), Dropout(0.5), Dense({.units = 3})});
    optimizers::Adam optimizer{{.learning_rate = 0.01}};
    data::AnyDataset batches = noisy_batches().repeat();
    data::AnyIterator iterator = batches.make_iterator();
    metrics::Mean mean;
    train::Checkpoint checkpoint{{{"model", *model},
                                  {"optimizer", optimizer},
                                  {"iterator", iterator},
                                  {"mean", mean},
                                  {"random", random::program_state()}}};
    float step() {
      const Nest batch = *iterator.next();
      GradientTape tape;
      const Tensor loss = reduce_mean(
          nn::sparse_softmax_cross_entropy_with_logits(batch[1].leaf(), (*model)(batch[0].leaf(), {.training = true})));
      optimizer.minimize(loss, model->trainable_variables(), tape);
      mean.update_state(loss);
      return mean.result().item<float>();
    }
  };
  utils::set_random_seed(5);
  std::vector<float> wanted;
  std::string path;
  {
    Training training;
    for (int i = 0; i < 20; ++i) {
      wanted.push_back(training.step());
      if (i == 8) path = training.checkpoint.save(dir.file("ckpt"));
    }
  }
  utils::set_random_seed(99);
  Training training;
  training.optimizer.build(training.model->trainable_variables());
  training.checkpoint.restore(path).assert_consumed();
  std::vector<float> got;
  for (int i = 9; i < 20; ++i) got.push_back(training.step());
  EXPECT_EQ(got, std::vector<float>(wanted.begin() + 9, wanted.end()));
}

TEST(Resume, TheRandomStateOfTheProgram) {
  const TempDir dir;
  train::Checkpoint checkpoint({{"random", random::program_state()}});
  utils::set_random_seed(3);
  const auto draw = [] {
    std::vector<float> all = random::normal({3}).to_vector<float>();
    for (const float v : random::uniform({2}, 0, 1, float32, 42).to_vector<float>()) all.push_back(v);
    for (const float v : random::truncated_normal({2}).to_vector<float>()) all.push_back(v);
    return all;
  };
  draw();
  const std::string path = checkpoint.save(dir.file("r"));
  const std::vector<float> wanted = draw();
  EXPECT_NE(draw(), wanted);
  utils::set_random_seed(4);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(draw(), wanted);
}

}  // namespace
}  // namespace runnel::keras
