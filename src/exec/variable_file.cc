#include "exec/variable_file.h"

#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "exec/tensor_type.h"

namespace regatta::exec {
namespace {

constexpr std::string_view kVariableMagic("RGVAR1\r\n", 8);
constexpr size_t kVariableHeader = kVariableMagic.size() + sizeof(uint32_t);  // and the checksum of the rest
constexpr uint32_t kMostExtents = 16;
constexpr uint32_t kMostLevels = 8;

template <typename T>
void AppendNumber(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Takes numbers from the front; whoever asks for more than there is gets false.
class NumberReader {
 public:
  explicit NumberReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  bool Take(T& value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return true;
  }
  bool TakeMany(uint64_t count, std::vector<int64_t>& values) {
    if (count > bytes_.size() / sizeof(int64_t)) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data(), count * sizeof(int64_t));
    bytes_.remove_prefix(count * sizeof(int64_t));
    return true;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

absl::Status Impossible(const char* what) {
  return absl::DataLossError(absl::StrCat("the variable's ", what, " cannot be: the file is damaged"));
}

// How many elements the shape has; -1 if it cannot be.
int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return -1;
  return count;
}

absl::StatusOr<Lod> TakeLod(NumberReader& reader, int64_t rows) {
  uint32_t levels = 0;
  if (!reader.Take(levels) || levels > kMostLevels) return Impossible("LoD");
  std::vector<Lod::Offsets> offsets(levels);
  for (Lod::Offsets& level : offsets) {
    uint64_t count = 0;
    if (!reader.Take(count) || !reader.TakeMany(count, level)) return Impossible("LoD");
  }
  if (offsets.empty()) return Lod();
  return Lod::Make(std::move(offsets), rows);
}

absl::Status CheckDeclared(const program::Variable& declared, const torch::Tensor& tensor, const std::string& path) {
  bool fits = ToScalarType(declared.dtype) == tensor.scalar_type() &&
              declared.shape.size() == static_cast<size_t>(tensor.dim());
  for (size_t i = 0; fits && i < declared.shape.size(); ++i)
    fits = program::MayEqual(declared.shape[i], tensor.size(static_cast<int64_t>(i)));
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " holds ", TensorText(tensor), ", and the program declares ",
                                                 declared.name, " as ", program::TypeText(declared),
                                                 ": it was saved by another program"));
}

}  // namespace

std::string VariableFileName(std::string_view variable) {
  std::string name;
  for (const char c : variable) {
    if (c == '/') {
      name += "%2F";
    } else if (c == '%') {
      name += "%25";
    } else if (c == '.' && name.empty()) {
      name += "%2E";
    } else {
      name += c;
    }
  }
  return name;
}

std::string SerializeVariable(const LodTensor& value) {
  const torch::Tensor tensor = value.tensor.detach().contiguous();
  std::string rest;
  AppendNumber<uint32_t>(static_cast<uint32_t>(program::CodeOf(*ToDataType(tensor.scalar_type()))), rest);
  AppendNumber<uint32_t>(static_cast<uint32_t>(tensor.dim()), rest);
  for (const int64_t extent : tensor.sizes()) AppendNumber(extent, rest);
  AppendNumber<uint32_t>(static_cast<uint32_t>(value.lod.size()), rest);
  for (size_t i = 0; i < value.lod.size(); ++i) {
    AppendNumber<uint64_t>(value.lod.level(i).size(), rest);
    for (const int64_t offset : value.lod.level(i)) AppendNumber(offset, rest);
  }
  rest.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  std::string bytes(kVariableMagic);
  AppendNumber(base::Crc32c(rest.data(), rest.size()), bytes);
  return bytes + rest;
}

absl::StatusOr<LodTensor> ParseVariable(std::string_view bytes) {
  if (bytes.size() < kVariableHeader || !bytes.starts_with(kVariableMagic))
    return absl::InvalidArgumentError("this is no variable that save_persistables wrote");
  NumberReader reader(bytes.substr(kVariableMagic.size()));
  uint32_t checksum = 0, code = 0, rank = 0;
  reader.Take(checksum);
  if (checksum != base::Crc32c(reader.rest().data(), reader.rest().size()))
    return absl::DataLossError("the checksum does not match the bytes: the file is damaged; use another save");
  if (!reader.Take(code) || !reader.Take(rank)) return Impossible("type");
  const auto type = program::DataTypeOfCode(code);
  std::vector<int64_t> shape;
  if (!type.has_value()) return Impossible("type");
  if (rank > kMostExtents || !reader.TakeMany(rank, shape)) return Impossible("shape");
  const int64_t elements = ElementsOf(shape);
  if (elements < 0) return Impossible("shape");
  ASSIGN_OR_RETURN(const Lod lod, TakeLod(reader, shape.empty() ? 1 : shape[0]));
  const torch::ScalarType scalar = ToScalarType(*type);
  if (reader.rest().size() / torch::elementSize(scalar) != static_cast<uint64_t>(elements) ||
      reader.rest().size() % torch::elementSize(scalar) != 0)
    return Impossible("size");
  torch::Tensor tensor = torch::empty(shape, torch::TensorOptions(scalar));
  if (elements > 0) std::memcpy(tensor.data_ptr(), reader.rest().data(), reader.rest().size());
  return LodTensor{std::move(tensor), lod};
}

absl::Status SaveVariables(const Scope& scope, const std::vector<std::string>& names, const std::string& folder) {
  for (const std::string& name : names) {
    const Value* value = scope.Find(name);
    if (value == nullptr || value->dense() == nullptr)
      return absl::FailedPreconditionError(
          absl::StrCat("save: ", name, " has no value yet: run the startup program first"));
  }
  RETURN_IF_ERROR(base::MakeFolders(folder));
  for (const std::string& name : names)
    RETURN_IF_ERROR(base::WriteFileAtomically(absl::StrCat(folder, "/", VariableFileName(name)),
                                              SerializeVariable(*scope.Find(name)->dense())));
  return absl::OkStatus();
}

absl::Status LoadVariables(const program::Program& program, const std::vector<std::string>& names,
                           const std::string& folder, Scope& scope) {
  if (!std::filesystem::is_directory(folder))
    return absl::NotFoundError(absl::StrCat("load: there is no folder ", folder));
  std::vector<LodTensor> loaded;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", VariableFileName(name));
    const program::Variable* declared = program.global_block().Find(name);
    if (declared == nullptr) return absl::NotFoundError(absl::StrCat("load: the program has no variable ", name));
    absl::StatusOr<std::string> bytes = base::ReadFile(path);
    if (!bytes.ok()) return base::Annotate(bytes.status(), absl::StrCat("load: variable ", name));
    absl::StatusOr<LodTensor> value = ParseVariable(*bytes);
    if (!value.ok()) return base::Annotate(value.status(), path);
    RETURN_IF_ERROR(CheckDeclared(*declared, value->tensor, path));
    loaded.push_back(*std::move(value));
  }
  for (size_t i = 0; i < names.size(); ++i)
    scope.root().Var(names[i]).Set(std::move(loaded[i].tensor), std::move(loaded[i].lod));
  return absl::OkStatus();
}

}  // namespace regatta::exec
