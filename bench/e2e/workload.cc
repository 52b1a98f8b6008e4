#include "bench/e2e/workload.h"

#include <glog/logging.h>
#include <stdlib.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/random.h"
#include "bench/measure.h"
#include "checkpoint/save_root.h"
#include "fleet/worker_node.h"
#include "model/tensor.h"
#include "model/torch_net.h"
#include "run/team_checkpoint.h"
#include "train/trainer.h"
#include "worker/blas.h"
#include "worker/job.h"

namespace regatta::bench {
namespace {

struct Counter : train::PassObserver {
  bool StopsHere() override { return false; }
  bool StopAsked() override { return false; }
  StepAction AfterStep(const Step& step) override {
    samples += step.result.batch->size;
    return StepAction::kGoOn;
  }
  absl::Status AtPause(const base::DataPosition&) override { return absl::OkStatus(); }
  absl::Status AtEnd(const train::PassEnd&) override { return absl::OkStatus(); }
  absl::Status OnBadLoss(const data::Batch&, absl::Status status) override { return status; }
  uint64_t samples = 0;
};

// Stops after a time; with checkpoints it pauses for them.
struct Timed : Counter {
  Timed(double seconds_in, run::TeamCheckpoint* checkpoint_in) : seconds(seconds_in), checkpoint(checkpoint_in) {}
  StepAction AfterStep(const Step& step) override {
    Counter::AfterStep(step);
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >= seconds)
      return StepAction::kStop;
    return checkpoint != nullptr && checkpoint->PauseAfterStep() ? StepAction::kPause : StepAction::kGoOn;
  }
  absl::Status AtPause(const base::DataPosition& position) override {
    return checkpoint->WaitAtBarrier(run::Attendance::kPaused, run::StopRequest::kNone, {position, 0, ""}).status();
  }
  absl::Status AtEnd(const train::PassEnd& end) override {
    if (checkpoint == nullptr) return absl::OkStatus();
    return checkpoint->WaitAtBarrier(run::Attendance::kEnded, run::StopRequest::kNone, {end.position, 0, ""}).status();
  }
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  const double seconds;
  run::TeamCheckpoint* const checkpoint;
};

uint64_t DrawId(base::Rng& rng, Ids ids, uint64_t vocabulary) {
  if (ids == Ids::kUniform) return rng.Below(vocabulary);
  return static_cast<uint64_t>(std::exp(rng.Uniform() * std::log(static_cast<double>(vocabulary)))) % vocabulary;
}

// The ids are spread over the 64-bit keys, as hashed features are. File and table agree on it.
uint64_t KeyOf(uint64_t id) { return base::Mix64(id) >> 20; }

struct Sample {
  float label = 0;
  std::vector<float> dense;
  std::vector<uint64_t> ids;  // slot by slot, each counted from 0 within its set
};

// The samples of a shape, one after another: text and binary files of one seed hold the same.
class SampleStream {
 public:
  SampleStream(const Shape& shape, uint64_t seed) : shape_(shape), vocabulary_(SetSize(shape)), rng_(seed) {}

  static uint64_t SetSize(const Shape& shape) {
    return shape.sets == Sets::kShared ? shape.vocabulary : shape.vocabulary / static_cast<uint64_t>(shape.slots);
  }
  const Sample& Next() {
    sample_.label = rng_.Uniform() < 0.25 ? 1 : 0;
    sample_.dense.clear(), sample_.ids.clear();
    for (int d = 0; d < shape_.dense; ++d) sample_.dense.push_back(static_cast<float>(rng_.Uniform()));
    for (int i = 0; i < shape_.slots * shape_.ids_a_slot; ++i)
      sample_.ids.push_back(DrawId(rng_, shape_.ids, vocabulary_));
    return sample_;
  }
  // Of the i-th id of a sample.
  uint64_t KeyAt(int i) const {
    const uint64_t set = shape_.sets == Sets::kShared ? 0 : static_cast<uint64_t>(i / shape_.ids_a_slot);
    return KeyOf(set * vocabulary_ + sample_.ids[static_cast<size_t>(i)]);
  }

 private:
  const Shape shape_;
  const uint64_t vocabulary_;
  base::Rng rng_;
  Sample sample_;
};

}  // namespace

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/regatta_bench_XXXXXX";
  path_ = CHECK_NOTNULL(mkdtemp(name));
}
TemporaryFolder::~TemporaryFolder() { base::RemoveTree(path_).IgnoreError(); }

Shape CtrDnnShape(int samples) {
  Shape shape;
  shape.samples = samples;
  shape.vocabulary = 500'000;
  shape.ids = Ids::kLogUniform;
  return shape;
}

Shape MultihotShape(int samples, uint64_t rows) {
  Shape shape;
  shape.samples = samples;
  shape.ids_a_slot = 20;
  shape.vocabulary = rows;
  shape.ids = Ids::kLogUniform;
  shape.sets = Sets::kOfEachSlot;
  return shape;
}

