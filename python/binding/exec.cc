// _exec: running programs, for Python. It links libtorch, so regattarec/execution.py looks before it loads this.
#include <glog/logging.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding/status.h"
#include "exec/executor.h"
#include "exec/tensor_type.h"
#include "exec/variable_file.h"
#include "model/tensor.h"
#include "program/program_file.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;
using exec::Scope;
using exec::Value;

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Levels = std::vector<std::vector<int64_t>>;

std::optional<torch::ScalarType> TypeOf(const nb::dlpack::dtype& type) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) { return type.code == static_cast<uint8_t>(code) && type.bits == bits; };
  if (is(Code::Bool, 8)) return torch::kBool;
  if (is(Code::UInt, 8)) return torch::kUInt8;
  if (is(Code::Int, 8)) return torch::kInt8;
  if (is(Code::Int, 16)) return torch::kInt16;
  if (is(Code::Int, 32)) return torch::kInt32;
  if (is(Code::Int, 64)) return torch::kInt64;
  if (is(Code::Float, 16)) return torch::kFloat16;
  if (is(Code::Float, 32)) return torch::kFloat32;
  if (is(Code::Float, 64)) return torch::kFloat64;
  return std::nullopt;
}

nb::dlpack::dtype TypeOf(torch::ScalarType type) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<uint8_t>(torch::elementSize(type) * 8);
  const Code code = type == torch::kBool          ? Code::Bool
                    : type == torch::kUInt8       ? Code::UInt
                    : torch::isFloatingType(type) ? Code::Float
                                                  : Code::Int;
  return {static_cast<uint8_t>(code), bits, 1};
}

// A tensor over the array's memory.
torch::Tensor TensorOf(const std::string& name, const Array& array) {
  const auto type = TypeOf(array.dtype());
  if (!type.has_value()) Raise(absl::InvalidArgumentError(absl::StrCat(name, ": programs have no such element type")));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  return torch::from_blob(const_cast<void*>(array.data()), shape, torch::TensorOptions(*type));
}

exec::Lod LodOf(const std::string& name, const Levels& levels, int64_t rows) {
  if (levels.empty()) return {};
  return ValueOf([&]() -> absl::StatusOr<exec::Lod> {
    absl::StatusOr<exec::Lod> lod = exec::Lod::Make(levels, rows);
    if (lod.ok()) return lod;
    return absl::Status(lod.status().code(), absl::StrCat(name, ": ", lod.status().message()));
  }());
}

Value ValueOfArray(const std::string& name, const Array& array, const Levels& levels) {
  torch::Tensor tensor = TensorOf(name, array);
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  return Value(std::move(tensor), LodOf(name, levels, rows));
}

// (array, LoD). The array has the tensor's memory.
nb::tuple ArrayOf(const torch::Tensor& given, const exec::Lod& lod) {
  auto owned = std::make_unique<torch::Tensor>(given.detach().contiguous());
  const std::vector<size_t> shape(owned->sizes().begin(), owned->sizes().end());
  void* const data = owned->numel() == 0 ? nullptr : owned->data_ptr();
  const nb::dlpack::dtype type = TypeOf(owned->scalar_type());
  const nb::capsule owner(owned.release(), [](void* held) noexcept { delete static_cast<torch::Tensor*>(held); });
  nb::list levels;
  for (size_t i = 0; i < lod.size(); ++i) levels.append(nb::cast(lod.level(i)));
  return nb::make_tuple(nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, type, 0, 0)),
                        levels);
}

nb::object ObjectOf(const std::string& name, const Value& value) {
  if (value.dense() != nullptr) return ArrayOf(value.dense()->tensor, value.dense()->lod);
  if (value.empty()) return nb::none();
  Raise(absl::UnimplementedError(absl::StrCat(name,
                                              value.rows() != nullptr
                                                  ? " holds selected rows, the gradient of an embedding with is_sparse"
                                                  : " holds an array of tensors",
                                              ", which cannot be fetched")));
}

std::unique_ptr<program::Program> ProgramOf(const nb::bytes& bytes) {
  return ValueOf(program::ParseProgram({static_cast<const char*>(bytes.data()), bytes.size()}));
}

