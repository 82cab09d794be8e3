#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runnel/base/asked.h"
#include "runnel/base/export.h"
#include "runnel/tensor/tensor.h"

namespace runnel::keras {

// What a step of training returns: "loss" and the metrics, in order. Tensors, for a step may be traced.
using StepLogs = std::vector<std::pair<std::string, Tensor>>;

// Numbers by name, in the order in which they are shown.
class RUNNEL_API Logs {
 public:
  Logs() = default;
  explicit Logs(const StepLogs& step);

  const double* find(std::string_view name) const;
  double operator[](const AskedName& name) const;  // an Error that lists the names there are
  double operator[](const AskedPlace& i) const;    // in order: the loss is 0; -1 is the last
  void set(const std::string& name, double value);
  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<std::pair<std::string, double>> values_;
};

// The numbers alone, as the list that evaluate gives in Python: [0.25, 0.9].
RUNNEL_API std::ostream& operator<<(std::ostream& out, const Logs& logs);

// A number of every epoch; shown as a list of Python: [0.5, 0.25].
class EpochValues : public std::vector<double> {
 public:
  using vector::vector;
  EpochValues(std::vector<double> values) : vector(std::move(values)) {}  // NOLINT: implicit

  // Of an epoch, from 0; -1 is the last. An Error where there is no such one.
  double& operator[](const AskedPlace& i) { return data()[place(i)]; }
  const double& operator[](const AskedPlace& i) const { return data()[place(i)]; }

 private:
  RUNNEL_API size_t place(const AskedPlace& i) const;
};
RUNNEL_API std::ostream& operator<<(std::ostream& out, const EpochValues& values);

// By the name of what was measured. Also a map of plain vectors, where one is wanted.
class EpochTable : public std::map<std::string, EpochValues> {
 public:
  using map::map;
  operator std::map<std::string, std::vector<double>>() const {  // NOLINT: implicit
    return std::map<std::string, std::vector<double>>(begin(), end());
  }
};

// What fit returns: the values of every epoch.
struct RUNNEL_API History {
  std::vector<int64_t> epoch;
  EpochTable history;

  const EpochValues& operator[](const AskedName& name) const;
  void add(int64_t epoch_number, const Logs& logs);
};

}  // namespace runnel::keras
