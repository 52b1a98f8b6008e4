// A Fluid program: blocks of operations over named variables. Block 0 is where it begins; the others are bodies of
// loops, branches and what a server does for a parameter.
// Thread-safety: as Block.
// Invariant: block i has the index i; a block's parent has a smaller index.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "program/block.h"

namespace regatta::program {

class Program {
 public:
  Program() { blocks_.push_back(std::make_unique<Block>(0, nullptr)); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Block& global_block() { return *blocks_.front(); }
  const Block& global_block() const { return *blocks_.front(); }

  // `index` < block_count().
  Block& block(size_t index) { return *blocks_[index]; }
  const Block& block(size_t index) const { return *blocks_[index]; }
  size_t block_count() const { return blocks_.size(); }

  // `parent` is a block of this program.
  Block& AddBlock(Block& parent) {
    blocks_.push_back(std::make_unique<Block>(static_cast<int>(blocks_.size()), &parent));
    return *blocks_.back();
  }

  // Of initial values, dropout and samples; 0 = another one in each run.
  int64_t random_seed() const { return random_seed_; }
  void set_random_seed(int64_t seed) { random_seed_ = seed; }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
  int64_t random_seed_ = 0;
};

// All parameters, in the order of the blocks and then of their making.
std::vector<const Variable*> ParametersOf(const Program& program);

}  // namespace regatta::program
