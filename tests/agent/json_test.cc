// Json: what is a document, what is in it, and that nothing else gets through.

#include "agent/json.h"

namespace belay::test {
namespace {

using std::string_literals::operator""s;

Json Parsed(std::string_view text) {
  auto json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << text << ": " << json.error().what;
  return json.ok() ? *json : Json();
}

TEST(Json, ReadsWhatIsThere) {
  const std::string text =
      R"( {"s":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","n":-12.5e1,"u":18446744073709551615,)"
      R"("t":true,"f":false,"z":null,"a":[1,[],{}, "x"],"o":{"in":{"ner":7}}} )";
  const Json json = Parsed(text);
  EXPECT_EQ(json.Get("s")->Text(), "a\"\\/\b\f\n\r\té😀");
  EXPECT_EQ(json.Get("n")->Number(), -125);
  EXPECT_EQ(json.Get("n")->Uint(), std::nullopt);
  EXPECT_EQ(json.Get("u")->Uint(), UINT64_MAX);
  EXPECT_EQ(json.Get("t")->Bool(), true);
  EXPECT_EQ(json.Get("f")->Bool(), false);
  EXPECT_EQ(json.Get("z")->kind(), Json::Kind::kNull);
  EXPECT_EQ(json.Get("o", "in", "ner")->Uint(), 7u);
  EXPECT_FALSE(json.Get("o", "none", "ner"));
  EXPECT_FALSE(json.Get("absent"));
  std::vector<std::string> parts;
  for (JsonParts at(*json.Get("a")); at.Next();) parts.emplace_back(at.value().raw());
  EXPECT_EQ(parts, (std::vector<std::string>{"1", "[]", "{}", "\"x\""}));
}

TEST(Json, AnotherKindIsNoAnswer) {
  const Json json = Parsed(R"({"a":[1],"s":"1","n":1})");
  EXPECT_EQ(json.Get("s")->Number(), std::nullopt);
  EXPECT_EQ(json.Get("s")->Uint(), std::nullopt);
  EXPECT_EQ(json.Get("n")->Text(), std::nullopt);
  EXPECT_EQ(json.Get("n")->Bool(), std::nullopt);
  EXPECT_FALSE(json.Get("n")->Get("x"));
  EXPECT_FALSE(json.Get("a")->Get("x"));
  EXPECT_FALSE(json.Get("s")->Get("x"));
  EXPECT_FALSE(JsonParts(*json.Get("n")).Next());
}

TEST(Json, KeepsTheOrderOfMembersAndTheFirstOfTwo) {
  const Json json = Parsed(R"({"b":1,"a":2,"b":3,"\u0062":4})");
  std::string names;
  for (JsonParts at(json); at.Next();) names += at.name();
  EXPECT_EQ(names, "babb");
  EXPECT_EQ(json.Get("b")->Uint(), 1u);
  EXPECT_EQ(JsonFields(json).Get("b")->Uint(), 1u);
}

TEST(Json, ANameIsFoundHoweverItIsWritten) {
  const Json json = Parsed(R"({"\u0061\\":1,"a\\":2,"x\\y":3})");
  EXPECT_EQ(json.Get("a\\")->Uint(), 1u);
  EXPECT_EQ(json.Get("x\\y")->Uint(), 3u);
  EXPECT_FALSE(json.Get("x\\\\y"));
  EXPECT_TRUE(Parsed(R"("\u0061b")").TextIs("ab"));
  EXPECT_FALSE(Parsed(R"("\u0061b")").TextIs("abc"));
  EXPECT_FALSE(Parsed(R"("\u0061bc")").TextIs("ab"));
}

TEST(Json, FieldsFindWhatIsBeyondTheFirstThousand) {
  std::string text = "{";
  for (int i = 0; i < 3000; ++i)
    text += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const Json json = Parsed(text);
  const JsonFields fields(json);
  EXPECT_EQ(fields.Get("k7")->Uint(), 7u);
  EXPECT_EQ(fields.Get("k2999")->Uint(), 2999u);
  EXPECT_FALSE(fields.Get("k3000"));
}

TEST(Json, HalfAPairBecomesTheReplacementCharacter) {
  EXPECT_EQ(Parsed(R"("a\ud83d")").Text(), "a\uFFFD");
  EXPECT_EQ(Parsed(R"("\ude00b")").Text(),
            "\uFFFD"
            "b");
  EXPECT_EQ(Parsed(R"("\ud83d\ud83d\ude00")").Text(), "\uFFFD😀");
  EXPECT_EQ(Parsed(R"("\ud83dx")").Text(), "\uFFFDx");
}

TEST(Json, ATextIsCutBetweenCharacters) {
  const Json json = Parsed(R"("aé\u00e9\ud83d\ude00z")");
  const std::string whole = "aéé😀z";
  const size_t ends[] = {0, 1, 1, 3, 3, 5, 5, 5, 5, 9, 10, 10};
  for (size_t limit = 0; limit < std::size(ends); ++limit)
    EXPECT_EQ(json.Text(limit), whole.substr(0, ends[limit])) << limit;
  EXPECT_EQ(CutText("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80");
}

TEST(Json, CompactLeavesOutWhiteSpaceAndNothingElse) {
  EXPECT_EQ(Parsed(" { \"a b\" : [ 1 , \"x \\\" y\" ] ,\n\t\"c\":null }").Compact(),
            R"({"a b":[1,"x \" y"],"c":null})");
}

