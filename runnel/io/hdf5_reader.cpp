#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/hdf5.h"
#include "runnel/io/hdf5_structure.h"

namespace runnel::io {
namespace {

constexpr std::string_view kFileSignature = "\x89HDF\r\n\x1a\n";
constexpr size_t kMaxDepth = 64;  // of groups in groups; links may lead back to where they stand

using Links = std::map<std::string, std::optional<uint64_t>>;

std::vector<std::string> path_parts(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

const char* kind_text(Hdf5Kind kind) {
  switch (kind) {
    case Hdf5Kind::group: return "a group";
    case Hdf5Kind::dataset: return "an array";
    default: return "a link to elsewhere or a named type";
  }
}

void swap_elements(std::vector<std::byte>& bytes, size_t size) {
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(i), bytes.begin() + static_cast<ptrdiff_t>(i + size));
  }
}

}  // namespace

struct Hdf5Reader::State {
  State(std::vector<std::byte> bytes, std::string name) : path(std::move(name)), bytes(std::move(bytes)) {}

  Error failure(Code code, const std::string& object, const std::string& what, uint64_t at = 0) const {
    const std::string place = object.empty() ? "" : fmt::format(", object '{}'", object);
    return make_error(code, "[hdf5] {}{}: {}", path, place, what).inside(file_frame(path, at));
  }
  template <class F>
  decltype(auto) guarded(const std::string& object, const F& f) const {
    try {
      return f();
    } catch (const Hdf5Fault& fault) {
      if (fault.unsupported) {
        throw failure(Code::unimplemented, object, fmt::format("{} (at byte {})", fault.what, fault.at), fault.at);
      }
      throw failure(Code::data_loss, object,
                    fmt::format("{} at byte {}; the file is damaged or cut short", fault.what, fault.at), fault.at);
    }
  }

  void open() {
    guarded("",
            [&] { structure.emplace(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())); });
  }

  // What is in a group is looked up again and again.
  const Links& links_of(uint64_t address, const Hdf5Object& group) {
    auto [at, is_new] = links.try_emplace(address);
    if (is_new) {
      try {
        at->second = structure->children(group);
      } catch (...) {
        links.erase(at);
        throw;
      }
    }
    return at->second;
  }

  struct Found {
    Hdf5Kind kind;
    uint64_t address = 0;
    Hdf5Object object = {};
  };
  Found find(const std::string& path) {
    const std::lock_guard lock(mutex);
    uint64_t address = structure->root();
    Hdf5Object object = structure->object(address);
    for (const std::string& part : path_parts(path)) {
      if (!object.is_group) return {Hdf5Kind::none};
      const Links& links = links_of(address, object);
      const auto link = links.find(part);
      if (link == links.end()) return {Hdf5Kind::none};
      if (!link->second) return {Hdf5Kind::other};
      address = *link->second;
      object = structure->object(address);
    }
    const Hdf5Kind kind = object.is_group ? Hdf5Kind::group : object.is_array ? Hdf5Kind::dataset : Hdf5Kind::other;
    return {kind, address, std::move(object)};
  }
  // `wanted` may be none: a group or an array.
  Found get(const std::string& path, Hdf5Kind wanted) {
    Found found = guarded(path, [&] { return find(path); });
    if (found.kind == Hdf5Kind::none) throw failure(Code::not_found, path, "there is no such object in the file");
    if (found.kind == wanted || (wanted == Hdf5Kind::none && found.kind != Hdf5Kind::other)) return found;
    throw failure(Code::invalid_argument, path,
                  fmt::format("{} is {}, not {}", path_parts(path).empty() ? "its root" : "it", kind_text(found.kind),
                              wanted == Hdf5Kind::none ? "a group or an array" : kind_text(wanted)));
  }

  // An array of numbers whose elements are all there.
  Hdf5Object array(const std::string& path) {
    Hdf5Object object = get(path, Hdf5Kind::dataset).object;
    const Hdf5Value& value = object.value;
    if (value.elements.kind != Hdf5Elements::Kind::number) {
      throw failure(Code::unimplemented, path,
                    "its elements are neither numbers nor bools (texts, records and complex numbers are not read)");
    }
    if (!value.count || object.bytes.size() / value.elements.size < *value.count) {
      throw failure(Code::data_loss, path,
                    fmt::format("an array of {}[{}] has {} bytes in the file; the file is damaged or cut short",
                                value.elements.dtype, comma_separated(value.shape), object.bytes.size()));
    }
    return object;
  }

  const Hdf5Object::Attribute* attribute(const Hdf5Object& object, const std::string& name) const {
    const auto at = std::ranges::find(object.attributes, name, &Hdf5Object::Attribute::name);
    return at == object.attributes.end() ? nullptr : &*at;
  }

  std::string path;
  std::vector<std::byte> bytes;  // of the whole file; one that is mapped kills the program when another cuts it short
  std::optional<Hdf5Structure> structure;
  std::mutex mutex;
  std::map<uint64_t, Links> links;
};

