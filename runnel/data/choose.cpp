// One of several datasets for each element: by a dataset of choices, or at random.
#include <cmath>

#include "runnel/base/format.h"
#include "runnel/base/philox.h"
#include "runnel/data/node.h"
#include "runnel/data/nodes.h"

namespace runnel::data {
namespace {

class ChooseNode : public DatasetNode {
 public:
  // Without weights the last input gives the choices.
  ChooseNode(std::vector<NodePtr> inputs, std::vector<double> weights, bool stop, uint64_t seed, bool anew)
      : DatasetNode(std::move(inputs)), weights_(std::move(weights)), stop_(stop), seed_(seed), anew_(anew) {
    const char* who = weights_.empty() ? "choose_from_datasets" : "sample_from_datasets";
    spec_ = this->inputs()[0]->element_spec();
    for (size_t k = 1; k < count(); ++k) spec_ = relaxed(spec_, this->inputs()[k]->element_spec(), who);
  }
  std::string name() const override { return weights_.empty() ? "ChooseFromDatasets" : "SampleFromDatasets"; }
  ElementSpec element_spec() const override { return spec_; }
  int64_t cardinality() const override {
    if (weights_.empty() || stop_) return UNKNOWN_CARDINALITY;
    int64_t total = 0;
    for (const NodePtr& in : inputs()) {
      const int64_t n = in->cardinality();
      if (n < 0) return n;
      total += n;
    }
    return total;
  }
  uint64_t seed() const override { return seed_; }

 protected:
  IteratorPtr make_iterator(const Context& ctx) const override {
    struct It : IteratorNode {
      std::shared_ptr<Pipeline> pipeline;
      std::vector<IteratorPtr> inputs;
      IteratorPtr choice;
      std::vector<double> weights;
      std::vector<bool> ended;
      bool stop = false;
      uint64_t key = 0, drawn = 0;
      std::optional<size_t> choose() {
        if (choice) {
          Item item;
          if (!choice->next(item)) return std::nullopt;
          const Tensor& t = item.tensors.at(0);
          const int64_t k = t.dtype() == DType::int32 ? t.item<int32_t>() : t.item<int64_t>();
          if (k < 0 || k >= static_cast<int64_t>(inputs.size())) {
            throw invalid_argument("[choose_from_datasets] the choice is {}, but there are {} datasets", k,
                                   inputs.size());
          }
          return static_cast<size_t>(k);
        }
        double total = 0;
        for (size_t k = 0; k < weights.size(); ++k) total += ended[k] ? 0 : weights[k];
        if (total <= 0) return std::nullopt;
        Philox gen(key);
        gen.skip(drawn++);
        const auto words = gen();
        double x = uniform_double(words[0], words[1]) * total;
        size_t last = 0;
        for (size_t k = 0; k < weights.size(); ++k) {
          if (ended[k] || weights[k] <= 0) continue;
          last = k;
          if (x < weights[k]) return k;
          x -= weights[k];
        }
        return last;
      }
      bool produce(Item& out) override {
        while (true) {
          check_cancelled(*pipeline);
          const std::optional<size_t> k = choose();
          if (!k) return false;
          if (!ended[*k] && inputs[*k]->next(out)) return true;
          ended[*k] = true;
          if (stop) return false;
        }
      }
      void save(StateWriter& out) const override {
        out.integer(drawn);
        for (const bool e : ended) out.integer(e);
        for (const IteratorPtr& in : inputs) save_nested(*in, out);
        if (choice) save_nested(*choice, out);
      }
      void restore(StateReader& in) override {
        drawn = in.integer();
        for (auto&& at_end : ended) at_end = in.integer() != 0;
        for (const IteratorPtr& it : inputs) restore_nested(*it, in);
        if (choice) restore_nested(*choice, in);
      }
    };
    auto it = std::make_unique<It>();
    it->pipeline = ctx.pipeline;
    for (size_t k = 0; k < count(); ++k) it->inputs.push_back(inputs()[k]->iterate(ctx));
    if (weights_.empty()) it->choice = inputs().back()->iterate(ctx);
    it->weights = weights_;
    it->ended.assign(count(), false);
    it->stop = stop_;
    it->key = mix(seed_in(ctx), anew_ ? ctx.epoch : 0);
    return it;
  }

 private:
  size_t count() const { return weights_.empty() ? inputs().size() - 1 : inputs().size(); }
  std::vector<double> weights_;
  bool stop_;
  uint64_t seed_;
  bool anew_;
  ElementSpec spec_;
};

}  // namespace

NodePtr nodes::choose(std::vector<NodePtr> inputs, NodePtr choice, bool stop_on_empty) {
  if (inputs.empty()) throw invalid_argument("[choose_from_datasets] there is no dataset to choose from");
  inputs.push_back(std::move(choice));
  return std::make_shared<ChooseNode>(std::move(inputs), std::vector<double>{}, stop_on_empty, 0, true);
}

NodePtr nodes::sample(std::vector<NodePtr> inputs, std::vector<double> weights, std::optional<int64_t> seed,
                      bool stop_on_empty, bool rerandomize_each_iteration) {
  if (inputs.empty()) throw invalid_argument("[sample_from_datasets] there is no dataset to sample from");
  if (weights.empty()) weights.assign(inputs.size(), 1.0);
  if (weights.size() != inputs.size()) {
    throw invalid_argument("[sample_from_datasets] {} weights for {} datasets", weights.size(), inputs.size());
  }
  double total = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    total += weights[k];
    if (weights[k] >= 0 && std::isfinite(total)) continue;
    throw invalid_argument("[sample_from_datasets] weight {} is {}: weights are numbers of 0 or more", k, weights[k]);
  }
  if (total == 0) throw invalid_argument("[sample_from_datasets] all weights are 0: there is nothing to sample");
  return std::make_shared<ChooseNode>(std::move(inputs), std::move(weights), stop_on_empty,
                                      seed ? mix(static_cast<uint64_t>(*seed), 0) | 1 : draw_seed(),
                                      rerandomize_each_iteration);
}

}  // namespace runnel::data
