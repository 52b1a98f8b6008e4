// Networks of public Fluid scripts, built whole: what scripts lean on.
#include "program/clone.h"
#include "program/layers/arithmetic.h"
#include "program/layers/loss.h"
#include "program/layers/metric.h"
#include "program/layers/sequence.h"
#include "program/optimizers/optimizer.h"
#include "program/prune.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

class NetworksTest : public NetworkTest {
 protected:
  Variable* Ids(const std::string& name, int lod_level = 0) { return Data(name, {1}, DataType::kInt64, lod_level); }
  Variable* Lookup(Variable* ids, int64_t rows, int64_t dim, const std::string& name = "") {
    return Must(layers::Embedding(builder_, ids, {.size = {rows, dim}, .is_sparse = true, .weight = {.name = name}}));
  }
  Variable* Fc(std::vector<Variable*> inputs, int64_t size, const std::string& activation = "") {
    return Must(layers::Fc(builder_, inputs, {.size = size, .activation = activation}));
  }
  Variable* Concat(const std::vector<Variable*>& parts) {
    return Must(ApplyOperator(builder_, "concat", {{"X", parts}}, {{"axis", int64_t{1}}}));
  }
  Minimized Minimize(const std::string& type, Variable* loss) {
    Optimizer optimizer = *Optimizer::Make({.type = type, .learning_rate = 0.001});
    return Must(optimizer.Minimize(builder_, loss));
  }
};

TEST_F(NetworksTest, Word2vecSharesItsTable) {
  std::vector<Variable*> words;
  for (const char* name : {"firstw", "secondw", "thirdw", "forthw"})
    words.push_back(Lookup(Ids(name), 2000, 32, "shared_w"));
  Variable* prediction = Fc({Fc({Concat(words)}, 256, "sigmoid")}, 2000, "softmax");
  Variable* loss = Must(layers::Mean(builder_, Must(layers::CrossEntropy(builder_, prediction, Ids("nextw")))));
  const Minimized made = Minimize("SGD", loss);
  Names parameters;
  for (const ParameterGradient& each : made.gradients) parameters.push_back(each.parameter->name);
  EXPECT_EQ(parameters, (Names{"fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0", "shared_w"}));
  EXPECT_EQ(TypeOf("shared_w@GRAD"), "selected_rows float32 [2000, 32]");
  EXPECT_EQ(TypeOf("fc_0.w_0"), "float32 [128, 256]");
  const auto inference = Must(InferenceProgram(main_, {"firstw", "secondw", "thirdw", "forthw"}, {prediction->name}));
  EXPECT_EQ(inference->global_block().operations().size(), 4u + 4 + 1 + 3 + 3 + 1);
}

TEST_F(NetworksTest, RecommenderSystem) {
  Variable* user =
      Fc({Concat({Fc({Lookup(Ids("user_id"), 6041, 32)}, 32), Fc({Lookup(Ids("age_id"), 7, 16)}, 16)})}, 200, "tanh");
  Variable* categories = Must(layers::SequencePool(builder_, Lookup(Ids("category_id", 1), 18, 32), "sum"));
  Variable* title = Must(layers::SequenceConvPool(builder_, Lookup(Ids("movie_title", 1), 5175, 32),
                                                  {.num_filters = 32, .activation = "tanh"}, "sum"));
  Variable* movie = Fc({Concat({Fc({Lookup(Ids("movie_id"), 3953, 32)}, 32), categories, title})}, 200, "tanh");
  Variable* similarity = Must(ApplyOperator(builder_, "cos_sim", {{"X", user}, {"Y", movie}}));
  Variable* score = Must(ApplyOperator(builder_, "scale", {{"X", similarity}}, {{"scale", 5.0}}));
  Variable* loss = Must(layers::Mean(builder_, Must(layers::SquareErrorCost(builder_, score, Data("score", {1})))));
  const auto test = CloneForTest(main_);
  EXPECT_EQ(Minimize("SGD", loss).gradients.size(), 17u);
  EXPECT_EQ(TypeText(*test->global_block().Find("cos_sim_0.tmp_0")), "float32 [-1, 1]");
  EXPECT_EQ(TypeOf("fc_4.w_0"), "float32 [96, 200]");
}

