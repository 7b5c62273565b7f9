"""The public views on a large matrix: they answer while a person waits."""

import sqlite3
import time

from conftest import ROOT

SIZES = (10, 10, 100)
CELLS = 10_000


def fill(connection):
    """Two investigations of 10,000 cells each in which only the last cells are bad: the worst case for a search from the start."""
    cell = 0
    for investigation in (1, 2):
        connection.execute("INSERT INTO investigation (id, name, file, text, state) VALUES (?, ?, 'f', 't', 'finished')",
                           (investigation, f"big-{investigation}"))
        connection.execute("INSERT INTO bad_outcome VALUES (?, 'fail')", (investigation,))
        stride = CELLS
        for position, size in enumerate(SIZES):
            stride //= size
            axis = connection.execute(
                "INSERT INTO axis (investigation_id, position, name, type, ordered, size, stride) VALUES (?, ?, ?, 'choice', 1, ?, ?)",
                (investigation, position, f"axis-{position}", size, stride)).lastrowid
            connection.executemany("INSERT INTO value VALUES (?, ?, ?, 'identity', NULL, NULL)",
                                   [(axis, number, str(number)) for number in range(size)])
        for index in range(CELLS):
            cell += 1
            connection.execute("INSERT INTO cell (id, key, outcome) VALUES (?, ?, ?)",
                               (cell, f"key {cell}", "fail" if index >= CELLS - 5 else "pass"))
            connection.execute("INSERT INTO place VALUES (?, ?, ?, ?, NULL)", (investigation, index, f"cell {index}", cell))


def test_every_view_answers_at_once_for_ten_thousand_cells(tmp_path):
    connection = sqlite3.connect(tmp_path / "big.db")
    connection.executescript((ROOT / "schema.sql").read_text())
    fill(connection)
    views = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
    # generous, for a busy machine: what is quadratic takes minutes
    for view in views:
        start = time.monotonic()
        connection.execute(f"SELECT * FROM {view}").fetchall()
        assert time.monotonic() - start < 10, view
    assert connection.execute("SELECT investigation, walk_index, final FROM first_bad ORDER BY 1").fetchall() == \
        [("big-1", CELLS - 5, 1), ("big-2", CELLS - 5, 1)]
