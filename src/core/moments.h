#pragma once

// Moments as people write them, for references like @{5 minutes ago}.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace belay {

// Milliseconds, in local time unless a zone is named; kInvalid, with examples, when it
// is none of
//   5 minutes ago, an hour ago, 2 months ago, 3.days.ago, 2 weeks (seconds to years)
//   last week, last month; yesterday, today, friday, last friday
//   2026-03-09, 2026/03/09, 9 Mar 2026, March 9 (the last one)
//   21:15, 21:15:30.123, 5pm, noon, midnight, tea (17:00): of a day named before or
//   behind it, or of the last day on which it was that time
//   2026-03-09T21:15:30Z, 2026-03-09 21:15 +01:00; now; seconds since 1970 (9 digits
//   on)
// The words are git's. Like git it goes by the calendar for months and years; unlike
// git a day alone is all of that day, since a moment is the end of what was named:
// 21:15 is all of that minute, so the time that a list shows finds what it is shown
// for.
Result<int64_t> ParseTime(std::string_view text, int64_t now_ms);

}  // namespace belay
