// Forks by the agent's own program: how its answers are taken, with stand-ins that
// answer in every way. The programs themselves: tests/agents.

#include "agent/native_fork.h"

#include <gmock/gmock.h>

#include <fstream>

#include "agent/loopback_http.h"
#include "base/real_fs.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

using ::testing::HasSubstr;

class NativeFork : public ::testing::Test {
 protected:
  // A program that is this Python text; `said` is what it was told, a line each.
  NativeForkRequest Program(const std::string& text) {
    const std::string path = temp.path().bytes() + "/agent";
    {
      std::ofstream file(path);
      file << "#!/usr/bin/env python3\nimport json, os, socket, sys, time\n"
           << "note = open('" << temp.path().bytes() << "/said', 'a')\n"
           << "print('forking:', os.environ.get('BELAY_FORKING'), file=note)\n"
           << text;
    }
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return {.program = AbsPath::Literal(path),
            .environment = {"PATH=" + std::string(std::getenv("PATH"))},
            .directory = temp.path(),
            .session = "old-1",
            .timeout_ms = 20'000};
  }
  std::string Said() {
    std::ifstream file(temp.path().bytes() + "/said");
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  TempDir temp;
};

// Serves one request with `answer`.
std::string Server(const std::string& answer) {
  return R"(
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(1)
print("warning: something else", flush=True)
print("server listening on http://127.0.0.1:%d" % s.getsockname()[1], flush=True)
c, _ = s.accept()
got = b""
while b"\r\n\r\n" not in got: got += c.recv(65536)
head, body = got.split(b"\r\n\r\n", 1)
length = [int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length")][0]
while len(body) < length: body += c.recv(65536)
print(head.split(b"\r\n")[0].decode(), body.decode(), sys.argv[1:], file=note, flush=True)
c.sendall()" +
         answer + ")\nc.close()\ntime.sleep(60)\n";
}

std::string Body(const std::string& status, const std::string& json) {
  return "b'HTTP/1.1 " + status +
         "\\r\\nContent-Type: application/json\\r\\nContent-Length: " +
         std::to_string(json.size()) + "\\r\\n\\r\\n" + json + "'";
}

TEST_F(NativeFork, OpencodeIsAskedOnceAndOnlyToFork) {
  const auto forked =
      ForkByOpencode(Program(Server(Body("200 OK", R"({"id":"ses_9"})"))), "msg_1");
  ASSERT_TRUE(forked.ok()) << forked.error().what;
  EXPECT_EQ(forked->session, "ses_9");
  EXPECT_THAT(Said(), HasSubstr("forking: 1"));
  EXPECT_THAT(Said(), HasSubstr("POST /session/old-1/fork?directory=%2F"));
  EXPECT_THAT(Said(), HasSubstr(R"({"messageID":"msg_1"})"));
  EXPECT_THAT(Said(), HasSubstr("'serve', '--hostname', '127.0.0.1', '--port', '0'"));
}

// opencode 1.18.33 does, when the answer took it a moment.
TEST_F(NativeFork, AConnectionThatStaysOpenIsNotWaitedFor) {
  for (const std::string& answer :
       {Body("200 OK", R"({"id":"ses_9"})"),
        std::string(R"(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n)"
                    R"(e\r\n{"id":"ses_9"}\r\n0\r\n\r\n')")}) {
    std::string server = Server(answer);
    const size_t close = server.find("c.close()\n");
    ASSERT_NE(close, std::string::npos);
    const auto forked = ForkByOpencode(Program(server.erase(close, 10)), "msg_1");
    ASSERT_TRUE(forked.ok()) << forked.error().what;
    EXPECT_EQ(forked->session, "ses_9");
  }
}

TEST_F(NativeFork, WhatOpencodeAnswersIsChecked) {
  struct Row {
    std::string answer, expected;
  };
  for (const Row& row :
       {Row{Body("404 Not Found", R"({"name":"NotFound"})"), "it answered 404"},
        Row{Body("200 OK", R"({"id":"../../x"})"), "impossible id"},
        Row{Body("200 OK", R"({"id":"--help"})"), "no new session"},
        Row{Body("200 OK", R"({"id":7})"), "no new session"},
        Row{Body("200 OK", R"({"id":"old-1"})"), "named the session itself"},
        Row{Body("200 OK", "not json"), "could not fork"},
        Row{"b'nonsense'", "no HTTP answer"}}) {
    const auto forked = ForkByOpencode(Program(Server(row.answer)), "msg_1");
    ASSERT_FALSE(forked.ok()) << row.answer;
    EXPECT_THAT(forked.error().what, HasSubstr(row.expected));
    EXPECT_THAT(forked.error().what,
                HasSubstr("opencode could not fork the conversation"));
  }
}

const std::string kCodex = R"(
for line in sys.stdin:
    print(line.strip(), file=note, flush=True)
    m = json.loads(line)
    print(json.dumps({"method": "unasked", "params": {}}), flush=True)
    if m.get("id") == 1: print(json.dumps({"id": 1, "result": {}}), flush=True)
    if m.get("id") == 2: print(json.dumps(ANSWER), flush=True)
)";

TEST_F(NativeFork, CodexKeepsUpToTheTurnBefore) {
  const auto forked =
      ForkByCodex(Program("ANSWER = {'id': 2, 'result': {'thread': {'id': 'new-7', "
                          "'path': '/s/rollout.jsonl'}}}" +
                          kCodex),
                  "turn-1");
  ASSERT_TRUE(forked.ok()) << forked.error().what;
  EXPECT_EQ(forked->session, "new-7");
  EXPECT_EQ(forked->path, "/s/rollout.jsonl");
  EXPECT_THAT(Said(), HasSubstr("forking: 1"));
  EXPECT_THAT(Said(), HasSubstr(R"("method":"thread/fork")"));
  EXPECT_THAT(Said(), HasSubstr(R"("threadId":"old-1","lastTurnId":"turn-1")"));
}

// Mutant: a-fork-may-be-the-original.
TEST_F(NativeFork, WhatCodexCallsTheForkIsNotTheOriginal) {
  const auto forked = ForkByCodex(
      Program("ANSWER = {'id': 2, 'result': {'thread': {'id': 'old-1'}}}" + kCodex),
      "turn-1");
  ASSERT_FALSE(forked.ok());
  EXPECT_THAT(forked.error().what, HasSubstr("named the session itself"));
}

// A conversation of Codex with these turns, each record counted; `base`: what it says
// of another file.
std::string Rollout(const std::string& id, const std::string& base,
                    const std::vector<std::string>& turns, int ordinal = 0) {
  std::string out = R"({"ordinal":0,"type":"session_meta","payload":{"id":")" + id +
                    "\"" + base + "}}\n";
  for (const std::string& turn : turns)
    for (const std::string& rest :
         {R"("type":"event_msg","payload":{"type":"task_started","turn_id":")" + turn +
              "\"}}",
          std::string(
              R"("type":"response_item","payload":{"type":"message",)"
              R"("role":"user","content":[{"type":"input_text","text":"w"}]}})")})
      out += "{\"ordinal\":" + std::to_string(++ordinal) + "," + rest + "\n";
  return out;
}

