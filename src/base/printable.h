// Text that came from somebody else, made safe to show: a peer's name or a field of a file can neither forge a line of
// a log nor send commands to a terminal. Thread-safety: pure functions. Both leave text that they have made as it is.
#pragma once

#include <string>
#include <string_view>

namespace regatta::base {

// Control characters, bytes that are no UTF-8 and characters that change the direction of text become \n, \x1b, \u202e.
// Other UTF-8 stays as it is, a backslash too.
std::string Printable(std::string_view text);

// The same for text of several lines: the ends of lines stay.
std::string PrintableLines(std::string_view text);

}  // namespace regatta::base
