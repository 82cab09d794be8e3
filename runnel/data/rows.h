#pragma once

// Elements put together into batches, batches cut into rows and joined. A SparseTensor or RaggedTensor of an element is
// one value here, not three or two tensors: a batch of them is one with a dimension more, as in TensorFlow.
#include <vector>

#include "runnel/data/item.h"

namespace runnel::data {

// Elements of one structure as a batch. SparseTensors get the largest of their shapes; RaggedTensors one ragged
// dimension more; tensors must have one shape.
void stack(const std::vector<Item>& elements, Item& out);
// Tensors of one shape on top of each other.
Tensor stack_tensors(const std::vector<Tensor>& tensors, const std::string& path);
// Tensors one below the other: only first dimensions may differ.
Tensor join_tensors(const std::vector<Tensor>& tensors, const std::string& path);
// Tensor number k of each item; an Error where the items differ in structure.
std::vector<Tensor> column(const std::vector<Item>& items, size_t k);

// Makes a batch ready for the functions below: in memory that can be read, SparseTensors in the order of their rows. An
// Error where its parts have no rows or not equally many.
void prepare_rows(Item& batch, const char* what);
int64_t rows_of(const Item& batch);
// Row i as an element. A row of a RaggedTensor with one ragged dimension is a Tensor.
void row_at(const Item& batch, int64_t i, Item& out);
void rows_at(const Item& batch, int64_t begin, int64_t end, Item& out);
// Batches one below the other.
void join(const std::vector<Item>& batches, Item& out);

// What the above does to descriptions; `batch` may be kUnknownDim.
ElementSpec batched(const ElementSpec& element, int64_t batch);
ElementSpec unbatched(const ElementSpec& batch);
ElementSpec rebatched(const ElementSpec& element, int64_t batch);
int64_t known_rows(const ElementSpec& batch);  // or kUnknownDim

}  // namespace runnel::data
