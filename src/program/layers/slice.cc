#include "program/layers/slice.h"

#include <algorithm>
#include <limits>

namespace regatta::program::layers {

namespace {

constexpr int64_t kEnd = std::numeric_limits<int32_t>::max();  // behind the last element, as Fluid writes it

struct Ranges {
  std::vector<int64_t> axes, starts, ends, strides, gone;

  void Add(int64_t axis, int64_t start, int64_t end, int64_t stride) {
    axes.push_back(axis);
    starts.push_back(start);
    ends.push_back(end);
    strides.push_back(stride);
  }
};

absl::StatusOr<Ranges> RangesOf(const ProgramBuilder& builder, const Variable& x, const std::vector<SliceItem>& items) {
  if (items.size() > x.shape.size()) {
    return builder.Error(
        absl::StrCat("there are ", items.size(), " indices for ", TypeText(x), "; want ", x.shape.size(), " at most"));
  }
  Ranges ranges;
  for (size_t i = 0; i < items.size(); ++i) {
    const SliceItem& item = items[i];
    const auto axis = static_cast<int64_t>(i);
    if (item.place) {
      ranges.Add(axis, *item.place, *item.place == -1 ? kEnd : *item.place + 1, 1);
      ranges.gone.push_back(axis);
      continue;
    }
    if (item.step == 0) return builder.Error("a slice's step is 0; want any other number");
    if (!item.start && !item.stop && item.step == 1) continue;
    const bool back = item.step < 0;
    ranges.Add(axis, item.start.value_or(back ? -1 : 0), item.stop.value_or(back ? -kEnd - 1 : kEnd), item.step);
  }
  return ranges;
}

}  // namespace

absl::StatusOr<Variable*> Slice(ProgramBuilder& builder, Variable* x, const std::vector<SliceItem>& items) {
  ASSIGN_OR_RETURN(const Ranges ranges, RangesOf(builder, *x, items));
  if (ranges.axes.empty()) return x;
  ASSIGN_OR_RETURN(Variable * out, builder.CreateVariable(x->name + "_slice", x->dtype));
  Attributes attributes = {
      {"axes", ranges.axes}, {"starts", ranges.starts}, {"ends", ranges.ends}, {"decrease_axis", ranges.gone}};
  const bool strided = std::ranges::any_of(ranges.strides, [](int64_t stride) { return stride != 1; });
  if (strided) attributes.Set("strides", ranges.strides);
  RETURN_IF_ERROR(
      builder.Append(strided ? "strided_slice" : "slice", {{"Input", x}}, {{"Out", out}}, std::move(attributes))
          .status());
  return out;
}

}  // namespace regatta::program::layers
