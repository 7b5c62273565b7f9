"""Webhooks against a real receiver on loopback that answers, fails, stalls and redirects as told."""

import hashlib
import hmac
import json
import subprocess
import sys
import time

import pytest
from conftest import ROOT

RECEIVER = ROOT / "contrib/webhook-receivers/receiver.py"


class Receiver:
    def __init__(self, folder, *options):
        self.log = folder / f"requests-{time.monotonic_ns()}.log"
        self.process = subprocess.Popen([sys.executable, str(RECEIVER), "--port", "0", "--log", str(self.log), *options],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int("".join(character for character in line.split(":")[-1] if character.isdigit()))
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def requests(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def receiver(tmp_path):
    started = []

    def start(*options):
        started.append(Receiver(tmp_path, *options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def header(request, name):
    return {key.lower(): value for key, value in request["headers"].items()}.get(name.lower())


def webhook(url, more=""):
    return f"webhooks:\n  - {{name: team, url: \"{url}\"{more}}}\n"


def test_the_first_bad_combination_is_posted_and_signed(place, letters, receiver):
    hook = receiver()
    secret = place.write("secret", "s3cret\n")
    secret.chmod(0o600)
    place.run("run", letters([["number=3", "fail"]], more=webhook(hook.url, f", secret_file: {secret}")), check=0)
    first = [request for request in hook.requests() if header(request, "X-Bisectd-Event") == "first-bad"]
    assert len(first) == 1
    body = first[0]["body"]
    expected = hmac.new(b"s3cret", body.encode(), hashlib.sha256).hexdigest()
    assert header(first[0], "X-Bisectd-Signature-256") == f"sha256={expected}"
    finding = json.loads(body)
    assert finding["combination"] == "number=3 letter=a"
    assert (finding["final"], finding["confirmed"], finding["outcome"]) == (True, True, "fail")
    assert finding["values"]["number"]["label"] == "3"
    assert header(first[0], "Idempotency-Key")
    events = [header(request, "X-Bisectd-Event") for request in hook.requests()]
    assert sorted(events) == ["boundary", "boundary", "first-bad", "verdict"]
    assert {row["state"] for row in place.query("SELECT state FROM deliveries")} == {"delivered"}


def test_what_is_posted_leads_to_the_report(place, letters, receiver):
    hook = receiver()
    more = webhook(hook.url) + "report_url: https://reports.example/{name}.html\n"
    place.run("run", letters([["number=3", "fail"]], more=more), check=0)
    assert {json.loads(request["body"])["link"] for request in hook.requests()} == {"https://reports.example/letters.html"}
    assert "<svg" in (place.state / "reports/letters.html").read_text()


def test_only_the_chosen_events_are_posted(place, letters, receiver):
    hook = receiver()
    place.run("run", letters([["number=3", "fail"]], more=webhook(hook.url, ", events: [boundary]")), check=0)
    assert {header(request, "X-Bisectd-Event") for request in hook.requests()} == {"boundary"}


def test_a_failing_receiver_is_tried_again_with_the_same_key(place, letters, receiver):
    hook = receiver("--fail", "2")
    place.run("run", letters([["number=3", "fail"]], more=webhook(hook.url, ", events: [first-bad]")), check=0)
    requests = hook.requests()
    assert len(requests) == 3
    assert len({header(request, "Idempotency-Key") for request in requests}) == 1
    assert len({request["body"] for request in requests}) == 1
    assert place.query("SELECT state, attempts, status FROM deliveries") == \
        [{"state": "delivered", "attempts": 3, "status": 200}]


def test_a_receiver_that_is_down_leaves_the_delivery_for_the_next_run(place, letters, receiver):
    hook = receiver()
    hook.stop()
    file = letters([["number=3", "fail"]], more=webhook(hook.url, ", events: [first-bad]"))
    result = place.run("run", "--wait", "1", file, check=0)
    assert "still outstanding" in result.stderr
    (before,) = place.query("SELECT * FROM deliveries")
    assert before["state"] == "pending" and before["attempts"] >= 1 and before["reason"]
    again = receiver()
    file.write_text(file.read_text().replace(hook.url, again.url))
    place.run("run", file, check=0)
    (after,) = place.query("SELECT * FROM deliveries")
    assert (after["state"], after["idempotency_key"]) == ("delivered", before["idempotency_key"])
    assert [header(request, "Idempotency-Key") for request in again.requests()] == [before["idempotency_key"]]


def test_a_delivery_is_given_up_after_the_configured_time_and_says_so(place, letters, receiver):
    hook = receiver("--fail", "100")
    result = place.run("run", letters([["number=3", "fail"]],
                                      more=webhook(hook.url, ", events: [first-bad], give_up_after: 1s")), check=0)
    assert "giving up on first-bad" in result.stderr
    (row,) = place.query("SELECT * FROM deliveries")
    assert row["state"] == "given-up" and "503" in row["reason"]


def test_a_redirect_to_another_host_is_refused(place, letters, receiver):
    other = receiver()
    hook = receiver("--redirect", other.url)
    place.run("run", letters([["number=3", "fail"]], more=webhook(hook.url, ", events: [first-bad]")), check=0)
    assert other.requests() == []
    (row,) = place.query("SELECT * FROM deliveries")
    assert row["state"] == "given-up" and "redirect" in row["reason"]


def test_a_receiver_that_stalls_does_not_stop_another(place, letters, receiver):
    stalled, prompt = receiver("--stall"), receiver()
    more = ("webhooks:\n"
            f"  - {{name: stalled, url: \"{stalled.url}\", events: [first-bad]}}\n"
            f"  - {{name: prompt, url: \"{prompt.url}\", events: [first-bad]}}\n")
    started = time.monotonic()
    place.run("run", "--wait", "2", letters([["number=3", "fail"]], more=more), check=0)
    states = {row["webhook"]: row["state"] for row in place.query("SELECT webhook, state FROM deliveries")}
    assert states == {"stalled": "pending", "prompt": "delivered"}
    assert time.monotonic() - started < 60


def test_a_secret_that_others_may_read_is_refused_and_nothing_is_sent(place, letters, receiver):
    hook = receiver()
    secret = place.write("secret", "s3cret\n")
    secret.chmod(0o644)
    more = webhook(hook.url, f", events: [first-bad], secret_file: {secret}")
    place.run("run", "--wait", "1", letters([["number=3", "fail"]], more=more), check=0)
    assert hook.requests() == []
    (row,) = place.query("SELECT * FROM deliveries")
    assert row["state"] == "pending" and "secret" in row["reason"]
    assert "s3cret" not in (place.state / "bisectd.db").read_bytes().decode(errors="replace")


@pytest.mark.parametrize("form, member", [("slack", "text"), ("github-issue-comment", "body")])
def test_other_payloads(place, letters, receiver, form, member):
    hook = receiver()
    token = place.write("token", "t0ken\n")
    token.chmod(0o600)
    more = webhook(hook.url, f", events: [first-bad], format: {form}, token_file: {token}")
    place.run("run", letters([["number=3", "fail"]], more=more), check=0)
    (request,) = hook.requests()
    body = json.loads(request["body"])
    assert list(body) == [member] and "number" in body[member]
    assert header(request, "Authorization") == "Bearer t0ken"


def test_findings_are_delivered_once_over_kills(place, letters, receiver):
    hook = receiver()
    file = letters([["number=3", {"outcome": "fail", "seconds": 0.05}]], more=webhook(hook.url))
    for instant in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2):
        process = place.start("run", file)
        time.sleep(instant)
        process.kill()
        process.communicate()
    place.run("run", file, check=0)
    rows = place.query("SELECT idempotency_key, state FROM deliveries")
    assert len(rows) == 4 and {row["state"] for row in rows} == {"delivered"}
    assert {header(request, "Idempotency-Key") for request in hook.requests()} == {row["idempotency_key"] for row in rows}


def test_deliveries_to_a_webhook_that_was_taken_out_are_given_up(place, letters, receiver):
    hook = receiver("--fail", "100")
    file = letters([["number=3", "fail"]], more=webhook(hook.url, ", events: [first-bad]"))
    place.run("run", "--wait", "1", file, check=0)
    file.write_text(file.read_text().split("webhooks:")[0])
    place.run("run", file, check=0)
    (row,) = place.query("SELECT * FROM deliveries")
    assert (row["state"], row["reason"]) == ("given-up", "the investigation names no such webhook any more")
