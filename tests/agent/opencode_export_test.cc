// The copy of a conversation that `opencode import` takes.

#include "agent/opencode_export.h"

#include <gmock/gmock.h>

#include <set>

#include "agent/json.h"

namespace belay::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// As 1.18.33 says it: two turns, an answer in two messages in the first.
constexpr std::string_view kExport = R"({
  "info": {
    "id": "ses_e1385a16efferO1xA2BrhfVZq7",
    "slug": "jolly-engine",
    "projectID": "global",
    "directory": "/home/u/p",
    "parentID": "ses_of_somebody",
    "share": {"url": "https://x/share/1"},
    "summary": {"additions": 7, "deletions": 0, "files": 1},
    "title": "A story",
    "time": {"created": 1794968805010, "updated": 1794968858048, "archived": 5}
  },
  "messages": [
    {"info": {"role": "user", "time": {"created": 1}, "id": "msg_1ec7a5e94001AAAAAAAAAAAAAA",
              "sessionID": "ses_e1385a16efferO1xA2BrhfVZq7"},
     "parts": [{"type": "text", "text": "first wish in /home/u/p/sub, not in /home/u/p-2",
                "id": "prt_1ec7a5e95001AAAAAAAAAAAAAA",
                "sessionID": "ses_e1385a16efferO1xA2BrhfVZq7",
                "messageID": "msg_1ec7a5e94001AAAAAAAAAAAAAA"}]},
    {"info": {"role": "assistant", "parentID": "msg_1ec7a5e94001AAAAAAAAAAAAAA",
              "path": {"cwd": "/home/u/p", "root": "/home/u/p"},
              "id": "msg_1ec7a5eb0001BBBBBBBBBBBBBB",
              "sessionID": "ses_e1385a16efferO1xA2BrhfVZq7"},
     "parts": [{"type": "step-start", "snapshot": "9840369d", "id": "prt_1ec7a5eb1001AAAAAAAAAAAAAA",
                "messageID": "msg_1ec7a5eb0001BBBBBBBBBBBBBB"},
               {"type": "tool", "tool": "bash", "callID": "call_1", "id": "prt_1ec7a5eb2001AAAAAAAAAAAAAA",
                "state": {"input": {"command": "ls -d $PWD/*"},
                          "output": "/home/u/p/a\n/home/u/p/b\t/home/u/p\u0007/home/u/p",
                          "metadata": {"said": "msg_1ec7a5e94001AAAAAAAAAAAAAA it is"}},
                "messageID": "msg_1ec7a5eb0001BBBBBBBBBBBBBB"},
               {"type": "step-finish", "snapshot": "9840369d", "id": "prt_1ec7a5eb3001AAAAAAAAAAAAAA"},
               {"type": "patch", "hash": "9840369d", "files": ["/home/u/p/a"],
                "id": "prt_1ec7a5eb4001AAAAAAAAAAAAAA"}]},
    {"info": {"role": "user", "id": "msg_1ec7a5f00001CCCCCCCCCCCCCC"},
     "parts": [{"type": "text", "text": "second wish", "id": "prt_1ec7a5f01001AAAAAAAAAAAAAA"},
               {"type": "text", "text": "and more", "id": "prt_1ec7a5f02001AAAAAAAAAAAAAA"}]}
  ]
}
)";
const std::string kSession = "ses_e1385a16efferO1xA2BrhfVZq7";
const std::string kSecond = "msg_1ec7a5f00001CCCCCCCCCCCCCC";

class OpencodeExport : public ::testing::Test {
 protected:
  Result<OpencodeCopy> Plan(std::string_view text, const std::string& message = {}) {
    return PlanOpencodeCopy(text,
                            {.session = kSession,
                             .message = message,
                             .from = {AbsPath::Literal("/home/u/p")},
                             .to = AbsPath::Literal("/x/the other"),
                             .cwd = "/x/the other",
                             .now_ms = 1794968900000},
                            random);
  }
  // What is written, which is JSON.
  std::string Copy(std::string_view text, const std::string& message = {}) {
    auto plan = Plan(text, message);
    if (!plan.ok()) return plan.error().what;
    session = plan->session;
    kept = plan->kept;
    taken = plan->taken;
    std::string out;
    EXPECT_TRUE(plan->content([&out](ByteSpan bytes) {
                      out += AsText(bytes);
                      return Ok();
                    })
                    .ok());
    EXPECT_TRUE(Json::Parse(out).ok()) << out;
    return out;
  }
  // Ids of messages, each with those of its parts.
  static std::vector<std::vector<std::string>> Ids(const std::string& copy) {
    std::vector<std::vector<std::string>> out;
    const Json whole = *Json::Parse(copy);
    for (JsonParts messages(*whole.Get("messages")); messages.Next();) {
      out.push_back({*messages.value().Get("info", "id")->Text()});
      for (JsonParts parts(*messages.value().Get("parts")); parts.Next();)
        out.back().push_back(*parts.value().Get("id")->Text());
    }
    return out;
  }
  // kExport with one place changed.
  static std::string But(std::string_view from, std::string_view to) {
    std::string out(kExport);
    out.replace(out.find(from), from.size(), to);
    return out;
  }

