#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/raw_vector.h"
#include "binding/bind.h"
#include "binding/interrupt_watch.h"
#include "binding/status.h"
#include "binding/wait.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/dataset_factory.h"
#include "data/file_list.h"
#include "data/generator.h"
#include "data/parser/format.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;

// A batch that goes back to its dataset when Python drops the last array of it.
struct OwnedBatch {
  OwnedBatch(std::shared_ptr<data::Dataset> from, std::unique_ptr<data::Batch> taken)
      : dataset(std::move(from)), batch(std::move(taken)), offsets(batch->offsets.begin(), batch->offsets.end()) {}
  OwnedBatch(const OwnedBatch&) = delete;
  OwnedBatch& operator=(const OwnedBatch&) = delete;
  ~OwnedBatch() { dataset->Recycle(std::move(batch)); }

  std::shared_ptr<data::Dataset> dataset;
  std::unique_ptr<data::Batch> batch;
  base::RawVector<int64_t> offsets;  // PyTorch has no 32-bit ones without a sign
};

// A view of the batch's memory, which lives as long as the array: NumPy's, or a tensor.
template <typename Framework, typename T, typename Values>
nb::object ViewOf(nb::handle owner, Values& values, std::initializer_list<size_t> shape) {
  static_assert(sizeof(T) == sizeof(typename Values::value_type));
  using Array = nb::ndarray<Framework, T, nb::c_contig>;
  return nb::cast(Array(reinterpret_cast<T*>(values.data()), shape.size(), shape.begin(), owner));
}

// (keys, offsets, dense, labels, weights or None, values or None).
template <typename Framework>
nb::tuple ArraysOf(std::unique_ptr<OwnedBatch> owned) {
  OwnedBatch& b = *owned;
  const nb::object owner = nb::cast(owned.release(), nb::rv_policy::take_ownership);
  const auto samples = static_cast<size_t>(b.batch->size), labels = static_cast<size_t>(b.batch->label_dim);
  const auto floats = [&](std::vector<float>& values, std::initializer_list<size_t> shape) {
    return ViewOf<Framework, float>(owner, values, shape);
  };
  const auto optional = [&](std::vector<float>& values) -> nb::object {
    return values.empty() ? nb::none() : floats(values, {values.size()});
  };
  return nb::make_tuple(ViewOf<Framework, int64_t>(owner, b.batch->keys, {b.batch->keys.size()}),
                        ViewOf<Framework, int64_t>(owner, b.offsets, {b.offsets.size()}),
                        floats(b.batch->dense, {samples, static_cast<size_t>(b.batch->dense_dim)}),
                        labels > 1 ? floats(b.batch->labels, {samples, labels}) : floats(b.batch->labels, {samples}),
                        optional(b.batch->weights), optional(b.batch->values));
}

nb::object NextBatch(const std::shared_ptr<data::Dataset>& dataset, bool tensors) {
  std::unique_ptr<OwnedBatch> owned;
  WaitOrRaise([&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<data::Batch> batch, dataset->Next());
    if (batch != nullptr) owned = std::make_unique<OwnedBatch>(dataset, std::move(batch));
    return absl::OkStatus();
  });
  if (owned == nullptr) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();  // the pass ends because of Ctrl+C, not of its data
    return nb::none();
  }
  return tensors ? ArraysOf<nb::pytorch>(std::move(owned)) : ArraysOf<nb::numpy>(std::move(owned));
}

class PassWatch {
 public:
  explicit PassWatch(std::shared_ptr<data::Dataset> dataset)
      : dataset_(std::move(dataset)), watch_(std::in_place, [this] { dataset_->Interrupt(); }) {}
  void End() { watch_.reset(); }

 private:
  const std::shared_ptr<data::Dataset> dataset_;
  std::optional<InterruptWatch> watch_;
};

// Takes keyword arguments into options: take("name", option).
auto TakerOf(const nb::kwargs& given) {
  return [&given](const char* name, auto& out) {
    if (!given.contains(name)) return;
    const nb::handle value = given[name];
    if (!nb::try_cast(value, out))
      Raise(absl::InvalidArgumentError(absl::StrCat(name, ": ", nb::repr(value).c_str(), " cannot be")));
  };
}

