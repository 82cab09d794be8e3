#include "runnel/op/dispatch.h"

#include <algorithm>
#include <cstring>

#include "runnel/base/flush_denormals.h"
#include "runnel/base/format.h"
#include "runnel/base/profile_scope.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/op_event.h"
#include "runnel/op/owned_symbol.h"
#include "runnel/tensor/thread_context.h"

namespace runnel {
namespace {

constinit thread_local uint64_t last_tape_level = 0;

constexpr int kMaxTypeVars = 6;
struct TypeBinding {
  DType types[kMaxTypeVars] = {};
};

[[noreturn]] void wrong_dtype(const OpDef& op, int i, DType got, const TypeVar& var, DType bound) {
  if (bound != DType::invalid) {
    throw invalid_argument("{} must have dtype {} like the other inputs, got {}: cast one of them", op.input_name(i),
                           dtype_name(bound), dtype_name(got));
  }
  throw invalid_argument("{} cannot be {}; allowed: {}", op.input_name(i), dtype_name(got),
                         fmt::join(dtype_names(var.allowed), ", "));
}

void bind_type(const OpDef& op, const ArgSpec& arg, int i, DType got, TypeBinding& binding) {
  if (arg.type_var >= 0) {
    DType& bound = binding.types[arg.type_var];
    const TypeVar& var = op.type_vars[static_cast<size_t>(arg.type_var)];
    if (bound == DType::invalid) {
      if (!var.allows(got)) [[unlikely]] {
        wrong_dtype(op, i, got, var, bound);
      }
      bound = got;
    } else if (bound != got) [[unlikely]] {
      wrong_dtype(op, i, got, var, bound);
    }
  } else if (arg.dtype != DType::invalid && arg.dtype != got) [[unlikely]] {
    throw invalid_argument("{} must be {}, got {}", op.input_name(i), dtype_name(arg.dtype), dtype_name(got));
  }
}

[[noreturn]] void refers_to_nothing(const OpDef& op, int i, const Tensor& t) {
  const bool told = t.impl() && t.impl()->symbol;
  throw invalid_argument("{} refers to nothing: {}", op.input_name(i),
                         told ? t.impl()->symbol->described() : "the Tensor was never given a value");
}

// What is known of the inputs of a call before they are checked.
enum class Known { nothing, values };

void check_inputs(const OpDef& op, Inputs inputs, TypeBinding& binding, Known known, bool symbolic_too = false) {
  const int n = static_cast<int>(inputs.size());
  const bool lists = op.has_list_input;
  if (!lists && inputs.size() != op.inputs.size()) [[unlikely]] {
    throw invalid_argument("takes {} inputs, got {}", op.inputs.size(), n);
  }
  if (lists && !op.fits_input_count(n)) throw invalid_argument("{} inputs do not fill its lists of inputs", n);
  for (int i = 0; i < n; ++i) {
    const Tensor& t = *inputs[static_cast<size_t>(i)];
    if (known == Known::nothing) {
      if (!t.defined()) [[unlikely]] {
        refers_to_nothing(op, i, t);
      }
      if (t.is_symbolic() && !symbolic_too) [[unlikely]] {
        throw make_error(Code::failed_precondition,
                         "{} stands for a value of a graph that is being built: it has none here", op.input_name(i));
      }
    }
    bind_type(op, lists ? op.input_spec(i, n) : op.inputs[static_cast<size_t>(i)], i, t.impl()->dtype, binding);
  }
}

// Lists among the inputs are as long as they must be. Where attributes repeat what they say, their lengths and dtypes,
// they must agree.
void check_lists(const OpDef& op, Inputs inputs, const void* attrs) {
  const auto lists = std::count_if(op.inputs.begin(), op.inputs.end(), [](const ArgSpec& a) { return a.is_list(); });
  const size_t length = (inputs.size() - (op.inputs.size() - static_cast<size_t>(lists))) / static_cast<size_t>(lists);
  size_t at = 0;
  for (const ArgSpec& arg : op.inputs) {
    if (!arg.is_list()) {
      ++at;
      continue;
    }
    const std::string& attr = arg.count.empty() ? arg.type_list_attr : arg.count;
    if (static_cast<int64_t>(length) < arg.fewest) {
      throw invalid_argument("{} for attr '{}' of {} must be at least minimum {}",
                             arg.count.empty() ? "Length" : "Value", attr, length, arg.fewest);
    }
    const AttrSpec* spec = op.attrs.find(attr);
    const AttrValue said = spec ? spec->get(attrs) : AttrValue();
    if (const auto* count = std::get_if<int64_t>(&said); spec && count && *count != static_cast<int64_t>(length)) {
      throw invalid_argument("{} has {} tensors, attribute {} says {}", arg.name, length, spec->name, *count);
    }
    if (const auto* types = std::get_if<std::vector<DType>>(&said)) {
      std::vector<DType> given;
      for (size_t i = 0; i < length; ++i) given.push_back(inputs[at + i]->dtype());
      if (given != *types) {
        throw invalid_argument("{} has the dtypes {}, attribute {} says {}", arg.name, attr_to_string(given),
                               spec->name, attr_to_string(said));
      }
    }
    at += length;
  }
}

// `dtypes` has room for op.num_outputs(attrs).
inline void output_dtypes(const OpDef& op, const void* attrs, const TypeBinding& binding, DType* dtypes) {
  int n = 0;
  for (const ArgSpec& arg : op.outputs) {
    if (arg.type_var >= 0 && !arg.is_list()) [[likely]] {
      dtypes[n++] = binding.types[arg.type_var];
      continue;
    }
    if (!arg.type_list_attr.empty()) {
      const AttrValue types = op.attrs.find(arg.type_list_attr)->get(attrs);
      for (DType t : std::get<std::vector<DType>>(types)) dtypes[n++] = t;
      continue;
    }
    DType dtype = arg.dtype;
    if (arg.type_var >= 0) dtype = binding.types[arg.type_var];
    if (!arg.type_attr.empty()) dtype = std::get<DType>(op.attrs.find(arg.type_attr)->get(attrs));
    const int64_t count = arg.count.empty() ? 1 : std::get<int64_t>(op.attrs.find(arg.count)->get(attrs));
    if (!arg.count.empty() && (count < 0 || n + count > op.num_outputs(attrs))) {
      throw invalid_argument("{} outputs are not possible: attribute {}", count, arg.count);
    }
    for (int64_t i = 0; i < count; ++i) dtypes[n++] = dtype;
  }
}

// The dtype that selects the kernel.
DType kernel_key(const OpDef& op, const TypeBinding& binding) {
  return op.type_vars.empty() ? DType::invalid : binding.types[0];
}

bool has_value_on_host(const Tensor& t) {
  return t.defined() && t.impl()->buffer && t.impl()->buffer->device().is_host();
}

// Tensors without a value (undefined, symbolic) count as on the host; check_inputs refuses them.
bool on_host(const Tensor& t) { return !t.defined() || !t.impl()->buffer || t.impl()->buffer->device().is_host(); }

// Where the op runs: with the first input that is not on the host, if it is not one that the host reads anyway.
Device& place(const OpDef& op, Inputs inputs) {
  if (op.any_device) return Device::cpu();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (on_host(*inputs[i])) [[likely]]
      continue;
    if (!op.input_spec(static_cast<int>(i), static_cast<int>(inputs.size())).host_memory) return inputs[i]->device();
  }
  return Device::cpu();
}

Interceptor* owner_of(Inputs inputs) {
  for (const Tensor* t : inputs) {
    if (const OwnedSymbol* symbol = t->defined() ? owned_symbol(*t) : nullptr) return &symbol->owner();
  }
  return nullptr;
}

// `all_on_host`: every input is a value in the host's memory.
void run_kernel(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs, bool all_on_host) {
  TypeBinding binding;
  check_inputs(op, inputs, binding, all_on_host ? Known::values : Known::nothing);
  if (op.has_list_input) check_lists(op, inputs, attrs);
  ShortList<DType> dtypes(num_outputs);
  output_dtypes(op, attrs, binding, dtypes.data());

  Device& device = all_on_host ? Device::cpu() : place(op, inputs);
  const DType key = kernel_key(op, binding);
  KernelFn kernel = op.kernel(device.kind(), key);
  if (!kernel) [[unlikely]] {
    if (key == DType::invalid && !op.type_vars.empty()) throw invalid_argument("has no input that gives its dtype");
    throw make_error(Code::unimplemented, "has no kernel for {} on {}", dtype_name(key), device.name());
  }
  InferContext infer(op, inputs, attrs, num_outputs);
  op.infer(infer);
  if (!op.forwards) {
    for (int i = 0; i < num_outputs; ++i) {
      if (infer.output_shape(i).is_static()) {
        outputs[i] = make_output(dtypes[i], Shape(infer.output_shape(i)), op.output_home(i, dtypes[i], device));
      }
    }
  }
  KernelContext context(op, inputs, attrs, outputs, dtypes.data(), num_outputs, device);
  const FlushDenormals flush;
  kernel(context);
}

// Inputs that live elsewhere than where the kernel reads them are moved first.
void run_where_inputs_are(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs) {
  TypeBinding binding;
  check_inputs(op, inputs, binding, Known::nothing);
  if (op.any_device) return run_kernel(op, inputs, attrs, outputs, num_outputs, false);
  Device* device = &place(op, inputs);
  // An op on state that the device has no kernel for may still do on the host, where handles are.
  const bool on_state =
      std::any_of(inputs.begin(), inputs.end(), [](auto* t) { return t->dtype() == DType::resource; });
  if (on_state && !op.kernel(device->kind(), kernel_key(op, binding))) device = &Device::cpu();
  std::vector<Tensor> moved(inputs.size());
  std::vector<const Tensor*> placed(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool host = op.input_spec(static_cast<int>(i), static_cast<int>(inputs.size())).host_memory ||
                      !is_plain(inputs[i]->dtype());
    moved[i] = host ? inputs[i]->to_host() : inputs[i]->to(*device);
    placed[i] = &moved[i];
  }
  run_kernel(op, placed, attrs, outputs, num_outputs, false);
}

// A call that no trace takes, with inputs on the host or elsewhere, in a profile. False where a graph took it.
[[gnu::noinline]] bool run_in_profile(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs,
                                      int num_outputs, const SourceSite& where) {
  if (Interceptor* owner = owner_of(inputs)) {
    owner->call(op, inputs, attrs, outputs, num_outputs, user_line(where));
    return false;
  }
  const OpEvent event(profile::Kind::op, {}, op, inputs, attrs, outputs, num_outputs);
  if (std::ranges::all_of(inputs, [](const Tensor* t) { return has_value_on_host(*t); })) {
    run_kernel(op, inputs, attrs, outputs, num_outputs, true);
  } else {
    run_where_inputs_are(op, inputs, attrs, outputs, num_outputs);
  }
  return true;
}

// An op inside an op: the inner one is named already.
Error located(const Error& e, const OpDef& op, Inputs inputs, const SourceSite& where) {
  if (e.has_frame(ErrorFrame::Kind::op)) return e;
  return e.inside(
      {.kind = ErrorFrame::Kind::op, .name = op.name, .detail = describe_call(op, inputs), .where = user_line(where)});
}

}  // namespace

