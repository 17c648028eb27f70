#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/nearest.h"

namespace belay {
namespace {

std::string Quoted(std::string_view text) { return JsonWriter().String(text).Take(); }

TEST(Json, WritesNestedDocumentsInOrder) {
  JsonWriter json;
  json.BeginObject();
  json.Key("a").Int(-1);
  json.Key("b").BeginArray().Bool(true).Null().BeginObject().EndObject().EndArray();
  json.Key("c").BeginArray().EndArray();
  json.Key("d").Uint(std::numeric_limits<uint64_t>::max());
  json.EndObject();
  EXPECT_EQ(json.Take(),
            R"({"a":-1,"b":[true,null,{}],"c":[],"d":18446744073709551615})");
}

TEST(Json, EscapesWhatATerminalOrAParserWouldObey) {
  EXPECT_EQ(Quoted("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(Quoted("\n\r\t\b\x1b[31m"), R"("\n\r\t\u0008\u001b[31m")");
  EXPECT_EQ(Quoted(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(Quoted("\x7f\xc2\x9b"), R"("\u007f\u009b")");
  EXPECT_EQ(Quoted("\xe2\x80\xa8"), R"("\u2028")");
  EXPECT_EQ(Quoted("h\xc3\xa9 \xf0\x9f\x98\x80"), "\"h\xc3\xa9 \xf0\x9f\x98\x80\"");
}

TEST(Json, StringsAreAlwaysValidUtf8) {
  EXPECT_EQ(Quoted("a\xff"
                   "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(Json, PathsThatAreNotTextKeepTheirBytes) {
  EXPECT_EQ(JsonWriter().PathValue("src/\xc3\xa9").Take(), "\"src/\xc3\xa9\"");
  EXPECT_EQ(JsonWriter().PathValue("\xff").Take(), R"({"bytes":"/w=="})");
  EXPECT_EQ(JsonWriter().PathValue("a\xfe/b").Take(), R"({"bytes":"Yf4vYg=="})");
}

TEST(Json, NumbersReadBackAndInfinityIsNull) {
  EXPECT_EQ(JsonWriter().Double(3.1).Take(), "3.1");
  EXPECT_EQ(JsonWriter().Double(0.0).Take(), "0");
  EXPECT_EQ(JsonWriter().Double(std::numeric_limits<double>::infinity()).Take(),
            "null");
  EXPECT_EQ(JsonWriter().Double(std::numeric_limits<double>::quiet_NaN()).Take(),
            "null");
}

TEST(Json, TakeLeavesTheWriterReadyForAnotherDocument) {
  JsonWriter json;
  EXPECT_EQ(json.Int(1).Take(), "1");
  EXPECT_EQ(json.BeginArray().Raw("{}").Raw("1").EndArray().Take(), "[{},1]");
  EXPECT_EQ(json.BeginArray().Int(2).Int(3).EndArray().Take(), "[2,3]");
}

TEST(JsonDeathTest, MisuseStopsTheProgram) {
  EXPECT_DEATH(JsonWriter().BeginObject().Int(1), "internal error");
  EXPECT_DEATH(JsonWriter().BeginArray().Key("a"), "internal error");
  EXPECT_DEATH(JsonWriter().BeginArray().Take(), "internal error");
}

TEST(Base64, MatchesTheExamplesOfTheStandard) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
}

TEST(Nearest, FindsTheLikelyWordOrNone) {
  constexpr std::string_view kWords[] = {"status", "rollback", "gc", "du", "config"};
  EXPECT_EQ(NearestWord("staus", kWords), "status");
  EXPECT_EQ(NearestWord("rolback", kWords), "rollback");
  EXPECT_EQ(NearestWord("ocnfig", kWords), "config");
  EXPECT_EQ(NearestWord("STATUS", kWords), "status");
  EXPECT_EQ(NearestWord("gcc", kWords), "gc");
  EXPECT_EQ(NearestWord("xyzzy", kWords), "");
  EXPECT_EQ(NearestWord("ab", kWords), "");
  EXPECT_EQ(NearestWord("", kWords), "");
  EXPECT_EQ(NearestWord(std::string(5000, 'a'), kWords), "");
}

}  // namespace
}  // namespace belay
