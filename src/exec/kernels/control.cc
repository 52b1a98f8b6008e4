// Arrays of tensors, sequences a step at a time, and schedules of the learning rate.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "exec/kernel_table.h"
#include "exec/kernels/integers.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

double Polynomial(const KernelCall& call, double step, double rate) {
  double steps = call.Float("decay_steps");
  if (call.Bool("cycle")) steps *= std::max(1.0, std::ceil(step / steps));
  const double end = call.Float("end_learning_rate");
  return (rate - end) * std::pow(1 - std::min(step, steps) / steps, call.Float("power")) + end;
}

double Piecewise(const KernelCall& call, double step) {
  const std::vector<double>&boundaries = call.attributes().Floats("boundaries"),
        &values = call.attributes().Floats("values");
  size_t i = 0;
  while (i < boundaries.size() && step >= boundaries[i]) ++i;
  return values.at(i);
}

double RateAt(const KernelCall& call, double step) {
  const std::string& kind = call.String("kind");
  const double rate = call.Has("LearningRate") ? FirstElement(call.In("LearningRate")) : call.Float("learning_rate");
  const double decay = call.Float("decay_rate"), warmup = call.Float("warmup_steps");
  double part = step / call.Float("decay_steps");
  if (call.Bool("staircase")) part = std::floor(part);
  if (kind == "exponential") return rate * std::pow(decay, part);
  if (kind == "natural_exp") return rate * std::exp(-decay * part);
  if (kind == "inverse_time") return rate / (1 + decay * part);
  if (kind == "polynomial") return Polynomial(call, step, rate);
  if (kind == "piecewise") return Piecewise(call, step);
  if (kind == "noam")
    return rate / std::sqrt(call.Float("d_model")) * std::min(1 / std::sqrt(step), step * std::pow(warmup, -1.5));
  if (kind == "cosine") {
    const double epoch = std::floor(step / call.Float("step_each_epoch"));
    return rate * 0.5 * (std::cos(epoch * std::numbers::pi / call.Float("epochs")) + 1);
  }
  const double start = call.Float("start_lr"), end = call.Float("end_lr");  // linear_warmup
  return step < warmup ? start + (end - start) * step / warmup : rate;
}

absl::Status LrSchedule(KernelCall& call) {
  call.SetOut("Out", at::full({1}, RateAt(call, FirstElement(call.In("Step"))), torch::kFloat32));
  return absl::OkStatus();
}

absl::Status WriteToArray(KernelCall& call) {
  constexpr int64_t kMost = 1 << 20;
  const auto at = static_cast<int64_t>(FirstElement(call.In("I")));
  if (at < 0 || at >= kMost) return absl::InvalidArgumentError(absl::StrCat("I is ", at, "; want 0 to ", kMost - 1));
  TensorArray* array = call.OutArray("Out");
  if (array == nullptr) return absl::OkStatus();
  if (array->size() <= static_cast<size_t>(at)) array->resize(static_cast<size_t>(at) + 1);
  (*array)[static_cast<size_t>(at)] = {call.In("X"), call.LodOf("X")};
  return absl::OkStatus();
}

absl::Status ReadFromArray(KernelCall& call) {
  const TensorArray* array = call.InArray("X");
  const auto at = static_cast<int64_t>(FirstElement(call.In("I")));
  const auto size = static_cast<int64_t>(array ? array->size() : 0);
  if (at < 0 || at >= size || !(*array)[static_cast<size_t>(at)].tensor.defined())
    return absl::InvalidArgumentError(
        absl::StrCat("the array has ", size, " tensors and none at ", at, "; write it before it is read"));
  const LodTensor& each = (*array)[static_cast<size_t>(at)];
  call.SetOut("Out", each.tensor, each.lod);
  return absl::OkStatus();
}

absl::Status ArrayLength(KernelCall& call) {
  const TensorArray* array = call.InArray("X");
  call.SetOut("Out", at::full({1}, static_cast<int64_t>(array ? array->size() : 0), torch::kInt64));
  return absl::OkStatus();
}

std::vector<torch::Tensor> TensorsOf(const TensorArray* array) {
  std::vector<torch::Tensor> tensors;
  if (array != nullptr)
    for (const LodTensor& each : *array) tensors.push_back(each.tensor);
  return tensors;
}

absl::Status JoinArray(KernelCall& call) {
  const std::vector<torch::Tensor> tensors = TensorsOf(call.InArray("X"));
  const int64_t axis = call.Int("axis");
  const bool stacks = call.Bool("use_stack");
  Integers extents;
  for (const torch::Tensor& each : tensors) extents.push_back(stacks ? 1 : each.size(axis));
  call.SetOut("OutIndex", at::tensor(at::ArrayRef<int64_t>(extents), torch::kInt64).to(torch::kInt32));
  call.SetOut("Out", stacks ? at::stack(tensors, axis) : at::cat(tensors, axis));
  return absl::OkStatus();
}

// A rank table: the sequences, the longest first, as [n, 2]: number and length.
struct RankTable {
  Integers numbers, lengths;

  explicit RankTable(const torch::Tensor& table) {
    for (int64_t i = 0; i < table.size(0); ++i) {
      numbers.push_back(table[i][0].item<int64_t>());
      lengths.push_back(table[i][1].item<int64_t>());
    }
  }
  int64_t longest() const { return lengths.empty() ? 0 : lengths[0]; }
  // How many sequences are longer than `step`.
  int64_t LongerThan(int64_t step) const {
    return std::ranges::count_if(lengths, [&](int64_t length) { return length > step; });
  }
};

