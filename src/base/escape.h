#pragma once

// The one way bytes become text for a person's terminal.
//
// Valid printable UTF-8 stays as it is; control characters (ESC, CR, LF, tab), bytes
// that are not UTF-8, bidirectional overrides and other invisible formatting characters
// and the backslash become \n, \r, \t, \\ or \xNN. The result has no control
// character, so a hostile file name cannot move the cursor, colour or reorder a line.

#include <cstdint>
#include <string>
#include <string_view>

namespace belay {

std::string EscapeForDisplay(std::string_view bytes);

// The same for text that people wrote (names, notes, descriptions, ids of sessions): a
// backslash is doubled only before n, r, t, x, another backslash or what is escaped,
// where it would be read as the beginning of an escape. So a regular expression looks
// as it was written, and still no two texts look the same.
std::string EscapeText(std::string_view bytes);

// `text` as a shell reads it back as one word: for commands that somebody may paste.
// What a terminal would obey or not show is written as bash, zsh and ksh read it.
std::string ShellWord(std::string_view text);

// True when all of `bytes` is well-formed UTF-8 (no surrogates, no overlong forms).
bool IsValidUtf8(std::string_view bytes);

// Length of the well-formed UTF-8 sequence at the start of `bytes`, 0 when there is
// none; its code point goes to `code_point`.
size_t DecodeUtf8(std::string_view bytes, char32_t& code_point);
void AppendUtf8(std::string& out, char32_t code_point);

// "1 file", "3 files".
std::string Counted(uint64_t count, std::string_view noun);

}  // namespace belay
