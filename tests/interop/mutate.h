#pragma once

// Calls made from those that the declarations state, by changing sizes, dtypes, values and attributes: nothing here
// knows an op by name.
#include <map>
#include <string>
#include <vector>

#include "tests/interop/call.h"
#include "tests/interop/random_values.h"

namespace runnel::interop {

// The values that attributes of one name and type have anywhere in the registry.
class AttributePool {
 public:
  explicit AttributePool(const std::vector<const OpDef*>& ops);
  // Null when there is none. A value that is new in the registry changes few of the choices.
  const AttrValue* one_of(const std::string& name, const AttrValue& like, Random& r) const;

 private:
  std::map<std::string, std::map<std::string, AttrValue>> values_;  // by name and type, then by text
};

std::vector<DType> data_dtypes();  // all but handles

// One attribute gets a value that one of its name has elsewhere, or one near its own, or a wrong one.
void reset_attribute(Call& call, const AttributePool& pool, Random& r);

// A call drawn from the declaration of the op alone: dtypes and numbers of inputs that it allows, or, now and then,
// not; shapes of a few sizes, so that some of them fit together.
Call drawn(const OpDef& op, const AttributePool& pool, Random& r);

// One of the calls, changed in a few ways. Most still make sense, some are wrong on purpose.
Call mutated(const std::vector<Call>& stated, const AttributePool& pool, Random& r);

}  // namespace runnel::interop
