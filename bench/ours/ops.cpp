// Single ops, for bench/ops: reads calls from standard input, a line each (bench/ops.txt says how), and writes the
// seconds of one call. --list writes calls of the elementwise ops; --threads N, --seconds S for one measurement.
#include <charconv>
#include <iostream>
#include <sstream>

#include "bench/common.h"
#include "runnel/op/dispatch.h"
#include "runnel/op/registry.h"
#include "runnel/runnel.h"

namespace {

using namespace runnel;

std::vector<std::string> parts(const std::string& text, char at) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) all.push_back(part);
  return all;
}

std::string trimmed(const std::string& s) {
  const size_t first = s.find_first_not_of(' ');
  return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(' ') - first + 1);
}

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> all;
  for (const std::string& n : parts(text, ',')) all.push_back(std::stoll(n));
  return all;
}

DType dtype_named(const std::string& name) {
  for (int i = 1; i < kNumDTypes; ++i) {
    if (name == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  throw std::runtime_error("no dtype is called " + name);
}

// "float32[10,20]:kind", "int32=[1,2]", "int32=1".
Tensor input(const std::string& text) {
  const size_t dtype_end = text.find_first_of("[=");
  const DType dtype = dtype_named(text.substr(0, dtype_end));
  if (text[dtype_end] == '=') {
    const std::string value = text.substr(dtype_end + 1);
    if (value[0] != '[') return cast(Tensor(std::stod(value)), dtype);
    const std::vector<int64_t> all = numbers(value.substr(1, value.size() - 2));
    return cast(Tensor::of<int64_t>(all, Shape{static_cast<int64_t>(all.size())}), dtype);
  }
  const size_t shape_end = text.find(']');
  const Shape shape(numbers(text.substr(dtype_end + 1, shape_end - dtype_end - 1)));
  const std::string kind = shape_end + 2 < text.size() ? text.substr(shape_end + 2) : "";
  const int64_t n = shape.num_elements();
  if (dtype == DType::string) {
    std::vector<Bytes> words;
    for (int64_t i = 0; i < n; ++i) {
      std::string word = std::to_string(i * 7919 % 100003);
      words.emplace_back(kind == "words" ? "w" + word + " of the line " + word : word);
    }
    return Tensor::of<Bytes>(words, shape);
  }
  std::vector<double> values(static_cast<size_t>(n));
  double low = -1, high = 1;
  if (is_integer(dtype)) low = 0, high = 100;
  if (const size_t dots = kind.find(".."); dots != std::string::npos) {
    low = std::stod(kind);
    high = std::stod(kind.substr(dots + 2));
  }
  uint32_t x = 12345;
  for (int64_t i = 0; i < n; ++i) {
    x = x * 1664525u + 1013904223u;
    const double u = static_cast<double>(x >> 8) / 16777216.0;
    values[static_cast<size_t>(i)] = low + (high - low) * u;
    if (dtype == DType::bool_) values[static_cast<size_t>(i)] = u < 0.5;
    if (is_integer(dtype)) values[static_cast<size_t>(i)] = std::floor(low + (high - low) * u);
  }
  if (kind == "sorted") {
    for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<double>(i * 100 / n);
  }
  if (kind == "definite") {  // the matrix is its own diagonal, nearly
    const int64_t size = shape[-1];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = i / size % size, column = i % size;
      values[static_cast<size_t>(i)] =
          row == column ? 2.0 : 1.0 / static_cast<double>(2 + std::abs(row - column) * size);
    }
  }
  return cast(Tensor::of<double>(values, shape), dtype);
}

AttrValue attribute(const AttrSpec& spec, const std::string& text) {
  const AttrValue& like = spec.default_value;
  const std::string inner = text.size() > 1 && text[0] == '[' ? text.substr(1, text.size() - 2) : text;
  if (std::holds_alternative<int64_t>(like)) return int64_t{std::stoll(text)};
  if (std::holds_alternative<double>(like)) return std::stod(text);
  if (std::holds_alternative<bool>(like)) return text == "true";
  if (std::holds_alternative<DType>(like)) return dtype_named(text);
  if (std::holds_alternative<std::vector<int64_t>>(like)) return numbers(inner);
  if (std::holds_alternative<std::vector<double>>(like)) {
    const std::vector<int64_t> whole = numbers(inner);
    return std::vector<double>(whole.begin(), whole.end());
  }
  return text;
}

std::function<void()> call_of(const std::string& line) {
  const std::vector<std::string> pieces = parts(line, ';');
  const std::vector<std::string> head = parts(trimmed(pieces.at(0)), ' ');
  const OpDef* op = registry().find(head.at(0));
  if (!op) throw std::runtime_error("no op is called " + head[0]);
  std::vector<std::pair<std::string, AttrValue>> attrs;
  for (size_t i = 1; i < head.size(); ++i) {
    const size_t equals = head[i].find('=');
    const AttrSpec* spec = op->attrs.find(head[i].substr(0, equals));
    if (spec) attrs.emplace_back(spec->name, attribute(*spec, head[i].substr(equals + 1)));
  }
  std::vector<Tensor> inputs;
  for (size_t i = 1; i < pieces.size(); ++i) {
    const std::vector<std::string> one = parts(trimmed(pieces[i]), '*');
    for (int64_t k = one.size() > 1 ? std::stoll(one[1]) : 1; k > 0; --k) inputs.push_back(input(one[0]));
  }
  return [name = op->name, inputs, attrs] { call_op(name, inputs, attrs); };
}

void list_elementwise() {
  for (const OpDef* op : registry().all()) {
    if (!op->elementwise || op->name[0] == '_' || op->type_vars.size() != 1) continue;
    const TypeVar& t = op->type_vars[0];
    const char* dtype = t.allows(DType::float32) ? "float32"
                        : t.allows(DType::int32) ? "int32"
                        : t.allows(DType::bool_) ? "bool"
                                                 : "complex64";
    for (const char* size : {"1000", "1000000"}) {
      std::string line = op->name;
      for (const ArgSpec& arg : op->inputs) {
        if (arg.type_var != 0 || arg.is_list()) line.clear();
        if (!line.empty()) line += std::string(" ; ") + dtype + "[" + size + "]:0.1..0.9";
      }
      if (!line.empty()) std::cout << line << '\n';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0.06;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--list")) {
      list_elementwise();
      return 0;
    }
    if (!std::strcmp(argv[i], "--threads") && i + 1 < argc) set_num_threads(std::atoi(argv[++i]));
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::printf("%.9e\n", bench::measure(call_of(line), seconds));
    } catch (const std::exception& e) {
      std::printf("error %s\n", std::string(e.what()).substr(0, std::string(e.what()).find('\n')).c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}