Interceptor* current_interceptor() { return detail::current_context.interceptor; }
Recorder* current_recorder() { return detail::current_context.recorder; }
uint64_t new_tape_level() { return ++last_tape_level; }

DType resolve_types(const OpDef& op, Inputs inputs, const void* attrs, DType* dtypes) {
  TypeBinding binding;
  check_inputs(op, inputs, binding, Known::nothing, true);
  if (op.has_list_input) check_lists(op, inputs, attrs);
  output_dtypes(op, attrs, binding, dtypes);
  return kernel_key(op, binding);
}

std::string describe_call(const OpDef& op, Inputs inputs) {
  std::string text = inputs.empty() ? "no inputs" : "inputs";
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i == 8) {
      text += fmt::format(", ... {} in all", inputs.size());
      break;
    }
    const Tensor& t = *inputs[i];
    const std::string name =
        op.inputs.empty() ? "surplus" : op.input_spec(static_cast<int>(i), static_cast<int>(inputs.size())).name;
    text += fmt::format("{} {}: {}", i == 0 ? "" : ",", name,
                        t.defined() ? dtype_name(t.dtype()) + t.partial_shape().str() : "nothing");
  }
  return text;
}

void dispatch(const OpDef& op, Inputs inputs, const void* attrs, Tensor* outputs, int num_outputs,
              const SourceSite& where) {
  const ThreadContext& context = detail::current_context;
  try {
    if (op.attrs.limited) op.attrs.check(attrs);
    if (context.interceptor) [[unlikely]] {
      context.interceptor->call(op, inputs, attrs, outputs, num_outputs, user_line(where));
    } else if (profile::recording()) [[unlikely]] {
      if (!run_in_profile(op, inputs, attrs, outputs, num_outputs, where)) return;
    } else {
      bool all_on_host = true;
      for (const Tensor* t : inputs) all_on_host = all_on_host && has_value_on_host(*t);
      if (all_on_host) [[likely]] {
        run_kernel(op, inputs, attrs, outputs, num_outputs, true);
      } else if (Interceptor* owner = owner_of(inputs)) {
        return owner->call(op, inputs, attrs, outputs, num_outputs, user_line(where));
      } else {
        run_where_inputs_are(op, inputs, attrs, outputs, num_outputs);
      }
    }
  } catch (...) {
    throw located(current_error(op.runs_code), op, inputs, where);
  }
  if (context.recorder) context.recorder->record(op, inputs, attrs, outputs, num_outputs);
}

