// Recurrent layers over sequences, their single steps, and conditional random fields: the rows of
// src/program/schema/sequence.cc that walk a sequence row after row.
#include <algorithm>
#include <numeric>

#include "exec/kernel_table.h"
#include "exec/kernels/integers.h"

namespace regatta::exec {

namespace {

using Activation = torch::Tensor (*)(const torch::Tensor&);

struct NamedActivation {
  std::string_view name;
  Activation function;
};

torch::Tensor Identity(const torch::Tensor& x) { return x; }

// In the order of gru_unit's numbers.
constexpr NamedActivation kActivations[] = {
    {"identity", Identity}, {"sigmoid", at::sigmoid}, {"tanh", at::tanh}, {"relu", at::relu}};

absl::StatusOr<Activation> ActivationNamed(const std::string& name) {
  for (const NamedActivation& each : kActivations)
    if (each.name == name) return each.function;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no activation '", name, "' here; want identity, sigmoid, tanh or relu"));
}

// The rows of sequences, a step at a time: step t has the rows of all sequences that are longer than t, the longest
// sequence first.
class Steps {
 public:
  Steps(const Lod::Offsets& offsets, bool reversed) : offsets_(offsets), reversed_(reversed) {
    order_.resize(offsets.size() - 1);
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, std::greater<>(), [&](int64_t i) { return LengthOf(i); });
  }

  int64_t count() const { return order_.empty() ? 0 : LengthOf(order_[0]); }
  // The numbers of the sequences, the longest first.
  torch::Tensor order() const { return at::tensor(at::ArrayRef<int64_t>(order_), torch::kInt64); }

  Integers RowsOf(int64_t step) const {
    Integers rows;
    for (const int64_t sequence : order_) {
      if (LengthOf(sequence) <= step) break;
      rows.push_back(reversed_ ? offsets_[sequence + 1] - 1 - step : offsets_[sequence] + step);
    }
    return rows;
  }

  // What the steps gave, in the order of the rows.
  torch::Tensor Join(const std::vector<torch::Tensor>& parts) const {
    Integers places(static_cast<size_t>(offsets_.back()));
    int64_t next = 0;
    for (int64_t step = 0; step < count(); ++step)
      for (const int64_t row : RowsOf(step)) places[static_cast<size_t>(row)] = next++;
    return at::cat(parts).index_select(0, at::tensor(at::ArrayRef<int64_t>(places), torch::kInt64));
  }

 private:
  int64_t LengthOf(int64_t sequence) const { return offsets_[sequence + 1] - offsets_[sequence]; }

  const Lod::Offsets& offsets_;
  const bool reversed_;
  Integers order_;
};

absl::Status WantSequences(const KernelCall& call, std::string_view slot) {
  if (!call.LodOf(slot).empty() && call.In(slot).size(0) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(base::View(slot), " has no LoD or no rows; feed it as sequences"));
}

// What a layer begins with, in the order of the steps.
torch::Tensor StateOf(const KernelCall& call, std::string_view slot, const Steps& steps, int64_t size) {
  const torch::Tensor order = steps.order();
  if (call.Has(slot)) return call.In(slot).index_select(0, order);
  return at::zeros({order.size(0), size}, call.In("Input").detach().options());
}

torch::Tensor Rows(const torch::Tensor& x, const Integers& rows) {
  return x.index_select(0, at::tensor(at::ArrayRef<int64_t>(rows), torch::kInt64));
}

// Columns: candidate, input, forget, output; behind the biases the weights by which gates see the cell.
absl::Status Lstm(KernelCall& call) {
  RETURN_IF_ERROR(WantSequences(call, "Input"));
  ASSIGN_OR_RETURN(const Activation gate, ActivationNamed(call.String("gate_activation")));
  ASSIGN_OR_RETURN(const Activation of_cell, ActivationNamed(call.String("cell_activation")));
  ASSIGN_OR_RETURN(const Activation candidate, ActivationNamed(call.String("candidate_activation")));
  const torch::Tensor &weight = call.In("Weight"), bias = call.In("Bias").reshape({-1});
  const int64_t size = weight.size(0);
  const torch::Tensor input = call.In("Input") + bias.narrow(0, 0, 4 * size);
  const bool peepholes = call.Bool("use_peepholes");
  const auto peep = [&](int64_t i, const torch::Tensor& cell) { return bias.narrow(0, (4 + i) * size, size) * cell; };
  const Steps steps(call.LodOf("Input").last(), call.Bool("is_reverse"));
  torch::Tensor hidden = StateOf(call, "H0", steps, size), cell = StateOf(call, "C0", steps, size);
  std::vector<torch::Tensor> all_hidden, all_cells;
  for (int64_t step = 0; step < steps.count(); ++step) {
    const Integers rows = steps.RowsOf(step);
    const auto count = static_cast<int64_t>(rows.size());
    const torch::Tensor before = cell.narrow(0, 0, count);
    const std::vector<torch::Tensor> gates =
        at::chunk(Rows(input, rows) + at::mm(hidden.narrow(0, 0, count), weight), 4, 1);
    const torch::Tensor in = gate(peepholes ? gates[1] + peep(0, before) : gates[1]);
    const torch::Tensor forget = gate(peepholes ? gates[2] + peep(1, before) : gates[2]);
    cell = candidate(gates[0]) * in + before * forget;
    hidden = gate(peepholes ? gates[3] + peep(2, cell) : gates[3]) * of_cell(cell);
    all_hidden.push_back(hidden);
    all_cells.push_back(cell);
  }
  const Lod lod = call.LodOf("Input");
  call.SetOut("Hidden", steps.Join(all_hidden), lod);
  call.SetOut("Cell", steps.Join(all_cells), lod);
  return absl::OkStatus();
}

// The weight's memory is [size, 2 · size] for the gates, and behind it [size, size] for the candidate.
struct GruCell {
  torch::Tensor of_gates;
  torch::Tensor of_candidate;
  Activation gate;
  Activation candidate;
  bool origin_mode;

