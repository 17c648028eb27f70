#include "core/refs.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/escape.h"

namespace belay {

namespace {

constexpr int64_t kSecondMs = 1000, kMinuteMs = 60 * kSecondMs,
                  kHourMs = 60 * kMinuteMs, kDayMs = 24 * kHourMs, kWeekMs = 7 * kDayMs;

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return c >= '0' && c <= '9'; });
}

template <class T>
std::optional<T> Number(std::string_view text) {
  T value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// --- times ---------------------------------------------------------------------------

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// What was named, and how long it lasts.
struct Span {
  int64_t begin_ms = 0;
  int64_t length_ms = 1;
  int64_t last() const { return begin_ms + length_ms - 1; }
};

struct TimeOfDay {
  int hour = 0, minute = 0, second = 0, ms = 0;
  int64_t length_ms = kMinuteMs;
};

// "9:00", "21:15:30", "21:15:30.123".
std::optional<TimeOfDay> ParseClock(std::string_view text) {
  TimeOfDay out;
  int* const fields[] = {&out.hour, &out.minute, &out.second};
  const int limits[] = {23, 59, 60};
  size_t count = 0;
  for (;;) {
    size_t end = std::min(text.find_first_of(":."), text.size());
    std::string_view digits = text.substr(0, end);
    if (!AllDigits(digits) || digits.size() > 2 || count == 3 ||
        (count > 0 && digits.size() != 2))
      return std::nullopt;
    *fields[count] = *Number<int>(digits);
    if (*fields[count] > limits[count]) return std::nullopt;
    ++count;
    text.remove_prefix(end);
    if (text.empty() || text[0] == '.') break;
    text.remove_prefix(1);
  }
  if (count < 2) return std::nullopt;
  if (count == 3) out.length_ms = kSecondMs;
  if (text.empty()) return out;
  text.remove_prefix(1);
  if (count < 3 || !AllDigits(text) || text.size() > 9) return std::nullopt;
  std::string thousandths(text.substr(0, 3));
  thousandths.resize(3, '0');
  out.ms = *Number<int>(thousandths);
  out.length_ms = 1;
  return out;
}

// "2026-03-09": year, month and day of a tm.
bool ParseDay(std::string_view text, tm& out) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  std::string_view parts[] = {text.substr(0, 4), text.substr(5, 2), text.substr(8, 2)};
  for (std::string_view part : parts)
    if (!AllDigits(part)) return false;
  const int year = *Number<int>(parts[0]), month = *Number<int>(parts[1]),
            day = *Number<int>(parts[2]);
  static constexpr int kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > kDays[month - 1] ||
      (month == 2 && day == 29 && !leap))
    return false;
  out.tm_year = year - 1900;
  out.tm_mon = month - 1;
  out.tm_mday = day;
  return true;
}

// Whatever case it is written in; `lower` is in lower case.
bool IsSameWord(std::string_view word, std::string_view lower) {
  return std::ranges::equal(word, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
  });
}

// A day (the rest of `day` is zero) and a time of it, or all of it.
// Minutes east of Greenwich that `time` ends in ("Z", "+01:00", "-0330", "+01"), cut
// off it; none when it ends in nothing of the kind.
std::optional<int> TakeZone(std::string_view& time) {
  if (time.ends_with('Z') || time.ends_with('z')) {
    time.remove_suffix(1);
    return 0;
  }
  const size_t sign = time.find_last_of("+-");
  if (sign == std::string_view::npos) return std::nullopt;
  std::string digits(time.substr(sign + 1));
  if (digits.size() == 5 && digits[2] == ':') digits.erase(2, 1);
  if (digits.size() == 2) digits += "00";
  const auto number = Number<int>(digits);
  if (digits.size() != 4 || !AllDigits(digits) || !number) return std::nullopt;
  const int hours = *number / 100, minutes = *number % 100;
  if (hours > 14 || minutes > 59) return std::nullopt;
  const bool west = time[sign] == '-';
  time = time.substr(0, sign);
  return (west ? -1 : 1) * (hours * 60 + minutes);
}

Span At(tm day, const std::optional<TimeOfDay>& clock, bool utc) {
  auto moment = [&](tm at) -> int64_t {
    at.tm_isdst = -1;
    return static_cast<int64_t>(utc ? timegm(&at) : mktime(&at)) * kSecondMs;
  };
  if (!clock) {
    tm next = day;
    ++next.tm_mday;  // 23 or 25 hours later, some days
    const int64_t begin = moment(day);
    return {begin, moment(next) - begin};
  }
  day.tm_hour = clock->hour;
  day.tm_min = clock->minute;
  day.tm_sec = clock->second;
  return {moment(day) + clock->ms, clock->length_ms};
}

