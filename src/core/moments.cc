#include "core/moments.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/escape.h"
#include "base/number.h"

namespace belay {

namespace {

constexpr int64_t kSecondMs = 1000, kMinuteMs = 60 * kSecondMs,
                  kHourMs = 60 * kMinuteMs, kWeekMs = 7 * kDayMs;
constexpr int kNoon = 12, kTea = 17;

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }

// In small letters. A dot or a line beside a letter separates (3.days.ago, last_week),
// and so does a comma.
std::vector<std::string> Words(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::vector<std::string> words(1);
  for (size_t i = 0; i < small.size(); ++i) {
    const char c = small[i];
    const bool beside_letter = (i > 0 && IsLetter(small[i - 1])) ||
                               (i + 1 < small.size() && IsLetter(small[i + 1]));
    if (c != ' ' && c != ',' && (!beside_letter || (c != '.' && c != '_')))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
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

// "5" or "5:30", with what says which half of the day.
std::optional<TimeOfDay> ParseHalf(std::string_view text, std::string_view half) {
  std::optional<TimeOfDay> out;
  if (AllDigits(text) && text.size() <= 2)
    out = TimeOfDay{.hour = *Number<int>(text)};
  else
    out = ParseClock(text);
  if (!out || out->hour < 1 || out->hour > 12) return std::nullopt;
  out->hour = out->hour % 12 + (half == "pm" ? 12 : 0);
  return out;
}

int DaysOf(int year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

std::optional<tm> DayFrom(int year, int month, int day) {
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > DaysOf(year, month))
    return std::nullopt;
  tm out{};
  out.tm_year = year - 1900;
  out.tm_mon = month - 1;
  out.tm_mday = day;
  return out;
}

// "2026-03-09", "2026/03/09".
std::optional<tm> ParseDay(std::string_view text) {
  if (text.size() != 10 || (text[4] != '-' && text[4] != '/') || text[7] != text[4])
    return std::nullopt;
  std::string_view parts[] = {text.substr(0, 4), text.substr(5, 2), text.substr(8, 2)};
  for (std::string_view part : parts)
    if (!AllDigits(part)) return std::nullopt;
  return DayFrom(*Number<int>(parts[0]), *Number<int>(parts[1]),
                 *Number<int>(parts[2]));
}

// Minutes east of Greenwich that `time` ends in ("z", "+01:00", "-0330", "+01"), cut
// off it; none when it ends in nothing of the kind.
std::optional<int> TakeZone(std::string_view& time) {
  if (time.ends_with('z')) {
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

// Which of `names` a word is, or begins with three letters on; counted from 0.
std::optional<int> OneOf(std::string_view word,
                         const std::vector<std::string_view>& names) {
  if (word.size() < 3) return std::nullopt;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].starts_with(word)) return static_cast<int>(i);
  return std::nullopt;
}
std::optional<int> WeekdayOf(std::string_view word) {
  return OneOf(word, {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday",
                      "saturday"});
}
std::optional<int> MonthOf(std::string_view word) {
  if (word == "sept") word = "september";
  return OneOf(word, {"january", "february", "march", "april", "may", "june", "july",
                      "august", "september", "october", "november", "december"});
}

struct Unit {
  std::string_view name;
  int64_t ms = 0;
  int months = 0;
};
std::optional<Unit> UnitOf(std::string_view word) {
  static constexpr Unit kUnits[] = {
      {"second", kSecondMs}, {"sec", kSecondMs}, {"s", kSecondMs},
      {"minute", kMinuteMs}, {"min", kMinuteMs}, {"m", kMinuteMs},
      {"hour", kHourMs},     {"hr", kHourMs},    {"h", kHourMs},
      {"day", kDayMs},       {"d", kDayMs},      {"week", kWeekMs},
      {"w", kWeekMs},        {"month", 0, 1},    {"year", 0, 12},
      {"y", 0, 12}};
  for (const Unit& known : kUnits)
    if (word == known.name ||
        (known.name.size() > 1 && word.size() == known.name.size() + 1 &&
         word.starts_with(known.name) && word.back() == 's'))
      return known;
  return std::nullopt;
}

// "5", "a", "three".
std::optional<int64_t> CountOf(std::string_view word) {
  if (AllDigits(word)) return Number<int64_t>(word);
  if (word == "a" || word == "an") return 1;
  static constexpr std::string_view kNames[] = {"one", "two",   "three", "four", "five",
                                                "six", "seven", "eight", "nine", "ten"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (word == kNames[i]) return static_cast<int64_t>(i) + 1;
  return std::nullopt;
}

tm LocalOf(int64_t ms) {
  const time_t seconds = static_cast<time_t>(ms / kSecondMs);
  tm local{};
  localtime_r(&seconds, &local);
  return local;
}

tm DayOf(int64_t ms, int days_before) {
  const tm local = LocalOf(ms);
  tm day{};
  day.tm_year = local.tm_year;
  day.tm_mon = local.tm_mon;
  day.tm_mday = local.tm_mday - days_before;
  return day;
}

// A day (the rest of `day` is zero) and a time of it, or all of it.
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

// By the calendar; the last day of a month that is too short.
int64_t MonthsBefore(int64_t ms, int64_t months) {
  tm at = LocalOf(ms);
  const int64_t month = int64_t{12} * at.tm_year + at.tm_mon - months;
  if (month < 12 * 70) return 0;  // before 1970
  at.tm_year = static_cast<int>(month / 12);
  at.tm_mon = static_cast<int>(month % 12);
  at.tm_mday = std::min(at.tm_mday, DaysOf(at.tm_year + 1900, at.tm_mon + 1));
  at.tm_isdst = -1;
  return static_cast<int64_t>(mktime(&at)) * kSecondMs + ms % kSecondMs;
}

// One reading of one text. Each Take* uses up words if it knows them.
class Reading {
 public:
  Reading(std::vector<std::string> words, int64_t now_ms)
      : words_(std::move(words)), now_ms_(now_ms) {}

  std::optional<int64_t> Moment() {
    if (words_.empty()) return std::nullopt;
    if (words_.size() == 1 && words_[0] == "now") return now_ms_;
    if (auto seconds = SinceEpoch()) return seconds;
    while (at_ < words_.size()) {
      if (words_[at_] == "at" || words_[at_] == "on") {
        if (++at_ == words_.size()) return std::nullopt;
        continue;
      }
      if (!TakeAgo() && !TakeDay() && !TakeClock() && !TakeZoneWord())
        return std::nullopt;
    }
    return Said();
  }

 private:
  std::string_view Word(size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? std::string_view(words_[at_ + ahead])
                                       : std::string_view();
  }

  std::optional<int64_t> SinceEpoch() const {
    if (words_.size() != 1 || words_[0].size() < 9 || words_[0].size() > 12 ||
        !AllDigits(words_[0]))
      return std::nullopt;
    return *Number<int64_t>(words_[0]) * kSecondMs + kSecondMs - 1;
  }

  // "1 day 2 hours ago", "5m ago", "2 weeks", "last month".
  bool TakeAgo() {
    if (before_ || day_) return false;
    if (Word() == "last") {
      auto unit = UnitOf(Word(1));
      if (!unit) return false;
      before_ = Before{unit->ms, unit->months};
      at_ += 2;
      return true;
    }
    Before sum;
    size_t i = at_;
    bool any = false;
    while (i < words_.size()) {
      std::string_view count = words_[i], unit;
      const size_t digits =
          std::min(count.find_first_not_of("0123456789"), count.size());
      size_t used = 1;
      if (digits > 0 && digits < count.size()) {
        unit = count.substr(digits);
        count = count.substr(0, digits);
      } else if (i + 1 < words_.size()) {
        unit = words_[i + 1];
        used = 2;
      }
      const auto number = CountOf(count);
      const auto known = UnitOf(unit);
      if (!number || !known || !sum.Add(*number, *known)) break;
      any = true;
      i += used;
    }
    if (!any) return false;
    if (i < words_.size() && words_[i] == "ago") ++i;
    before_ = sum;
    at_ = i;
    return true;
  }

  bool TakeDay() {
    if (day_ || before_) return false;
    const std::string_view word = Word();
    if (word == "today" || word == "yesterday")
      return Take(DayOf(now_ms_, word == "today" ? 0 : 1), 1);
    if (word == "last" || WeekdayOf(word)) {
      const bool before_today = word == "last";
      auto weekday = WeekdayOf(Word(before_today ? 1 : 0));
      if (!weekday) return false;
      int days = (LocalOf(now_ms_).tm_wday - *weekday + 7) % 7;
      if (before_today && days == 0) days = 7;
      return Take(DayOf(now_ms_, days), before_today ? 2 : 1);
    }
    // As Belay itself writes it: 2026-03-09T21:15:30.123Z.
    if (word.size() > 11 && word[10] == 't') {
      auto day = ParseDay(word.substr(0, 10));
      if (!day) return false;
      day_ = day;
      std::string time(word.substr(11));
      words_[at_] = std::move(time);
      return TakeClock();
    }
    if (auto day = ParseDay(word)) return Take(*day, 1);
    return TakeNamedMonth();
  }

  // "9 Mar 2026", "March 9 2026"; without a year the last such day.
  bool TakeNamedMonth() {
    auto day_number = [](std::string_view word) -> std::optional<int> {
      if (!AllDigits(word) || word.size() > 2) return std::nullopt;
      return Number<int>(word);
    };
    const bool month_first = MonthOf(Word()).has_value();
    const auto month = MonthOf(Word(month_first ? 0 : 1));
    const auto number = day_number(Word(month_first ? 1 : 0));
    if (!month || !number) return false;
    if (AllDigits(Word(2)) && Word(2).size() == 4) {
      auto day = DayFrom(*Number<int>(Word(2)), *month + 1, *number);
      return day && Take(*day, 3);
    }
    const tm today = LocalOf(now_ms_);
    const bool later =
        std::pair(*month, *number) > std::pair(today.tm_mon, today.tm_mday);
    auto day = DayFrom(today.tm_year + 1900 - (later ? 1 : 0), *month + 1, *number);
    return day && Take(*day, 2);
  }

  bool TakeClock() {
    if (clock_) return false;
    const std::string_view word = Word();
    if (word == "noon") return Take(TimeOfDay{.hour = kNoon}, 1);
    if (word == "midnight") return Take(TimeOfDay{}, 1);
    if (word == "tea" || word == "teatime") return Take(TimeOfDay{.hour = kTea}, 1);
    if (Word(1) == "am" || Word(1) == "pm") {
      auto half = ParseHalf(word, Word(1));
      return half && Take(*half, 2);
    }
    if (word.ends_with("am") || word.ends_with("pm")) {
      auto half =
          ParseHalf(word.substr(0, word.size() - 2), word.substr(word.size() - 2));
      return half && Take(*half, 1);
    }
    std::string_view time = word;
    std::optional<int> zone;
    if (day_) zone = TakeZone(time);
    if (zone && zone_) return false;
    auto clock = ParseClock(time);
    if (!clock) return false;
    if (zone) zone_ = zone;
    return Take(*clock, 1);
  }

  // Behind a time of a day that was named.
  bool TakeZoneWord() {
    if (!day_ || !clock_ || zone_) return false;
    std::string_view word = Word();
    if (word == "utc" || word == "gmt") {
      zone_ = 0;
    } else {
      zone_ = TakeZone(word);
      if (!zone_ || !word.empty()) return false;
    }
    ++at_;
    return true;
  }

  bool Take(const tm& day, size_t words) {
    day_ = day;
    at_ += words;
    return true;
  }
  bool Take(const TimeOfDay& clock, size_t words) {
    clock_ = clock;
    at_ += words;
    return true;
  }

  std::optional<int64_t> Said() const {
    if (before_) {
      int64_t then = now_ms_ - before_->ms;
      if (before_->months != 0) then = MonthsBefore(then, before_->months);
      then = std::max<int64_t>(then, 0);
      // "2 days ago at noon": of that day.
      return clock_ ? At(DayOf(then, 0), clock_, false).last() : then;
    }
    Span span = At(day_.value_or(DayOf(now_ms_, 0)), clock_, zone_.has_value());
    if (zone_) span.begin_ms -= *zone_ * kMinuteMs;
    // Just a time: the last time it was.
    if (!day_ && span.begin_ms > now_ms_) span = At(DayOf(now_ms_, 1), clock_, false);
    return span.last();
  }

  struct Before {
    int64_t ms = 0, months = 0;
    // No more than two thousand years, so that nothing overflows.
    bool Add(int64_t count, const Unit& unit) {
      constexpr int64_t kMonths = 24'000, kMs = 100'000 * kWeekMs;
      const int64_t each = unit.months != 0 ? unit.months : unit.ms;
      int64_t& sum = unit.months != 0 ? months : ms;
      const int64_t most = unit.months != 0 ? kMonths : kMs;
      if (count > (most - sum) / each) return false;
      sum += count * each;
      return true;
    }
  };

  std::vector<std::string> words_;
  const int64_t now_ms_;
  size_t at_ = 0;
  std::optional<Before> before_;
  std::optional<tm> day_;
  std::optional<TimeOfDay> clock_;
  std::optional<int> zone_;  // without one: as the clock on the wall here
};

}  // namespace

Result<int64_t> ParseTime(std::string_view text, int64_t now_ms) {
  if (auto moment = Reading(Words(text), now_ms).Moment()) return *moment;
  Error bad(Errc::kInvalid,
            "\"" + EscapeForDisplay(text.substr(0, 100)) + "\" is no moment");
  if (AllDigits(text))
    return std::move(bad).WithHint(
        "a number of `belay list` is given without @{}: belay show 2");
  return std::move(bad).WithHint(
      "for instance @{5 minutes ago}, @{2 months ago}, @{yesterday 9:00}, @{last "
      "friday}, @{noon}, @{2026-03-09 21:15}");
}

}  // namespace belay
