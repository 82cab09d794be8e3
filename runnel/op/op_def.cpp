#include "runnel/op/op_def.h"

#include <algorithm>
#include <cassert>

namespace runnel {

Sample::~Sample() = default;

namespace {

// The outputs of a list that a count says, none where dispatch will refuse the count.
int count_of(const AttrSpec& count, const void* attr_values) {
  constexpr int64_t kMost = int64_t{1} << 20;  // no program has as many
  const auto n = std::get<int64_t>(count.get(attr_values));
  return n < 0 || n > kMost ? 0 : static_cast<int>(n);
}

}  // namespace

int OpDef::num_outputs(const void* attr_values) const {
  int n = 0;
  for (const ArgSpec& arg : outputs) {
    if (!arg.is_list()) {
      ++n;
    } else if (!arg.count.empty()) {
      n += count_of(*attrs.find(arg.count), attr_values);
    } else {
      n += static_cast<int>(std::get<std::vector<DType>>(attrs.find(arg.type_list_attr)->get(attr_values)).size());
    }
  }
  return n;
}

bool OpDef::fits_input_count(int total) const {
  const auto lists = std::count_if(inputs.begin(), inputs.end(), [](const ArgSpec& a) { return a.is_list(); });
  const int rest = total - (static_cast<int>(inputs.size()) - static_cast<int>(lists));
  return lists == 0 ? rest == 0 : rest >= 0 && rest % static_cast<int>(lists) == 0;
}

const ArgSpec& OpDef::input_spec(int flat, int total) const {
  // Lists of one op share one length: what is left after the single inputs, divided among the lists.
  const auto lists = std::count_if(inputs.begin(), inputs.end(), [](const ArgSpec& a) { return a.is_list(); });
  const int singles = static_cast<int>(inputs.size()) - static_cast<int>(lists);
  const int length = lists == 0 ? 0 : (total - singles) / static_cast<int>(lists);
  for (const ArgSpec& arg : inputs) {
    const int n = arg.is_list() ? length : 1;
    if (flat < n) return arg;
    flat -= n;
  }
  return inputs.back();
}

Device& OpDef::device_output_home(int i, DType dtype, Device& device) const {
  const auto k = static_cast<size_t>(i);
  const bool host = !is_plain(dtype) || (k < outputs.size() && outputs[k].host_memory);
  return host ? Device::cpu() : device;
}

std::string OpDef::input_name(int flat) const {
  const auto k = static_cast<size_t>(flat);
  const size_t lists_from = static_cast<size_t>(
      std::find_if(inputs.begin(), inputs.end(), [](const ArgSpec& a) { return a.is_list(); }) - inputs.begin());
  return k < lists_from ? inputs[k].name : "input " + std::to_string(flat);
}

}  // namespace runnel
