"""A small server that speaks the APIs of OpenAI and Anthropic, without a model.

It counts words as tokens, answers with as many words as the request allows,
and keeps a log of what it served. The log is what clients' telemetry is
compared with.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The answer names the exact version of the model, as the real APIs do.
VERSION = "-2026-01-15"
# Requests to this model fail with status 500.
BROKEN_MODEL = "tiny-broken"
# Seconds before the first token and between tokens.
FIRST_TOKEN_SECONDS = 0.05
TOKEN_SECONDS = 0.003
# Seconds before a failure: longer than a client waits that sends a span when it begins.
FAILURE_SECONDS = 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = {"model": request.get("model"), "status": 200, "stream": bool(request.get("stream"))}
        with self.server.lock:
            self.server.served.append(call)
            call["id"] = f"answer-{len(self.server.served)}"
        api = {"/v1/chat/completions": OpenAI, "/v1/responses": Responses, "/v1/messages": Anthropic}.get(self.path)
        if api is None or call["model"] == BROKEN_MODEL:
            time.sleep(FAILURE_SECONDS)
            call["status"] = 404 if api is None else 500
            self.send_json(call["status"], {"error": {"message": "the model is broken", "type": "server_error"}})
            return
        if api is Responses:
            request["messages"] = api.messages(request)
        words = ["word"] * (request.get("max_completion_tokens") or request.get("max_output_tokens") or request.get("max_tokens") or 8)
        call["input"], call["cached"], call["output"] = input_tokens(request), input_tokens(request) // 2, len(words)
        call["id"] = api.prefix + call["id"]
        time.sleep(FIRST_TOKEN_SECONDS)
        if call["stream"]:
            self.stream(api.events(request, call, words))
            return
        time.sleep(TOKEN_SECONDS * len(words))
        self.send_json(200, api.answer(request, call, words))

    def stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, event in events:
            prefix = f"event: {name}\n" if name else ""
            self.wfile.write(f"{prefix}data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
            self.wfile.flush()
            time.sleep(TOKEN_SECONDS)

    def send_json(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):
        pass


def input_tokens(request):
    """Counts the words of the messages, at least 4."""
    words = 0
    for message in request["messages"]:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content]
        words += sum(len(part.split()) for part in parts)
    return max(words, 4)


def wants_tool(request):
    """A request with tools gets a call of the first one, until it has a result."""
    return request.get("tools") and not any(message["role"] == "tool" for message in request["messages"])


class OpenAI:
    prefix = "chatcmpl-"

    @staticmethod
    def head(call, kind):
        return {"id": call["id"], "object": kind, "created": int(time.time()), "model": call["model"] + VERSION}

    @staticmethod
    def usage(call):
        return {
            "prompt_tokens": call["input"],
            "completion_tokens": call["output"],
            "total_tokens": call["input"] + call["output"],
            "prompt_tokens_details": {"cached_tokens": call["cached"]},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }

    @staticmethod
    def tool_call(request, call):
        name = request["tools"][0]["function"]["name"]
        return {"index": 0, "id": "call-" + call["id"], "type": "function", "function": {"name": name, "arguments": '{"city": "Rome"}'}}

    @classmethod
    def answer(cls, request, call, words):
        message, reason = {"role": "assistant", "content": " ".join(words)}, "stop"
        if wants_tool(request):
            message, reason = {"role": "assistant", "content": None, "tool_calls": [cls.tool_call(request, call)]}, "tool_calls"
        choice = {"index": 0, "finish_reason": reason, "message": message}
        return cls.head(call, "chat.completion") | {"choices": [choice], "usage": cls.usage(call)}

    @classmethod
    def events(cls, request, call, words):
        start = cls.head(call, "chat.completion.chunk")
        deltas, reason = [{"role": "assistant", "content": word + " "} for word in words], "stop"
        if wants_tool(request):
            deltas, reason = [{"role": "assistant", "tool_calls": [cls.tool_call(request, call)]}], "tool_calls"
        for delta in deltas:
            yield None, start | {"choices": [{"index": 0, "delta": delta}]}
        yield None, start | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        if (request.get("stream_options") or {}).get("include_usage"):
            yield None, start | {"choices": [], "usage": cls.usage(call)}
        yield None, "[DONE]"


class Responses:
    prefix = "resp_"

    @staticmethod
    def messages(request):
        """Returns what was said, as the other API of OpenAI has it."""
        items = request["input"]
        if isinstance(items, str):
            return [{"role": "user", "content": items}]
        return [{"role": "tool" if item.get("type") == "function_call_output" else item.get("role"),
                 "content": item.get("content") or item.get("output")} for item in items]

    @staticmethod
    def response(request, call, **more):
        return {"id": call["id"], "object": "response", "created_at": int(time.time()), "model": call["model"] + VERSION,
                "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": request.get("tools") or []} | more

    @classmethod
    def answer(cls, request, call, words):
        output = {"type": "message", "id": "msg_" + call["id"], "role": "assistant", "status": "completed",
                  "content": [{"type": "output_text", "text": " ".join(words), "annotations": []}]}
        if wants_tool(request):
            output = {"type": "function_call", "id": "fc_" + call["id"], "call_id": "call-" + call["id"], "status": "completed",
                      "name": request["tools"][0]["name"], "arguments": '{"city": "Rome"}'}
        usage = {"input_tokens": call["input"], "input_tokens_details": {"cached_tokens": call["cached"]},
                 "output_tokens": call["output"], "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": call["input"] + call["output"]}
        return cls.response(request, call, status="completed", output=[output], usage=usage)

    @classmethod
    def events(cls, request, call, words):
        answer = cls.answer(request, call, words)
        events = [{"type": "response.created", "response": cls.response(request, call, status="in_progress")}]
        events += [{"type": "response.output_text.delta", "item_id": "msg_" + call["id"], "output_index": 0, "content_index": 0,
                    "delta": word + " ", "logprobs": []} for word in words]
        events += [{"type": "response.output_item.done", "output_index": 0, "item": answer["output"][0]},
                   {"type": "response.completed", "response": answer}]
        for number, event in enumerate(events):
            yield event["type"], event | {"sequence_number": number}


class Anthropic:
    prefix = "msg_"

    @staticmethod
    def usage(call):
        """Of the input, input_tokens are those that were not cached."""
        written = call["cached"] // 2
        return {
            "input_tokens": call["input"] - call["cached"],
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": call["cached"] - written,
            "output_tokens": call["output"],
        }

    @classmethod
    def message(cls, call, content, reason):
        return {
            "id": call["id"], "type": "message", "role": "assistant", "model": call["model"] + VERSION,
            "content": content, "stop_reason": reason, "stop_sequence": None, "usage": cls.usage(call),
        }

    @classmethod
    def answer(cls, request, call, words):
        return cls.message(call, [{"type": "text", "text": " ".join(words)}], "end_turn")

    @classmethod
    def events(cls, request, call, words):
        start = cls.message(call, [], None)
        start["usage"]["output_tokens"] = 1
        yield "message_start", {"type": "message_start", "message": start}
        yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for word in words:
            yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word + " "}}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                                "usage": {"output_tokens": call["output"]}}
        yield "message_stop", {"type": "message_stop"}


class ModelServer:
    """The server on a free port of the loopback interface, while it is used."""

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.lock, self._server.served = threading.Lock(), []
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    @property
    def served(self):
        return self._server.served

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
