// Runs a libtorch model as a net of the training loop. Inputs become tensors, and gradients views, without a copy.
// Thread-safety: as train::Net; the nets of one maker share the model, which is const.
#pragma once

#include <string>

#include "model/model.h"
#include "train/net.h"

namespace regatta::model {

// Borrows the model. `name` stands in messages; without one the model's type does.
train::NetMaker TorchNets(const Model& model, std::string name = "");

}  // namespace regatta::model
