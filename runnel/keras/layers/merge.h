#pragma once

#include "runnel/keras/layer_of.h"

namespace runnel::keras {

struct MergeOptions {
  RUNNEL_LAYER_OPTIONS;
  static constexpr auto fields() { return field_list(); }
};

namespace merge_detail {
// The tensors of a call with new axes of size 1 after the batch, so that all have as many dimensions; an Error when
// their shapes do not broadcast.
RUNNEL_API std::vector<Tensor> aligned(const Layer& layer, const Nest& inputs);
// Where every input that has a mask is not masked.
RUNNEL_API Tensor joint_mask(const Nest& inputs, const Tensor& mask);
}  // namespace merge_detail

// Layers that make one tensor of several: y = Add()({a, b}).
template <class Self, class OptionsType = MergeOptions>
class MergeOf : public LayerOf<Self, OptionsType> {
 public:
  using Base = LayerOf<Self, OptionsType>;
  using Base::Base;
  using Base::operator();
  Tensor operator()(const std::vector<Tensor>& inputs, const CallArgs& args = {},
                    SourceSite where = SourceSite::current()) & {
    return Base::operator()(Nest(inputs), args, where).leaf();
  }
  Tensor operator()(const std::vector<Tensor>& inputs, const CallArgs& args = {},
                    SourceSite where = SourceSite::current()) && {
    return std::move(*this).Base::operator()(Nest(inputs), args, where).leaf();
  }
};

// Elementwise, by `static Tensor merge(const std::vector<Tensor>&)`. The batches are equal; the dimensions after them
// broadcast, those of inputs with fewer of them standing at the end.
template <class Self>
class ElementwiseMerge : public MergeOf<Self> {
 public:
  using MergeOf<Self>::MergeOf;
  void prepare() override { this->set_supports_masking(true); }
  Nest call(const Nest& inputs, const CallArgs&) override { return Self::merge(merge_detail::aligned(*this, inputs)); }
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override {
    return merge_detail::joint_mask(inputs, mask);
  }
};

class RUNNEL_API Add : public ElementwiseMerge<Add> {
 public:
  static constexpr const char* kClassName = "Add";
  using ElementwiseMerge::ElementwiseMerge;
  static Tensor merge(const std::vector<Tensor>& inputs);
};

// The first of two inputs without the second.
class RUNNEL_API Subtract : public ElementwiseMerge<Subtract> {
 public:
  static constexpr const char* kClassName = "Subtract";
  using ElementwiseMerge::ElementwiseMerge;
  static Tensor merge(const std::vector<Tensor>& inputs);
};

class RUNNEL_API Multiply : public ElementwiseMerge<Multiply> {
 public:
  static constexpr const char* kClassName = "Multiply";
  using ElementwiseMerge::ElementwiseMerge;
  static Tensor merge(const std::vector<Tensor>& inputs);
};

class RUNNEL_API Average : public ElementwiseMerge<Average> {
 public:
  static constexpr const char* kClassName = "Average";
  using ElementwiseMerge::ElementwiseMerge;
  static Tensor merge(const std::vector<Tensor>& inputs);
};

class RUNNEL_API Maximum : public ElementwiseMerge<Maximum> {
 public:
  static constexpr const char* kClassName = "Maximum";
  using ElementwiseMerge::ElementwiseMerge;
  static Tensor merge(const std::vector<Tensor>& inputs);
};

class RUNNEL_API Minimum : public ElementwiseMerge<Minimum> {
 public:
  static constexpr const char* kClassName = "Minimum";
  using ElementwiseMerge::ElementwiseMerge;
  static Tensor merge(const std::vector<Tensor>& inputs);
};

struct ConcatenateOptions {
  NamedOnly named_only = {};
  int64_t axis = -1;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&ConcatenateOptions::axis>;
  static constexpr auto fields() {
    return field_list(field("axis", &ConcatenateOptions::axis, "along which they stand"));
  }
};
// The inputs one after the other along an axis; their other dimensions are equal.
class RUNNEL_API Concatenate : public MergeOf<Concatenate, ConcatenateOptions> {
 public:
  static constexpr const char* kClassName = "Concatenate";
  using MergeOf::MergeOf;
  void prepare() override;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  Tensor compute_mask(const Nest& inputs, const Tensor& mask) override;
};

struct DotOptions {
  NamedOnly named_only = {};
  IntTuple axes = {};
  bool normalize = false;
  RUNNEL_LAYER_OPTIONS;
  using Positional = PositionalSettings<&DotOptions::axes>;
  static constexpr auto fields() {
    return field_list(field("axes", &DotOptions::axes, "of both inputs, or one of each"),
                      field("normalize", &DotOptions::normalize, "the cosine of the angle in place of the product"));
  }
};
// The sums of products of two inputs along an axis of each, example by example: [batch, other axes of the first, other
// axes of the second], or [batch, 1] when there are none.
class RUNNEL_API Dot : public MergeOf<Dot, DotOptions> {
 public:
  static constexpr const char* kClassName = "Dot";
  using MergeOf::MergeOf;
  void prepare() override;
  Nest call(const Nest& inputs, const CallArgs& args) override;
  Config get_config() const override;
};

}  // namespace runnel::keras