tm DayOf(int64_t ms, int days_before) {
  const time_t seconds = static_cast<time_t>(ms / kSecondMs);
  tm local{};
  localtime_r(&seconds, &local);
  tm day{};
  day.tm_year = local.tm_year;
  day.tm_mon = local.tm_mon;
  day.tm_mday = local.tm_mday - days_before;
  return day;
}

std::optional<int64_t> UnitMs(std::string_view unit) {
  struct Unit {
    std::string_view name;
    int64_t ms;
  };
  static constexpr Unit kUnits[] = {
      {"second", kSecondMs}, {"sec", kSecondMs}, {"s", kSecondMs},
      {"minute", kMinuteMs}, {"min", kMinuteMs}, {"m", kMinuteMs},
      {"hour", kHourMs},     {"h", kHourMs},     {"day", kDayMs},
      {"d", kDayMs},         {"week", kWeekMs},  {"w", kWeekMs}};
  for (const Unit& known : kUnits)
    if (unit == known.name ||
        (known.name.size() > 1 && unit.size() == known.name.size() + 1 &&
         unit.starts_with(known.name) && unit.back() == 's'))
      return known.ms;
  return std::nullopt;
}

// "5 minutes ago", "an hour ago", "5m ago", "1 day 2 hours ago".
std::optional<int64_t> ParseAgo(std::vector<std::string_view> words, int64_t now_ms) {
  if (words.size() < 2 || words.back() != "ago") return std::nullopt;
  words.pop_back();
  int64_t before = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view count = words[i], unit;
    const size_t digits = std::min(count.find_first_not_of("0123456789"), count.size());
    if (count == "a" || count == "an") {
      count = "1";
    } else if (digits > 0 && digits < count.size()) {
      unit = count.substr(digits);
      count = count.substr(0, digits);
    } else if (digits == 0) {
      return std::nullopt;
    }
    if (unit.empty()) {
      if (++i == words.size()) return std::nullopt;
      unit = words[i];
    }
    const auto number = Number<int64_t>(count);
    const auto ms = UnitMs(unit);
    // A hundred thousand weeks are enough, and no product overflows.
    if (!number || !ms || *number > int64_t{100'000} * (kWeekMs / *ms))
      return std::nullopt;
    before += *number * *ms;
  }
  return now_ms - before;
}

// --- references ----------------------------------------------------------------------

Error NoSuch(std::string_view what) {
  return Error(Errc::kNotFound, std::string(what))
      .WithHint("`belay list` shows what there is");
}

Result<CatalogEntry> First(Catalog& catalog, CheckpointFilter filter,
                           const std::string& none) {
  filter.limit = 1;
  BELAY_TRY(auto found, catalog.ListCheckpoints(filter));
  if (found.empty()) return NoSuch(none);
  return std::move(found[0]);
}

Result<CatalogEntry> LastGood(Catalog& catalog, const RootId& root) {
  constexpr size_t kPage = 64;
  CheckpointFilter filter{.root = root, .limit = kPage};
  for (;;) {
    BELAY_TRY(auto page, catalog.ListCheckpoints(filter));
    for (CatalogEntry& entry : page)
      if (entry.health == Health::kPass) return std::move(entry);
    if (page.size() < kPage) break;
    filter.before_seq = page.back().checkpoint.seq;
  }
  return Error(Errc::kNotFound, "no checkpoint is known to be good")
      .WithHint("a check that passed makes one: belay run-check -- COMMAND");
}

Result<std::string> SessionOf(Catalog& catalog, const RefContext& context,
                              std::string_view ref) {
  if (context.session) return *context.session;
  BELAY_TRY(auto active, ActiveSession(catalog, context.root));
  if (!active)
    return Error(Errc::kNotFound,
                 EscapeForDisplay(ref) + ": no session was ever recorded here")
        .WithHint("name a checkpoint by its number in `belay list`");
  return std::move(*active);
}

Result<CatalogEntry> FindTurn(Catalog& catalog, const RefContext& context,
                              std::string_view ref) {
  const auto turn = Number<uint64_t>(ref.substr(5));
  if (!AllDigits(ref.substr(5)) || !turn || *turn == 0)
    return Error(Errc::kInvalid, EscapeForDisplay(ref) + ": turns are counted from 1")
        .WithHint("for instance turn:3");
  BELAY_TRY(std::string session, SessionOf(catalog, context, ref));
  return First(
      catalog,
      {.root = context.root, .session = session, .turn = *turn, .oldest_first = true},
      "session " + EscapeText(session) + " has no checkpoint of turn " +
          std::to_string(*turn));
}

Result<CatalogEntry> FindTool(Catalog& catalog, const RefContext& context,
                              std::string_view ref) {
  const std::string id(ref.substr(5));
  BELAY_TRY(std::string session, SessionOf(catalog, context, ref));
  CheckpointFilter filter{.root = context.root,
                          .session = session,
                          .tool_use_id = id,
                          .oldest_first = true,
                          .limit = 1};
  BELAY_TRY(auto found, catalog.ListCheckpoints(filter));
  if (!found.empty()) return std::move(found[0]);
  Error none = NoSuch("session " + EscapeText(session) +
                      " has no checkpoint of the tool call " + EscapeForDisplay(id));
  if (context.session) return none;
  filter.session.reset();
  BELAY_TRY(auto other, catalog.ListCheckpoints(filter));
  if (!other.empty() && other[0].checkpoint.session)
    none.hint = "it belongs to another session: --session " +
                ShellWord(*other[0].checkpoint.session);
  return none;
}

Result<CatalogEntry> FindAtTime(Catalog& catalog, const RefContext& context,
                                std::string_view ref) {
  if (!ref.ends_with('}'))
    return Error(Errc::kInvalid, EscapeForDisplay(ref) + ": the brace is not closed")
        .WithHint("for instance '@{5 minutes ago}'");
  BELAY_TRY(int64_t at, ParseTime(ref.substr(2, ref.size() - 3), context.now_ms));
  return First(catalog, {.root = context.root, .made_until_ms = at},
               "there was no checkpoint yet at " + EscapeForDisplay(ref));
}

Result<CatalogEntry> FindNumber(Catalog& catalog, const RefContext& context,
                                std::string_view ref) {
  const auto number = Number<uint64_t>(ref);
  if (!number || *number == 0 || *number > INT64_MAX) {
    return NoSuch("there is no checkpoint " + EscapeForDisplay(ref.substr(0, 40)));
  }
  BELAY_TRY(auto found,
            catalog.ListCheckpoints({.root = context.root,
                                     .offset = static_cast<size_t>(*number - 1),
                                     .limit = 1}));
  if (!found.empty()) return std::move(found[0]);
  BELAY_TRY(uint64_t count, catalog.Count(context.root));
  return NoSuch("there is no checkpoint " + std::to_string(*number) + ", there are " +
                std::to_string(count));
}

}  // namespace