  GruCell(const torch::Tensor& weight, Activation gate_function, Activation candidate_function, bool origin)
      : gate(gate_function), candidate(candidate_function), origin_mode(origin) {
    const int64_t size = weight.size(0);
    const torch::Tensor flat = weight.reshape({-1});
    of_gates = flat.narrow(0, 0, 2 * size * size).view({size, 2 * size});
    of_candidate = flat.narrow(0, 2 * size * size, size * size).view({size, size});
  }

  struct Result {
    torch::Tensor update, reset, candidate, reset_hidden, hidden;
  };
  // Columns of x: update, reset, candidate.
  Result Step(const torch::Tensor& x, const torch::Tensor& before) const {
    const int64_t size = before.size(1);
    const std::vector<torch::Tensor> gates = at::chunk(gate(x.narrow(1, 0, 2 * size) + at::mm(before, of_gates)), 2, 1);
    Result made{gates[0], gates[1], {}, gates[1] * before, {}};
    made.candidate = candidate(x.narrow(1, 2 * size, size) + at::mm(made.reset_hidden, of_candidate));
    const torch::Tensor apart = gates[0] * (made.candidate - before);
    made.hidden = origin_mode ? made.candidate - apart : before + apart;
    return made;
  }
};

torch::Tensor WithBias(const KernelCall& call) {
  return call.Has("Bias") ? call.In("Input") + call.In("Bias").reshape({-1}) : call.In("Input");
}

absl::Status Gru(KernelCall& call) {
  RETURN_IF_ERROR(WantSequences(call, "Input"));
  ASSIGN_OR_RETURN(const Activation gate, ActivationNamed(call.String("gate_activation")));
  ASSIGN_OR_RETURN(const Activation candidate, ActivationNamed(call.String("activation")));
  const torch::Tensor input = WithBias(call);
  const GruCell cell(call.In("Weight"), gate, candidate, call.Bool("origin_mode"));
  const Steps steps(call.LodOf("Input").last(), call.Bool("is_reverse"));
  torch::Tensor hidden = StateOf(call, "H0", steps, call.In("Weight").size(0));
  std::vector<torch::Tensor> all;
  for (int64_t step = 0; step < steps.count(); ++step) {
    const Integers rows = steps.RowsOf(step);
    hidden = cell.Step(Rows(input, rows), hidden.narrow(0, 0, static_cast<int64_t>(rows.size()))).hidden;
    all.push_back(hidden);
  }
  call.SetOut("Hidden", steps.Join(all), call.LodOf("Input"));
  return absl::OkStatus();
}

absl::Status GruUnit(KernelCall& call) {
  const int64_t gate = call.Int("gate_activation"), candidate = call.Int("activation");
  constexpr int64_t kCount = std::size(kActivations);
  if (gate < 0 || gate >= kCount || candidate < 0 || candidate >= kCount)
    return absl::InvalidArgumentError("activations are 0 identity, 1 sigmoid, 2 tanh, 3 relu");
  const GruCell cell(call.In("Weight"), kActivations[gate].function, kActivations[candidate].function,
                     call.Bool("origin_mode"));
  const GruCell::Result made = cell.Step(WithBias(call), call.In("HiddenPrev"));
  if (call.Wants("Gate")) call.SetOut("Gate", at::cat({made.update, made.reset, made.candidate}, 1));
  call.SetOut("ResetHiddenPrev", made.reset_hidden);
  call.SetOut("Hidden", made.hidden);
  return absl::OkStatus();
}

// Columns of X: input, forget, output, candidate.
absl::Status LstmUnit(KernelCall& call) {
  const std::vector<torch::Tensor> gates = at::chunk(call.In("X"), 4, 1);
  const torch::Tensor cell = at::sigmoid(gates[1] + call.Float("forget_bias")) * call.In("C_prev") +
                             at::sigmoid(gates[0]) * at::tanh(gates[3]);
  call.SetOut("H", at::sigmoid(gates[2]) * at::tanh(cell));
  call.SetOut("C", cell);
  return absl::OkStatus();
}

// Row 0 of the transitions is for the beginning, row 1 for the end, row 2 + i for going on from tag i.
struct Transitions {
  torch::Tensor begin, end, between;

