// What a model declares: a net's declaration under the names that models use.
#pragma once

#include "train/net_spec.h"

namespace regatta::model {

using DenseColumns = train::DenseColumns;
using DenseSpec = train::ParameterSpec;
using EmbeddingSpec = train::LookupSpec;
using Init = train::Init;
using Metric = train::Metric;
using ModelSpec = train::NetSpec;
using OutputSpec = train::OutputSpec;

}  // namespace regatta::model
