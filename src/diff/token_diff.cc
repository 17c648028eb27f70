#include "diff/token_diff.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/fast_hash.h"

namespace belay {

uint64_t TokenHash(std::string_view token) {
  // FastHash leaves its low bits badly mixed for short texts; tables want them.
  uint64_t hash = FastHash(AsBytes(token), 0);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Gives equal tokens equal numbers.
class Numbers {
 public:
  // `count` tokens will come.
  explicit Numbers(size_t count) {
    size_t slots = 16;
    while (slots < count * 2) slots *= 2;
    slots_.assign(slots, kNone);
  }
  uint32_t Of(std::string_view token, bool second) {
    const uint64_t hash = TokenHash(token);
    const auto short_hash = static_cast<uint32_t>(hash >> 32);
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    // Texts made to collide: a token that is not found soon counts as one of its own,
    // which makes the edits longer and no less right.
    constexpr int kTries = 128;
    for (int tries = 0; tries < kTries; ++tries, at = (at + 1) & mask) {
      if (slots_[at] == kNone) {
        slots_[at] = static_cast<uint32_t>(classes_.size());
        return New(token, short_hash, second);
      }
      Class& found = classes_[slots_[at]];
      if (found.hash != short_hash || std::string_view(found.text, found.size) != token)
        continue;
      (second ? found.in_b : found.in_a) = true;
      return slots_[at];
    }
    return New(token, short_hash, second);
  }
  bool IsShared(uint32_t number) const {
    return classes_[number].in_a && classes_[number].in_b;
  }

 private:
  uint32_t New(std::string_view token, uint32_t hash, bool second) {
    classes_.push_back(
        {token.data(), static_cast<uint32_t>(token.size()), hash, !second, second});
    return static_cast<uint32_t>(classes_.size() - 1);
  }
  struct Class {
    const char* text;
    uint32_t size;
    uint32_t hash;
    bool in_a, in_b;
  };
  std::vector<uint32_t> slots_;
  std::vector<Class> classes_;
};

// The tokens of one side that the other has too.
struct Side {
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> places;  // where each stands among all tokens
  std::vector<bool> changed;     // of all tokens
};

class Searcher {
 public:
  Searcher(Side& a, Side& b) : a_(a), b_(b) {
    // A search that goes further than this takes the best way so far.
    const auto all = static_cast<double>(a.numbers.size() + b.numbers.size());
    most_ = std::max<int64_t>(256, static_cast<int64_t>(std::sqrt(all)));
    forward_.resize(static_cast<size_t>(2 * most_ + 8));
    backward_.resize(forward_.size());
  }

  void Run() {
    std::vector<Box> waiting;
    waiting.push_back({0, static_cast<int64_t>(a_.numbers.size()), 0,
                       static_cast<int64_t>(b_.numbers.size()), false});
    // Not recursive: a text of one kind of difference splits unevenly for ever.
    while (!waiting.empty()) {
      Box box = waiting.back();
      waiting.pop_back();
      while (box.a0 < box.a1 && box.b0 < box.b1 && Same(box.a0, box.b0))
        ++box.a0, ++box.b0;
      while (box.a0 < box.a1 && box.b0 < box.b1 && Same(box.a1 - 1, box.b1 - 1))
        --box.a1, --box.b1;
      if (box.a0 == box.a1 || box.b0 == box.b1) {
        Mark(box);
        continue;
      }
      const Split at = FindSplit(box);
      const Box low{box.a0, at.x, box.b0, at.y, at.exact_low};
      const Box high{at.x, box.a1, at.y, box.b1, at.exact_high};
      if (low == box || high == box) {
        Mark(box);  // no progress: cannot be, and must not hang
        continue;
      }
      waiting.push_back(low);
      waiting.push_back(high);
    }
  }

 private:
  struct Box {
    int64_t a0, a1, b0, b1;
    bool exact;  // known to take few steps: no shortcut
    bool operator==(const Box& o) const {
      return a0 == o.a0 && a1 == o.a1 && b0 == o.b0 && b1 == o.b1;
    }
  };
  struct Split {
    int64_t x, y;
    bool exact_low, exact_high;
  };

  bool Same(int64_t x, int64_t y) const {
    return a_.numbers[static_cast<size_t>(x)] == b_.numbers[static_cast<size_t>(y)];
  }
  void Mark(const Box& box) {
    for (int64_t x = box.a0; x < box.a1; ++x)
      a_.changed[a_.places[static_cast<size_t>(x)]] = true;
    for (int64_t y = box.b0; y < box.b1; ++y)
      b_.changed[b_.places[static_cast<size_t>(y)]] = true;
  }

  // How far a search may go just now. After the budget is used up every search is
  // short, so that the rest takes time in proportion to its length.
  int64_t Limit() const { return work_ < kMaxWork ? most_ : 24; }

  // A point that a shortest way from corner to corner goes through; both ends search
  // towards each other, one more difference at a time. Diagonal d is x - y.
  Split FindSplit(const Box& box) {
    const int64_t low = box.a0 - box.b1, high = box.a1 - box.b0;
    const int64_t from = box.a0 - box.b0, to = box.a1 - box.b1;
    const bool odd = ((from - to) & 1) != 0;
    // Diagonals within reach lie around where each end starts.
    int32_t* const fwd = forward_.data() + most_ + 3;
    int32_t* const bwd = backward_.data() + most_ + 3;
    auto f = [&](int64_t d) -> int32_t& { return fwd[d - from]; };
    auto b = [&](int64_t d) -> int32_t& { return bwd[d - to]; };
    int64_t f_low = from, f_high = from, b_low = to, b_high = to;
    f(from) = static_cast<int32_t>(box.a0);
    b(to) = static_cast<int32_t>(box.a1);
    const int64_t limit = box.exact ? most_ : Limit();
    for (int64_t cost = 1;; ++cost) {
      // The range grows by one at either end until it meets the box, then shrinks.
      if (f_low > low)
        f(--f_low - 1) = -1;
      else
        ++f_low;
      if (f_high < high)
        f(++f_high + 1) = -1;
      else
        --f_high;
      for (int64_t d = f_high; d >= f_low; d -= 2) {
        int64_t x = f(d - 1) >= f(d + 1) ? f(d - 1) + 1 : f(d + 1);
        const int64_t began = x;
        while (x < box.a1 && x - d < box.b1 && Same(x, x - d)) ++x;
        work_ += static_cast<uint64_t>(x - began + 1);
        f(d) = static_cast<int32_t>(x);
        if (odd && b_low <= d && d <= b_high && b(d) <= x)
          return {x, x - d, true, true};
      }
      if (b_low > low)
        b(--b_low - 1) = INT32_MAX;
      else
        ++b_low;
      if (b_high < high)
        b(++b_high + 1) = INT32_MAX;
      else
        --b_high;
      for (int64_t d = b_high; d >= b_low; d -= 2) {
        int64_t x = b(d - 1) < b(d + 1) ? b(d - 1) : b(d + 1) - 1;
        const int64_t began = x;
        while (x > box.a0 && x - d > box.b0 && Same(x - 1, x - 1 - d)) --x;
        work_ += static_cast<uint64_t>(began - x + 1);
        b(d) = static_cast<int32_t>(x);
        if (!odd && f_low <= d && d <= f_high && x <= f(d))
          return {x, x - d, true, true};
      }
      if (cost >= limit)
        return BestSoFar(box, fwd - from, bwd - to, f_low, f_high, b_low, b_high);
    }
  }

  // The point furthest from its corner that either end has reached.
  Split BestSoFar(const Box& box, const int32_t* f, const int32_t* b, int64_t f_low,
                  int64_t f_high, int64_t b_low, int64_t b_high) const {
    int64_t f_best = -1, f_x = 0, f_d = 0, b_best = INT64_MAX, b_x = 0, b_d = 0;
    for (int64_t d = f_high; d >= f_low; d -= 2) {
      int64_t x = std::min<int64_t>(f[d], box.a1);
      if (x - d > box.b1) x = box.b1 + d;
      if (x + (x - d) > f_best) f_best = x + (x - d), f_x = x, f_d = d;
    }
    for (int64_t d = b_high; d >= b_low; d -= 2) {
      int64_t x = std::max<int64_t>(b[d], box.a0);
      if (x - d < box.b0) x = box.b0 + d;
      if (x + (x - d) < b_best) b_best = x + (x - d), b_x = x, b_d = d;
    }
    if (box.a1 + box.b1 - b_best < f_best - (box.a0 + box.b0))
      return {f_x, f_x - f_d, true, false};
    return {b_x, b_x - b_d, false, true};
  }

  Side& a_;
  Side& b_;
  int64_t most_;
  uint64_t work_ = 0;
  std::vector<int32_t> forward_, backward_;
};

}  // namespace

std::vector<TokenEdit> DiffTokens(const Tokens& a, const Tokens& b) {
  Side left, right;
  left.changed.resize(a.size());
  right.changed.resize(b.size());
  {
    Numbers numbers(size_t{a.size()} + b.size());
    std::vector<uint32_t> of_a(a.size()), of_b(b.size());
    for (uint32_t i = 0; i < a.size(); ++i) of_a[i] = numbers.Of(a[i], false);
    for (uint32_t i = 0; i < b.size(); ++i) of_b[i] = numbers.Of(b[i], true);
    auto keep_shared = [&](const std::vector<uint32_t>& of, Side& side) {
      for (uint32_t i = 0; i < of.size(); ++i) {
        if (!numbers.IsShared(of[i])) {
          side.changed[i] = true;
          continue;
        }
        side.numbers.push_back(of[i]);
        side.places.push_back(i);
      }
    };
    keep_shared(of_a, left);
    keep_shared(of_b, right);
  }
  Searcher(left, right).Run();
  std::vector<TokenEdit> edits;
  for (uint32_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const uint32_t i0 = i, j0 = j;
    while (i < a.size() && left.changed[i]) ++i;
    while (j < b.size() && right.changed[j]) ++j;
    if (i > i0 || j > j0)
      edits.push_back({i0, i, j0, j});
    else
      ++i, ++j;
  }
  return edits;
}

}  // namespace belay
