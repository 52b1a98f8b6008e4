// Operators on sequences: the rows between two offsets of a tensor's last level.
#include <algorithm>
#include <limits>

#include "exec/kernel_table.h"
#include "exec/kernels/integers.h"
#include "exec/tensor_type.h"

namespace regatta::exec {

namespace {

using Offsets = Lod::Offsets;

torch::Tensor Long(const Offsets& values) { return at::tensor(at::ArrayRef<int64_t>(values), torch::kInt64); }

// The offsets of the slot's last level. A tensor without any is one sequence a row, as a feed without LoD is.
Offsets OffsetsOf(const KernelCall& call, std::string_view slot) {
  if (!call.LodOf(slot).empty()) return call.LodOf(slot).last();
  Offsets offsets(static_cast<size_t>(call.In(slot).size(0)) + 1);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int64_t>(i);
  return offsets;
}

Offsets OffsetsFrom(const Offsets& lengths) {
  Offsets offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

Offsets LengthsOf(const Offsets& offsets) {
  Offsets lengths;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) lengths.push_back(offsets[i + 1] - offsets[i]);
  return lengths;
}

// The levels of `lod`, the last one replaced.
absl::StatusOr<Lod> WithLast(const Lod& lod, const Offsets& offsets) {
  std::vector<Offsets> levels;
  for (size_t i = 0; i + 1 < lod.size(); ++i) levels.push_back(lod.level(i));
  levels.push_back(offsets);
  return Lod::Make(std::move(levels), offsets.back());
}

// For each row the number of its sequence.
torch::Tensor SequenceOfRows(const Offsets& offsets) {
  const torch::Tensor lengths = Long(LengthsOf(offsets));
  return at::repeat_interleave(at::arange(lengths.size(0), torch::kInt64), lengths);
}

// A number for each sequence, shaped so that it goes with [sequences, …].
torch::Tensor Column(const torch::Tensor& numbers, const torch::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = numbers.size(0);
  return numbers.to(like.scalar_type()).reshape(shape);
}

torch::Tensor SumOfSequences(const torch::Tensor& x, const Offsets& offsets) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = static_cast<int64_t>(offsets.size()) - 1;
  return at::zeros(shape, x.options()).index_add(0, SequenceOfRows(offsets), x);
}

// Where the rows of a sequence go in [sequences · length].
torch::Tensor PaddedPlaces(const Offsets& offsets, int64_t length) {
  const torch::Tensor sequence = SequenceOfRows(offsets);
  return at::arange(offsets.back(), torch::kInt64) - Long(offsets).index_select(0, sequence) + sequence * length;
}

// -inf of a sequence without rows.
torch::Tensor MaxOfSequences(const torch::Tensor& x, const Offsets& offsets) {
  const Offsets lengths = LengthsOf(offsets);
  const int64_t longest = lengths.empty() ? 1 : std::max<int64_t>(*std::ranges::max_element(lengths), 1);
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = static_cast<int64_t>(lengths.size()) * longest;
  const torch::Tensor padded = at::full(shape, -std::numeric_limits<double>::infinity(), x.options())
                                   .index_copy(0, PaddedPlaces(offsets, longest), x);
  shape[0] = longest;
  shape.insert(shape.begin(), static_cast<int64_t>(lengths.size()));
  return at::amax(padded.view(shape), 1);
}

// The first row of every sequence, or the last.
torch::Tensor EdgeOfSequences(const torch::Tensor& x, const Offsets& offsets, bool first) {
  Offsets rows;
  const int64_t last_row = std::max<int64_t>(x.size(0) - 1, 0);
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    rows.push_back(std::clamp<int64_t>(first ? offsets[i] : offsets[i + 1] - 1, 0, last_row));
  return x.index_select(0, Long(rows));
}

absl::Status SequencePool(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const Offsets offsets = OffsetsOf(call, "X");
  const torch::Tensor lengths = Long(LengthsOf(offsets));
  const std::string& type = call.String("pooltype");
  torch::Tensor out;
  if (type == "MAX") {
    out = MaxOfSequences(x, offsets);
  } else if (type == "LAST" || type == "FIRST") {
    out = EdgeOfSequences(x, offsets, type == "FIRST");
  } else {
    out = SumOfSequences(x, offsets);
    const torch::Tensor count = Column(at::clamp_min(lengths, 1), out);
    if (type == "AVERAGE") out = out / count;
    if (type == "SQRT") out = out / at::sqrt(count);
  }
  const torch::Tensor empty = lengths == 0;
  if (empty.any().item<bool>())
    out = at::where(Column(empty, out).to(torch::kBool), at::full({1}, call.Float("pad_value"), out.options()), out);
  const size_t levels = call.LodOf("X").size();
  call.SetOut("Out", out, call.LodOf("X").First(levels > 0 ? levels - 1 : 0));
  return absl::OkStatus();
}

absl::Status SequenceSoftmax(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const Offsets offsets = OffsetsOf(call, "X");
  const torch::Tensor sequence = SequenceOfRows(offsets);
  const torch::Tensor powers = at::exp(x - MaxOfSequences(x.detach(), offsets).index_select(0, sequence));
  return call.Give(powers / SumOfSequences(powers, offsets).index_select(0, sequence));
}

// Sequence i of X, times[i] times.
absl::Status GiveRepeated(KernelCall& call, const Offsets& times, bool keeps_lod) {
  const Offsets offsets = OffsetsOf(call, "X");
  if (offsets.size() != times.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("X has ", offsets.size() - 1, " sequences and Y ", times.size(), "; want as many in both"));
  }
  Offsets rows, lengths;
  for (size_t i = 0; i < times.size(); ++i) {
    for (int64_t k = 0; k < times[i]; ++k) {
      for (int64_t row = offsets[i]; row < offsets[i + 1]; ++row) rows.push_back(row);
      lengths.push_back(offsets[i + 1] - offsets[i]);
    }
  }
  Lod lod;
  if (keeps_lod && !call.LodOf("X").empty() && !lengths.empty()) {
    ASSIGN_OR_RETURN(lod, Lod::Make({OffsetsFrom(lengths)}, static_cast<int64_t>(rows.size())));
  } else if (!keeps_lod) {
    ASSIGN_OR_RETURN(lod, Lod::Make({OffsetsFrom(times)}, static_cast<int64_t>(rows.size())));
  }
  call.SetOut("Out", call.In("X").index_select(0, Long(rows)), std::move(lod));
  return absl::OkStatus();
}

