// Whole files, and tensors as bytes.
#include <algorithm>

#include "runnel/base/env.h"
#include "runnel/base/format.h"
#include "runnel/io/example.h"
#include "runnel/io/glob.h"
#include "runnel/io/origin.h"
#include "runnel/op/builder.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/io.h"
#include "runnel/ops/parse.h"
#include "runnel/ops/string_kernels.h"
#include "runnel/tensor/serialize.h"

namespace runnel {
namespace {

struct ParseTensorAttrs {
  DType out_type = DType::invalid;
  static constexpr auto fields() { return field_list(field("out_type", &ParseTensorAttrs::out_type)); }
};

// Runs a step whose errors name something below the op, so that they are told as the op's.
template <class F>
auto as_op(F step) {
  try {
    return step();
  } catch (const Error& e) {
    throw make_error(e.code(), "failed: {}", e.what());
  }
}

struct WholeFile {
  explicit WholeFile(const std::string& path) : bytes(with_room(Env::posix().read_file(path))), mark(place(), path) {}
  // An empty file is named by the byte it has room for.
  static std::vector<std::byte> with_room(std::vector<std::byte> all) {
    all.reserve(1);
    return all;
  }
  ByteSpan place() const { return {bytes.data(), std::max<size_t>(bytes.size(), 1)}; }
  std::vector<std::byte> bytes;
  io::OriginMark mark;
};

Bytes whole_file(const std::string& path) {
  auto file = std::make_shared<const WholeFile>(path);
  const std::string_view view(reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size());
  return {std::move(file), view};
}

// Into the file that is there, as TensorFlow does: a link or a device stays one.
void write_whole_file(const std::string& path, std::string_view contents) {
  Env& env = Env::posix();
  const std::string dir = parent_dir(path);
  if (!env.exists(dir)) env.create_dirs(dir);
  const std::unique_ptr<WritableFile> file = env.create(path);
  file->append(std::as_bytes(std::span(contents)));
  file->close();
}

}  // namespace

void register_io_files(Registry& r) {
  r.define("ReadFile")
      .in("filename", DType::string)
      .out("contents", DType::string)
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        scalar_shape(c);
      })
      .cpu([](KernelContext& c) { *c.out<Bytes>() = as_op([&] { return whole_file(c.in<Bytes>(0)->str()); }); })
      .stateful()
      .doc("The contents of a file.")
      .sample({.in = {Tensor("/dev/null")}, .out = {Tensor("")}})
      .sample({.in = {Tensor("/no/such/file")}, .error = "/no/such/file"});

  r.define("WriteFile")
      .in("filename", DType::string)
      .in("contents", DType::string)
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        c.require_rank(1, 0);
      })
      .cpu([](KernelContext& c) { as_op([&] { write_whole_file(c.in<Bytes>(0)->str(), c.in<Bytes>(1)->view()); }); })
      .stateful()
      .doc("Writes a file, making missing folders.")
      .sample({.in = {Tensor("/tmp/runnel_write_file_sample"), Tensor("text")}})
      .sample({.in = {Tensor("/dev/null/x"), Tensor("text")}, .error = "/dev/null"});

  r.define("MatchingFiles")
      .in("pattern", DType::string)
      .out("filenames", DType::string)
      .shape([](InferContext& c) {
        if (c.input(0).rank() > 1) throw invalid_argument("pattern must be a scalar or a vector");
        c.output(PartialShape{kUnknownDim});
      })
      .cpu([](KernelContext& c) {
        std::vector<std::string> paths;  // a path for each pattern that it fits
        for (int64_t i = 0; i < c.in(0).num_elements(); ++i) {
          for (std::string& path : io::matching_paths(c.in<Bytes>(0)[i].str())) paths.push_back(std::move(path));
        }
        std::sort(paths.begin(), paths.end());
        c.forward(0, Tensor::of<Bytes>(std::vector<Bytes>(paths.begin(), paths.end())));
      })
      .stateful()
      .doc("The files that fit patterns, sorted.")
      .sample({.in = {Tensor{"/dev/nul[l]", "/dev/nu?l"}}, .out = {Tensor{"/dev/null", "/dev/null"}}})
      .sample({.in = {Tensor("/dev/[")}, .error = "without ']'"});

  r.define("SerializeTensor")
      .in("tensor", data_types)
      .out("serialized", DType::string)
      .shape(scalar_shape)
      .cpu([](KernelContext& c) { *c.out<Bytes>() = Bytes(serialize_tensor_proto(c.in(0))); })
      .doc("A tensor as the bytes of a TensorProto.")
      .sample({.in = {Tensor{"text"}}, .out = {Tensor(Bytes(serialize_tensor_proto(Tensor{"text"})))}});

  r.define<ParseTensorAttrs>("ParseTensor")
      .in("serialized", DType::string)
      .out("output", "out_type")
      .shape([](InferContext& c) {
        c.require_rank(0, 0);
        c.output(PartialShape::unknown());
      })
      .cpu([](KernelContext& c, const ParseTensorAttrs& a) {
        Tensor t = as_op([&] { return parse_tensor_proto(c.in<Bytes>(0)->view()); });
        if (t.dtype() != a.out_type) {
          throw invalid_argument("the bytes hold a tensor of {}, not of {}", dtype_name(t.dtype()),
                                 dtype_name(a.out_type));
        }
        c.forward(0, std::move(t));
      })
      .doc("The tensor that SerializeTensor wrote.")
      .sample({.in = {Tensor(Bytes(serialize_tensor_proto(Tensor{1.5f, 2.f})))}, .out = {Tensor{1.5f, 2.f}}},
              {.out_type = DType::float32})
      .sample({.in = {Tensor(Bytes(serialize_tensor_proto(Tensor{1})))}, .error = "a tensor of int32, not of float32"},
              {.out_type = DType::float32});

  r.define("DecodeJSONExample")
      .in("json_examples", DType::string)
      .out("binary_examples", DType::string)
      .shape(like<0>)
      .cpu([](KernelContext& c) {
        for (int64_t i = 0; i < c.out().num_elements(); ++i) {
          try {
            c.out<Bytes>()[i] = Bytes(io::example_from_json(c.in<Bytes>(0)[i].view()).serialize());
          } catch (const Error& e) {
            throw make_error(e.code(), "example {}: {}", i, e.what());
          }
        }
      })
      .doc("Examples in JSON as serialized Examples.")
      .sample({.in = {Tensor{R"({"features": {"feature": {"a": {"int64List": {"value": ["3"]}}}}})"}},
               .out = {Tensor{Bytes(io::Example{{{{"a", io::Int64List{{3}}}}}}.serialize())}}})
      .sample({.in = {Tensor{"{]"}}, .error = "example 0: no valid JSON"});
}

namespace io {

Tensor serialize_tensor(const Operand& tensor) {
  static const Op op("SerializeTensor");
  return op({tensor});
}
Tensor parse_tensor(const Operand& serialized, DType out_type) {
  static const Op<ParseTensorAttrs> op("ParseTensor");
  return op({serialized}, {.out_type = out_type});
}
Tensor read_file(const Operand& filename) {
  static const Op op("ReadFile");
  return op({filename});
}
void write_file(const Operand& filename, const Operand& contents) {
  static const Op op("WriteFile");
  op.many({filename, contents});
}
Tensor matching_files(const Operand& pattern) {
  static const Op op("MatchingFiles");
  return op({pattern});
}
Tensor decode_json_example(const Operand& json_examples) {
  static const Op op("DecodeJSONExample");
  return op({json_examples});
}

}  // namespace io
}  // namespace runnel