void call_typed(const OpDef& op, std::span<const Arg> args, const void* attrs, Tensor* outputs, int num_outputs,
                const SourceSite* where) {
  constexpr size_t kFew = 8;
  const Tensor* few[kFew];
  std::vector<const Tensor*> many;
  const Tensor** in = few;
  if (args.size() > kFew) {
    many.resize(args.size());
    in = many.data();
  }
  size_t literals = 0;
  static const SourceSite nowhere;
  const SourceSite* site = where ? where : &nowhere;
  for (size_t i = 0; i < args.size(); ++i) {
    in[i] = args[i].operand ? args[i].operand->tensor() : args[i].tensor;
    if (!in[i]) ++literals;
    if (args[i].operand && site == &nowhere) site = &args[i].operand->where();
  }
  if (literals == 0) [[likely]] {
    return dispatch(op, Inputs(in, args.size()), attrs, outputs, num_outputs, *site);
  }
  // A literal takes the dtype of the tensors it shares a type variable with.
  const int total = static_cast<int>(args.size());
  ShortList<Tensor> made(total);
  try {
    for (int i = 0; i < total; ++i) {
      if (in[i]) continue;
      const Operand& literal = *args[static_cast<size_t>(i)].operand;
      const ArgSpec& arg = op.input_spec(i, total);
      DType dtype = arg.dtype;
      if (arg.type_var >= 0) {
        for (int j = 0; j < total && dtype == DType::invalid; ++j) {
          if (in[j] && in[j]->defined() && op.input_spec(j, total).type_var == arg.type_var) dtype = in[j]->dtype();
        }
        if (dtype == DType::invalid) {
          const TypeVar& var = op.type_vars[static_cast<size_t>(arg.type_var)];
          dtype = literal.natural_dtype();
          if (!var.allows(dtype)) dtype = var.dtype_of_literals();
        }
      }
      if (dtype == DType::invalid) dtype = literal.natural_dtype();
      made[i] = literal.as(dtype);
      in[i] = &made[i];
    }
  } catch (...) {
    for (int i = 0; i < total; ++i) {
      if (!in[i]) in[i] = &made[i];
    }
    throw located(current_error(), op, Inputs(in, args.size()), *site);
  }
  dispatch(op, Inputs(in, args.size()), attrs, outputs, num_outputs, *site);
}

