#pragma once

#include "runnel/base/error.h"
#include "runnel/keras/training_options.h"

namespace runnel::keras {

constexpr int64_t kDefaultBatchSize = 32;

// The batches of a pass over data, as steps take them.
struct BatchPlan {
  const char* who = "fit";  // for errors
  int64_t batch_size = kDefaultBatchSize;
  bool shuffle = false;
};
// Samples in batches, or the dataset as it is, made ahead of time by another thread.
data::AnyDataset batches_of(const SampleData& data, const BatchPlan& plan);
// x, (x, y) or (x, y, sample_weight). An Error for single samples, which have no dimension of the batch.
TrainingBatch unpack_batch(const char* who, const Nest& element);
// The error of a step over a batch of the dataset, with advice where its elements look like single samples.
Error with_batch_advice(const Error& e, const data::AnyDataset& dataset);
// Errors for what is said of samples where a dataset is given.
void refuse_batch_size(const char* who, const char* option, const std::optional<int64_t>& batch_size);
void refuse_sample_weight(const char* who, const Tensor& sample_weight);
// An Error for data that would never end a pass; `limit` is the option that ends one.
void refuse_endless(const char* who, const data::AnyDataset& batches, const char* limit);
// An Error with the sizes, by name, unless all tensors have as many samples.
void check_same_counts(const std::vector<std::pair<const char*, Nest>>& data);
int64_t sample_count(const char* who, const Nest& samples);  // the first dimension
// Samples `begin` to `end`.
Nest sample_range(const Nest& samples, int64_t begin, int64_t end);
// Weights by class, as a table over class numbers, which go from 0 without a gap.
Tensor class_weight_table(const std::map<int64_t, double>& class_weight);
// The weights of samples with these labels; an Error for a label that the table has not.
Tensor weights_by_class(const Tensor& table, const Nest& y, const Tensor& sample_weight);

}  // namespace runnel::keras
