// The runner section of a configuration, typed. Defaults stand here; ranges and meanings in key_table.cc.
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id_space.h"
#include "base/job_policy.h"
#include "base/mode.h"
#include "table/push_options.h"

namespace regatta::settings {

// DataLoader and RecDataset stream as QueueDataset does.
enum class ReaderType : uint8_t { kQueueDataset, kInMemoryDataset, kDataLoader, kRecDataset };
enum class FileSplit : uint8_t { kContiguous, kMod };
enum class RowPrecision : uint8_t { kFloat32, kBfloat16 };

struct RunnerOptions {
  // Data. Paths are absolute after parsing; "" = not given.
  std::string train_data_dir;
  std::string test_data_dir;
  int64_t train_batch_size = 512;
  int64_t infer_batch_size = 0;  // after parsing never 0: train_batch_size where not given
  ReaderType reader_type = ReaderType::kQueueDataset;
  std::string train_reader_path;  // a format's name; "" = detect
  std::string infer_reader_path;  // train_reader_path where not given
  base::IdSpace id_space = base::IdSpace::kShared;
  std::string pipe_command;  // "" = the built-in parser
  bool pipe_shell = false;
  int64_t thread_num = 1;      // after parsing never 0
  int64_t reader_threads = 0;  // 0 = thread_num
  bool split_file_list = false;
  FileSplit file_split = FileSplit::kContiguous;  // setting it sets split_file_list
  int64_t max_bad_lines = -1;                     // -1 = 1% of the lines read, at least 100
  int64_t max_line_bytes = int64_t{8} << 20;
  bool dataset_debug = false;

  // Loop.
  int64_t epochs = 1;
  int64_t early_stop = 0;  // epochs without a better validation; 0 = never
  int64_t max_memory = 0;  // bytes; 0 = no limit
  double max_minutes = 0;  // 0 = no limit
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;
  std::string sample_weight_slot;
  std::string user_slot;
  int64_t print_interval = 100;
  int64_t seed = 12345;
  bool use_auc = true;
  bool use_gpu = false;
  bool use_fleet = false;
  bool use_visual = false;

  // Save and load.
  std::string model_save_path = "output_model";
  int64_t keep_epochs = 0;       // 0 = all
  int64_t checkpoint_steps = 0;  // 0 = never
  double checkpoint_minutes = 0;
  std::string model_init_path;
  int64_t last_epoch = -1;      // -1 = model_init_path is a save itself, or the newest below it
  std::string infer_load_path;  // model_save_path where not given
  int64_t infer_start_epoch = 0;
  int64_t infer_end_epoch = -1;  // exclusive; after parsing never -1: epochs where not given

  // Parameter server: without effect while the process trains alone.
  base::Mode sync_mode = base::Mode::kAsync;
  int64_t geo_step = 400;
  int64_t half_async_merge = 4;
  int64_t staleness = 4;
  int64_t lanes = 1;
  RowPrecision row_precision = RowPrecision::kFloat32;
  int64_t server_wait_timeout = 600;
  std::optional<base::LossPolicy> on_worker_loss;  // nothing = auto
  int64_t worker_wait_timeout = 600;
  std::optional<base::Ack> ack;  // the same
  std::string token_file;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  std::string admin_token_file;
  bool insecure = false;

  // Export for inference.
  bool use_inference = false;
  std::vector<std::string> save_inference_feed_varnames;
  std::vector<std::string> save_inference_fetch_varnames;
};

// Lines for the log: what is known but has no effect here, and what the mode came to.
struct Remarks {
  std::vector<std::string> warnings;
  std::vector<std::string> notes;
};

// Whether the process trains alone, or is a worker with servers.
enum class Deployment : uint8_t { kStandalone, kWithServers };

}  // namespace regatta::settings
