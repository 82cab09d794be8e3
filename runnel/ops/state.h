#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "runnel/op/gradient.h"
#include "runnel/op/operand.h"
#include "runnel/tensor/trackable.h"

namespace runnel {

class VariableSlot;  // ops/variable_slot.h

struct VariableOptions {
  std::string name = "Variable";
  bool trainable = true;
  DType dtype = DType::invalid;            // the initial value's when not given
  std::optional<PartialShape> shape = {};  // what later values must fit; the initial value's shape when not given
};

// Tensor state that outlives calls: weights, counters. Stands wherever a Tensor is expected, as its value at that
// moment. Copies of a Variable refer to the same state. No tensor becomes a Variable unasked, for it would be a new
// one: `w.assign(value)` changes the value, `w = value` does not compile.
class RUNNEL_API Variable {
 public:
  Variable() = default;
  explicit Variable(const Operand& initial_value, const VariableOptions& options = {});
  static Variable from_handle(const Tensor& handle, SourceSite where = SourceSite::current());

  bool defined() const { return handle_.defined(); }
  const std::string& name(SourceSite where = SourceSite::current()) const;
  DType dtype(SourceSite where = SourceSite::current()) const;
  Shape shape(SourceSite where = SourceSite::current()) const;
  bool trainable(SourceSite where = SourceSite::current()) const;
  // The value now: an op (recorded by tapes, traced by functions).
  Tensor value(SourceSite where = SourceSite::current()) const;
  Tensor read_value(SourceSite where = SourceSite::current()) const { return value(where); }
  operator Tensor() const { return value(SourceSite()); }  // NOLINT: implicit

  // Parts of the value, as of a Tensor: w[0], w(all, slice(0, 4)).
  Tensor operator[](const Index& i) const { return value(i.where)[i]; }
  Tensor operator()(const Index& i) const { return value(i.where)(i); }
  Tensor operator()(const Index& i, const Index& j) const { return value(i.where)(i, j); }
  Tensor operator()(const Index& i, const Index& j, const Index& k) const { return value(i.where)(i, j, k); }
  Tensor operator()(const Index& i, const Index& j, const Index& k, const Index& l) const {
    return value(i.where)(i, j, k, l);
  }

  // Each returns the variable, so that calls can be chained; the value's dtype and shape must fit.
  const Variable& assign(const Operand& value) const;
  const Variable& assign_add(const Operand& delta) const;
  const Variable& assign_sub(const Operand& delta) const;
  // Row i of `values` changes row indices[i] of the variable; an index may come more than once.
  const Variable& scatter_add(const IndexedSlices& delta, SourceSite where = SourceSite::current()) const;
  const Variable& scatter_sub(const IndexedSlices& delta, SourceSite where = SourceSite::current()) const;
  const Variable& scatter_mul(const IndexedSlices& factor, SourceSite where = SourceSite::current()) const;
  const Variable& scatter_div(const IndexedSlices& divisor, SourceSite where = SourceSite::current()) const;
  const Variable& scatter_min(const IndexedSlices& bound, SourceSite where = SourceSite::current()) const;
  const Variable& scatter_max(const IndexedSlices& bound, SourceSite where = SourceSite::current()) const;
  const Variable& scatter_update(const IndexedSlices& rows, SourceSite where = SourceSite::current()) const;
  // The rows that `indices` name; the gradient is IndexedSlices, the whole is never copied.
  Tensor sparse_read(const Operand& indices) const;

  const Tensor& handle() const { return handle_; }
  VariableSlot& slot(SourceSite where = SourceSite::current()) const;

 private:
  Tensor handle_;
};

RUNNEL_API std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace runnel
