// An operation of a block: what is done, with which variables, and where the user's program asked for it.
// Thread-safety: a plain value.
// Invariant: one that AppendOperation (append.h) took or ParseProgram (program_file.h) gave fits its schema: its slots
// and attributes are the schema's, and every attribute with a default is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/named.h"
#include "program/attribute.h"

namespace regatta::program {

using Names = std::vector<std::string>;

// The part that an operation has in a step. clone(for_test) keeps kForward alone; kRpc talks to servers, kDist prepares
// what is sent.
enum class Role : uint8_t { kForward, kBackward, kOptimize, kLrSchedule, kRpc, kDist };

inline constexpr base::Named<Role> kRoles[] = {
    {"forward", Role::kForward},        {"backward", Role::kBackward}, {"optimize", Role::kOptimize},
    {"lr_schedule", Role::kLrSchedule}, {"rpc", Role::kRpc},           {"dist", Role::kDist},
};
static_assert(base::InOrder(kRoles));

// The call of the user's program that an operation comes from.
struct CallSite {
  std::string layer;  // "layers.fc"; empty = unknown
  std::string file;   // empty = unknown
  int line = 0;

  // "layers.fc (train.py:31)", "layers.fc", or "".
  std::string Text() const;
  friend bool operator==(const CallSite&, const CallSite&) = default;
};

// Named places for variables: "X" of mul holds one, "X" of concat many.
struct Slot {
  std::string name;
  Names variables;
  friend bool operator==(const Slot&, const Slot&) = default;
};
using Slots = std::vector<Slot>;

struct Operation {
  std::string type;  // "mul", "lookup_table", …: Fluid 1.8's names
  Slots inputs;      // slots without variables are left out
  Slots outputs;
  Attributes attributes;
  Role role = Role::kForward;
  Names role_variables;  // of kOptimize: the parameter and its gradient
  CallSite site;

  // The slot's variables; none if the slot is empty.
  const Names& Input(std::string_view slot) const { return VariablesOf(inputs, slot); }
  const Names& Output(std::string_view slot) const { return VariablesOf(outputs, slot); }
  bool Reads(std::string_view variable) const { return Mentions(inputs, variable); }
  bool Writes(std::string_view variable) const { return Mentions(outputs, variable); }
  // "layers.fc (train.py:31): mul", or "mul": what messages begin with.
  std::string Place() const;

  friend bool operator==(const Operation&, const Operation&) = default;

 private:
  static const Names& VariablesOf(const Slots& slots, std::string_view name);
  static bool Mentions(const Slots& slots, std::string_view variable);
};

}  // namespace regatta::program
