"""A small server that speaks the APIs of OpenAI, Anthropic, Cohere, Gemini and Ollama, without a model.

It counts words as tokens, answers with as many words as the request allows,
and keeps a log of what it served. The log is what clients' telemetry is
compared with. Where it numbers requests, each has other counts of tokens, so
that a count tells the request.
"""

import contextlib
import itertools
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The answer names the exact version of the model, as the real APIs do.
VERSION = "-2026-01-15"
# Requests to these models fail: with status 500, with 429, with 429 every second time;
# and the streams of the last are cut.
BROKEN_MODEL, LIMITED_MODEL, BUSY_MODEL, CUT_MODEL = "tiny-broken", "tiny-limited", "tiny-busy", "tiny-cut"
# Where requests are numbered, only answers of this model say that input was cached: most of
# it, and of streams a little.
CACHED_MODEL = "tiny-cached"
# Seconds before the first token and between tokens.
FIRST_TOKEN_SECONDS = 0.05
TOKEN_SECONDS = 0.003
# Seconds before a failure: longer than a client waits that sends a span when it begins.
FAILURE_SECONDS = 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.body())
        call = {"model": request.get("model"), "status": 200, "stream": bool(request.get("stream"))}
        api = next((api for path, api in APIS if path in self.path), None)
        if api is Gemini:
            call |= {"model": re.search(r"models/([^:]+):", self.path)[1], "stream": ":stream" in self.path}
        with self.server.lock:
            self.server.served.append(call)
            number = len(self.server.served)
            call["id"] = f"answer-{number}"
            self.server.busy ^= call["model"] == BUSY_MODEL
            busy = call["model"] == BUSY_MODEL and self.server.busy
        if self.server.numbered:
            call["path"], call["at"] = self.path.partition("?")[0], time.time()
        if api is None or busy or call["model"] in (BROKEN_MODEL, LIMITED_MODEL):
            time.sleep(FAILURE_SECONDS)
            call["status"] = 404 if api is None else 500 if call["model"] == BROKEN_MODEL else 429
            self.send_json(call["status"], {"error": {"message": "the model is broken", "type": "server_error"}})
            return
        request["messages"] = api.messages(request)
        words = ["word"] * (request.get("max_completion_tokens") or request.get("max_output_tokens") or request.get("max_tokens") or 8)
        call["input"], call["cached"] = input_tokens(request), input_tokens(request) // 2
        if self.server.numbered:
            call["input"], words = 100 + 7 * number, ["word"] * (10 + number)
            call["cached"] = 0 if call["model"] != CACHED_MODEL else 3 * number if call["stream"] else call["input"] * 4 // 5
        call["output"] = len(words)
        call["id"] = api.prefix + call["id"]
        time.sleep(FIRST_TOKEN_SECONDS)
        if "embed" in self.path.lower():
            call["output"] = 0
            self.send_json(200, api.embeddings(call))
            return
        if call["stream"]:
            self.stream(api, api.events(request, call, words), 4 if call["model"] == CUT_MODEL else None)
            return
        time.sleep(TOKEN_SECONDS * len(words))
        self.send_json(200, api.answer(request, call, words))

    def body(self):
        """Reads the body, which some clients send in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def stream(self, api, events, most):
        """Sends the events, or the first ones, whose stream then breaks off."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if api.sse else "application/x-ndjson")
        self.send_header("Connection", "close")
        if most:
            self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(ConnectionError):  # the client may have had enough
            for name, event in itertools.islice(events, most):
                data = event if isinstance(event, str) else json.dumps(event)
                prefix = f"event: {name}\n" if name else ""
                self.wfile.write(f"{prefix}data: {data}\n\n".encode() if api.sse else f"{data}\n".encode())
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
    return request.get("tools") and not any(
        message["role"] == "tool" or isinstance(message.get("content"), list) and any(part.get("type") == "tool_result" for part in message["content"])
        for message in request["messages"])


class API:
    prefix, sse = "", True

    @staticmethod
    def messages(request):
        return request.get("messages") or []


class OpenAI(API):
    prefix = "chatcmpl-"

    @classmethod
    def embeddings(cls, call):
        usage = {"prompt_tokens": call["input"], "total_tokens": call["input"]}
        return {"id": call["id"], "object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}],
                "model": call["model"], "usage": usage}

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


class Responses(API):
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


class Anthropic(API):
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
        if wants_tool(request):
            tool = {"type": "tool_use", "id": "toolu_" + call["id"], "name": request["tools"][0]["name"], "input": {"city": "Rome"}}
            return cls.message(call, [tool], "tool_use")
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


