#include "diff/word_diff.h"

#include "diff/token_diff.h"

namespace belay {

namespace {

enum class Sort { kWord, kBlank, kOther };

Sort SortOf(char c) {
  const auto u = static_cast<unsigned char>(c);
  if (u >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
      (c >= 'A' && c <= 'Z'))
    return Sort::kWord;
  return c == ' ' || c == '\t' ? Sort::kBlank : Sort::kOther;
}

Tokens WordsOf(std::string_view text) {
  Tokens out{text, {}};
  for (size_t at = 0; at < text.size();) {
    out.starts.push_back(static_cast<uint32_t>(at));
    const Sort sort = SortOf(text[at++]);
    while (sort != Sort::kOther && at < text.size() && SortOf(text[at]) == sort) ++at;
  }
  out.starts.push_back(static_cast<uint32_t>(text.size()));
  return out;
}

}  // namespace

std::vector<WordPiece> DiffWords(std::string_view a, std::string_view b) {
  std::vector<WordPiece> pieces;
  auto add = [&](char op, std::string_view text) {
    if (!text.empty()) pieces.push_back({op, text});
  };
  if (a.size() + b.size() > kMaxWordText) {
    add('-', a);
    add('+', b);
    return pieces;
  }
  const Tokens of_a = WordsOf(a), of_b = WordsOf(b);
  uint32_t at = 0;
  for (const TokenEdit& edit : DiffTokens(of_a, of_b)) {
    const uint32_t a0 = of_a.starts[edit.a_begin], a1 = of_a.starts[edit.a_end];
    const uint32_t b0 = of_b.starts[edit.b_begin], b1 = of_b.starts[edit.b_end];
    add(' ', a.substr(at, a0 - at));
    add('-', a.substr(a0, a1 - a0));
    add('+', b.substr(b0, b1 - b0));
    at = a1;
  }
  add(' ', a.substr(at));
  return pieces;
}

}  // namespace belay
