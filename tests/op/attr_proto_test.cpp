#include <gtest/gtest.h>

#include <limits>

#include "runnel/op/attr_bytes.h"
#include "runnel/op/registry.h"
#include "tests/support/expect_error.h"

namespace runnel {
namespace {

using test::expect_error;

void expect_back(const AttrValue& value) {
  const AttrValue back = parse_attr(serialize_attr(value), value);
  EXPECT_EQ(back.index(), value.index());
  EXPECT_EQ(attr_to_string(back), attr_to_string(value));
}

TEST(AttrProto, EveryTypeComesBack) {
  expect_back(int64_t{-5});
  expect_back(0.2);
  expect_back(1e-7);
  expect_back(std::numeric_limits<double>::infinity());
  expect_back(true);
  expect_back(std::string("NHWC"));
  expect_back(DType::bfloat16);
  expect_back(DType::invalid);
  expect_back(PartialShape{2, kUnknownDim});
  expect_back(PartialShape::unknown());
  expect_back(PartialShape{});
  expect_back(std::vector<int64_t>{1, -2});
  expect_back(std::vector<int64_t>{});
  expect_back(std::vector<double>{0.1, 3});
  expect_back(std::vector<std::string>{"a", ""});
  expect_back(std::vector<DType>{DType::float32, DType::string});
  expect_back(std::vector<PartialShape>{PartialShape{1}, PartialShape::unknown()});
  expect_back(Tensor{1.f, 2.f});
}

TEST(AttrProto, IsTensorFlowsMessage) {
  EXPECT_EQ(serialize_attr(int64_t{3}), "\x18\x03");
  EXPECT_EQ(serialize_attr(std::string("ab")),
            "\x12\x02"
            "ab");
  EXPECT_EQ(serialize_attr(DType::int32), "\x30\x03");
  EXPECT_EQ(serialize_attr(std::vector<int64_t>{1, 2}), "\x0a\x04\x1a\x02\x01\x02");
  EXPECT_EQ(serialize_attr(std::vector<DType>{}), std::string("\x0a\x00", 2));
}

TEST(AttrProto, TheAttributesOfEverySampleComeBack) {
  for (const OpDef* op : registry().all()) {
    for (const Sample& s : op->samples) {
      for (const AttrSpec& spec : op->attrs.specs) {
        const AttrValue value = spec.get(s.attrs.get());
        const Tensor* tensor = std::get_if<Tensor>(&value);
        if (tensor && !tensor->defined()) continue;
        SCOPED_TRACE(op->name + "." + spec.name);
        expect_back(value);
      }
    }
  }
}

TEST(AttrProto, RefusesAnotherType) {
  expect_error([] { parse_attr(serialize_attr(int64_t{3}), AttrValue(true)); }, Code::invalid_argument,
               "bool needed, got int");
  expect_error([] { parse_attr(serialize_attr(std::vector<int64_t>{3}), AttrValue(std::vector<DType>{})); },
               Code::invalid_argument, "list(type) needed, got a list of something else");
  expect_error([] { parse_attr("\x18", AttrValue(int64_t{})); }, Code::data_loss, "no such message");
}

}  // namespace
}  // namespace runnel
