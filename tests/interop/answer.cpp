// Runs a call here and writes down what came of it.
#include "runnel/autodiff/tape.h"
#include "runnel/base/error.h"
#include "runnel/op/dispatch.h"
#include "tests/interop/call.h"
#include "tests/interop/prepared.h"
#include "tests/interop/tensor_json.h"

namespace runnel::interop {
namespace {

using nlohmann::json;

json error_to_json(const Error& e) { return {{"code", static_cast<int>(e.code())}, {"text", e.what()}}; }

// The derivative of the outputs, weighted, by every continuous input.
void add_gradients(const Call& call, json& j) {
  try {
    const Prepared prepared(call);
    GradientTape tape;
    const Derivative d = derivative(call, prepared, tape);
    if (d.empty()) return;
    j["sources"] = d.sources;
    j["dy"] = json::array();
    for (const Tensor& dy : d.dy) j["dy"].push_back(tensor_to_json(dy));
    json grads = json::array();
    for (const Gradient& g : tape.gradient(d.of, d.by, d.dy)) {
      grads.push_back(g.defined() ? tensor_to_json(g.value()) : json());
    }
    j["grads"] = grads;
  } catch (const Error& e) {
    j["grads"] = {{"error", error_to_json(e)}};
  }
}

}  // namespace

json answer(const Call& call, How how, void (*stage)(const char*)) {
  json j = json::object();
  try {
    stage("the call");
    const Prepared prepared(call);
    const std::vector<Tensor> out =
        how == How::eager ? call_op(call.op->name, prepared.in, call.attrs) : run_in_graph(call, prepared.in, how);
    j["out"] = json::array();
    int64_t total = 0;
    for (const Tensor& t : out) total += t.defined() ? t.num_elements() : 0;
    j["elements"] = total;
    if (total > 100'000) return j;
    for (const Tensor& t : out) j["out"].push_back(tensor_to_json(t));
    if (!prepared.variables.empty() || !prepared.tables.empty()) j["after"] = prepared.state();
    if (how == How::eager && !call.op->stateful) {
      stage("the gradient");
      add_gradients(call, j);
    }
  } catch (const Error& e) {
    return {{"error", error_to_json(e)}};
  } catch (const std::bad_alloc&) {
    return {{"error", {{"code", static_cast<int>(Code::resource_exhausted)}, {"text", "std::bad_alloc"}}}};
  } catch (const std::exception& e) {
    return {{"foreign", e.what()}};
  }
  return j;
}

int64_t num_elements(const json& answer) { return answer.value("elements", int64_t{0}); }

}  // namespace runnel::interop
