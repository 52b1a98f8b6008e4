#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "binding/arrays.h"
#include "binding/bind.h"
#include "binding/run_job.h"
#include "binding/status.h"
#include "binding/stop_signal.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;

// Waits for workers, servers and disks without the interpreter's lock. Signals are the run's own matter.
template <typename Call>
auto Unlocked(const Call& call) {
  nb::gil_scoped_release release;
  return call();
}

using Blobs = std::map<std::string, nb::bytes>;

// What `state()` gives, as blobs of a save. An exception of it is the save's error.
run::AddState AddStateOf(nb::callable state) {
  // The last reference may go in a thread without the interpreter's lock.
  const std::shared_ptr<nb::callable> kept(new nb::callable(std::move(state)), [](nb::callable* held) {
    const nb::gil_scoped_acquire acquire;
    delete held;
  });
  return [kept](checkpoint::RunState& run) -> absl::Status {
    const nb::gil_scoped_acquire acquire;
    try {
      for (const auto& [name, bytes] : nb::cast<Blobs>((*kept)())) run.blobs[name].assign(bytes.c_str(), bytes.size());
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("the state of the program cannot be saved: ", error.what()));
    }
    return absl::OkStatus();
  };
}

class Run {
 public:
  Run(fleet::Fleet& fleet, const RunJobOptions& options, nb::callable state) {
    run::AddState add = AddStateOf(std::move(state));
    job_ = ValueOf(Unlocked([&] { return RunJob::Open(fleet, options, add); }));
  }
  ~Run() {
    Unlocked([&] { job_.reset(); });
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  RunJob& job() const { return *job_; }
  run::SteppedRun& run() const {
    if (job_->run() == nullptr) Raise(absl::FailedPreconditionError("the session's epochs have not begun"));
    return *job_->run();
  }

  void Begin(Steps& steps, uint64_t epochs) {
    RaiseIfError(Unlocked([&] { return job_->Begin(steps, epochs); }));
  }

 private:
  std::unique_ptr<RunJob> job_;
};

RunJobOptions OptionsOf(const std::string& save, bool resume, uint64_t keep_epochs, uint64_t checkpoint_steps,
                        double checkpoint_minutes, const std::string& metric) {
  RunJobOptions options;
  options.save = save;
  options.resume = resume;
  options.keep_epochs = keep_epochs;
  options.checkpoints = {.steps = checkpoint_steps, .minutes = checkpoint_minutes};
  if (metric != "binary" && metric != "regression")
    Raise(absl::InvalidArgumentError(absl::StrCat("metric '", metric, "': there are binary and regression")));
  options.metric = metric == "binary" ? train::Metric::kBinary : train::Metric::kRegression;
  return options;
}

nb::object NextPass(const Run& run) {
  const auto pass = ValueOf(Unlocked([&] { return run.run().NextPass(); }));
  if (!pass.has_value()) return nb::none();
  return nb::make_tuple(pass->epoch, pass->first_step, pass->position.low, pass->stopped);
}

bool AfterStep(const Run& run, uint64_t samples, double loss, const std::optional<Vector<const float>>& predictions,
               const std::optional<Vector<const float>>& labels, double read_seconds, double step_seconds) {
  run::StepCounts counts{.samples = samples, .loss = loss, .read_seconds = read_seconds, .step_seconds = step_seconds};
  if (predictions.has_value()) counts.predictions = SpanOf(*predictions);
  if (labels.has_value()) counts.labels = SpanOf(*labels);
  return ValueOf(Unlocked([&] { return run.run().AfterStep(counts); }));
}

void Put(nb::dict& out, const char* name, const std::optional<double>& value) {
  if (value.has_value()) out[name] = *value;
}

void PutMetrics(nb::dict& out, const std::vector<train::OutputReport>& outputs) {
  if (outputs.empty()) return;
  if (const metrics::BinaryReport* const binary = outputs.front().binary(); binary != nullptr) {
    Put(out, "auc", binary->auc);
    out["logloss"] = binary->logloss;
    out["mae"] = binary->mae;
    out["rmse"] = binary->rmse;
    out["actual_ctr"] = binary->actual_ctr;
    out["predicted_ctr"] = binary->predicted_ctr;
    Put(out, "copc", binary->copc);
  } else {
    const metrics::RegressionReport& regression = *outputs.front().regression();
    out["mse"] = regression.mse;
    out["mae"] = regression.mae;
    out["rmse"] = regression.rmse;
  }
}

nb::list Reports(const Run& run) {
  nb::list all;
  for (const train::EpochReport& report : run.run().reports()) {
    nb::dict one;
    one["epoch"] = report.epoch;
    one["samples"] = report.samples;
    one["loss"] = report.loss;
    PutMetrics(one, report.outputs);
    one["seconds"] = report.seconds;
    one["samples_per_second"] = report.samples_per_second;
    all.append(one);
  }
  return all;
}

nb::dict Interval(const Run& run) {
  const train::IntervalReport report = run.run().Interval();
  nb::dict out;
  out["batches"] = report.batches;
  out["loss"] = report.loss;
  if (!report.outputs.empty() && report.outputs.front().binary() != nullptr)
    Put(out, "auc", report.outputs.front().binary()->auc);
  out["samples_per_second"] = report.samples_per_second;
  return out;
}

// The signal that stopped the run, here or at another worker; 0: it is finished; -1: another worker gave up.
int EndOf(const Run& run) {
  const run::RunEnd& end = run.run().end();
  switch (end.kind) {
    case run::RunEnd::Kind::kFinished:
      return 0;
    case run::RunEnd::Kind::kStopped:
      return end.signal;
    case run::RunEnd::Kind::kOutOfTime:
    case run::RunEnd::Kind::kGivenUp:
      break;
  }
  return -1;
}

}  // namespace