  explicit Transitions(const torch::Tensor& t) : begin(t[0]), end(t[1]), between(t.narrow(0, 2, t.size(0) - 2)) {}
};

// −log of the probability of the labels, a number for each sequence.
absl::Status LinearChainCrf(KernelCall& call) {
  RETURN_IF_ERROR(WantSequences(call, "Emission"));
  const torch::Tensor& emission = call.In("Emission");
  const torch::Tensor label = call.In("Label").to(torch::kInt64).reshape({-1});
  if (label.size(0) != emission.size(0)) return absl::InvalidArgumentError("want a label for each row of Emission");
  const Transitions weights(call.In("Transition"));
  const Lod::Offsets& offsets = call.LodOf("Emission").last();
  std::vector<torch::Tensor> costs;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t begin = offsets[i], length = offsets[i + 1] - begin;
    if (length == 0) {
      costs.push_back(at::zeros({}, emission.detach().options()));
      continue;
    }
    const torch::Tensor rows = emission.narrow(0, begin, length), tags = label.narrow(0, begin, length);
    torch::Tensor paths = weights.begin + rows[0];
    for (int64_t t = 1; t < length; ++t) paths = at::logsumexp(paths.unsqueeze(1) + weights.between, {0}) + rows[t];
    torch::Tensor score = rows.gather(1, tags.unsqueeze(1)).sum() +
                          weights.begin.index_select(0, tags.slice(0, 0, 1)).sum() +
                          weights.end.index_select(0, tags.slice(0, length - 1, length)).sum();
    const torch::Tensor places = tags.slice(0, 0, length - 1) * weights.between.size(1) + tags.slice(0, 1, length);
    score = score + weights.between.reshape({-1}).index_select(0, places).sum();
    costs.push_back(at::logsumexp(paths + weights.end, {0}) - score);
  }
  call.SetOut("LogLikelihood", at::stack(costs).unsqueeze(1));
  return absl::OkStatus();
}

// The most probable tags of one sequence.
torch::Tensor BestPath(const torch::Tensor& rows, const Transitions& weights) {
  const int64_t length = rows.size(0);
  torch::Tensor best = weights.begin + rows[0];
  std::vector<torch::Tensor> from;
  for (int64_t t = 1; t < length; ++t) {
    const auto [score, tag] = at::max(best.unsqueeze(1) + weights.between, 0);
    best = score + rows[t];
    from.push_back(tag);
  }
  torch::Tensor path = at::empty({length, 1}, torch::kInt64);
  int64_t tag = at::argmax(best + weights.end).item<int64_t>();
  for (int64_t t = length; t-- > 0;) {
    path.data_ptr<int64_t>()[t] = tag;
    if (t > 0) tag = from[static_cast<size_t>(t - 1)][tag].item<int64_t>();
  }
  return path;
}

// With labels: 1 where the path has the label.
absl::Status CrfDecoding(KernelCall& call) {
  RETURN_IF_ERROR(WantSequences(call, "Emission"));
  const Transitions weights(call.In("Transition").detach());
  const Lod::Offsets& offsets = call.LodOf("Emission").last();
  std::vector<torch::Tensor> paths;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    if (offsets[i + 1] > offsets[i])
      paths.push_back(BestPath(call.In("Emission").detach().slice(0, offsets[i], offsets[i + 1]), weights));
  torch::Tensor path = at::cat(paths);
  if (call.Has("Label")) path = (path == call.In("Label").reshape({-1, 1})).to(torch::kInt64);
  return call.Give("ViterbiPath", path, "Emission");
}

constexpr KernelRow kRecurrentKernels[] = {
    {"lstm", Lstm},
    {"gru", Gru},
    {"gru_unit", GruUnit},
    {"lstm_unit", LstmUnit},
    {"linear_chain_crf", LinearChainCrf},
    {"crf_decoding", CrfDecoding},
};

}  // namespace

std::span<const KernelRow> RecurrentKernels() { return kRecurrentKernels; }

}  // namespace regatta::exec