const OpDef& registered_op(const char* name) { return registry().get(name); }

std::vector<Tensor> call_op(const std::string& name, const std::vector<Tensor>& inputs,
                            const std::vector<std::pair<std::string, AttrValue>>& attrs, SourceSite where) {
  const OpDef& op = registry().get(name);
  std::shared_ptr<void> values = op.attrs.make ? op.attrs.make() : nullptr;
  for (const auto& [attr, value] : attrs) {
    const AttrSpec* spec = op.attrs.find(attr);
    if (!spec) throw invalid_argument("[{}] has no attribute '{}'", name, attr);
    if (spec->default_value.index() != value.index()) {
      throw invalid_argument("[{}] attribute '{}' is of type {}, got {}", name, attr,
                             attr_type_name(spec->default_value), attr_type_name(value));
    }
    spec->set(values.get(), value);
  }
  for (const AttrSpec& spec : op.attrs.specs) {
    const bool given = std::any_of(attrs.begin(), attrs.end(), [&](const auto& a) { return a.first == spec.name; });
    if (spec.required && !given) throw invalid_argument("[{}] attribute '{}' has no default: give it", name, spec.name);
  }
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  std::vector<Tensor> out(static_cast<size_t>(op.num_outputs(values.get())));
  dispatch(op, in, values.get(), out.data(), static_cast<int>(out.size()), where);
  return out;
}

void scalar_shape(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, PartialShape{});
}

void unknown_shape(InferContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.output(i, PartialShape::unknown());
}

}  // namespace runnel
