#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "runnel/op/dispatch.h"
#include "runnel/runnel.h"

namespace runnel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string text_file(const std::string& text) {
  const std::string path = testing::TempDir() + "/vocabulary.txt";
  std::ofstream(path) << text;
  return path;
}

TEST(Lookup, TablesFromInitializers) {
  const lookup::KeyValueTensorInitializer words({"a", "b"}, {1, 2}, DType::string, DType::int64);
  const lookup::StaticHashTable table(words, int64_t{-1});
  EXPECT_THAT(table.lookup(Tensor{"b", "c", "a"}).to_vector<int64_t>(), ElementsAre(2, -1, 1));
  EXPECT_EQ(table.size(), 2);
}

TEST(Lookup, TablesFromFiles) {
  const std::string path = text_file("a b\r\nc d\ne f\n");
  using lookup::TextFileIndex;
  const lookup::TextFileInitializer lines(path, DType::string, TextFileIndex::WHOLE_LINE, DType::int64,
                                          TextFileIndex::LINE_NUMBER);
  EXPECT_THAT(lookup::StaticHashTable(lines, int64_t{-1}).lookup(Tensor{"c d", "x"}).to_vector<int64_t>(),
              ElementsAre(1, -1));
  const lookup::TextFileInitializer columns(path, DType::string, 0, DType::string, 1,
                                            {.vocab_size = 2, .delimiter = " "});
  EXPECT_THAT(lookup::StaticHashTable(columns, "none").lookup(Tensor{"c", "e"}).to_vector<std::string>(),
              ElementsAre("d", "none"));
  EXPECT_THAT(
      error_of([&] { lookup::TextFileInitializer(path, DType::string, 0, DType::int64, 1, {.delimiter = " "}); }),
      HasSubstr("line 1: 'b' is no int64"));
  EXPECT_THAT(
      error_of([&] { lookup::TextFileInitializer(path, DType::string, 0, DType::string, 2, {.delimiter = " "}); }),
      HasSubstr("line 1 has 2 columns, 3 are needed"));
  EXPECT_THAT(error_of([&] { lookup::TextFileInitializer(path, DType::int64, -2, DType::int64, -1); }),
              HasSubstr("line 1: 'a b' is no int64"));
  EXPECT_THAT(error_of([&] { lookup::TextFileInitializer(path, DType::int64, -1, DType::float32, -2); }),
              HasSubstr("whole lines are strings or integers"));
  EXPECT_THAT(
      error_of([&] { lookup::TextFileInitializer(path, DType::string, -2, DType::int64, -1, {.vocab_size = 4}); }),
      HasSubstr("has 3 lines, vocab_size asks for 4"));
  EXPECT_THAT(
      error_of([&] { lookup::TextFileInitializer(text_file("a\n\nb\n"), DType::string, -2, DType::int64, -1); }),
      HasSubstr("line 2 is empty"));
}

TEST(Lookup, VocabulariesGiveOthersABucket) {
  const lookup::KeyValueTensorInitializer words({"emerson", "lake", "palmer"}, {0, 1, 2}, DType::string, DType::int64);
  const lookup::StaticVocabularyTable table(words, 5);
  // As in the documentation of TensorFlow's table.
  EXPECT_THAT(table.lookup(Tensor{"palmer", "lake", "or", "emerson"}).to_vector<int64_t>(),
              ElementsAre(2, 1, 3 + strings::to_hash_bucket_fast(Tensor("or"), 5).item<int64_t>(), 0));
  EXPECT_EQ(table.size(), 8);
  const lookup::KeyValueTensorInitializer numbers({10, 20}, {0, 1}, DType::int64, DType::int64);
  const lookup::StaticVocabularyTable other(numbers, 3, DType::int32);
  EXPECT_THAT(other.lookup(Tensor{20, 7}).to_vector<int64_t>(),
              ElementsAre(1, 2 + strings::to_hash_bucket_fast(Tensor("7"), 3).item<int64_t>()));
  const auto traced =
      function([&](Tensor t) { return table.lookup(t); }, {.input_signature = {TensorSpec({-1}, DType::string)}});
  EXPECT_THAT(traced(Tensor{"lake"}).to_vector<int64_t>(), ElementsAre(1));
}