class Cohere(API):
    prefix = "cohere-"

    @staticmethod
    def usage(call):
        """All words are billed, and the prompt has some more of its own."""
        return {"billed_units": {"input_tokens": call["input"] - 5, "output_tokens": call["output"]},
                "tokens": {"input_tokens": call["input"], "output_tokens": call["output"]}}

    @classmethod
    def embeddings(cls, call):
        return {"id": call["id"], "embeddings": {"float": [[0.1, 0.2]]}, "texts": ["text"],
                "meta": {"billed_units": {"input_tokens": call["input"]}}}

    @classmethod
    def answer(cls, request, call, words):
        message, reason = {"role": "assistant", "content": [{"type": "text", "text": " ".join(words)}]}, "COMPLETE"
        if wants_tool(request):
            message, reason = {"role": "assistant", "tool_plan": "ask", "tool_calls": [OpenAI.tool_call(request, call)]}, "TOOL_CALL"
        return {"id": call["id"], "message": message, "finish_reason": reason, "usage": cls.usage(call)}

    @classmethod
    def events(cls, request, call, words):
        events = [{"type": "message-start", "id": call["id"], "delta": {"message": {"role": "assistant", "content": []}}},
                  {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}}]
        events += [{"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": word + " "}}}} for word in words]
        events += [{"type": "content-end", "index": 0},
                   {"type": "message-end", "id": call["id"], "delta": {"finish_reason": "COMPLETE", "usage": cls.usage(call)}}]
        return ((event["type"], event) for event in events)


class Gemini(API):
    @staticmethod
    def messages(request):
        return [{"role": "tool" if any("functionResponse" in part for part in content["parts"]) else content.get("role"),
                 "content": content["parts"]} for content in request.get("contents") or []]

    @classmethod
    def embeddings(cls, call):
        call["input"] = 0
        return {"embeddings": [{"values": [0.1, 0.2]}]}

    @classmethod
    def part(cls, call, parts, **more):
        usage = {"promptTokenCount": call["input"], "candidatesTokenCount": call["output"],
                 "totalTokenCount": call["input"] + call["output"], "cachedContentTokenCount": call["cached"]}
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}} | more], "usageMetadata": usage,
                "modelVersion": call["model"] + VERSION, "responseId": call["id"]}

    @classmethod
    def answer(cls, request, call, words):
        parts = [{"text": " ".join(words)}]
        if wants_tool(request):
            parts = [{"functionCall": {"name": request["tools"][0]["functionDeclarations"][0]["name"], "args": {"city": "Rome"}}}]
        return cls.part(call, parts, finishReason="STOP")

    @classmethod
    def events(cls, request, call, words):
        for word in words[:-1]:
            yield None, {key: value for key, value in cls.part(call, [{"text": word + " "}]).items() if key != "usageMetadata"}
        yield None, cls.part(call, [{"text": words[-1]}], finishReason="STOP")


class Ollama(API):
    sse = False

    @staticmethod
    def part(call, content, done, **more):
        return {"model": call["model"], "created_at": "2026-01-15T00:00:00Z", "done": done,
                "message": {"role": "assistant", "content": content} | more} | ({"done_reason": "stop", "total_duration": 100_000_000,
                "prompt_eval_count": call["input"], "prompt_eval_duration": 50_000_000, "eval_count": call["output"],
                "eval_duration": 36_000_000} if done else {})

    @classmethod
    def embeddings(cls, call):
        return {"model": call["model"], "embeddings": [[0.1, 0.2]], "prompt_eval_count": call["input"]}

    @classmethod
    def answer(cls, request, call, words):
        if wants_tool(request):
            return cls.part(call, "", True, tool_calls=[{"function": {"name": request["tools"][0]["function"]["name"], "arguments": {"city": "Rome"}}}])
        return cls.part(call, " ".join(words), True)

    @classmethod
    def events(cls, request, call, words):
        for word in words:
            yield None, cls.part(call, word + " ", False)
        yield None, cls.part(call, "", True)


# What the paths of the APIs have.
APIS = (("/chat/completions", OpenAI), ("/v1/embeddings", OpenAI), ("/responses", Responses), ("/v1/messages", Anthropic),
        ("/v2/chat", Cohere), ("/v2/embed", Cohere), ("/models/", Gemini), ("/api/chat", Ollama), ("/api/embed", Ollama))


class ModelServer:
    """The server on a free port of the loopback interface, while it is used."""

    def __init__(self, numbered=False):
        self.numbered = numbered

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.lock, self._server.served = threading.Lock(), []
        self._server.numbered, self._server.busy = self.numbered, False
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
