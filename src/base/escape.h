#pragma once

// The one way bytes become text for a person's terminal.
//
// Valid printable UTF-8 stays as it is; control characters (ESC, CR, LF, tab), bytes
// that are not UTF-8, bidirectional overrides and other invisible formatting characters
// and the backslash become \n, \r, \t, \\ or \xNN. The result has no control
// character, so a hostile file name cannot move the cursor, colour or reorder a line.

#include <string>
#include <string_view>

namespace belay {

std::string EscapeForDisplay(std::string_view bytes);

// True when all of `bytes` is well-formed UTF-8 (no surrogates, no overlong forms).
bool IsValidUtf8(std::string_view bytes);

// Length of the well-formed UTF-8 sequence at the start of `bytes`, 0 when there is
// none; its code point goes to `code_point`.
size_t DecodeUtf8(std::string_view bytes, char32_t& code_point);

}  // namespace belay
