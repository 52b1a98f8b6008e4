#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "binding/arrays.h"
#include "binding/bind.h"
#include "binding/status.h"
#include "binding/steps.h"
#include "binding/wait.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;

using Target = std::tuple<LookupCall*, Matrix<float>, std::optional<Matrix<float>>>;

void CheckShape(const LookupCall& call, const Matrix<float>& out, const std::optional<Matrix<float>>& rows) {
  const int64_t want = call.pooling() == base::Pooling::kNone ? call.ids() : call.bags();
  if (out.shape(0) != static_cast<size_t>(want))
    Raise(absl::InvalidArgumentError(absl::StrCat("an output of ", out.shape(0), " rows for a lookup of ", want)));
  if (rows.has_value() && (rows->shape(0) != static_cast<size_t>(call.keys()) || rows->shape(1) != out.shape(1)))
    Raise(absl::InvalidArgumentError(absl::StrCat("rows of [", rows->shape(0), ", ", rows->shape(1), "] for ",
                                                  call.keys(), " keys of ", out.shape(1))));
}

void Pull(Steps& steps, const std::vector<Target>& lookups) {
  std::vector<PullTarget> targets;
  for (const auto& [call, out, rows] : lookups) {
    CheckShape(*call, out, rows);
    targets.push_back({call, out.data(), rows.has_value() ? rows->data() : nullptr, static_cast<int>(out.shape(1))});
  }
  WaitOrRaise([&] { return steps.Pull(targets); });
}

// The memory itself: until the step's commit or the next pull.
nb::object DenseOf(const Steps& steps) {
  const std::span<const float> dense = steps.dense();
  const nb::ndarray<nb::pytorch, float, nb::ndim<1>> view(const_cast<float*>(dense.data()), {dense.size()});
  return nb::cast(view, nb::rv_policy::reference);
}

using DensePart = std::tuple<int64_t, Vector<const float>>;

using RowPart = std::tuple<LookupCall*, Matrix<const float>, std::optional<float>>;

// Whether gradients held NaN or Inf: of how many rows, and of the dense parameters.
std::tuple<uint64_t, bool> Commit(Steps& steps, uint32_t samples, const std::vector<RowPart>& grads,
                                  const std::vector<DensePart>& dense, std::optional<float> dense_rate) {
  std::vector<CommitPart> parts;
  for (const auto& [call, grad, rate] : grads) {
    if (grad.shape(0) != static_cast<size_t>(call->keys()))
      Raise(absl::InvalidArgumentError(
          absl::StrCat("gradients of ", grad.shape(0), " rows for a lookup of ", call->keys(), " keys")));
    const int width = static_cast<int>(grad.shape(1));
    parts.push_back({call, {grad.data(), width, width}, rate});
  }
  std::vector<base::DenseGrad> pieces;
  for (const auto& [offset, values] : dense) pieces.push_back({offset, SpanOf(values)});
  WaitOrRaise([&] { return steps.Commit(samples, parts, pieces, dense_rate); });
  return {steps.bad_rows(), steps.bad_dense()};
}

}  // namespace

void BindTrain(nb::module_& m) {
  nb::class_<Steps>(m, "Steps", "The steps of a job: rows out, gradients in, one commit a step.")
      .def(
          "begin_pass",
          [](Steps& steps, uint64_t pass, uint64_t first_step) {
            WaitOrRaise([&] { return steps.BeginPass(pass, first_step); });
          },
          nb::arg("number"), nb::arg("first_step"))
      .def("end_pass", [](Steps& steps) { WaitOrRaise([&] { return steps.EndPass(); }); })
      .def(
          "begin_step",
          [](Steps& steps, bool train, uint64_t step, uint64_t pass, uint64_t batch) {
            steps.BeginStep({.kind = train ? base::StepKind::kTrain : base::StepKind::kInfer,
                             .step = step,
                             .pass = pass,
                             .batch = batch});
          },
          nb::arg("train"), nb::arg("step"), nb::arg("number"), nb::arg("batch"))
      .def_prop_ro("prefetches", &Steps::prefetches, "Whether prefetch starts anything in this mode.")
      .def(
          "prefetch",
          [](Steps& steps, const std::vector<LookupCall*>& lookups, uint64_t step, uint64_t pass, uint64_t batch) {
            const std::vector<const LookupCall*> calls(lookups.begin(), lookups.end());
            WaitOrRaise([&] { return steps.Prefetch({.step = step, .pass = pass, .batch = batch}, calls); });
          },
          nb::arg("lookups"), nb::arg("step"), nb::arg("number"), nb::arg("batch"),
          "The lookups that the next step's first pull has.")
      .def("pull", &Pull, nb::arg("lookups"), "Fills (lookup, out, rows or None) for each.")
      .def("dense", &DenseOf, "The dense parameters of the last pull, to read before the commit or another pull.")
      .def("commit", &Commit, nb::arg("samples"), nb::arg("grads"), nb::arg("dense"), nb::arg("dense_rate").none(),
           "(lookup, one gradient of each key, learning rate) for each, and (offset, gradients) of the dense "
           "parameters. Gives how many rows' gradients held NaN or Inf, and whether dense ones did.");
}

}  // namespace regatta::binding
