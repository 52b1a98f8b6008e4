#include "fleet/fleet.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/job_policy.h"
#include "base/mode.h"
#include "base/named.h"
#include "binding/arrays.h"
#include "binding/bind.h"
#include "binding/interrupt.h"
#include "binding/interrupt_watch.h"
#include "binding/status.h"
#include "binding/steps.h"
#include "binding/wait.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/json_tree.h"
#include "checkpoint/save_list.h"
#include "checkpoint/schema_json.h"
#include "cluster/environment.h"
#include "cluster/role_maker.h"
#include "fleet/embedded_tables.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;
using fleet::Fleet;

absl::StatusOr<table::ModelConfig> TablesOf(const std::string& json) {
  ASSIGN_OR_RETURN(const checkpoint::JsonTree tree, checkpoint::ParseJson(json, {.bytes = 4 << 20, .depth = 32}));
  return checkpoint::ModelConfigFromJson(tree, "tables", checkpoint::UnknownFields::kRefuse);
}

// The role that the program names, with the credentials that the environment does.
std::unique_ptr<Fleet> UserDefined(bool server, int current_id, int worker_num,
                                   const std::vector<std::string>& server_endpoints) {
  if (!server && worker_num == 1 && current_id == 0 && server_endpoints.empty())
    return ValueOf(Fleet::Init(cluster::ClusterSpec{}));  // alone
  const cluster::Access access = ValueOf(cluster::ReadAccess(cluster::ProcessEnvironment(), {}));
  return ValueOf(Fleet::Init(cluster::UserDefinedRole{.role = server ? cluster::Role::kServer : cluster::Role::kWorker,
                                                      .current_id = current_id,
                                                      .worker_num = worker_num,
                                                      .server_endpoints = server_endpoints,
                                                      .network = access.network,
                                                      .credentials = access.files}));
}

absl::StatusOr<base::Mode> ModeOf(const std::string& name) {
  if (const auto mode = base::ModeNamed(name)) return *mode;
  return absl::InvalidArgumentError(absl::StrCat("mode '", name, "': there are sync, async, half_async and geo"));
}

absl::StatusOr<table::NanPolicy> NanPolicyOf(const std::string& name) {
  if (const auto policy = base::ValueIn(table::kNanPolicies, name)) return *policy;
  return absl::InvalidArgumentError(absl::StrCat("nan_policy '", name, "': there are abort, skip and clip"));
}

void InitWorker(Fleet& fleet, const std::string& tables, const std::string& mode, int geo_step,
                const std::string& nan_policy, bool returns) {
  fleet::WorkerOptions options;
  options.tables = ValueOf(TablesOf(tables));
  options.mode = ValueOf(ModeOf(mode));
  options.nan_policy = ValueOf(NanPolicyOf(nan_policy));
  if (geo_step < 1) Raise(absl::InvalidArgumentError(absl::StrCat("geo_step: ", geo_step, " is not above 0")));
  options.geo_interval = static_cast<uint64_t>(geo_step);
  if (returns) options.on_loss = base::LossPolicy::kAwait;
  options.cancelled = &Interruptible::Interrupted;
  options.given_up = &Interruptible::GivenUp;
  WaitOrRaise([&] { return fleet.InitWorker(options); });
}

// RunServer ends at its own Stop only.
absl::Status Serve(Fleet& fleet) {
  const InterruptWatch watch([&] { fleet.StopServer(); });
  return fleet.RunServer();
}

Steps* Start(Fleet& fleet, uint64_t first_step, const std::string& nan_policy, std::vector<std::string> names) {
  const table::NanPolicy policy = ValueOf(NanPolicyOf(nan_policy));
  return new Steps(*ValueOf(fleet.StartCommunicator(first_step)), policy, std::move(names));
}

using Blobs = std::map<std::string, nb::bytes>;

void Save(Fleet& fleet, const std::string& dir, uint64_t epoch, bool finished, uint64_t step, const Blobs& blobs) {
  checkpoint::RunState run;
  run.epoch = epoch;
  run.epoch_state = finished ? checkpoint::EpochState::kFinished : checkpoint::EpochState::kRunning;
  run.step = step;
  for (const auto& [name, bytes] : blobs) run.blobs[name].assign(bytes.c_str(), bytes.size());
  WaitOrRaise([&] { return fleet.SavePersistables(dir, run); });
}

absl::StatusOr<checkpoint::RunState> RunOf(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(dir));
  ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, checkpoint::CheckpointReader::Open(folder));
  return reader.ReadRunState();
}

nb::dict ReadBlobs(const std::string& dir) {
  nb::dict blobs;
  for (const auto& [name, bytes] : ValueOf(RunOf(dir)).blobs)
    blobs[name.c_str()] = nb::bytes(bytes.data(), bytes.size());
  return blobs;
}

fleet::Reduce ReduceNamed(const std::string& name) {
  if (name == "sum") return fleet::Reduce::kSum;
  if (name == "min") return fleet::Reduce::kMin;
  if (name == "max") return fleet::Reduce::kMax;
  Raise(absl::InvalidArgumentError(absl::StrCat("reduction '", name, "': there are sum, min and max")));
}

