// Variables of devices where the rest of the library meets them: callbacks, stated derivatives, layers, optimizers,
// pipelines, sessions.
#include "runnel/compat/v1.h"
#include "runnel/function/traced_blocks.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/device/places.h"
#include "tests/support/expect_error.h"

namespace runnel::test {
namespace {

using Floats = std::vector<float>;

class VariablesElsewhere : public AllPlacesTest {};
INSTANTIATE_TEST_SUITE_P(Places, VariablesElsewhere, ::testing::ValuesIn(all_places()),
                         [](const auto& info) { return places_name(info.param); });

TEST_P(VariablesElsewhere, CallbacksGetValuesOnTheHost) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto callback = [](const std::vector<Tensor>& in) {
    EXPECT_TRUE(in[0].device().is_host());
    EXPECT_TRUE(in[1].device().is_host());
    return std::vector<Tensor>{Tensor{*in[0].data<float>() + 10, *in[1].data<float>()}};
  };
  const Tensor x = arg(Tensor{3.f, 4.f});
  expect_at(host_call(callback, {x, v}, {float32})[0], Place::host, {13, 1});
  const auto f = function([&](const Tensor& t) { return host_call(callback, {t, v}, {float32}, {{2}})[0] * v; });
  expect_at(f(x), variable(), {13, 2});
  expect_at(f(Tensor{3.f, 4.f}), variable(), {13, 2});
}

TEST_P(VariablesElsewhere, CallbacksGiveValuesOfDevices) {
  // Nothing that goes into the function is of a device: it notices when it gets there.
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    const Tensor a = x + 1;
    const Tensor b = host_call([&](const auto&) { return std::vector<Tensor>{v.value()}; }, {a}, {float32}, {{2}})[0];
    const Tensor c = a * a;
    return std::pair(c, exp(b - b) * c + a);
  });
  for (int run = 0; run < 2; ++run) {
    const auto [before, after] = f(Tensor{3.f, 4.f});
    EXPECT_EQ(before.to_vector<float>(), (Floats{16, 25}));
    expect_at(after, variable(), {20, 30});
  }
}

TEST_P(VariablesElsewhere, StatedDerivatives) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto clipped = [](const Tensor& a, const Tensor& b) {
    return custom_gradient(
        [](const std::vector<Tensor>& in) {
          return CustomGradient{in[0] * in[1], [in](const Tensor& dy) { return Gradients{dy * 100, dy * in[0]}; }};
        },
        {a, b});
  };
  const auto f = function([&](const Tensor& x) { return clipped(x, v) * 2; });
  const auto inside = function([&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(clipped(x, v) * 2, {x, v});
  });
  const Tensor x = arg(Tensor{3.f, 4.f});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  for (const Tensor& y : {clipped(x, v) * 2, f(x)}) {
    expect_at(y, both(), {6, 16});
    EXPECT_EQ(Tensor(tape.gradient(y, x)).to_vector<float>(), (Floats{200, 200}));
    EXPECT_EQ(Tensor(tape.gradient(y, v)).to_vector<float>(), (Floats{6, 8}));
  }
  const auto grads = inside(x);
  EXPECT_EQ(Tensor(grads[0]).to_vector<float>(), (Floats{200, 200}));
  EXPECT_EQ(Tensor(grads[1]).to_vector<float>(), (Floats{6, 8}));
}

TEST_P(VariablesElsewhere, AssertionsAndTexts) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    assert_(reduce_all(x > v), {v, x});
    return strings::format("{} and {}", {x, v});
  });
  EXPECT_EQ(f(arg(Tensor{3.f, 4.f})).item<std::string>(), "[3 4] and [1 2]");
  expect_error([&] { f(arg(Tensor{0.f, 4.f})); }, Code::invalid_argument, "[Assert] assertion failed: [[1 2]] [[0 4]]");
  EXPECT_EQ(f(arg(Tensor{3.f, 5.f})).item<std::string>(), "[3 5] and [1 2]");
}