void WriteSlotText(const std::string& path, const Shape& shape, uint64_t seed) {
  SampleStream stream(shape, seed);
  std::ofstream out(path);
  std::string line;
  for (int s = 0; s < shape.samples; ++s) {
    const Sample& sample = stream.Next();
    line = sample.label > 0 ? "click:1" : "click:0";
    for (const float value : sample.dense) absl::StrAppendFormat(&line, " dense_feature:%.6g", value);
    for (int i = 0; i < static_cast<int>(sample.ids.size()); ++i)
      absl::StrAppend(&line, " ", 1 + i / shape.ids_a_slot, ":", stream.KeyAt(i));
    out << line << "\n";
  }
  CHECK(out.good()) << path;
}

void WriteBinary(const std::string& path, const Shape& shape, uint64_t seed) {
  SampleStream stream(shape, seed);
  std::vector<float> labels, dense;
  std::vector<int64_t> ids;
  for (int s = 0; s < shape.samples; ++s) {
    const Sample& sample = stream.Next();
    labels.push_back(sample.label);
    dense.insert(dense.end(), sample.dense.begin(), sample.dense.end());
    ids.insert(ids.end(), sample.ids.begin(), sample.ids.end());
  }
  std::ofstream out(path, std::ios::binary);
  const auto write = [&out](const auto& values) {
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  write(std::vector<int64_t>{shape.samples, shape.slots, shape.ids_a_slot, shape.dense,
                             static_cast<int64_t>(SampleStream::SetSize(shape))});
  write(labels), write(dense), write(ids);
  CHECK(out.good()) << path;
}

std::string CtrDnnYaml(const std::string& data, int threads, Reading reading) {
  return "model: dnn\nrunner: {train_data_dir: " + data + ", train_reader_path: criteo_reader, reader_type: " +
         (reading == Reading::kStream ? "QueueDataset" : "InmemoryDataset") +
         ", train_batch_size: 1000, thread_num: " + std::to_string(threads) +
         ", reader_threads: 1}\n"
         "hyper_parameters:\n  optimizer: {class: Adam, learning_rate: 0.0001}\n  sparse_inputs_slots: 27\n"
         "  sparse_feature_dim: 10\n  dense_input_dim: 13\n  fc_sizes: [400, 400, 400]\n";
}

std::string InMode(const std::string& mode, std::string yaml) {
  return yaml.insert(yaml.find('{') + 1, "sync_mode: " + mode + ", ");
}

std::string WithAck(const std::string& ack, std::string yaml) {
  return yaml.insert(yaml.find('{') + 1, "ack: " + ack + ", ");
}

cluster::ClusterSpec WorkerOf(const std::string& endpoint, int worker, int workers) {
  cluster::ClusterSpec place;
  place.role = cluster::Role::kWorker;
  place.servers = {endpoint};
  place.workers = workers;
  place.index = worker;
  return place;
}

std::string MultihotYaml(const std::string& data, int threads) {
  return "model: dnn\nrunner: {train_data_dir: " + data +
         ", train_reader_path: criteo_reader, reader_type: InmemoryDataset, train_batch_size: 1000, thread_num: " +
         std::to_string(threads) +
         ", reader_threads: 1}\n"
         "hyper_parameters:\n  optimizer: {class: Adagrad, learning_rate: 0.01}\n  sparse_inputs_slots: 27\n"
         "  sparse_feature_dim: 16\n  dense_input_dim: 13\n  fc_sizes: [128, 64]\n"
         "table_parameters:\n  embedding: {accessor: {embedx_sgd_param: {name: adagrad}}}\n";
}

struct Workload::Parts {
  std::unique_ptr<worker::Job> job;
  worker::JobData data;
  std::unique_ptr<train::Trainer> trainer;
  std::unique_ptr<checkpoint::SaveRoot> root;
  std::unique_ptr<run::TeamCheckpoint> checkpoint;
};

Workload::Workload(const std::string& folder, const std::string& yaml, int threads, const cluster::ClusterSpec& place)
    : parts_(std::make_unique<Parts>()) {
  const std::string config = folder + "/bench.yaml";
  CHECK(base::WriteFileAtomically(config, yaml).ok());
  settings::TrainArgs args;
  args.config = config;
  auto job = worker::MakeJob(args, place);
  CHECK(job.ok()) << job.status();
  parts_->job = *std::move(job);
  auto data = worker::OpenData(*parts_->job, worker::DataUse::kTrain);
  CHECK(data.ok()) << data.status();
  parts_->data = *std::move(data);
  CHECK_EQ(worker::JoinServers(*parts_->job), absl::OkStatus());
  const auto communicator = parts_->job->fleet->StartCommunicator();
  CHECK(communicator.ok()) << communicator.status();
  train::TrainerOptions options;
  options.threads = threads;
  parts_->trainer = std::make_unique<train::Trainer>(model::TorchNets(*parts_->job->model, parts_->job->run.model),
                                                     **communicator, options);
}

Workload::~Workload() {
  parts_->checkpoint.reset();
  parts_->job->fleet->StopWorker();
}

void Workload::SaveTo(const std::string& folder) {
  const auto contents = parts_->job->store().Contents();
  CHECK(contents.ok()) << contents.status();
  CHECK_EQ(checkpoint::WriteCheckpoint(folder, *contents), absl::OkStatus());
}

void Workload::TakeCheckpoints(const std::string& folder, double seconds) {
  checkpoint::SaveRootOptions options;
  options.path = folder;
  auto root = checkpoint::SaveRoot::Open(options);
  CHECK(root.ok()) << root.status();
  parts_->root = *std::move(root);
  fleet::WorkerNode& worker = *parts_->job->fleet->worker();
  parts_->checkpoint = std::make_unique<run::TeamCheckpoint>(
      parts_->job->fleet->team(), run::CheckpointPace{0, seconds / 60},
      run::StepPace{worker.mode().steps_together(), 1},
      [&worker](uint64_t number) { return worker.BeginSnapshot(number); },
      [this](const run::WorkerPlaces& places) -> run::TeamCheckpoint::Save {
        ++checkpoints_;
        checkpoint::RunState state;
        state.epoch = state.position.pass = pass_;
        state.position.low = run::AllBatches(places);
        return [this, state](checkpoint::ModelStore& model) { return parts_->root->SaveCheckpoint(model, state); };
      });
}

double Workload::TrainFor(double seconds, Checkpoints checkpoints) {
  Timed timed(seconds, checkpoints == Checkpoints::kTaken ? parts_->checkpoint.get() : nullptr);
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - timed.start).count();
  };
  while (elapsed() < seconds) {
    base::DataPosition start;
    start.pass = pass_++;
    if (parts_->checkpoint != nullptr) parts_->checkpoint->BeginEpoch(pass_);
    const auto end = parts_->trainer->RunPass(*parts_->data.dataset, base::StepKind::kTrain, start, 0, timed);
    CHECK(end.ok()) << end.status();
  }
  return static_cast<double>(timed.samples) / elapsed();
}

