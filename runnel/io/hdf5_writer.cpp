#include <atomic>
#include <string_view>
#include <utility>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"
#include "runnel/io/checkpoint_commit.h"
#include "runnel/io/file_frame.h"
#include "runnel/io/hdf5.h"
#include "runnel/io/hdf5_library.h"
#include "runnel/io/hdf5_types.h"

namespace runnel::io {
namespace {

constexpr size_t kGrowBy = 1 << 20;           // of the file in memory
constexpr size_t kMostNoteBytes = 64 * 1024;  // what an object's header can have

}  // namespace

struct Hdf5Writer::State {
  State(std::string name, Env& env) : env(env), path(std::move(name)) {
    const std::lock_guard lock(hdf5_mutex());
    const Hdf5Handle access(lib.H5Pcreate(lib.H5P_CLS_FILE_ACCESS_ID_g), lib.H5Pclose);
    lib.H5Pset_fapl_core(access, kGrowBy, false);
    static std::atomic<uint64_t> number{0};
    file = {lib.H5Fcreate(fmt::format("runnel-new-{}", ++number).c_str(), kHdf5Truncate, H5P_DEFAULT, access),
            lib.H5Fclose};
    if (file < 0) throw failure("", "cannot be begun");
  }
  ~State() {
    const std::lock_guard lock(hdf5_mutex());
    file = {};
  }

  Error failure(const std::string& object, const std::string& what, Code code = Code::internal) const {
    const std::string place = object.empty() ? "" : fmt::format(", object '{}'", object);
    return make_error(code, "[hdf5] {}{}: {}{}", path, place, what, take_hdf5_reason(lib)).inside(file_frame(path, -1));
  }
  void check(herr_t result, const std::string& object, const char* what) const {
    if (result < 0) throw failure(object, what);
  }

  Hdf5Handle groups_on_the_way() const {
    Hdf5Handle how(lib.H5Pcreate(lib.H5P_CLS_LINK_CREATE_ID_g), lib.H5Pclose);
    lib.H5Pset_create_intermediate_group(how, 1);
    return how;
  }
  Hdf5Handle space_of(const std::vector<int64_t>& shape) const {
    if (shape.empty()) return {lib.H5Screate(H5S_SCALAR), lib.H5Sclose};
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    return {lib.H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), lib.H5Sclose};
  }
  Hdf5Handle text_type() const {
    Hdf5Handle type(lib.H5Tcopy(lib.H5T_C_S1_g), lib.H5Tclose);
    lib.H5Tset_size(type, H5T_VARIABLE);
    return type;
  }
  void add_attribute(const std::string& object, const std::string& name, hid_t type, hid_t space, const void* data) {
    const Hdf5Handle owner(lib.H5Oopen(file, object.empty() ? "/" : object.c_str(), H5P_DEFAULT), lib.H5Oclose);
    if (owner < 0) throw failure(object, "there is no such object to note something at", Code::not_found);
    const Hdf5Handle attribute(lib.H5Acreate2(owner, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                               lib.H5Aclose);
    if (attribute < 0) throw failure(object, fmt::format("attribute '{}' cannot be made", name));
    if (data) check(lib.H5Awrite(attribute, type, data), object, "an attribute cannot be written");
  }

  const Hdf5Library& lib = hdf5_library();
  Env& env;
  std::string path;
  Hdf5Handle file;
};

Hdf5Writer::Hdf5Writer(const std::string& path, Env& env, SourceSite where)
    : state_(at_caller(where, [&] { return std::make_unique<State>(path, env); })) {}
Hdf5Writer::~Hdf5Writer() = default;
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;

void Hdf5Writer::create_group(const std::string& path, SourceSite where) {
  at_caller(where, [&] {
    const std::lock_guard lock(hdf5_mutex());
    const State& s = *state_;
    const Hdf5Handle group(s.lib.H5Gcreate2(s.file, path.c_str(), s.groups_on_the_way(), H5P_DEFAULT, H5P_DEFAULT),
                           s.lib.H5Oclose);
    if (group < 0) throw s.failure(path, "the group cannot be made: is the name taken?", Code::already_exists);
  });
}

void Hdf5Writer::write(const std::string& dataset, const NpyView& array, SourceSite where) {
  at_caller(where, [&] {
    const std::lock_guard lock(hdf5_mutex());
    const State& s = *state_;
    uint64_t bytes = hdf5_dtype_size(array.dtype);
    for (const int64_t size : array.shape) bytes *= static_cast<uint64_t>(size);
    if (bytes != array.data.size()) {
      throw s.failure(dataset,
                      fmt::format("{} bytes are given for {} of shape [{}]", array.data.size(), array.dtype,
                                  comma_separated(array.shape)),
                      Code::invalid_argument);
    }
    const Hdf5Handle type = hdf5_type(s.lib, array.dtype);
    const Hdf5Handle space = s.space_of(array.shape);
    const Hdf5Handle id(
        s.lib.H5Dcreate2(s.file, dataset.c_str(), type, space, s.groups_on_the_way(), H5P_DEFAULT, H5P_DEFAULT),
        s.lib.H5Dclose);
    if (id < 0) throw s.failure(dataset, "the array cannot be made: is the name taken?", Code::already_exists);
    if (bytes == 0) return;
    s.check(s.lib.H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data.data()), dataset,
            "the array cannot be written");
  });
}

void Hdf5Writer::text_attribute(const std::string& object, const std::string& name, const std::string& text,
                                SourceSite where) {
  at_caller(where, [&] {
    const std::lock_guard lock(hdf5_mutex());
    const char* const pointer = text.c_str();
    state_->add_attribute(object, name, state_->text_type(), state_->space_of({}), &pointer);
  });
}

void Hdf5Writer::text_attribute(const std::string& object, const std::string& name,
                                const std::vector<std::string>& texts, SourceSite where) {
  at_caller(where, [&] {
    const std::lock_guard lock(hdf5_mutex());
    State& s = *state_;
    const Hdf5Handle space = s.space_of({static_cast<int64_t>(texts.size())});
    if (texts.empty()) return s.add_attribute(object, name, s.lib.H5T_IEEE_F64LE_g, space, nullptr);
    if (texts.size() * sizeof(char*) * 2 > kMostNoteBytes) {
      throw s.failure(object, fmt::format("attribute '{}' has {} texts, too many for one", name, texts.size()),
                      Code::invalid_argument);
    }
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    s.add_attribute(object, name, s.text_type(), space, pointers.data());
  });
}

void Hdf5Writer::finish(SourceSite where) {
  at_caller(where, [&] {
    State& s = *state_;
    std::vector<std::byte> bytes;
    {
      const std::lock_guard lock(hdf5_mutex());
      s.check(s.lib.H5Fflush(s.file, H5F_SCOPE_GLOBAL), "", "cannot be finished");
      const ssize_t size = s.lib.H5Fget_file_image(s.file, nullptr, 0);
      if (size < 0) throw s.failure("", "cannot be finished");
      bytes.resize(static_cast<size_t>(size));
      if (s.lib.H5Fget_file_image(s.file, bytes.data(), bytes.size()) < 0) throw s.failure("", "cannot be finished");
    }
    // Under names that are known, so that the next file of the folder clears away what a killed program left.
    const std::string dir = parent_dir(s.path);
    TemporaryFile written(s.path, s.env);
    written.write(bytes);
    written.rename_to(s.path);
    s.env.sync_dir(dir);
    remove_leftovers(dir, s.env);
  });
}

}  // namespace runnel::io
