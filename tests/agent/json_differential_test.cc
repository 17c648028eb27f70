// Json against simdjson: the same texts are documents, and the same is in them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "agent/json.h"

#if defined(BELAY_HAVE_SIMDJSON)
#include <simdjson.h>
#endif

namespace belay::test {
namespace {

#if defined(BELAY_HAVE_SIMDJSON)

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}
  size_t Below(size_t end) { return random_() % end; }

  std::string Space() { return Below(5) == 0 ? std::string(Below(3), ' ') : ""; }
  std::string Value(int depth) {
    switch (Below(depth > 0 ? 9 : 7)) {
      case 0:
        return "null";
      case 1:
        return Below(2) ? "true" : "false";
      case 2:
        return std::to_string(Below(1000));
      case 3:
        return "-" + std::to_string(Below(100)) + "." + std::to_string(Below(100)) +
               (Below(2) ? "e-2" : "E+1");
      case 4:
      case 5:
      case 6:
        return Text();
      case 7:
        return Array(depth - 1);
      default:
        return Object(depth - 1);
    }
  }
  std::string Text() {
    static constexpr std::string_view kPieces[] = {
        "a",       "bcdefghi",       "é", "😀", "€", "\\n", "\\\"", "\\\\",    "\\/",
        "\\u00e9", "\\ud83d\\ude00", " ", "{", "]", ",",   ":",    "\\u0000", "name"};
    std::string text = "\"";
    for (size_t i = Below(9); i > 0; --i) text += kPieces[Below(std::size(kPieces))];
    return text + "\"";
  }
  std::string Array(int depth) {
    std::string text = "[" + Space();
    for (size_t i = Below(4); i > 0; --i)
      text += Value(depth) + Space() + (i > 1 ? "," + Space() : "");
    return text + "]";
  }
  std::string Object(int depth) {
    std::string text = "{" + Space();
    for (size_t i = Below(4); i > 0; --i)
      text += Text() + Space() + ":" + Space() + Value(depth) + (i > 1 ? "," : "");
    return text + Space() + "}";
  }
  // One byte taken out, put in or changed, or the end cut off.
  void Break(std::string& text) {
    static constexpr std::string_view kBytes =
        "{}[],:\"\\u0e+-. 1\n\x01\x80\xC3\xED\xFFtn";
    if (text.empty()) return;
    const size_t at = Below(text.size());
    switch (Below(4)) {
      case 0:
        text.erase(at, 1);
        break;
      case 1:
        text.insert(at, 1, kBytes[Below(kBytes.size())]);
        break;
      case 2:
        text[at] = kBytes[Below(kBytes.size())];
        break;
      default:
        text.resize(at);
    }
  }

 private:
  std::mt19937_64 random_;
};

// Both as one text: kinds, values, order.
std::string Spell(const Json& json) {
  switch (json.kind()) {
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kBool:
      return *json.Bool() ? "true" : "false";
    case Json::Kind::kNumber:
      return std::to_string(*json.Number() + 0.0);  // -0 is 0
    case Json::Kind::kString:
      return "<" + *json.Text() + ">";
    default:
      break;
  }
  std::string text = json.is_array() ? "[" : "{";
  for (JsonParts parts(json); parts.Next();)
    text += (json.is_array() ? "" : parts.name() + "=") + Spell(parts.value()) + ";";
  return text;
}

std::string Spell(simdjson::dom::element json) {
  using simdjson::dom::element_type;
  switch (json.type()) {
    case element_type::NULL_VALUE:
      return "null";
    case element_type::BOOL:
      return bool(json) ? "true" : "false";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
      return std::to_string(double(json) + 0.0);
    case element_type::STRING:
      return "<" + std::string(std::string_view(json)) + ">";
    case element_type::ARRAY: {
      std::string text = "[";
      for (auto part : simdjson::dom::array(json)) text += Spell(part) + ";";
      return text;
    }
    default:
      break;
  }
  std::string text = "{";
  for (auto part : simdjson::dom::object(json))
    text += std::string(part.key) + "=" + Spell(part.value) + ";";
  return text;
}

TEST(JsonDifferential, AgreesWithSimdjson) {
  constexpr uint64_t kSeed = 20260607;
  constexpr int kTexts = 40'000;
  Maker maker(kSeed);
  simdjson::dom::parser parser;
  int taken = 0, refused = 0, open = 0;
  for (int i = 0; i < kTexts; ++i) {
    std::string text = maker.Value(4);
    for (size_t breaks = maker.Below(3); breaks > 0; --breaks) maker.Break(text);
    const auto ours = Json::Parse(text);
    simdjson::dom::element theirs;
    const auto error = parser.parse(simdjson::padded_string(text)).get(theirs);
    // It refuses numbers that no double holds, and halves of surrogate pairs.
    if (ours.ok() &&
        (error == simdjson::NUMBER_ERROR ||
         (error == simdjson::STRING_ERROR && text.find("\\u") != std::string::npos))) {
      ++open;
      continue;
    }
    ASSERT_EQ(ours.ok(), error == simdjson::SUCCESS) << text << "\n"
                                                     << simdjson::error_message(error);
    ++(ours.ok() ? taken : refused);
    if (!ours.ok()) continue;
    ASSERT_EQ(Spell(*ours), Spell(theirs)) << text;
  }
  EXPECT_GT(taken, kTexts / 4);
  EXPECT_GT(refused, kTexts / 4);
  EXPECT_LT(open, kTexts / 20);
}

#else

TEST(JsonDifferential, AgreesWithSimdjson) {
  GTEST_SKIP() << "libsimdjson-dev is not installed";
}

#endif

}  // namespace
}  // namespace belay::test