uint64_t Workload::rows() const { return parts_->job->embedded().rows(); }

uint64_t Workload::wire_bytes() const { return parts_->job->fleet->wire_bytes(); }

void Workload::Fill(uint64_t rows) {
  std::vector<std::vector<base::Key>> keys(base::kVirtualShards);
  for (uint64_t id = 0; id < rows; ++id) keys[base::ShardOf(KeyOf(id))].push_back(KeyOf(id));
  for (table::SparseTable* table : parts_->job->embedded().sparse()) {
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
      std::vector<float> values(keys[shard].size() * table->row_width(), 0.01f);
      CHECK(table->Load(shard, keys[shard], values).ok());
    }
  }
}

double Workload::Pass() {
  Counter counter;
  const double seconds = Seconds([&] {
    base::DataPosition start;
    start.pass = pass_++;
    const auto end = parts_->trainer->RunPass(*parts_->data.dataset, base::StepKind::kTrain, start, 0, counter);
    CHECK(end.ok() && end->complete) << end.status();
  });
  samples_a_pass_ = counter.samples;
  return static_cast<double>(counter.samples) / seconds;
}

Gemms::Gemms(int64_t batch, const std::vector<int64_t>& layers) : batch_(batch), layers_(layers) {}

double Gemms::Run(int batches, int threads) {
  struct Layer {
    torch::Tensor x, w, y, grad_y, grad_x, grad_w;
  };
  const auto work = [this, batches] {
    torch::NoGradGuard no_grad;
    std::vector<Layer> net;
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      const int64_t in = layers_[i], out = layers_[i + 1];
      net.push_back({torch::randn({batch_, in}), torch::randn({in, out}), torch::empty({batch_, out}),
                     torch::randn({batch_, out}), torch::empty({batch_, in}), torch::empty({in, out})});
    }
    for (int b = 0; b < batches; ++b) {
      for (Layer& l : net) torch::mm_out(l.y, l.x, l.w);
      for (Layer& l : net) {
        torch::mm_out(l.grad_w, l.x.t(), l.grad_y);
        torch::mm_out(l.grad_x, l.grad_y, l.w.t());
      }
    }
  };
  const double seconds = Seconds([&] {
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
  });
  return static_cast<double>(batch_) * batches * threads / seconds;
}

int RunBench(int argc, char** argv, bool (*body)(Extent)) {
  worker::UseKernelsOfThisCpu(argv);
  worker::SetLibraryDefaults();
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  return body(quick ? Extent::kQuick : Extent::kFull) ? 0 : 1;
}

}  // namespace regatta::bench
