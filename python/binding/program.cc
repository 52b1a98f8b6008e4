#include "program/program.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "binding/attribute.h"
#include "binding/bind.h"
#include "binding/status.h"
#include "program/clone.h"
#include "program/program_file.h"
#include "program/program_text.h"
#include "program/prune.h"
#include "program/unique_name.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;
using program::Block;
using program::Operation;
using program::Program;
using program::Variable;

program::DataType TypeNamed(const std::string& name) {
  if (const auto type = program::DataTypeNamed(name)) return *type;
  Raise(absl::InvalidArgumentError(absl::StrCat("dtype '", name,
                                                "': there are bool, uint8, int8, int16, int32, int64, "
                                                "float16, float32 and float64")));
}

program::VariableKind KindNamed(const std::string& name) {
  if (const auto kind = base::ValueIn(program::kVariableKinds, name)) return *kind;
  Raise(absl::InvalidArgumentError(absl::StrCat("type '", name, "' of a variable: there is none")));
}

Variable& AddVariable(Block& block, const std::string& name, const std::string& kind, const program::Shape& shape,
                      const std::string& dtype, int lod_level, bool persistable, bool stop_gradient, bool is_data) {
  Variable variable{.name = name,
                    .kind = KindNamed(kind),
                    .shape = shape,
                    .dtype = TypeNamed(dtype),
                    .lod_level = lod_level,
                    .persistable = persistable,
                    .stop_gradient = stop_gradient,
                    .is_data = is_data};
  return *ValueOf(block.AddVariable(std::move(variable)));
}

nb::dict SlotsOf(const program::Slots& slots) {
  nb::dict out;
  for (const program::Slot& slot : slots) out[slot.name.c_str()] = slot.variables;
  return out;
}

template <typename Held>
std::vector<Held*> Pointers(const std::vector<std::unique_ptr<Held>>& held) {
  std::vector<Held*> out;
  for (const auto& each : held) out.push_back(each.get());
  return out;
}

void BindVariable(nb::module_& m) {
  nb::class_<Variable>(m, "Variable", "A name of a program for a value that operations read and write.")
      .def_ro("name", &Variable::name)
      .def_ro("shape", &Variable::shape)
      .def_ro("lod_level", &Variable::lod_level)
      .def_ro("is_data", &Variable::is_data)
      .def_rw("persistable", &Variable::persistable)
      .def_rw("stop_gradient", &Variable::stop_gradient)
      .def_prop_ro("dtype", [](const Variable& v) { return program::DataTypeName(v.dtype); })
      .def_prop_ro("kind", [](const Variable& v) { return base::NameIn(program::kVariableKinds, v.kind); })
      .def_prop_ro("is_parameter", [](const Variable& v) { return v.parameter.has_value(); })
      .def_prop_rw(
          "trainable", [](const Variable& v) { return v.parameter.has_value() && v.parameter->trainable; },
          [](Variable& v, bool trainable) {
            if (v.parameter.has_value()) v.parameter->trainable = trainable;
          })
      .def("__str__", [](const Variable& v) { return program::VariableText(v); });
}

void BindOperation(nb::module_& m) {
  nb::class_<Operation>(m, "Operation", "What a program does with variables.")
      .def_ro("type", &Operation::type)
      .def_prop_ro("role", [](const Operation& op) { return base::NameIn(program::kRoles, op.role); })
      .def_prop_ro("inputs", [](const Operation& op) { return SlotsOf(op.inputs); })
      .def_prop_ro("outputs", [](const Operation& op) { return SlotsOf(op.outputs); })
      .def_prop_ro("attributes", [](const Operation& op) { return DictOf(op.attributes); })
      .def("__str__", [](const Operation& op) { return program::OperationText(op); });
}

void BindBlock(nb::module_& m) {
  nb::class_<Block>(m, "Block", "Variables and operations of a program, in the order in which they were made.")
      .def_prop_ro("index", &Block::index)
      .def_prop_ro("parent",
                   [](const Block& block) { return block.parent() == nullptr ? -1 : block.parent()->index(); })
      .def(
          "find", [](Block& block, std::string_view name) { return block.Find(name); }, nb::arg("name"),
          nb::rv_policy::reference_internal, "In this block or those around it; None if there is none.")
      .def(
          "find_here", [](Block& block, std::string_view name) { return block.FindHere(name); }, nb::arg("name"),
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "variables", [](const Block& block) { return Pointers(block.variables()); },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "operations", [](const Block& block) { return Pointers(block.operations()); },
          nb::rv_policy::reference_internal)
      .def("add_variable", &AddVariable, nb::arg("name"), nb::arg("kind"), nb::arg("shape"), nb::arg("dtype"),
           nb::arg("lod_level"), nb::arg("persistable"), nb::arg("stop_gradient"), nb::arg("is_data"),
           nb::rv_policy::reference_internal);
}

std::unique_ptr<Program> Load(const std::string& path) {
  auto program = program::ParseProgram(ValueOf(base::ReadFile(path)));
  if (!program.ok()) Raise(base::Annotate(program.status(), path));
  return *std::move(program);
}

}  // namespace

void BindProgram(nb::module_& m) {
  nb::class_<program::NameGenerator>(m, "NameGenerator", "Names as Fluid makes them: fc_0, fc_0.w_0.")
      .def(nb::init<std::string>(), nb::arg("prefix") = "")
      .def("generate", &program::NameGenerator::Generate, nb::arg("key"));
  BindVariable(m);
  BindOperation(m);
  BindBlock(m);
  nb::class_<Program>(m, "Program", "Blocks of operations over named variables.")
      .def(nb::init<>())
      .def_prop_rw("random_seed", &Program::random_seed, &Program::set_random_seed)
      .def_prop_ro("block_count", &Program::block_count)
      .def(
          "block",
          [](Program& p, size_t index) -> Block& {
            if (index >= p.block_count())
              Raise(absl::OutOfRangeError(absl::StrCat("block ", index, ": the program has ", p.block_count())));
            return p.block(index);
          },
          nb::arg("index"), nb::rv_policy::reference_internal)
      .def("clone", &program::Clone)
      .def("clone_for_test", &program::CloneForTest)
      .def(
          "inference",
          [](const Program& p, const std::vector<std::string>& feeds, const std::vector<std::string>& targets) {
            return ValueOf(program::InferenceProgram(p, feeds, targets));
          },
          nb::arg("feeds"), nb::arg("targets"), "What the targets need, with feeds and targets in it.")
      .def_prop_ro("feeds", &program::FeedsOf)
      .def_prop_ro("fetches", &program::FetchesOf)
      .def("save",
           [](const Program& p, const std::string& path) {
             RaiseIfError(base::WriteFileAtomically(path, program::SerializeProgram(p)));
           })
      .def_static("load", &Load)
      .def("to_bytes",
           [](const Program& p) {
             const std::string bytes = program::SerializeProgram(p);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes) {
            return ValueOf(program::ParseProgram({static_cast<const char*>(bytes.data()), bytes.size()}));
          },
          nb::arg("bytes"))
      .def("__str__", &program::ProgramText);
}

}  // namespace regatta::binding
