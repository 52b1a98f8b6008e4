#include "binding/attribute.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "binding/status.h"
#include "program/block.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;
using program::Attribute;
using program::BlockIndex;

enum class Kind { kBool, kInt, kFloat, kString, kBlock, kOther };

bool IsBool(nb::handle value) {
  return PyBool_Check(value.ptr()) || std::string_view(nb::type_name(value.type()).c_str()) == "numpy.bool_";
}

// Of a number of NumPy too: what has __index__ is an int, what has __float__ a float.
Kind KindOf(nb::handle value) {
  if (IsBool(value)) return Kind::kBool;
  if (PyIndex_Check(value.ptr())) return Kind::kInt;
  if (nb::isinstance<nb::str>(value)) return Kind::kString;
  if (nb::isinstance<program::Block>(value)) return Kind::kBlock;
  if (PyFloat_Check(value.ptr()) || nb::hasattr(value, "__float__")) return Kind::kFloat;
  return Kind::kOther;
}

[[noreturn]] void Refuse(const char* name, nb::handle value) {
  Raise(absl::InvalidArgumentError(absl::StrCat("attribute ", name, ": ", nb::repr(value).c_str(),
                                                " is neither a number nor a string, nor a list of such")));
}

int64_t IntOf(const char* name, nb::handle value) {
  const nb::object whole = nb::steal(PyNumber_Index(value.ptr()));
  int64_t out = 0;
  if (!whole.is_valid() || !nb::try_cast(whole, out)) {
    PyErr_Clear();
    Raise(absl::OutOfRangeError(absl::StrCat("attribute ", name, ": ", nb::repr(value).c_str(), " has over 64 bits")));
  }
  return out;
}

double FloatOf(nb::handle value) {
  const double out = PyFloat_AsDouble(value.ptr());
  if (out == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return out;
}

template <typename T, typename Get>
Attribute ListOf(const std::vector<nb::object>& values, const Get& get) {
  std::vector<T> out;
  for (const nb::object& value : values) out.push_back(get(value));
  return out;
}

Attribute ListOf(const char* name, const std::vector<nb::object>& values) {
  if (values.empty()) return std::vector<int64_t>();
  Kind kind = KindOf(values.front());
  for (const nb::object& value : values) {
    const Kind other = KindOf(value);
    if (other == kind) continue;
    const bool numbers = (kind == Kind::kInt || kind == Kind::kFloat) && (other == Kind::kInt || other == Kind::kFloat);
    kind = numbers ? Kind::kFloat : Kind::kOther;
  }
  switch (kind) {
    case Kind::kBool:
      return ListOf<bool>(values, [](nb::handle value) { return PyObject_IsTrue(value.ptr()) == 1; });
    case Kind::kInt:
      return ListOf<int64_t>(values, [&](nb::handle value) { return IntOf(name, value); });
    case Kind::kFloat:
      return ListOf<double>(values, &FloatOf);
    case Kind::kString:
      return ListOf<std::string>(values, [](nb::handle value) { return nb::cast<std::string>(value); });
    case Kind::kBlock:
      return ListOf<BlockIndex>(
          values, [](nb::handle value) { return BlockIndex{nb::cast<const program::Block&>(value).index()}; });
    case Kind::kOther:
      break;
  }
  Refuse(name, nb::cast(values));
}

}  // namespace

Attribute AttributeOf(const char* name, nb::handle value) {
  switch (KindOf(value)) {
    case Kind::kBool:
      return PyObject_IsTrue(value.ptr()) == 1;
    case Kind::kInt:
      return IntOf(name, value);
    case Kind::kFloat:
      return FloatOf(value);
    case Kind::kString:
      return nb::cast<std::string>(value);
    case Kind::kBlock:
      return BlockIndex{nb::cast<const program::Block&>(value).index()};
    case Kind::kOther:
      break;
  }
  std::vector<nb::object> values;
  if (!nb::isinstance<nb::dict>(value) && PyObject_HasAttrString(value.ptr(), "__iter__") == 1) {
    for (const nb::handle item : nb::iter(value)) values.push_back(nb::borrow(item));
    return ListOf(name, values);
  }
  Refuse(name, value);
}

nb::object ObjectOf(const Attribute& value) {
  return std::visit(
      [](const auto& held) -> nb::object {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, BlockIndex>) {
          return nb::cast(held.value);
        } else if constexpr (std::is_same_v<T, std::vector<BlockIndex>>) {
          nb::list out;
          for (const BlockIndex index : held) out.append(index.value);
          return out;
        } else {
          return nb::cast(held);
        }
      },
      value);
}

program::Attributes AttributesOf(const nb::dict& values) {
  program::Attributes out;
  for (const auto& [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    out.Set(name, AttributeOf(name.c_str(), value));
  }
  return out;
}

nb::dict DictOf(const program::Attributes& values) {
  nb::dict out;
  for (const auto& [name, value] : values) out[name.c_str()] = ObjectOf(value);
  return out;
}

}  // namespace regatta::binding