// A program with its feeds and fetches, made ready once.
class Step {
 public:
  Step(const nb::bytes& program, std::vector<std::string> feeds, std::vector<std::string> fetches)
      : feeds_(std::move(feeds)), fetches_(std::move(fetches)), executor_(Prepare(program, feeds_, fetches_)) {}

  nb::list Run(Scope& scope, const std::vector<std::pair<Array, Levels>>& feeds) {
    std::vector<Value> values;
    for (size_t i = 0; i < feeds.size(); ++i)
      values.push_back(ValueOfArray(feeds_[i], feeds[i].first, feeds[i].second));
    absl::StatusOr<std::vector<Value>> fetched;
    {
      nb::gil_scoped_release release;
      fetched = executor_.Run(scope, values);
    }
    const std::vector<Value> got = ValueOf(std::move(fetched));
    nb::list out;
    for (size_t i = 0; i < got.size(); ++i) out.append(ObjectOf(fetches_[i], got[i]));
    return out;
  }

 private:
  static std::shared_ptr<const exec::PreparedProgram> Prepare(const nb::bytes& bytes,
                                                              const std::vector<std::string>& feeds,
                                                              const std::vector<std::string>& fetches) {
    return ValueOf(exec::PreparedProgram::Make(*ProgramOf(bytes), feeds, fetches));
  }

  const std::vector<std::string> feeds_, fetches_;
  exec::Executor executor_;
};

nb::object GetValue(const Scope& scope, const std::string& name) {
  const Value* value = scope.Find(name);
  if (value == nullptr) return nb::none();
  if (value->dense() == nullptr) return ObjectOf(name, *value);
  return ArrayOf(value->dense()->tensor.clone(), value->dense()->lod);
}

void SetValue(Scope& scope, const std::string& name, const Array& array, const Levels& levels) {
  Value given = ValueOfArray(name, array, levels);
  scope.Var(name).Set(given.dense()->tensor.clone(), given.dense()->lod);
}

template <typename Call>
void WithoutLock(const Call& call) {
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = call();
  }
  RaiseIfError(status);
}

void Save(const Scope& scope, const std::vector<std::string>& names, const std::string& folder) {
  WithoutLock([&] { return exec::SaveVariables(scope, names, folder); });
}

// All of the variables, or none.
void Load(Scope& scope, const nb::bytes& bytes, const std::vector<std::string>& names, const std::string& folder) {
  const auto program = ProgramOf(bytes);
  WithoutLock([&] { return exec::LoadVariables(*program, names, folder, scope); });
}

}  // namespace
}  // namespace regatta::binding

NB_MODULE(_exec, m) {
  namespace nb = nanobind;
  using namespace regatta::binding;  // NOLINT(google-build-using-namespace): of this file alone
  nb::set_leak_warnings(false);
  m.doc() = "Runs programs over libtorch. Use paddle.fluid.";
  at::set_num_threads(1);
  nb::class_<Scope>(m, "Scope", "Values by the names of variables.")
      .def(nb::init<>())
      .def("names", &Scope::Names)
      .def("has", [](const Scope& scope, const std::string& name) { return scope.Find(name) != nullptr; })
      .def("make", [](Scope& scope, const std::string& name) { scope.Var(name); })
      .def("erase", [](Scope& scope, const std::string& name) { scope.Erase(name); })
      .def("get", &GetValue, nb::arg("name"), "(a copy of the array, LoD), or None.")
      .def("set", &SetValue, nb::arg("name"), nb::arg("array"), nb::arg("lod"))
      .def("save", &Save, nb::arg("names"), nb::arg("folder"))
      .def("load", &Load, nb::arg("program"), nb::arg("names"), nb::arg("folder"));
  nb::class_<Step>(m, "Step", "A program with its feeds and fetches, made ready once.")
      .def(nb::init<const nb::bytes&, std::vector<std::string>, std::vector<std::string>>(), nb::arg("program"),
           nb::arg("feeds"), nb::arg("fetches"))
      .def("run", &Step::Run, nb::arg("scope"), nb::arg("feeds"), "(array, LoD) of each fetch.");
}
