#include "runnel/keras/schedules.h"

#include <cmath>
#include <cstdint>
#include <numbers>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/keras/named_callable.h"
#include "runnel/op/composed.h"
#include "runnel/ops/math.h"
#include "runnel/ops/operators.h"

namespace runnel::keras::optimizers::schedules {
namespace {

Tensor as_rate(double value) { return Operand(value).as(DType::float32); }

// The number of the step divided by `steps`, rounded down for a staircase.
Tensor quotient_of_step(const Operand& step, double steps, bool staircase) {
  const Tensor p = cast(step, DType::float32) / steps;
  return staircase ? floor(p) : p;
}

// Half a wave from 1 at `fraction` 0 to alpha at 1, the wave `height` high.
Tensor cosine_wave(const Tensor& fraction, const Operand& height, double alpha) {
  return (1 - alpha) * (0.5 * height.value() * (1 + cos(std::numbers::pi * fraction))) + alpha;
}

}  // namespace

Config LearningRateSchedule::get_config() const {
  throw make_error(Code::failed_precondition,
                   "[{}] this learning rate schedule cannot be written down: it has no get_config()", class_name());
}

Config serialize(const LearningRateSchedule& schedule) {
  return object_config(serialized_name(typeid(schedule), schedule.class_name()), schedule.get_config().entries());
}

SchedulePtr deserialize(const Config& config, SourceSite where) {
  return composed(where, [&]() -> SchedulePtr {
    const std::string& name = config["class_name"].as_text();
    const Config& settings = config["config"];
    if (name == ExponentialDecay::kClassName) return ExponentialDecay::from_config(settings);
    if (name == PiecewiseConstantDecay::kClassName) return PiecewiseConstantDecay::from_config(settings);
    if (name == PolynomialDecay::kClassName) return PolynomialDecay::from_config(settings);
    if (name == InverseTimeDecay::kClassName) return InverseTimeDecay::from_config(settings);
    if (name == CosineDecay::kClassName) return CosineDecay::from_config(settings);
    if (name == CosineDecayRestarts::kClassName) return CosineDecayRestarts::from_config(settings);
    if (SchedulePtr own = SerializableObjects::make<LearningRateSchedule>(name, settings)) return own;
    throw make_error(Code::not_found,
                     "[keras] no learning rate schedule is called '{}'; there are ExponentialDecay, "
                     "PiecewiseConstantDecay, PolynomialDecay, InverseTimeDecay, CosineDecay and CosineDecayRestarts",
                     name);
  });
}

Tensor ExponentialDecay::operator()(const Operand& step) const {
  const Tensor p = quotient_of_step(step, options_.decay_steps, options_.staircase);
  return options_.initial_learning_rate * pow(as_rate(options_.decay_rate), p);
}

PiecewiseConstantDecay::PiecewiseConstantDecay(Options options, SourceSite where) : ScheduleOf(std::move(options)) {
  if (options_.values.empty() || options_.boundaries.size() != options_.values.size() - 1) {
    throw at_line(invalid_argument("[PiecewiseConstantDecay] {} boundaries need {} values, got {}",
                                   options_.boundaries.size(), options_.boundaries.size() + 1, options_.values.size()),
                  where);
  }
}

Tensor PiecewiseConstantDecay::operator()(const Operand& step) const {
  const Tensor at = step.value();
  Tensor rate = as_rate(options_.values.back());
  for (size_t i = options_.boundaries.size(); i-- > 0;) {
    const double boundary = options_.boundaries[i];
    // As TensorFlow does: among integers the boundary loses its fraction.
    const Tensor last = is_float(at.dtype()) ? Operand(boundary).as(at.dtype())
                                             : Operand(static_cast<int64_t>(boundary)).as(at.dtype());
    rate = where(at <= last, as_rate(options_.values[i]), rate);
  }
  return rate;
}

Tensor PolynomialDecay::operator()(const Operand& step) const {
  Tensor at = cast(step, DType::float32);
  Tensor length = as_rate(options_.decay_steps);
  if (options_.cycle) {
    length = length * maximum(ceil(at / options_.decay_steps), 1);
  } else {
    at = minimum(at, length);
  }
  const double range = options_.initial_learning_rate - options_.end_learning_rate;
  return range * pow(1 - at / length, options_.power) + options_.end_learning_rate;
}

Tensor InverseTimeDecay::operator()(const Operand& step) const {
  const Tensor p = quotient_of_step(step, options_.decay_steps, options_.staircase);
  return options_.initial_learning_rate / (1 + options_.decay_rate * p);
}

Tensor CosineDecay::operator()(const Operand& step) const {
  const double warmup_steps = options_.warmup_target ? options_.warmup_steps : 0;
  const double top = options_.warmup_target.value_or(options_.initial_learning_rate);
  const Tensor at = minimum(cast(step, DType::float32), options_.decay_steps + warmup_steps);
  const Tensor decayed = top * cosine_wave((at - warmup_steps) / options_.decay_steps, 1.f, options_.alpha);
  if (warmup_steps == 0) return decayed;
  const Tensor rising = (top - options_.initial_learning_rate) * (at / warmup_steps) + options_.initial_learning_rate;
  return where(at < warmup_steps, rising, decayed);
}

Tensor CosineDecayRestarts::operator()(const Operand& step) const {
  const double t_mul = options_.t_mul;
  Tensor fraction = cast(step, DType::float32) / options_.first_decay_steps;
  Tensor restarts;
  if (t_mul == 1) {
    restarts = floor(fraction);
    fraction = fraction - restarts;
  } else {
    restarts = floor(log(1 - fraction * (1 - t_mul)) / std::log(t_mul));
    const Tensor length = pow(as_rate(t_mul), restarts);  // of this decay, in lengths of the first
    fraction = (fraction - (1 - length) / (1 - t_mul)) / length;
  }
  return options_.initial_learning_rate * cosine_wave(fraction, pow(as_rate(options_.m_mul), restarts), options_.alpha);
}

}  // namespace runnel::keras::optimizers::schedules