template <typename Number>
void AllReduce(Fleet& fleet, const Vector<Number>& numbers, const std::string& how) {
  const fleet::Reduce reduce = ReduceNamed(how);
  WaitOrRaise([&] { return fleet.AllReduceWorker(SpanOf(numbers), reduce); });
}

void FillRows(Fleet& fleet, int table, const Vector<const int64_t>& keys, const Matrix<const float>& weights) {
  if (weights.shape(0) != keys.size())
    Raise(absl::InvalidArgumentError(absl::StrCat(weights.shape(0), " vectors for ", keys.size(), " keys")));
  WaitOrRaise([&] { return fleet.FillRows(table, KeysOf(keys), {weights.data(), weights.size()}); });
}

uint64_t Rows(Fleet& fleet) { return fleet.embedded() == nullptr ? 0 : fleet.embedded()->rows(); }

}  // namespace

void BindFleet(nb::module_& m) {
  nb::class_<Fleet>(m, "Fleet", "The life of a process in a job.")
      .def(nb::new_([] { return ValueOf(Fleet::Init()); }), "The role that the environment names.")
      .def_static("user_defined", &UserDefined, nb::arg("server"), nb::arg("current_id"), nb::arg("worker_num"),
                  nb::arg("server_endpoints"), "The role that the program names.")
      .def_prop_ro("alone", &Fleet::alone)
      .def_prop_ro("is_server", &Fleet::is_server)
      .def_prop_ro("is_worker", &Fleet::is_worker)
      .def_prop_ro("is_first_worker", &Fleet::is_first_worker)
      .def_prop_ro("worker_index", &Fleet::worker_index)
      .def_prop_ro("worker_num", &Fleet::worker_num)
      .def_prop_ro("server_index", &Fleet::server_index)
      .def_prop_ro("server_num", &Fleet::server_num)
      .def_prop_ro("server_endpoints", &Fleet::server_endpoints)
      .def_prop_ro("workers_return", &Fleet::workers_return)
      .def_prop_ro(
          "replaces", [](const Fleet& fleet) { return fleet.team().resume_point() != nullptr; },
          "Whether this process has taken the place of a killed one.")
      .def(
          "init_server",
          [](Fleet& fleet, const std::string& dir, const std::string& data_dir) {
            WaitOrRaise([&] { return fleet.InitServer(dir, data_dir); });
          },
          nb::arg("dir") = "", nb::arg("data_dir") = "")
      .def("run_server", [](Fleet& fleet) { WaitOrRaise([&] { return Serve(fleet); }); })
      .def("init_worker", &InitWorker, nb::arg("tables"), nb::arg("mode"), nb::arg("geo_step"), nb::arg("nan_policy"),
           nb::arg("returns"))
      .def("start", &Start, nb::arg("first_step"), nb::arg("nan_policy"), nb::arg("names"), nb::keep_alive<0, 1>())
      .def("barrier", [](Fleet& fleet) { WaitOrRaise([&] { return fleet.BarrierWorker(); }); })
      .def("all_reduce_floats", &AllReduce<double>, nb::arg("numbers"), nb::arg("how"))
      .def("all_reduce_integers", &AllReduce<int64_t>, nb::arg("numbers"), nb::arg("how"))
      .def("save", &Save, nb::arg("dir"), nb::arg("epoch"), nb::arg("finished"), nb::arg("step"), nb::arg("blobs"))
      .def(
          "load", [](Fleet& fleet, const std::string& dir) { WaitOrRaise([&] { return fleet.LoadModel(dir); }); },
          nb::arg("dir"))
      .def(
          "fill_dense",
          [](Fleet& fleet, const Vector<const float>& values) {
            WaitOrRaise([&] { return fleet.FillDense(SpanOf(values)); });
          },
          nb::arg("values"))
      .def("fill_rows", &FillRows, nb::arg("table"), nb::arg("keys"), nb::arg("weights"))
      .def(
          "read_dense",
          [](Fleet& fleet, const Vector<float>& out) { WaitOrRaise([&] { return fleet.ReadDense(SpanOf(out)); }); },
          nb::arg("out"))
      .def_prop_ro("loaded_epochs", [](const Fleet& fleet) { return fleet.loaded().epochs; })
      .def_prop_ro("loaded_steps", [](const Fleet& fleet) { return fleet.loaded().steps; })
      .def_prop_ro("rows", &Rows, "Of the tables in this process.")
      .def(
          "stop_worker",
          [](Fleet& fleet, const std::string& why) {
            const absl::Status status = why.empty() ? absl::OkStatus() : absl::AbortedError(why);
            Wait([&] {
              fleet.StopWorker(status);
              return absl::OkStatus();
            }).IgnoreError();
          },
          nb::arg("why") = "");
  m.def("read_blobs", &ReadBlobs, nb::arg("dir"), "What a save holds besides its tables, by name.");
}

}  // namespace regatta::binding
