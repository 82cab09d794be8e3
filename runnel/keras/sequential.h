#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runnel/keras/layer_of.h"
#include "runnel/keras/model.h"

namespace runnel::keras {

// A layer handed to a model: moved in, or shared. A variable is neither, for a copy would have weights of its own.
class RUNNEL_API LayerArg {
 public:
  template <class L>
    requires std::derived_from<std::remove_cvref_t<L>, Layer>
  LayerArg(L&& layer) : LayerArg(moved_in(std::forward<L>(layer))) {}  // NOLINT: implicit, as all below
  template <std::derived_from<Layer> L>
  LayerArg(std::shared_ptr<L> layer) : layer_(std::move(layer)) {  // NOLINT
    if (layer_) layer_->name();  // layers of your own class have their numbers in the order of the list
  }
  template <std::derived_from<Layer> L>
  LayerArg(const Shared<L>& layer) : layer_(layer) {}                       // NOLINT
  LayerArg(const Tensor& input, SourceSite where = SourceSite::current());  // NOLINT: keras::Input, at the beginning
  LayerArg(const Activation& activation);                                   // NOLINT: Activation("relu") as a layer
  const LayerPtr& layer() const { return layer_; }

 private:
  template <class L>
  static auto moved_in(L&& layer) {
    constexpr bool is_variable = std::is_lvalue_reference_v<L> || std::is_const_v<L>;
    static_assert(!is_variable,
                  "a layer that is a variable cannot be shared with a model, which may outlive it: make it with "
                  "auto dense = keras::make<keras::Dense>(...), or hand it over with std::move(dense)");
    if constexpr (!is_variable) return std::make_shared<L>(std::forward<L>(layer));
  }

  LayerPtr layer_;
};

// Layers one after the other:
//   keras::Sequential model({keras::Flatten(), keras::Dense(100, {.activation = "relu"}), ...});
// or on the heap, std::make_shared<keras::Sequential>(keras::Flatten(), keras::Dense(100)).
// Weights are made when the shape of the input is known: from keras::Input at the beginning, .input_shape of the first
// layer, by build_for_shape, or at the first call.
class RUNNEL_API Sequential : public Model {
 public:
  Sequential(std::initializer_list<LayerArg> layers = {}, LayerOptions options = {},
             CallSite where = CallSite(SourceSite::current()));
  template <std::convertible_to<LayerArg>... L>
    requires(sizeof...(L) > 1)
  explicit Sequential(L&&... layers) : Sequential({LayerArg(std::forward<L>(layers))...}) {}
  // A member of a model: keras::Sequential body{this, "body", {keras::Dense(10), keras::Dropout(0.5)}};
  Sequential(Layer* parent, const std::string& attribute, std::initializer_list<LayerArg> layers = {},
             LayerOptions options = {}, CallSite where = CallSite(SourceSite::current()));
  Sequential(Sequential&&) = default;
  Sequential& operator=(Sequential&&) = default;
  explicit Sequential(const std::vector<LayerPtr>& layers, LayerOptions options = {},
                      SourceSite where = SourceSite::current());
  void add(const LayerArg& argument, SourceSite where = SourceSite::current());
  void pop(SourceSite where = SourceSite::current());  // takes the last layer away

  std::string class_name() const override { return "Sequential"; }
  Config get_config() const override;
  static std::shared_ptr<Sequential> from_config(const Config& config, SourceSite where = SourceSite::current());
  using Model::build;
  void build(const PartialShape& input) override;

 protected:
  std::vector<Layer*> numbered_layers() const override;

 private:
  void build_for(const Nest& inputs) override;
  void connect(const PartialShape& input, DType dtype, const std::string& input_name);
  void describe_if_possible();

  std::vector<LayerPtr> layers_;  // without the InputLayer
  DType build_dtype_ = DType::float32;
  LayerPtr input_;  // the InputLayer, if one was given
};

// make<Sequential>({Flatten(), Dense(10)})
template <std::same_as<Sequential> S>
Shared<S> make(std::initializer_list<LayerArg> layers, LayerOptions options = {}) {
  return std::make_shared<S>(layers, std::move(options));
}

}  // namespace runnel::keras
