// Words in names, notes, descriptions, prompts and paths.

#include <algorithm>
#include <unordered_set>

#include "base/mutant.h"
#include "store/catalog_internal.h"

namespace belay {

namespace {

constexpr size_t kMaxWords = 64, kMaxSearch = 4096, kRanked = 2000;
// Looked through for what full text has no words for: `belay search` among 20,000 takes
// 29 ms of CPU so, and 28 ms for a word that thousands have.
constexpr size_t kLookedThrough = 10'000;

// A byte that full text may find a word in; whether it does, FTS5 knows.
bool MayBeWord(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z') || byte >= 0x80;
}

struct Term {
  std::string text;
  bool quoted = false;
};

// Split at blanks and quotes; a quote cannot be in one.
std::vector<Term> TermsOf(std::string_view words) {
  const std::string text = ForSearch(words);
  std::vector<Term> out;
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte <= ' ' || byte == 0x7f) {
      ++at;
      continue;
    }
    const size_t close = byte == '"' ? text.find('"', at + 1) : std::string::npos;
    if (close != std::string::npos) {
      out.push_back({text.substr(at + 1, close - at - 1), true});
      at = close + 1;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && static_cast<unsigned char>(text[end]) > ' ' &&
           text[end] != '"' && text[end] != 0x7f)
      ++end;
    out.push_back({text.substr(at, end - at), false});
    at = end;
  }
  return out;
}

// Every word quoted, so that nothing in it is syntax. They stand side by side, without
// AND: FTS5 then passes over what turns out to hold no word at all.
Result<std::string> SearchExpression(const std::vector<Term>& terms) {
  size_t count = 0;
  std::string out;
  bool last_is_open = false;  // the last word may be unfinished
  for (const auto& [word, quoted] : terms) {
    const bool prefix = !quoted && word.ends_with('*');
    if (std::none_of(word.begin(), word.end(), MayBeWord)) continue;
    ++count;
    out += out.empty() ? "\"" : " \"";
    // Letters, digits and what may be one stay; the rest separates, as the tokenizer
    // would have it.
    if (BELAY_MUTANT("search-by-syntax")) {
      out.pop_back();
      out += word;
      continue;
    }
    for (char c : word) out += MayBeWord(c) ? c : ' ';
    out += '"';
    if (prefix) out += " *";
    // Nobody who writes c++ is about to write more of a word.
    last_is_open = !quoted && !prefix && MayBeWord(word.back());
  }
  if (count > kMaxWords) return Error(Errc::kInvalid, "search: more than 64 words");
  if (last_is_open) out += " *";
  return out;
}

// What full text may have no words for (symbols), or only long ones (of languages that
// put no blanks between words).
std::vector<std::string> Pieces(const std::vector<Term>& terms) {
  bool plain = false, other = false;
  std::vector<std::string> out;
  for (const auto& [word, quoted] : terms) {
    for (char c : word) {
      plain |= MayBeWord(c) && static_cast<unsigned char>(c) < 0x80;
      other |= static_cast<unsigned char>(c) >= 0x80;
    }
    std::string_view piece = word;
    if (!quoted && piece.starts_with('"')) piece.remove_prefix(1);  // not closed
    if (!piece.empty()) out.emplace_back(piece);
  }
  if (plain && !other) out.clear();
  if (out.size() > kMaxWords) out.resize(kMaxWords);
  return out;
}

}  // namespace

