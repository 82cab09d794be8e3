#pragma once

// Variables, tables and summary writers that graphs name: nodes with the same container and name mean one object, which
// lives until it is destroyed by name, or with the namespace that it is in.
#include <memory>
#include <string>

#include "runnel/base/function_ref.h"
#include "runnel/op/fields.h"
#include "runnel/tensor/tensor.h"

namespace runnel {

// The namespace of the graphs that were read together, as a session is in TensorFlow 1. Its names end with it.
class ResourceSpace {
 public:
  ResourceSpace() = default;
  ~ResourceSpace();
  ResourceSpace(const ResourceSpace&) = delete;
  ResourceSpace& operator=(const ResourceSpace&) = delete;
};

// Where a node of a graph that was read finds what it names; without a space, in the namespace of the program.
struct ResourceHome {
  std::shared_ptr<const ResourceSpace> space;
  std::string node;  // no name: the object is that node's, and its later runs find it again
};

// The object of that name, made unless it exists. One that has no name and no node is made anew and nobody else's.
// `kind` keeps variables and tables of one name apart.
std::shared_ptr<Object> named_resource(const char* kind, const ResourceHome& home, const std::string& container,
                                       const std::string& name, FunctionRef<std::shared_ptr<Object>()> make);
// Forgets the name of an object; false when it has none.
bool forget_resource(const Object* object);

// Of the ops that make variables by name. (`home` of these and of the attributes of tables and writers is no field: it
// is never written, and what reads a written graph gets one of its own.)
struct VariableHandleAttrs {
  std::string container;
  std::string shared_name;
  std::string debug_name;
  DType dtype = DType::invalid;
  PartialShape shape = PartialShape::unknown();
  std::vector<std::string> allowed_devices;
  ResourceHome home;
  static constexpr auto fields() {
    using A = VariableHandleAttrs;
    return field_list(field("container", &A::container), field("shared_name", &A::shared_name),
                      field("debug_name", &A::debug_name), field("dtype", &A::dtype),
                      field("shape", &A::shape, {.required = true}), field("allowed_devices", &A::allowed_devices));
  }
};
struct SummaryWriterAttrs {
  std::string shared_name;
  std::string container;
  ResourceHome home;
  static constexpr auto fields() {
    using A = SummaryWriterAttrs;
    return field_list(field("shared_name", &A::shared_name), field("container", &A::container));
  }
};

}  // namespace runnel
