#pragma once

#include <concepts>

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

// A layer as a setting of another: LSTM({.units = 8}) written in place, or one held by a pointer.
class RUNNEL_API LayerSetting : public LayerPtr {
 public:
  static constexpr const char* kTypeName = "Layer";  // in listings of settings
  LayerSetting() = default;
  template <class L>
    requires std::convertible_to<L*, Layer*>
  LayerSetting(std::shared_ptr<L> layer) : LayerPtr(std::move(layer)) {}  // NOLINT: implicit, as below
  template <class L>
    requires std::derived_from<L, Layer> && requires { typename L::Options; }
  LayerSetting(L&& layer) : LayerPtr(std::make_shared<L>(std::move(layer))) {}  // NOLINT

  Config config() const { return *this ? layer_to_config(**this) : Config(); }
  static LayerSetting from_config(const Config& config) {
    return config.is_null() ? LayerSetting() : LayerSetting(layer_from_config(config));
  }
};

struct BidirectionalOptions {
  NamedOnly named_only = {};
  LayerSetting layer = {};
  std::string merge_mode = "concat";
  LayerSetting backward_layer = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&BidirectionalOptions::layer, &BidirectionalOptions::merge_mode>;
  static constexpr auto fields() {
    using O = BidirectionalOptions;
    return field_list(
        field("layer", &O::layer, "the layer that is wrapped"),
        field("merge_mode", &O::merge_mode, "\"sum\", \"mul\", \"ave\"; \"none\" (or \"\"): a list of both outputs"),
        field("backward_layer", &O::backward_layer,
              "the one for the reversed sequence; `layer` with go_backwards the other way round, unless given"));
  }
};
// A recurrent layer over the sequence and another over the reversed sequence. Both are made anew by the
// configuration of `layer`. The states of return_state and initial_state are those of the forward layer, then those of
// the backward one.
class RUNNEL_API Bidirectional : public LayerOf<Bidirectional, BidirectionalOptions> {
 public:
  static constexpr const char* kClassName = "Bidirectional";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  void build(const NestOf<PartialShape>& inputs) override;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  using Layer::call;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;
  void reset_states();

  LayerPtr forward_layer;
  LayerPtr backward_layer;

 private:
  bool return_sequences_ = false;
  bool return_state_ = false;
  bool time_major_ = false;
};

struct TimeDistributedOptions {
  NamedOnly named_only = {};
  LayerSetting layer = {};
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&TimeDistributedOptions::layer>;
  static constexpr auto fields() {
    return field_list(field("layer", &TimeDistributedOptions::layer, "the layer that is wrapped"));
  }
};
// The layer applied to every step: [batch, time, ...] -> [batch, time, ...]. A mask [batch, time, ...] reaches it as
// [batch * time, ...]; the mask of the result is what the layer makes of it, or tells which steps have anything.
class RUNNEL_API TimeDistributed : public LayerOf<TimeDistributed, TimeDistributedOptions> {
 public:
  static constexpr const char* kClassName = "TimeDistributed";
  using LayerOf::LayerOf;
  void prepare() override;
  void build(const PartialShape& input) override;
  Tensor call(const Tensor& input, const CallArgs& args) override;
  using Layer::call;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;

  LayerPtr layer;
};

}  // namespace runnel::keras
