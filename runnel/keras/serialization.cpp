#include "runnel/keras/serialization.h"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel::keras {
namespace {

struct SerializableEntry {
  std::type_index type;
  SerializableObjects::Maker maker;
};
struct SerializableTable {
  std::mutex mutex;
  std::map<std::pair<std::type_index, std::string>, SerializableEntry> entries;  // by kind and full name
  std::map<std::type_index, std::string> names;
};
SerializableTable& serializable_table() {
  static SerializableTable table;
  return table;
}

}  // namespace

std::string class_name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  std::string name = status == 0 ? text.get() : type.name();
  // The last part that is outside of all angle brackets.
  int depth = 0;
  size_t begin = 0, end = name.size();
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' && depth++ == 0) end = i;
    if (name[i] == '>') --depth;
    if (depth == 0 && name.compare(i, 2, "::") == 0) {
      begin = i + 2;
      end = name.size();
    }
  }
  return name.substr(begin, end - begin);
}

std::string detail::full_name(const std::string& package, const std::string& name) {
  return package.empty() ? name : package + ">" + name;
}

void SerializableObjects::add(const std::type_info& kind, const std::string& package, const std::string& name,
                              const std::type_info& type, Maker maker, bool names_class, const SourceSite& where) {
  at_caller(where, [&] {
    if (name.empty() || name.find('>') != std::string::npos || package.find('>') != std::string::npos) {
      throw invalid_argument("[register_keras_serializable] a name must not be empty nor have a '>': '{}' of '{}'",
                             name, package);
    }
    const std::string full = detail::full_name(package, name);
    SerializableTable& table = serializable_table();
    const std::lock_guard lock(table.mutex);
    const std::pair key(std::type_index(kind), full);
    const auto known = table.entries.find(key);
    if (known != table.entries.end() && known->second.type != std::type_index(type)) {
      throw make_error(Code::already_exists,
                       "[register_keras_serializable] '{}' stands for something else already: give another name or "
                       "package",
                       full);
    }
    table.entries.insert_or_assign(key, SerializableEntry{type, std::move(maker)});
    if (names_class) table.names.insert_or_assign(type, full);
  });
}

SerializableObjects::Maker SerializableObjects::find(const std::type_info& kind, const std::string& name) {
  SerializableTable& table = serializable_table();
  const std::lock_guard lock(table.mutex);
  if (const auto found = table.entries.find({std::type_index(kind), name}); found != table.entries.end()) {
    return found->second.maker;
  }
  if (name.find('>') != std::string::npos) return {};
  const std::string end = ">" + name;
  const SerializableEntry* only = nullptr;
  for (const auto& [key, entry] : table.entries) {
    if (key.first != std::type_index(kind) || !key.second.ends_with(end)) continue;
    if (only) {
      throw invalid_argument("[keras] several packages have a '{}': write the package too, as in '{}'", name,
                             key.second);
    }
    only = &entry;
  }
  return only ? only->maker : Maker();
}

std::string SerializableObjects::name_of(const std::type_info& type) {
  SerializableTable& table = serializable_table();
  const std::lock_guard lock(table.mutex);
  const auto found = table.names.find(type);
  return found == table.names.end() ? std::string() : found->second;
}

std::string serialized_name(const std::type_info& type, const std::string& class_name) {
  const std::string registered = SerializableObjects::name_of(type);
  return registered.empty() ? class_name : registered;
}

}  // namespace runnel::keras