  SeededRandom random{7};
  std::string session;
  uint64_t kept = 0, taken = 0;
};

// Mutant: opencode-copies-are-not-cut.
TEST_F(OpencodeExport, IsCutBeforeTheMessage) {
  std::string copy = Copy(kExport, kSecond);
  EXPECT_EQ(kept, 2u);
  EXPECT_EQ(taken, 1u);
  EXPECT_THAT(copy, HasSubstr("first wish"));
  EXPECT_THAT(copy, Not(HasSubstr("second wish")));
  copy = Copy(kExport);
  EXPECT_EQ(kept, 3u);
  EXPECT_EQ(taken, 0u);
  EXPECT_THAT(copy, HasSubstr("second wish"));
  Copy(kExport, "msg_1ec7a5e94001AAAAAAAAAAAAAA");
  EXPECT_EQ(kept, 0u);
  EXPECT_EQ(Plan(kExport, "msg_of_another").error().code, Errc::kNotFound);
}

// Mutant: opencode-copies-keep-ids.
TEST_F(OpencodeExport, HasIdsOfItsOwnThatRiseAsBefore) {
  const std::string copy = Copy(kExport);
  EXPECT_THAT(session, ::testing::MatchesRegex("ses_[0-9a-f]{12}[0-9A-Za-z]{14}"));
  EXPECT_THAT(copy, HasSubstr("\"id\":\"" + session + "\""));
  EXPECT_THAT(copy, Not(HasSubstr(kSession)));
  std::set<std::string> all;
  std::string last_message, last_part;
  for (const auto& message : Ids(copy)) {
    EXPECT_THAT(message[0], ::testing::MatchesRegex("msg_[0-9a-f]{12}[0-9A-Za-z]{14}"));
    EXPECT_GT(message[0], last_message);
    last_message = message[0];
    EXPECT_THAT(std::string(kExport), Not(HasSubstr(message[0])));
    for (size_t i = 1; i < message.size(); ++i) {
      EXPECT_GT(message[i], last_part);
      last_part = message[i];
      EXPECT_THAT(std::string(kExport), Not(HasSubstr(message[i])));
    }
    all.insert(message.begin(), message.end());
  }
  EXPECT_EQ(all.size(), 3u + 6u);  // a part is left
  // Before what opencode makes from now on: 1794968900000 * 4096, 48 bits of it.
  EXPECT_LT(last_message, "msg_1ec7bd1a0000");
  EXPECT_LT(last_part, "prt_1ec7bd1a0000");
  // What refers to one refers to the new one; what only speaks of it does not.
  const std::string first = Ids(copy)[0][0];
  EXPECT_THAT(copy, HasSubstr("\"parentID\": \"" + first + "\""));
  EXPECT_THAT(copy, HasSubstr("\"messageID\": \"" + first + "\""));
  EXPECT_THAT(copy, HasSubstr("msg_1ec7a5e94001AAAAAAAAAAAAAA it is"));
  // No two copies have one id.
  const std::string before = session;
  const auto ids = Ids(copy);
  const std::string again = Copy(kExport);
  EXPECT_NE(session, before);
  for (const auto& message : Ids(again))
    for (const std::string& id : message) EXPECT_FALSE(all.contains(id));
}

TEST_F(OpencodeExport, AnIdIsFoundHoweverItIsWritten) {
  const std::string plain = "\"msg_1ec7a5e94001AAAAAAAAAAAAAA\"";
  std::string text(kExport);
  for (size_t at = 0; (at = text.find(plain, at)) != std::string::npos;)
    text.replace(at + 1, 1, "\\u006d");
  const std::string copy = Copy(text);
  EXPECT_THAT(copy, Not(HasSubstr("u006d")));
  const std::string first = Ids(copy)[0][0];
  EXPECT_THAT(copy, HasSubstr("\"parentID\": \"" + first + "\""));
  EXPECT_THAT(copy, HasSubstr("\"messageID\": \"" + first + "\""));
}

