#pragma once

// The messages of tf.train as plain C++ values: build them, serialize them, parse them. To read many records into
// tensors use parse_example (runnel/ops/parse.h), which skips these.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

struct RUNNEL_API BytesList {
  std::vector<std::string> value;
  bool operator==(const BytesList& other) const;
};
struct RUNNEL_API FloatList {
  std::vector<float> value;
  bool operator==(const FloatList& other) const;
};
struct RUNNEL_API Int64List {
  std::vector<int64_t> value;
  bool operator==(const Int64List& other) const;
};

// One of the three lists, or none: Feature(Int64List{{label}}).
struct RUNNEL_API Feature {
  std::variant<std::monostate, BytesList, FloatList, Int64List> kind;

  // Everything is defined in the .cpp: every program compiles this header.
  Feature();
  Feature(BytesList list);  // NOLINT: implicit, so that lists go where features go
  Feature(FloatList list);  // NOLINT
  Feature(Int64List list);  // NOLINT
  Feature(const Feature& other);
  Feature(Feature&& other) noexcept;
  Feature& operator=(const Feature& other);
  Feature& operator=(Feature&& other) noexcept;
  ~Feature();

  // The list, or null if it is of another kind.
  const BytesList* bytes_list() const;
  const FloatList* float_list() const;
  const Int64List* int64_list() const;
  bool operator==(const Feature& other) const;
};

struct RUNNEL_API Features {
  std::map<std::string, Feature> feature;
  bool operator==(const Features& other) const;
};

// Serializing the same value gives the same bytes, always: keys in order, numbers packed. Parsing takes whatever
// protobuf takes (any order, unpacked numbers, unknown fields, the last of a repeated key) and throws Error (data_loss)
// with the offset for anything else.
struct RUNNEL_API Example {
  Features features;

  std::string serialize() const;
  static Example parse(std::string_view bytes, SourceSite where = SourceSite::current());
  bool operator==(const Example& other) const;
};

struct RUNNEL_API FeatureList {
  std::vector<Feature> feature;
  bool operator==(const FeatureList& other) const;
};
struct RUNNEL_API FeatureLists {
  std::map<std::string, FeatureList> feature_list;
  bool operator==(const FeatureLists& other) const;
};

struct RUNNEL_API SequenceExample {
  Features context;
  FeatureLists feature_lists;

  std::string serialize() const;
  static SequenceExample parse(std::string_view bytes, SourceSite where = SourceSite::current());
  bool operator==(const SequenceExample& other) const;
};

// Protobuf's JSON form: {"features": {"feature": {"label": {"int64List": {"value": ["3"]}}}}}. Bytes are base64,
// numbers may be strings, names may be int64_list too. An unknown name is an error (invalid_argument), as in
// TensorFlow.
RUNNEL_API Example example_from_json(std::string_view json, SourceSite where = SourceSite::current());
RUNNEL_API std::string example_to_json(const Example& example, int indent = -1);  // -1: on one line
RUNNEL_API std::string sequence_example_to_json(const SequenceExample& example, int indent = -1);

}  // namespace runnel::io
