"""Answers questions from an archive of spans, and deletes runs and users from it.

    main.py convert ARCHIVE PARQUET      writes a Parquet file for each file of the archive
    main.py ask PARQUET questions/X.sql  prints the answer
    main.py user NAME                    prints the hash by which ml.user knows a user
    main.py delete ARCHIVE --run ID      removes all traces of a run, or of a user
    main.py text ARCHIVE > replay.jsonl  decompresses the archive, oldest spans first
"""

import argparse
import hashlib
import hmac
import json
import os
import pathlib
import sys
import tempfile

import duckdb
import zstandard

HERE = pathlib.Path(__file__).parent
# The file that the collector writes to. Full files have a time in their names.
CURRENT = "traces.jsonl.zst"


def files(archive):
    """The files of an archive, oldest first."""
    found = sorted(archive.glob("traces.jsonl*.zst"), key=lambda f: (f.name == CURRENT, f.name))
    if not found:
        sys.exit(f"{archive} has no file {CURRENT}")
    return found


def convert(archive, parquet):
    """Converts the files that are new or have grown."""
    parquet.mkdir(parents=True, exist_ok=True)
    wanted = {f.with_suffix(".parquet").name: f for f in files(archive)}
    for old in parquet.glob("*.parquet"):
        if old.name not in wanted:
            old.unlink()
    connection = duckdb.connect()
    for name, file in wanted.items():
        target = parquet / name
        if target.exists() and target.stat().st_mtime >= file.stat().st_mtime:
            continue
        unfinished = target.with_suffix(".unfinished")
        if is_whole(file):
            convert_file(connection, file, unfinished)
        else:
            # DuckDB ignores what comes after damage.
            with tempfile.NamedTemporaryFile(suffix=".jsonl") as readable:
                readable.writelines(line + b"\n" for line in lines(file))
                readable.flush()
                convert_file(connection, readable.name, unfinished)
        unfinished.replace(target)


def convert_file(connection, file, parquet):
    connection.execute("set variable archive = ?", [str(file)])
    connection.execute("set variable parquet = ?", [str(parquet)])
    connection.execute((HERE / "convert.sql").read_text())


def ask(parquet, question, as_json):
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    spans = connection.read_parquet(str(parquet / "*.parquet"))
    spans.create_view("spans")
    connection.execute((HERE / "views.sql").read_text())
    answer = connection.sql(question.read_text())
    if not as_json:
        answer.show(max_rows=1000, max_width=200)
        return
    for row in answer.fetchall():
        print(json.dumps(dict(zip(answer.columns, row)), default=str))


def frames(file):
    """The decompressed frames of a file, each a batch, and None for damaged ones."""
    data = b""
    for part in file.read_bytes().split(zstandard.FRAME_HEADER)[1:]:
        # The bytes of the header can be in the middle of a frame, too.
        data += zstandard.FRAME_HEADER + part
        for candidate in data, zstandard.FRAME_HEADER + part:
            frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                text = frame.decompress(candidate)
            except zstandard.ZstdError:
                continue
            if frame.eof:
                if candidate is not data:
                    yield None
                data = b""
                yield text
                break
    if data:
        yield None


def is_whole(file):
    """Reports whether no batch of a file is damaged, and says so if one is."""
    if file.stat().st_size > 0 and file.open("rb").read(4) != zstandard.FRAME_HEADER:
        sys.exit(f"{file} cannot be read: start the collector with --feature-gates=exporter.file.nativeCompression")
    damaged = sum(frame is None for frame in frames(file))
    if damaged:
        print(f"{file}: {damaged} damaged batches are left out", file=sys.stderr)
    return damaged == 0


def lines(file):
    """The lines of a file, without their ends."""
    for frame in frames(file):
        if frame and frame.strip():
            yield frame.strip()


def attributes(of):
    return {a["key"]: a["value"].get("stringValue") for a in of.get("attributes", [])}


def spans_of(request):
    """The spans of a line, with the attributes that they have themselves or by their resource."""
    for resource in request.get("resourceSpans", []):
        shared = attributes(resource.get("resource", {}))
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                yield span, shared | attributes(span)


def without(request, traces):
    """The line without the spans of traces, and how many these were."""
    removed = 0
    for resource in request.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            kept = [s for s in scope.get("spans", []) if s["traceId"] not in traces]
            removed += len(scope.get("spans", [])) - len(kept)
            scope["spans"] = kept
        resource["scopeSpans"] = [s for s in resource.get("scopeSpans", []) if s["spans"]]
    request["resourceSpans"] = [r for r in request.get("resourceSpans", []) if r["scopeSpans"]]
    return request, removed


def delete(archive, key, value, stopped):
    """Removes each trace that has a span with the attribute."""
    traces = set()
    for file in files(archive):
        for line in lines(file):
            if value.encode() in line:
                traces.update(s["traceId"] for s, has in spans_of(json.loads(line)) if has.get(key) == value)
    total = 0
    for file in files(archive):
        unfinished = file.with_suffix(".unfinished")
        removed = 0
        with unfinished.open("wb") as out:
            for line in lines(file):
                request, n = without(json.loads(line), traces)
                removed += n
                if request["resourceSpans"]:
                    kept = json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode() if n else line
                    out.write(zstandard.compress(kept + b"\n"))
        if removed and (file.name != CURRENT or stopped):
            os.chmod(unfinished, file.stat().st_mode)
            unfinished.replace(file)
            total += removed
            continue
        unfinished.unlink()
        if removed:
            print(f"{CURRENT} keeps {removed} spans: stop the collector and repeat this with --stopped", file=sys.stderr)
    print(f"removed {total} spans of {len(traces)} traces")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("convert")
    command.add_argument("archive", type=pathlib.Path)
    command.add_argument("parquet", type=pathlib.Path)
    command = commands.add_parser("ask")
    command.add_argument("parquet", type=pathlib.Path)
    command.add_argument("question", type=pathlib.Path)
    command.add_argument("--json", action="store_true", help="one object a row")
    command = commands.add_parser("user")
    command.add_argument("name", help="with the key in OTELCOL_ML_HASH_KEY")
    command = commands.add_parser("delete")
    command.add_argument("archive", type=pathlib.Path)
    one = command.add_mutually_exclusive_group(required=True)
    one.add_argument("--run", help="an ml.run.id")
    one.add_argument("--user", help="an ml.user")
    command.add_argument("--stopped", action="store_true", help=f"the collector is stopped, so that {CURRENT} can be replaced")
    command = commands.add_parser("text")
    command.add_argument("archive", type=pathlib.Path)
    given = parser.parse_args()
    match given.command:
        case "convert":
            convert(given.archive, given.parquet)
        case "ask":
            ask(given.parquet, given.question, given.json)
        case "user":
            key = os.environ["OTELCOL_ML_HASH_KEY"].encode()
            print(hmac.new(key, given.name.encode(), hashlib.sha256).hexdigest()[:16])
        case "delete":
            key, value = ("ml.run.id", given.run) if given.run else ("ml.user", given.user)
            delete(given.archive, key, value, given.stopped)
        case "text":
            for file in files(given.archive):
                sys.stdout.buffer.writelines(line + b"\n" for line in lines(file))


if __name__ == "__main__":
    main()
