#include "bench/e2e/workload.h"

#include <glog/logging.h>
#include <sched.h>
#include <stdlib.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/random.h"
#include "bench/measure.h"

namespace regatta::bench {
namespace {

struct Counter : train::PassObserver {
  Wish AfterStep(const Step& step) override {
    samples += step.result.batch->size;
    return Wish::kGoOn;
  }
  absl::Status AtPause(const base::DataPosition&) override { return absl::OkStatus(); }
  absl::Status OnBadLoss(const data::Batch&, absl::Status status) override { return status; }
  uint64_t samples = 0;
};

uint64_t DrawId(base::Rng& rng, const Shape& shape) {
  if (shape.ids == Ids::kUniform) return rng.Below(shape.vocabulary);
  return static_cast<uint64_t>(std::exp(rng.Uniform() * std::log(static_cast<double>(shape.vocabulary)))) %
         shape.vocabulary;
}

// The ids are spread over the 64-bit keys, as hashed features are. File and table agree on it.
uint64_t KeyOf(uint64_t id) { return base::Mix64(id) >> 20; }

}  // namespace

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/regatta_bench_XXXXXX";
  path_ = CHECK_NOTNULL(mkdtemp(name));
}
TemporaryFolder::~TemporaryFolder() { base::RemoveTree(path_).IgnoreError(); }

void WriteSlotText(const std::string& path, const Shape& shape, uint64_t seed) {
  base::Rng rng(seed);
  std::ofstream out(path);
  std::string line;
  for (int s = 0; s < shape.samples; ++s) {
    line = rng.Uniform() < 0.25 ? "click:1" : "click:0";
    for (int d = 0; d < shape.dense; ++d) {
      absl::StrAppendFormat(&line, " dense_feature:%.6g", rng.Uniform());
    }
    for (int slot = 1; slot <= shape.slots; ++slot)
      for (int i = 0; i < shape.ids_a_slot; ++i) absl::StrAppend(&line, " ", slot, ":", KeyOf(DrawId(rng, shape)));
    out << line << "\n";
  }
  CHECK(out.good()) << path;
}

std::string CtrDnnYaml(const std::string& data, int threads) {
  return "model: dnn\nrunner: {train_data_dir: " + data +
         ", train_reader_path: criteo_reader, train_batch_size: 1000, thread_num: " + std::to_string(threads) +
         ", reader_threads: 1}\n"
         "hyper_parameters:\n  optimizer: {class: Adam, learning_rate: 0.0001}\n  sparse_inputs_slots: 27\n"
         "  sparse_feature_dim: 10\n  dense_input_dim: 13\n  fc_sizes: [400, 400, 400]\n";
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

Workload::Workload(const std::string& folder, const std::string& yaml, int threads) {
  const std::string config = folder + "/bench.yaml";
  CHECK(base::WriteFileAtomically(config, yaml).ok());
  runner::TrainArgs args;
  args.config = config;
  auto job = worker::MakeJob(args);
  CHECK(job.ok()) << job.status();
  job_ = *std::move(job);
  auto data = worker::OpenData(*job_, worker::DataUse::kTrain);
  CHECK(data.ok()) << data.status();
  data_ = *std::move(data);
  train::TrainerOptions options;
  options.threads = threads;
  trainer_ = std::make_unique<train::Trainer>(*job_->model, *job_->communicator, options);
}

void Workload::Fill(uint64_t rows) {
  std::vector<std::vector<base::Key>> keys(base::kVirtualShards);
  for (uint64_t id = 0; id < rows; ++id) keys[base::ShardOf(KeyOf(id))].push_back(KeyOf(id));
  for (table::SparseTable* table : job_->tables.sparse()) {
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
    const auto end = trainer_->RunPass(*data_.dataset, base::StepKind::kTrain, start, 0, counter);
    CHECK(end.ok() && end->complete) << end.status();
  });
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

void PinTo(int cores) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
  }();
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && cores > 0; --cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &some);
    --cores;
  }
  CHECK_EQ(sched_setaffinity(0, sizeof some, &some), 0);
}

}  // namespace regatta::bench
