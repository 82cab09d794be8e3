#include "runnel/keras/optimizers_recent.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"
#include "runnel/ops/reduce.h"

namespace runnel::keras::optimizers {
namespace {

Tensor root_of_mean_square(const Tensor& x) { return sqrt(reduce_mean(square(x))); }

}  // namespace

// --- Lion ---

Lion::Lion(Options options) : OptimizerOf(std::move(options)) {
  const double beta_1 = this->options().beta_1;
  if (beta_1 <= 0 || beta_1 > 1) throw invalid_argument("[Lion] beta_1 must be in ]0, 1], got {}", beta_1);
}

void Lion::create_slots() { add_slots({{.name = "m", .edge = "momentums"}}); }

void Lion::update_step(const Gradient& gradient, const Variable& variable) {
  const DType dtype = variable.dtype();
  const auto number = [&](double value) { return Operand(value).as(dtype); };
  const double beta_1 = options().beta_1, beta_2 = options().beta_2;
  const Tensor rate = cast(learning_rate(), dtype);
  const Variable& m = slot("m", variable);
  if (!gradient.is_slices()) {
    const Tensor g = gradient;
    variable.assign_sub(rate * sign(m * number(beta_1) + g * number(1 - beta_1)));
    m.assign(m * number(beta_2) + g * number(1 - beta_2));
    return;
  }
  // m holds the mean for the step in between.
  const IndexedSlices& g = gradient.slices();
  m.assign(m * number(beta_1));
  m.scatter_add({g.values * number(1 - beta_1), g.indices, g.dense_shape});
  variable.assign_sub(rate * sign(m));
  m.assign(m * number(beta_2 / beta_1));
  m.scatter_add({g.values * number(1 - beta_2 / beta_1), g.indices, g.dense_shape});
}

// --- Adafactor ---

void Adafactor::build(const std::vector<Variable>& variables) {
  building_ = &variables;
  try {
    OptimizerOf::build(variables);
  } catch (...) {
    building_ = nullptr;
    throw;
  }
  building_ = nullptr;
}

void Adafactor::add_slot(const std::string& kind, const Variable& variable, const Shape& shape) {
  const Variable made(zeros(shape, variable.dtype()),
                      {.name = slot_scope() + kind + "/" + variable.name(), .trainable = false});
  static_cast<TrackableList&>(*find_edge("_variables")->object).append(made);
  slot_list("_" + kind).append(made);
}

void Adafactor::create_slots() {
  for (const char* list : {"_r", "_c", "_v"}) slot_list(list);
  for (const Variable& variable : *building_) {
    const Shape shape = variable.shape();
    if (shape.rank() < 2) {
      // Keras has a variable in both places, of an int32, with the name of the first.
      for (const char* list : {"_r", "_c"}) {
        slot_list(list).append(
            Variable(Tensor(int32_t{0}), {.name = slot_scope() + "r/" + variable.name(), .trainable = false}));
      }
    } else {
      Dims rows(shape.dims().begin(), shape.dims().end() - 1), columns(shape.dims().begin(), shape.dims().end() - 2);
      columns.push_back(shape[-1]);
      add_slot("r", variable, Shape(rows));
      add_slot("c", variable, Shape(columns));
    }
    add_slot("v", variable, shape);
  }
}

Variable Adafactor::slot_at(const std::string& edge, size_t place) {
  return Variable::from_handle(slot_list(edge).edges()[place].handle);
}

void Adafactor::update(const Step& step) {
  const std::vector<Tensor> gradients = dense_gradients(step);
  for (size_t i = 0; i < step.variables.size(); ++i) {
    update_one(gradients[i], step.variables[i], step.places[i], step);
  }
}

void Adafactor::update_one(const Tensor& gradient, const Variable& variable, size_t place, const Step& step) {
  const Tensor t = number_of(step), one = constant(1, step);
  Tensor rate = step.learning_rate;
  const bool has_schedule = find_edge("_current_learning_rate") != nullptr;
  if (options().relative_step && !has_schedule) rate = minimum(rate, rsqrt(t));
  const Tensor size = maximum(constant(options().epsilon_2, step), root_of_mean_square(variable));
  const Tensor alpha = size * minimum(rate, rsqrt(t));
  const Tensor squares = square(gradient) + constant(options().epsilon_1, step);
  const Tensor beta_2 = one - pow(t, constant(options().beta_2_decay, step));
  const Variable v = slot_at("_v", place);
  if (variable.shape().rank() >= 2) {
    const Variable r = slot_at("_r", place), c = slot_at("_c", place);
    r.assign(beta_2 * r + (one - beta_2) * reduce_mean(squares, -1));
    c.assign(beta_2 * c + (one - beta_2) * reduce_mean(squares, -2));
    v.assign(expand_dims(r / reduce_mean(r, -1, true), -1) * expand_dims(c, -2));
  } else {
    v.assign(beta_2 * v + (one - beta_2) * squares);
  }
  const Tensor u = gradient * rsqrt(v);
  variable.assign_sub(alpha * u / maximum(one, root_of_mean_square(u) / constant(options().clip_threshold, step)));
}

}  // namespace runnel::keras::optimizers
