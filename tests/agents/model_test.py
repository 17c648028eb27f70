#!/usr/bin/env python3
"""The scripted model, asked as agents ask it: over HTTP, in every dialect."""
import sys

sys.dont_write_bytecode = True

import contextlib
import gzip
import http.client
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import model_request
import model_script
import model_server

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = {
    "rules": [
        {"name": "first", "prompt": "turn 1:", "unless": ["remember this conversation"],
         "steps": [
             {"text": "Two at once.", "calls": [{"name": "write", "args": {"path": "é.txt"}},
                                                {"name": "run", "args": {"cmd": "rm x"}}]},
             {"text": "Then one.", "calls": [{"name": "run", "args": {"cmd": "ls"}}]},
             {"text": "Done."}]},
        {"name": "second", "prompt": "turn 2:", "steps": [
            {"calls": [{"name": "patch", "input": "*** Begin"}]}, {"text": "Done again."}]},
    ],
    "side": {"text": "A title"},
}
FIRST = ("Two at once.", [("write", {"path": "é.txt"}), ("run", {"cmd": "rm x"})])
TOOLS = ["write", "run", "patch"]


class Dialect:
    """A client: builds requests from plain messages, reads answers back."""
    path = ""

    def body(self, messages, tools, stream):
        raise NotImplementedError


class Anthropic(Dialect):
    path = "/v1/messages?beta=true"

    def body(self, messages, tools, stream):
        made = []
        for role, text, calls, results in messages:
            blocks = [{"type": "text", "text": text}] if text else []
            blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
            blocks += [{"type": "tool_result", "tool_use_id": i,
                        "content": [{"type": "text", "text": t}]} for i, t in results]
            made.append({"role": role, "content": blocks})
        return {"model": "m", "messages": made, "stream": stream, "max_tokens": 10,
                "system": [{"type": "text", "text": "be good"}],
                "tools": [{"name": t, "input_schema": {}} for t in tools]}

    def whole(self, data):
        text = "".join(b["text"] for b in data["content"] if b["type"] == "text")
        calls = [(b["id"], b["name"], b["input"]) for b in data["content"]
                 if b["type"] == "tool_use"]
        assert (data["stop_reason"] == "tool_use") == bool(calls)
        return text, calls

    def streamed(self, events):
        blocks, parts = {}, {}
        for name, data in events:
            assert name == data["type"]
            if name == "content_block_start":
                blocks[data["index"]] = data["content_block"]
                parts[data["index"]] = ""
            elif name == "content_block_delta":
                delta = data["delta"]
                parts[data["index"]] += delta.get("text", "") + delta.get("partial_json", "")
        text = "".join(parts[i] for i, b in blocks.items() if b["type"] == "text")
        assert events[-1][0] == "message_stop"
        return text, [(b["id"], b["name"], json.loads(parts[i])) for i, b in blocks.items()
                      if b["type"] == "tool_use"]


class Responses(Dialect):
    path = "/v1/responses"

    def body(self, messages, tools, stream):
        items = []
        for role, text, calls, results in messages:
            if text:
                kind = "output_text" if role == "assistant" else "input_text"
                items.append({"type": "message", "role": role,
                              "content": [{"type": kind, "text": text}]})
            for call, name, args in calls:
                items.append({"type": "custom_tool_call", "call_id": call, "name": name,
                              "input": args} if isinstance(args, str) else
                             {"type": "function_call", "call_id": call, "name": name,
                              "arguments": json.dumps(args)})
            items += [{"type": "function_call_output", "call_id": i, "output": t}
                      for i, t in results]
        return {"model": "m", "instructions": "be good", "input": items, "stream": stream,
                "tools": [{"type": "function", "name": t} for t in tools]}

    def whole(self, data):
        assert data["status"] == "completed"
        return self._output(data["output"])

    def _output(self, output):
        text = "".join(i["content"][0]["text"] for i in output if i["type"] == "message")
        calls = [(i["call_id"], i["name"], i["input"] if i["type"] == "custom_tool_call"
                  else json.loads(i["arguments"])) for i in output if i["type"] != "message"]
        return text, calls

    def streamed(self, events):
        assert [d["sequence_number"] for _, d in events] == list(range(len(events)))
        done = [d["item"] for n, d in events if n == "response.output_item.done"]
        deltas = "".join(d["delta"] for n, d in events if n == "response.output_text.delta")
        text, calls = self._output(done)
        assert deltas == text and events[-1][0] == "response.completed"
        return text, calls


