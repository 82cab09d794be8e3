// Values that may be there or not, as graphs of TensorFlow hand them around.
#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/tensor/handle.h"
#include "runnel/tensor/tensor.h"

namespace runnel {
namespace {

struct OptionalFromAttrs {
  std::vector<DType> Toutput_types;
  static constexpr auto fields() {
    return field_list(field("Toutput_types", &OptionalFromAttrs::Toutput_types, {.required = true, .minimum = 1}));
  }
};
struct OptionalGetAttrs {
  std::vector<DType> output_types;
  std::vector<PartialShape> output_shapes;
  static constexpr auto fields() {
    constexpr AttrRule some{.required = true, .minimum = 1};
    return field_list(field("output_types", &OptionalGetAttrs::output_types, some),
                      field("output_shapes", &OptionalGetAttrs::output_shapes, some));
  }
};

class OptionalValue : public Object {
 public:
  OptionalValue() = default;
  explicit OptionalValue(std::vector<Tensor> parts) : parts(std::move(parts)), has_value(true) {}
  std::string describe() const override { return has_value ? "an optional value" : "an optional without a value"; }

  const std::vector<Tensor> parts;
  const bool has_value = false;
};

Tensor optional_tensor(std::shared_ptr<const OptionalValue> value) {
  Tensor t = Tensor::empty(DType::variant, {});
  t.mutable_data<VariantValue>()->object = std::move(value);
  return t;
}

const OptionalValue& optional_of(const Tensor& t) {
  const Object* object = held_object(t);
  const auto* value = dynamic_cast<const OptionalValue*>(object);
  if (!value) throw invalid_argument("the variant holds {}, no optional", object ? object->describe() : "nothing");
  return *value;
}

}  // namespace

void register_optional_values(Registry& r) {
  const Tensor full =
      optional_tensor(std::make_shared<OptionalValue>(std::vector<Tensor>{Tensor{1.f, 2.f}, Tensor(3)}));
  const Tensor none = optional_tensor(std::make_shared<OptionalValue>());

  r.define<OptionalFromAttrs>("OptionalFromValue")
      .in_any_list("components", "Toutput_types")
      .out("optional", DType::variant)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c) {
        std::vector<Tensor> parts;
        for (int i = 0; i < c.num_inputs(); ++i) parts.push_back(c.in(i));
        c.forward(0, optional_tensor(std::make_shared<OptionalValue>(std::move(parts))));
      })
      .any_device()
      .doc("An optional that holds these tensors.");

  r.define("OptionalNone")
      .out("optional", DType::variant)
      .shape(scalar_shape)
      .forwards()
      .cpu([](KernelContext& c) { c.forward(0, optional_tensor(std::make_shared<OptionalValue>())); })
      .doc("An optional without a value.");

  r.define("OptionalHasValue")
      .in("optional", DType::variant)
      .out("has_value", DType::bool_)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { *c.out<bool>() = optional_of(c.in(0)).has_value; })
      .doc("Whether an optional has a value.")
      .sample({.in = {full}, .out = {Tensor(true)}})
      .sample({.in = {none}, .out = {Tensor(false)}});

  r.define<OptionalGetAttrs>("OptionalGetValue")
      .in("optional", DType::variant)
      .out_any_list("components", "output_types")
      .shape([](InferContext& c, const OptionalGetAttrs& a) {
        if (a.output_shapes.size() != a.output_types.size()) {
          throw invalid_argument("{} output_shapes for {} output_types", a.output_shapes.size(), a.output_types.size());
        }
        for (int i = 0; i < c.num_outputs(); ++i) c.output(i, a.output_shapes[static_cast<size_t>(i)]);
      })
      .forwards()
      .cpu([](KernelContext& c, const OptionalGetAttrs& a) {
        const OptionalValue& value = optional_of(c.in(0));
        if (!value.has_value) throw invalid_argument("the optional has no value");
        if (value.parts.size() != a.output_types.size()) {
          throw invalid_argument("the optional has {} components, not {}", value.parts.size(), a.output_types.size());
        }
        for (size_t i = 0; i < value.parts.size(); ++i) {
          const Tensor& part = value.parts[i];
          if (part.dtype() != a.output_types[i] || !a.output_shapes[i].compatible_with(part.shape())) {
            throw invalid_argument("component {} is {}{}, not {}{}", i, dtype_name(part.dtype()), part.shape().str(),
                                   dtype_name(a.output_types[i]), a.output_shapes[i].str());
          }
          c.forward(static_cast<int>(i), part.with_shape(part.shape()));
        }
      })
      .any_device()
      .doc("The tensors that an optional holds; an error when there are none.")
      .sample({.in = {full}, .out = {Tensor{1.f, 2.f}, Tensor(3)}},
              {.output_types = {DType::float32, DType::int32}, .output_shapes = {PartialShape{2}, PartialShape{}}})
      .sample({.in = {full}, .error = "has 2 components"},
              {.output_types = {DType::float32}, .output_shapes = {PartialShape{2}}})
      .sample({.in = {none}, .error = "no value"},
              {.output_types = {DType::float32}, .output_shapes = {PartialShape{2}}});
}

}  // namespace runnel
