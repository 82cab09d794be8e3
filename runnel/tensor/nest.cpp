#include "runnel/tensor/nest.h"

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel::nest::detail {
namespace {

const char* name(NestKind kind) {
  switch (kind) {
    case NestKind::leaf: return "a leaf";
    case NestKind::tuple: return "a tuple";
    case NestKind::list: return "a list";
    case NestKind::map: return "a map";
    case NestKind::sparse: return "a SparseTensor";
    case NestKind::ragged: return "a RaggedTensor";
    case NestKind::slices: return "IndexedSlices";
    case NestKind::composite: return "a composite";
  }
  return "nothing";
}

const char* component(NestKind kind, size_t i) {
  constexpr const char* sparse[] = {".indices", ".values", ".dense_shape"};
  constexpr const char* ragged[] = {".values", ".row_splits"};
  constexpr const char* slices[] = {".values", ".indices", ".dense_shape"};
  return kind == NestKind::sparse ? sparse[i] : kind == NestKind::ragged ? ragged[i] : slices[i];
}

}  // namespace

std::string describe(NestKind kind, size_t size, const std::vector<std::string>& keys) {
  if (kind == NestKind::tuple || kind == NestKind::list) return fmt::format("{} of {}", name(kind), size);
  if (kind == NestKind::map) return fmt::format("a map of ['{}']", fmt::join(keys, "', '"));
  return name(kind);
}

std::string step(NestKind kind, size_t i, const std::vector<std::string>& keys) {
  if (kind == NestKind::map) return fmt::format("['{}']", keys[i]);
  if (kind == NestKind::tuple || kind == NestKind::list || kind == NestKind::composite) return fmt::format("[{}]", i);
  return component(kind, i);
}

void wrong_kind(NestKind asked, NestKind got, size_t size, const SourceSite& where) {
  throw at_line(invalid_argument("[nest] {} asked of {}", name(asked),
                                 got == NestKind::map ? fmt::format("a map of {}", size) : describe(got, size, {})),
                where);
}

void no_entry(const AskedName& key, const std::vector<std::string>& keys) {
  throw at_line(
      make_error(Code::not_found, "[nest] no entry '{}': there are ['{}']", key.name, fmt::join(keys, "', '")),
      key.where);
}

void no_item(const AskedPlace& i, NestKind kind, size_t size) {
  throw at_line(make_error(Code::out_of_range, "[nest] item {} asked of {} of {}", i.place, name(kind), size), i.where);
}

void leaf_count(size_t needed, size_t given, const SourceSite& where) {
  throw at_line(invalid_argument("[nest] the structure has {} leaves, got {}", needed, given), where);
}

void differ(const std::string& path, const std::string& a, const std::string& b, const SourceSite& where) {
  throw at_line(invalid_argument("[nest] structures differ at {}: {} and {}", path.empty() ? "the top" : path, a, b),
                where);
}

}  // namespace runnel::nest::detail
