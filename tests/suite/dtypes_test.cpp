// The values of a sample in every dtype its type variables allow.
#include <cmath>
#include <optional>

#include "runnel/base/error.h"
#include "runnel/tensor/type_sets.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"

namespace runnel::test {
namespace {

DType real_of(DType t) { return t == complex128 ? float64 : float32; }
DType complex_of(DType t) { return t == float64 ? complex128 : complex64; }

double epsilon(DType t) {
  if (t == float16) return 0x1p-10;
  if (t == bfloat16) return 0x1p-7;
  return 0;
}

struct Variation {
  const Case& c;
  std::vector<Tensor> inputs;  // of the sample
  int var;
  DType native;

  std::vector<Tensor> cast_inputs(DType to, bool& lossless) const {
    std::vector<Tensor> in = inputs;
    for (size_t i = 0; i < in.size(); ++i) {
      if (input_spec(*c.op, inputs, i).type_var != var) continue;
      const Cast cast = cast_values(in[i], to);
      lossless = lossless && cast.lossless();
      in[i] = cast.value;
    }
    return in;
  }

  // Output dtype attributes that follow the input (the Tout of Real and Complex) follow it here too.
  SharedAttrs cast_attrs(DType to) const {
    const OpDef& op = *c.op;
    std::shared_ptr<void> attrs;
    for (const ArgSpec& out : op.outputs) {
      if (out.type_attr.empty()) continue;
      const AttrSpec& spec = *op.attrs.find(out.type_attr);
      const DType now = std::get<DType>(spec.get(c.attrs()));
      DType next = now;
      if (is_complex(native) && now == real_of(native) && is_complex(to)) next = real_of(to);
      if (is_float(native) && now == complex_of(native) && is_float(to)) next = complex_of(to);
      if (next == now) continue;
      if (!attrs) {
        attrs = op.attrs.make();
        for (const AttrSpec& each : op.attrs.specs) each.set(attrs.get(), each.get(c.attrs()));
      }
      spec.set(attrs.get(), next);
    }
    return attrs ? SharedAttrs(attrs) : c.sample().attrs;
  }

  // What the call should give: for 16-bit floats, the float32 result of the rounded inputs.
  std::vector<Tensor> expected(DType to, const std::vector<Tensor>& cast) const {
    if (epsilon(to) > 0 && c.op->type_vars[static_cast<size_t>(var)].allows(float32)) {
      std::vector<Tensor> wide = cast;
      for (size_t i = 0; i < wide.size(); ++i) {
        if (input_spec(*c.op, inputs, i).type_var == var) wide[i] = cast_values(wide[i], float32).value;
      }
      return run(*c.op, wide, c.attrs());
    }
    return c.sample().out.empty() ? run(*c.op, inputs, c.attrs()) : c.sample().out;
  }

  void check(DType to) const {
    SCOPED_TRACE(c.name() + " with " + c.op->type_vars[static_cast<size_t>(var)].name + " = " + dtype_name(to) +
                 " (stated in " + dtype_name(native) + ")");
    bool lossless = true;
    const std::vector<Tensor> in = cast_inputs(to, lossless);
    const SharedAttrs attrs = cast_attrs(to);
    std::vector<Tensor> actual;
    std::optional<Error> error;
    try {
      actual = run(*c.op, in, attrs.get());
    } catch (const Error& e) {
      error = e;
    }
    if (error && error->code() == Code::unimplemented) {
      ADD_FAILURE() << "the schema allows the dtype, but: " << error->what();
      return;
    }
    if (!lossless || (c.op->stateful && !error)) return;
    // A number may be computed with, its text is only moved, or joined.
    if (to == DType::string && (is_complex(native) || c.op->name == "ScatterNd")) return;
    const std::vector<Tensor> wanted = expected(to, in);
    std::vector<Cast> casts;
    bool all_fit = true;
    for (size_t i = 0; i < wanted.size(); ++i) {
      DType dtype = wanted[i].dtype();
      const ArgSpec& spec = output_spec(*c.op, attrs.get(), static_cast<int>(i));
      if (spec.type_var == var) dtype = to;
      if (!spec.type_attr.empty()) dtype = std::get<DType>(c.op->attrs.find(spec.type_attr)->get(attrs.get()));
      casts.push_back(cast_values(wanted[i], dtype));
      all_fit = all_fit && casts.back().lossless();
    }
    if (error) {
      if (all_fit) ADD_FAILURE() << error->what();
      return;
    }
    ASSERT_EQ(actual.size(), casts.size());
    for (size_t i = 0; i < casts.size(); ++i) {
      // The bytes that an op keeps for its gradient are its own business.
      if (output_spec(*c.op, attrs.get(), static_cast<int>(i)).name == "kept") continue;
      compare(actual[i], casts[i], wanted[i], to, i);
    }
  }

  void compare(const Tensor& actual, Cast& cast, const Tensor& wanted, DType to, size_t i) const {
    double relative = c.sample().tolerance;
    double absolute = relative;
    if (is_float(wanted.dtype()) || is_complex(wanted.dtype())) {
      const std::vector<Value> values = values_of(wanted);
      long double largest = 0;
      for (size_t k = 0; k < values.size(); ++k) {
        // Beyond the real numbers (the root of -1) complex results are something else.
        if (is_complex(to) && !is_complex(native) && std::isnan(values[k].real())) cast.fits[k] = false;
        if (std::isfinite(values[k].real())) largest = std::max(largest, std::abs(values[k]));
      }
      relative = std::max(relative, 2 * epsilon(to));
      absolute = std::max(absolute, epsilon(to) / 2 * static_cast<double>(largest));
    }
    EXPECT_EQ(difference(actual, cast.value, relative, absolute, cast.fits), "") << "output " << i;
  }
};

}  // namespace

void check_dtypes(const Case& c) {
  if (!c.sample().error.empty()) return;
  const std::vector<Tensor> inputs = c.inputs();
  for (size_t v = 0; v < c.op->type_vars.size(); ++v) {
    const DType native = bound_dtype(*c.op, inputs, static_cast<int>(v));
    if (native == DType::invalid || !data_types.contains(native)) continue;
    if (c.sample().make) continue;  // the dtype of the state would have to follow
    const Variation variation{c, inputs, static_cast<int>(v), native};
    data_types.for_each([&]<class T>() {
      const DType to = dtype_of<T>;
      if (to != native && c.op->type_vars[v].allows(to)) variation.check(to);
    });
  }
}

}  // namespace runnel::test