std::vector<Tensor> run(const std::string& op, const std::vector<Tensor>& inputs,
                        const std::vector<std::pair<std::string, AttrValue>>& attrs = {}) {
  return call_op(op, inputs, attrs);
}

TEST(Lookup, TablesByName) {
  const auto named = [](const char* op, const char* name) {
    return run(op, {},
               {{"shared_name", std::string(name)}, {"key_dtype", DType::string}, {"value_dtype", DType::int64}})[0];
  };
  const Tensor fixed = named("HashTableV2", "lookup_test_fixed"), none{int64_t{-1}};
  const Tensor keys{"a", "b"}, values{int64_t{1}, int64_t{2}};
  EXPECT_THAT(error_of([&] {
                run("LookupTableFindV2", {fixed, keys, reshape(none, Shape{})});
              }),
              HasSubstr("no contents yet"));
  run("InitializeTableV2", {fixed, keys, values});
  run("InitializeTableV2", {fixed, keys, values});  // the same again
  const Tensor again = named("HashTableV2", "lookup_test_fixed");
  EXPECT_THAT(run("LookupTableFindV2", {again, keys, reshape(none, Shape{})})[0].to_vector<int64_t>(),
              ElementsAre(1, 2));
  EXPECT_THAT(error_of([&] {
                run("InitializeTableV2", {fixed, Tensor{"z"}, Tensor{int64_t{9}}});
              }),
              HasSubstr("2 entries already"));
  EXPECT_THAT(error_of([&] { run("LookupTableInsertV2", {fixed, keys, values}); }), HasSubstr("fixed"));
  EXPECT_THAT(error_of([&] {
                run("HashTableV2", {},
                    {{"shared_name", std::string("lookup_test_fixed")},
                     {"key_dtype", DType::string},
                     {"value_dtype", DType::string}});
              }),
              HasSubstr("asks for another table"));
  const Tensor open = named("MutableHashTableV2", "lookup_test_open");
  run("LookupTableInsertV2", {open, Tensor{"x"}, Tensor{int64_t{7}}});
  run("LookupTableImportV2", {open, keys, values});
  const auto all = run("LookupTableExportV2", {open}, {{"Tkeys", DType::string}, {"Tvalues", DType::int64}});
  EXPECT_THAT(all[0].to_vector<std::string>(), ElementsAre("a", "b"));
  EXPECT_THAT(all[1].to_vector<int64_t>(), ElementsAre(1, 2));
}

TEST(Lookup, VariablesByName) {
  const auto named = [](PartialShape shape) {
    return run("VarHandleOp", {},
               {{"shared_name", std::string("lookup_test_x")}, {"dtype", DType::float32}, {"shape", shape}})[0];
  };
  const Tensor x = named({2});
  EXPECT_FALSE(run("VarIsInitializedOp", {x})[0].item<bool>());
  EXPECT_THAT(error_of([&] { Variable::from_handle(x).value(); }), HasSubstr("no value yet"));
  Variable::from_handle(x).assign({1.f, 2.f});
  EXPECT_THAT(Variable::from_handle(named({2})).value().to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(error_of([&] { named({3}); }), HasSubstr("asks for float32[3]"));
  run("DestroyResourceOp", {x});
  EXPECT_FALSE(run("VarIsInitializedOp", {x})[0].item<bool>());
  EXPECT_THAT(error_of([&] {
                run("DestroyResourceOp", {x}, {{"ignore_lookup_error", false}});
              }),
              HasSubstr("does not exist"));
}

}  // namespace
}  // namespace runnel
