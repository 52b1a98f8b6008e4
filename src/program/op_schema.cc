#include "program/op_schema.h"

#include <algorithm>

namespace regatta::program {

namespace {

template <typename Named>
const Named* FindNamed(const std::vector<Named>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Named::name);
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

const SlotSchema* OpSchema::Input(std::string_view name) const { return FindNamed(inputs, name); }
const SlotSchema* OpSchema::Output(std::string_view name) const { return FindNamed(outputs, name); }
const AttributeSchema* OpSchema::FindAttribute(std::string_view name) const { return FindNamed(attributes, name); }

}  // namespace regatta::program