// Mutant: codex-is-believed.
TEST_F(NativeFork, WhatCodexMadeEndsBeforeWhatIsTakenBack) {
  const auto put = [&](const std::string& name, const std::string& text) {
    const std::string path = temp.path().bytes() + "/" + name;
    std::ofstream(path) << text;
    return path;
  };
  AbsPath original =
      AbsPath::Literal(put("old", Rollout("old-1", "", {"t1", "t2", "t3"})));
  RealFs fs;
  std::vector<TranscriptPrompt> older;
  auto checked = [&](const std::string& path, const std::string& last = "t1") {
    const Status fine = CheckForkOfCodex(fs, {.session = "new-7", .path = path},
                                         "old-1", original, older, last);
    if (fine.ok()) return std::string();
    EXPECT_THAT(fine.error().what, HasSubstr("new-7"));
    return fine.error().what.substr(fine.error().what.find(": ") + 2);
  };
  auto referring = [](const std::string& of, int until, const std::string& to = "") {
    return R"(,"forked_from_id":")" + of + R"(","history_base":{)" +
           (to.empty() ? "" : R"("thread_id":")" + to + R"(",)") +
           R"("end_ordinal_exclusive":)" + std::to_string(until) + "}";
  };
  EXPECT_EQ(checked(put("cut", Rollout("new-7", "", {"t1"}))), "");
  EXPECT_EQ(checked(put("refers", Rollout("new-7", referring("old-1", 3), {}))), "");
  const std::string too_much = "it does not end before what is taken back";
  EXPECT_EQ(checked(put("all", Rollout("new-7", "", {"t1", "t2", "t3"}))), too_much);
  EXPECT_EQ(checked(put("to-2", Rollout("new-7", referring("old-1", 5), {}))),
            too_much);
  EXPECT_EQ(checked(put("whose", Rollout("new-7", referring("x", 3), {}))), too_much);
  EXPECT_EQ(checked(put("other", Rollout("new-7", referring("old-1", 3, "x"), {}))),
            too_much);
  EXPECT_EQ(checked(put("empty", Rollout("new-7", "", {}))), too_much);
  EXPECT_EQ(checked(temp.path().bytes() + "/nothing"), "it cannot be read");
  EXPECT_EQ(checked(""), "it did not say where");
  // A fork itself, and what is taken back is its first turn: all that it inherited.
  original = AbsPath::Literal(
      put("fork", Rollout("old-1", referring("o", 9, "oldest"), {"t2"})));
  EXPECT_EQ(checked(put("base", Rollout("new-7", referring("old-1", 9, "oldest"), {}))),
            "");
  EXPECT_EQ(checked(put("more", Rollout("new-7", referring("old-1", 9, "old-1"), {}))),
            too_much);
  EXPECT_EQ(
      checked(put("own", Rollout("new-7", referring("old-1", 9, "oldest"), {})), "t2"),
      too_much);
  EXPECT_EQ(
      checked(put("late", Rollout("new-7", referring("old-1", 10, "oldest"), {}))),
      too_much);
  // It began another file when it went back: what came before is in the older one.
  older.resize(2);
  older[0].anchor = "t0";
  older[0].ordinal = 2;
  older[1] = {.anchor = "gone", .record = {}, .text = {}, .ordinal = 4, .dead = true};
  original = AbsPath::Literal(
      put("went", Rollout("old-1", referring("old-1", 4, "old-1"), {"t2"}, 4)));
  EXPECT_EQ(
      checked(put("t0", Rollout("new-7", referring("old-1", 3, "old-1"), {})), "t0"),
      "");
  EXPECT_EQ(checked(put("gone", Rollout("new-7", referring("old-1", 3, "old-1"), {})),
                    "gone"),
            too_much);
  EXPECT_EQ(checked(put("back", Rollout("new-7", "", {"t0", "gone", "t2"})), "t2"),
            "it has what was taken back before");
}

