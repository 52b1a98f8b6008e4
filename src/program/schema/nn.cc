// Layers of neural networks that are one operator: convolutions, normalisations, similarity, sampled classifiers.
#include <algorithm>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

absl::Status InferCosSim(InferContext& context) {
  const Variable &x = context.In("X"), &y = context.In("Y");
  if (x.shape.empty() || y.shape.empty()) return absl::OkStatus();
  const bool rows = MayEqual(x.shape[0], y.shape[0]) || y.shape[0] == 1;
  if (x.shape.size() != y.shape.size() || !rows ||
      !std::equal(x.shape.begin() + 1, x.shape.end(), y.shape.begin() + 1, MayEqual))
    return context.Refuse({"X", "Y"}, "want vectors of one size, and one Y for each X or for all");
  context.Set("Out", {x.shape[0], 1}, x.dtype, x.lod_level);
  context.Set("XNorm", {x.shape[0], 1}, x.dtype);
  context.Set("YNorm", {y.shape[0], 1}, y.dtype);
  return absl::OkStatus();
}

// A window over two axes: its size, its steps, and what is put around.
struct Window {
  std::vector<int64_t> size, strides, dilations, paddings;  // paddings: two, or four: before and after each
  std::string algorithm;                                    // EXPLICIT, SAME, VALID
  bool ceil = false;
};

// Of a convolution.
Window WindowOf(const Attributes& attributes, const Shape& filter) {
  Window window;
  window.size = {filter[2], filter[3]};
  window.strides = attributes.Ints("strides");
  window.dilations = attributes.Ints("dilations");
  window.paddings = attributes.Ints("paddings");
  window.algorithm = attributes.String("padding_algorithm");
  return window;
}

absl::StatusOr<int64_t> Slid(const Window& window, size_t axis, int64_t extent) {
  if (extent < 0) return kUnknownExtent;
  const int64_t stride = window.strides[axis];
  if (stride < 1) return absl::InvalidArgumentError(absl::StrCat("a stride is ", stride, "; want 1 or more"));
  if (window.algorithm == "SAME") return (extent + stride - 1) / stride;
  const bool four = window.paddings.size() == 4;
  const int64_t before = four ? window.paddings[2 * axis] : window.paddings[axis];
  const int64_t after = four ? window.paddings[2 * axis + 1] : before;
  const int64_t around = window.algorithm == "VALID" ? 0 : before + after;
  const int64_t reach = Plus(Times(window.dilations[axis], window.size[axis] - 1), 1);
  const int64_t room = Plus(extent + around, -reach);
  if (room < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", reach, " does not fit an extent of ", extent,
                                                   " with a padding of ", around, "; make the window smaller"));
  }
  return (room + (window.ceil ? stride - 1 : 0)) / stride + 1;
}

absl::Status WantPairs(const Window& window) {
  const bool fits = window.size.size() == 2 && window.strides.size() == 2 && window.dilations.size() == 2 &&
                    (window.paddings.size() == 2 || window.paddings.size() == 4);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError("the window, strides and dilations want two numbers each, paddings two or four");
}

size_t HeightAxis(const Attributes& attributes) { return attributes.String("data_format") == "NHWC" ? 1 : 2; }
size_t ChannelAxis(const Attributes& attributes, size_t rank) {
  return attributes.String("data_format") == "NHWC" ? rank - 1 : 1;
}

absl::Status InferConv2d(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Input", 4));
  RETURN_IF_ERROR(context.WantRank("Filter", 4));
  const Variable& input = context.In("Input");
  const Shape& filter = context.ShapeOf("Filter");
  if (input.shape.empty() || filter.empty()) return absl::OkStatus();
  const Attributes& attributes = context.attributes();
  const Window window = WindowOf(attributes, filter);
  RETURN_IF_ERROR(WantPairs(window));
  const size_t channels = ChannelAxis(attributes, 4);
  const int64_t groups = std::max<int64_t>(attributes.Int("groups"), 1);
  if (!MayEqual(input.shape[channels], Times(filter[1], groups)))
    return context.Refuse({"Input", "Filter"}, "the channels of Input must be those of Filter times groups");
  Shape out = input.shape;
  out[channels] = filter[0];
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(out[HeightAxis(attributes) + i], Slid(window, i, out[HeightAxis(attributes) + i]));
  }
  context.Set("Output", out, input.dtype);
  return absl::OkStatus();
}

