#include "agent/jsonc.h"

#include <gtest/gtest.h>

namespace belay {
namespace {

Jsonc Read(std::string_view text) {
  auto parsed = Jsonc::Parse(std::string(text), "f.json");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().what) << "\n" << text;
  if (!parsed.ok()) return std::move(Jsonc::Parse("[]", "f.json")).value();
  return std::move(parsed).value();
}

std::string Refusal(std::string_view text) {
  auto parsed = Jsonc::Parse(std::string(text), "f.json");
  return parsed.ok() ? "accepted" : parsed.error().what;
}

// The value at a path of names and, for arrays, positions.
Jsonc::Id At(const Jsonc& doc, const std::vector<std::string>& path) {
  Jsonc::Id id = doc.root();
  for (const std::string& part : path) {
    if (doc.kind(id) == Jsonc::Kind::kObject)
      id = doc.Member(id, part).value();
    else
      id = doc.Children(id)[static_cast<size_t>(std::stoi(part))];
  }
  return id;
}

const JsonDraft kTwo = JsonDraft::Object(
    {{"a", JsonDraft::Int(1)}, {"b", JsonDraft::Array({JsonDraft::String("x")})}});

struct JsonRow {
  std::string_view what, before;
  std::vector<std::string> path;
  std::string_view after;
};

TEST(Jsonc, PutsElementsInInTheStyleOfTheFile) {
  const JsonRow rows[] = {
      {"pretty",
       "{\n  \"l\": [\n    1\n  ]\n}\n",
       {"l"},
       "{\n  \"l\": [\n    1,\n    {\n      \"a\": 1,\n      \"b\": [\n        \"x\"\n "
       " "
       "    ]\n    }\n  ]\n}\n"},
      {"tabs",
       "{\n\t\"l\": []\n}",
       {"l"},
       "{\n\t\"l\": [\n\t\t{\n\t\t\t\"a\": 1,\n\t\t\t\"b\": [\n\t\t\t\t\"x\"\n\t\t\t]\n"
       "\t\t}\n\t]\n}"},
      {"CRLF",
       "{\r\n  \"l\": [1]\r\n}",
       {"l"},
       "{\r\n  \"l\": [1, {\"a\": 1, \"b\": [\"x\"]}]\r\n}"},
      {"one line", R"({"l":[1],"m":2})", {"l"}, R"({"l":[1,{"a":1,"b":["x"]}],"m":2})"},
      {"one line, empty", R"({"l":[]})", {"l"}, R"({"l":[{"a":1,"b":["x"]}]})"},
      {"comment on the last line",
       "[\n  1 // one\n]",
       {},
       "[\n  1, // one\n  {\n    \"a\": 1,\n    \"b\": [\n      \"x\"\n    ]\n  }\n]"},
      {"trailing comma",
       "[\n  1, // one\n]",
       {},
       "[\n  1, // one\n  {\n    \"a\": 1,\n    \"b\": [\n      \"x\"\n    ]\n  },\n]"},
      {"brackets together",
       "{\n  \"l\": [{\n    \"c\": 1\n  }]\n}",
       {"l"},
       "{\n  \"l\": [{\n    \"c\": 1\n  }, {\n    \"a\": 1,\n    \"b\": [\n      "
       "\"x\"\n "
       "   ]\n  }]\n}"},
      {"byte order mark",
       "\xef\xbb\xbf[]",
       {},
       "\xef\xbb\xbf[\n  {\n    \"a\": 1,\n    \"b\": [\n      \"x\"\n    ]\n  }\n]"},
      {"nothing but a comment",
       "[ // none yet\n]",
       {},
       "[ // none yet\n  {\n    \"a\": 1,\n    \"b\": [\n      \"x\"\n    ]\n  }\n]"},
  };
  for (const JsonRow& row : rows) {
    const Jsonc doc = Read(row.before);
    auto changed = doc.Append(At(doc, row.path), kTwo);
    ASSERT_TRUE(changed.ok()) << row.what << ": " << changed.error().what;
    EXPECT_EQ(changed->text(), row.after) << row.what;
  }
}

TEST(Jsonc, PutsMembersInAtTheEnd) {
  Jsonc doc = Read("{\n    \"z\": 1,\n    \"a\": true /* why */\n}\n");
  auto changed = doc.Append(doc.root(), "h\"k", JsonDraft::Object({}));
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->text(),
            "{\n    \"z\": 1,\n    \"a\": true, /* why */\n    \"h\\\"k\": {}\n}\n");
  EXPECT_EQ(changed->Key(changed->Children(changed->root())[2]), "h\"k");
}