class NotJson : public ::testing::TestWithParam<std::string> {};

TEST_P(NotJson, IsRefused) {
  auto json = Json::Parse(GetParam());
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().code, Errc::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, NotJson,
    ::testing::Values(""s, " "s, "{"s, "}"s, "["s, "]"s, "[1,]"s, "[,1]"s, "[1 2]"s,
                      "{\"a\"}"s, "{\"a\":}"s, "{\"a\":1,}"s, "{a:1}"s, "{'a':1}"s,
                      "{1:1}"s, "{\"a\" 1}"s, "[1}"s, "{\"a\":1]"s, "{}{}"s, "1 2"s,
                      "nul"s, "nulll"s, "True"s, "NaN"s, "Infinity"s, "-"s, "+1"s,
                      "01"s, "1."s, ".5"s, "1e"s, "1e+"s, "0x1"s, "\""s, "\"\\"s,
                      "\"\\x\""s, "\"\\u12\""s, "\"\\u12g4\""s, "\"\\u"s, "\"a\nb\""s,
                      "\"\t\""s, "\"\0\""s, "\0"s, "{}\0"s, "// c\n1"s, "\"\x80\""s,
                      "\"\xC3\""s, "\"\xC0\xAF\""s, "\"\xED\xA0\x80\""s,
                      "\"\xF5\x80\x80\x80\""s, "\"\xE2\x82"s, "\xEF\xBB\xBF{}"s,
                      "\xFF"s));

TEST(Json, EveryBeginningOfADocumentIsRefused) {
  const std::string text =
      R"({"a":[1,-2.5e3,true,false,null,"x\u00e9\n"],"b":{"c":{}},"d":"é😀"})";
  ASSERT_TRUE(Json::Parse(text).ok());
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(Json::Parse(text.substr(0, length)).ok()) << text.substr(0, length);
}

TEST(Json, NestsAsDeepAsItSaysAndNoDeeper) {
  const auto nested = [](size_t depth, char open, char close) {
    return std::string(depth, open) + std::string(depth, close);
  };
  EXPECT_TRUE(Json::Parse(nested(Json::kMaxDepth, '[', ']')).ok());
  EXPECT_FALSE(Json::Parse(nested(Json::kMaxDepth + 1, '[', ']')).ok());
  EXPECT_FALSE(Json::Parse(std::string(10'000'000, '[')).ok());
  std::string objects;
  for (size_t i = 0; i < Json::kMaxDepth - 1; ++i) objects += "{\"a\":";
  const std::string ends(Json::kMaxDepth - 1, '}');
  EXPECT_TRUE(Json::Parse(objects + "[]" + ends).ok());
  EXPECT_FALSE(Json::Parse(objects + "[[]]" + ends).ok());
}

// A bracket of the wrong kind, at each depth.
TEST(Json, BracketsMatchAtEveryDepth) {
  for (size_t depth = 1; depth <= Json::kMaxDepth; ++depth) {
    std::string open, close;
    for (size_t i = 0; i < depth; ++i) {
      open += i % 2 == 0 ? "[" : "{\"a\":";
      close = (i % 2 == 0 ? "]" : "}") + close;
    }
    EXPECT_TRUE(Json::Parse(open + "1" + close).ok()) << depth;
    std::string wrong = close;
    wrong[0] = wrong[0] == ']' ? '}' : ']';
    EXPECT_FALSE(Json::Parse(open + "1" + wrong).ok()) << depth;
  }
}

TEST(Json, LongTextsOfEveryKindAreReadWhole) {
  for (size_t length : {7u, 8u, 9u, 63u, 64u, 65u, 100'000u}) {
    for (std::string_view piece : {"a", "é", "\\\\", "\\\"", "\\u0041"}) {
      std::string text = "\"";
      for (size_t i = 0; i < length; ++i) text += piece;
      text += "\"";
      const std::string whole = "[" + text + ",1]";
      JsonParts at(Parsed(whole));
      ASSERT_TRUE(at.Next());
      EXPECT_EQ(at.value().raw(), text);
      ASSERT_TRUE(at.Next());
      EXPECT_EQ(at.value().Uint(), 1u);
      EXPECT_FALSE(at.Next());
      std::string broken = text;
      broken.insert(1 + (length / 2) * piece.size(), "\x01");
      EXPECT_FALSE(Json::Parse(broken).ok());
    }
  }
}

}  // namespace
}  // namespace belay::test
