// Tensors as TensorFlow's TensorProto: against bytes written down by hand and against graphs that TensorFlow wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "runnel/tensor/serialize.h"
#include "runnel/tensor/type_sets.h"
#include "tests/support/expect_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/wire.h"

namespace runnel {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

// Pieces of a message.
std::string varint_field(int number, uint64_t v) {
  std::string out;
  append_varint(out, static_cast<uint64_t>(number) << 3);
  append_varint(out, v);
  return out;
}
std::string bytes_field(int number, std::string_view bytes) {
  std::string out;
  append_varint(out, static_cast<uint64_t>(number) << 3 | 2);
  append_varint(out, bytes.size());
  return out + std::string(bytes);
}
std::string shape_field(const std::vector<int64_t>& dims) {
  std::string shape;
  for (int64_t d : dims) shape += bytes_field(2, varint_field(1, static_cast<uint64_t>(d)));
  return bytes_field(2, shape);
}
std::string floats(const std::vector<float>& values) {
  std::string out;
  for (float v : values) append_fixed32(out, std::bit_cast<uint32_t>(v));
  return out;
}

TEST(TensorProto, IsWrittenByteForByteAsTensorFlowDoes) {
  EXPECT_EQ(serialize_tensor_proto(Tensor{1.f, 2.f}),
            varint_field(1, 1) + shape_field({2}) + bytes_field(4, floats({1, 2})));
  EXPECT_EQ(serialize_tensor_proto(Tensor(7)),
            varint_field(1, 3) + bytes_field(2, "") + bytes_field(4, std::string("\x07\0\0\0", 4)));
  EXPECT_EQ(serialize_tensor_proto(Tensor{"ab", ""}),
            varint_field(1, 7) + shape_field({2}) + bytes_field(8, "ab") + bytes_field(8, ""));
}

TEST(TensorProto, TheLastValueRepeats) {
  EXPECT_THAT(
      parse_tensor_proto(varint_field(1, 1) + shape_field({4}) + bytes_field(5, floats({1, 2}))).to_vector<float>(),
      ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(parse_tensor_proto(varint_field(1, 3) + shape_field({2})).to_vector<int32_t>(), ElementsAre(0, 0));
  EXPECT_THAT(parse_tensor_proto(varint_field(1, 7) + shape_field({3}) + bytes_field(8, "x")).to_vector<std::string>(),
              ElementsAre("x", "x", "x"));
  expect_error(
      [] {
        parse_tensor_proto(varint_field(1, 1) + shape_field({1}) + bytes_field(5, floats({1, 2})));
      },
      Code::invalid_argument, "2 values for float32[1]");
}

TEST(TensorProto, StringsMayStandInTheContent) {
  const Tensor t =
      parse_tensor_proto(varint_field(1, 7) + shape_field({3}) + bytes_field(4, std::string("\2\0\1abc", 6)));
  EXPECT_THAT(t.to_vector<std::string>(), ElementsAre("ab", "", "c"));
  expect_error([] { parse_tensor_proto(varint_field(1, 7) + shape_field({1}) + bytes_field(4, "\5abc")); },
               Code::data_loss, "string 0 has 5 bytes, 3 are left");
}

template <class T>
T element(int i) {
  if constexpr (std::is_same_v<T, Bytes>) {
    return Bytes(std::string(static_cast<size_t>(i), 'x'));
  } else if constexpr (is_complex(dtype_of<T>)) {
    return T(static_cast<typename T::value_type>(i), static_cast<typename T::value_type>(-i));
  } else if constexpr (std::is_same_v<T, bool>) {
    return i % 2 == 1;
  } else if constexpr (is_float(dtype_of<T>)) {
    return T(static_cast<float>(i) * -1.5f);
  } else {
    return static_cast<T>(std::numeric_limits<T>::max() - static_cast<T>(i));
  }
}

TEST(TensorProto, EveryDtypeComesBack) {
  data_types.for_each([]<class T>() {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0}, Shape{3, 0, 2}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype_of<T>)) + shape.str());
      Tensor t = Tensor::empty(dtype_of<T>, shape);
      for (int i = 0; i < static_cast<int>(t.num_elements()); ++i) t.mutable_data<T>()[i] = element<T>(i + 1);
      const Tensor back = parse_tensor_proto(serialize_tensor_proto(t));
      ASSERT_EQ(back.dtype(), t.dtype());
      ASSERT_EQ(back.shape(), shape);
      for (int64_t i = 0; i < t.num_elements(); ++i) EXPECT_EQ(back.data<T>()[i], t.data<T>()[i]);
    }
  });
}