TEST_F(NetworksTest, CtrDnnKeepsTheNamesOfItsAuc) {
  Variable* dense = Data("dense_input", {13});
  std::vector<Variable*> parts;
  for (int i = 0; i < 26; ++i) {
    Variable* rows = Lookup(Ids(absl::StrCat("C", i), 1), 1000001, 10, "SparseFeatFactors");
    parts.push_back(Must(layers::SequencePool(builder_, rows, "average")));
  }
  parts.push_back(dense);
  Variable* hidden = Concat(parts);
  for (const int64_t size : {400, 400, 400}) hidden = Fc({hidden}, size, "relu");
  Variable* prediction = Fc({hidden}, 2, "softmax");
  Variable* label = Ids("label");
  Variable* cost = Must(layers::CrossEntropy(builder_, prediction, label));
  Variable* loss = Must(layers::Mean(builder_, cost));
  const layers::Auc auc = Must(layers::AucOf(builder_, prediction, label, {.num_thresholds = 4096, .slide_steps = 20}));
  EXPECT_EQ(auc.states[3]->name, "_generated_var_3");
  EXPECT_EQ(TypeText(*auc.states[0]), "int64 [86038]");
  EXPECT_EQ(TypeOf("fc_0.w_0"), "float32 [273, 400]");
  const Minimized made = Minimize("Adam", loss);
  EXPECT_EQ(made.gradients.size(), 9u);
  EXPECT_EQ(made.gradients[0].parameter->name, "SparseFeatFactors");
  EXPECT_EQ(made.operations[0]->Input("Grad"), Names{"SparseFeatFactors@GRAD"});
  EXPECT_EQ(main_.global_block().Find("auc_0.tmp_0@GRAD"), nullptr);
}

TEST_F(NetworksTest, DeepFm) {
  Variable* index = Data("feat_idx", {39, 1}, DataType::kInt64);
  Variable* value =
      Must(ApplyOperator(builder_, "reshape2", {{"X", Data("feat_value", {39})}}, {{"shape", Shape{-1, 39, 1}}}));
  Variable* flat = Must(ApplyOperator(builder_, "reshape2", {{"X", index}}, {{"shape", Shape{-1, 1}}}));
  Variable* rows =
      Must(ApplyOperator(builder_, "reshape2", {{"X", Lookup(flat, 1001, 10)}}, {{"shape", Shape{-1, 39, 10}}}));
  Variable* weighted = Must(layers::Combine(builder_, "elementwise_mul", rows, value));
  EXPECT_EQ(TypeText(*weighted), "float32 [-1, 39, 10]");
  Variable* sum = Must(ApplyOperator(builder_, "reduce_sum", {{"X", weighted}}, {{"dim", Shape{1}}}));
  Variable* half = Must(layers::CombineWithNumber(builder_, "elementwise_mul", sum, 0.5, layers::Side::kLeft));
  Variable* deep = Must(ApplyOperator(builder_, "reshape2", {{"X", weighted}}, {{"shape", Shape{-1, 390}}}));
  Variable* out = Must(layers::Combine(builder_, "elementwise_add", Fc({deep}, 1), Fc({half}, 1)));
  Variable* probability = Must(ApplyOperator(builder_, "sigmoid", {{"X", out}}));
  Variable* cost = Must(ApplyOperator(
      builder_, "log_loss", {{"Predicted", probability}, {"Labels", Data("label", {1})}}, {{"epsilon", 1e-7}}, "Loss"));
  Variable* loss = Must(ApplyOperator(builder_, "reduce_sum", {{"X", cost}}, {{"reduce_all", true}}));
  EXPECT_EQ(Minimize("Adam", loss).gradients.size(), 5u);
}

}  // namespace
}  // namespace regatta::program
