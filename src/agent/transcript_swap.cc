#include "agent/transcript_swap.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "agent/loopback_http.h"
#include "base/escape.h"
#include "base/mutant.h"

namespace belay {
namespace {

constexpr size_t kMostQuoted = 4;  // strings in strings that are told apart

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '_' || c == '-' || static_cast<unsigned char>(c) >= 0x80;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// What stands there is a line feed, a tab, ...: no part of a name. However often it was
// quoted: what a tool said may have JSON in it.
bool EndsWithEscape(std::string_view text) {
  constexpr std::string_view kLetters = "nrtbf";
  if (text.size() >= 2 && text[text.size() - 2] == '\\' &&
      kLetters.find(text.back()) != std::string_view::npos)
    return !BELAY_MUTANT("paths-begin-no-lines");
  constexpr size_t kUnicode = 6;  // \u001b
  if (text.size() < kUnicode) return false;
  const std::string_view last = text.substr(text.size() - kUnicode);
  return last.starts_with("\\u") &&
         std::ranges::all_of(last.substr(2), [](char c) { return HexDigit(c) >= 0; });
}

// Of what begins at one place the longest comes first.
std::vector<TranscriptSwap> LongestFirst(std::vector<TranscriptSwap> swaps) {
  if (!BELAY_MUTANT("any-path-that-fits-is-swapped"))
    std::ranges::stable_sort(swaps, std::greater<>(), [](const TranscriptSwap& swap) {
      return swap.from.size();
    });
  return swaps;
}

// As it stands in a JSON string.
std::string Quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr std::string_view kShort = "\b\f\n\r\t\"\\", kLetter = "bfnrt\"\\";
  std::string out;
  for (const char c : text) {
    if (const size_t at = kShort.find(c); at != std::string_view::npos) {
      out += '\\';
      out += kLetter[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out;
}

std::string WithSlashes(std::string_view path, std::string_view slash) {
  std::string out;
  for (const char c : path)
    if (c == '/')
      out += slash;
    else
      out += c;
  return out;
}

// Which members say whose conversation it is, by the objects that they are in.
struct IdPlace {
  std::string_view in, name;  // any name, where that is empty
};
constexpr IdPlace kIdPlaces[] = {
    {"", "sessionId"},  // Claude Code, Qwen Code, Gemini CLI
    {"", "session_id"},
    {"", "projectHash"},
    {"/$set", "sessionId"},
    {"/$set", "projectHash"},
    {"/payload", "id"},  // Codex CLI
    {"/payload", "session_id"},
    {"/payload", "thread_id"},
    {"/data", "sessionId"},        // Copilot CLI
    {"/data/input", "sessionId"},  // of a hook
    {"/data/usage/accounting", "sourceSessionId"},
};
// Where members are named by it.
constexpr IdPlace kNamedById[] = {{"/data/usageAccountingWatermarks", ""}};

bool LeadsToIds(std::string_view path) {
  const auto leads = [path](const IdPlace& place) {
    return place.in.starts_with(path) &&
           (place.in.size() == path.size() || place.in[path.size()] == '/');
  };
  return std::ranges::any_of(kIdPlaces, leads) ||
         std::ranges::any_of(kNamedById, leads);
}

// Where in a JSON value the reader is, as far as that leads to ids.
class Place {
 public:
  void Begin() { *this = Place(); }  // a new line
  void Structure(char c) {
    switch (c) {
      case '{':
        if (beside_ > 0 || is_name_ || (within_ && !LeadsToIds(path_ + "/" + name_))) {
          ++beside_;
          return;
        }
        if (within_) path_ += "/" + name_;
        within_ = is_name_ = true;
        return;
      case '[':
        ++beside_;
        return;
      case '}':
      case ']':
        is_name_ = false;
        if (beside_ > 0) {
          --beside_;
        } else if (within_) {
          within_ = !path_.empty();
          path_.erase(path_.empty() ? 0 : path_.rfind('/'));
        }
        return;
      case ',':
        is_name_ = beside_ == 0 && within_;
        return;
      case ':':
        if (beside_ == 0) is_name_ = false;
        return;
      default:
        return;
    }
  }
  // A string that ended here. Whether it says whose conversation this is.
  bool IsId(const std::string& text) {
    if (beside_ > 0 || !within_) return false;
    const bool is_name = is_name_;
    if (is_name) name_ = text;
    const auto here = [&](const IdPlace& place) {
      return place.in == path_ && (place.name.empty() || place.name == name_);
    };
    return is_name ? std::ranges::any_of(kNamedById, here)
                   : std::ranges::any_of(kIdPlaces, here);
  }

 private:
  std::string path_, name_;  // of the object; of the member
  uint64_t beside_ = 0;      // objects and lists within one that is none of those
  bool within_ = false, is_name_ = false;
};

class Swapper {
 public:
  Swapper(const std::vector<TranscriptSwap>& swaps, const TranscriptSink& sink)
      : sink_(sink) {
    for (const TranscriptSwap& swap : LongestFirst(swaps)) {
      const bool is_path = swap.kind == TranscriptSwap::Kind::kPath;
      // A path that stays keeps what begins as a shorter one.
      if (swap.from.empty() || (swap.from == swap.to && !(is_path && swaps.size() > 1)))
        continue;
      if (!is_path) {
        const bool anywhere = swap.kind == TranscriptSwap::Kind::kString ||
                              BELAY_MUTANT("what-was-said-is-an-id");
        (anywhere ? strings_ : ids_).emplace(swap.from, swap.to);
        longest_string_ = std::max(longest_string_, swap.from.size());
        continue;
      }
      const std::string url = UrlEncoded(swap.to, "/");
      Add(swap.from, swap.to, url);
      // In JSON that a tool said, and in the URL of a file, where that is written
      // otherwise.
      const std::string from_json = Quoted(swap.from), to_json = Quoted(swap.to);
      if (from_json != swap.from) Add(from_json, to_json, url);
      // Amid a text JSON is not read as such: as it is written as a rule. The third is
      // what is quoted twice there.
      for (const std::string_view slash : {"\\/", "\\u002f", "\\\\/", "\\u002F"})
        if (!BELAY_MUTANT("slashes-amid-a-text-are-plain"))
          Add(WithSlashes(from_json, slash), WithSlashes(to_json, slash), url);
      if (const std::string from = UrlEncoded(swap.from, "/"); from != swap.from)
        Add(from, url, url);
    }
  }

  Status Take(std::string_view text) {
    held_ += text;
    Read();
    return held_.size() > (64 << 10) ? Work(false) : Ok();
  }
  Status Finish() {
    Flush(0);
    return Work(true);
  }

 private:
  struct Rule {
    std::string from, to, url;
  };
  // Characters that stand one behind the other in what came in, too: from where on in
  // plain_, and in held_; in how many strings.
  struct Run {
    size_t plain = 0, held = 0, quoted = 0;
  };
  // A place in plain_ that is written otherwise.
  struct Swap {
    size_t begin = 0, end = 0;
    std::string to;
  };
  // Of a text in which strings are: the document, then a string that is JSON, ...
  struct Level {
    bool inside = false;  // a string
    enum class In : uint8_t { kPlain, kEscape, kUnicode } in = In::kPlain;
    uint8_t digits = 0;
    uint32_t code = 0, high = 0;  // the first half of a pair waits for the other
    size_t escape = 0, pair = 0;  // where in held_ they begin
    // Whether the string is JSON, as its first characters tell.
    enum class Json : uint8_t { kUnknown, kOpened, kYes, kNo } json = Json::kUnknown;
    char opened = 0;
  };

  void Add(std::string from, std::string to, std::string url) {
    longest_ = std::max(longest_, from.size());
    rules_.push_back(
        {.from = std::move(from), .to = std::move(to), .url = std::move(url)});
  }

  // --- what comes in, character by character
  // ------------------------------------------

  void Read() {
    Level& top = levels_[0];
    while (read_ < held_.size()) {
      if (top.inside && top.in == Level::In::kPlain && top.high == 0 &&
          top.json == Level::Json::kNo) {
        const size_t end = std::min(held_.find_first_of("\"\\\n", read_), held_.size());
        if (end > read_) {
          const std::string_view text =
              std::string_view(held_).substr(read_, end - read_);
          Note(text);
          Emit(text, read_, 1);
          read_ = end;
          continue;
        }
      }
      const char c = held_[read_];
      // No string goes on there: whatever that was, the next line begins anew.
      if (c == '\n') {
        Flush(0);
        place_.Begin();
        Emit("\n", read_, 0);
      } else {
        Push(0, std::string_view(&c, 1), read_);
      }
      ++read_;
    }
  }

  void Emit(std::string_view text, size_t held, size_t quoted) {
    const Run* last = runs_.empty() ? nullptr : &runs_.back();
    if (last == nullptr || last->quoted != quoted ||
        last->held + (plain_.size() - last->plain) != held)
      runs_.push_back({.plain = plain_.size(), .held = held, .quoted = quoted});
    plain_ += text;
  }

  // A character of the text of that level; it begins there in held_.
  void Push(size_t level, std::string_view text, size_t held) {
    Level& at = levels_[level];
    const char c = text.size() == 1 ? text[0] : '\0';
    if (!at.inside) {
      Emit(text, held, level);
      if (c == '"') {
        at = {.inside = true};
        if (level == 0) Begin();
      } else if (level == 0) {
        place_.Structure(c);
      }
      return;
    }
    switch (at.in) {
      case Level::In::kPlain:
        if (c == '\\') {
          at.in = Level::In::kEscape;
          at.escape = held;
          return;
        }
        FlushPair(level);
        if (c != '"') return Content(level, text, held);
        Flush(level);
        Emit(text, held, level);
        if (level == 0) End();
        return;
      case Level::In::kEscape:
        if (c == 'u') {
          at.in = Level::In::kUnicode;
          at.digits = 0;
          at.code = 0;
          return;
        }
        FlushPair(level);
        at.in = Level::In::kPlain;
        if (const char out = Unescaped(c); out != '\0')
          return Content(level, std::string_view(&out, 1), at.escape);
        Content(level, "\\", at.escape);
        return Push(level, text, held);
      case Level::In::kUnicode:
        if (const int digit = HexDigit(c); digit >= 0) {
          at.code = at.code * 16 + static_cast<uint32_t>(digit);
          if (++at.digits == 4) Unicode(level);
          return;
        }
        FlushPair(level);
        at.in = Level::In::kPlain;
        Content(level, "\\", at.escape);
        return Push(level, text, held);
    }
  }

  static char Unescaped(char c) {
    static constexpr std::string_view kLetter = "bfnrt\"\\/", kIs = "\b\f\n\r\t\"\\/";
    const size_t at = kLetter.find(c);
    return at == std::string_view::npos ? '\0' : kIs[at];
  }

  void Unicode(size_t level) {
    Level& at = levels_[level];
    at.in = Level::In::kPlain;
    const bool low = at.code >= 0xdc00 && at.code <= 0xdfff;
    std::string out;
    if (at.high != 0 && low) {
      AppendUtf8(out, 0x10000 + ((at.high - 0xd800) << 10) + (at.code - 0xdc00));
      at.high = 0;
      return Content(level, out, at.pair);
    }
    FlushPair(level);
    if (at.code >= 0xd800 && at.code <= 0xdbff) {
      at.high = at.code;
      at.pair = at.escape;
      return;
    }
    AppendUtf8(out, low ? 0xfffd : at.code);
    Content(level, out, at.escape);
  }

  // What waits for more that does not come. Each byte of held_ belongs to a character.
  void FlushPair(size_t level) {
    Level& at = levels_[level];
    if (at.high == 0) return;
    at.high = 0;
    Content(level, "\xef\xbf\xbd", at.pair);
  }
  // The string of that level ends, and what is in it.
  void Flush(size_t level) {
    for (size_t i = levels_.size(); i-- > level;) {
      Level& at = levels_[i];
      FlushPair(i);
      if (at.in != Level::In::kPlain) {
        at.in = Level::In::kPlain;
        Content(i, "\\", at.escape);
      }
    }
    for (size_t i = level; i < levels_.size(); ++i) levels_[i] = {};
  }

  // A character that is in a string of that level.
  void Content(size_t level, std::string_view text, size_t held) {
    using Json = Level::Json;
    Level& at = levels_[level];
    if (level == 0) Note(text);
    if (level + 1 == levels_.size() || BELAY_MUTANT("no-json-is-in-json"))
      at.json = Json::kNo;
    const char c = text.size() == 1 ? text[0] : '\0';
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (at.json == Json::kUnknown && !blank) {
      at.json = c == '{' || c == '[' ? Json::kOpened : Json::kNo;
      at.opened = c;
    } else if (at.json == Json::kOpened && !blank) {
      const std::string_view begins = at.opened == '{' ? "\"}" : "\"{[]";
      at.json = c != '\0' && begins.find(c) != std::string_view::npos ? Json::kYes
                                                                      : Json::kNo;
    }
    if (at.json == Json::kYes)
      Push(level + 1, text, held);
    else
      Emit(text, held, level + 1);
  }

  // --- strings that are swapped as a whole
  // --------------------------------------------

  void Begin() {
    string_.clear();
    string_begin_ = plain_.size() - 1;
  }
  void Note(std::string_view text) {
    if (string_.size() <= KeptOfString()) string_ += text.substr(0, KeptOfString() + 1);
  }
  void End() {
    if (string_.size() > KeptOfString()) string_.clear();
    const bool is_id = place_.IsId(string_);
    auto found = strings_.find(string_);
    if (found == strings_.end()) {
      found = ids_.find(string_);
      if (!is_id || found == ids_.end()) return;
    }
    swaps_.push_back({.begin = string_begin_,
                      .end = plain_.size(),
                      .to = "\"" + Quoted(found->second) + "\""});
  }
  // Names of members are read, too.
  size_t KeptOfString() const { return std::max<size_t>(longest_string_, 32); }

  // --- paths
  // ----------------------------------------------------------------------------

  bool Fits(const Rule& rule, size_t at) const {
    const std::string_view plain = plain_;
    const std::string_view before = plain.substr(at - kLookBack, kLookBack);
    // A URL, and the sides of a diff, go on with a path right behind them.
    const bool within = (IsNameChar(before.back()) && !EndsWithEscape(before)) ||
                        before.back() == '/' || before.back() == '.';
    if (within && !before.ends_with("file://") && !before.ends_with(" a") &&
        !before.ends_with(" b"))
      return false;
    // All of it is in one string.
    const size_t end = at + rule.from.size();
    for (auto run = RunOf(at); run != runs_.end() && run->plain < end; ++run)
      if (run->quoted != RunOf(at)->quoted) return false;
    const std::string_view behind = plain.substr(end, 2);
    if (behind.empty()) return true;
    if (behind[0] == '.') return behind.size() < 2 || !IsNameChar(behind[1]);
    return !IsNameChar(behind[0]);
  }

  size_t FindFrom(const Rule& rule, size_t from) const {
    for (size_t at = plain_.find(rule.from, from); at != std::string::npos;
         at = plain_.find(rule.from, at + 1))
      if (Fits(rule, at)) return at;
    return SIZE_MAX;
  }

  Swap PathAt(const Rule& rule, size_t at) const {
    const bool url = std::string_view(plain_).substr(0, at).ends_with("file://");
    std::string to = url ? rule.url : rule.to;
    size_t quoted = std::max<size_t>(RunOf(at)->quoted, 1);
    if (BELAY_MUTANT("paths-are-not-quoted")) quoted = 0;
    for (; quoted > 0; --quoted) to = Quoted(to);
    return {.begin = at, .end = at + rule.from.size(), .to = std::move(to)};
  }

  // --- what goes out
  // --------------------------------------------------------------------

  std::vector<Run>::const_iterator RunOf(size_t plain) const {
    return std::ranges::upper_bound(runs_, plain, {}, &Run::plain) - 1;
  }
  size_t HeldAt(size_t plain) const {
    if (plain == plain_.size()) return read_;
    const Run& run = *RunOf(plain);
    return run.held + (plain - run.plain);
  }

  // Up to where all that could matter is there.
  Status Work(bool all) {
    const size_t wait = longest_ + KeptOfString() + 4;
    size_t safe = plain_.size();
    if (!all) {
      if (plain_.size() < kLookBack + wait) return Ok();
      safe -= wait;
    }
    std::vector<size_t> next(rules_.size());
    for (size_t r = 0; r < rules_.size(); ++r) next[r] = FindFrom(rules_[r], kLookBack);
    size_t done = kLookBack, used = 0;
    std::string out;
    while (true) {
      // The next place: a string, or a path, whichever comes first.
      while (used < swaps_.size() && swaps_[used].begin < done) ++used;
      std::optional<Swap> best;
      if (used < swaps_.size()) best = swaps_[used];
      for (size_t r = 0; r < rules_.size(); ++r) {
        if (next[r] < done) next[r] = FindFrom(rules_[r], done);
        if (next[r] != SIZE_MAX && (!best || next[r] < best->begin))
          best = PathAt(rules_[r], next[r]);
      }
      if (!best || best->begin >= safe) break;
      const size_t from = HeldAt(done);
      out.append(held_, from, HeldAt(best->begin) - from);
      out += best->to;
      done = best->end;
    }
    if (done < safe) {
      const size_t from = HeldAt(done);
      out.append(held_, from, HeldAt(safe) - from);
      done = safe;
    }
    Forget(done);
    return out.empty() ? Ok() : sink_(AsBytes(out));
  }

  // What went out, but for as much as is looked back at.
  void Forget(size_t plain) {
    if (plain == kLookBack) return;
    const size_t held = HeldAt(plain), gone = plain - kLookBack;
    const auto first = plain == plain_.size() ? runs_.end() : RunOf(plain);
    std::vector<Run> left(first, runs_.cend());
    for (Run& run : left) {
      if (run.plain < plain) {
        run.held += plain - run.plain;
        run.plain = plain;
      }
      run.plain -= gone;
      run.held -= held;
    }
    runs_ = std::move(left);
    std::erase_if(swaps_, [plain](const Swap& swap) { return swap.begin < plain; });
    for (Swap& swap : swaps_) {
      swap.begin -= gone;
      swap.end -= gone;
    }
    for (Level& level : levels_) {
      level.escape -= std::min(level.escape, held);
      level.pair -= std::min(level.pair, held);
    }
    string_begin_ -= std::min(string_begin_, gone);
    plain_.erase(0, gone);
    held_.erase(0, held);
    read_ -= held;
  }

  const TranscriptSink& sink_;
  std::vector<Rule> rules_;
  std::map<std::string, std::string, std::less<>> strings_, ids_;
  size_t longest_ = 0, longest_string_ = 0;

  std::string held_;  // as it came
  size_t read_ = 0;   // of that
  // The same as it is meant, behind what came before it and went.
  static constexpr size_t kLookBack = 7;
  std::string plain_ = std::string(kLookBack, ' ');
  std::vector<Run> runs_;
  std::array<Level, kMostQuoted> levels_;
  Place place_;
  std::string string_;  // of the document, as much of it as could matter
  size_t string_begin_ = 0;
  std::vector<Swap> swaps_;  // strings that ended, in their order
};

}  // namespace

Status SwapInto(const std::vector<TranscriptSwap>& swaps, const TranscriptSink& sink,
                const std::function<Status(const TranscriptSink&)>& text) {
  Swapper swapper(swaps, sink);
  BELAY_OK(text([&swapper](ByteSpan bytes) { return swapper.Take(AsText(bytes)); }));
  return swapper.Finish();
}

namespace {

// A value that needs no quotes.
bool IsPlainYaml(std::string_view value) {
  if (value.empty() || value.back() == ' ' || value.back() == ':') return false;
  return value.find(": ") == std::string_view::npos &&
         value.find(" #") == std::string_view::npos &&
         std::ranges::none_of(
             value, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

// All swapped at once: what is written there is not looked at again.
std::string SwappedValue(std::string_view value,
                         const std::vector<TranscriptSwap>& longest_first,
                         bool quoted) {
  std::string out;
  for (size_t at = 0; at < value.size();) {
    const std::string_view rest = value.substr(at);
    auto fits = [&](const TranscriptSwap& swap) {
      const std::string from = quoted ? Quoted(swap.from) : swap.from;
      if (from.empty() || !rest.starts_with(from)) return false;
      // Not of a directory whose name only begins so.
      return swap.kind != TranscriptSwap::Kind::kPath || rest.size() == from.size() ||
             std::string_view("/ \t\r\n\"',").find(rest[from.size()]) !=
                 std::string_view::npos;
    };
    const auto found = std::ranges::find_if(longest_first, fits);
    if (found == longest_first.end()) {
      out += value[at++];
      continue;
    }
    out += quoted ? Quoted(found->to) : found->to;
    at += quoted ? Quoted(found->from).size() : found->from.size();
  }
  return out;
}

}  // namespace

std::string SwapInYaml(std::string_view text,
                       const std::vector<TranscriptSwap>& swaps) {
  std::string out;
  const std::vector<TranscriptSwap> longest_first = LongestFirst(swaps);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const size_t colon = line.find(": ");
    const size_t begin = colon == std::string_view::npos ? 0 : colon + 2;
    const std::string_view is = line.substr(begin);
    const bool quoted = is.starts_with('"');
    std::string value = SwappedValue(is, longest_first, quoted);
    if (value != is && !quoted && begin > 0 && !IsPlainYaml(value) &&
        !value.starts_with('\''))
      value = "\"" + Quoted(value) + "\"";
    out += line.substr(0, begin);
    out += value;
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

std::vector<TranscriptSwap> PathSwaps(const std::vector<AbsPath>& from,
                                      const AbsPath& to) {
  std::vector<TranscriptSwap> out;
  for (const AbsPath& one : from) {
    // No JSON can name it.
    if (!IsValidUtf8(one.bytes())) continue;
    out.push_back(
        {.kind = TranscriptSwap::Kind::kPath, .from = one.bytes(), .to = to.bytes()});
    if (BELAY_MUTANT("earlier-paths-stay-in-a-fork")) break;
  }
  return out;
}

}  // namespace belay
