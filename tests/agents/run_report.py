"""One line per check, and the sum."""
import json
import os
import tempfile


class Report:
    def __init__(self):
        self.passed = self.failed_count = self.skipped_count = 0

    def ok(self, agent, what):
        self.passed += 1
        print(f"ok       {agent:<9} {what}", flush=True)

    def failed(self, agent, what, detail=""):
        self.failed_count += 1
        print(f"FAILED   {agent:<9} {what}", flush=True)
        for line in str(detail).splitlines()[:40]:
            print(f"           {line}", flush=True)

    def skipped(self, agent, why):
        self.skipped_count += 1
        print(f"skipped  {agent:<9} {why}", flush=True)

    def check(self, agent, what, problem):
        """`problem`: what is wrong, as a text or a list of lines; nothing if empty."""
        if problem:
            detail = problem if isinstance(problem, str) else "\n".join(map(str, problem))
            self.failed(agent, what, detail)
        else:
            self.ok(agent, what)
        return not problem

    # The runs happen in another process, in other namespaces: counts come back by a file.

    def run_inside(self, enter, words):
        with tempfile.NamedTemporaryFile("r", prefix="belay-agents-counts") as file:
            os.environ["BELAY_AGENTS_COUNTS"] = file.name
            status = enter(words)
            text = file.read()
        if not text:
            self.failed("harness", f"ended with {status} before it had counted")
            return
        passed, failed, skipped = json.loads(text)
        self.passed += passed
        self.failed_count += failed
        self.skipped_count += skipped

    def write_counts(self):
        with open(os.environ["BELAY_AGENTS_COUNTS"], "w", encoding="utf-8") as file:
            json.dump([self.passed, self.failed_count, self.skipped_count], file)
        return 0

    def finish(self):
        print(f"{self.passed} passed, {self.failed_count} failed, {self.skipped_count} skipped")
        if self.failed_count:
            return 1
        return 0 if self.passed else 77
