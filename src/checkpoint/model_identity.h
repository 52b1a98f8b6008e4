// What model a save holds: enough to build it again, and to refuse a save of another model by name instead of by the
// shapes of its tables. A save of a program that does not say has none.
// Thread-safety: plain values and pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace regatta::checkpoint {

// What the model reads of a line of data.
struct SavedSchema {
  std::vector<std::string> labels;
  std::vector<std::string> sparse_slots;
  std::string dense_slot;
  int dense_dim = 0;
  std::string value_slot;
  friend bool operator==(const SavedSchema&, const SavedSchema&) = default;
};

struct ModelIdentity {
  std::string front_end;                                // who wrote the model: "zoo", "c++"
  std::string name;                                     // "dnn"; of a program's own model what the program says
  std::map<std::string, std::string> hyper_parameters;  // key → value as JSON: "fc_sizes" → "[400,400,400]"
  SavedSchema schema;
  friend bool operator==(const ModelIdentity&, const ModelIdentity&) = default;
};

// Every field in which they differ, with the saved and the wanted value. Settings of the optimizer are left out: they
// change future steps only.
std::vector<std::string> IdentityDifferences(const ModelIdentity& saved, const ModelIdentity& wanted);
// FAILED_PRECONDITION if the save is of another model: another front end or name.
absl::Status CheckSameModel(const ModelIdentity& saved, const ModelIdentity& wanted);

}  // namespace regatta::checkpoint