void BindRun(nb::module_& m) {
  m.def("stop_requested", [] { return StopSignal::watching() && StopSignal::Requested() != 0; });
  nb::class_<Run>(m, "Run", "A run: its epochs, saves and checkpoints, and where it begins.")
      .def(
          "__init__",
          [](Run* self, fleet::Fleet& fleet, nb::callable state, const std::string& save, bool resume,
             uint64_t keep_epochs, uint64_t checkpoint_steps, double checkpoint_minutes, const std::string& metric) {
            new (self) Run(fleet, OptionsOf(save, resume, keep_epochs, checkpoint_steps, checkpoint_minutes, metric),
                           std::move(state));
          },
          nb::arg("fleet"), nb::arg("state"), nb::arg("save"), nb::arg("resume"), nb::arg("keep_epochs"),
          nb::arg("checkpoint_steps"), nb::arg("checkpoint_minutes"), nb::arg("metric"), nb::keep_alive<1, 2>())
      .def_prop_ro("returns", [](const Run& run) { return run.job().returns(); })
      .def_prop_ro("resumed_from", [](const Run& run) { return run.job().resumed_from(); })
      .def_prop_ro("first_step", [](const Run& run) { return run.job().first_step(); })
      .def_prop_ro("epoch", [](const Run& run) { return run.job().epoch(); })
      .def("begin", &Run::Begin, nb::arg("steps"), nb::arg("epochs"), nb::keep_alive<1, 2>())
      .def("next_pass", &NextPass, "(epoch, its first step, batches that are done, whether it ends here), or None.")
      .def("after_step", &AfterStep, nb::arg("samples"), nb::arg("loss"), nb::arg("predictions").none(),
           nb::arg("labels").none(), nb::arg("read_seconds"), nb::arg("step_seconds"), "Whether the pass goes on.")
      .def(
          "end_pass",
          [](Run& run, bool complete) {
            run.run();
            RaiseIfError(Unlocked([&] { return run.job().EndPass(complete); }));
          },
          nb::arg("complete"))
      .def("finish", [](Run& run) { RaiseIfError(Unlocked([&] { return run.run().Finish(); })); })
      .def(
          "fail",
          [](Run& run, const std::string& why) {
            if (run.job().run() != nullptr) Unlocked([&] { run.run().Fail(absl::AbortedError(why)); });
          },
          nb::arg("why"))
      .def_prop_ro("ended", [](const Run& run) { return run.job().run() != nullptr && run.run().ended(); })
      .def_prop_ro("end", &EndOf)
      .def_prop_ro("reports", &Reports)
      .def_prop_ro("interval", &Interval);
}

}  // namespace regatta::binding