TEST(Jsonc, AFileOfNothingButBlanksGetsARoot) {
  for (std::string_view text : {"", "\n", "\xef\xbb\xbf", "\xef\xbb\xbf \r\n"}) {
    const Jsonc doc = Read(text);
    EXPECT_EQ(doc.root(), Jsonc::kNone);
    auto changed = doc.SetRoot(JsonDraft::Object({{"a", JsonDraft::Int(7)}}));
    ASSERT_TRUE(changed.ok());
    EXPECT_TRUE(changed->text().starts_with(text));
    EXPECT_EQ(changed->Text(At(*changed, {"a"})), "7");
  }
}

TEST(Jsonc, WhatWasPutInComesOutToTheSameBytes) {
  const std::pair<std::string_view, std::vector<std::string>> rows[] = {
      {"[1]", {}},
      {"[ 1 ]", {}},
      {"[1,]", {}},
      {"{\"a\":[1,\t\t]}", {"a"}},
      {"[\n1\n]", {}},
      {"[\r\n\t1, // one   \r\n]", {}},
      {"[\n  1 // one   \n]", {}},
      {"[\n  1 /* a */ /* b\n c */ // d\n\n\n]", {}},
      {"[\n  1 /* a */ ]", {}},
      {"[ /* none */ ]", {}},
      {"[ // none   \n]", {}},
      {"[\n  // none\n]", {}},
      {"[]", {}},
      {"\xef\xbb\xbf{\"h\":{\"P\":[{\"x\":[]}]}} \n // end", {"h", "P"}},
      {"{\"h\": {\"P\": [ {\n\"x\": []}\n] , } }", {"h", "P"}},
      {"{\"a\":\"\xff\xfe\", \"l\": [[[]]]}", {"l", "0", "0"}},
  };
  for (const auto& [text, path] : rows) {
    const Jsonc doc = Read(text);
    auto put = doc.Append(At(doc, path), kTwo);
    ASSERT_TRUE(put.ok()) << text;
    EXPECT_NE(put->text(), text);
    const std::vector<Jsonc::Id> all = put->Children(At(*put, path));
    auto taken = put->Remove(all.back());
    ASSERT_TRUE(taken.ok()) << text;
    EXPECT_EQ(taken->text(), text) << put->text();
  }
}

TEST(Jsonc, TakesOutOneAndLeavesTheRestAndEveryComment) {
  const struct {
    std::string_view before;
    size_t which;
    std::string_view after;
  } rows[] = {
      {"[1, 2, 3]", 0, "[2, 3]"},
      {"[1, 2, 3]", 1, "[1, 3]"},
      {"[1, 2, 3]", 2, "[1, 2]"},
      {"[1,2,3]", 1, "[1,3]"},
      {"[\n  1,\n  2,\n  3\n]", 0, "[\n  2,\n  3\n]"},
      {"[\n  1,\n  2,\n  3\n]", 1, "[\n  1,\n  3\n]"},
      {"[\n  1,\n  2,\n  3,\n]", 2, "[\n  1,\n  2,\n]"},
      {"[\n  1, // one\n  2 ]", 1, "[\n  1 // one\n ]"},
      {"[\n  // before\n  1 // behind\n]", 0, "[\n  // before\n // behind\n]"},
      {"[\n  1 /* x */, // one\n  2\n]", 0, "[ /* x */ // one\n  2\n]"},
      {"[ // one\n  1\r// two\n]", 0, "[ // one\n\r// two\n]"},
      {"[  1  ]", 0, "[]"},
      {"[ 1 /* x */ ]", 0, "[ /* x */ ]"},
  };
  for (const auto& row : rows) {
    const Jsonc doc = Read(row.before);
    auto changed = doc.Remove(doc.Children(doc.root())[row.which]);
    ASSERT_TRUE(changed.ok()) << row.before << ": " << changed.error().what;
    EXPECT_EQ(changed->text(), row.after) << row.before;
  }
}

