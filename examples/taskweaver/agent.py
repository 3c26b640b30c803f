"""An agent loop: a planner, a writer of code, and a process that runs the code.

The loop is written for this example. What it sends follows TaskWeaver: the
planner hands each request to the code interpreter, code that fails goes back
to its author with the error, and long conversations are summarised first.
"""

import datetime
import json
import secrets
import subprocess
import sys
from pathlib import Path

from tracing import count_prompt, count_reply, fail, note, traced, tracer

# The planner's prompt has this many rounds; what is older is summarised.
ROUNDS_KEPT = 2
MAX_RETRIES = 3


def new_id() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


class Model:
    """Answers with what was written for it beforehand, and counts the tokens."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, int]] = {}

    def ask(self, role: str, system: str, conversation: list[str], answer: str) -> str:
        messages = [{"role": "system", "content": system}]
        messages += [{"role": "user", "content": text} for text in conversation]
        counts = self.tokens.setdefault(role, {"input": 0, "output": 0})
        counts["input"] += count_prompt(messages)
        counts["output"] += count_reply(answer)
        return answer


class CodeGenerator:
    def __init__(self, model: Model) -> None:
        self._model = model

    @traced
    def reply(self, conversation: list[str], code: str) -> str:
        note(query=conversation[-1], enable_auto_plugin_selection=False, use_experience=False)
        self._model.ask("CodeGenerator", "You write Python code.", conversation, code)
        note(code=code)
        return code


class CodeExecutor:
    def __init__(self) -> None:
        self._kernel: subprocess.Popen | None = None
        self._plugins_loaded = False

    @traced
    def execute_code(self, code: str) -> tuple[bool, str]:
        with tracer.start_as_current_span("start"):
            self._start()
        if not self._plugins_loaded:
            with tracer.start_as_current_span("load_plugin"):
                self._run("import statistics")
                self._plugins_loaded = True
        with tracer.start_as_current_span("run_code"):
            note(code=code)
            answer = self._run(code)

        succeeded = answer["error"] is None
        if not succeeded:
            fail("Code execution failed.")
        outcome = "succeeded" if succeeded else "failed"
        result = f"The execution of the generated python code above has {outcome}\n"
        result += answer["output"] if succeeded else answer["error"]
        note(result=result)
        return succeeded, result

    def _start(self) -> None:
        if self._kernel is None:
            self._kernel = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("kernel.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def _run(self, code: str) -> dict:
        self._kernel.stdin.write(json.dumps({"code": code}) + "\n")
        self._kernel.stdin.flush()
        return json.loads(self._kernel.stdout.readline())

    def stop(self) -> None:
        if self._kernel is not None:
            self._kernel.stdin.close()
            self._kernel.wait(timeout=30)
            self._kernel.stdout.close()


class CodeInterpreter:
    def __init__(self, model: Model) -> None:
        self._generator = CodeGenerator(model)
        self.executor = CodeExecutor()
        self._retries = 0

    @traced
    def reply(self, conversation: list[str], code: str) -> tuple[str, str]:
        """Returns whom the answer goes to, and the answer."""
        code = self._generator.reply(conversation, code)
        note(code=code, code_verification_on=True)
        with tracer.start_as_current_span("CodeInterpreter.verify_code"):
            note(code=code)
            compile(code, "<generated>", "exec")
        succeeded, result = self.executor.execute_code(code)
        to = "Planner"
        if succeeded or self._retries >= MAX_RETRIES:
            self._retries = 0
        else:
            self._retries += 1
            to = "CodeInterpreter"
        if not succeeded:
            fail("Code execution failed.")
        note(out__from="CodeInterpreter", out__to=to, out__message=result, out__attachments="[]")
        return to, result


class RoundCompressor:
    def __init__(self, model: Model) -> None:
        self._model = model

    @traced
    def compress_rounds(self, rounds: list[str]) -> str:
        summary = self._summarize(rounds[:-ROUNDS_KEPT]) if len(rounds) > ROUNDS_KEPT else ""
        note(chat_summary=summary)
        return summary

    @traced
    def _summarize(self, rounds: list[str]) -> str:
        summary = f"There were {len(rounds)} rounds before: {'; '.join(rounds)}"
        self._model.ask("RoundCompressor", "Summarise these rounds.", rounds, summary)
        note(summary=summary)
        return summary


class Planner:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._compressor = RoundCompressor(model)

    @traced
    def reply(self, rounds: list[str], conversation: list[str], to: str, answer: str) -> str:
        note(user_query=rounds[-1], use_experience=False)
        summary = self._compressor.compress_rounds(rounds)
        self._model.ask("Planner", f"You plan. {summary}", rounds[-ROUNDS_KEPT:] + conversation, answer)
        note(out__from="Planner", out__to=to, out__message=answer, out__attachments="[]")
        return answer


class Session:
    """A conversation with one user."""

    def __init__(self, model: Model) -> None:
        self.id = new_id()
        self.rounds: list[str] = []
        self.round_ids: list[str] = []
        self._planner = Planner(model)
        self._interpreter = CodeInterpreter(model)

    @traced
    def send_message(self, message: str, attempts: list[str]) -> str:
        """Answers a message with the first of the attempts that runs."""
        note(session_id=self.id, message=message, files="None")
        answer = self._send_text_message(message, attempts)
        note(round_id=self.round_ids[-1], reply_to_user=answer)
        return answer

    @traced
    def _send_text_message(self, message: str, attempts: list[str]) -> str:
        self.round_ids.append(f"round-{new_id()}")
        note(round_id=self.round_ids[-1], round_index=len(self.rounds), message=message)
        self.rounds.append(message)
        codes = iter(attempts)
        conversation: list[str] = []
        sender, to, text = "User", "Planner", message
        while to != "User":
            with tracer.start_as_current_span("_send_message"):
                note(in__from=sender, in__recipient=to, in__message=text, in__attachments="[]")
                if to == "CodeInterpreter":
                    reply_to, text = self._interpreter.reply(conversation or [text], next(codes))
                elif sender == "User":
                    reply_to = "CodeInterpreter"
                    text = self._planner.reply(self.rounds, conversation, reply_to, f"Please compute: {text}")
                else:
                    reply_to = "User"
                    text = self._planner.reply(self.rounds, conversation, reply_to, f"Here you are. {text}")
                conversation.append(text)
            sender, to = to, reply_to
        # TaskWeaver resets its count of posts before it notes it.
        note(internal_chat_num=0)
        return text

    @traced
    def stop(self) -> None:
        self._interpreter.executor.stop()