absl::Status InferConv2dTranspose(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Input", 4));
  RETURN_IF_ERROR(context.WantRank("Filter", 4));
  Shape out = context.ShapeOf("Input");
  const Shape& filter = context.ShapeOf("Filter");
  if (out.empty() || filter.empty()) return absl::OkStatus();
  const Attributes& attributes = context.attributes();
  const Window window = WindowOf(attributes, filter);
  RETURN_IF_ERROR(WantPairs(window));
  const std::vector<int64_t>& size = attributes.Ints("output_size");
  out[ChannelAxis(attributes, 4)] = Times(filter[1], std::max<int64_t>(attributes.Int("groups"), 1));
  for (size_t i = 0; i < 2; ++i) {
    int64_t& extent = out[HeightAxis(attributes) + i];
    const int64_t around =
        window.paddings.size() == 4 ? window.paddings[2 * i] + window.paddings[2 * i + 1] : 2 * window.paddings[i];
    const int64_t reach = Plus(Times(window.dilations[i], window.size[i] - 1), 1 - around);
    if (extent >= 0) extent = Plus(Times(extent - 1, window.strides[i]), reach);
    if (i < size.size()) extent = size[i];
  }
  context.Set("Output", out, context.In("Input").dtype);
  return absl::OkStatus();
}

absl::Status InferPool2d(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("X", 4));
  const Variable& x = context.In("X");
  if (x.shape.empty()) return absl::OkStatus();
  const Attributes& attributes = context.attributes();
  const Window window{attributes.Ints("ksize"),
                      attributes.Ints("strides"),
                      {1, 1},
                      attributes.Ints("paddings"),
                      attributes.String("padding_algorithm"),
                      attributes.Bool("ceil_mode")};
  RETURN_IF_ERROR(WantPairs(window));
  Shape out = x.shape;
  for (size_t i = 0; i < 2; ++i) {
    int64_t& extent = out[HeightAxis(attributes) + i];
    if (attributes.Bool("global_pooling")) {
      extent = 1;
    } else if (attributes.Bool("adaptive")) {
      extent = window.size[i];
    } else {
      ASSIGN_OR_RETURN(extent, Slid(window, i, extent));
    }
  }
  context.Set("Out", out, x.dtype);
  return absl::OkStatus();
}

absl::Status InferBatchNorm(InferContext& context) {
  RETURN_IF_ERROR(context.WantRankAtLeast("X", 2));
  const Variable& x = context.In("X");
  const DataType moments = context.In("Scale").dtype;
  context.SetLike("Y", "X");
  const Shape channels = context.ShapeOf("Scale");
  if (!x.shape.empty() && !channels.empty()) {
    const bool last = context.attributes().String("data_layout") == "NHWC";
    if (!MayEqual(x.shape[last ? x.shape.size() - 1 : 1], channels[0]))
      return context.Refuse({"X", "Scale"}, "want a scale for each channel");
  }
  for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"})
    context.Set(slot, channels, moments);
  return absl::OkStatus();
}

