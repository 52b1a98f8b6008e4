// What servers answered, for people and for programs.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "server/status_query.h"

namespace regatta::server {

// Two aligned tables: a line a server, and a line a worker as the first server that has a job sees it. Servers that did
// not answer have a line that says so.
std::string StatusTable(const std::vector<ServerAnswer>& answers);
// {"servers": […], "workers": […]}.
std::string StatusJson(const std::vector<ServerAnswer>& answers);

}  // namespace regatta::server
