// `regatta version`: what this build is and what it was compiled with.
#pragma once

#include <string>

namespace regatta::cli {

std::string VersionText();

}  // namespace regatta::cli
