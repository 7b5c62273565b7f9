#!/usr/bin/env python3
"""Receive bisectd's webhooks: check the signature, drop repetitions, print the finding.

A place to start from, with nothing but Python's standard library:

    BISECTD_SECRET=... ./receiver.py --port 8080
    ./receiver.py --port 0 --secret-file /etc/bisectd/secret     # prints the port that it got

In the investigation:

    webhooks:
      - name: here
        url: http://127.0.0.1:8080/
        secret_file: /etc/bisectd/secret

Each accepted finding is printed as its event, title and text.  The first line on standard output is always
"listening on http://ADDRESS:PORT/".  What is wrong with a request is said on standard error and in the answer:
400 (no finding), 401 (signature), 405, 411, 413, 415.  A delivery whose Idempotency-Key was already accepted gets its
2xx again and is not printed twice: bisectd delivers at least once.  Without a secret, signatures are not checked.

To try out how bisectd deals with trouble (each applies to deliveries that would be accepted):

    --fail N          answer 503 to the first N
    --status CODE     answer CODE (with --fail: CODE instead of 503, to the first N)
    --retry-after S   send Retry-After: S with each answer that is no 2xx
    --redirect URL    answer 307 with that Location (a path stays on this server; --redirect-once: only the first time)
    --stall           never answer
    --log FILE        append one JSON object a line for every request: time, method, path, headers, body, signature
                      ("valid", "invalid", "missing", "unchecked"), repeated, status (null: stalled)
"""

import argparse
import collections
import hashlib
import hmac
import http.server
import json
import os
import sys
import threading
import time

BODY_LIMIT = 4 << 20
KEYS_REMEMBERED = 10000


def check_signature(secret, header, body):
    """"valid", "invalid", "missing" or "unchecked"; takes the same time for every wrong signature."""
    if secret is None:
        return "unchecked"
    if header is None:
        return "missing"
    expected = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
    return "valid" if hmac.compare_digest(expected.encode(), header.encode("utf-8", "replace")) else "invalid"