Status CheckName(std::string_view name) {
  auto refuse = [](std::string_view why) {
    return Error(Errc::kInvalid,
                 "a checkpoint cannot be called so: " + std::string(why));
  };
  if (name.empty()) return refuse("the name is empty");
  if (name == "latest" || name == "last-good" || name == "now")
    return refuse("latest, last-good and now have a meaning of their own");
  if (AllDigits(name)) return refuse("digits alone are numbers of the list");
  for (std::string_view start : {"turn:", "tool:", "session:", "@{"})
    if (name.starts_with(start))
      return refuse("turn:, tool:, session: and @{ begin other references");
  return Ok();
}

Status CheckNewName(std::string_view name) {
  BELAY_OK(CheckName(name));
  if (std::ranges::all_of(name, [](char c) { return c == ' ' || (c >= 0 && c < ' '); }))
    return Error(Errc::kInvalid, "a checkpoint cannot be called so: the name is blank");
  return Ok();
}

Result<int64_t> ParseTime(std::string_view text, int64_t now_ms) {
  const Error bad =
      Error(Errc::kInvalid,
            "\"" + EscapeForDisplay(text.substr(0, 100)) + "\" is no moment")
          .WithHint("for instance @{5 minutes ago}, @{2026-03-09 21:15}, @{yesterday}");
  std::vector<std::string_view> words = Words(text);
  if (words.empty()) return bad;
  if (words.size() == 1 && words[0] == "now") return now_ms;
  if (auto ago = ParseAgo(words, now_ms)) return *ago;

  // A day, and a time of it: one may be missing.
  tm day = DayOf(now_ms, 0);
  bool named_day = true;
  size_t used = 1;  // words
  std::string_view time;
  std::string_view first = words[0];
  if (first == "yesterday") {
    day = DayOf(now_ms, 1);
  } else if (first != "today") {
    // As Belay itself writes it: 2026-03-09T21:15:30.123Z.
    if (first.size() > 11 && first[10] == 'T') {
      time = first.substr(11);
      first = first.substr(0, 10);
    }
    tm parsed{};
    named_day = ParseDay(first, parsed);
    if (named_day) {
      day = parsed;
    } else {
      if (!time.empty()) return bad;
      time = first;
    }
  }
  if (time.empty() && words.size() > used) time = words[used++];
  std::optional<int> zone;  // without one: as the clock on the wall here
  if (named_day && !time.empty()) zone = TakeZone(time);
  if (named_day && !zone && words.size() == used + 1) {
    std::string_view last = words[used];
    if (IsSameWord(last, "utc") || IsSameWord(last, "gmt"))
      zone = 0;
    else if (zone = TakeZone(last); zone && !last.empty())
      return bad;
    used += zone ? 1 : 0;
  }
  if (used != words.size()) return bad;
  std::optional<TimeOfDay> clock;
  if (!time.empty()) {
    clock = ParseClock(time);
    if (!clock) return bad;
  }
  Span span = At(day, clock, zone.has_value());
  if (zone) span.begin_ms -= *zone * kMinuteMs;
  // Just a time: the last time it was.
  if (!named_day && span.begin_ms > now_ms) span = At(DayOf(now_ms, 1), clock, false);
  return span.last();
}

