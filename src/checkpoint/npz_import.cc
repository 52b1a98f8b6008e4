#include <algorithm>
#include <cstring>

#include "absl/strings/str_join.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/new_rows.h"
#include "checkpoint/npz.h"
#include "checkpoint/npz_model.h"

namespace regatta::checkpoint {
namespace {

// Deflate cannot pack different keys more tightly: a repetition that it finds at a whole key is a key that comes twice.
constexpr uint64_t kKeysAByte = 8;

std::string ShapeText(const std::vector<uint64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

// An array of floats that must have this shape.
absl::StatusOr<std::vector<float>> ReadFloats(const NpzReader& npz, const std::string& name,
                                              const std::vector<uint64_t>& shape) {
  ASSIGN_OR_RETURN(const NpyDescription told, npz.Describe(name));
  if (told.dtype != "<f4")
    return absl::InvalidArgumentError(
        absl::StrCat("array ", name, " has dtype ", told.dtype, "; want <f4 (numpy.float32)"));
  if (told.shape != shape)
    return absl::InvalidArgumentError(
        absl::StrCat("array ", name, " has shape ", ShapeText(told.shape), "; want ", ShapeText(shape)));
  ASSIGN_OR_RETURN(const NpyArray array, npz.Read(name));
  std::vector<float> values(array.data.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

// Unsigned 64-bit numbers; signed ones will do where none is negative.
absl::StatusOr<std::vector<uint64_t>> ReadNumbers(const NpzReader& npz, const std::string& name, size_t dimensions) {
  ASSIGN_OR_RETURN(const NpyDescription told, npz.Describe(name));
  if (told.dtype != "<u8" && told.dtype != "<i8")
    return absl::InvalidArgumentError(
        absl::StrCat("array ", name, " has dtype ", told.dtype, "; want <u8 (numpy.uint64)"));
  if (told.shape.size() != dimensions)
    return absl::InvalidArgumentError(
        absl::StrCat("array ", name, " has shape ", ShapeText(told.shape), "; want ", dimensions, " dimensions"));
  if (dimensions > 0 && told.shape[0] / kKeysAByte > told.stored_bytes)
    return absl::InvalidArgumentError(absl::StrCat("array ", name, " has ", told.shape[0], " keys in ",
                                                   told.stored_bytes, " compressed bytes: they cannot all differ"));
  ASSIGN_OR_RETURN(const NpyArray array, npz.Read(name));
  std::vector<uint64_t> values(array.data.size() / sizeof(uint64_t));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  if (array.dtype == "<i8")
    for (const uint64_t v : values)
      if (v >> 63)
        return absl::InvalidArgumentError(
            absl::StrCat("array ", name, " holds ", static_cast<int64_t>(v), "; keys are not negative"));
  return values;
}

// Rows of imported arrays, found by shard.
class ImportedRows final : public RowSource {
 public:
  static absl::StatusOr<std::unique_ptr<ImportedRows>> Read(const NpzReader& npz, const SavedSparse& like,
                                                            std::vector<std::string>& notes);

  const table::SparseTableConfig& config() const override { return like_.config; }
  int row_width() const override { return like_.row_width; }
  int pull_width() const override { return like_.pull_width; }
  uint64_t ShardRows(uint32_t shard) const override { return order_.Shard(shard).size(); }
  absl::Status ForEachRow(uint32_t shard, const table::SparseTable::RowFn& fn) const override {
    const size_t weights = static_cast<size_t>(like_.pull_width), width = static_cast<size_t>(like_.row_width);
    std::vector<float> row(width);
    for (const uint64_t at : order_.Shard(shard)) {
      std::copy_n(&weights_[at * weights], weights, row.begin());
      if (state_.empty()) {
        std::copy(new_state_.begin(), new_state_.end(), row.begin() + static_cast<ptrdiff_t>(weights));
      } else {
        std::copy_n(&state_[at * (width - weights)], width - weights, row.begin() + static_cast<ptrdiff_t>(weights));
      }
      fn(keys_[at], row);
    }
    return absl::OkStatus();
  }

 private:
  explicit ImportedRows(const SavedSparse& like) : like_(like) {}
  absl::Status ReadState(const NpzReader& npz, std::vector<std::string>& notes);

  const SavedSparse& like_;
  std::vector<base::Key> keys_;
  std::vector<float> weights_, state_, new_state_;
  ShardOrder order_;
};

absl::StatusOr<std::unique_ptr<ImportedRows>> ImportedRows::Read(const NpzReader& npz, const SavedSparse& like,
                                                                 std::vector<std::string>& notes) {
  std::unique_ptr<ImportedRows> rows(new ImportedRows(like));
  const std::string& name = like.config.name;
  ASSIGN_OR_RETURN(rows->keys_, ReadNumbers(npz, name + ".keys", 1));
  ASSIGN_OR_RETURN(rows->weights_,
                   ReadFloats(npz, name + ".w", {rows->keys_.size(), static_cast<uint64_t>(like.pull_width)}));
  RETURN_IF_ERROR(rows->ReadState(npz, notes));
  auto order = ShardOrder::Of(rows->keys_);
  if (!order.ok()) return base::Annotate(order.status(), absl::StrCat("array ", name, ".keys"));
  rows->order_ = *std::move(order);
  return rows;
}

absl::Status ImportedRows::ReadState(const NpzReader& npz, std::vector<std::string>& notes) {
  const std::string name = like_.config.name + ".state";
  const size_t size = static_cast<size_t>(like_.row_width - like_.pull_width);
  if (size == 0) return absl::OkStatus();
  if (npz.Contains(name)) {
    ASSIGN_OR_RETURN(state_, ReadFloats(npz, name, {keys_.size(), size}));
    return absl::OkStatus();
  }
  auto state = NewRowState(like_.config);
  if (!state.ok()) return base::Annotate(state.status(), absl::StrCat("there is no array ", name));
  new_state_ = *std::move(state);
  notes.push_back(absl::StrCat("there is no array ", name, ": every row gets the state of a new row (",
                               like_.config.rule.name, ")"));
  return absl::OkStatus();
}

// All parameters one after the other: array 0 the values, then the states.
absl::StatusOr<std::vector<std::vector<float>>> ReadDense(const NpzReader& npz, const SavedDense& like,
                                                          uint64_t& updates, std::vector<std::string>& notes) {
  std::vector<std::vector<float>> arrays(1 + like.state_count);
  bool states_missing = false;
  for (const table::DenseParameterConfig& p : like.config.parameters) {
    const std::vector<uint64_t> shape(p.shape.begin(), p.shape.end());
    for (uint32_t array = 0; array <= like.state_count; ++array) {
      const std::string name = absl::StrCat("dense.", p.name, array == 0 ? "" : absl::StrCat(".state", array - 1));
      std::vector<float> values(static_cast<size_t>(p.size()));
      if (array > 0 && !npz.Contains(name)) {
        states_missing = true;
        notes.push_back(absl::StrCat("there is no array ", name, ": zeros"));
      } else {
        ASSIGN_OR_RETURN(values, ReadFloats(npz, name, shape));
      }
      arrays[array].insert(arrays[array].end(), values.begin(), values.end());
    }
  }
  updates = 0;
  if (npz.Contains("updates")) {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, ReadNumbers(npz, "updates", 0));
    updates = numbers.front();
  } else {
    notes.push_back("there is no array updates: 0");
  }
  if (states_missing && updates != 0) {
    updates = 0;
    notes.push_back("updates is taken as 0, because states are missing");
  }
  return arrays;
}

absl::Status Import(const NpzReader& npz, const CheckpointReader& like, const std::string& folder,
                    std::vector<std::string>& notes) {
  SaveContents contents;
  std::vector<std::unique_ptr<ImportedRows>> tables;
  for (const SavedSparse& table : like.manifest().sparse) {
    ASSIGN_OR_RETURN(auto rows, ImportedRows::Read(npz, table, notes));
    contents.sparse.push_back(rows.get());
    tables.push_back(std::move(rows));
  }
  std::vector<std::vector<float>> arrays;
  if (like.manifest().dense) {
    DenseContents& dense = contents.dense.emplace();
    dense.config = like.manifest().dense->config;
    ASSIGN_OR_RETURN(arrays, ReadDense(npz, *like.manifest().dense, dense.updates, notes));
    for (const std::vector<float>& array : arrays) dense.arrays.emplace_back(array);
  }
  return WriteCheckpoint(folder, contents);
}

}  // namespace

absl::Status ImportNpz(const std::string& path, const CheckpointReader& like, const std::string& folder,
                       std::vector<std::string>& notes) {
  ASSIGN_OR_RETURN(const NpzReader npz, NpzReader::Open(path));
  return base::Annotate(Import(npz, like, folder, notes), path);
}

}  // namespace regatta::checkpoint
