// Shapes, types and levels of outputs against what PaddlePaddle 1.8 makes of the same inputs.
#include <gtest/gtest.h>

#include "program/append.h"
#include "program/program.h"
#include "program/schema_table.h"

namespace regatta::program {
namespace {

constexpr DataType kIds = DataType::kInt64;

struct InputOf {
  std::string slot;
  Shape shape;
  DataType dtype = DataType::kFloat32;
  int lod_level = 0;
};

using Ints = std::vector<int64_t>;

struct ShapeCase {
  std::string type;
  std::vector<InputOf> inputs;
  Attributes attributes;
  std::string output;
  std::string want;  // "float32 [-1, 3]", "float32 [-1, 3] lod 1", or a part of the message
  int outputs = 1;
};

// All outputs as "float32 [-1, 2]; float32 [-1, 4]", or the message.
std::string Infer(const ShapeCase& c) {
  Program program;
  Block& block = program.global_block();
  Operation operation;
  operation.type = c.type;
  operation.attributes = c.attributes;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Variable variable;
    variable.name = absl::StrCat("in", i);
    variable.shape = c.inputs[i].shape;
    variable.dtype = c.inputs[i].dtype;
    variable.lod_level = c.inputs[i].lod_level;
    EXPECT_TRUE(block.AddVariable(variable).ok());
    if (!operation.inputs.empty() && operation.inputs.back().name == c.inputs[i].slot) {
      operation.inputs.back().variables.push_back(variable.name);
    } else {
      operation.inputs.push_back({c.inputs[i].slot, {variable.name}});
    }
  }
  const auto declare = [&](const std::string& slot, int count) {
    Slot made{slot, {}};
    for (int i = 0; i < count; ++i) {
      Variable variable;
      variable.name = absl::StrCat(slot, "_out", i);
      EXPECT_TRUE(block.AddVariable(variable).ok());
      made.variables.push_back(variable.name);
    }
    operation.outputs.push_back(std::move(made));
  };
  for (const SlotSchema& slot : (*FindSchema(c.type)).outputs)
    if (slot.required || slot.name == c.output) declare(std::string(slot.name), slot.name == c.output ? c.outputs : 1);
  const absl::StatusOr<Operation*> appended = AppendOperation(block, operation);
  if (!appended.ok()) return std::string(appended.status().message());
  std::string text;
  for (const std::string& name : (*appended)->Output(c.output)) {
    const Variable& out = *block.Find(name);
    absl::StrAppend(&text, text.empty() ? "" : "; ", TypeText(out),
                    out.lod_level > 0 ? absl::StrCat(" lod ", out.lod_level) : "");
  }
  return text;
}

void Check(const std::vector<ShapeCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(Infer(cases[i]), cases[i].want) << "case " << i << ": " << cases[i].type;
}

TEST(SchemaShapes, Matrices) {
  const Attributes turn_y = {{"transpose_Y", true}}, turn_x = {{"transpose_X", true}};
  Check({
      {"mul", {{"X", {-1, 3, 4}}, {"Y", {4, 5}}}, {{"x_num_col_dims", int64_t{2}}}, "Out", "float32 [-1, 3, 5]"},
      {"mul", {{"X", {-1, 3, 4}}, {"Y", {12, 5}}}, {}, "Out", "float32 [-1, 5]"},
      {"matmul", {{"X", {2, 3}}, {"Y", {3, 4}}}, {}, "Out", "float32 [2, 4]"},
      {"matmul", {{"X", {5, 2, 3}}, {"Y", {5, 3, 4}}}, {}, "Out", "float32 [5, 2, 4]"},
      {"matmul", {{"X", {5, 2, 3}}, {"Y", {3, 4}}}, {}, "Out", "float32 [5, 2, 4]"},
      {"matmul", {{"X", {2, 3}}, {"Y", {5, 3, 4}}}, {}, "Out", "float32 [5, 2, 4]"},
      {"matmul", {{"X", {3}}, {"Y", {3}}}, {}, "Out", "float32 [1]"},
      {"matmul", {{"X", {3}}, {"Y", {3, 4}}}, {}, "Out", "float32 [4]"},
      {"matmul", {{"X", {5, 2, 3}}, {"Y", {3}}}, {}, "Out", "float32 [5, 2]"},
      {"matmul", {{"X", {-1, 3}}, {"Y", {-1, 3}}}, turn_y, "Out", "float32 [-1, -1]"},
      {"matmul", {{"X", {3, 1}}, {"Y", {3}}}, turn_x, "Out", "float32 [1]"},
      {"matmul",
       {{"X", {5, 2, 3}}, {"Y", {1, 3, 4}}},
       {},
       "Out",
       "matmul: X is [5, 2, 3] and Y is [1, 3, 4]: their batches differ; want the same extents before the last two, or "
       "a "
       "matrix"},
      {"lookup_table", {{"W", {10, 3}}, {"Ids", {-1, 1}, kIds, 2}}, {}, "Out", "float32 [-1, 3] lod 2"},
      {"lookup_table_v2", {{"W", {10, 3}}, {"Ids", {-1, 6}, kIds}}, {}, "Out", "float32 [-1, 6, 3]"},
  });
}

TEST(SchemaShapes, Reductions) {
  const auto dim = [](Ints axes, bool keep = false) {
    return Attributes{{"dim", std::move(axes)}, {"keep_dim", keep}};
  };
  Check({
      {"reduce_sum", {{"X", {-1, 3, 4}}}, {{"reduce_all", true}}, "Out", "float32 [1]"},
      {"reduce_sum", {{"X", {-1, 3, 4}}}, dim({1}), "Out", "float32 [-1, 4]"},
      {"reduce_sum", {{"X", {-1, 3, 4}}}, dim({1, 2}), "Out", "float32 [-1]"},
      {"reduce_sum", {{"X", {-1, 3, 4}}}, dim({-1}, true), "Out", "float32 [-1, 3, 1]"},
      {"reduce_sum", {{"X", {-1, 3, 4}}}, dim({0, 1, 2}), "Out", "float32 [1]"},
      {"reduce_sum", {{"X", {-1, 8}, DataType::kFloat32, 1}}, dim({1}, true), "Out", "float32 [-1, 1] lod 1"},
      {"reduce_sum", {{"X", {-1, 8}, DataType::kFloat32, 1}}, dim({0}), "Out", "float32 [8]"},
      {"reduce_sum", {{"X", {3}}}, dim({1}), "Out", "reduce_sum: X is [3]: there is no axis 1; want one from -1 to 0"},
      {"mean", {{"X", {-1, 8}}}, {}, "Out", "float32 [1]"},
      {"sum", {{"X", {-1, 8}}, {"X", {4, 8}}}, {}, "Out", "float32 [4, 8]"},
      {"sum",
       {{"X", {-1, 8}}, {"X", {-1, 7}}},
       {},
       "Out",
       "sum: X[0] is [-1, 8] and X[1] is [-1, 7]; want one shape for all"},
      {"top_k", {{"X", {-1, 5}}}, {{"k", int64_t{2}}}, "Indices", "int64 [-1, 2]"},
      {"top_k", {{"X", {-1, 5}}}, {{"k", int64_t{6}}}, "Out", "top_k: X is [-1, 5]: k is 6; want 1 to the last extent"},
      {"arg_max", {{"X", {-1, 5}}}, {{"axis", int64_t{1}}}, "Out", "int64 [-1]"},
  });
}

TEST(SchemaShapes, Reshaping) {
  const auto shape = [](Ints extents) { return Attributes{{"shape", std::move(extents)}}; };
  const auto axes = [](Ints places) { return Attributes{{"axes", std::move(places)}}; };
  Check({
      {"reshape2", {{"X", {-1, 2, 3}}}, shape({-1, 6}), "Out", "float32 [-1, 6]"},
      {"reshape2", {{"X", {-1, 2, 3}}}, shape({0, 6}), "Out", "float32 [-1, 6]"},
      {"reshape2", {{"X", {-1, 2, 3}}}, shape({0, -1}), "Out", "float32 [-1, 6]"},  // 1.8 does not see the 6
      {"reshape2", {{"X", {-1, 2, 3}}}, shape({2, -1, 3}), "Out", "float32 [2, -1, 3]"},
      {"reshape2", {{"X", {2, 3, 4}}}, shape({0, 0, 2, -1}), "Out", "float32 [2, 3, 2, 2]"},
      {"reshape2", {{"X", {-1, 52}}}, shape({-1, 13, 4}), "Out", "float32 [-1, 13, 4]"},
      {"reshape2", {{"X", {-1, 8}, DataType::kFloat32, 1}}, shape({-1, 4}), "Out", "float32 [-1, 4] lod 1"},
      {"reshape2",
       {{"X", {2, 3}}},
       shape({5}),
       "Out",
       "reshape2: X is [2, 3]: 6 elements do not make a [5]; want as many elements as X has"},
      {"reshape2",
       {{"X", {2, 3}}},
       shape({-1, 4}),
       "Out",
       "reshape2: X is [2, 3]: 6 elements do not make a [-1, 4]; want as many elements as X has"},
      {"reshape2",
       {{"X", {2, 3}}},
       shape({-1, -1}),
       "Out",
       "reshape2: X is [2, 3]: shape is [-1, -1]; want one -1 at most"},
      {"squeeze2", {{"X", {-1, 1, 3}}}, axes({1}), "Out", "float32 [-1, 3]"},
      {"squeeze2", {{"X", {-1, 1, 3, 1}}}, axes({}), "Out", "float32 [-1, 3]"},
      {"squeeze2", {{"X", {-1, 2, 1}}}, axes({-1}), "Out", "float32 [-1, 2]"},
      {"unsqueeze2", {{"X", {-1, 3}}}, axes({1}), "Out", "float32 [-1, 1, 3]"},
      {"unsqueeze2", {{"X", {-1, 3}}}, axes({0, 2}), "Out", "float32 [1, -1, 1, 3]"},
      {"unsqueeze2", {{"X", {-1, 3}}}, axes({-1}), "Out", "float32 [-1, 3, 1]"},
      {"transpose2", {{"X", {-1, 2, 3}}}, {{"axis", Ints{0, 2, 1}}}, "Out", "float32 [-1, 3, 2]"},
      {"transpose2",
       {{"X", {2, 3}}},
       {{"axis", Ints{0, 0}}},
       "Out",
       "transpose2: X is [2, 3]: perm is [0, 0]; want each of its axes once"},
      {"flatten2", {{"X", {-1, 2, 3}}}, {}, "Out", "float32 [-1, 6]"},
      {"flatten2", {{"X", {4, 2, 3}}}, {{"axis", int64_t{0}}}, "Out", "float32 [1, 24]"},
      {"expand", {{"X", {-1, 3}}}, {{"expand_times", Ints{1, 2}}}, "Out", "float32 [-1, 6]"},
      {"expand",
       {{"X", {-1, 3}}},
       {{"expand_times", Ints{2}}},
       "Out",
       "expand: X is [-1, 3]: expand_times is [2]; want a number for each extent"},
  });
}

TEST(SchemaShapes, PiecesOfTensors) {
  const auto axis = [](int64_t at) { return Attributes{{"axis", at}}; };
  const auto slice = [](Ints axes, Ints starts, Ints ends, Ints gone = {}) {
    return Attributes{{"axes", axes}, {"starts", starts}, {"ends", ends}, {"decrease_axis", gone}};
  };
  Check({
      {"concat", {{"X", {-1, 3}}, {"X", {-1, 4}}}, axis(1), "Out", "float32 [-1, 7]"},
      {"concat", {{"X", {-1, 3}}, {"X", {-1, 3}}}, axis(0), "Out", "float32 [-1, 3]"},
      {"concat", {{"X", {-1, 3}}, {"X", {5, 4}}}, axis(1), "Out", "float32 [5, 7]"},
      {"concat",
       {{"X", {2, 3}}, {"X", {3, 4}}},
       axis(-1),
       "Out",
       "concat: X[0] is [2, 3] and X[1] is [3, 4]; want equal extents but for axis 1"},
      {"split",
       {{"X", {-1, 6}}},
       {{"num", int64_t{3}}, {"axis", int64_t{1}}},
       "Out",
       "float32 [-1, 2]; float32 [-1, 2]; float32 [-1, 2]",
       3},
      {"split",
       {{"X", {-1, 6}}},
       {{"sections", Ints{2, -1}}, {"axis", int64_t{1}}},
       "Out",
       "float32 [-1, 2]; float32 [-1, 4]",
       2},
      {"split",
       {{"X", {-1, 6}}},
       {{"num", int64_t{4}}, {"axis", int64_t{1}}},
       "Out",
       "split: X is [-1, 6]: its axis 1 cannot be split into 4 equal parts; give the sizes of the parts instead",
       4},
      {"stack", {{"X", {-1, 3}}, {"X", {-1, 3}}}, axis(0), "Y", "float32 [2, -1, 3]"},
      {"stack", {{"X", {-1, 3}}, {"X", {-1, 3}}}, axis(-1), "Y", "float32 [-1, 3, 2]"},
      {"unstack", {{"X", {-1, 2}}}, axis(1), "Y", "float32 [-1]; float32 [-1]", 2},
      {"slice", {{"Input", {-1, 5, 4}}}, slice({0, 1}, {0, 1}, {2, 3}), "Out", "float32 [-1, 2, 4]"},
      {"slice", {{"Input", {-1, 5}}}, slice({1}, {-3}, {-1}), "Out", "float32 [-1, 2]"},
      {"slice", {{"Input", {-1, 5}}}, slice({1}, {1}, {100}), "Out", "float32 [-1, 4]"},
      {"slice", {{"Input", {-1, 5}}}, slice({1}, {1}, {2}, {1}), "Out", "float32 [-1]"},
      {"slice", {{"Input", {4, 5}}}, slice({0}, {0}, {1}, {0}), "Out", "float32 [5]"},
      {"slice",
       {{"Input", {-1, 5}}},
       slice({1}, {3}, {2}),
       "Out",
       "slice: Input is [-1, 5]: nothing is left of axis 1 from 3 to 2; want a start before the end"},
      {"gather", {{"X", {10, 4}}, {"Index", {-1, 1}, kIds}}, {}, "Out", "float32 [-1, 4]"},
      {"gather", {{"X", {10, 4}}, {"Index", {3}, kIds}}, {}, "Out", "float32 [3, 4]"},
      {"gather_nd", {{"X", {10, 4, 7}}, {"Index", {-1, 2}, kIds}}, {}, "Out", "float32 [-1, 7]"},
      {"gather_nd", {{"X", {10, 4, 7}}, {"Index", {5, 1}, kIds}}, {}, "Out", "float32 [5, 4, 7]"},
      {"one_hot", {{"X", {-1, 1}, kIds}}, {{"depth", int64_t{7}}}, "Out", "float32 [-1, 7]"},
      {"one_hot_v2", {{"X", {-1}, kIds}}, {{"depth", int64_t{7}}}, "Out", "float32 [-1, 7]"},
      {"shape", {{"Input", {-1, 3, 4}}}, {}, "Out", "int32 [3]"},
      {"cast", {{"X", {-1, 8}, DataType::kFloat32, 1}}, {{"out_dtype", int64_t{3}}}, "Out", "int64 [-1, 8] lod 1"},
      {"cast",
       {{"X", {-1, 8}}},
       {{"out_dtype", int64_t{99}}},
       "Out",
       "cast: attribute out_dtype is 99, which is no dtype; 5 is float32, 3 is int64"},
      {"pad", {{"X", {-1, 5}}}, {{"paddings", Ints{0, 0, 1, 2}}}, "Out", "float32 [-1, 8]"},
      {"pad2d", {{"X", {-1, 3, 5, 5}}}, {{"paddings", Ints{1, 2, 3, 4}}}, "Out", "float32 [-1, 3, 8, 12]"},
      {"where_index", {{"Condition", {-1, 5}, DataType::kBool}}, {}, "Out", "int64 [-1, 2]"},
      {"fill_constant_batch_size_like", {{"Input", {-1, 8}}}, {{"shape", Ints{9, 3}}}, "Out", "float32 [-1, 3]"},
      {"less_than", {{"X", {1}}, {"Y", {1}}}, {}, "Out", "bool [1]"},
  });
}

TEST(SchemaShapes, NeuralNetworks) {
  const auto window = [](Ints paddings, Ints strides, std::string algorithm = "EXPLICIT") {
    return Attributes{{"paddings", paddings}, {"strides", strides}, {"padding_algorithm", algorithm}};
  };
  const auto pool = [](Ints ksize, Ints strides, Ints paddings, bool ceil = false, bool global = false) {
    return Attributes{{"pooling_type", std::string("max")},
                      {"ksize", ksize},
                      {"strides", strides},
                      {"paddings", paddings},
                      {"ceil_mode", ceil},
                      {"global_pooling", global}};
  };
  const std::vector<InputOf> image = {{"Input", {-1, 3, 28, 28}}, {"Filter", {8, 3, 3, 3}}};
  Check({
      {"cos_sim", {{"X", {-1, 7}}, {"Y", {1, 7}}}, {}, "Out", "float32 [-1, 1]"},
      {"cos_sim", {{"X", {-1, 7}, DataType::kFloat32, 1}, {"Y", {-1, 7}}}, {}, "Out", "float32 [-1, 1] lod 1"},
      {"cos_sim",
       {{"X", {-1, 7}}, {"Y", {-1, 6}}},
       {},
       "Out",
       "cos_sim: X is [-1, 7] and Y is [-1, 6]: want vectors of one size, and one Y for each X or for all"},
      {"conv2d", image, window({1, 1}, {1, 1}), "Output", "float32 [-1, 8, 28, 28]"},
      {"conv2d",
       {{"Input", {-1, 3, 28, 28}}, {"Filter", {8, 3, 5, 5}}},
       window({0, 0}, {2, 2}),
       "Output",
       "float32 [-1, 8, 12, 12]"},
      {"conv2d",
       {{"Input", {-1, 3, 29, 29}}, {"Filter", {8, 3, 3, 3}}},
       window({0, 0}, {2, 2}, "SAME"),
       "Output",
       "float32 [-1, 8, 15, 15]"},
      {"conv2d",
       {{"Input", {-1, 4, 28, 28}}, {"Filter", {8, 3, 3, 3}}},
       {},
       "Output",
       "conv2d: Input is [-1, 4, 28, 28] and Filter is [8, 3, 3, 3]: the channels of Input must be those of Filter "
       "times "
       "groups"},
      {"conv2d_transpose",
       {{"Input", {-1, 3, 7, 7}}, {"Filter", {3, 8, 3, 3}}},
       {{"strides", Ints{2, 2}}},
       "Output",
       "float32 [-1, 8, 15, 15]"},
      {"pool2d", {{"X", {-1, 3, 28, 28}}}, pool({2, 2}, {2, 2}, {0, 0}), "Out", "float32 [-1, 3, 14, 14]"},
      {"pool2d", {{"X", {-1, 3, 28, 28}}}, pool({3, 3}, {2, 2}, {0, 0}), "Out", "float32 [-1, 3, 13, 13]"},
      {"pool2d", {{"X", {-1, 3, 28, 28}}}, pool({3, 3}, {2, 2}, {0, 0}, true), "Out", "float32 [-1, 3, 14, 14]"},
      {"pool2d", {{"X", {-1, 3, 28, 28}}}, pool({2, 2}, {2, 2}, {1, 1}), "Out", "float32 [-1, 3, 15, 15]"},
      {"pool2d", {{"X", {-1, 3, 28, 28}}}, pool({-1, -1}, {1, 1}, {0, 0}, false, true), "Out", "float32 [-1, 3, 1, 1]"},
      {"pool2d",
       {{"X", {-1, 3, 2, 2}}},
       pool({3, 3}, {1, 1}, {0, 0}),
       "Out",
       "pool2d: a window of 3 does not fit an extent of 2 with a padding of 0; make the window smaller"},
      {"dropout", {{"X", {-1, 8}, DataType::kFloat32, 1}}, {}, "Out", "float32 [-1, 8] lod 1"},
      {"dropout", {{"X", {-1, 8}}}, {{"dropout_prob", 1.5}}, "Out", "dropout: dropout_prob is 1.5; want 0 to 1"},
      {"cvm", {{"X", {-1, 7}}, {"CVM", {-1, 2}}}, {{"use_cvm", true}}, "Y", "float32 [-1, 7]"},
      {"cvm", {{"X", {-1, 7}}, {"CVM", {-1, 2}}}, {{"use_cvm", false}}, "Y", "float32 [-1, 5]"},
  });
}

TEST(SchemaShapes, Losses) {
  Check({
      {"cross_entropy",
       {{"X", {-1, 8}, DataType::kFloat32, 1}, {"Label", {-1, 1}, kIds}},
       {},
       "Y",
       "float32 [-1, 1] lod 1"},
      {"cross_entropy",
       {{"X", {-1, 8}}, {"Label", {-1, 8}}},
       {},
       "Y",
       "cross_entropy: X is [-1, 8] and Label is [-1, 8]: want a label of shape [.., 1]; labels for each class need "
       "soft_label=True"},
      {"cross_entropy", {{"X", {-1, 8}}, {"Label", {-1, 8}}}, {{"soft_label", true}}, "Y", "float32 [-1, 1]"},
      {"cross_entropy",
       {{"X", {20, 8}}, {"Label", {16, 1}, kIds}},
       {},
       "Y",
       "cross_entropy: X is [20, 8] and Label is [16, 1]: want as many labels as samples"},
      {"softmax_with_cross_entropy", {{"Logits", {-1, 8}}, {"Label", {-1, 1}, kIds}}, {}, "Loss", "float32 [-1, 1]"},
      {"sigmoid_cross_entropy_with_logits",
       {{"X", {20, 1}}, {"Label", {16, 1}}},
       {},
       "Out",
       "sigmoid_cross_entropy_with_logits: X is [20, 1] and Label is [16, 1]: want as many labels as samples"},
      {"log_loss", {{"Predicted", {-1, 1}}, {"Labels", {-1, 1}}}, {{"epsilon", 1e-4}}, "Loss", "float32 [-1, 1]"},
      {"nce",
       {{"Input", {-1, 8}}, {"Label", {-1, 1}, kIds}, {"Weight", {100, 8}}},
       {{"num_total_classes", int64_t{100}}},
       "Cost",
       "float32 [-1, 1]"},
  });
}

TEST(SchemaShapes, ImpossibleExtentsAreRefused) {
  const int64_t large = int64_t{1} << 40;
  Check({
      {"expand",
       {{"X", {large}}},
       {{"expand_times", Ints{1 << 20}}},
       "Out",
       "expand: Out would be [1152921504606846976]; want extents from 0 to 281474976710656, or -1"},
      {"expand",
       {{"X", {large}}},
       {{"expand_times", Ints{1 << 30}}},
       "Out",
       "expand: Out would be [9223372036854775807]; want extents from 0 to 281474976710656, or -1"},
      {"fill_constant",
       {},
       {{"shape", Ints{-5}}},
       "Out",
       "fill_constant: Out would be [-5]; want extents from 0 to 281474976710656, or -1"},
      {"relu",
       {{"X", {large << 20}}},
       {},
       "Out",
       "relu: X is [1152921504606846976]; want extents from 0 to 281474976710656, or -1"},
      {"top_k",
       {{"X", {-1, 8}}},
       {{"k", large}},
       "Out",
       "top_k: attribute k is 1099511627776; want integers of 32 bits"},
      {"fill_constant", {}, {{"shape", Ints{large}}}, "Out", "float32 [1099511627776]"},
  });
}

TEST(SchemaShapes, Sequences) {
  const DataType f = DataType::kFloat32;
  Check({
      {"sequence_pool", {{"X", {-1, 8}, f, 1}}, {{"pooltype", std::string("SUM")}}, "Out", "float32 [-1, 8]"},
      {"sequence_pool", {{"X", {-1, 8}, f, 2}}, {}, "Out", "float32 [-1, 8] lod 1"},
      {"sequence_pool", {{"X", {-1, 8}, f, 0}}, {}, "Out", "float32 [-1, 8]"},  // the levels come with what is fed
      {"sequence_pool",
       {{"X", {-1, 8}, f, 1}},
       {{"pooltype", std::string("sum")}},
       "Out",
       "sequence_pool: attribute pooltype is \"sum\"; want one of AVERAGE, SUM, SQRT, MAX, LAST, FIRST"},
      {"sequence_conv",
       {{"X", {-1, 8}, f, 1}, {"Filter", {24, 5}}},
       {{"contextLength", int64_t{3}}},
       "Out",
       "float32 [-1, 5] lod 1"},
      {"sequence_conv",
       {{"X", {-1, 8}, f, 1}, {"Filter", {20, 5}}},
       {{"contextLength", int64_t{3}}},
       "Out",
       "sequence_conv: X is [-1, 8] and Filter is [20, 5]: want a filter of 24 rows: 3 steps of X"},
      {"sequence_expand", {{"X", {-1, 4}, f, 1}, {"Y", {-1, 8}, f, 2}}, {}, "Out", "float32 [-1, 4] lod 1"},
      {"sequence_expand_as", {{"X", {-1, 4}}, {"Y", {-1, 8}, f, 1}}, {}, "Out", "float32 [-1, 4] lod 1"},
      {"sequence_reshape", {{"X", {-1, 8}, f, 1}}, {{"new_dim", int64_t{4}}}, "Out", "float32 [-1, 4] lod 1"},
      {"sequence_pad",
       {{"X", {-1, 8}, f, 1}, {"PadValue", {1}}},
       {{"padded_length", int64_t{10}}},
       "Out",
       "float32 [-1, 10, 8]"},
      {"sequence_unpad", {{"X", {-1, 10, 8}}, {"Length", {-1}, kIds}}, {}, "Out", "float32 [-1, 8] lod 1"},
      {"sequence_enumerate", {{"X", {-1, 1}, kIds, 1}}, {{"win_size", int64_t{3}}}, "Out", "int64 [-1, 3] lod 1"},
      {"sequence_mask", {{"X", {-1}, kIds}}, {{"maxlen", int64_t{9}}}, "Y", "int64 [-1, 9]"},
      {"lod_reset", {{"X", {-1, 8}}, {"Y", {-1, 8}, f, 1}}, {}, "Out", "float32 [-1, 8] lod 1"},
      {"gru", {{"Input", {-1, 9}, f, 1}, {"Weight", {3, 9}}}, {}, "Hidden", "float32 [-1, 3] lod 1"},
      {"lstm", {{"Input", {-1, 8}, f, 1}, {"Weight", {2, 8}}, {"Bias", {1, 14}}}, {}, "Cell", "float32 [-1, 2] lod 1"},
      {"crf_decoding",
       {{"Emission", {-1, 8}, f, 1}, {"Transition", {10, 8}}},
       {},
       "ViterbiPath",
       "int64 [-1, 1] lod 1"},
  });
}

}  // namespace
}  // namespace regatta::program
