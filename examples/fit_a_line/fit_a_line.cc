// Fits a line to the prices of houses: Fluid's first example, in C++ and without Python.
//   fit_a_line housing_train.txt
// Exit code 0 as soon as the mean cost of a batch is below 10, 1 if 100 passes were not enough.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "regatta_fluid.h"

namespace {

namespace fluid = regatta::fluid;

constexpr int64_t kFeatures = 13;
constexpr size_t kBatch = 20;
constexpr int kPasses = 100;
constexpr double kGoodCost = 10;

using House = std::vector<float>;  // the features, already (x - mean) / (max - min), and the price

absl::StatusOr<std::vector<House>> ReadHouses(const std::string& path) {
  std::ifstream file(path);
  std::vector<House> houses;
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    House house(kFeatures + 1);
    for (float& number : house) numbers >> number;
    if (!numbers) return absl::InvalidArgumentError(absl::StrCat(path, ":", houses.size() + 1, ": want 14 numbers"));
    houses.push_back(std::move(house));
  }
  if (houses.empty()) return absl::NotFoundError(absl::StrCat(path, ": no data; give the path of housing_train.txt"));
  return houses;
}

// Houses [begin, end) as the values of x and y.
std::vector<fluid::Value> Feeds(const std::vector<House>& houses, size_t begin, size_t end) {
  const auto count = static_cast<int64_t>(end - begin);
  const torch::Tensor x = at::empty({count, kFeatures}), y = at::empty({count, 1});
  for (size_t i = begin; i < end; ++i) {
    std::copy_n(houses[i].begin(), kFeatures, x.data_ptr<float>() + (i - begin) * kFeatures);
    y.data_ptr<float>()[i - begin] = houses[i].back();
  }
  return {fluid::Value(x), fluid::Value(y)};
}

struct Network {
  fluid::Program main;
  fluid::Program startup;
  fluid::Variable* cost = nullptr;
};

absl::Status Build(Network& network) {
  fluid::NameGenerator names;
  fluid::ProgramBuilder builder(network.main, network.startup, names);
  ASSIGN_OR_RETURN(fluid::Variable * x, fluid::layers::Data(builder, "x", {.shape = {kFeatures}}));
  ASSIGN_OR_RETURN(fluid::Variable * y, fluid::layers::Data(builder, "y", {.shape = {1}}));
  ASSIGN_OR_RETURN(fluid::Variable * predicted, fluid::layers::Fc(builder, {x}, {.size = 1}));
  ASSIGN_OR_RETURN(fluid::Variable * costs, fluid::layers::SquareErrorCost(builder, predicted, y));
  ASSIGN_OR_RETURN(network.cost, fluid::layers::Mean(builder, costs));
  ASSIGN_OR_RETURN(fluid::Optimizer sgd, fluid::Optimizer::Make({.type = "SGD", .learning_rate = 0.001}));
  return sgd.Minimize(builder, network.cost).status();
}

// Whether a batch's mean cost came below kGoodCost.
absl::StatusOr<bool> Train(std::vector<House> houses) {
  Network network;
  RETURN_IF_ERROR(Build(network));
  fluid::Scope scope;
  RETURN_IF_ERROR(fluid::RunProgram(network.startup, scope, {}, {}).status());
  ASSIGN_OR_RETURN(auto prepared, fluid::PreparedProgram::Make(network.main, {"x", "y"}, {network.cost->name}));
  fluid::Executor step(prepared);
  std::mt19937 random(1);
  for (int pass = 0; pass < kPasses; ++pass) {
    std::shuffle(houses.begin(), houses.end(), random);
    for (size_t begin = 0; begin < houses.size(); begin += kBatch) {
      const size_t end = std::min(begin + kBatch, houses.size());
      ASSIGN_OR_RETURN(const std::vector<fluid::Value> fetched, step.Run(scope, Feeds(houses, begin, end)));
      const float cost = *fetched[0].dense()->tensor.data_ptr<float>();
      if (begin == 0 && pass % 10 == 0) std::cout << "pass " << pass << ", cost of its first batch: " << cost << "\n";
      if (cost >= kGoodCost) continue;
      std::cout << "pass " << pass << ", cost of a batch: " << cost << "\n";
      return true;
    }
  }
  return false;
}

absl::StatusOr<bool> Run(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<House> houses, ReadHouses(path));
  return Train(std::move(houses));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fit_a_line housing_train.txt\n";
    return 2;
  }
  const absl::StatusOr<bool> good = Run(argv[1]);
  if (!good.ok()) {
    std::cerr << "fit_a_line: " << good.status().message() << "\n";
    return 2;
  }
  return *good ? 0 : 1;
}