TEST_F(OpencodeExport, LeadsToTheOtherDirectory) {
  const std::string copy = Copy(kExport);
  EXPECT_THAT(copy, HasSubstr(R"("directory":"/x/the other")"));
  EXPECT_THAT(copy, HasSubstr("in /x/the other/sub, not in /home/u/p-2"));
  EXPECT_THAT(copy, HasSubstr(R"("cwd": "/x/the other", "root": "/x/the other")"));
  // At the beginning of a line, too.
  EXPECT_THAT(
      copy,
      HasSubstr(R"("/x/the other/a\n/x/the other/b\t/x/the other\u0007/x/the other")"));
}

// Mutant: opencode-copies-name-snapshots.
TEST_F(OpencodeExport, IsASessionOfItsOwnWithoutSnapshotsOfOtherFiles) {
  const std::string copy = Copy(kExport);
  for (const char* left : {"ses_of_somebody", "share", "summary", "archived",
                           "\"patch\"", "snapshot", "9840369d"})
    EXPECT_THAT(copy, Not(HasSubstr(left)));
  for (const char* stays :
       {"\"A story\"", "step-start", "step-finish", "\"created\":1794968805010"})
    EXPECT_THAT(copy, HasSubstr(stays));
}

TEST_F(OpencodeExport, HoldsNothingThatWasReverted) {
  const std::string title = "\"title\"";
  std::string copy = Copy(But(
      title, R"("revert":{"messageID":")" + kSecond + R"(","snapshot":"77"},"title")"));
  EXPECT_EQ(kept, 2u);
  EXPECT_EQ(taken, 1u);
  EXPECT_THAT(copy, Not(HasSubstr("second wish")));
  EXPECT_THAT(copy, Not(HasSubstr("revert")));
  copy =
      Copy(But(title, R"("revert":{"messageID":")" + kSecond +
                          R"(","partID":"prt_1ec7a5f02001AAAAAAAAAAAAAA"},"title")"));
  EXPECT_EQ(kept, 3u);
  EXPECT_THAT(copy, HasSubstr("second wish"));
  EXPECT_THAT(copy, Not(HasSubstr("and more")));
  // One that is behind the cut changes nothing.
  Copy(But(title, R"("revert":{"messageID":")" + kSecond + R"("},"title")"), kSecond);
  EXPECT_EQ(kept, 2u);
}

TEST_F(OpencodeExport, WhatPluginsSayAroundItIsPassedOver) {
  EXPECT_EQ(Copy("loaded {1}\n" + std::string(kExport) + "bye\n").substr(0, 8),
            "{\"info\":");
}

TEST_F(OpencodeExport, IsRefusedWhereItIsNone) {
  struct Row {
    std::string text, expected;
  };
  const std::string whole(kExport);
  for (const Row& row :
       {Row{"", ""}, Row{"rubbish", ""}, Row{whole.substr(0, whole.size() / 2), ""},
        Row{"[]", "missing"}, Row{"{}", "missing"},
        Row{R"({"info":[],"messages":[]})", "missing"},
        Row{R"({"info":{"id":"ses_2"},"messages":[]})", "another session"},
        Row{But("\"messages\": [", "\"messages\": [7,"), "incomplete"},
        Row{But("\"parts\": [", "\"parts\": [7,"), "incomplete"},
        Row{But("msg_1ec7a5f00001CCCCCCCCCCCCCC", "msg_1ec7a5e94001AAAAAAAAAAAAAA"),
            "two messages"},
        Row{But("prt_1ec7a5f02001AAAAAAAAAAAAAA", "prt_1ec7a5f01001AAAAAAAAAAAAAA"),
            "two parts"},
        Row{But("\"msg_1ec7a5f00001CCCCCCCCCCCCCC\"", "\"../../x\""), "impossible"},
        Row{But("\"msg_1ec7a5f00001CCCCCCCCCCCCCC\"", "\"msg_\\u0000\""), "impossible"},
        Row{But("\"msg_1ec7a5f00001CCCCCCCCCCCCCC\"",
                "\"msg_" + std::string(300, 'a') + "\""),
            "impossible"},
        Row{But("\"msg_1ec7a5f00001CCCCCCCCCCCCCC\"", "{}"), "impossible"}}) {
    const auto plan = Plan(row.text);
    ASSERT_FALSE(plan.ok()) << row.text;
    EXPECT_EQ(plan.error().code, Errc::kInvalid) << row.text;
    EXPECT_THAT(plan.error().what, HasSubstr(row.expected));
  }
}

}  // namespace
}  // namespace belay::test
