#pragma once

#include <string>

#include "runnel/op/operand.h"

// Hash tables. Keys are strings or integers (int32, int64); values strings, numbers or bools.
// A table is a node of the object graph: track() takes it as a part of an object; checkpoints keep the contents of
// those that can change.
namespace runnel::lookup {

// Fixed from its construction on; a key that is not there gives the default.
class RUNNEL_API StaticHashTable {
 public:
  StaticHashTable(const Operand& keys, const Operand& values, const Operand& default_value,
                  const std::string& name = "hash_table");

  Tensor lookup(const Operand& keys) const;
  Tensor operator[](const Operand& keys) const { return lookup(keys); }
  int64_t size() const;
  const Tensor& handle() const { return handle_; }

 private:
  Tensor handle_;
  Tensor default_;
};

// Grows and shrinks as the program runs.
class RUNNEL_API MutableHashTable {
 public:
  MutableHashTable(DType key_dtype, DType value_dtype, const Operand& default_value,
                   const std::string& name = "MutableHashTable");

  void insert(const Operand& keys, const Operand& values);
  void remove(const Operand& keys);
  Tensor lookup(const Operand& keys) const;
  Tensor operator[](const Operand& keys) const { return lookup(keys); }
  int64_t size() const;
  struct Contents {
    Tensor keys, values;  // in the order of insertion
  };
  Contents export_contents() const;
  const Tensor& handle() const { return handle_; }

 private:
  Tensor handle_;
  Tensor default_;
};

}  // namespace runnel::lookup
