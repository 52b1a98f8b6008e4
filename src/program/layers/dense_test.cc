#include "program/layers/dense.h"

#include "program/test_network.h"

namespace regatta::program {
namespace {

using DenseLayersTest = NetworkTest;

TEST_F(DenseLayersTest, FcOfSeveralInputsAddsTheirProducts) {
  Variable* out = Must(layers::Fc(builder_, {Data("a", {3}), Data("b", {4})}, {.size = 2, .activation = "relu"}));
  EXPECT_EQ(out->name, "fc_0.tmp_4");
  EXPECT_EQ(TypeText(*out), "float32 [-1, 2]");
  EXPECT_EQ(OperationsText(main_),
            "Out=fc_0.tmp_0 <- mul(X=a, Y=fc_0.w_0)\n"
            "Out=fc_0.tmp_1 <- mul(X=b, Y=fc_0.w_1)\n"
            "Out=fc_0.tmp_2 <- sum(X=[fc_0.tmp_0, fc_0.tmp_1])\n"
            "Out=fc_0.tmp_3 <- elementwise_add(X=fc_0.tmp_2, Y=fc_0.b_0, axis: 1)\n"
            "Out=fc_0.tmp_4 <- relu(X=fc_0.tmp_3)\n");
}

TEST_F(DenseLayersTest, FcFlattensAndLeavesTheBiasOut) {
  Variable* x = Data("x", {3, 4});
  Variable* out = Must(layers::Fc(builder_, {x}, {.size = 5, .num_flatten_dims = 2, .bias = {.wanted = false}}));
  EXPECT_EQ(TypeText(*out), "float32 [-1, 3, 5]");
  EXPECT_EQ(TypeOf("fc_0.w_0"), "float32 [4, 5]");
  Variable* flat = Must(layers::Fc(builder_, {x}, {.size = 5}));
  EXPECT_EQ(TypeText(*flat), "float32 [-1, 5]");
  EXPECT_EQ(TypeOf("fc_1.w_0"), "float32 [12, 5]");
  EXPECT_EQ(TypeOf("fc_1.b_0"), "float32 [5]");
}

TEST_F(DenseLayersTest, FcSaysWhatItCannotDo) {
  builder_.set_site({"layers.fc", "train.py", 31});
  Variable* x = Data("x", {-1, 13, -1});
  EXPECT_EQ(layers::Fc(builder_, {x}, {.size = 0}).status().message(),
            "layers.fc (train.py:31): size is 0; want 1 or more");
  EXPECT_EQ(
      layers::Fc(builder_, {x}, {.size = 1}).status().message(),
      "layers.fc (train.py:31): input is [-1, 13, -1]: the extents from 1 on make the rows of its weights, so they "
      "must be known (layers.reshape)");
  EXPECT_EQ(layers::Fc(builder_, {x}, {.size = 1, .num_flatten_dims = 3}).status().message(),
            "layers.fc (train.py:31): input is [-1, 13, -1] and num_flatten_dims 3; want at least 1 and less than the "
            "number of its extents");
  EXPECT_EQ(layers::Fc(builder_, {Data("y", {2})}, {.size = 1, .activation = "sofmax"}).status().message(),
            "layers.fc (train.py:31): there is no operator 'sofmax'; did you mean 'softmax'?");
}

TEST_F(DenseLayersTest, AParameterWithANameIsShared) {
  const layers::EmbeddingOptions options = {.size = {10, 4}, .is_sparse = true, .weight = {.name = "shared_w"}};
  Variable* a = Data("a", {1}, DataType::kInt64);
  Variable* b = Data("b", {1}, DataType::kInt64);
  ASSERT_TRUE(layers::Embedding(builder_, a, options).ok());
  ASSERT_TRUE(layers::Embedding(builder_, b, options).ok());
  EXPECT_EQ(startup_.global_block().operations().size(), 1u);
  EXPECT_EQ(
      layers::Embedding(builder_, b, {.size = {10, 5}, .weight = {.name = "shared_w"}}).status().message(),
      "the parameter 'shared_w' is float32 [10, 4] already and would be float32 [10, 5]; give one of them another "
      "name");
}

TEST_F(DenseLayersTest, ATestProgramMayShareTheStartupProgram) {
  Must(layers::Fc(builder_, {Data("x", {3})}, {.size = 2}));
  Program test;
  NameGenerator names;
  ProgramBuilder builder(test, startup_, names);
  Variable* x = Must(layers::Data(builder, "x", {.shape = {3}}));
  EXPECT_EQ(Must(layers::Fc(builder, {x}, {.size = 2}))->name, "fc_0.tmp_1");
  EXPECT_EQ(startup_.global_block().operations().size(), 2u);
}

TEST_F(DenseLayersTest, EmbeddingTakesIdsWithAndWithoutAOne) {
  Variable* ids = Data("ids", {1}, DataType::kInt64, 1);
  Variable* rows = Must(layers::Embedding(builder_, ids, {.size = {10, 4}, .padding_idx = -1}));
  EXPECT_EQ(TypeText(*rows), "float32 [-1, 4]");
  EXPECT_EQ(rows->lod_level, 1);
  EXPECT_EQ(main_.global_block().operations()[0]->attributes.Int("padding_idx"), 9);
  Variable* flat = Data("flat", {-1, 6}, DataType::kInt64);
  const layers::EmbeddingOptions v2 = {.size = {10, 4}, .ids_shape = layers::IdsShape::kAsTheyAre};
  EXPECT_EQ(TypeText(*Must(layers::Embedding(builder_, flat, v2))), "float32 [-1, 6, 4]");
}

TEST_F(DenseLayersTest, EmbeddingSaysWhatItCannotDo) {
  Variable* ids = Data("ids", {2}, DataType::kInt64);
  EXPECT_EQ(layers::Embedding(builder_, ids, {.size = {10, 4}, .padding_idx = 10}).status().message(),
            "padding_idx is 10; want a row from -10 to 9");
  EXPECT_EQ(layers::Embedding(builder_, ids, {.size = {10}}).status().message(), "size is [10]; want [rows, dim]");
  EXPECT_EQ(layers::Embedding(builder_, ids, {.size = {10, 4}}).status().message(),
            "lookup_table: Ids is [-1, 2]: the last extent must be 1 (layers.data(shape=[1], dtype='int64')); "
            "fluid.embedding takes ids without it");
}

TEST_F(DenseLayersTest, DataPutsTheBatchFirst) {
  EXPECT_EQ(TypeText(*Data("a", {3, 4})), "float32 [-1, 3, 4]");
  EXPECT_EQ(TypeText(*Data("b", {-1, 4})), "float32 [-1, 4]");
  EXPECT_EQ(TypeText(*Must(layers::Data(builder_, "c", {.shape = {8, 4}, .append_batch_size = false}))),
            "float32 [8, 4]");
  Data("a", {3, 4})->stop_gradient = false;
  EXPECT_EQ(Data("a", {3, 4}), Data("a", {3, 4}));
  EXPECT_FALSE(layers::Data(builder_, "a", {.shape = {3, 4}, .lod_level = 1}).ok());
  EXPECT_EQ(layers::Data(builder_, "a", {.shape = {5}}).status().message(),
            "the variable 'a' is float32 [-1, 3, 4] already; give the new one another name");
}

TEST_F(DenseLayersTest, AStateWithANameIsShared) {
  builder_.set_site({"layers.create_global_var", "train.py", 9});
  const auto state = [&](Shape shape) {
    return builder_.CreateState("total", std::move(shape), DataType::kFloat32, Initializer::Constant(0));
  };
  EXPECT_EQ(Must(state({1})), Must(state({1})));
  EXPECT_EQ(startup_.global_block().operations().size(), 1u);
  EXPECT_EQ(
      state({2}).status().message(),
      "layers.create_global_var (train.py:9): the variable 'total' is float32 [1] already; give the new one another "
      "name");
}

TEST_F(DenseLayersTest, ATemporaryVariableTakesAFreeName) {
  Variable* x = Data("fc_0.tmp_0", {3});
  EXPECT_EQ(Must(layers::Fc(builder_, {x}, {.size = 2}))->name, "fc_0.tmp_2");
}

TEST_F(DenseLayersTest, InitializersBecomeOperationsOfTheStartupProgram) {
  startup_.set_random_seed(7);
  const auto parameter = [&](const std::string& name, Shape shape, const Initializer& initializer) {
    ParameterAttributes attributes;
    attributes.name = name;
    Must(builder_.CreateParameter(attributes, "", std::move(shape), DataType::kFloat32, initializer));
  };
  parameter("normal", {2, 3}, Initializer::Normal(0.5, 2));
  parameter("truncated", {2, 3}, Initializer::TruncatedNormal(0, 2, 11));
  parameter("msra", {2, 3}, Initializer::Msra());
  parameter("msra_normal", {4, 2, 3, 3}, Initializer::Msra(Initializer::Distribution::kNormal));
  parameter("xavier_normal", {8}, Initializer::Xavier(Initializer::Distribution::kNormal));
  Initializer values;
  values.kind = Initializer::Kind::kValues;
  values.values = std::vector<double>{1, 2};
  parameter("values", {2}, values);
  EXPECT_EQ(OperationsText(startup_),
            "Out=normal <- gaussian_random(mean: 0.5, seed: 7, shape: [2, 3], std: 2)\n"
            "Out=truncated <- truncated_gaussian_random(seed: 11, shape: [2, 3], std: 2)\n"
            "Out=msra <- uniform_random(max: 1.7320508075688772, min: -1.7320508075688772, seed: 7, shape: [2, 3])\n"
            "Out=msra_normal <- gaussian_random(seed: 7, shape: [4, 2, 3, 3], std: 0.3333333333333333)\n"
            "Out=xavier_normal <- gaussian_random(seed: 7, shape: [8], std: 0.3535533905932738)\n"
            "Out=values <- assign_value(dtype: 5, fp32_values: [1, 2], shape: [2])\n");
  ParameterAttributes attributes;
  attributes.name = "too_many";
  EXPECT_EQ(builder_.CreateParameter(attributes, "", {3}, DataType::kFloat32, values).status().message(),
            "assign_value: attribute shape is [3], 3 values, and 2 are given; give as many as the shape has");
}

}  // namespace
}  // namespace regatta::program
