"""Writes what PyTorch's own analyser says of dumps that record.py has recorded.

    python analyse.py FOLDER >FOLDER/analyser.json

It needs PyTorch 2.10 or newer, which has the analyser. On Gloo, dumps have no name of
their only group; the analyser gets copies that have one.
"""

import glob
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile


def name_group(file, copy):
    with open(file, "rb") as dump:
        content = pickle.load(dump)
    group = content["pg_config"].pop("", None)
    if group:
        content["pg_config"]["0"] = {"name": "0", "desc": "default_pg", "ranks": group["ranks"]}
    with open(copy, "wb") as dump:
        pickle.dump(content, dump)


def ranks(pattern, text):
    return sorted({int(rank) for found in re.findall(pattern, text) for rank in re.findall(r"\d+", found)})


def analyse(folder, case):
    with tempfile.TemporaryDirectory() as copies:
        for file in glob.glob(f"{folder}/{case}_rank_*"):
            name_group(file, f"{copies}/{os.path.basename(file)}")
        command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", copies, "-p", f"{case}_rank_", "--allow-incomplete-ranks"]
        done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode:
        return {"error": text.strip().splitlines()[-1]}
    return {
        "numbers": ranks(r"equence number: (\d+)", text),
        "culprits": ranks(r"Culprit rank (\d+)", text),
        "missing": ranks(r"missing ranks: \{([\d, ]*)\}", text),
        "unknown": ranks(r"missed FR dumps from ranks \(\{([\d, ]*)\}\)", text),
    }


folder = sys.argv[1]
cases = sorted({os.path.basename(file).split("_rank_")[0] for file in glob.glob(f"{folder}/*_rank_*")})
print(json.dumps({case: analyse(folder, case) for case in cases}, indent=1))
