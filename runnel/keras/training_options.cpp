#include "runnel/keras/training_options.h"

#include <utility>

#include "runnel/base/error.h"
#include "runnel/base/format.h"

namespace runnel::keras {
namespace {

// {{"price", "mse"}, {"price", "mae"}}: one of the two would be lost.
template <class Map, class Value>
void add_named(Map& map, const std::string& name, const Value& value) {
  if (map.emplace(name, value).second) return;
  throw invalid_argument("[compile] the output '{}' is named twice: give each name once", name);
}

}  // namespace

template <class T>
PerOutput<T>::PerOutput() = default;
template <class T>
PerOutput<T>::PerOutput(std::initializer_list<T> each) : all_(each), listed_(true) {}
template <class T>
PerOutput<T>::PerOutput(std::initializer_list<Named> named) {
  for (const Named& each : named) add_named(named_, each.name, each.value);
}
template <class T>
PerOutput<T>::PerOutput(std::map<std::string, T> named) : named_(std::move(named)) {}
template <class T>
PerOutput<T>::PerOutput(const PerOutput& other) = default;
template <class T>
PerOutput<T>::PerOutput(PerOutput&& other) noexcept = default;
template <class T>
PerOutput<T>& PerOutput<T>::operator=(const PerOutput& other) = default;
template <class T>
PerOutput<T>& PerOutput<T>::operator=(PerOutput&& other) noexcept = default;
template <class T>
PerOutput<T>::~PerOutput() = default;

template <class T>
bool PerOutput<T>::empty() const {
  return all_.empty() && named_.empty();
}

template <class T>
const T* PerOutput<T>::find(size_t i, size_t n, const std::string& name) const {
  if (!named_.empty()) {
    const auto found = named_.find(name);
    return found == named_.end() ? nullptr : &found->second;
  }
  if (all_.empty()) return nullptr;
  if (!listed_ || (n == 1 && all_.size() == 1)) return &all_[0];
  return i < all_.size() ? &all_[i] : nullptr;
}

template <class T>
void PerOutput<T>::set(T one) {
  all_.push_back(std::move(one));
}

template class PerOutput<LossArg>;
template class PerOutput<double>;

MetricList::MetricList() = default;
MetricList::MetricList(std::initializer_list<MetricArg> all) : all(all) {}
MetricList::MetricList(std::initializer_list<Named> by_output) {
  for (const Named& each : by_output) add_named(this->by_output, each.name, each.metrics.all);
}
MetricList::MetricList(std::vector<MetricArg> all) : all(std::move(all)) {}
MetricList::MetricList(std::map<std::string, std::vector<MetricArg>> by_output) : by_output(std::move(by_output)) {}
MetricList::MetricList(const MetricList& other) = default;
MetricList::MetricList(MetricList&& other) noexcept = default;
MetricList& MetricList::operator=(const MetricList& other) = default;
MetricList& MetricList::operator=(MetricList&& other) noexcept = default;
MetricList::~MetricList() = default;

SampleData::SampleData(NestArg x, NestArg y, Tensor sample_weight)
    : x(std::move(x)), y(std::move(y)), sample_weight(std::move(sample_weight)) {}
SampleData::SampleData(data::AnyDataset batches) : batches(std::move(batches)) {}
SampleData::SampleData(const SampleData& other) = default;
SampleData::SampleData(SampleData&& other) noexcept = default;
SampleData& SampleData::operator=(const SampleData& other) = default;
SampleData& SampleData::operator=(SampleData&& other) noexcept = default;
SampleData::~SampleData() = default;

ValidationData::ValidationData() = default;
ValidationData::ValidationData(std::optional<SampleData> data) : optional(std::move(data)) {}
ValidationData::ValidationData(SampleData data) : optional(std::move(data)) {}
ValidationData::ValidationData(NestArg x, NestArg y, Tensor sample_weight)
    : optional(std::in_place, std::move(x), std::move(y), std::move(sample_weight)) {}
ValidationData::ValidationData(data::AnyDataset batches) : optional(std::in_place, std::move(batches)) {}
ValidationData::ValidationData(const ValidationData& other) = default;
ValidationData::ValidationData(ValidationData&& other) noexcept = default;
ValidationData& ValidationData::operator=(const ValidationData& other) = default;
ValidationData& ValidationData::operator=(ValidationData&& other) noexcept = default;
ValidationData::~ValidationData() = default;

}  // namespace runnel::keras
