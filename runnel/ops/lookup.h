#pragma once

#include <string>

#include "runnel/op/operand.h"

// Hash tables. Keys are strings or integers (int32, int64); values strings, numbers or bools.
// A table is a node of the object graph: track() takes it as a part of an object; checkpoints keep the contents of
// those that can change.
namespace runnel::lookup {

// What a table is filled with.
struct TableInitializer {
  Tensor keys, values;
};
struct RUNNEL_API KeyValueTensorInitializer : TableInitializer {
  KeyValueTensorInitializer(const Operand& keys, const Operand& values, DType key_dtype = DType::invalid,
                            DType value_dtype = DType::invalid);
};
// What stands for a column of a text file.
struct TextFileIndex {
  static constexpr int64_t WHOLE_LINE = -2;   // strings
  static constexpr int64_t LINE_NUMBER = -1;  // int64, from 0 on
};
struct TextFileOptions {
  int64_t vocab_size = -1;  // how many lines are read; all of them when negative
  std::string delimiter = "\t";
  int64_t value_index_offset = 0;  // added to line numbers
};
// Two columns of a text file, by number from 0 on or by TextFileIndex. Read when it is made.
struct RUNNEL_API TextFileInitializer : TableInitializer {
  TextFileInitializer(const std::string& filename, DType key_dtype, int64_t key_index, DType value_dtype,
                      int64_t value_index, const TextFileOptions& options = {},
                      SourceSite where = SourceSite::current());
};

// Fixed from its construction on; a key that is not there gives the default.
class RUNNEL_API StaticHashTable {
 public:
  StaticHashTable(const Operand& keys, const Operand& values, const Operand& default_value,
                  const std::string& name = "hash_table");
  StaticHashTable(const TableInitializer& initializer, const Operand& default_value,
                  const std::string& name = "hash_table");

  Tensor lookup(const Operand& keys) const;
  Tensor operator[](const Operand& keys) const { return lookup(keys); }
  int64_t size() const;
  const Tensor& handle() const { return handle_; }

 private:
  Tensor handle_;
  Tensor default_;
};

struct TableContents {
  Tensor keys, values;
};

// Grows and shrinks as the program runs. Values have the shape of the default: scalars or vectors.
class RUNNEL_API MutableHashTable {
 public:
  MutableHashTable(DType key_dtype, DType value_dtype, const Operand& default_value,
                   const std::string& name = "MutableHashTable");

  void insert(const Operand& keys, const Operand& values);
  void remove(const Operand& keys);
  Tensor lookup(const Operand& keys) const;
  // With another default: one value, or one for each key.
  Tensor lookup(const Operand& keys, const Operand& dynamic_default_values) const;
  Tensor operator[](const Operand& keys) const { return lookup(keys); }
  int64_t size() const;
  using Contents = TableContents;
  Contents export_contents(SourceSite where = SourceSite::current()) const;  // in the order of insertion
  const Tensor& handle() const { return handle_; }

 private:
  Tensor handle_;
  Tensor default_;
};

struct DenseHashTableOptions {
  int64_t initial_num_buckets = 131072;  // a power of two, 4 at least
  std::string name = "MutableDenseHashTable";
};
// The same, faster, for more memory: keys and values stand in buckets that are made at once. Two keys that are never
// used mark buckets which are empty or were emptied. Keys and values are scalars or vectors, of the shapes of empty_key
// and default_value. Keys to insert, remove and look up stand in one list: a tensor with one dimension more than a key.
//   lookup::DenseHashTable table(DType::string, DType::int64, -1, "", "$");
class RUNNEL_API DenseHashTable {
 public:
  DenseHashTable(DType key_dtype, DType value_dtype, const Operand& default_value, const Operand& empty_key,
                 const Operand& deleted_key, const DenseHashTableOptions& options = {});

  void insert(const Operand& keys, const Operand& values);
  void insert_or_assign(const Operand& keys, const Operand& values) { insert(keys, values); }
  void remove(const Operand& keys);
  void erase(const Operand& keys) { remove(keys); }
  Tensor lookup(const Operand& keys) const;
  Tensor operator[](const Operand& keys) const { return lookup(keys); }
  int64_t size() const;
  // All buckets, one row each; those without an entry have the empty_key.
  TableContents export_contents(SourceSite where = SourceSite::current()) const;
  const Tensor& handle() const { return handle_; }

 private:
  Tensor handle_;
  Tensor default_;
};

// Numbers of a vocabulary: keys that are not in it get one of num_oov_buckets numbers after the others, by their hash.
class RUNNEL_API StaticVocabularyTable {
 public:
  // The values are int64. Keys are looked up as lookup_key_dtype: that of the table, or another integer.
  StaticVocabularyTable(const TableInitializer& initializer, int64_t num_oov_buckets,
                        DType lookup_key_dtype = DType::invalid, const std::string& name = "hash_table",
                        SourceSite where = SourceSite::current());

  Tensor lookup(const Operand& keys) const;
  Tensor operator[](const Operand& keys) const { return lookup(keys); }
  int64_t size() const;
  const Tensor& handle() const { return table_.handle(); }

 private:
  StaticHashTable table_;
  DType key_dtype_, table_key_dtype_;
  int64_t num_oov_buckets_;
};

}  // namespace runnel::lookup