TEST_F(NativeFork, AProgramThatFailsOrEndsOrIsSilentIsGivenUp) {
  auto forked = ForkByCodex(
      Program("ANSWER = {'id': 2, 'error': {'message': 'no such thread'}}" + kCodex),
      "t");
  ASSERT_FALSE(forked.ok());
  EXPECT_THAT(forked.error().what, HasSubstr("no such thread"));
  forked = ForkByCodex(Program("sys.exit(3)\n"), "t");
  ASSERT_FALSE(forked.ok());
  NativeForkRequest silent = Program("time.sleep(60)\n");
  silent.timeout_ms = 50;
  EXPECT_EQ(ForkByOpencode(silent, "m").error().code, Errc::kBusy);
  NativeForkRequest chatty = Program("while True: print('x' * 1000, flush=True)\n");
  chatty.timeout_ms = 300;
  EXPECT_FALSE(ForkByOpencode(chatty, "m").ok());
  NativeForkRequest none = Program("");
  none.program = AbsPath::Literal("/nothing/here");
  EXPECT_FALSE(ForkByCodex(none, "t").ok());
}

// As opencode 1.18.33 does it: without waiting for a pipe.
// Mutant: exports-go-through-pipes.
TEST_F(NativeFork, AnExportIsWholeThoughTheProgramDoesNotWait) {
  NativeForkRequest request = Program(R"(
print(sys.argv[1:], os.environ['PWD'], os.getcwd(), file=note, flush=True)
os.set_blocking(1, False)
try: os.write(1, b'x' * 3000000)
except BlockingIOError: pass
os._exit(0)
)");
  request.environment.push_back("PWD=/elsewhere");
  const auto said = ExportByOpencode(request);
  ASSERT_TRUE(said.ok()) << said.error().what;
  EXPECT_EQ(said->size(), 3'000'000u);
  EXPECT_THAT(Said(), HasSubstr("forking: 1"));
  EXPECT_THAT(Said(), HasSubstr("['export', 'old-1'] " + temp.path().bytes() + " " +
                                temp.path().bytes()));
  EXPECT_THAT(ExportByOpencode(request, 1 << 20).error().what,
              HasSubstr("it said more than 1 MiB"));
}