TEST(TensorProto, RefusesWhatMakesNoTensor) {
  const std::string ok = varint_field(1, 1) + shape_field({2}) + bytes_field(4, floats({1, 2}));
  expect_error([&] { parse_tensor_proto(ok.substr(0, ok.size() - 1)); }, Code::data_loss, "no such message");
  expect_error([] { parse_tensor_proto(varint_field(1, 1) + shape_field({2}) + bytes_field(4, "abc")); },
               Code::data_loss, "float32[2] needs 8 bytes, tensor_content has 3");
  expect_error([] { parse_tensor_proto(varint_field(1, 11) + shape_field({2})); }, Code::unimplemented, "number 11");
  expect_error([] { parse_tensor_proto(shape_field({2})); }, Code::unimplemented, "number 0");
  expect_error([] { parse_tensor_proto(varint_field(1, 1) + shape_field({-1})); }, Code::invalid_argument,
               "is not fully known");
  expect_error([] { parse_tensor_proto(varint_field(1, 1) + shape_field({-7})); }, Code::invalid_argument,
               "a dimension of size -7");
  expect_error(
      [] {
        parse_tensor_proto(varint_field(1, 1) + shape_field({int64_t{1} << 40, int64_t{1} << 40}));
      },
      Code::resource_exhausted, "takes more than");
  expect_error([] { parse_tensor_proto(varint_field(1, 20) + shape_field({})); }, Code::unimplemented, "resource");
  expect_error([] { serialize_tensor_proto(Tensor()); }, Code::invalid_argument, "no tensor at all");
}

TEST(TensorProto, ABoolInAFileMayBeAnyByte) {
  const Tensor t =
      parse_tensor_proto(varint_field(1, 10) + shape_field({2}) + bytes_field(4, std::string("\x05\0", 2)));
  EXPECT_EQ(static_cast<int>(static_cast<const unsigned char*>(t.raw())[0]), 1);
  EXPECT_FALSE(t.data<bool>()[1]);
}

// Every constant of every graph in the fixtures is read; its elements are compared with the fields taken apart by hand.
void check_constant(std::string_view message, std::map<std::string, int>& seen) {
  const Tensor t = parse_tensor_proto(message);
  ++seen[dtype_name(t.dtype())];
  std::string_view content;
  std::vector<uint64_t> dims;
  std::vector<std::string_view> strings;
  for (const auto& f : test::wire_fields(message)) {
    if (f.number == 1) {
      EXPECT_EQ(static_cast<uint64_t>(t.dtype()), f.integer);
    } else if (f.number == 2) {
      for (std::string_view dim : test::wire_messages(f.bytes, 2)) {
        uint64_t size = 0;
        for (const auto& d : test::wire_fields(dim)) size = d.number == 1 ? d.integer : size;
        dims.push_back(size);
      }
    } else if (f.number == 4) {
      content = f.bytes;
    } else if (f.number == 8) {
      strings.push_back(f.bytes);
    }
  }
  ASSERT_EQ(dims.size(), static_cast<size_t>(t.rank()));
  for (size_t i = 0; i < dims.size(); ++i) EXPECT_EQ(static_cast<uint64_t>(t.dim(static_cast<int>(i))), dims[i]);
  if (!content.empty() && is_plain(t.dtype())) {
    EXPECT_EQ(std::string_view(static_cast<const char*>(t.raw()), t.num_bytes()), content);
  }
  for (size_t i = 0; i < strings.size(); ++i) EXPECT_EQ(t.data<Bytes>()[i].view(), strings[i]);
  // What we write is read as the same tensor.
  const Tensor again = parse_tensor_proto(serialize_tensor_proto(t));
  EXPECT_EQ(again.shape(), t.shape());
  if (is_plain(t.dtype())) {
    EXPECT_EQ(std::memcmp(again.raw(), t.raw(), t.num_bytes()), 0);
  } else {
    EXPECT_EQ(again.to_vector<std::string>(), t.to_vector<std::string>());
  }
}

void check_nodes(const std::vector<std::string_view>& nodes, std::map<std::string, int>& seen) {
  for (std::string_view node : nodes) {
    for (std::string_view attr : test::wire_messages(node, 5)) {
      for (std::string_view value : test::wire_messages(attr, 2)) {
        for (std::string_view tensor : test::wire_messages(value, 8)) check_constant(tensor, seen);
      }
    }
  }
}

TEST(TensorProto, ReadsTheConstantsOfTensorFlowsGraphs) {
  RUNNEL_REQUIRE_FIXTURES();
  std::map<std::string, int> seen;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::fixtures())) {
    if (entry.path().filename() != "saved_model.pb") continue;
    const std::string bytes = test::read_bytes(entry.path());
    bool whole = false;
    test::wire_fields(bytes, &whole);
    if (!whole) continue;  // a pointer in place of the file
    ++files;
    SCOPED_TRACE(entry.path().string());
    for (std::string_view meta : test::wire_messages(bytes, 2)) {
      for (std::string_view graph : test::wire_messages(meta, 2)) {
        check_nodes(test::wire_messages(graph, 1), seen);
        for (std::string_view library : test::wire_messages(graph, 2)) {
          for (std::string_view function : test::wire_messages(library, 1)) {
            check_nodes(test::wire_messages(function, 3), seen);
          }
        }
      }
    }
  }
  EXPECT_GT(files, 20);
  EXPECT_GT(seen["float32"], 100);
  EXPECT_GT(seen["string"], 50);
  EXPECT_GT(seen["int32"], 50);
}

}  // namespace
}  // namespace runnel
