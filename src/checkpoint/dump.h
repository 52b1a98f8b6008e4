// A save as text, a line a row, for comparing by diff and by eye: equal models give equal bytes, whatever the files,
// servers or shards that they were saved with.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"

namespace regatta::checkpoint {

using TextSink = std::function<absl::Status(std::string_view)>;

// Appends a value as %.9g, which gives back the same float.
void AppendFloat(float value, std::string& out);
// "\tw…", and "\t|\tstate…" where the row has any.
void AppendRow(std::span<const float> row, size_t weights, std::string& out);

// Tables by name, rows by key: "table\tkey\tw…\t|\tstate…"; then the dense parameters in their order, at most 1024
// elements a line: "dense\tname[first]\tvalues…\t|\tstate 0…\tstate 1…", and "dense\tupdates\tn".
// `only` ("" = all) is the name of one table.
absl::Status DumpSave(const CheckpointReader& save, const std::string& only, const TextSink& sink);
// The dense part of it, or one parameter.
absl::Status DumpDense(const CheckpointReader& save, const std::string& only, const TextSink& sink);

}  // namespace regatta::checkpoint