absl::Status SequenceExpand(KernelCall& call) {
  const Lod& y = call.LodOf("Y");
  const int64_t level = call.Int("ref_level"), levels = static_cast<int64_t>(y.size());
  if (levels == 0 || level >= levels || level < -1)
    return absl::InvalidArgumentError(
        absl::StrCat("ref_level is ", level, " and Y has ", levels, " levels of LoD; feed Y as sequences"));
  return GiveRepeated(call, LengthsOf(y.level(static_cast<size_t>(level < 0 ? levels - 1 : level))), true);
}

absl::Status SequenceExpandAs(KernelCall& call) {
  if (call.LodOf("Y").empty()) return absl::InvalidArgumentError("Y has no LoD; feed it as sequences");
  if (!call.LodOf("X").empty() && call.In("X").size(0) + 1 != static_cast<int64_t>(call.LodOf("Y").level(0).size()))
    return absl::InvalidArgumentError("want a row of X for each sequence of Y");
  return GiveRepeated(call, LengthsOf(call.LodOf("Y").level(0)), false);
}

// A row and those around it, side by side; zeros beyond the ends of its sequence.
absl::Status SequenceConv(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  if (call.Bool("paddingTrainable"))
    return absl::UnimplementedError("padding_trainable is not in this version; leave padding_attr out");
  const Offsets offsets = OffsetsOf(call, "X");
  const int64_t rows = x.size(0), begin = call.Int("contextStart");
  const torch::Tensor sequence = SequenceOfRows(offsets), row = at::arange(rows, torch::kInt64);
  const torch::Tensor low = Long(offsets).index_select(0, sequence), high = Long(offsets).index_select(0, sequence + 1);
  std::vector<torch::Tensor> parts;
  for (int64_t k = 0; k < call.Int("contextLength"); ++k) {
    const torch::Tensor place = row + (begin + k);
    const torch::Tensor outside = at::logical_or(place < low, place >= high).unsqueeze(1);
    parts.push_back(x.index_select(0, place.clamp(0, std::max<int64_t>(rows - 1, 0))).masked_fill(outside, 0));
  }
  return call.Give(at::mm(at::cat(parts, 1), call.In("Filter")));
}

absl::Status SequenceReshape(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const int64_t columns = call.Int("new_dim"), before = x.numel() / std::max<int64_t>(x.size(0), 1);
  Offsets offsets = OffsetsOf(call, "X");
  for (int64_t& offset : offsets) {
    if (offset * before % columns != 0) {
      return absl::InvalidArgumentError(absl::StrCat("new_dim is ", columns, ", and a sequence has ", before,
                                                     " columns and ends at row ", offset, "; want a divisor"));
    }
    offset = offset * before / columns;
  }
  ASSIGN_OR_RETURN(Lod lod, Lod::Make({offsets}, offsets.back()));
  call.SetOut("Out", x.reshape({offsets.back(), columns}), std::move(lod));
  return absl::OkStatus();
}

