"""A small server that speaks the chat completions API of OpenAI.

It has no model. It counts the words of the messages as input tokens, answers
with as many words as `max_tokens` asks for and counts those as output tokens,
so that a caller knows in advance what it will be told.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The answer names the exact version that served the request, as the real API
# does: ask for "tiny-1" and get "tiny-1-2026-01-15".
VERSION = "-2026-01-15"
# These two models fail, each in its own way.
BROKEN_MODEL = "tiny-broken"
SLOW_MODEL = "tiny-slow"
# The slow model answers after this many seconds.
SLOW_SECONDS = 3.0
# Time between two tokens, in seconds.
TOKEN_SECONDS = 0.005


class ChatHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.send_json(404, {"error": {"message": "no such path", "type": "invalid_request_error"}})
        elif request["model"] == BROKEN_MODEL:
            self.send_json(500, {"error": {"message": "the model is broken", "type": "server_error"}})
        else:
            if request["model"] == SLOW_MODEL:
                self.server.stopping.wait(SLOW_SECONDS)
            self.answer(request)

    def answer(self, request):
        usage = usage_of(request)
        words = [f"word{i}" for i in range(usage["completion_tokens"])]
        if request.get("stream"):
            self.stream(request, words, usage)
            return
        time.sleep(TOKEN_SECONDS * len(words))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": " ".join(words)}}
        self.send_json(200, head(request, "chat.completion") | {"choices": [choice], "usage": usage})

    def stream(self, request, words, usage):
        """Sends one event per token, and the usage in a last one if asked for."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        start = head(request, "chat.completion.chunk")
        for word in words:
            time.sleep(TOKEN_SECONDS)
            self.send_event(start | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": word + " "}}]})
        self.send_event(start | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if (request.get("stream_options") or {}).get("include_usage"):
            self.send_event(start | {"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def send_event(self, event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def send_json(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the caller did not wait for the slow model

    def log_message(self, format, *args):
        pass


def head(request, kind):
    """The members that every answer has."""
    return {
        "id": "chatcmpl-" + request.get("user", "unknown"),
        "object": kind,
        "created": int(time.time()),
        "model": request["model"] + VERSION,
    }


def usage_of(request):
    """The usage of a request, from nothing but the request."""
    prompt = sum(len(message["content"].split()) for message in request["messages"])
    completion = request.get("max_tokens", 8)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


class ChatServer:
    """The server on a free port of the loopback interface, while it is used."""

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), ChatHandler)
        self._server.stopping = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_):
        self._server.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