class Memory:
    """What the requests have in common: the keys that were accepted, how many were failed, the log."""

    def __init__(self, options):
        self.lock = threading.Lock()
        self.keys = collections.OrderedDict()
        self.misbehaved = 0
        self.log = open(options.log, "a", encoding="utf-8") if options.log else None

    def is_known(self, key):
        with self.lock:
            return key in self.keys

    def accept(self, key):
        """True the first time."""
        with self.lock:
            if key in self.keys:
                return False
            self.keys[key] = True
            if len(self.keys) > KEYS_REMEMBERED:
                self.keys.popitem(last=False)
            return True

    def misbehave(self, limit):
        """True for the first `limit` calls (None: all)."""
        with self.lock:
            self.misbehaved += 1
            return limit is None or self.misbehaved <= limit

    def write(self, record):
        if self.log is not None:
            with self.lock:
                self.log.write(json.dumps(record) + "\n")
                self.log.flush()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "bisectd-receiver"
    timeout = 60

    def do_POST(self):
        self.body = b""
        self.signature = None
        self.repeated = False
        status, text = self.receive()
        # Written before the answer: who has the answer finds the line.
        self.server.memory.write(
            {
                "time": time.time(),
                "method": self.command,
                "path": self.path,
                "headers": dict(self.headers.items()),
                "body": self.body.decode("utf-8", "replace"),
                "signature": self.signature,
                "repeated": self.repeated,
                "status": status,
            }
        )
        if status is None:
            self.stall()
        else:
            self.answer(status, text)

    def receive(self):
        """Status and text of the answer; status None: do not answer."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return 411, "no Content-Length"
        if int(length) > BODY_LIMIT:
            return 413, "too large"
        self.body = self.rfile.read(int(length))
        if len(self.body) < int(length):
            return 400, "the body is not whole"
        self.signature = check_signature(
            self.server.secret, self.headers.get("X-Bisectd-Signature-256"), self.body
        )
        if self.signature not in ("valid", "unchecked"):
            return 401, f"signature {self.signature}"
        if self.headers.get_content_type() != "application/json":
            return 415, "not application/json"
        key = self.headers.get("Idempotency-Key")
        if not key:
            return 400, "no Idempotency-Key"
        try:
            finding = json.loads(self.body)
        except (ValueError, RecursionError):
            return 400, "not JSON"
        if not isinstance(finding, dict):
            return 400, "not a JSON object"
        self.repeated = self.server.memory.is_known(key)
        trouble = self.misbehave()
        if trouble is not None:
            return trouble
        if self.server.memory.accept(key):
            self.show(finding)
        return 200, "repeated" if self.repeated else "accepted"

    def misbehave(self):
        """The answer that the options ask for, or None to go on as usual."""
        options, memory = self.server.options, self.server.memory
        if options.stall:
            return None, ""
        if options.redirect is not None and memory.misbehave(1 if options.redirect_once else None):
            return 307, "elsewhere"
        if options.fail is not None:
            return (options.status or 503, "as asked") if memory.misbehave(options.fail) else None
        if options.status is not None and not 200 <= options.status < 300:
            return options.status, "as asked"
        return None

    def show(self, finding):
        # Slack's and GitHub's forms are shown as well: "text" and "body".
        event = printable(self.headers.get("X-Bisectd-Event", "?"))
        title = printable(str(finding.get("title") or ""))
        text = finding.get("text") or finding.get("body") or ""
        lines = [f"[{event}] {title}".rstrip()] + ["    " + printable(line) for line in str(text).splitlines()]
        with self.server.memory.lock:
            print("\n".join(lines), flush=True)

    def answer(self, status, text):
        if not 200 <= status < 300:
            print(f"{self.path}: answering {status}: {text}".translate(UNPRINTABLE), file=sys.stderr, flush=True)
        elif self.server.options.status is not None and self.server.options.fail is None:
            status = self.server.options.status
        body = b"" if status in (204, 304) else (text + "\n").encode()
        self.send_response(status)
        if status == 307 and self.server.options.redirect is not None:
            self.send_header("Location", self.server.options.redirect)
        if self.server.options.retry_after is not None and not 200 <= status < 300:
            self.send_header("Retry-After", self.server.options.retry_after)
        if status not in (204, 304):
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def stall(self):
        """Until the client goes."""
        self.close_connection = True
        self.connection.settimeout(None)
        try:
            while self.rfile.read(1):
                pass
        except OSError:
            pass

    def log_message(self, format, *arguments):
        pass


UNPRINTABLE = {code: None for code in [*range(0x20), *range(0x7F, 0xA0)]}


def printable(text):
    """Without the control characters that a terminal would obey."""
    return text.translate(UNPRINTABLE)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # a client that went away is no error of ours
            super().handle_error(request, client_address)


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", default="127.0.0.1", help="to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="0: any that is free, printed (default: 8080)")
    parser.add_argument("--secret-file", help="file of the HMAC secret; default: the variable BISECTD_SECRET")
    parser.add_argument("--fail", type=int, metavar="N")
    parser.add_argument("--status", type=int, metavar="CODE", choices=range(200, 600))
    parser.add_argument("--retry-after", metavar="S")
    parser.add_argument("--redirect", metavar="URL")
    parser.add_argument("--redirect-once", action="store_true")
    parser.add_argument("--stall", action="store_true")
    parser.add_argument("--log", metavar="FILE")
    return parser.parse_args()


def read_secret(options):
    if options.secret_file is not None:
        with open(options.secret_file, "rb") as file:
            secret = file.read().removesuffix(b"\n")
    elif "BISECTD_SECRET" in os.environ:
        secret = os.environb[b"BISECTD_SECRET"]
    else:
        print("no secret: signatures are not checked", file=sys.stderr, flush=True)
        return None
    if not secret:
        sys.exit("the secret is empty")
    return secret


def main():
    options = read_options()
    try:
        secret = read_secret(options)
        server = Server((options.address, options.port), Receiver)
        server.options, server.secret, server.memory = options, secret, Memory(options)
    except (OSError, OverflowError) as error:
        sys.exit(f"cannot start: {error}")
    print(f"listening on http://{options.address}:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