TEST(Jsonc, ReplacesAValueAndNothingElse) {
  const Jsonc doc = Read("{ \"a\" : 1 /* x */, \"b\": \"y\" }");
  auto changed = doc.Replace(At(doc, {"a"}), JsonDraft::Int(60000));
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->text(), "{ \"a\" : 60000 /* x */, \"b\": \"y\" }");
}

TEST(Jsonc, NamesAndStringsAreComparedByWhatTheyMean) {
  const Jsonc doc = Read(R"({"\u0068ooks": "\ud83d\ude00\ud83d\n\/", "x": 1})");
  auto found = doc.Member(doc.root(), "hooks");
  ASSERT_TRUE(found.ok());
  ASSERT_NE(*found, Jsonc::kNone);
  EXPECT_EQ(doc.StringOf(*found), "\xf0\x9f\x98\x80\xef\xbf\xbd\n/");
  EXPECT_EQ(doc.Member(doc.root(), "y").value(), Jsonc::kNone);
}

TEST(Jsonc, ANameThatIsThereTwiceIsSaid) {
  const Jsonc doc = Read("{\n \"a\": 1,\n \"b\": 1,\n \"a\": 2}");
  auto found = doc.Member(doc.root(), "a");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().what, "f.json:4: \"a\" is there twice, first in line 2");
  EXPECT_TRUE(doc.Member(doc.root(), "b").ok());
}

TEST(Jsonc, WhatIsBrokenIsSaidWithItsLine) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"{\n \"a\": 1\n \"b\": 2}", "f.json:3: not valid JSON: a comma or } is missing"},
      {"[1 2]", "f.json:1: not valid JSON: a comma or ] is missing here"},
      {"{\n'a': 1}", "f.json:2: not valid JSON: a name in double quotes is missing"},
      {"{\"a\" 1}", "f.json:1: not valid JSON: a colon is missing here"},
      {"{\"a\": }", "f.json:1: not valid JSON: a value is missing here"},
      {"{\n\n\"a\": \"x\n\"}", "f.json:3: not valid JSON: a string that is not ended"},
      {"[\"\\x\"]", "f.json:1: not valid JSON: a bad escape"},
      {"[\"\\u12g4\"]", "f.json:1: not valid JSON: a bad escape"},
      {"[\"\t\"]", "f.json:1: not valid JSON: a control character"},
      {"[01]", "f.json:1: not valid JSON: a bad number"},
      {"[1.]", "f.json:1: not valid JSON: a bad number"},
      {"{} x", "f.json:1: not valid JSON: something stands behind its end"},
      {"\n/* x", "f.json:2: not valid JSON: a comment that is not ended"},
      {"// x\n", "f.json:2: not valid JSON: there is nothing but comments"},
      {"{} // a\rb\n", "f.json:1: not valid JSON: a carriage return in a comment"},
      {"[,]", "f.json:1: not valid JSON: a value is missing here"},
      {"{", "f.json:1: not valid JSON: a name in double quotes is missing"},
      {"[\"a", "f.json:1: not valid JSON: a string that is not ended"},
      {"[\"a\\", "f.json:1: not valid JSON: a bad escape"},
      {"[truex]", "f.json:1: not valid JSON: a comma or ] is missing here"},
  };
  for (const auto& [text, message] : rows)
    EXPECT_EQ(Refusal(text).substr(0, message.size()), message) << text;
  EXPECT_EQ(Refusal(std::string_view("[\0]", 3)),
            "f.json:1: not valid JSON: a value is missing here");
}

TEST(Jsonc, IsBoundedInDepthAndSize) {
  EXPECT_EQ(Refusal(std::string(1'000'000, '[')), "f.json:1: nested too deeply");
  EXPECT_EQ(Refusal(std::string(Jsonc::kMaxText + 1, ' ')),
            "f.json:1: larger than 8 MiB");
  std::string deep = std::string(Jsonc::kMaxDepth, '[');
  deep += std::string(Jsonc::kMaxDepth, ']');
  const Jsonc doc = Read(deep);
  Jsonc::Id id = doc.root();
  while (!doc.IsEmpty(id)) id = doc.Children(id)[0];
  EXPECT_FALSE(doc.Append(id, kTwo).ok()) << "what cannot be read back was handed out";
}

}  // namespace
}  // namespace belay
