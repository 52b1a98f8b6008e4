// Regatta for programs of one's own: the one header to include, all of it in namespace regatta.
//
// A program writes a Model (libtorch: a loss a sample from embeddings and dense features) and a main that plays the
// role which the environment gives the process. The same program trains alone, as a worker, and as a server:
//
//   class MyModel : public regatta::Model {
//    public:
//     MyModel() : mlp_(Declare()) {}
//     regatta::Output Forward(const regatta::Input& in) const override {
//       return regatta::BinaryOutput(mlp_(in, in.embeddings[0]), in.labels);
//     }
//    private:
//     regatta::Mlp Declare() {
//       spec_.schema = regatta::CriteoSchema(26, 13);
//       const int x = spec_.AddEmbedding({.table = "ids", .dim = 8, .init = regatta::Init::Uniform(0.05)});
//       return regatta::Mlp(spec_, "mlp", spec_.width(x), {32, 1}, regatta::LastLayer::kLinear);
//     }
//     regatta::Mlp mlp_;
//   };
//
//   absl::Status Run() {
//     ASSIGN_OR_RETURN(auto fleet, regatta::Fleet::Init());
//     if (fleet->is_server()) {
//       RETURN_IF_ERROR(fleet->InitServer());                 // InitServer(dir) goes on from a save
//       return fleet->RunServer();                            // until the workers are done
//     }
//     const MyModel model;
//     regatta::TrainingOptions options;
//     options.worker.mode = regatta::Mode::kSync;
//     options.optimizer.sparse = {.name = "adagrad", .learning_rate = 0.05};
//     ASSIGN_OR_RETURN(auto training, regatta::Training::Start(*fleet, model, options));
//     ASSIGN_OR_RETURN(auto data, regatta::OpenDataset(*fleet, model, "clicks/train"));
//     while (training->epoch() < 2) {
//       ASSIGN_OR_RETURN(const regatta::EpochReport report, training->TrainEpoch(*data));
//       RETURN_IF_ERROR(training->Save(absl::StrCat("model/epoch_", report.epoch)));
//     }                                                       // report.auc() and more, of all workers
//     fleet->StopWorker();
//     return absl::OkStatus();
//   }
//
//   int main(int argc, char** argv) {
//     regatta::PrepareProcess(argv);
//     …
//   }
//
// docs/howto/write_your_own_program.md tells more; examples/custom_model is such a program with its CMake project.
// Headers below say what is thread-safe; what this one does not name may change without notice.
#pragma once

#include <torch/torch.h>

#include "base/job_policy.h"
#include "base/mode.h"
#include "base/pooling.h"
#include "base/status.h"
#include "cluster/role_maker.h"
#include "data/dataset_options.h"
#include "data/file_list.h"
#include "fleet/fleet.h"
#include "metrics/binary_metrics.h"
#include "metrics/regression_metrics.h"
#include "model/layer/cross.h"
#include "model/layer/fm.h"
#include "model/layer/mlp.h"
#include "model/model.h"
#include "train/report.h"
#include "worker/process.h"
#include "worker/training.h"
#include "worker/worker_data.h"

namespace regatta {

// The process and its role.
using base::LossPolicy;
using base::Mode;
using base::ModeNamed;
using cluster::Network;
using cluster::Role;
using cluster::UserDefinedRole;
using fleet::Fleet;
using fleet::Reduce;
using fleet::WorkerOptions;
using worker::PrepareProcess;

// The model.
using base::Pooling;
using model::BinaryOutput;
using model::Cross;
using model::DenseColumns;
using model::EmbeddingSpec;
using model::Fm;
using model::Init;
using model::Input;
using model::Joined;
using model::LastLayer;
using model::Metric;
using model::Mlp;
using model::Model;
using model::ModelSpec;
using model::Output;
using model::OutputSpec;
using model::RegressionOutput;

// The data.
using base::IdSpace;
using data::Batch;
using data::CriteoSchema;
using data::Dataset;
using data::DatasetKind;
using data::DatasetOptions;
using data::ExpandFiles;
using data::FileSplit;
using data::LabelUse;
using data::Schema;
using data::Shuffle;
using worker::FilesOfWorker;
using worker::OpenDataset;

// Training and what comes of it.
using base::TensorView;
using metrics::BinaryReport;
using metrics::RegressionReport;
using settings::OptimizerOptions;
using table::RuleConfig;
using table::ScheduleConfig;
using train::EpochReport;
using train::OutputReport;
using train::Predictions;
using worker::Training;
using worker::TrainingOptions;

}  // namespace regatta
