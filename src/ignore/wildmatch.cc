#include "ignore/wildmatch.h"

#include <cstdint>
#include <vector>

#include "base/mutant.h"

namespace belay {
namespace {

constexpr size_t kNone = std::string_view::npos;

// --- sets: [a-z], [!x], [[:alpha:]] --------------------------------------------------

// git's own character classes: ASCII, and only these four bytes are spaces.
bool IsUpper(unsigned char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(unsigned char c) { return c >= 'a' && c <= 'z'; }
bool IsAlpha(unsigned char c) { return IsUpper(c) || IsLower(c); }
bool IsDigit(unsigned char c) { return c >= '0' && c <= '9'; }
bool IsSpace(unsigned char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool IsGraph(unsigned char c) { return c > 0x20 && c < 0x7f; }

struct ClassAnswer {
  bool known = true;
  bool in = false;
};

ClassAnswer InClass(std::string_view name, unsigned char c, bool fold_case) {
  auto is = [](bool in) { return ClassAnswer{true, in}; };
  if (name == "alnum") return is(IsAlpha(c) || IsDigit(c));
  if (name == "alpha") return is(IsAlpha(c));
  if (name == "blank") return is(c == ' ' || c == '\t');
  if (name == "cntrl") return is(c < 0x20 || c == 0x7f);
  if (name == "digit") return is(IsDigit(c));
  if (name == "graph") return is(IsGraph(c));
  if (name == "lower") return is(IsLower(c));
  if (name == "print") return is(IsGraph(c) || c == ' ');
  if (name == "punct") return is(IsGraph(c) && !IsAlpha(c) && !IsDigit(c));
  if (name == "space") return is(IsSpace(c));
  // The byte was folded to lower case before it came here.
  if (name == "upper") return is(IsUpper(c) || (fold_case && IsLower(c)));
  if (name == "xdigit")
    return is(IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
  return {false, false};
}

struct SetAnswer {
  size_t end = kNone;  // just after the `]`; kNone: this set can never match
  bool in = false;
};

// The set whose `[` is at pattern[at], asked about the byte `c` (folded already when
// case is). Single members are compared as they stand, so that `[A]` matches nothing
// when case is folded; only ranges and [:upper:] look at the other case.
SetAnswer InSet(std::string_view pattern, size_t at, unsigned char c, bool fold_case) {
  const size_t size = pattern.size();
  auto byte = [&](size_t i) { return static_cast<unsigned char>(pattern[i]); };
  size_t i = at + 1;
  bool negated = false;
  if (i < size && (pattern[i] == '!' || pattern[i] == '^')) {
    negated = true;
    ++i;
  }
  bool in = false;
  unsigned char before = 0;  // what a `-` would start a range with; 0 = nothing
  size_t close = 0;  // the last `]` found; looked for again only when we are past it
  // The first member may be a `]`.
  for (bool first = true; first || i >= size || pattern[i] != ']'; first = false) {
    if (i >= size) return {};
    if (pattern[i] == '\\') {
      if (++i >= size) return {};
      before = byte(i++);
      in |= c == before;
    } else if (pattern[i] == '-' && before != 0 && i + 1 < size &&
               pattern[i + 1] != ']') {
      ++i;
      if (pattern[i] == '\\' && ++i >= size) return {};
      const unsigned char last = byte(i++);
      auto within = [&](unsigned char x) { return x >= before && x <= last; };
      in |= within(c);
      if (fold_case && IsLower(c)) in |= within(static_cast<unsigned char>(c - 32));
      before = 0;
    } else if (pattern[i] == '[' && i + 1 < size && pattern[i + 1] == ':') {
      const size_t name = i + 2;
      if (close < name) close = pattern.find(']', name);
      if (close == kNone) return {};
      if (close == name || pattern[close - 1] != ':') {
        before = '[';  // no `:]`: a plain member after all
        in |= c == before;
        ++i;
        continue;
      }
      ClassAnswer answer =
          InClass(pattern.substr(name, close - 1 - name), c, fold_case);
      if (!answer.known) return {};
      in |= answer.in;
      before = 0;
      i = close + 1;
    } else {
      before = byte(i++);
      in |= c == before;
    }
  }
  return {i + 1, in != negated};
}

// --- stars ---------------------------------------------------------------------------

struct Stars {
  size_t end;  // after the last of them
  bool deep;   // crosses slashes
};

// The run of stars at pattern[at]. In a path two or more cross slashes only when they
// fill a component: at the start or after `/`, and before `/` or the end.
Stars ReadStars(std::string_view pattern, size_t at, bool path) {
  size_t end = at + 1;
  while (end < pattern.size() && pattern[end] == '*') ++end;
  if (!path) return {end, true};
  if (end - at < 2) return {end, false};
  if (BELAY_MUTANT("double-star-anywhere")) return {end, true};
  const std::string_view after = pattern.substr(end);
  const bool deep = (at == 0 || pattern[at - 1] == '/') &&
                    (after.empty() || after[0] == '/' || after.starts_with("\\/"));
  return {end, deep};
}

// Everything but stars takes one byte of text.
enum class Step { kMatch, kMismatch, kNever };

// One element of the pattern against one byte; moves `at` behind the element when it
// matches.
Step MatchOne(std::string_view pattern, size_t& at, char text, WildFlags flags) {
  if (flags.fold_case) text = FoldByte(text);
  switch (pattern[at]) {
    case '?':
      if (flags.path && text == '/') return Step::kMismatch;
      ++at;
      return Step::kMatch;
    case '[': {
      SetAnswer set =
          InSet(pattern, at, static_cast<unsigned char>(text), flags.fold_case);
      if (set.end == kNone) return Step::kNever;
      if (!set.in || (flags.path && text == '/')) return Step::kMismatch;
      at = set.end;
      return Step::kMatch;
    }
    case '\\':
      if (at + 1 >= pattern.size()) return Step::kNever;
      // Not folded: `\A` matches nothing when case is.
      if (pattern[at + 1] != text &&
          !(BELAY_MUTANT("fold-escaped-letters") && FoldByte(pattern[at + 1]) == text))
        return Step::kMismatch;
      at += 2;
      return Step::kMatch;
    default: {
      const char c = flags.fold_case ? FoldByte(pattern[at]) : pattern[at];
      if (c != text) return Step::kMismatch;
      ++at;
      return Step::kMatch;
    }
  }
}

bool IsSpecial(char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; }

// Where matching goes on when it fails: the pattern behind the stars, and the first
// byte of the text that they do not swallow.
struct Retry {
  size_t pattern = kNone;
  size_t text = 0;
};

// Behind stars that end at pattern[p]: the first place at or after text[from] where
// what follows them can begin; kNone when they would have to swallow a slash (`in` one
// component) or the end. Only saves time: trying each place gives the same.
size_t NextPlace(std::string_view pattern, size_t p, std::string_view text, size_t from,
                 bool in_component, bool fold_case) {
  if (IsSpecial(pattern[p])) return from;
  const char want = fold_case ? FoldByte(pattern[p]) : pattern[p];
  for (; from < text.size(); ++from) {
    const char c = fold_case ? FoldByte(text[from]) : text[from];
    if (c == want) return from;
    if (in_component && c == '/') return kNone;
  }
  return kNone;
}

}  // namespace

// Only the last `*` and the last `**` are ever tried again. That is enough: a `**` that
// was reached can swallow whatever an earlier star would have, and a `*` cannot leave
// its component, so that earlier ones can only bring us to the same places. The work
// is therefore (bytes a star may stand for) x (pattern up to the next star), which sums
// up to pattern x text.
bool Wildmatch(std::string_view pattern, std::string_view text, WildFlags flags) {
  size_t p = 0;
  size_t t = 0;
  Retry star;
  Retry deep;
  // Puts what follows the last `*` at the next place from `from` on.
  auto place_star = [&](size_t from) {
    star.text = NextPlace(pattern, star.pattern, text, from, true, flags.fold_case);
    if (star.text == kNone) star.pattern = kNone;
    t = star.text;
    p = star.pattern;
    return p != kNone;
  };
  // The same for the last `**`, which in a path goes from component to component.
  auto place_deep = [&](size_t from) {
    star = {};
    if (!flags.path)
      from = NextPlace(pattern, deep.pattern, text, from, false, flags.fold_case);
    deep.text = from;
    t = from;
    p = deep.pattern;
    return from != kNone;
  };
  auto after_slash = [&](size_t from) {
    const size_t slash = text.find('/', from);
    return slash == kNone ? kNone : slash + 1;
  };

  for (;;) {
    if (p < pattern.size() && pattern[p] == '*') {
      const Stars stars = ReadStars(pattern, p, flags.path);
      p = stars.end;
      if (!stars.deep) {
        if (p == pattern.size()) {
          if (text.find('/', t) == kNone) return true;
          star = {};  // more of this component does not help
        } else {
          star.pattern = p;
          if (place_star(t)) continue;
        }
      } else {
        if (p == pattern.size()) return true;
        size_t from = t;
        if (flags.path) {
          // `**/` is nothing, or anything that ends in a slash; `**\/` is not nothing.
          const bool escaped = pattern[p] == '\\';
          p += escaped ? 2 : 1;
          if (escaped) from = after_slash(t);
        }
        deep.pattern = p;
        if (place_deep(from)) continue;
        return false;
      }
    } else if (p == pattern.size()) {
      if (t == text.size()) return true;
    } else {
      if (t == text.size()) return false;  // a later start would have even less
      const Step step = MatchOne(pattern, p, text[t], flags);
      if (step == Step::kMatch) {
        ++t;
        continue;
      }
      if (step == Step::kNever) return false;
    }

    // Failed here: let the last star swallow more, then the last `**`.
    if (star.pattern != kNone && star.text < text.size() && text[star.text] != '/' &&
        place_star(star.text + 1))
      continue;
    if (deep.pattern == kNone) return false;
    if (!flags.path && deep.text >= text.size()) return false;
    if (!place_deep(flags.path ? after_slash(deep.text) : deep.text + 1)) return false;
  }
}

bool WildmatchCouldGoOn(std::string_view pattern, std::string_view start,
                        WildFlags flags) {
  // Every place in the pattern that the bytes so far can lead to.
  std::vector<bool> here(pattern.size() + 1, false);
  std::vector<bool> next(pattern.size() + 1, false);
  // Adds a place and those reached from it without a byte.
  auto add = [&](std::vector<bool>& places, size_t at) {
    for (;;) {
      if (places[at]) return;
      places[at] = true;
      if (at == pattern.size() || pattern[at] != '*') return;
      const Stars stars = ReadStars(pattern, at, flags.path);
      // `**/` may be nothing: behind its slash. (A star there is not part of this run.)
      if (flags.path && stars.deep && stars.end < pattern.size() &&
          pattern[stars.end] == '/') {
        places[stars.end] = true;
        at = stars.end + 1;
      } else {
        at = stars.end;
      }
    }
  };
  add(here, 0);
  for (char c : start) {
    bool alive = false;
    for (size_t at = 0; at < pattern.size(); ++at) {
      if (!here[at]) continue;
      if (pattern[at] == '*') {
        if (ReadStars(pattern, at, flags.path).deep || c != '/') {
          add(next, at);
          alive = true;
        }
        continue;
      }
      size_t behind = at;
      if (MatchOne(pattern, behind, c, flags) != Step::kMatch) continue;
      add(next, behind);
      alive = true;
    }
    if (!alive) return false;
    here.swap(next);
    next.assign(next.size(), false);
  }
  for (size_t at = 0; at < pattern.size(); ++at)
    if (here[at]) return true;
  return false;
}

size_t LiteralPrefix(std::string_view pattern) {
  const size_t at = pattern.find_first_of("*?[\\");
  return at == kNone ? pattern.size() : at;
}

std::string_view LiteralTail(std::string_view pattern) {
  const size_t last = pattern.find_last_of("*?[]\\");
  if (last == kNone) return pattern;
  // What follows a backslash may be escaped by it.
  const size_t from = last + (pattern[last] == '\\' ? 2 : 1);
  return from < pattern.size() ? pattern.substr(from) : std::string_view{};
}

bool EqualFolded(std::string_view a, std::string_view b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (FoldByte(a[i]) != FoldByte(b[i])) return false;
  return true;
}

}  // namespace belay
