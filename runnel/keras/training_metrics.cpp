// Which metrics a model reports.
#include <algorithm>

#include "runnel/keras/training.h"
#include "runnel/ops/variable_slot.h"

namespace runnel::keras {
namespace {

// The metrics among the parts of an object, through lists, then those of the layers in it.
void add_metrics(const Trackable& at, std::vector<const Trackable*>& met, std::vector<Metric*>& out) {
  if (std::find(met.begin(), met.end(), &at) != met.end()) return;
  met.push_back(&at);
  for (const Trackable::Edge& edge : at.edges()) {
    if (auto* metric = dynamic_cast<Metric*>(edge.object)) {
      if (std::find(out.begin(), out.end(), metric) == out.end()) out.push_back(metric);
    } else if (edge.object->holds_weights() && !dynamic_cast<Layer*>(edge.object)) {
      add_metrics(*edge.object, met, out);
    }
  }
  if (const auto* layer = dynamic_cast<const Layer*>(&at)) {
    for (const Layer* inner : layer->sublayers()) add_metrics(*inner, met, out);
  }
}

// Is one a copy of the other?
bool counts_with(const Metric& a, const Metric& b) {
  return !a.variables().empty() && !b.variables().empty() && &a.variables()[0].slot() == &b.variables()[0].slot();
}

}  // namespace

std::vector<Metric*> Model::metrics() {
  std::vector<Metric*> members;
  std::vector<const Trackable*> met;
  add_metrics(*this, met, members);
  std::vector<Metric*> all;
  // A member takes the place of what compile made under its name: the loss_tracker of a step of one's own is "loss".
  for (const MetricPtr& made : training_ ? training_->all_metrics() : std::vector<MetricPtr>()) {
    const auto member = std::ranges::find(members, made->name(), &Metric::name);
    Metric* metric = member != members.end() ? *member : made.get();
    if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
  }
  for (Metric* member : members) {
    const auto is_member = [&](const Metric* known) { return known == member || counts_with(*known, *member); };
    if (std::ranges::none_of(all, is_member)) all.push_back(member);
  }
  return all;
}

// A model that names its metrics itself need not name those of compile: the steps made here report them nevertheless.
std::vector<Metric*> Model::reported_metrics() {
  const std::vector<Metric*> named = metrics();
  std::vector<Metric*> all;
  for (const MetricPtr& made : training_ ? training_->all_metrics() : std::vector<MetricPtr>()) {
    const auto same = std::ranges::find(named, made->name(), &Metric::name);
    Metric* metric = same != named.end() ? *same : made.get();
    if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
  }
  for (Metric* metric : named) {
    if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
  }
  return all;
}

std::vector<std::string> Model::metrics_names() {
  std::vector<std::string> names;
  for (const Metric* metric : metrics()) names.push_back(metric->name());
  return names;
}

void Model::reset_metrics() {
  for (Metric* metric : reported_metrics()) metric->reset_state();
}

StepLogs Model::results_of(const std::vector<Metric*>& all) {
  StepLogs logs;
  for (const Metric* metric : all) logs.emplace_back(metric->name(), metric->result());
  return logs;
}

}  // namespace runnel::keras