// Sequence i of the output: sequence i of every input, one behind the other.
absl::Status SequenceConcat(KernelCall& call) {
  const std::vector<torch::Tensor> parts = call.Ins("X");
  std::vector<Offsets> offsets;
  int64_t before = 0;
  std::vector<int64_t> first;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (call.LodOf("X", k).empty()) return absl::InvalidArgumentError("an input has no LoD; feed it as sequences");
    offsets.push_back(call.LodOf("X", k).last());
    if (offsets[k].size() != offsets[0].size())
      return absl::InvalidArgumentError("the inputs have different numbers of sequences; want the same");
    first.push_back(before);
    before += parts[k].size(0);
  }
  Offsets rows, ends = {0};
  for (size_t i = 0; i + 1 < offsets[0].size(); ++i) {
    for (size_t k = 0; k < parts.size(); ++k)
      for (int64_t row = offsets[k][i]; row < offsets[k][i + 1]; ++row) rows.push_back(first[k] + row);
    ends.push_back(static_cast<int64_t>(rows.size()));
  }
  ASSIGN_OR_RETURN(Lod lod, WithLast(call.LodOf("X"), ends));
  call.SetOut("Out", at::cat(parts).index_select(0, Long(rows)), std::move(lod));
  return absl::OkStatus();
}

absl::Status SequenceSlice(KernelCall& call) {
  const Offsets offsets = OffsetsOf(call, "X"), begins = IntegersOf(call.In("Offset"));
  const Offsets lengths = IntegersOf(call.In("Length"));
  if (begins.size() + 1 != offsets.size() || lengths.size() != begins.size())
    return absl::InvalidArgumentError("want an Offset and a Length for each sequence of X");
  Offsets rows;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t begin = offsets[i] + begins[i], end = begin + lengths[i];
    if (begins[i] < 0 || lengths[i] < 1 || end > offsets[i + 1])
      return absl::InvalidArgumentError(absl::StrCat("sequence ", i, " has ", offsets[i + 1] - offsets[i],
                                                     " rows; it cannot be cut at ", begins[i], " for ", lengths[i]));
    for (int64_t row = begin; row < end; ++row) rows.push_back(row);
  }
  ASSIGN_OR_RETURN(Lod lod, Lod::Make({OffsetsFrom(lengths)}, static_cast<int64_t>(rows.size())));
  call.SetOut("Out", call.In("X").index_select(0, Long(rows)), std::move(lod));
  return absl::OkStatus();
}

absl::Status SequencePad(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const Offsets offsets = OffsetsOf(call, "X"), lengths = LengthsOf(offsets);
  const int64_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths), wanted = call.Int("padded_length");
  if (wanted >= 0 && wanted < longest)
    return absl::InvalidArgumentError(
        absl::StrCat("maxlen is ", wanted, " and the longest sequence has ", longest, " rows; want at least as many"));
  const int64_t length = wanted < 0 ? longest : wanted, count = static_cast<int64_t>(lengths.size());
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = count * length;
  const torch::Tensor padding = call.In("PadValue").to(x.scalar_type());
  torch::Tensor out = padding.numel() == 1 ? padding.reshape({1}).expand(shape) : padding.expand(shape);
  out = out.clone().index_copy(0, PaddedPlaces(offsets, length), x);
  shape[0] = length;
  shape.insert(shape.begin(), count);
  call.SetOut("Length", Long(lengths));
  call.SetOut("Out", out.reshape(shape));
  return absl::OkStatus();
}

absl::Status SequenceUnpad(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const Offsets lengths = IntegersOf(call.In("Length"));
  for (const int64_t each : lengths)
    if (each < 0 || each > x.size(1))
      return absl::InvalidArgumentError(absl::StrCat("Length has ", each, " and X is ", TensorText(x)));
  if (static_cast<int64_t>(lengths.size()) != x.size(0))
    return absl::InvalidArgumentError("want a Length for each row of X");
  const Offsets offsets = OffsetsFrom(lengths);
  ASSIGN_OR_RETURN(Lod lod, Lod::Make({offsets}, offsets.back()));
  call.SetOut("Out", x.flatten(0, 1).index_select(0, PaddedPlaces(offsets, x.size(1))), std::move(lod));
  return absl::OkStatus();
}