class Chat(Dialect):
    path = "/v1/chat/completions"

    def body(self, messages, tools, stream):
        made = [{"role": "system", "content": "be good"}]
        for role, text, calls, results in messages:
            if text or calls:
                made.append({"role": role, "content": text})
            if calls:
                made[-1]["tool_calls"] = [
                    {"id": i, "type": "function",
                     "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
            made += [{"role": "tool", "tool_call_id": i, "content": t} for i, t in results]
        return {"model": "m", "messages": made, "stream": stream,
                "tools": [{"type": "function", "function": {"name": t}} for t in tools]}

    def whole(self, data):
        said = data["choices"][0]["message"]
        return said["content"] or "", [
            (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in said.get("tool_calls", [])]

    def streamed(self, events):
        assert events.pop() == (None, "[DONE]")
        text, calls = "", {}
        for _, data in events:
            for choice in data["choices"]:
                text += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls", []):
                    have = calls.setdefault(call["index"], [call.get("id"), "", ""])
                    have[1] += call["function"].get("name", "")
                    have[2] += call["function"]["arguments"]
        return text, [(i, n, json.loads(a)) for i, n, a in calls.values()]


class Gemini(Dialect):
    path = ""

    def body(self, messages, tools, stream):
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        self.path = "/v1beta/models/gemini-2.5-pro:" + verb
        contents = []
        for role, text, calls, results in messages:
            parts = [{"text": text}] if text else []
            parts += [{"functionCall": {"id": i, "name": n, "args": a}} for i, n, a in calls]
            parts += [{"functionResponse": {"id": i, "name": "x", "response": {"output": t}}}
                      for i, t in results]
            contents.append({"role": "model" if role == "assistant" else "user",
                             "parts": parts})
        return {"contents": contents, "systemInstruction": {"parts": [{"text": "be good"}]},
                "tools": [{"functionDeclarations": [{"name": t} for t in tools]}]}

    def whole(self, data):
        parts = data["candidates"][0]["content"]["parts"]
        calls = [p["functionCall"] for p in parts if "functionCall" in p]
        return ("".join(p.get("text", "") for p in parts),
                [(c["id"], c["name"], c["args"]) for c in calls])

    def streamed(self, events):
        text, calls = "", []
        for _, data in events:
            part = self.whole(data)
            text, calls = text + part[0], calls + part[1]
        return text, calls


DIALECTS = [Anthropic(), Responses(), Chat(), Gemini()]


def user(text):
    return ("user", text, [], [])


def spoken(text, calls):
    return ("assistant", text, calls, [])


def results(calls):
    return ("user", "", [], [(call[0], "ok") for call in calls])


def read_events(text):
    events = []
    for block in text.strip().split("\n\n"):
        name = re.search(r"^event: (.*)$", block, re.M)
        data = re.search(r"^data: (.*)$", block, re.M)[1]
        events.append((name[1] if name else None,
                       data if data == "[DONE]" else json.loads(data)))
    return events


def everywhere(test):
    """The test in each dialect, streamed and whole."""
    def run(self):
        for dialect in DIALECTS:
            for stream in (True, False):
                with self.subTest(dialect=type(dialect).__name__, stream=stream):
                    test(self, dialect, stream)
    return run


class ModelTest(unittest.TestCase):
    def setUp(self):
        self.log = io.StringIO()
        self.seen = []
        self.server = model_server.ModelServer(
            model_script.Script(SCRIPT), self.log, self.seen.append)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)

    def send(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.server.url.removeprefix("http://"))
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def ask(self, dialect, messages, tools=TOOLS, stream=True):
        """(text, [(id, name, args)])"""
        body = json.dumps(dialect.body(messages, tools, stream))
        status, text = self.send("POST", dialect.path, body)
        self.assertEqual(status, 200, text)
        return dialect.streamed(read_events(text)) if stream else dialect.whole(json.loads(text))

    def logged(self):
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    @everywhere
    def test_answers_with_text_and_parallel_calls(self, dialect, stream):
        text, calls = self.ask(dialect, [user("turn 1: go")], stream=stream)
        self.assertEqual((text, [call[1:] for call in calls]), FIRST)
        self.assertNotEqual(calls[0][0], calls[1][0])

    @everywhere
    def test_goes_through_the_steps_as_the_conversation_grows(self, dialect, stream):
        said = [user("turn 1: go")]
        texts = []
        for _ in range(4):  # one more than there are steps
            text, calls = self.ask(dialect, said, stream=stream)
            texts.append(text)
            said += [spoken(text, calls), results(calls) if calls else user("and now?")]
        self.assertEqual(texts, ["Two at once.", "Then one.", "Done.", "Done."])

    @everywhere
    def test_the_same_request_gets_the_same_answer_and_other_ids(self, dialect, stream):
        first = self.ask(dialect, [user("turn 1: go")], stream=stream)
        again = self.ask(dialect, [user("turn 1: go")], stream=stream)
        self.assertEqual([c[1:] for c in first[1]], [c[1:] for c in again[1]])
        self.assertFalse({c[0] for c in first[1]} & {c[0] for c in again[1]})

    @everywhere
    def test_the_last_prompt_decides(self, dialect, stream):
        said = [user("turn 1: go"), spoken("Done.", []), user("turn 2: go on")]
        _, calls = self.ask(dialect, said, stream=stream)
        self.assertEqual(calls[0][1], "patch")
        back = [user("turn 2: go on"), spoken("Done again.", []), user("turn 1: go")]
        self.assertEqual(self.ask(dialect, back, stream=stream)[0], "Two at once.")

    @everywhere
    def test_what_the_model_said_is_no_prompt(self, dialect, stream):
        said = [user("turn 1: go"), spoken("turn 2: I will go on", [])]
        self.assertEqual(self.ask(dialect, said, stream=stream)[0], "Then one.")

    @everywhere
    def test_requests_without_the_tools_are_side_requests(self, dialect, stream):
        title = self.ask(dialect, [user("turn 1: go")], tools=["run"], stream=stream)
        self.assertEqual(title, ("A title", []))
        memory = [user("turn 1: go"), user("remember this conversation")]
        self.assertEqual(self.ask(dialect, memory, stream=stream)[0], "A title")
        self.assertEqual(self.ask(dialect, [user("hello")], stream=stream)[0], "A title")

    def test_custom_tools_of_the_responses_api_take_text(self):
        for stream in (True, False):
            _, calls = self.ask(DIALECTS[1], [user("turn 2: go")], stream=stream)
            self.assertEqual(calls[0][1:], ("patch", "*** Begin"))

    @everywhere
    def test_logs_requests_verbatim_and_as_a_conversation(self, dialect, stream):
        calls = [("c1", "write", {"path": "é.txt"}), ("c2", "run", {"cmd": "rm x"})]
        said = [user("turn 1: go"), spoken("Two at once.", calls), results(calls)]
        body = dialect.body(said, TOOLS, stream)
        self.send("POST", dialect.path, json.dumps(body), {"X-Test": "kept"})
        entry = self.logged()[-1]
        self.assertEqual(entry["body"], body)
        self.assertEqual(entry["path"], dialect.path)
        self.assertEqual(entry["headers"]["X-Test"], "kept")
        self.assertEqual((entry["rule"], entry["step"]), ("first", 1))
        self.assertEqual(entry["answer"]["text"], "Then one.")
        talk = [m for m in entry["conversation"] if m["role"] != "system"]
        self.assertEqual(talk[0], {"role": "user", "text": "turn 1: go"})
        found = [c for m in talk if m["role"] == "assistant" for c in m.get("calls", [])]
        self.assertEqual(found, [{"id": i, "name": n, "args": a} for i, n, a in calls])
        answers = [r for m in talk for r in m.get("results", [])]
        self.assertEqual(answers, [{"id": "c1", "text": "ok"}, {"id": "c2", "text": "ok"}])
        self.assertEqual(self.logged(), self.seen)
        self.assertEqual([e["number"] for e in self.seen], list(range(1, len(self.seen) + 1)))

    def test_counts_tokens(self):
        body = json.dumps(Anthropic().body([user("turn 1: go")], TOOLS, False))
        self.assertEqual(self.send("POST", "/v1/messages/count_tokens", body),
                         (200, '{"input_tokens": 100}'))
        status, text = self.send("POST", "/v1beta/models/g:countTokens",
                                 '{"contents": [{"role": "user", "parts": [{"text": "x"}]}]}')
        self.assertEqual((status, text), (200, '{"totalTokens": 100}'))
        self.assertNotIn("rule", self.logged()[-1])

    def test_what_it_does_not_know_is_refused_and_logged(self):
        self.assertEqual(self.send("POST", "/v1/embeddings", "{}")[0], 404)
        self.assertEqual(self.send("POST", "/v1/messages", "not JSON")[0], 404)
        self.assertEqual(self.send("GET", "/v1/models")[0], 200)
        self.assertEqual([(e["method"], e["path"], e["body"]) for e in self.logged()],
                         [("POST", "/v1/embeddings", {}), ("POST", "/v1/messages", "not JSON"),
                          ("GET", "/v1/models", "")])

    def test_reads_compressed_and_chunked_bodies(self):
        body = json.dumps(Chat().body([user("turn 1: go")], TOOLS, False)).encode()
        for sent, headers in ((gzip.compress(body), {"Content-Encoding": "gzip"}),
                              (iter([body[:10], body[10:]]), {})):
            status, text = self.send("POST", Chat.path, sent, headers)
            self.assertEqual(status, 200)
            self.assertEqual(Chat().whole(json.loads(text))[0], "Two at once.")

    def test_agents_are_kept_waiting_while_the_request_is_looked_at(self):
        seen = []
        self.server.on_request = lambda entry: seen.append(len(self.server.entries))
        self.ask(DIALECTS[0], [user("turn 1: go")])
        self.assertEqual(seen, [1])

    def test_listens_on_loopback_alone(self):
        self.assertRegex(self.server.url, r"^http://127\.0\.0\.1:\d+$")


class ScriptTest(unittest.TestCase):
    def test_bad_scripts_are_refused(self):
        for bad in ({"rule": []}, {"rules": [{"name": "x", "prompt": "y"}]},
                    {"rules": [{"name": "x", "prompt": "y", "steps": [{"say": "z"}]}]},
                    {"side": {"calls": [{"name": "run"}]}},
                    {"side": {"calls": [{"name": "run", "args": {}, "input": ""}]}}):
            with self.subTest(bad), self.assertRaises(model_script.BadScript):
                model_script.Script(bad)

    def test_what_is_said_in_one_go_is_one_round(self):
        said = [model_request.message(role) for role in (
            "assistant", "assistant", "system", "assistant", "tool", "tool", "assistant", "user")]
        self.assertEqual(model_script.rounds(said), 2)


class CommandTest(unittest.TestCase):
    """The `model` command."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def file(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_serves_until_it_is_ended_and_keeps_the_log(self):
        log = self.file("log", "")
        child = subprocess.Popen([HERE / "model", "--script",
                                  self.file("script", json.dumps(SCRIPT)), "--log", log],
                                 stdout=subprocess.PIPE, text=True)
        address = child.stdout.readline().strip().removeprefix("http://")
        with contextlib.closing(http.client.HTTPConnection(address)) as connection:
            connection.request("GET", "/v1/models")
            self.assertEqual(connection.getresponse().status, 200)
        child.send_signal(signal.SIGTERM)
        self.assertEqual((child.communicate()[0], child.returncode), ("", 0))
        with open(log, encoding="utf-8") as file:
            self.assertEqual(json.loads(file.read())["path"], "/v1/models")

    def test_says_what_is_wrong_with_a_script(self):
        for text, why in (("{", "Expecting"), ('{"x": 1}', "unknown x")):
            done = subprocess.run([HERE / "model", "--script", self.file("bad", text)],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
