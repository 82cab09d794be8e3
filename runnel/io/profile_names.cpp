#include "runnel/io/profile_names.h"

#include <algorithm>
#include <array>

namespace runnel::io {
namespace {

constexpr std::array<const char*, 13> kKindNames = {"op",      "node", "chain", "group",      "run",
                                                    "tracing", "pass", "stage", "input_wait", "checkpoint",
                                                    "summary", "step", "user"};
static_assert(static_cast<size_t>(profile::Kind::user) + 1 == kKindNames.size());

constexpr std::string_view kStagePrefix = "Iterator::";
constexpr std::string_view kInputWait = "IteratorGetNext:IteratorGetNext";
constexpr std::string_view kInputOp = "IteratorGetNext";
constexpr std::string_view kRunPrefix = "FunctionRun: ";
// What TensorFlow's runtime does around ops.
constexpr std::array<std::string_view, 7> kRuntimePrefixes = {
    "EagerExecute",           "EagerLocalExecute", "EagerKernelExecute",          "FunctionRun",
    "ExecutorState::Process", "TFE_Py_Execute",    "InstantiatedCapturedFunction"};

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
// The characters that the plugin takes for parts of "name:Type".
bool begins_op_name(char c) { return is_letter(c) || is_digit(c) || c == '.'; }
bool in_op_name(char c) { return begins_op_name(c) || c == '_' || c == '/' || c == '>' || c == '-'; }
bool begins_op_type(char c) { return (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_op_type(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

bool is_op_name(std::string_view text) {
  return !text.empty() && begins_op_name(text.front()) && std::all_of(text.begin(), text.end(), in_op_name);
}
bool is_op_type(std::string_view text) {
  return !text.empty() && begins_op_type(text.front()) && std::all_of(text.begin(), text.end(), in_op_type);
}

std::string as_op_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (!in_op_name(c)) c = '_';
  }
  if (name.empty() || !begins_op_name(name.front())) name.insert(name.begin(), '.');
  return name;
}
std::string as_op_type(std::string_view text) {
  std::string type(text);
  for (char& c : type) {
    if (!in_op_type(c)) c = '_';
  }
  if (type.empty() || !begins_op_type(type.front())) type.insert(type.begin(), '_');
  return type;
}

// A name that nobody takes for an op's.
std::string as_free_name(std::string_view text) {
  std::string name(text);
  const size_t colon = name.find(':');
  if (colon != std::string::npos) name.insert(colon + 1, 1, ' ');
  return name;
}

const char* free_prefix(profile::Kind kind) {
  switch (kind) {
    case profile::Kind::group: return "Group: ";
    case profile::Kind::tracing: return "Tracing: ";
    case profile::Kind::pass: return "Pass: ";
    case profile::Kind::checkpoint: return "Checkpoint: ";
    case profile::Kind::summary: return "Summary: ";
    default: return "";
  }
}

}  // namespace

const char* profile_kind_name(profile::Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

bool profile_kind_from_name(std::string_view name, profile::Kind* kind) {
  const auto at = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (at == kKindNames.end()) return false;
  *kind = static_cast<profile::Kind>(at - kKindNames.begin());
  return true;
}

std::string tensorflow_event_name(const profile::Event& event) {
  switch (event.kind) {
    case profile::Kind::op:
    case profile::Kind::node:
      return as_op_name(event.name) + ":" + as_op_type(event.op_type.empty() ? event.name : event.op_type);
    case profile::Kind::chain:
      return as_op_name(event.name) + ":" + as_op_type(event.op_type.empty() ? "Chain" : event.op_type);
    case profile::Kind::stage: return std::string(kStagePrefix) + event.name;
    case profile::Kind::input_wait: return std::string(kInputWait);
    case profile::Kind::run: return std::string(kRunPrefix) + event.name;
    case profile::Kind::group:
    case profile::Kind::tracing:
    case profile::Kind::pass:
    case profile::Kind::checkpoint:
    case profile::Kind::summary: return free_prefix(event.kind) + event.name;
    case profile::Kind::step:
    case profile::Kind::user: return as_free_name(event.name);
  }
  return event.name;
}

void take_tensorflow_name(std::string_view name, profile::Event* event) {
  event->op_type.clear();
  event->name = name;
  event->kind = profile::Kind::user;
  if (name.starts_with(kStagePrefix)) {
    event->kind = profile::Kind::stage;
    event->name = name.substr(kStagePrefix.size());
    return;
  }
  for (const std::string_view prefix : kRuntimePrefixes) {
    if (!name.starts_with(prefix)) continue;
    event->kind = profile::Kind::run;
    if (name.starts_with(kRunPrefix)) event->name = name.substr(kRunPrefix.size());
    return;
  }
  if (name.starts_with(kInputOp)) event->kind = profile::Kind::input_wait;  // its parts have no type
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view op_name = name.substr(0, colon), op_type = name.substr(colon + 1);
  if (!is_op_name(op_name) || !is_op_type(op_type)) return;
  event->kind = op_type == kInputOp ? profile::Kind::input_wait : profile::Kind::node;
  event->name = op_name;
  event->op_type = op_type;
}

}  // namespace runnel::io