Result<std::optional<std::string>> ActiveSession(Catalog& catalog, const RootId& root) {
  constexpr size_t kPage = 64;
  std::optional<std::string> session;
  uint64_t seq = 0;
  CheckpointFilter filter{.root = root, .limit = kPage};
  for (bool more = true; more && !session;) {
    BELAY_TRY(auto page, catalog.ListCheckpoints(filter));
    for (const CatalogEntry& entry : page) {
      if (!entry.checkpoint.session) continue;
      session = entry.checkpoint.session;
      seq = entry.checkpoint.seq;
      break;
    }
    more = page.size() == kPage;
    if (more) filter.before_seq = page.back().checkpoint.seq;
  }
  // A session without a checkpoint of its own yet. Both kinds have it in field 1.
  for (RecordKind kind : {RecordKind::kSession, RecordKind::kTurn}) {
    BELAY_TRY(auto records,
              catalog.ListRecords({.kind = kind, .root = root, .limit = 1}));
    if (records.empty() || records[0].seq < seq) continue;
    if (auto named = records[0].fields.Text(1)) {
      session = std::move(named);
      seq = records[0].seq;
    }
  }
  return session;
}

Result<FoundRef> ResolveRef(Catalog& catalog, const RefContext& context,
                            std::string_view ref) {
  FoundRef out;
  auto found = [&]() -> Result<CatalogEntry> {
    if (ref.empty()) return Error(Errc::kInvalid, "an empty REF names no checkpoint");
    if (ref == "latest")
      return First(catalog, {.root = context.root}, "there is no checkpoint yet");
    if (ref == "last-good") return LastGood(catalog, context.root);
    if (IsNow(ref))
      return Error(Errc::kInvalid,
                   "now is the directory as it is, and only ls and diff look at that")
          .WithHint("the newest checkpoint is called latest");
    if (ref.starts_with("turn:")) return FindTurn(catalog, context, ref);
    if (ref.starts_with("tool:")) return FindTool(catalog, context, ref);
    if (ref.starts_with("session:"))
      return First(
          catalog,
          {.root = context.root,
           .session = std::string(ref.substr(8)),
           .oldest_first = true},
          "there is no checkpoint of session " + EscapeForDisplay(ref.substr(8)));
    if (ref.starts_with("@{")) return FindAtTime(catalog, context, ref);
    if (AllDigits(ref)) return FindNumber(catalog, context, ref);
    auto named = catalog.Find(context.root, ref);
    if (!named.ok()) {
      Error error = std::move(named).error();
      if (error.code == Errc::kNotFound)
        return NoSuch("no checkpoint is named " + EscapeForDisplay(ref.substr(0, 200)) +
                      ", and none has an id that begins so");
      return error;
    }
    if (named->others > 0)
      out.note = std::to_string(named->others) +
                 (named->others == 1 ? " older one has" : " older ones have") +
                 " the same name; this is the newest";
    return std::move(named->entry);
  }();
  if (!found.ok()) return std::move(found).error();
  out.entry = std::move(*found);
  BELAY_TRY(out.number, catalog.NumberOf(context.root, out.entry.checkpoint.seq));
  return out;
}

}  // namespace belay
