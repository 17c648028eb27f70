#include "store/search_fold.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/escape.h"

namespace belay {

namespace {

// Letters that become plain ones, in the order of their code points; a dot: another
// one.
constexpr char32_t kLatinFrom = 0xc0, kMoreFrom = 0x1e00;
constexpr std::string_view kLatin =
    "aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.yaaaaaacc"
    "ccccccdd..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll....nnnnnn...oooo"
    "oo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzzs........................"
    "........oo.............uu............................aaiioouuuuuuuuuu.aa"
    "......ggkkoooo..j...gg..nnaa....aaaaeeeeiiiioooorrrruuuusstt..hh......aa"
    "eeooooooooyy............................";
constexpr std::string_view kMore =
    "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnn"
    "nnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyy"
    "zzzzzzhtwy.s....aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooo"
    "oooooooooooouuuuuuuuuuuuuuyyyyyyyy......";

// The rest: what is added to each code point, or to every second.
struct Run {
  uint16_t first, last, step;
  int16_t add;
};
constexpr Run kRuns[] = {
    {0xb5, 0xb5, 1, 775},     {0xc6, 0xc6, 1, 32},        {0xd0, 0xd0, 1, 32},
    {0xd8, 0xd8, 1, 32},      {0xde, 0xde, 1, 32},        {0x110, 0x110, 1, 1},
    {0x126, 0x126, 1, 1},     {0x132, 0x132, 1, 1},       {0x13f, 0x141, 2, 1},
    {0x14a, 0x14a, 1, 1},     {0x152, 0x152, 1, 1},       {0x166, 0x166, 1, 1},
    {0x181, 0x181, 1, 210},   {0x182, 0x184, 2, 1},       {0x186, 0x186, 1, 206},
    {0x187, 0x187, 1, 1},     {0x189, 0x18a, 1, 205},     {0x18b, 0x18b, 1, 1},
    {0x18e, 0x18e, 1, 79},    {0x18f, 0x18f, 1, 202},     {0x190, 0x190, 1, 203},
    {0x191, 0x191, 1, 1},     {0x193, 0x193, 1, 205},     {0x194, 0x194, 1, 207},
    {0x196, 0x196, 1, 211},   {0x197, 0x197, 1, 209},     {0x198, 0x198, 1, 1},
    {0x19c, 0x19c, 1, 211},   {0x19d, 0x19d, 1, 213},     {0x19f, 0x19f, 1, 214},
    {0x1a2, 0x1a4, 2, 1},     {0x1a6, 0x1a6, 1, 218},     {0x1a7, 0x1a7, 1, 1},
    {0x1a9, 0x1a9, 1, 218},   {0x1ac, 0x1ac, 1, 1},       {0x1ae, 0x1ae, 1, 218},
    {0x1b1, 0x1b2, 1, 217},   {0x1b3, 0x1b5, 2, 1},       {0x1b7, 0x1b7, 1, 219},
    {0x1b8, 0x1b8, 1, 1},     {0x1bc, 0x1bc, 1, 1},       {0x1c4, 0x1c4, 1, 2},
    {0x1c5, 0x1c5, 1, 1},     {0x1c7, 0x1c7, 1, 2},       {0x1c8, 0x1c8, 1, 1},
    {0x1ca, 0x1ca, 1, 2},     {0x1cb, 0x1cb, 1, 1},       {0x1e0, 0x1e4, 2, 1},
    {0x1ee, 0x1ee, 1, 1},     {0x1f1, 0x1f1, 1, 2},       {0x1f2, 0x1f2, 1, 1},
    {0x1f6, 0x1f6, 1, -97},   {0x1f7, 0x1f7, 1, -56},     {0x1fc, 0x1fe, 2, 1},
    {0x21c, 0x21c, 1, 1},     {0x220, 0x220, 1, -130},    {0x222, 0x224, 2, 1},
    {0x23a, 0x23a, 1, 10795}, {0x23b, 0x23b, 1, 1},       {0x23d, 0x23d, 1, -163},
    {0x23e, 0x23e, 1, 10792}, {0x241, 0x241, 1, 1},       {0x243, 0x243, 1, -195},
    {0x244, 0x244, 1, 69},    {0x245, 0x245, 1, 71},      {0x246, 0x24e, 2, 1},
    {0x370, 0x372, 2, 1},     {0x376, 0x376, 1, 1},       {0x386, 0x386, 1, 38},
    {0x388, 0x38a, 1, 37},    {0x38c, 0x38c, 1, 64},      {0x38e, 0x38f, 1, 63},
    {0x391, 0x3a1, 1, 32},    {0x3a3, 0x3ab, 1, 32},      {0x3c2, 0x3c2, 1, 1},
    {0x3cf, 0x3cf, 1, 8},     {0x3d0, 0x3d0, 1, -30},     {0x3d1, 0x3d1, 1, -25},
    {0x3d5, 0x3d5, 1, -15},   {0x3d6, 0x3d6, 1, -22},     {0x3d8, 0x3ee, 2, 1},
    {0x3f0, 0x3f0, 1, -54},   {0x3f1, 0x3f1, 1, -48},     {0x3f4, 0x3f4, 1, -60},
    {0x3f5, 0x3f5, 1, -64},   {0x3f7, 0x3f7, 1, 1},       {0x3f9, 0x3f9, 1, -7},
    {0x3fa, 0x3fa, 1, 1},     {0x3fd, 0x3ff, 1, -130},    {0x400, 0x40f, 1, 80},
    {0x410, 0x42f, 1, 32},    {0x460, 0x480, 2, 1},       {0x48a, 0x4be, 2, 1},
    {0x4c0, 0x4c0, 1, 15},    {0x4c1, 0x4cd, 2, 1},       {0x4d0, 0x526, 2, 1},
    {0x531, 0x556, 1, 48},    {0x1e9e, 0x1e9e, 1, -7615}, {0x1efa, 0x1efe, 2, 1},
};

// U+0300 to U+0331: accents that stand behind their letter.
constexpr char32_t kMarksFrom = 0x300;
constexpr uint64_t kMarks = 0x361f808029fdf;

char32_t Folded(char32_t c) {
  if (c >= 'A' && c <= 'Z') return c - 'A' + 'a';
  if (c < 0x80) return c;
  auto plain = [c](char32_t from, std::string_view letters) -> char32_t {
    if (c < from || c - from >= letters.size()) return 0;
    const char letter = letters[c - from];
    return letter == '.' ? 0 : static_cast<char32_t>(letter);
  };
  if (char32_t letter = plain(kLatinFrom, kLatin); letter != 0) return letter;
  if (char32_t letter = plain(kMoreFrom, kMore); letter != 0) return letter;
  const Run* run = std::lower_bound(
      std::begin(kRuns), std::end(kRuns), c,
      [](const Run& r, char32_t code_point) { return r.last < code_point; });
  if (run == std::end(kRuns) || c < run->first || (c - run->first) % run->step != 0)
    return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + run->add);
}

}  // namespace

std::string FoldForSearch(std::string_view rest) {
  std::string out;
  out.reserve(rest.size());
  while (!rest.empty()) {
    char32_t c = 0;
    const size_t length = DecodeUtf8(rest, c);
    if (length == 0) {
      out += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    const bool is_mark =
        c >= kMarksFrom && c - kMarksFrom < 64 && (kMarks >> (c - kMarksFrom) & 1) != 0;
    if (const char32_t folded = Folded(c); folded != c)
      AppendUtf8(out, folded);
    else if (!is_mark)
      out += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return out;
}

}  // namespace belay
