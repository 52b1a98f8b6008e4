#include "settings/key_table.h"

#include <array>
#include <iterator>
#include <optional>

#include "base/id_space.h"

namespace regatta::settings {
namespace {

using std::string_view;
using O = RunnerOptions;

// In the order of the enums.
constexpr std::array<string_view, 4> kReaderTypes = {"QueueDataset", "InmemoryDataset", "DataLoader", "RecDataset"};
constexpr std::array<string_view, 2> kFileSplits = {"contiguous", "mod"};
constexpr std::array kNanPolicies = base::NamesIn(table::kNanPolicies);
constexpr std::array kWorkerLosses = base::NamesIn(base::kLossPolicies, std::array<string_view, 1>{"auto"});
constexpr std::array<string_view, 2> kRowPrecisions = {"float32", "bfloat16"};
constexpr std::array kAcks = base::NamesIn(base::kAcks, std::array<string_view, 1>{"auto"});

// Those of base/mode.h, and the one that is not available.
constexpr size_t kModeCount = std::size(base::kModes);
constexpr std::array<string_view, kModeCount + 1> SyncModes() {
  std::array<string_view, kModeCount + 1> names{};
  for (size_t i = 0; i < kModeCount; ++i) names[i] = base::kModes[i].name;
  names[kModeCount] = "gpubox";
  return names;
}
constexpr std::array kSyncModes = SyncModes();

constexpr double kBig = 1e12;  // above any sensible count, far below where a double skips integers

constexpr KeySpec Bool(string_view path, bool O::*field, string_view doc) {
  return {.path = path, .type = KeyType::kBool, .field = field, .choices = {}, .doc = doc, .default_text = {}};
}
constexpr KeySpec Int(string_view path, int64_t O::*field, double min, double max, string_view doc,
                      string_view default_text = "") {
  return {.path = path,
          .type = KeyType::kInt,
          .field = field,
          .min = min,
          .max = max,
          .choices = {},
          .doc = doc,
          .default_text = default_text};
}
constexpr KeySpec Double(string_view path, double O::*field, double min, double max, string_view doc) {
  return {.path = path,
          .type = KeyType::kDouble,
          .field = field,
          .min = min,
          .max = max,
          .choices = {},
          .doc = doc,
          .default_text = {}};
}
constexpr KeySpec Text(string_view path, std::string O::*field, string_view doc, string_view default_text = "") {
  return {
      .path = path, .type = KeyType::kString, .field = field, .choices = {}, .doc = doc, .default_text = default_text};
}
constexpr KeySpec Path(string_view path, std::string O::*field, string_view doc, string_view default_text = "") {
  return {
      .path = path, .type = KeyType::kPath, .field = field, .choices = {}, .doc = doc, .default_text = default_text};
}
constexpr KeySpec Bytes(string_view path, int64_t O::*field, double min, string_view doc, string_view default_text) {
  return {.path = path,
          .type = KeyType::kBytes,
          .field = field,
          .min = min,
          .choices = {},
          .doc = doc,
          .default_text = default_text};
}
constexpr KeySpec Names(string_view path, std::vector<std::string> O::*field, string_view doc) {
  return {.path = path, .type = KeyType::kStringList, .field = field, .choices = {}, .doc = doc, .default_text = {}};
}
// `member` is an enum whose values are in the order of the choices, or an optional one, which is empty for choice 0.
template <typename E>
struct EnumChoice {
  static constexpr E At(size_t i) { return static_cast<E>(i); }
  static constexpr size_t IndexOf(E value) { return static_cast<size_t>(value); }
};
template <typename E>
struct EnumChoice<std::optional<E>> {
  static constexpr std::optional<E> At(size_t i) {
    return i == 0 ? std::nullopt : std::optional<E>(static_cast<E>(i - 1));
  }
  static constexpr size_t IndexOf(std::optional<E> value) {
    return value.has_value() ? static_cast<size_t>(*value) + 1 : 0;
  }
};
template <auto member>
constexpr KeySpec Choice(string_view path, std::span<const string_view> choices, string_view doc,
                         size_t unavailable = 0) {
  using E = EnumChoice<std::remove_reference_t<decltype(O{}.*member)>>;
  return {.path = path,
          .type = KeyType::kChoice,
          .field = ChoiceField{choices.size() - unavailable, [](O& o, size_t i) { o.*member = E::At(i); },
                               [](const O& o) { return E::IndexOf(o.*member); }},
          .choices = choices,
          .doc = doc,
          .default_text = {}};
}
constexpr KeySpec WithServers(KeySpec spec) {
  spec.kind = KeyKind::kWithServers;
  return spec;
}
constexpr KeySpec Idle(KeySpec spec) {
  spec.kind = KeyKind::kNoEffect;
  return spec;
}
constexpr KeySpec Idle(string_view path, string_view why) {
  return {.path = path, .kind = KeyKind::kNoEffect, .field = {}, .choices = {}, .doc = why, .default_text = {}};
}
constexpr KeySpec Refused(KeySpec spec) {
  spec.kind = KeyKind::kRefused;
  return spec;
}
constexpr KeySpec RefusedFlag(string_view path, string_view doc) {
  return {.path = path,
          .kind = KeyKind::kRefused,
          .type = KeyType::kBool,
          .field = {},
          .choices = {},
          .doc = doc,
          .default_text = "False"};
}
constexpr KeySpec RefusedText(string_view path, string_view doc) {
  return {.path = path,
          .kind = KeyKind::kRefused,
          .type = KeyType::kString,
          .field = {},
          .choices = {},
          .doc = doc,
          .default_text = "none"};
}

const KeySpec kKeys[] = {
    // Data.
    Path("train_data_dir", &O::train_data_dir, "training data: a folder, a file or a glob", "none"),
    Path("test_data_dir", &O::test_data_dir, "data of infer, and of the validation after every epoch", "none"),
    Int("train_batch_size", &O::train_batch_size, 1, 1 << 20, "samples a step"),
    Int("infer_batch_size", &O::infer_batch_size, 1, 1 << 20, "samples a batch of infer and validation",
        "train_batch_size"),
    Choice<&O::reader_type>("reader_type", kReaderTypes,
                            "InmemoryDataset loads and shuffles with the seed; the others stream in file order"),
    Text("train_reader_path", &O::train_reader_path,
         "format of the training data: criteo_reader, benchmark_reader, slot_reader, multislot; any other name: found "
         "out from the first lines",
         "detect"),
    Text("infer_reader_path", &O::infer_reader_path, "format of the test data", "train_reader_path"),
    Choice<&O::id_space>(
        "id_space", base::kIdSpaceNames,
        "the same id in two slots: one row (shared: ids are feasigns), or a row for each slot (slot: "
        "ids are values of columns). A save records it; resume, warm start and infer refuse the other"),
    Text("pipe_command", &O::pipe_command,
         "a program that turns a file on its stdin into MultiSlot lines; it runs in the YAML's folder", "none"),
    Bool("pipe_shell", &O::pipe_shell, "run pipe_command by /bin/sh -c"),
    Int("thread_num", &O::thread_num, 0, 1024, "training threads; 0 = every core"),
    Int("reader_threads", &O::reader_threads, 0, 1024,
        "threads that read and parse; 0 = thread_num. The batches are the same for any number"),
    WithServers(
        Bool("split_file_list", &O::split_file_list,
             "True: every worker sees all the files and takes its share of them; False: a worker reads all that "
             "train_data_dir holds on its machine")),
    WithServers(
        Choice<&O::file_split>("file_split", kFileSplits,
                               "how workers share files: even blocks, or those whose suffix modulo the number of "
                               "workers is the worker's; setting it splits")),
    Int("max_bad_lines", &O::max_bad_lines, 0, kBig, "malformed lines after which training stops",
        "1% of the lines read, at least 100"),
    Bytes("max_line_bytes", &O::max_line_bytes, 64, "a longer line is a bad line", "8M"),
    Bool("dataset_debug", &O::dataset_debug, "print how long each stage of reading takes"),
    // Loop.
    Int("epochs", &O::epochs, 1, 1e6, "passes over the data, in total (a resumed run counts those done)"),
    Int("early_stop", &O::early_stop, 0, 1e6,
        "stop after so many epochs without a better validation (AUC; of a regression the loss); 0 = never"),
    Bytes("max_memory", &O::max_memory, 0, "stop with an error before the process needs more, such as 8G", "no limit"),
    Double("max_minutes", &O::max_minutes, 0, 1e7, "save and stop before so many minutes; 0 = no limit"),
    Choice<&O::nan_policy>(
        "nan_policy", kNanPolicies,
        "a gradient with NaN or Inf: leave the row (or the dense update) alone, stop, or take its bad elements for "
        "0; they are counted and reported. A loss that is NaN or Inf ends the run under every policy"),
    Text("sample_weight_slot", &O::sample_weight_slot,
         "slot that holds a sample's weight. A gradient is the weighted sum divided by the number of samples, so a "
         "batch of "
         "weights 2 takes steps twice as long; reported losses and metrics divide by the sum of the weights",
         "none"),
    Text("user_slot", &O::user_slot, "slot that holds the user, for gauc (keeps 16 bytes a sample)", "none"),
    Int("print_interval", &O::print_interval, 1, kBig, "steps between report lines"),
    Int("seed", &O::seed, 0, 0x1p53, "seed of initial values and shuffles"),
    Bool("use_auc", &O::use_auc, "measure AUC and its companions"),
    Refused(Bool("use_gpu", &O::use_gpu, "training on a GPU is not available in this version; it trains on the CPU")),
    Bool("use_fleet", &O::use_fleet,
         "with sync_mode unset it asks for collective training, which is not available in this version"),
    Refused(Bool("use_visual", &O::use_visual,
                 "TensorBoard events are not available in this version; --json prints every report as JSON")),
    // Save and load.
    Path("model_save_path", &O::model_save_path,
         "every epoch is saved to model_save_path/<epoch>. A new run replaces the saves of a finished run there; an "
         "interrupted run wants --resume or --overwrite"),
    Int("keep_epochs", &O::keep_epochs, 0, 1e6, "newest epoch saves to keep; 0 = all"),
    Int("checkpoint_steps", &O::checkpoint_steps, 0, kBig, "steps between periodic saves; 0 = none"),
    Double("checkpoint_minutes", &O::checkpoint_minutes, 0, 1e7, "minutes between periodic saves; 0 = none"),
    Path("model_init_path", &O::model_init_path,
         "warm start from this save: weights and optimizer state. Training starts at epoch 0, and a learning-rate "
         "schedule "
         "at its step 0; --resume goes on with both",
         "none"),
    Int("last_epoch", &O::last_epoch, -1, 1e6, "epoch below model_init_path to start from", "the newest"),
    Path("infer_load_path", &O::infer_load_path, "infer reads infer_load_path/<epoch>", "model_save_path"),
    Int("infer_start_epoch", &O::infer_start_epoch, 0, 1e6, "first epoch that infer reads"),
    Int("infer_end_epoch", &O::infer_end_epoch, 0, 1e6, "end of the epochs that infer reads, exclusive", "epochs"),
    Idle(Bool("use_inference", &O::use_inference,
              "no separate inference model is written; regatta infer reads every epoch's save")),
    Idle(Names("save_inference_feed_varnames", &O::save_inference_feed_varnames,
               "it names variables of a Paddle inference model, which is not written")),
    Idle(Names("save_inference_fetch_varnames", &O::save_inference_fetch_varnames,
               "it names variables of a Paddle inference model, which is not written")),
    // Parameter server.
    Choice<&O::sync_mode>("sync_mode", kSyncModes,
                          "how workers and servers keep in step; without a role in the environment the process trains "
                          "alone. gpubox is not available in this version",
                          kSyncModes.size() - kModeCount),
    WithServers(Int("geo_step", &O::geo_step, 1, kBig,
                    "geo: the most batches of a worker between two exchanges; an epoch has at least ten")),
    WithServers(Int("half_async_merge", &O::half_async_merge, 1, 1e6, "half_async: batches that are pushed as one")),
    WithServers(
        Int("staleness", &O::staleness, 0, 1e6,
            "async, half_async: pushes of a thread that may be under way; 0 = none: a step waits until it is applied. "
            "In async the dense gradients of up to 4 such steps go as one")),
    WithServers(Int("lanes", &O::lanes, 1, 64, "streams from a worker to each server that carry sparse rows")),
    WithServers(Choice<&O::row_precision>(
        "row_precision", kRowPrecisions,
        "how rows, dense parameters and gradients cross the network while training; bfloat16 halves their bytes, the "
        "servers keep float32. Not with geo")),
    WithServers(Int("server_wait_timeout", &O::server_wait_timeout, 1, 1e7, "seconds that a worker waits for servers")),
    WithServers(
        Choice<&O::on_worker_loss>("on_worker_loss", kWorkerLosses,
                                   "when a worker dies: end the job with an error (fail), go on without it "
                                   "(shrink), or wait until it is started again and goes on where it was (await: "
                                   "servers with a data_dir). auto: await where `regatta launch "
                                   "--max_restarts` starts it again, fail elsewhere")),
    WithServers(Int("worker_wait_timeout", &O::worker_wait_timeout, 1, 1e7,
                    "seconds that a worker may be away; on_worker_loss: await")),
    WithServers(Choice<&O::ack>("ack", kAcks,
                                "what a server has done when it acknowledges a push: applied it (memory), also written "
                                "it to its log, so that it survives the end of the process (logged), also forced the "
                                "log to the disk, so that it survives a loss of power (synced). auto: logged where the "
                                "server has a data_dir, memory where it has none")),
    WithServers(Path("security.token_file", &O::token_file,
                     "the token that lets workers and servers talk to each other; with the three below, which "
                     "`regatta credentials init` makes (security.md)",
                     "none")),
    WithServers(Path("security.tls_cert", &O::tls_cert, "the certificate that this process shows", "none")),
    WithServers(Path("security.tls_key", &O::tls_key, "the key of the certificate", "none")),
    WithServers(Path("security.tls_ca", &O::tls_ca, "the authority that signed everybody's certificate", "none")),
    WithServers(Path("security.admin_token_file", &O::admin_token_file,
                     "the token of servers and worker 0, which reads and fills whole tables; where servers have none, "
                     "token_file's is enough",
                     "none")),
    WithServers(Bool("security.insecure", &O::insecure,
                     "listen and connect without credentials on addresses that are not this machine's")),
    // Online passes.
    RefusedText("start_day", "training by days and passes is not available in this version"),
    RefusedText("end_day", "training by days and passes is not available in this version"),
    RefusedText("days", "training by days and passes is not available in this version"),
    RefusedText("data_donefile", "training by days and passes is not available in this version"),
    Idle("split_interval", "only training by days and passes splits time"),
    Idle("split_per_pass", "only training by days and passes splits time"),
    Idle("pass_per_day", "only training by days and passes splits time"),
    Idle("checkpoint_per_pass", "only training by days and passes saves by pass"),
    Idle("save_delta_frequency", "only training by days and passes saves deltas"),
    Idle("data_sleep_second", "only training by days and passes waits for data"),
    Idle("prefetch", "the next batches are always read ahead"),
    Idle("shuffle_thread_num", "shuffling takes thread_num threads"),
    // Keys of other PaddleRec tools.
    RefusedFlag("use_xpu", "training on an XPU is not available in this version; it trains on the CPU"),
    Idle("num_workers", "files are parsed by threads inside the process"),
    Idle("infer_thread_num", "infer takes thread_num threads"),
    Idle("infer_reader_type", "infer always streams"),
    Idle("mode", "the verb says it: regatta train or regatta infer"),
    Idle("is_train", "the verb says it: regatta train or regatta infer"),
    Idle("model_path", "the model is named by 'model:' or by the YAML's folder"),
    Idle("auc_num", "one AUC is measured for each output of the model"),
    Idle("infer_train_epoch", "infer reads infer_start_epoch to infer_end_epoch"),
    Idle("batches_per_epoch", "an epoch is one pass over all the data"),
    Idle("need_dump", "fields are not dumped; regatta infer --predictions FILE writes predictions"),
    Idle("dump_fields", "fields are not dumped; regatta infer --predictions FILE writes predictions"),
    Idle("dump_fields_path", "fields are not dumped; regatta infer --predictions FILE writes predictions"),
    Idle("dump_param", "parameters are not dumped while training; regatta checkpoint dump prints them"),
    Idle("parse_ins_id", "lines carry no instance id in the formats read here"),
    Idle("need_prune", "a program is not pruned here: the model is C++"),
    Idle("fs_name", "files are read from mounted paths"),
    Idle("fs_ugi", "files are read from mounted paths"),
};

}  // namespace

std::span<const KeySpec> KeyTable() { return kKeys; }

}  // namespace regatta::settings
