// Attributes of operations as Python's values, both ways.
// Thread-safety: with the interpreter's lock held.
#pragma once

#include <nanobind/nanobind.h>

#include "program/attribute.h"

namespace regatta::binding {

// bool, int, float, str, lists of them (NumPy's numbers too), a Block. InvalidArgumentError names the attribute if its
// value is none of these.
program::Attribute AttributeOf(const char* name, nanobind::handle value);
// A block is its index.
nanobind::object ObjectOf(const program::Attribute& value);

program::Attributes AttributesOf(const nanobind::dict& values);
nanobind::dict DictOf(const program::Attributes& values);

}  // namespace regatta::binding