TEST_P(VariablesElsewhere, SizesAreReadOnTheHost) {
  const Variable v = var(Tensor{{1.f, 2.f}, {3.f, 4.f}});
  const Tensor axis = arg(Tensor(1)), shape = arg(Tensor{4, 1}), limit = arg(Tensor(3));
  const Variable rows(put(Tensor(2), argument()));
  const auto captured = function([&] {
    return reduce_sum(v, axis) + reshape(reduce_sum(reshape(v, shape)) + cast(reduce_sum(range(limit)), float32), {1});
  });
  expect_at(captured(), variable(), {16, 20});
  const auto given = function([&](const Tensor& a, const Tensor& s) { return reduce_sum(reshape(v, s), a); });
  expect_at(given(axis, shape), variable(), {1, 2, 3, 4});
  const auto read = function([&] { return cast(range(rows), float32) + reduce_sum(v, rows - 2); });
  expect_at(read(), variable(), {4, 7});
}

TEST_P(VariablesElsewhere, ALayerWhoseWeightsWereMoved) {
  keras::layers::Dense dense({.units = 2, .activation = "relu", .kernel_initializer = "ones"});
  const Tensor x{{1.f, 2.f}, {3.f, -4.f}};
  expect_at(dense(x), Place::host, {3, 3, 0, 0});
  const auto f = function([&](const Tensor& t) { return dense(t); });
  expect_at(f(x), Place::host, {3, 3, 0, 0});
  for (const Variable& w : dense.weights()) move_variable(w, variable());
  const Tensor there = arg(x);
  expect_at(dense(there), both(), {3, 3, 0, 0});
  expect_at(f(there), both(), {3, 3, 0, 0});
  dense.set_weights({arg(Tensor{{1.f, 0.f}, {0.f, 1.f}}), Tensor{1.f, 1.f}});
  EXPECT_EQ(dense.kernel.value().device_name(), device_at(variable()).name());
  GradientTape tape;
  const Tensor y = f(there);
  expect_at(y, both(), {2, 3, 4, 0});
  EXPECT_EQ(Tensor(tape.gradient(y, dense.kernel)).to_vector<float>(), (Floats{4, 1, -2, 2}));
  expect_at(f(x), variable(), {2, 3, 4, 0});
}

TEST_P(VariablesElsewhere, ModelsPredict) {
  keras::Sequential model{keras::layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"})};
  const Tensor x{{1.f, 2.f}, {3.f, -4.f}, {5.f, 6.f}};
  model(x);
  for (const Variable& w : model.weights()) move_variable(w, variable());
  expect_at(model.predict(arg(x), {.batch_size = 2, .verbose = 0}), both(), {3, -1, 11});
}

TEST_P(VariablesElsewhere, ModelsAreEvaluatedAndTrainedWhereUpdatesCan) {
  keras::Sequential model{keras::layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"})};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = arg(Tensor{{1.f, 2.f}, {3.f, -4.f}}), y = arg(Tensor{{4.f}, {2.f}});
  model(x);
  for (const Variable& w : model.weights()) move_variable(w, variable());
  EXPECT_FLOAT_EQ(static_cast<float>(model.evaluate(x, y, {.verbose = 0})["loss"]), 5);  // (1 + 9) / 2
  if (variable() == Place::host) {
    model.fit(x, y, {.verbose = 0});
    return expect_at(model.weights()[0], Place::host, {1.1f, 0.9f});
  }
  expect_error([&] { model.fit(x, y, {.verbose = 0}); }, Code::unimplemented,
               "lives on " + device_at(variable()).name());
  expect_at(model.weights()[0], variable(), {1, 1});
}

TEST_P(VariablesElsewhere, OptimizersUpdateVariablesOfTheHost) {
  for (const std::string name : {"sgd", "adam"}) {
    const Variable v = var(Tensor{1.f, 2.f});
    const auto optimizer = keras::optimizers::get(name);
    const auto step = function([&](const Tensor& g) { optimizer->apply_gradients({{g, v}}); });
    const Tensor g = arg(Tensor{1.f, 1.f});
    if (variable() == Place::host) {
      const Variable other(Tensor{1.f, 2.f});
      keras::optimizers::get(name)->apply_gradients({{Tensor{1.f, 1.f}, other}});
      step(g);
      expect_at(v.value(), Place::host, other.value().to_vector<float>());
      continue;
    }
    const std::string message = "lives on " + device_at(variable()).name();
    expect_error([&] { optimizer->apply_gradients({{g, v}}); }, Code::unimplemented, message);
    expect_error([&] { step(g); }, Code::unimplemented, message);
    expect_at(v.value(), variable(), {1, 2});
  }
}

TEST_P(VariablesElsewhere, TracingIsChecked) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto f = function([&](const Tensor& x) {
    v.assign(v * x);
    return v + x;
  });
  check_tracing(true);
  expect_at(f(arg(Tensor{3.f, 4.f})), meeting(variable(), argument()), {6, 12});
  check_tracing(false);
  expect_at(v.value(), variable(), {3, 8});
}

TEST_P(VariablesElsewhere, TrainingStepsWrittenAsAssignments) {
  const Variable v = var(Tensor{1.f, 2.f});
  const auto step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(v * x - 12.f));
    v.assign(v - 0.0625f * Tensor(tape.gradient(loss, v)));
    return loss;
  });
  const Variable host(Tensor{1.f, 2.f});
  const auto on_host = [&](const Tensor& x) { host.assign(host - 0.0625f * (2.f * x * (host * x - 12.f))); };
  for (int i = 0; i < 3; ++i) {
    step(arg(Tensor{2.f, 3.f}));
    on_host(Tensor{2.f, 3.f});
    expect_at(v.value(), variable(), host.value().to_vector<float>());
  }
}