Result<std::vector<CatalogEntry>> CatalogDb::Search(
    const std::optional<RootId>& root, std::string_view words, size_t limit,
    const std::optional<std::string>& session) {
  if (words.size() > kMaxSearch)
    return Error(Errc::kInvalid, "more than 4096 bytes of words");
  const std::vector<Term> terms = TermsOf(words);
  BELAY_TRY(std::string expression, SearchExpression(terms));
  BELAY_TRY(auto roots, SharingPath(root));
  std::vector<uint64_t> found;
  if (!expression.empty()) {
    BELAY_TRY(found, SearchWords(expression, root.has_value(), roots, limit, session));
  }
  if (found.empty()) {
    BELAY_TRY(found,
              SearchPieces(Pieces(terms), root.has_value(), roots, limit, session));
  }
  BELAY_TRY(auto out, LoadEntries(found));
  for (const CatalogEntry& entry : out)
    if ((root && !IsOneOf(roots, entry.checkpoint.root)) ||
        (session && entry.checkpoint.session != *session))
      return RowDisagrees(entry.checkpoint.seq);
  return out;
}

Result<std::vector<uint64_t>> CatalogDb::SearchWords(
    const std::string& expression, bool of_root, const std::vector<RootId>& roots,
    size_t limit, const std::optional<std::string>& session) {
  // Weights: name, note, description, prompt, paths. Ranking 20,000 checkpoints that
  // share a word took 60 ms, so only the newest kRanked of them are ranked; those that
  // have it all in the name come first, then those that have it in name and note, and
  // are looked for by themselves, lest an old name drown in newer paths or in a note
  // that says it twice.
  std::string sql =
      "SELECT rowid FROM (SELECT s.rowid, bm25(search, 10, 6, 3, 2, 1) AS score "
      "FROM search s";
  if (of_root || session) sql += " CROSS JOIN checkpoints c ON c.seq=s.rowid";
  sql += " WHERE search MATCH ?";
  if (of_root) sql += RootIs("c.root", roots);
  if (session) sql += " AND c.session=?";
  sql += " ORDER BY s.rowid DESC LIMIT ?) ORDER BY score, rowid DESC LIMIT ?";
  std::vector<uint64_t> found;
  std::unordered_set<uint64_t> seen;
  for (const std::string& match : {"{name} : (" + expression + ")",
                                   "{name note} : (" + expression + ")", expression}) {
    BELAY_TRY(Statement * find, Prepare(sql));
    find->BindText(match);
    BindRoots(*find, roots);
    if (session) find->Bind(AsBytes(*session));
    find->Bind(AsLimit(std::max(limit, kRanked)));
    BELAY_TRY(auto more, Sequences(find->Bind(AsLimit(limit))));
    for (uint64_t seq : more)
      if (found.size() < limit && seen.insert(seq).second) found.push_back(seq);
    if (found.size() >= limit) break;
  }
  return found;
}

Result<std::vector<uint64_t>> CatalogDb::SearchPieces(
    const std::vector<std::string>& pieces, bool of_root,
    const std::vector<RootId>& roots, size_t limit,
    const std::optional<std::string>& session) {
  std::vector<uint64_t> found;
  if (pieces.empty()) return found;
  // `named`: how many of the pieces the name has.
  std::string named = "0", every;
  for (size_t i = 0; i < pieces.size(); ++i) {
    named += "+(instr(lower(s.name),lower(?))>0)";
    every += i == 0 ? " WHERE " : " AND ";
    every +=
        "instr(lower(s.name||char(10)||s.note||char(10)||s.description||char(10)||"
        "s.prompt||char(10)||s.paths),lower(?))>0";
  }
  std::string sql = "SELECT s.rowid FROM (SELECT seq FROM checkpoints WHERE seq>0";
  if (of_root) sql += RootIs("root", roots);
  if (session) sql += " AND session=?";
  sql += " ORDER BY seq DESC LIMIT ?) c CROSS JOIN search s ON s.rowid=c.seq" + every +
         " ORDER BY " + named + " DESC, s.rowid DESC LIMIT ?";
  BELAY_TRY(Statement * find, Prepare(sql));
  BindRoots(*find, roots);
  if (session) find->Bind(AsBytes(*session));
  find->Bind(AsLimit(kLookedThrough));
  for (int times = 0; times < 2; ++times)
    for (const std::string& piece : pieces) find->BindText(piece);
  return Sequences(find->Bind(AsLimit(limit)));
}

}  // namespace belay