absl::Status MakeRankTable(KernelCall& call) {
  const Lod& lod = call.LodOf("X");
  if (lod.empty() || call.Int("level") + 1 != static_cast<int64_t>(lod.size()))
    return absl::InvalidArgumentError(absl::StrCat("X has ", lod.size(), " levels of LoD and level is ",
                                                   call.Int("level"), "; want the last level: feed X as sequences"));
  const Lod::Offsets& offsets = lod.last();
  Integers numbers(offsets.size() - 1), table;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  const auto length_of = [&](int64_t i) { return offsets[i + 1] - offsets[i]; };
  std::ranges::stable_sort(numbers, std::greater<>(), length_of);
  for (const int64_t each : numbers) table.insert(table.end(), {each, length_of(each)});
  call.SetOut("Out", at::tensor(at::ArrayRef<int64_t>(table), torch::kInt64).reshape({-1, 2}));
  return absl::OkStatus();
}

absl::Status LongestSequence(KernelCall& call) {
  call.SetOut("Out", at::full({1}, RankTable(call.In("RankTable")).longest(), torch::kInt64));
  return absl::OkStatus();
}

torch::Tensor TakeRows(const torch::Tensor& x, const Integers& rows) {
  return x.index_select(0, at::tensor(at::ArrayRef<int64_t>(rows), torch::kInt64));
}

// Tensor t has row t of every sequence that is longer than t, in the order of the table.
absl::Status SequencesToArray(KernelCall& call) {
  const RankTable table(call.In("RankTable"));
  const Lod::Offsets offsets = call.LodOf("X").empty() ? Lod::Offsets{} : call.LodOf("X").last();
  if (offsets.size() != table.numbers.size() + 1)
    return absl::InvalidArgumentError("X does not have the sequences that the rank table was made of");
  TensorArray* array = call.OutArray("Out");
  if (array == nullptr) return absl::OkStatus();
  array->clear();
  for (int64_t step = 0; step < table.longest(); ++step) {
    Integers rows;
    for (int64_t i = 0; i < table.LongerThan(step); ++i) rows.push_back(offsets[table.numbers[i]] + step);
    array->push_back({TakeRows(call.In("X"), rows), Lod()});
  }
  return absl::OkStatus();
}

absl::Status ArrayToSequences(KernelCall& call) {
  const RankTable table(call.In("RankTable"));
  const TensorArray* array = call.InArray("X");
  if (array == nullptr || static_cast<int64_t>(array->size()) != table.longest())
    return absl::InvalidArgumentError("X does not have a tensor for each step of the rank table");
  Integers lengths(table.numbers.size()), places;
  std::vector<int64_t> first = {0};  // row of each step in the joined tensors
  for (size_t i = 0; i < table.numbers.size(); ++i) lengths[table.numbers[i]] = table.lengths[i];
  for (int64_t step = 0; step < table.longest(); ++step) first.push_back(first.back() + table.LongerThan(step));
  Integers rank(table.numbers.size());
  for (size_t i = 0; i < table.numbers.size(); ++i) rank[table.numbers[i]] = static_cast<int64_t>(i);
  Lod::Offsets offsets = {0};
  for (size_t sequence = 0; sequence < lengths.size(); ++sequence) {
    for (int64_t step = 0; step < lengths[sequence]; ++step) places.push_back(first[step] + rank[sequence]);
    offsets.push_back(static_cast<int64_t>(places.size()));
  }
  ASSIGN_OR_RETURN(Lod lod, Lod::Make({offsets}, static_cast<int64_t>(places.size())));
  call.SetOut("Out", TakeRows(at::cat(TensorsOf(array)), places), std::move(lod));
  return absl::OkStatus();
}

// The rows of the sequences that go on at step I.
absl::Status ShrinkMemory(KernelCall& call) {
  const auto step = static_cast<int64_t>(FirstElement(call.In("I")));
  call.SetOut("Out", call.In("X").slice(0, 0, RankTable(call.In("RankTable")).LongerThan(step)));
  return absl::OkStatus();
}

// Rows, or sequences if X has a LoD, in the order of the table.
absl::Status ReorderByRank(KernelCall& call) {
  const RankTable table(call.In("RankTable"));
  const torch::Tensor& x = call.In("X");
  if (call.LodOf("X").empty()) {
    call.SetOut("Out", TakeRows(x, table.numbers));
    return absl::OkStatus();
  }
  const Lod::Offsets& offsets = call.LodOf("X").last();
  if (offsets.size() != table.numbers.size() + 1)
    return absl::InvalidArgumentError("X does not have as many sequences as the rank table");
  Integers rows;
  Lod::Offsets ends = {0};
  for (const int64_t sequence : table.numbers) {
    for (int64_t row = offsets[sequence]; row < offsets[sequence + 1]; ++row) rows.push_back(row);
    ends.push_back(static_cast<int64_t>(rows.size()));
  }
  ASSIGN_OR_RETURN(Lod lod, Lod::Make({ends}, static_cast<int64_t>(rows.size())));
  call.SetOut("Out", TakeRows(x, rows), std::move(lod));
  return absl::OkStatus();
}

constexpr KernelRow kControlKernels[] = {
    {"while", nullptr},
    {"conditional_block", nullptr},
    {"write_to_array", WriteToArray},
    {"read_from_array", ReadFromArray},
    {"lod_array_length", ArrayLength},
    {"tensor_array_to_tensor", JoinArray},
    {"lod_rank_table", MakeRankTable},
    {"max_sequence_len", LongestSequence},
    {"lod_tensor_to_array", SequencesToArray},
    {"array_to_lod_tensor", ArrayToSequences},
    {"shrink_rnn_memory", ShrinkMemory},
    {"reorder_lod_tensor_by_rank", ReorderByRank},
    {"lr_schedule", LrSchedule},
};

}  // namespace

std::span<const KernelRow> ControlKernels() { return kControlKernels; }

}  // namespace regatta::exec
