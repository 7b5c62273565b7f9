#!/usr/bin/env python3
"""A bisect-worker of the tests' own: answers by rules instead of building anything.

FAKE_WORKER_RULES names a JSON file: a list of [pattern, answer].  The first pattern (a regular expression) that is found in the
job's id (and " twin" where its reproducer is edited) answers it.  An answer is an outcome ("pass", "fail", ...) or an object:
  {"outcome": ..., "reason": ..., "seconds": how long it takes, "behave": one of the words below}
FAKE_WORKER_EVIDENCE, where set, names a JSON file: {"build": data, "neighbour": data, "passes": data}, the answers to jobs that gather
evidence; without it they are skipped.  Artifacts get a file with one line.
FAKE_WORKER_LOG, where set, gets one JSON line a job: its id, kind, clean, runs, target and the time.
"""

import json
import os
import re
import select
import sys
import time


def say(event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def behave(word):
    if word == "garbage":
        print("this is not JSON", flush=True)
        time.sleep(30)
    elif word == "no-event":
        print('{"some": "object"}', flush=True)
        time.sleep(30)
    elif word == "flood":
        block = "x" * 65536
        for _ in range(200):
            sys.stdout.write(block)
        sys.stdout.flush()
        time.sleep(30)
    elif word == "flood-log":
        block = "x" * 65536 + "\n"
        for _ in range(2000):
            sys.stderr.write(block)
        return
    elif word == "silent":
        sys.exit(0)
    elif word == "die":
        os.kill(os.getpid(), 9)
    elif word == "never-end":
        while sys.stdin.read(65536):
            pass
        time.sleep(60)
    elif word == "wrong-type":
        say({"event": "result", "outcome": 7})
        time.sleep(30)


def toolchains(job):
    found = []
    for name in job.get("names", []):
        found.append({"name": name, "label": name, "identity": "identity of " + name, "root": "/nonexistent/" + name,
                      "rustc": "/nonexistent/rustc", "cargo": "/nonexistent/cargo", "path": "/nonexistent",
                      "read_only": [], "skip": None})
    return {"event": "result", "outcome": "pass", "data": found}


def releases(job):
    return {"event": "result", "outcome": "pass",
            "data": [{"name": name, "identity": "checksum-" + name, "skip": None} for name in job["names"]]}


def prepare(job):
    os.makedirs(job["prepared"], exist_ok=True)
    with open(os.path.join(job["prepared"], "overrides"), "w", encoding="utf-8") as overrides_file:
        overrides_file.write(" ".join(override["name"] for override in job.get("overrides", [])))
    return {"event": "result", "outcome": "pass", "data": {"lock": "# lock", "edits": [], "vendored": 0}}


def cell(job):
    with open(os.environ["FAKE_WORKER_RULES"], encoding="utf-8") as rules_file:
        rules = json.load(rules_file)
    name = job["id"] + (" twin" if job.get("edits") else "")
    if job.get("prepared"):
        with open(os.path.join(job["prepared"], "overrides"), encoding="utf-8") as overrides_file:
            name += " overrides=" + overrides_file.read()
    answer = next((answer for pattern, answer in rules if re.search(pattern, name)), "pass")
    if isinstance(answer, str):
        answer = {"outcome": answer}
    if "clean" in answer and job.get("clean"):
        answer = dict(answer, outcome=answer["clean"])
    say({"event": "phase", "phase": "build"})
    time.sleep(answer.get("seconds", 0))
    if "behave" in answer:
        behave(answer["behave"])
    outcome = answer.get("outcome", "pass")
    runs = [{"outcome": outcome, "exit": 0 if outcome == "pass" else 1, "signal": 0, "ms": 1}] * job["runs"]
    return {"event": "result", "outcome": outcome, "reason": None if outcome == "pass" else answer.get("reason", "as told"),
            "exit_status": runs[0]["exit"], "signal": 0, "build_ms": 1, "run_ms": 1, "runs": runs, "sandbox": "none",
            "commands": "echo repeat", "binary": None}


def gathered(job, kind):
    if "FAKE_WORKER_EVIDENCE" not in os.environ:
        return {"event": "result", "outcome": "skip", "reason": "this worker builds nothing"}
    with open(os.environ["FAKE_WORKER_EVIDENCE"], encoding="utf-8") as evidence_file:
        data = json.load(evidence_file)[kind]
    if "behave" in data:
        behave(data["behave"])
    if "seconds" in data and select.select([sys.stdin], [], [], data["seconds"])[0]:
        sys.exit(3)  # standard input ended: nobody waits any more
    for artifact in data.get("artifacts", []):
        if os.sep not in artifact["path"]:
            os.makedirs(job["evidence"], exist_ok=True)
            with open(os.path.join(job["evidence"], artifact["path"]), "w", encoding="utf-8") as artifact_file:
                artifact_file.write("artifact of " + job["id"] + "\n")
    return {"event": "result", "outcome": "pass", "build_ms": 1, "data": data}


def evidence(job):
    return gathered(job, "neighbour" if job.get("compare") else "build")


def passes(job):
    return gathered(job, "passes")


def main():
    job = json.loads(sys.stdin.readline())
    log = os.environ.get("FAKE_WORKER_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as log_file:
            log_file.write(json.dumps({"id": job["id"], "kind": job["kind"], "clean": job.get("clean", False),
                                       "runs": job.get("runs"), "target": job.get("target"), "lock": job.get("lock"),
                                       "compare": job.get("compare"), "budget_ms": job.get("budget_ms"), "at": time.time()}) + "\n")
    sys.stderr.write("== fake " + job["id"] + "\n")
    say({"toolchains": toolchains, "releases": releases, "prepare": prepare, "cell": cell,
         "evidence": evidence, "passes": passes}[job["kind"]](job))


main()
