#include "runnel/keras/layers/cells.h"

#include "runnel/base/format.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"
#include "runnel/ops/nn.h"

namespace runnel::keras {
namespace {

Tensor cell_rows(const Tensor& batch_size, int64_t columns) { return stack({batch_size, int_scalar(columns)}); }

}  // namespace

CellStep RNNCell::operator()(const Tensor& input, const States& states, const CallArgs& args, SourceSite where) {
  const Nest out = Layer::operator()(Nest::tuple({input, Nest(states)}), args, where);
  return {out[0].leaf(), out[1].as<States>()};
}

void RNNCell::build(const NestOf<PartialShape>& inputs) { build(nest::flatten(inputs).at(0)); }

Nest RNNCell::call(const Nest& inputs, const CallArgs& args) {
  std::vector<Tensor> all = nest::flatten(inputs);
  const size_t expected = state_size().size();
  if (all.size() != expected + 1) {
    throw invalid_argument("[{}] cell '{}' takes an input and {} states, got {} tensors", class_name(), name(),
                           expected, all.size());
  }
  const CellStep out = step(all[0], States(all.begin() + 1, all.end()), args);
  return Nest::tuple({out.output, Nest(out.states)});
}

States RNNCell::get_initial_state(const Operand& batch_size, DType dtype) const {
  const DType type = dtype == DType::invalid ? compute_dtype() : dtype;
  const Tensor rows = batch_size.is_literal() ? batch_size.as(DType::int32) : cast(*batch_size.tensor(), DType::int32);
  States states;
  for (const int64_t size : state_size()) states.push_back(zeros(cell_rows(rows, size), type));
  return states;
}

CellStep RNNCell::step(const Tensor& input, const States& states, const CallArgs& args) {
  const CellSequence sequence = begin(shape(input)[0], args);
  return sequence.step(sequence.project(input), states);
}

CellSequence RNNCell::begin(const Tensor&, const CallArgs& args) {
  return {[](const Tensor& inputs) { return inputs; },
          [this, args](const Tensor& input, const States& states) { return step(input, states, args); }};
}

// --- a cell as a setting ---

CellPtr::CellPtr(const std::vector<CellPtr>& cells)
    : std::shared_ptr<RNNCell>(std::make_shared<StackedRNNCells>(StackedRNNCellsOptions{.cells = {cells}})) {}

Config CellPtr::config() const { return *this ? layer_to_config(**this) : Config(); }

CellPtr CellPtr::from_config(const Config& config) {
  if (config.is_null()) return {};
  auto cell = std::dynamic_pointer_cast<RNNCell>(layer_from_config(config));
  if (!cell) throw invalid_argument("[RNN] {} is no cell of a recurrent layer", config["class_name"].as_text());
  return cell;
}

Config CellList::config() const {
  Config::List items;
  for (const CellPtr& cell : all) items.push_back(cell.config());
  return items;
}

CellList CellList::from_config(const Config& config) {
  CellList cells;
  for (const Config& item : config.items()) cells.all.push_back(CellPtr::from_config(item));
  return cells;
}

// --- stacked cells ---

void StackedRNNCells::prepare() {
  if (options_.cells.all.empty()) throw invalid_argument("[StackedRNNCells] no cell was given");
  const auto cells = std::make_shared<TrackableList>();
  for (size_t i = 0; i < options_.cells.all.size(); ++i) {
    if (!options_.cells.all[i]) throw invalid_argument("[StackedRNNCells] cell {} is null", i);
    cells->append(std::shared_ptr<Trackable>(options_.cells.all[i]));
  }
  track("cells", cells);
}

void StackedRNNCells::build(const PartialShape& input) {
  PartialShape shape = input;
  for (const CellPtr& cell : options_.cells.all) {
    cell->build_from_shapes(shape);
    shape = PartialShape{input[0], cell->output_size()};
  }
}

std::vector<int64_t> StackedRNNCells::state_size() const {
  std::vector<int64_t> sizes;
  for (const CellPtr& cell : options_.cells.all) {
    const std::vector<int64_t> more = cell->state_size();
    sizes.insert(sizes.end(), more.begin(), more.end());
  }
  return sizes;
}

CellSequence StackedRNNCells::begin(const Tensor& batch_size, const CallArgs& args) {
  struct Part {
    CellSequence sequence;
    size_t num_states;
  };
  auto parts = std::make_shared<std::vector<Part>>();
  for (const CellPtr& cell : options_.cells.all) {
    parts->push_back({cell->begin(batch_size, args), cell->state_size().size()});
  }
  const auto step = [parts](const Tensor& projected, const States& states) {
    CellStep all;
    auto at = states.begin();
    for (const Part& part : *parts) {
      const auto end = at + static_cast<std::ptrdiff_t>(part.num_states);
      const Tensor input = &part == &parts->front() ? projected : part.sequence.project(all.output);
      CellStep next = part.sequence.step(input, States(at, end));
      all.output = next.output;
      all.states.insert(all.states.end(), next.states.begin(), next.states.end());
      at = end;
    }
    return all;
  };
  return {parts->front().sequence.project, step};
}

}  // namespace runnel::keras
