#include "runnel/tensor/format_array.h"

#include <gtest/gtest.h>

#include <source_dir.h>
#include <complex>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <vector>

#include "runnel/base/error.h"

namespace runnel {
namespace {

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string unhex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string unescape(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      result += text[i] == 'n' ? '\n' : '\\';
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<int64_t> integers_of(const std::string& text) {
  std::vector<int64_t> values;
  if (!text.empty()) {
    for (const std::string& part : split(text, ',')) {
      values.push_back(std::stoll(part));
    }
  }
  return values;
}

uint64_t fnv1a(const std::string& text) {
  uint64_t code = 0xcbf29ce484222325u;
  for (const char c : text) {
    code = (code ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return code;
}

std::string all_half_scalars() {
  std::string text;
  for (int i = 0; i < 65536; ++i) {
    const Half value = Half::from_bits(static_cast<uint16_t>(i));
    text += format_array({DType::float16, &value, {}});
    text += i == 65535 ? "" : "\n";
  }
  return text;
}

// One line of data/numpy_cases.txt; make_numpy_cases.py says what the fields are.
void check_case(const std::vector<std::string>& fields) {
  ASSERT_EQ(fields.size(), 7u);
  const DType dtype = dtype_from_name(fields[1]);
  const std::vector<int64_t> dims = integers_of(fields[2]);
  const std::vector<int64_t> settings = integers_of(fields[3]);
  const ArrayFormat options{.precision = static_cast<int>(settings[0]),
                            .threshold = settings[1],
                            .edge_items = static_cast<int>(settings[2]),
                            .line_width = static_cast<int>(settings[3]),
                            .suppress = settings[4] != 0};
  const size_t step = std::stoul(fields[4]);
  size_t count = 1;
  for (const int64_t dim : dims) {
    count *= static_cast<size_t>(dim);
  }
  std::vector<Bytes> strings;
  std::string plain;
  if (dtype == DType::string) {
    const std::vector<std::string> pool = split(fields[5], ',');
    for (size_t i = 0; i < count; ++i) {
      strings.emplace_back(unhex(pool[i * step % pool.size()]));
    }
  } else {
    const std::string pool = unhex(fields[5]);
    const size_t size = dtype_size(dtype);
    for (size_t i = 0; i < count; ++i) {
      plain.append(pool, i * step % (pool.size() / size) * size, size);
    }
  }
  std::vector<std::max_align_t> aligned(plain.size() / sizeof(std::max_align_t) + 1);
  std::memcpy(aligned.data(), plain.data(), plain.size());
  const void* data = dtype == DType::string ? static_cast<const void*>(strings.data()) : aligned.data();
  const ArrayView array{dtype, data, dims};
  ASSERT_EQ(fields[0] == "str" ? format_array(array, options) : format_array_repr(array, options), unescape(fields[6]))
      << fields[0] << ' ' << fields[1] << " [" << fields[2] << "] " << fields[3] << ' ' << fields[5];
}

TEST(FormatArray, PrintsWhatNumPyPrints) {
  const std::string path = std::string(kSourceDir) + "/tests/tensor/data/numpy_cases.txt";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  int cases = 0;
  int failures = 0;
  for (std::string line; std::getline(file, line) && failures < 20;) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields[0] == "half16") {
      EXPECT_EQ(fnv1a(all_half_scalars()), std::stoull(fields[1]));
    } else {
      check_case(fields);
      failures += HasFatalFailure() ? 1 : 0;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 2602);
}

template <class T>
struct Values {
  std::vector<int64_t> dims;
  std::vector<T> values;
  ArrayView view() const { return {dtype_of<T>, values.data(), dims}; }
};

TEST(TensorToString, AsTensorFlowPrints) {
  EXPECT_EQ(tensor_to_string(Values<float>{{}, {1}}.view()), "tf.Tensor(1.0, shape=(), dtype=float32)");
  EXPECT_EQ(tensor_to_string(Values<int32_t>{{3}, {1, 2, 3}}.view()), "tf.Tensor([1 2 3], shape=(3,), dtype=int32)");
  EXPECT_EQ(tensor_to_string(Values<float>{{2, 2}, {1, 2, 3, 4}}.view()),
            "tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)");
  EXPECT_EQ(tensor_to_string(Values<Bytes>{{}, {"abc"}}.view()), "tf.Tensor(b'abc', shape=(), dtype=string)");
  EXPECT_EQ(tensor_to_string(Values<Bytes>{{2}, {"a", "b"}}.view()),
            "tf.Tensor([b'a' b'b'], shape=(2,), dtype=string)");
  const bool flags[] = {true, false};
  const int64_t two[] = {2};
  EXPECT_EQ(tensor_to_string({DType::bool_, flags, two}), "tf.Tensor([ True False], shape=(2,), dtype=bool)");
  EXPECT_EQ(tensor_to_string({DType::bool_, flags, {}}), "tf.Tensor(True, shape=(), dtype=bool)");
  EXPECT_EQ(tensor_to_string(Values<float>{{0}, {}}.view()), "tf.Tensor([], shape=(0,), dtype=float32)");
  EXPECT_EQ(tensor_to_string(Values<float>{{0, 3}, {}}.view()), "tf.Tensor([], shape=(0, 3), dtype=float32)");
  EXPECT_EQ(tensor_to_string(Values<std::complex<float>>{{2}, {{1, 2}, {3, -4.5}}}.view()),
            "tf.Tensor([1.+2.j  3.-4.5j], shape=(2,), dtype=complex64)");
  EXPECT_EQ(tensor_to_string(Values<BFloat16>{{3}, {BFloat16(1.0f), BFloat16(3.14f), BFloat16(1e-9f)}}.view()),
            "tf.Tensor([1 3.14062 9.96806e-10], shape=(3,), dtype=bfloat16)");
}

TEST(TensorToString, Repr) {
  EXPECT_EQ(tensor_repr(Values<float>{{}, {1}}.view()), "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>");
  EXPECT_EQ(tensor_repr(Values<float>{{2}, {1, 2}}.view()),
            "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>");
  EXPECT_EQ(tensor_repr(Values<float>{{2, 2}, {1, 2, 3, 4}}.view()),
            "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[1., 2.],\n       [3., 4.]], dtype=float32)>");
  EXPECT_EQ(tensor_repr(Values<Bytes>{{}, {"it's"}}.view()), "<tf.Tensor: shape=(), dtype=string, numpy=b\"it's\">");
  EXPECT_EQ(tensor_repr(Values<Bytes>{{1}, {"a"}}.view()),
            "<tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a'], dtype=object)>");
  EXPECT_EQ(tensor_repr(Values<int64_t>{{2}, {1, 2}}.view()),
            "<tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>");
  EXPECT_EQ(tensor_repr(Values<BFloat16>{{2}, {BFloat16(1.0f), BFloat16(2.5f)}}.view()),
            "<tf.Tensor: shape=(2,), dtype=bfloat16, numpy=array([1, 2.5], dtype=bfloat16)>");
  EXPECT_EQ(variable_repr("w:0", "(2,)", Values<float>{{2}, {1, 2}}.view()),
            "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>");
}

TEST(TensorToString, HandlesAreDescribed) {
  struct Thing : Object {
    std::string describe() const override { return "TensorList"; }
  };
  const Values<VariantValue> one{{}, {VariantValue{std::make_shared<Thing>()}}};
  EXPECT_EQ(tensor_to_string(one.view()), "tf.Tensor(<TensorList>, shape=(), dtype=variant)");
  EXPECT_EQ(tensor_repr(one.view()), "<tf.Tensor: shape=(), dtype=variant, value=<TensorList>>");
}

TEST(FormatArray, BadOptions) {
  EXPECT_THROW(format_array(Values<float>{{1}, {1}}.view(), {.edge_items = 0}), Error);
  EXPECT_THROW(format_array({DType::invalid, nullptr, {}}), Error);
}

}  // namespace
}  // namespace runnel