absl::Status InferLayerNorm(InferContext& context) {
  const Variable& x = context.In("X");
  context.SetLike("Y", "X");
  if (x.shape.empty()) return absl::OkStatus();
  const int64_t axis = context.attributes().Int("begin_norm_axis");
  if (axis < 1 || axis >= static_cast<int64_t>(x.shape.size()))
    return context.Refuse({"X"}, absl::StrCat("begin_norm_axis is ", axis, "; want 1 to ", x.shape.size() - 1));
  const auto [rows, columns] = AsMatrix(x.shape, axis);
  for (const char* slot : {"Scale", "Bias"})
    if (context.Has(slot) && !MayEqual(ElementCount(context.ShapeOf(slot)), columns))
      return context.Refuse({"X", slot}, absl::StrCat("want one for each of the ", columns, " that are normalised"));
  for (const char* slot : {"Mean", "Variance"}) context.Set(slot, {rows}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferGroupNorm(InferContext& context) {
  const Variable& x = context.In("X");
  context.SetLike("Y", "X");
  for (const char* slot : {"Mean", "Variance"})
    context.Set(slot, {x.shape.empty() ? kUnknownExtent : x.shape[0], context.attributes().Int("groups")}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferDataNorm(InferContext& context) {
  const Variable& x = context.In("X");
  context.SetLike("Y", "X");
  for (const char* slot : {"Means", "Scales"}) context.Set(slot, Shape(context.ShapeOf("BatchSize")), x.dtype);
  return absl::OkStatus();
}

absl::Status InferDropout(InferContext& context) {
  const double probability = context.attributes().Float("dropout_prob");
  if (!(probability >= 0 && probability <= 1))
    return absl::InvalidArgumentError(absl::StrCat("dropout_prob is ", probability, "; want 0 to 1"));
  context.SetLike("Out", "X");
  context.Set("Mask", Shape(context.ShapeOf("X")), DataType::kUInt8);
  return absl::OkStatus();
}

// With use_cvm the two columns of show and click stay.
absl::Status InferCvm(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("X", 2));
  Shape out = context.ShapeOf("X");
  if (!out.empty() && out[1] > 0 && !context.attributes().Bool("use_cvm")) out[1] -= 2;
  if (!out.empty() && out[1] == 0)
    return context.Refuse({"X"}, "nothing is left without its columns of show and click");
  context.Set("Y", out, context.In("X").dtype, context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferLrn(InferContext& context) {
  context.SetLike("Out", "X");
  context.SetLike("MidOut", "X");
  return absl::OkStatus();
}

absl::Status InferNce(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "Label"));
  const Variable& input = context.In("Input");
  const Shape& label = context.ShapeOf("Label");
  if (input.shape.empty() || label.empty()) return absl::OkStatus();
  const int64_t labels = label.size() == 2 ? label[1] : 1;
  const int64_t samples = labels < 0 ? kUnknownExtent : labels + context.attributes().Int("num_neg_samples");
  context.Set("Cost", {input.shape[0], 1}, input.dtype);
  context.Set("SampleLogits", {input.shape[0], samples}, input.dtype);
  context.Set("SampleLabels", {input.shape[0], samples}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferHierarchicalSigmoid(InferContext& context) {
  RETURN_IF_ERROR(WantIntegers(context, "Label"));
  const Variable& x = context.In("X");
  if (x.shape.empty()) return absl::OkStatus();
  context.Set("Out", {x.shape[0], 1}, x.dtype);
  context.Set("PreOut", {x.shape[0], kUnknownExtent}, x.dtype);
  return absl::OkStatus();
}

absl::Status InferBilinear(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Weight", 3));
  const Variable& x = context.In("X");
  if (!x.shape.empty() && !context.ShapeOf("Weight").empty())
    context.Set("Out", {x.shape[0], context.ShapeOf("Weight")[0]}, x.dtype);
  return absl::OkStatus();
}

constexpr char kConv[] =
    "strides:ints=[1,1] paddings:ints=[0,0] padding_algorithm:string=EXPLICIT|SAME|VALID groups:int=1 "
    "dilations:ints=[1,1] data_format:string=NCHW|NHWC|AnyLayout is_test:bool=false "
    "fuse_relu_before_depthwise_conv:bool=false";

constexpr char kSampled[] =
    "is_sparse:bool=false remote_prefetch:bool=false trainer_id:int=0 height_sections:longs=[] epmap:strings=[] "
    "table_names:strings=[] num_total_classes:int num_neg_samples:int=10 sampler:int=0 seed:long=0 "
    "custom_neg_classes:ints=[]";

constexpr OpRow kNnRows[] = {
    {"cos_sim", "X Y", "Out XNorm? YNorm?", "", InferCosSim},
    {"conv2d", "Input Filter Bias? ResidualData?", "Output", kConv, InferConv2d},
    {"depthwise_conv2d", "Input Filter Bias? ResidualData?", "Output", kConv, InferConv2d},
    {"conv2d_transpose", "Input Filter Bias?", "Output",
     "output_size:ints=[] strides:ints=[1,1] paddings:ints=[0,0] padding_algorithm:string=EXPLICIT|SAME|VALID "
     "groups:int=1 dilations:ints=[1,1] data_format:string=NCHW|NHWC is_test:bool=false",
     InferConv2dTranspose},
    {"pool2d", "X", "Out",
     "pooling_type:string ksize:ints global_pooling:bool=false strides:ints=[1,1] paddings:ints=[0,0] "
     "exclusive:bool=true adaptive:bool=false ceil_mode:bool=false data_format:string=NCHW|NHWC "
     "padding_algorithm:string=EXPLICIT|SAME|VALID is_test:bool=false",
     InferPool2d},
    {"batch_norm", "X Scale Bias Mean Variance MomentumTensor?",
     "Y MeanOut VarianceOut SavedMean? SavedVariance? ReserveSpace?",
     "is_test:bool=false momentum:float=0.9 epsilon:float=1e-5 data_layout:string=NCHW|NHWC|AnyLayout "
     "fuse_with_relu:bool=false use_global_stats:bool=false trainable_statistics:bool=false",
     InferBatchNorm},
    {"layer_norm", "X Scale? Bias?", "Y Mean? Variance?", "epsilon:float=1e-5 begin_norm_axis:int=1", InferLayerNorm},
    {"group_norm", "X Scale? Bias?", "Y Mean? Variance?", "epsilon:float=1e-5 groups:int data_layout:string=NCHW|NHWC",
     InferGroupNorm},
    {"data_norm", "X BatchSize BatchSum BatchSquareSum scale_w? bias?", "Y Means? Scales?",
     "epsilon:float=1e-4 slot_dim:int=-1 summary_decay_rate:float=0.9999999 enable_scale_and_shift:bool=false "
     "data_layout:string=NCHW sync_stats:bool=false",
     InferDataNorm},
    {"dropout", "X Seed?", "Out Mask?",
     "dropout_prob:float=0.5 is_test:bool=false fix_seed:bool=false seed:long=0 "
     "dropout_implementation:string=downgrade_in_infer|upscale_in_train",
     InferDropout},
    {"cvm", "X CVM", "Y", "use_cvm:bool=true", InferCvm},
    {"lrn", "X", "Out MidOut?",
     "n:int=5 k:float=2 alpha:float=1e-4 beta:float=0.75 data_format:string=AnyLayout "
     "is_test:bool=false",
     InferLrn},
    {"nce", "Input Label Weight Bias? SampleWeight? CustomDistProbs? CustomDistAlias? CustomDistAliasProbs?",
     "Cost SampleLogits? SampleLabels?", kSampled, InferNce},
    {"hierarchical_sigmoid", "X W Label PathTable? PathCode? Bias?", "Out PreOut? W_Out?",
     "num_classes:int=2 is_sparse:bool=false remote_prefetch:bool=false trainer_id:int=0 height_sections:longs=[] "
     "epmap:strings=[] table_names:strings=[]",
     InferHierarchicalSigmoid},
    {"bilinear_tensor_product", "X Y Weight Bias?", "Out", "", InferBilinear},
    {"row_conv", "X Filter", "Out", "", OutLikeX},
};

}  // namespace

std::span<const OpRow> NnRows() { return kNnRows; }

}  // namespace regatta::program
