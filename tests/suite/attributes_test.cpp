// Attributes by name and as text: a call rebuilt from them is the same call.
#include "runnel/base/error.h"
#include "tests/suite/suite.h"
#include "tests/suite/values.h"
#include "tools/attr_json.h"

namespace runnel::test {

void check_attributes(const Case& c) {
  if (!c.sample().error.empty()) return;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  for (const AttrSpec& spec : c.op->attrs.specs) {
    const AttrValue value = spec.get(c.attrs());
    const std::string text = tools::attr_to_json(value).dump();
    attrs.emplace_back(spec.name, tools::attr_from_json(nlohmann::json::parse(text), attr_type_name(value)));
    EXPECT_EQ(tools::attr_to_json(attrs.back().second).dump(), text) << c.name() << ", attribute " << spec.name;
  }
  const std::vector<Tensor> direct = run(*c.op, c.inputs(), c.attrs());
  const std::vector<Tensor> named = call_op(c.op->name, c.inputs(), attrs);
  ASSERT_EQ(direct.size(), named.size());
  for (size_t i = 0; i < direct.size() && !c.op->stateful; ++i) {
    EXPECT_TRUE(same_bits(direct[i], named[i])) << c.name() << ", output " << i;
  }
}

}  // namespace runnel::test