TEST_P(VariablesElsewhere, PipelinesThatCaptureAVariable) {
  const Variable v = var(Tensor(2.f));
  const Tensor rows = arg(Tensor{1.f, 2.f, 3.f, 4.f});
  const auto twice = function([&](const Tensor& x) { return x * v; });
  const auto plain = [&](const Tensor& x) { return x * v; };
  for (const int threads : {0, 2}) {
    for (const auto& d : {data::from_tensor_slices(rows).map(plain, {.num_parallel_calls = threads}),
                          data::from_tensor_slices(rows).map(twice, {.num_parallel_calls = threads})}) {
      Floats seen;
      for (const Tensor& x : d) seen.push_back(x.item<float>());
      EXPECT_EQ(seen, (Floats{2, 4, 6, 8}));
      for (const auto& batches : {d.batch(4), d.shuffle(1).batch(4), d.batch(1).unbatch().batch(4), d.cache().batch(4),
                                  d.prefetch(2).padded_batch(4), d.batch(2).rebatch(4)}) {
        for (const Tensor& x : batches) expect_at(x, Place::host, {2, 4, 6, 8});  // rows of a batch meet on the host
      }
      const auto total = function([&](Tensor sum) {
        for (auto x : d) sum = sum + x * x;
        return sum;
      });
      EXPECT_EQ(total(Tensor(0.f)).item<float>(), 120);
    }
  }
}

TEST_P(VariablesElsewhere, Sessions) {
  namespace v1 = compat::v1;
  const Variable v = var(Tensor{1.f, 2.f});
  v1::Graph graph;
  const auto scope = graph.as_default();
  const Tensor x = v1::placeholder(float32, {2}, "x");
  const Tensor y = x * v;
  const Tensor set = v1::assign(v, y);
  v1::Session session(graph);
  const Tensor value = arg(Tensor{3.f, 4.f});
  expect_at(session.run(y, {{x, value}}), both(), {3, 8});
  session.run(v1::global_variables_initializer());
  session.run(set, {{x, value}});
  expect_at(session.run(v), variable(), {3, 8});
  expect_at(session.run(y, {{x, Tensor{1.f, 1.f}}}), variable(), {3, 8});
  session.run(v1::global_variables_initializer());
  expect_at(session.run(y, {{x, value}}), both(), {3, 8});
}

}  // namespace
}  // namespace runnel::test
