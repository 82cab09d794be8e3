// Rows sorted into several tensors, and put together again.
#include "runnel/ops/partition.h"

#include <numeric>

#include "runnel/base/format.h"
#include "runnel/kernels/cpu/copy.h"
#include "runnel/kernels/cpu/element.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/math.h"

namespace runnel {
namespace {

struct DynamicPartitionAttrs {
  int64_t num_partitions = 1;
  static constexpr auto fields() {
    return field_list(
        field("num_partitions", &DynamicPartitionAttrs::num_partitions, {.required = true, .minimum = 1}));
  }
};

void require_prefix(const PartialShape& prefix, const PartialShape& whole, const char* what) {
  if (!prefix.has_rank() || !whole.has_rank()) return;
  bool fits = prefix.rank() <= whole.rank();
  for (int i = 0; fits && i < prefix.rank(); ++i) fits = prefix[i] < 0 || whole[i] < 0 || prefix[i] == whole[i];
  if (!fits) throw invalid_argument("{} {} must be the leading dimensions of data {}", what, prefix.str(), whole.str());
}

void partition_rows(KernelContext& c, const DynamicPartitionAttrs& a) {
  const Shape &data = c.in(0).shape(), &which = c.in(1).shape();
  const int32_t* to = c.in<int32_t>(1);
  const int64_t n = which.num_elements();
  std::vector<int64_t> count(static_cast<size_t>(a.num_partitions), 0);
  for (int64_t i = 0; i < n; ++i) {
    if (to[i] < 0 || to[i] >= a.num_partitions) {
      throw invalid_argument("partitions[{}] = {} is not in [0, {})", i, to[i], a.num_partitions);
    }
    ++count[static_cast<size_t>(to[i])];
  }
  int64_t width = 1;
  for (int d = which.rank(); d < data.rank(); ++d) width *= data[d];
  for (int p = 0; p < c.num_outputs(); ++p) {
    Dims dims{count[static_cast<size_t>(p)]};
    dims.insert(dims.end(), data.dims().begin() + which.rank(), data.dims().end());
    c.allocate(p, Shape(dims));
  }
  cpu::with_element(c.in(0).dtype(), [&]<class E>() {
    std::vector<E*> next;
    for (int p = 0; p < c.num_outputs(); ++p) next.push_back(c.out(p).mutable_data<E>());
    const E* from = c.in(0).data<E>();
    for (int64_t i = 0; i < n; ++i) {
      E*& at = next[static_cast<size_t>(to[i])];
      cpu::copy_run(from + i * width, at, width);
      at += width;
    }
  });
}

constexpr auto stitch_shape = [](InferContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape row = PartialShape::unknown();
  int64_t rows = 0;
  for (int m = 0; m < n; ++m) {
    const PartialShape &at = c.input(m), &data = c.input(n + m);
    require_prefix(at, data, "indices");
    if (at.has_rank() && data.has_rank()) {
      const PartialShape inner(Dims(data.begin() + at.rank(), data.end()));
      if (!inner.compatible_with(row)) {
        throw invalid_argument("rows differ in shape: {} in data[{}], {} before", inner.str(), m, row.str());
      }
      row = row.merged_with(inner);
    }
    const Tensor* known = c.constant(m);
    if (!known) {
      rows = kUnknownDim;
    } else if (rows >= 0) {
      for (int64_t i : int_values(*known)) rows = std::max(rows, i + 1);
    }
  }
  if (!row.has_rank()) return c.output(row);
  Dims dims{rows};
  dims.insert(dims.end(), row.begin(), row.end());
  c.output(PartialShape(dims));
};

void stitch(KernelContext& c) {
  const int n = c.num_inputs() / 2;
  const Tensor& out = c.out();
  const int64_t rows = out.shape()[0];
  const int64_t width = rows == 0 ? 0 : out.num_elements() / rows;
  cpu::with_element(out.dtype(), [&]<class E>() {
    // Rows that no index names are zeros.
    std::fill(out.mutable_data<E>(), out.mutable_data<E>() + out.num_elements(), E{});
    for (int m = 0; m < n; ++m) {
      const int32_t* at = c.in<int32_t>(m);
      const E* from = c.in(n + m).data<E>();
      for (int64_t i = 0; i < c.in(m).num_elements(); ++i) {
        if (at[i] < 0) throw invalid_argument("indices[{}] has a negative index: {}", m, at[i]);
        cpu::copy_run(from + i * width, out.mutable_data<E>() + at[i] * width, width);
      }
    }
  });
}

constexpr auto stitch_grad = [](const GradCtx& g) {
  const int n = g.num_inputs() / 2;
  Gradients all(static_cast<size_t>(2 * n));
  for (int m = 0; m < n; ++m) {
    all[static_cast<size_t>(n + m)] = g.want(n + m, [&] { return gather(g.dy(), g.x(m)); });
  }
  return all;
};

void define_stitch(Registry& r, const char* name, const char* doc) {
  const Tensor rows{{1.f, 2.f}, {3.f, 4.f}};
  r.define(name)
      .type("T", data_types + Types<VariantValue>{})
      .in_list("indices", "N", DType::int32)
      .at_least(1)
      .in_list("data", "N")
      .out("merged", "T")
      .shape(stitch_shape)
      .cpu([](KernelContext& c) { stitch(c); })
      .grad(stitch_grad)
      .doc(doc)
      .sample({.in = {Tensor{0, 2}, Tensor(1), rows, Tensor{5.f, 6.f}},
               .out = {Tensor{{1.f, 2.f}, {5.f, 6.f}, {3.f, 4.f}}}})
      .sample({.in = {Tensor{{3, 1}, {0, 2}}, rows}, .out = {Tensor{3.f, 2.f, 4.f, 1.f}}})
      .sample({.in = {Tensor{0, 1}, Tensor{1.f}}, .error = "leading dimensions"});
}

}  // namespace

void register_array_partition(Registry& r) {
  r.define<DynamicPartitionAttrs>("DynamicPartition")
      .type("T", all_types)
      .in("data", "T")
      .in("partitions", DType::int32)
      .out_list("outputs", "num_partitions")
      .shape([](InferContext& c) {
        const PartialShape &data = c.input(0), &which = c.input(1);
        require_prefix(which, data, "partitions");
        PartialShape part = PartialShape::unknown();
        if (data.has_rank() && which.has_rank()) {
          Dims dims{kUnknownDim};
          dims.insert(dims.end(), data.begin() + which.rank(), data.end());
          part = PartialShape(dims);
        }
        for (int i = 0; i < c.num_outputs(); ++i) c.output(i, part);
      })
      .cpu([](KernelContext& c, const DynamicPartitionAttrs& a) { partition_rows(c, a); })
      .grad([](const GradCtx& g, const DynamicPartitionAttrs& a) {
        // The numbers of the rows, sorted the same way, say where each row came from.
        const Tensor& which = g.x(1);
        const Tensor n = size(which);
        const auto from = dynamic_partition(reshape(range(n), shape(which)), which, a.num_partitions);
        std::vector<Tensor> rows;
        for (int i = 0; i < g.num_outputs(); ++i) rows.push_back(g.dy(i));
        return Gradients{reshape(dynamic_stitch(from, rows), shape(g.x(0))), {}};
      })
      .doc("The rows of data sorted into num_partitions tensors by the number that partitions gives each.")
      .sample({.in = {Tensor{1.f, 2.f, 3.f, 4.f}, Tensor{1, 0, 1, 1}}, .out = {Tensor{2.f}, Tensor{1.f, 3.f, 4.f}}},
              {.num_partitions = 2})
      .sample({.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{0, 0}}, .out = {Tensor{{1.f, 2.f}, {3.f, 4.f}}}},
              {.num_partitions = 1})
      .sample(
          {.in = {Tensor{{1.f, 2.f}, {3.f, 4.f}}, Tensor{{0, 1}, {1, 0}}}, .out = {Tensor{1.f, 4.f}, Tensor{2.f, 3.f}}},
          {.num_partitions = 2})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{0, 2}}, .error = "partitions[1] = 2 is not in [0, 2)"},
              {.num_partitions = 2})
      .sample({.in = {Tensor{1.f, 2.f}, Tensor{0}}, .error = "leading dimensions"}, {.num_partitions = 1});

  define_stitch(r, "DynamicStitch",
                "One tensor of the rows of several: indices[m][i] says where row i of data[m] goes.");
  define_stitch(
      r, "ParallelDynamicStitch",
      "One tensor of the rows of several: indices[m][i] says where row i of data[m] goes; the last one wins.");
}

std::vector<Tensor> dynamic_partition(const Operand& data, const Operand& partitions, int64_t num_partitions) {
  static const Op<DynamicPartitionAttrs> op("DynamicPartition");
  return op.many({data, partitions}, {.num_partitions = num_partitions});
}

Tensor dynamic_stitch(const OperandList& indices, const OperandList& data) {
  return composed(indices.where(), [&]() -> Tensor {
    static const Op op("DynamicStitch");
    if (indices.size() != data.size()) {
      throw invalid_argument("[DynamicStitch] {} tensors of indices for {} of data", indices.size(), data.size());
    }
    std::vector<Arg> args(indices.values().begin(), indices.values().end());
    args.insert(args.end(), data.values().begin(), data.values().end());
    return op.list(args);
  });
}

}  // namespace runnel