// Mutant: imports-are-believed.
TEST_F(NativeFork, AnImportIsDoneWhenItSaysSo) {
  const AbsPath file = AbsPath::Literal("/some/file");
  ASSERT_TRUE(ImportByOpencode(Program(R"(
print(sys.argv[1:], file=note, flush=True)
print('a plugin says something\nImported session: old-1')
)"),
                               file)
                  .ok());
  EXPECT_THAT(Said(), HasSubstr("['import', '/some/file']"));
  for (const char* text : {"", "print('Imported session: another')\n",
                           "print('Imported session: old-12')\n",
                           "print('Imported session: old-1')\nsys.exit(1)\n"}) {
    const Status taken = ImportByOpencode(Program(text), file);
    ASSERT_FALSE(taken.ok()) << text;
    EXPECT_THAT(taken.error().what,
                HasSubstr("opencode could not import the copy: it "));
  }
}

TEST_F(NativeFork, WhyThereIsNoExportIsSaid) {
  auto said = ExportByOpencode(
      Program("print('\\x1b[91m\\x1b[1mError: \\x1b[0mSession not found: x\\n', "
              "file=sys.stderr)\nsys.exit(1)\n"));
  ASSERT_FALSE(said.ok());
  EXPECT_EQ(said.error().what,
            "opencode could not export the conversation: it ended with exit code 1: "
            "Error: Session not found: x");
  said = ExportByOpencode(Program("os.kill(os.getpid(), 9)\n"));
  ASSERT_FALSE(said.ok());
  EXPECT_THAT(said.error().what, HasSubstr("signal 9"));
  NativeForkRequest silent = Program("time.sleep(60)\n");
  silent.timeout_ms = 50;
  EXPECT_EQ(ExportByOpencode(silent).error().code, Errc::kBusy);
  EXPECT_EQ(ImportByOpencode(silent, AbsPath::Literal("/f")).error().code, Errc::kBusy);
}

TEST(HttpAnswer, IsReadInBothForms) {
  EXPECT_EQ(ParseHttpAnswer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcd")->body,
            "ab");
  EXPECT_EQ(ParseHttpAnswer("HTTP/1.1 201 X\r\n\r\nall")->body, "all");
  EXPECT_EQ(ParseHttpAnswer("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
                            "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n")
                ->body,
            "abc0123456789");
  for (const char* bad :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", "HTTP/1.1 200\r\nx\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"})
    EXPECT_FALSE(ParseHttpAnswer(bad).ok()) << bad;
}

TEST(UrlEncoded, LeavesNothingThatMeansAnything) {
  EXPECT_EQ(UrlEncoded("/a b?c=d&\xc3\xa4~x"), "%2Fa%20b%3Fc%3Dd%26%C3%A4~x");
}

}  // namespace
}  // namespace belay::test
