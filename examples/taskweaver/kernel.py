"""Runs the agent's code: a Python process that keeps its variables.

One JSON object a line: {"code"} in, {"output", "error"} out. It stands for the
Jupyter kernel that TaskWeaver starts for each session.
"""

import contextlib
import io
import json
import sys
import traceback


def main() -> None:
    variables: dict = {}
    for line in sys.stdin:
        output, error = io.StringIO(), None
        with contextlib.redirect_stdout(output):
            try:
                exec(json.loads(line)["code"], variables)
            except Exception:
                error = traceback.format_exc()
        sys.stdout.write(json.dumps({"output": output.getvalue(), "error": error}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
