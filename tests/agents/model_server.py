"""The scripted model behind HTTP, on loopback only.

Every request is written to the log before it is answered, one JSON object a line:

  {"number", "at", "method", "path", "headers", "body" (JSON, or a string if it is none),
   "dialect", "stream", "rule", "step", "conversation", "answer": {"text", "calls"}}

the last six only for questions to the model; `rule` is "" for a side request. A request that
means nothing here is answered with 404 and logged all the same.
"""
import gzip
import http.server
import json
import threading
import time

import model_answer
import model_request


class ModelServer:
    """`script`: a Script. `log`: a text file, or None. `on_request`: called with each log
    entry before the answer goes out; while it runs the agent waits, others do not."""

    def __init__(self, script, log=None, on_request=None, port=0):
        self.script, self.log, self.on_request = script, log, on_request
        self.entries = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        self._thread = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def serve(self):
        self._http.serve_forever(poll_interval=0.02)

    def __enter__(self):
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def receive(self, method, path, headers, raw):
        """Logs a request; (Request or None, Choice or None)."""
        body = _parse(headers, raw)
        request = model_request.read(path, body) if method == "POST" else None
        with self._lock:
            entry = {"number": len(self.entries) + 1, "at": time.time(), "method": method,
                     "path": path, "headers": dict(headers.items()), "body": body}
            choice = None
            if request and request.kind == "answer":
                choice = self.script.choose(request)
                entry.update(
                    dialect=request.dialect, stream=request.stream, rule=choice.rule,
                    step=choice.step, conversation=request.conversation,
                    answer={"text": choice.text, "calls": choice.calls})
            self.entries.append(entry)
            if self.log:
                self.log.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self.log.flush()
        if self.on_request:
            self.on_request(entry)
        return request, choice


def _parse(headers, raw):
    if headers.get("Content-Encoding") == "gzip":
        raw = gzip.decompress(raw)
    text = raw.decode("utf-8", "backslashreplace")
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def _take(self, method):
        """An agent that goes away in the middle of an answer is none of our business."""
        try:
            self._answer(method)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self, method):
        request, choice = self.model.receive(method, self.path, self.headers, self._read())
        if request is None:
            self._other(method)
        elif choice is None:
            self._json(200, model_answer.count(request))
        elif request.stream:
            self._stream(model_answer.events(request, choice))
        else:
            self._json(200, model_answer.whole(request, choice))

    def _read(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _other(self, method):
        where = self.path.split("?", 1)[0]
        if method in ("GET", "HEAD") and where.rstrip("/") in ("", "/v1"):
            self._json(200, {"ok": True})
        elif method == "GET" and where.endswith("/models"):
            self._json(200, {"object": "list", "data": [
                {"id": "scripted", "object": "model", "created": model_answer.CREATED,
                 "owned_by": "belay"}]})
        else:
            self._json(404, {"error": {"type": "not_found_error", "code": 404,
                                       "message": f"not a model's path: {self.path}"}})

    def _json(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {text}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def do_GET(self):
        self._take("GET")

    def do_HEAD(self):
        self._take("HEAD")

    def do_POST(self):
        self._take("POST")
