#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/raw_vector.h"
#include "binding/arrays.h"
#include "binding/bind.h"
#include "binding/lookup_call.h"
#include "binding/status.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;

constexpr size_t kMaxIds = std::numeric_limits<uint32_t>::max();

absl::StatusOr<base::Pooling> PoolingNamed(const std::string& name) {
  if (name == "sum") return base::Pooling::kSum;
  if (name == "mean") return base::Pooling::kMean;
  if (name == "sqrtn") return base::Pooling::kSqrtN;
  if (name == "none") return base::Pooling::kNone;
  return absl::InvalidArgumentError(absl::StrCat("mode '", name, "': there are sum, mean and sqrtn"));
}

// Which offset is wrong: they begin at 0, do not decrease and end with the number of ids.
absl::Status CheckOffsets(std::span<const int64_t> offsets, size_t ids) {
  if (ids > kMaxIds)
    return absl::InvalidArgumentError(absl::StrCat("a lookup of ", ids, " ids; there may be 2^32 - 1"));
  if (offsets.empty() || offsets[0] != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("offsets[0] must be 0, and is ", offsets.empty() ? "missing" : absl::StrCat(offsets[0])));
  int64_t last = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < last)
      return absl::InvalidArgumentError(
          absl::StrCat("offsets decrease: offsets[", i - 1, "] is ", last, ", offsets[", i, "] is ", offsets[i]));
    if (static_cast<uint64_t>(offsets[i]) > ids)
      return absl::InvalidArgumentError(
          absl::StrCat("offsets[", i, "] is ", offsets[i], ", and there are ", ids, " ids"));
    last = offsets[i];
  }
  if (static_cast<uint64_t>(last) != ids)
    return absl::InvalidArgumentError(absl::StrCat("the last offset is ", last, ", and there are ", ids, " ids"));
  return absl::OkStatus();
}

// As plans have them, until the thread's next call. There is no branch for each: a sign anywhere, of an offset or of a
// difference, is a fault.
absl::StatusOr<std::span<const uint32_t>> PlanOffsets(std::span<const int64_t> offsets, size_t ids) {
  thread_local base::RawVector<uint32_t> narrow;
  narrow.resize(offsets.size());
  uint64_t signs = 0, last = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const auto offset = static_cast<uint64_t>(offsets[i]);
    signs |= offset | (offset - last);
    narrow[i] = static_cast<uint32_t>(offset);
    last = offset;
  }
  const bool right = ids <= kMaxIds && !offsets.empty() && offsets[0] == 0 && last == ids && signs >> 63 == 0;
  if (!right) {
    RETURN_IF_ERROR(CheckOffsets(offsets, ids));
    return absl::InternalError("offsets are both right and wrong");
  }
  return std::span<const uint32_t>(narrow);
}

LookupCall* NewLookup(int table, const std::string& mode, const Vector<const int64_t>& ids,
                      const Vector<const int64_t>& offsets, const std::optional<Vector<const float>>& weights) {
  const base::Pooling pooling = ValueOf(PoolingNamed(mode));
  const std::span<const uint32_t> checked = ValueOf(PlanOffsets(SpanOf(offsets), ids.size()));
  std::span<const float> values;
  if (weights.has_value()) values = SpanOf(*weights);
  if (!values.empty() && values.size() != ids.size())
    Raise(absl::InvalidArgumentError(
        absl::StrCat("there are ", values.size(), " per_sample_weights and ", ids.size(), " ids")));
  nb::gil_scoped_release release;
  return new LookupCall(table, pooling, {KeysOf(ids), checked, values});
}

// Without pooling, an id for each key of every lookup: merging gives one gradient a key.
LookupCall* Union(const std::vector<LookupCall*>& calls) {
  std::vector<base::Key> ids;
  for (const LookupCall* call : calls) {
    if (call->table() != calls.front()->table())
      Raise(absl::InvalidArgumentError(
          absl::StrCat("a union of lookups of tables ", calls.front()->table(), " and ", call->table())));
    ids.insert(ids.end(), call->plan().keys.begin(), call->plan().keys.end());
  }
  if (calls.empty() || ids.size() > kMaxIds)
    Raise(absl::InvalidArgumentError(absl::StrCat("a union of ", calls.size(), " lookups with ", ids.size(), " keys")));
  const std::array<uint32_t, 2> bounds = {0, static_cast<uint32_t>(ids.size())};
  nb::gil_scoped_release release;
  return new LookupCall(calls.front()->table(), base::Pooling::kNone, {ids, bounds, {}});
}

void CheckMerge(const LookupCall& call, size_t rows, size_t width, size_t out_rows, size_t out_width) {
  const auto want = static_cast<size_t>(call.pooling() == base::Pooling::kNone ? call.ids() : call.bags());
  if (rows != want || out_rows != static_cast<size_t>(call.keys()) || out_width != width)
    Raise(absl::InvalidArgumentError(absl::StrCat("a gradient of [", rows, ", ", width, "] for a lookup of [", want,
                                                  "], into [", out_rows, ", ", out_width, "]")));
}

}  // namespace

void BindLookup(nb::module_& m) {
  nb::class_<LookupCall>(m, "Lookup", "The distinct keys that one call of an embedding reads.")
      .def(nb::new_(&NewLookup), nb::arg("table"), nb::arg("mode"), nb::arg("ids"), nb::arg("offsets"),
           nb::arg("weights").none())
      .def_static("union", &Union, nb::arg("lookups"), "Of the keys of several lookups of one table.")
      .def_prop_ro("table", &LookupCall::table)
      .def_prop_ro("bags", &LookupCall::bags)
      .def_prop_ro("keys", &LookupCall::keys)
      .def_prop_ro("ids", &LookupCall::ids)
      .def(
          "merge",
          [](const LookupCall& call, const Matrix<const float>& grad, const Matrix<float>& out) {
            CheckMerge(call, grad.shape(0), grad.shape(1), out.shape(0), out.shape(1));
            nb::gil_scoped_release release;
            call.Merge(grad.data(), static_cast<int>(grad.shape(1)), out.data());
          },
          nb::arg("grad"), nb::arg("out"), "The gradient of the output to one of each key.")
      .def(
          "merge_weights",
          [](const LookupCall& call, const Matrix<const float>& rows, const Matrix<const float>& grad,
             const Vector<float>& out) {
            if (rows.shape(0) != static_cast<size_t>(call.keys()) ||
                grad.shape(0) != static_cast<size_t>(call.bags()) || rows.shape(1) != grad.shape(1) ||
                out.size() != static_cast<size_t>(call.ids()))
              Raise(absl::InvalidArgumentError("merge_weights: the shapes do not fit the lookup"));
            nb::gil_scoped_release release;
            const int width = static_cast<int>(rows.shape(1));
            call.MergeWeights({rows.data(), width, width}, grad.data(), out.data());
          },
          nb::arg("rows"), nb::arg("grad"), nb::arg("out"), "The gradient of the weights of the ids.");
}

}  // namespace regatta::binding
