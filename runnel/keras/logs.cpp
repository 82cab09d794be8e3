#include "runnel/keras/logs.h"

#include <cmath>
#include <ostream>

#include "runnel/base/format.h"
#include "runnel/op/composed.h"
#include "runnel/ops/math.h"

namespace runnel::keras {

namespace {

std::string names_of(const auto& named) {
  std::string names;
  for (const auto& [name, value] : named) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

}  // namespace

Logs::Logs(const StepLogs& step) {
  for (const auto& [name, value] : step) {
    const Tensor number = value.dtype() == DType::float64 ? value : cast(value, DType::float64);
    set(name, number.item<double>());
  }
}

const double* Logs::find(std::string_view name) const {
  for (const auto& [known, value] : values_) {
    if (known == name) return &value;
  }
  return nullptr;
}

double Logs::operator[](const AskedName& name) const {
  if (const double* value = find(name.name)) return *value;
  throw make_error(Code::not_found, "[keras] the logs have no '{}'; there are: {}{}", name.name, names_of(values_),
                   user_line(name.where).at());
}

double Logs::operator[](const AskedPlace& i) const {
  const auto count = static_cast<int64_t>(values_.size());
  if (i.place >= -count && i.place < count) {
    return values_[static_cast<size_t>(i.place < 0 ? i.place + count : i.place)].second;
  }
  throw make_error(Code::out_of_range, "[keras] the logs have {} values, asked for number {}; there are: {}{}",
                   values_.size(), i.place, names_of(values_), user_line(i.where).at());
}

void Logs::set(const std::string& name, double value) {
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = value;
      return;
    }
  }
  values_.emplace_back(name, value);
}

size_t EpochValues::place(const AskedPlace& i) const {
  const auto count = static_cast<int64_t>(size());
  if (i.place >= -count && i.place < count) return static_cast<size_t>(i.place < 0 ? i.place + count : i.place);
  throw make_error(Code::out_of_range, "[History] epoch {} asked of {}: they are numbered from 0, and -1 is the last{}",
                   i.place, count, user_line(i.where).at());
}

std::ostream& operator<<(std::ostream& out, const EpochValues& values) {
  const char* before = "[";
  for (const double value : values) {
    const std::string digits = std::isnan(value) ? "nan" : fmt::format("{}", value);  // never "-nan"
    const bool whole = digits.find_first_not_of("-0123456789") == std::string::npos;
    out << before << digits << (whole ? ".0" : "");
    before = ", ";
  }
  return out << (values.empty() ? "[]" : "]");
}

std::ostream& operator<<(std::ostream& out, const Logs& logs) {
  EpochValues values;
  for (const auto& [name, value] : logs) values.push_back(value);
  return out << values;
}

const EpochValues& History::operator[](const AskedName& name) const {
  const auto found = history.find(std::string(name.name));
  if (found == history.end()) {
    throw make_error(Code::not_found, "[History] nothing was recorded as '{}'; there are: {}{}", name.name,
                     names_of(history), user_line(name.where).at());
  }
  return found->second;
}

void History::add(int64_t epoch_number, const Logs& logs) {
  epoch.push_back(epoch_number);
  for (const auto& [name, value] : logs) history[name].push_back(value);
}

}  // namespace runnel::keras
