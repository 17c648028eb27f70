"""An answer in each dialect, whole or as a stream of server-sent events.

`whole(request, choice)` gives the JSON document, `events(request, choice)` pairs of event
name (or None) and data. Texts go out in two pieces, so that readers have to join them.
"""
import json

from model_request import ANTHROPIC, CHAT, GEMINI, RESPONSES

IN, OUT = 100, 20  # tokens, as far as anybody asks
CREATED = 1700000000
_GEMINI_USAGE = {"promptTokenCount": IN, "candidatesTokenCount": OUT,
                 "totalTokenCount": IN + OUT}


def whole(request, choice):
    return _WHOLE[request.dialect](request, choice)


def events(request, choice):
    return _EVENTS[request.dialect](request, choice)


def count(request):
    if request.dialect == GEMINI:
        return {"totalTokens": IN}
    return {"input_tokens": IN}


def halves(text):
    middle = (len(text) + 1) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def _arguments(call):
    return json.dumps(call.get("args", {}), ensure_ascii=False)


def _id(prefix, choice):
    return f"{prefix}_{choice.id}"


# --- Anthropic Messages ------------------------------------------------------------------

def _anthropic_usage():
    return {"input_tokens": IN, "output_tokens": OUT, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0}


def _anthropic_message(request, choice, content):
    return {"id": _id("msg", choice), "type": "message", "role": "assistant",
            "model": request.model, "content": content, "stop_sequence": None,
            "stop_reason": "tool_use" if choice.calls else "end_turn",
            "usage": _anthropic_usage()}


def _tool_use(call, given):
    return {"type": "tool_use", "id": "toolu_" + call["id"].removeprefix("call_"),
            "name": call["name"], "input": given}


def _anthropic_whole(request, choice):
    content = [{"type": "text", "text": choice.text}] if choice.text else []
    content += [_tool_use(call, call.get("args", {})) for call in choice.calls]
    return _anthropic_message(request, choice, content)


def _anthropic_events(request, choice):
    begun = _anthropic_message(request, choice, [])
    begun["stop_reason"] = None
    yield "message_start", {"type": "message_start", "message": begun}
    blocks = [({"type": "text", "text": ""},
               [{"type": "text_delta", "text": part} for part in halves(choice.text)])
              ] if choice.text else []
    blocks += [(_tool_use(call, {}),
                [{"type": "input_json_delta", "partial_json": part}
                 for part in halves(_arguments(call))]) for call in choice.calls]
    for index, (block, deltas) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": index,
                                      "content_block": block}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index,
                                          "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    why = "tool_use" if choice.calls else "end_turn"
    yield "message_delta", {"type": "message_delta", "usage": _anthropic_usage(),
                            "delta": {"stop_reason": why, "stop_sequence": None}}
    yield "message_stop", {"type": "message_stop"}


# --- OpenAI Responses --------------------------------------------------------------------

def _text_item(choice):
    return {"type": "message", "id": _id("msg", choice), "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": choice.text, "annotations": []}]}


def _call_item(call):
    made = {"id": "fc_" + call["id"].removeprefix("call_"), "status": "completed",
            "call_id": call["id"], "name": call["name"]}
    if "input" in call:
        return dict(made, type="custom_tool_call", input=call["input"])
    if "namespace" in call:
        made["namespace"] = call["namespace"]
    return dict(made, type="function_call", arguments=_arguments(call))


def _response(request, choice, status, output):
    return {"id": _id("resp", choice), "object": "response", "created_at": CREATED,
            "status": status, "model": request.model, "output": output, "error": None,
            "incomplete_details": None, "parallel_tool_calls": True, "tools": [],
            "usage": None if status == "in_progress" else {
                "input_tokens": IN, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": OUT, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": IN + OUT}}


def _output(choice):
    return ([_text_item(choice)] if choice.text else []) + list(map(_call_item, choice.calls))


def _responses_whole(request, choice):
    return _response(request, choice, "completed", _output(choice))


