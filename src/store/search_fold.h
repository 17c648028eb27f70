#pragma once

// What full text takes for the same word: small letters, and no accents.

#include <string>
#include <string_view>

namespace belay {

// As the catalogue's FTS5 folds text (unicode61, remove_diacritics 2), for Latin,
// Greek, Cyrillic and Armenian letters; all else stays as it is, also what is no UTF-8.
// SearchFold.IsWhatFullTextDoes holds the two together.
std::string FoldForSearch(std::string_view text);

}  // namespace belay
