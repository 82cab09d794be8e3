// Learns to write text, character by character: an LSTM cell reads 40 characters and guesses the next one. Then it
// writes on by itself at several temperatures. usage: text_generation [FILE] [--batches N] [--seed N]
// Without a file it learns a licence that Debian installs or, where there is none, a made-up text.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runnel/keras/layers/dense.h"
#include "runnel/keras/layers/recurrent.h"
#include "runnel/keras/losses.h"
#include "runnel/keras/model.h"
#include "runnel/keras/optimizers.h"
#include "runnel/runnel.h"

using namespace runnel;

constexpr int64_t kSequenceLength = 40;
constexpr int64_t kBatchSize = 50;

class Corpus {
 public:
  explicit Corpus(const std::string& raw) {
    for (const char c : raw) number_.emplace(c, 0);
    for (auto& [c, number] : number_) {
      number = static_cast<int32_t>(characters_.size());
      characters_ += c;
    }
    for (const char c : raw) text_.push_back(number_.at(c));
  }

  int64_t num_characters() const { return static_cast<int64_t>(characters_.size()); }
  size_t size() const { return text_.size(); }
  char character(int64_t number) const { return characters_[static_cast<size_t>(number)]; }

  // Sequences from random places, int32 [batch, length], and the character that follows each.
  std::pair<Tensor, Tensor> batch(std::mt19937& engine, int64_t batch_size) const {
    std::uniform_int_distribution<size_t> pick(0, text_.size() - kSequenceLength - 1);
    std::vector<int32_t> sequences, next;
    for (int64_t i = 0; i < batch_size; ++i) {
      const auto at = text_.begin() + static_cast<std::ptrdiff_t>(pick(engine));
      sequences.insert(sequences.end(), at, at + kSequenceLength);
      next.push_back(*(at + kSequenceLength));
    }
    return {Tensor::of<int32_t>(sequences, {batch_size, kSequenceLength}), Tensor::of<int32_t>(next)};
  }

 private:
  std::map<char, int32_t> number_;
  std::string characters_;
  std::vector<int32_t> text_;
};

struct Rnn : keras::Model {
  explicit Rnn(int64_t characters) : num_characters(characters) {}

  int64_t num_characters;
  keras::LSTMCell cell{this, "cell", {.units = 256}};
  keras::Dense dense{this, "dense", {.units = num_characters}};

  // The logits of the character that follows the sequences.
  Tensor call(const Tensor& sequences, const keras::CallArgs&) override {
    const Tensor inputs = one_hot(sequences, num_characters);  // [batch, length, characters]
    keras::States state = cell.get_initial_state(shape(sequences)[0]);
    Tensor output;
    for (int64_t t = 0; t < kSequenceLength; ++t) {
      auto [next, next_state] = cell(inputs(all, t), state);
      output = next;
      state = next_state;
    }
    return dense(output);
  }
};

// A character for each sequence, drawn by its probability; a low temperature prefers the likely ones.
Tensor next_characters(Rnn& model, const Tensor& sequences, double temperature) {
  return cast(random::categorical(model(sequences) / temperature, 1)(all, 0), int32);
}

std::string read_text(const std::string& file) {
  for (const std::string& name : {file, std::string("/usr/share/common-licenses/GPL-3")}) {
    if (name.empty()) continue;
    std::ifstream in(name, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (text.size() > 1000) return text;
    if (name == file) throw std::runtime_error(file + " is missing or too short to learn from");
  }
  std::string text;
  std::mt19937 engine(1);
  const char* words[] = {"the", "river", "runs", "to", "a", "quiet", "sea", "and", "carries", "leaves"};
  while (text.size() < 20000) text += std::string(words[engine() % std::size(words)]) + (engine() % 8 ? " " : ".\n");
  return text;
}

int main(int argc, char** argv) try {
  std::string file;
  int num_batches = 1000;
  int64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--batches") && i + 1 < argc) {
      num_batches = std::stoi(argv[++i]);
    } else if (!std::strcmp(argv[i], "--seed") && i + 1 < argc) {
      seed = std::stoll(argv[++i]);
    } else {
      file = argv[i];
    }
  }
  random::set_seed(seed);
  std::mt19937 engine(static_cast<uint32_t>(seed));
  const Corpus text(read_text(file));
  std::printf("%zu characters, %lld different ones\n", text.size(), static_cast<long long>(text.num_characters()));

  Rnn model(text.num_characters());
  keras::optimizers::Adam optimizer({.learning_rate = 0.001});
  const auto train_step = function([&](const Tensor& sequences, const Tensor& next) {
    GradientTape tape;
    const Tensor logits = model(sequences);
    const Tensor loss = reduce_mean(keras::losses::sparse_categorical_crossentropy(next, logits, true));
    optimizer.minimize(loss, model.trainable_variables(), tape);
    return loss;
  });
  for (int i = 0; i < num_batches; ++i) {
    const auto [sequences, next] = text.batch(engine, kBatchSize);
    const Tensor loss = train_step(sequences, next);
    if (i % 100 == 0 || i + 1 == num_batches)
      std::printf("batch %d: loss %f\n", i, static_cast<double>(loss.item<float>()));
  }

  const Tensor start = text.batch(engine, 1).first;
  for (const double temperature : {0.2, 0.5, 1.0, 1.2}) {
    std::printf("\ntemperature %.1f:\n", temperature);
    const auto predict = function([&](const Tensor& x) { return next_characters(model, x, temperature); });
    Tensor sequence = start;
    for (int i = 0; i < 400; ++i) {
      const Tensor next = predict(sequence);
      std::putchar(text.character(next.item<int32_t>()));
      sequence = concat({sequence(all, slice(1, none)), expand_dims(next, 1)}, 1);
    }
    std::printf("\n");
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "text_generation: %s\n", e.what());
  return 1;
}