def _item_events(index, item):
    where = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        at = dict(where, content_index=0)
        part = item["content"][0]
        yield "response.content_part.added", dict(at, part=dict(part, text=""))
        for piece in halves(part["text"]):
            yield "response.output_text.delta", dict(at, delta=piece)
        yield "response.output_text.done", dict(at, text=part["text"])
        yield "response.content_part.done", dict(at, part=part)
        return
    event, key = (("response.custom_tool_call_input", "input")
                  if item["type"] == "custom_tool_call"
                  else ("response.function_call_arguments", "arguments"))
    for piece in halves(item[key]):
        yield event + ".delta", dict(where, delta=piece)
    yield event + ".done", dict(where, **{key: item[key]})


def _unfinished(item):
    empty = {"message": {"content": []}, "custom_tool_call": {"input": ""},
             "function_call": {"arguments": ""}}[item["type"]]
    return dict(item, status="in_progress", **empty)


def _responses_parts(request, choice):
    begun = _response(request, choice, "in_progress", [])
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(_output(choice)):
        yield "response.output_item.added", {"output_index": index, "item": _unfinished(item)}
        yield from _item_events(index, item)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": _responses_whole(request, choice)}


def _responses_events(request, choice):
    for number, (event, data) in enumerate(_responses_parts(request, choice)):
        yield event, dict(data, type=event, sequence_number=number)


# --- OpenAI Chat Completions --------------------------------------------------------------

def _chat_usage():
    return {"prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT}


def _chat_calls(choice):
    return [{"id": call["id"], "type": "function",
             "function": {"name": call["name"], "arguments": _arguments(call)}}
            for call in choice.calls]


def _chat_whole(request, choice):
    said = {"role": "assistant", "content": choice.text or None}
    if choice.calls:
        said["tool_calls"] = _chat_calls(choice)
    return {"id": _id("chatcmpl", choice), "object": "chat.completion", "created": CREATED,
            "model": request.model, "usage": _chat_usage(),
            "choices": [{"index": 0, "message": said, "logprobs": None,
                         "finish_reason": "tool_calls" if choice.calls else "stop"}]}


def _chat_events(request, choice):
    def chunk(delta, finish=None):
        return None, {"id": _id("chatcmpl", choice), "object": "chat.completion.chunk",
                      "created": CREATED, "model": request.model,
                      "choices": [{"index": 0, "delta": delta, "logprobs": None,
                                   "finish_reason": finish}]}
    yield chunk({"role": "assistant", "content": ""})
    for part in halves(choice.text):
        yield chunk({"content": part})
    for index, call in enumerate(_chat_calls(choice)):
        begun = dict(call, index=index, function={"name": call["function"]["name"],
                                                  "arguments": ""})
        yield chunk({"tool_calls": [begun]})
        for part in halves(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, "tool_calls" if choice.calls else "stop")
    end = chunk({})[1]
    yield None, dict(end, choices=[], usage=_chat_usage())
    yield None, "[DONE]"


# --- Gemini ------------------------------------------------------------------------------

def _gemini_chunk(request, parts, finish=None):
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    made = {"candidates": [candidate], "modelVersion": request.model}
    if finish:
        candidate["finishReason"] = finish
        made["usageMetadata"] = _GEMINI_USAGE
    return made


def _gemini_calls(choice):
    return [{"functionCall": {"id": call["id"], "name": call["name"],
                              "args": call.get("args", {})}} for call in choice.calls]


def _gemini_whole(request, choice):
    parts = [{"text": choice.text}] if choice.text else []
    return _gemini_chunk(request, parts + _gemini_calls(choice), "STOP")


def _gemini_events(request, choice):
    for part in halves(choice.text):
        yield None, _gemini_chunk(request, [{"text": part}])
    calls = _gemini_calls(choice)
    yield None, _gemini_chunk(request, calls or [{"text": ""}], "STOP")


_WHOLE = {ANTHROPIC: _anthropic_whole, RESPONSES: _responses_whole, CHAT: _chat_whole,
          GEMINI: _gemini_whole}
_EVENTS = {ANTHROPIC: _anthropic_events, RESPONSES: _responses_events, CHAT: _chat_events,
           GEMINI: _gemini_events}
