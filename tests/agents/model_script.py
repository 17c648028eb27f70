"""What the model answers: a script of rules, and nothing remembered between requests.

A script is JSON:

  {"rules": [{"name": "turn 1", "prompt": "turn 1:",
              "steps": [{"text": "Writing.", "calls": [{"name": "Write", "args": {...}}]},
                        {"text": "Turn 1 complete."}]}],
   "side": {"text": "A title"}}

Of the rules whose `prompt` stands in something the user said, the one that stands there last
decides. Which of its steps is the answer follows from the request too: how often the model
has spoken since that prompt. So a request that is sent again gets the same answer, and a
conversation that was cut, forked or resumed goes on where it stands.

Agents ask other things meanwhile (a title, a topic, a summary). A rule is for requests that
offer every tool its steps call (or its `tools`, where given), and none of whose texts
contains one of `unless`; all else gets `side`. A conversation that goes on after the last
step gets the last step again if it calls nothing, else `side`.

A call has `args` (an object) or `input` (a string: a custom tool of the Responses API), and
there, if the tool is in one, a `namespace`.
"""
import dataclasses
import itertools
import json
import os

SIDE = {"text": "Scripted side answer."}


class BadScript(Exception):
    """The text says what is wrong with it."""


@dataclasses.dataclass
class Choice:
    id: str  # of the answer
    rule: str  # "" for a side request
    step: int
    text: str
    calls: list  # with ids


def _check_step(step, where):
    unknown = set(step) - {"text", "calls"}
    if unknown:
        raise BadScript(f"{where}: unknown {', '.join(sorted(unknown))}")
    for call in step.get("calls", []):
        if "name" not in call or ("args" in call) == ("input" in call):
            raise BadScript(f"{where}: a call needs a name and either args or input")


class Script:
    def __init__(self, data, nonce=None):
        unknown = set(data) - {"rules", "side"}
        if unknown:
            raise BadScript(f"unknown {', '.join(sorted(unknown))}")
        self.rules = data.get("rules", [])
        self.side = data.get("side", SIDE)
        _check_step(self.side, "side")
        for rule in self.rules:
            if not rule.get("name") or not rule.get("prompt") or not rule.get("steps"):
                raise BadScript("a rule needs name, prompt and steps")
            for at, step in enumerate(rule["steps"]):
                _check_step(step, f"{rule['name']}, step {at}")
        # Ids are unique over all runs: agents and Belay take them for that.
        self._nonce = nonce or os.urandom(6).hex()
        self._count = itertools.count(1)

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            try:
                return cls(json.load(file))
            except ValueError as error:
                raise BadScript(str(error)) from error

    def choose(self, request):
        rule, since = self._rule_for(request)
        if rule is None:
            return self._choice("", 0, self.side)
        at = rounds(request.conversation[since + 1:])
        steps = rule["steps"]
        if at < len(steps):
            return self._choice(rule["name"], at, steps[at])
        if not steps[-1].get("calls"):
            return self._choice(rule["name"], at, steps[-1])
        return self._choice("", 0, self.side)

    def _rule_for(self, request):
        best, place = None, (-1, -1)
        for rule in self.rules:
            at = last_prompt(request.conversation, rule["prompt"])
            if at > place:
                best, place = rule, at
        if best is None or not self._concerns(best, request):
            return None, -1
        return best, place[0]

    @staticmethod
    def _concerns(rule, request):
        needed = rule.get("tools")
        if needed is None:
            needed = [call["name"] for step in rule["steps"] for call in step.get("calls", [])]
        if not set(needed) <= set(request.tools):
            return False
        said = [request.system] + [m.get("text", "") for m in request.conversation]
        return not any(word in text for word in rule.get("unless", []) for text in said)

    def _choice(self, rule, step, answer):
        calls = [dict(call, id="call_" + self._id()) for call in answer.get("calls", [])]
        return Choice(self._id(), rule, step, answer.get("text", ""), calls)

    def _id(self):
        return f"{self._nonce}{next(self._count):06d}"


def last_prompt(conversation, words):
    """(message, offset) of the last place where the user said `words`; (-1, -1) if never."""
    for at in range(len(conversation) - 1, -1, -1):
        said = conversation[at]
        if said["role"] == "user" and words in said.get("text", ""):
            return at, said["text"].rindex(words)
    return -1, -1


def rounds(conversation):
    """How often the model spoke: what it says in one go may be several messages."""
    count, speaking = 0, False
    for said in conversation:
        if said["role"] == "assistant":
            count += not speaking
            speaking = True
        elif said["role"] in ("user", "tool"):
            speaking = False
    return count