data::DatasetOptions OptionsOf(const nb::kwargs& given) {
  data::DatasetOptions options;
  const auto take = TakerOf(given);
  take("files", options.files);
  take("format", options.format);
  take("batch_size", options.batch_size);
  take("readers", options.readers);
  take("seed", options.seed);
  take("pipe_command", options.pipe_command);
  int64_t max_bad_lines = -1;  // the default of the options
  take("max_bad_lines", max_bad_lines);
  if (max_bad_lines >= 0) options.max_bad_lines = static_cast<uint64_t>(max_bad_lines);
  take("labels", options.schema.labels);
  take("real_labels", options.schema.real_labels);
  take("sparse_slots", options.schema.sparse_slots);
  take("dense_slot", options.schema.dense_slot);
  take("dense_dim", options.schema.dense_dim);
  take("weight_slot", options.schema.weight_slot);
  take("value_slot", options.schema.value_slot);
  bool in_memory = false, shuffle = false, slot_ids = false;
  take("in_memory", in_memory);
  take("shuffle", shuffle);
  take("slot_ids", slot_ids);
  options.kind = in_memory ? data::DatasetKind::kInMemory : data::DatasetKind::kQueue;
  options.shuffle = shuffle ? data::Shuffle::kLocal : data::Shuffle::kNone;
  options.schema.id_space = slot_ids ? base::IdSpace::kSlot : base::IdSpace::kShared;
  return options;
}

data::GeneratorOptions GeneratorOptionsOf(const nb::kwargs& given) {
  data::GeneratorOptions options;
  const auto take = TakerOf(given);
  std::string compress = "none";
  take("out", options.out);
  take("samples", options.samples);
  take("test_samples", options.test_samples);
  take("files", options.files);
  take("test_files", options.test_files);
  take("format", options.format);
  take("compress", compress);
  take("threads", options.threads);
  take("seed", options.truth.seed);
  take("slots", options.truth.slots);
  take("dense", options.truth.dense);
  take("ids", options.truth.ids);
  take("ids_per_slot", options.truth.ids_per_slot);
  take("zipf", options.truth.zipf);
  take("missing", options.truth.missing);
  take("click_rate", options.truth.click_rate);
  take("signal", options.truth.signal);
  take("dense_share", options.truth.dense_share);
  take("cross_share", options.truth.cross_share);
  if (compress == "gz") options.compression = data::Compression::kGzip;
  if (compress == "zst") options.compression = data::Compression::kZstd;
  return options;
}

nb::dict DictOf(const data::Ceiling& ceiling) {
  nb::dict out;
  out["samples"] = ceiling.samples;
  out["clicks"] = ceiling.clicks;
  out["auc"] = ceiling.auc;
  out["logloss"] = ceiling.logloss;
  return out;
}

nb::dict Generate(const nb::kwargs& given) {
  const data::GeneratorOptions options = GeneratorOptionsOf(given);
  data::GeneratorResult result;
  WaitOrRaise([&]() -> absl::Status {
    ASSIGN_OR_RETURN(result, data::Generate(options, nullptr));
    return absl::OkStatus();
  });
  nb::dict out;
  out["train"] = DictOf(result.train);
  out["test"] = DictOf(result.test);
  return out;
}

using Shared = std::shared_ptr<data::Dataset>;

}  // namespace

void BindData(nb::module_& m) {
  nb::class_<OwnedBatch>(m, "Batch", "The memory of a batch's arrays.");
  nb::class_<data::Dataset>(m, "Dataset", "A source of batches.")
      .def(
          "begin_pass",
          [](data::Dataset& dataset, uint64_t number, uint64_t batches) {
            WaitOrRaise([&] { return dataset.BeginPass({.pass = number, .low = batches}); });
          },
          nb::arg("number"), nb::arg("batches"), "Pass `number` without its first batches.")
      .def("end_pass", [](data::Dataset& dataset) { WaitOrRaise([&] { return dataset.EndPass(); }); })
      .def("interrupt", &data::Dataset::Interrupt)
      .def_prop_ro("bad_lines", [](const data::Dataset& dataset) { return dataset.progress().bad_lines; });
  m.def("make_dataset",
        [](const nb::kwargs& given) -> Shared { return Shared(ValueOf(data::MakeDataset(OptionsOf(given)))); });
  nb::class_<PassWatch>(m, "PassWatch", "Ends the pass of a dataset, which may wait for data, when Ctrl+C comes.")
      .def(nb::init<std::shared_ptr<data::Dataset>>(), nb::arg("dataset"))
      .def("end", &PassWatch::End);
  m.def("next_batch", &NextBatch, nb::arg("dataset"), nb::arg("tensors"),
        "The arrays of the next batch, or None at the end of the pass.");
  m.def("formats", [] {
    std::vector<std::string> names;
    for (const data::FormatEntry& entry : data::kFormats) {
      names.emplace_back(entry.name);
      if (entry.name != entry.reader) names.emplace_back(entry.reader);
    }
    return names;
  });
  m.def("generate", &Generate);
  m.def("expand_files", [](const std::string& pattern) { return ValueOf(data::ExpandFiles(pattern)); });
  m.def("split_files", [](const std::vector<std::string>& files, int index, int count, bool by_suffix) {
    return ValueOf(
        data::SplitFiles(files, index, count, by_suffix ? data::FileSplit::kMod : data::FileSplit::kContiguous));
  });
}

}  // namespace regatta::binding