Hdf5Reader::Hdf5Reader(std::unique_ptr<State> state) : state_(std::move(state)) { state_->open(); }
Hdf5Reader::Hdf5Reader(const std::string& path, Env& env, SourceSite where)
    : Hdf5Reader(at_caller(where, [&] { return Hdf5Reader(std::make_unique<State>(env.read_file(path), path)); })) {}
Hdf5Reader Hdf5Reader::parse(ByteSpan bytes, const std::string& name, SourceSite where) {
  return at_caller(where, [&] {
    return Hdf5Reader(std::make_unique<State>(std::vector<std::byte>(bytes.begin(), bytes.end()), name));
  });
}
Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::path() const { return state_->path; }

Hdf5Kind Hdf5Reader::kind(const std::string& object, SourceSite where) const {
  return at_caller(where, [&] { return state_->guarded(object, [&] { return state_->find(object).kind; }); });
}

std::vector<std::string> Hdf5Reader::children(const std::string& group, SourceSite where) const {
  return at_caller(where, [&] {
    const State::Found found = state_->get(group, Hdf5Kind::group);
    const std::lock_guard lock(state_->mutex);
    std::vector<std::string> names;
    state_->guarded(group, [&] {
      for (const auto& [name, address] : state_->links_of(found.address, found.object)) names.push_back(name);
    });
    return names;
  });
}

void Hdf5Reader::walk(const std::string& group, FunctionRef<void(const std::string&, Hdf5Kind)> each,
                      SourceSite where) const {
  at_caller(where, [&] {
    if (path_parts(group).size() > kMaxDepth) {
      throw state_->failure(Code::data_loss, group, "groups stand in groups without an end; the file is damaged");
    }
    std::vector<std::string> groups;
    for (const std::string& name : children(group)) {
      const std::string object = group.empty() || group == "/" ? name : group + "/" + name;
      const Hdf5Kind what = kind(object);
      each(object, what);
      if (what == Hdf5Kind::group) groups.push_back(object);
    }
    for (const std::string& inner : groups) walk(inner, each);
  });
}

Hdf5ArrayInfo Hdf5Reader::info(const std::string& dataset, SourceSite where) const {
  return at_caller(where, [&]() -> Hdf5ArrayInfo {
    const Hdf5Value value = state_->array(dataset).value;
    return {value.elements.dtype, value.shape};
  });
}

NpyArray Hdf5Reader::read(const std::string& dataset, SourceSite where) const {
  return at_caller(where, [&]() -> NpyArray {
    const Hdf5Object array = state_->array(dataset);
    const Hdf5Elements& elements = array.value.elements;
    const auto* begin = reinterpret_cast<const std::byte*>(array.bytes.data());
    NpyArray out{elements.dtype, array.value.shape, {begin, begin + *array.value.count * elements.size}};
    if (elements.big_endian) swap_elements(out.data, elements.size);
    if (elements.dtype == "bool") {
      for (std::byte& b : out.data) b = b == std::byte{0} ? b : std::byte{1};
    }
    return out;
  });
}

bool Hdf5Reader::has_attribute(const std::string& object, const std::string& name, SourceSite where) const {
  return at_caller(where,
                   [&] { return state_->attribute(state_->get(object, Hdf5Kind::none).object, name) != nullptr; });
}

std::vector<std::string> Hdf5Reader::text_attribute(const std::string& object, const std::string& name,
                                                    SourceSite where) const {
  return at_caller(where, [&]() -> std::vector<std::string> {
    const Hdf5Object owner = state_->get(object, Hdf5Kind::none).object;
    const Hdf5Object::Attribute* const found = state_->attribute(owner, name);
    if (!found) throw state_->failure(Code::not_found, object, fmt::format("has no attribute '{}'", name));
    if (found->value.count == 0) return {};
    const Hdf5Elements::Kind kind = found->value.elements.kind;
    if (kind != Hdf5Elements::Kind::fixed_text && kind != Hdf5Elements::Kind::variable_text) {
      throw state_->failure(Code::invalid_argument, object, fmt::format("attribute '{}' is not of texts", name));
    }
    return state_->guarded(object, [&] { return state_->structure->texts(found->value, found->bytes); });
  });
}

bool is_hdf5_file(const std::string& path, Env& env, SourceSite where) {
  return at_caller(where, [&] {
    if (!env.exists(path) || env.stat(path).is_dir) return false;
    std::string begin(kFileSignature.size(), '\0');
    const auto file = env.open_sequential(path);
    begin.resize(file->read(std::as_writable_bytes(std::span(begin))));
    return begin == kFileSignature;
  });
}

}  // namespace runnel::io
