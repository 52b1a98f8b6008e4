// A DataPosition as LaneProgress carries it between processes, in logs and in a server's checkpoints.
// Thread-safety: pure functions.
#pragma once

#include "base/data_position.h"
#include "base/status.h"
#include "wire/ps.pb.h"

namespace regatta::wire {

inline void ToWire(const base::DataPosition& position, ps::LaneProgress& out) {
  out.set_pass(position.pass);
  out.set_low(position.low);
  out.set_window(position.window);
  out.mutable_beyond()->Assign(position.beyond.begin(), position.beyond.end());
}

// INVALID_ARGUMENT if the window is wider than a position's may be.
inline absl::StatusOr<base::DataPosition> FromWire(const ps::LaneProgress& in) {
  if (static_cast<size_t>(in.beyond_size()) > base::DataPosition::kMaxBeyond)
    return absl::InvalidArgumentError(absl::StrCat("a position's window has ", 64 * (1 + in.beyond_size()),
                                                   " batches; it has at most ", base::DataPosition::kWindow));
  base::DataPosition position{in.pass(), in.low(), in.window()};
  position.SetBeyond({in.beyond().data(), static_cast<size_t>(in.beyond_size())});
  return position;
}

}  // namespace regatta::wire
