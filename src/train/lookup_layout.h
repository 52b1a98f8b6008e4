// How a net's lookups share tables and plans. Worked example: lookup 0 reads slots {1, 2} of table A, lookup 1 slots
// {2, 3} of A, lookup 2 slots {1, 2, 3} of B. Then A and B have the slot set {1, 2, 3} and one plan; A is pulled once,
// and its gradients are those of lookups 0 and 1, added up. Thread-safety: constant after construction.
#pragma once

#include <string>
#include <vector>

#include "train/net_spec.h"

namespace regatta::train {

struct LookupLayout {
  struct Table {
    std::string name;
    int dim = 0;
    double l2 = 0;
    int slot_set = 0;
    std::vector<int> lookups;
  };
  struct Lookup {
    int table = 0;
    std::vector<int> chosen;  // the lookup's slots as places in the table's slot set
    bool whole = false;       // it reads the slot set as it is: all of it, in order
  };

  // The spec has passed CheckNetSpec.
  explicit LookupLayout(const NetSpec& spec);

  std::vector<std::vector<int>> slot_sets;  // distinct; places in Schema::sparse_slots, ascending
  std::vector<Table> tables;                // in the order in which lookups first name them
  std::vector<Lookup> lookups;              // as in NetSpec
};

}  // namespace regatta::train