// A row and the next ones; pad_value beyond the end of the sequence.
absl::Status SequenceEnumerate(KernelCall& call) {
  const torch::Tensor x = call.In("X").reshape({-1});
  const Offsets offsets = OffsetsOf(call, "X");
  const torch::Tensor end = Long(offsets).index_select(0, SequenceOfRows(offsets) + 1);
  std::vector<torch::Tensor> columns;
  for (int64_t k = 0; k < call.Int("win_size"); ++k) {
    const torch::Tensor place = at::arange(x.size(0), torch::kInt64) + k;
    columns.push_back(x.index_select(0, place.clamp_max(std::max<int64_t>(x.size(0) - 1, 0)))
                          .masked_fill(place >= end, call.Int("pad_value")));
  }
  return call.Give(at::stack(columns, 1));
}

absl::Status SequenceErase(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  const Offsets offsets = OffsetsOf(call, "X"), tokens = IntegersOf(x);
  const std::vector<int64_t>& erased = call.Ints("tokens");
  if (x.numel() != x.size(0))
    return absl::InvalidArgumentError(absl::StrCat("X is ", TensorText(x), "; want a token a row"));
  Offsets rows, ends = {0};
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (int64_t row = offsets[i]; row < offsets[i + 1]; ++row)
      if (std::ranges::find(erased, tokens[static_cast<size_t>(row)]) == erased.end()) rows.push_back(row);
    ends.push_back(static_cast<int64_t>(rows.size()));
  }
  ASSIGN_OR_RETURN(Lod lod, WithLast(call.LodOf("X"), ends));
  call.SetOut("Out", x.index_select(0, Long(rows)), std::move(lod));
  return absl::OkStatus();
}

absl::Status SequenceMask(KernelCall& call) {
  const torch::Tensor lengths = call.In("X").to(torch::kInt64);
  int64_t longest =
      call.Has("MaxLenTensor") ? static_cast<int64_t>(FirstElement(call.In("MaxLenTensor"))) : call.Int("maxlen");
  if (longest < 0) longest = lengths.numel() == 0 ? 0 : lengths.max().item<int64_t>();
  const torch::Tensor mask = at::arange(longest, torch::kInt64) < lengths.unsqueeze(-1);
  call.SetOut("Y", mask.to(ScalarTypeOfCode(call.Int("out_dtype"))));
  return absl::OkStatus();
}

absl::Status SequenceReverse(KernelCall& call) {
  const Offsets offsets = OffsetsOf(call, "X");
  const torch::Tensor sequence = SequenceOfRows(offsets), ends = Long(offsets);
  const torch::Tensor row = at::arange(offsets.back(), torch::kInt64);
  const torch::Tensor mirrored = ends.index_select(0, sequence) + ends.index_select(0, sequence + 1) - 1 - row;
  return call.Give("Y", call.In("X").index_select(0, mirrored), "X");
}

absl::Status LodReset(KernelCall& call) {
  const torch::Tensor& x = call.In("X");
  std::vector<Offsets> levels;
  if (call.Bool("append"))
    for (size_t i = 0; i < call.LodOf("X").size(); ++i) levels.push_back(call.LodOf("X").level(i));
  if (!call.LodOf("Y").empty()) {
    for (size_t i = 0; i < call.LodOf("Y").size(); ++i) levels.push_back(call.LodOf("Y").level(i));
  } else {
    levels.push_back(call.Has("Y") ? IntegersOf(call.In("Y")) : call.Ints("target_lod"));
  }
  ASSIGN_OR_RETURN(Lod lod, Lod::Make(std::move(levels), x.size(0)));
  call.SetOut("Out", x, std::move(lod));
  return absl::OkStatus();
}

constexpr KernelRow kSequenceKernels[] = {
    {"sequence_pool", SequencePool},
    {"sequence_conv", SequenceConv},
    {"sequence_softmax", SequenceSoftmax},
    {"sequence_expand", SequenceExpand},
    {"sequence_expand_as", SequenceExpandAs},
    {"sequence_reshape", SequenceReshape},
    {"sequence_concat", SequenceConcat},
    {"sequence_slice", SequenceSlice},
    {"sequence_pad", SequencePad},
    {"sequence_unpad", SequenceUnpad},
    {"sequence_enumerate", SequenceEnumerate},
    {"sequence_erase", SequenceErase},
    {"sequence_mask", SequenceMask},
    {"sequence_reverse", SequenceReverse},
    {"lod_reset", LodReset},
};

}  // namespace

std::span<const KernelRow> SequenceKernels() { return kSequenceKernels; }

}  // namespace regatta::exec
