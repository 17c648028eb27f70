"""What a request to a model says, the same for every dialect.

`read(path, body)` gives a Request, or None for a path that is no question to a model. Its
`conversation` is a list of messages, oldest first, each

  {"role": "user" | "assistant" | "tool" | "system", "text": "...",
   "calls": [{"id", "name", "args"}], "results": [{"id", "text"}]}

with empty fields left out. What an agent sent beside that (settings, schemas, signatures) is
only in the log's `body`, which is verbatim.
"""
import dataclasses
import json
import re

ANTHROPIC, RESPONSES, CHAT, GEMINI = "anthropic", "responses", "chat", "gemini"


@dataclasses.dataclass
class Request:
    dialect: str
    kind: str  # "answer", or "count" for a question about tokens
    stream: bool
    model: str
    tools: list  # names the model may call
    system: str
    conversation: list


def read(path, body):
    """`path` with its query, `body` parsed JSON."""
    where = path.split("?", 1)[0]
    if not isinstance(body, dict):
        return None
    if where.endswith("/messages/count_tokens"):
        return _anthropic(body, "count")
    if where.endswith("/messages"):
        return _anthropic(body, "answer")
    if where.endswith("/chat/completions"):
        return _chat(body)
    if where.endswith("/responses"):
        return _responses(body)
    found = re.search(r"/models/([^/:]+):(\w+)$", where)
    if found and found[2] in ("generateContent", "streamGenerateContent", "countTokens"):
        return _gemini(body, found[1], found[2])
    return None


def message(role, text="", calls=(), results=()):
    made = {"role": role}
    if text:
        made["text"] = text
    if calls:
        made["calls"] = list(calls)
    if results:
        made["results"] = list(results)
    return made


def text_of(content):
    """The text in a string, a part, or a list of parts, in any dialect."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        for key in ("text", "content", "output", "encrypted_content"):
            if key in content:
                return text_of(content[key])
    return ""


def _arguments(text):
    if isinstance(text, (dict, list)):
        return text
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _dicts(values):
    return [value for value in values or [] if isinstance(value, dict)]


def _anthropic(body, kind):
    conversation = []
    for said in _dicts(body.get("messages")):
        content = said.get("content")
        blocks = ([{"type": "text", "text": content}] if isinstance(content, str)
                  else _dicts(content))
        conversation.append(message(
            said.get("role", "user"),
            "\n".join(b.get("text", "") for b in blocks if b.get("type") == "text"),
            [{"id": b.get("id"), "name": b.get("name"), "args": b.get("input")}
             for b in blocks if b.get("type") == "tool_use"],
            [{"id": b.get("tool_use_id"), "text": text_of(b.get("content"))}
             for b in blocks if b.get("type") == "tool_result"]))
    return Request(ANTHROPIC, kind, bool(body.get("stream")), body.get("model", ""),
                   [t.get("name") for t in _dicts(body.get("tools"))],
                   text_of(body.get("system")), conversation)


def _chat(body):
    conversation, system = [], []
    for said in _dicts(body.get("messages")):
        role, text = said.get("role", "user"), text_of(said.get("content"))
        if role in ("system", "developer"):
            system.append(text)
            conversation.append(message("system", text))
        elif role == "tool":
            conversation.append(message(
                "tool", results=[{"id": said.get("tool_call_id"), "text": text}]))
        else:
            calls = [{"id": c.get("id"), "name": c.get("function", {}).get("name"),
                      "args": _arguments(c.get("function", {}).get("arguments"))}
                     for c in _dicts(said.get("tool_calls"))]
            conversation.append(message(role, text, calls))
    names = [t.get("function", t).get("name") for t in _dicts(body.get("tools"))]
    return Request(CHAT, "answer", bool(body.get("stream")), body.get("model", ""), names,
                   "\n".join(system), conversation)


def _responses_item(item):
    kind = item.get("type", "message")
    if kind == "message":
        role = item.get("role", "user")
        role = "system" if role == "developer" else role
        return message(role, text_of(item.get("content")))
    if kind == "agent_message":  # what one of Codex's agents tells another
        return message("user", text_of(item.get("content")))
    if kind in ("function_call", "custom_tool_call"):
        args = _arguments(item.get("arguments")) if kind == "function_call" else item.get("input")
        return message("assistant", calls=[
            {"id": item.get("call_id"), "name": item.get("name"), "args": args}])
    if kind in ("function_call_output", "custom_tool_call_output"):
        return message("tool", results=[
            {"id": item.get("call_id"), "text": text_of(item.get("output"))}])
    return None  # reasoning and the like


def _tool_names(tools):
    names = []
    for tool in _dicts(tools):
        if tool.get("type") == "namespace":
            names += _tool_names(tool.get("tools"))
        else:
            names.append(tool.get("name") or tool.get("type"))
    return names


def _responses(body):
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else _dicts(given)
    conversation = [said for said in map(_responses_item, items) if said]
    return Request(RESPONSES, "answer", bool(body.get("stream")), body.get("model", ""),
                   _tool_names(body.get("tools")), text_of(body.get("instructions")),
                   conversation)


def _gemini(body, model, verb):
    inner = body.get("generateContentRequest", body)
    conversation = []
    for said in _dicts(inner.get("contents")):
        parts = _dicts(said.get("parts"))
        calls = [{"id": p["functionCall"].get("id"), "name": p["functionCall"].get("name"),
                  "args": p["functionCall"].get("args", {})} for p in parts if "functionCall" in p]
        results = [{"id": p["functionResponse"].get("id") or p["functionResponse"].get("name"),
                    "text": text_of(p["functionResponse"].get("response"))}
                   for p in parts if "functionResponse" in p]
        text = "\n".join(p["text"] for p in parts if p.get("text") and not p.get("thought"))
        role = "assistant" if said.get("role") == "model" else "user"
        conversation.append(message(role, text, calls, results))
    names = [f.get("name") for t in _dicts(inner.get("tools"))
             for f in _dicts(t.get("functionDeclarations"))]
    return Request(GEMINI, "count" if verb == "countTokens" else "answer",
                   verb == "streamGenerateContent", model, names,
                   text_of((inner.get("systemInstruction") or {}).get("parts")), conversation)
