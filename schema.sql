-- bisectd's database: <state>/bisectd.db, SQLite 3.40 or later, WAL mode, one writer (bisectd).
--
-- The views at the end are the public interface: they keep their names, columns and meanings between versions.  The tables may
-- change with a migration (PRAGMA user_version, daemon/store.c).  Timestamps are UTC, ISO 8601 with milliseconds.
-- docs/schema.md explains each view with examples.

-- Anything resolved once and pinned for good: another answer later would make it another question.
CREATE TABLE IF NOT EXISTS resolution (
	kind TEXT NOT NULL,            -- "release": identity of a crate release; "lock": Cargo.lock of a preparation
	name TEXT NOT NULL,            -- "usdt 0.5.0"; the preparation's key
	content TEXT NOT NULL,         -- JSON of the worker's answer; the text of the lock file
	created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
	PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS investigation (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	question TEXT,
	file TEXT NOT NULL,            -- where the YAML file was
	text TEXT NOT NULL,            -- the YAML file as last read
	notes TEXT NOT NULL DEFAULT '', -- what a reader of the report must know, one line each (overrides in force, ...)
	state TEXT NOT NULL CHECK (state IN ('walking', 'finished', 'stopped')),
	created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
	started_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), -- the latest start
	finished_at TEXT
) STRICT;

-- Which outcomes the investigation calls bad ("bad:" in its file).
CREATE TABLE IF NOT EXISTS bad_outcome (
	investigation_id INTEGER NOT NULL REFERENCES investigation (id) ON DELETE CASCADE,
	outcome TEXT NOT NULL,
	PRIMARY KEY (investigation_id, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS axis (
	id INTEGER PRIMARY KEY,
	investigation_id INTEGER NOT NULL REFERENCES investigation (id) ON DELETE CASCADE,
	position INTEGER NOT NULL,     -- 0 is the slowest in the walk
	name TEXT NOT NULL,
	type TEXT NOT NULL CHECK (type IN ('toolchain', 'commit', 'crate', 'profile', 'choice')),
	ordered INTEGER NOT NULL CHECK (ordered IN (0, 1)),
	size INTEGER NOT NULL,         -- number of values
	stride INTEGER NOT NULL,       -- how far two neighbours on this axis are apart in walk order
	UNIQUE (investigation_id, position),
	UNIQUE (investigation_id, name)
) STRICT;

CREATE TABLE IF NOT EXISTS value (
	axis_id INTEGER NOT NULL REFERENCES axis (id) ON DELETE CASCADE,
	position INTEGER NOT NULL,     -- 0 is the first
	label TEXT NOT NULL,           -- as people write it
	identity TEXT NOT NULL,        -- what it resolved to: rustc -vV and driver checksum, oid, registry checksum
	detail TEXT,                   -- one line for people: a commit's subject, a choice's note
	skip_reason TEXT,              -- why cells with this value cannot be tried; NULL where they can
	PRIMARY KEY (axis_id, position)
) STRICT, WITHOUT ROWID;

-- A cell by its key, shared by all investigations that ask for the same thing.
CREATE TABLE IF NOT EXISTS cell (
	id INTEGER PRIMARY KEY,
	key TEXT NOT NULL UNIQUE,      -- SHA-256 of all that can change its outcome
	outcome TEXT CHECK (outcome IN ('pass', 'fail', 'flaky', 'crash', 'timeout', 'build-fail', 'ice', 'skip', 'error')),
	reason TEXT,
	signature TEXT,                -- first line that a failing run printed
	errors INTEGER NOT NULL DEFAULT 0, -- attempts that ended in "error" since the last that did not
	confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1)), -- by a clean build and further runs
	commands TEXT,                 -- shell text that repeats the confirming attempt by hand
	decided_at TEXT
) STRICT;

-- Where a cell stands in an investigation's matrix.
CREATE TABLE IF NOT EXISTS place (
	investigation_id INTEGER NOT NULL REFERENCES investigation (id) ON DELETE CASCADE,
	walk_index INTEGER NOT NULL,   -- position in walk order over the whole product of the axes
	combination TEXT NOT NULL,     -- "toolchain=1.63.0 profile=release ..."
	cell_id INTEGER REFERENCES cell (id), -- NULL where a value of the combination cannot be tried
	skip_reason TEXT,              -- then this says why
	PRIMARY KEY (investigation_id, walk_index)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS place_by_cell ON place (cell_id);

CREATE TABLE IF NOT EXISTS attempt (
	id INTEGER PRIMARY KEY,
	cell_id INTEGER NOT NULL REFERENCES cell (id),
	kind TEXT NOT NULL CHECK (kind IN ('walk', 'confirm')),
	state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
	outcome TEXT,
	reason TEXT,
	signature TEXT,
	exit_status INTEGER,           -- of the first run that was no pass, else of the last; NULL where it did not exit
	signal INTEGER,
	build_ms INTEGER,
	run_ms INTEGER,                -- all runs together
	binary TEXT,                   -- SHA-256 of the program that ran
	sandbox TEXT,                  -- what held the commands: "bubblewrap" or "none"
	log TEXT NOT NULL,             -- path of the log, relative to the state folder
	started_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
	finished_at TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS attempt_by_cell ON attempt (cell_id);
CREATE INDEX IF NOT EXISTS attempt_running ON attempt (state) WHERE state = 'running';

CREATE TABLE IF NOT EXISTS run (
	attempt_id INTEGER NOT NULL REFERENCES attempt (id) ON DELETE CASCADE,
	number INTEGER NOT NULL,       -- from 1
	outcome TEXT NOT NULL,
	exit_status INTEGER,
	signal INTEGER,
	ms INTEGER NOT NULL,
	PRIMARY KEY (attempt_id, number)
) STRICT, WITHOUT ROWID;

-- What gets posted.  Written once: the key names what was found, so that a restart finds it already there.
CREATE TABLE IF NOT EXISTS finding (
	id INTEGER PRIMARY KEY,
	investigation_id INTEGER NOT NULL REFERENCES investigation (id) ON DELETE CASCADE,
	kind TEXT NOT NULL CHECK (kind IN ('first-bad', 'boundary', 'verdict')),
	key TEXT NOT NULL,
	title TEXT NOT NULL,
	text TEXT NOT NULL,            -- the same, at length, for a person
	verdict TEXT CHECK (verdict IN ('crate', 'toolchain', 'reproducer', 'inconclusive')), -- of kind "verdict" only
	body TEXT NOT NULL,            -- the generic webhook payload, JSON
	created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
	seen INTEGER NOT NULL DEFAULT 1, -- counts up each time that anything is found (again) in the investigation: the highest is the latest
	UNIQUE (investigation_id, key)
) STRICT;

-- What was found out about a bad cell beyond its outcome: one row a job.  The files that belong to it lie in evidence/<cell_id>/.
CREATE TABLE IF NOT EXISTS evidence_row (
	cell_id INTEGER NOT NULL REFERENCES cell (id),  -- the bad cell that it is about
	kind TEXT NOT NULL CHECK (kind IN ('build', 'neighbour', 'passes')),
	other_id INTEGER NOT NULL REFERENCES cell (id), -- the cell that was looked at: the bad one itself, or a good neighbour
	outcome TEXT NOT NULL CHECK (outcome IN ('pass', 'skip', 'error')), -- of the gathering
	reason TEXT,                   -- why it is no 'pass'
	data TEXT NOT NULL,            -- JSON: what the worker answered (common/job.h)
	created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
	PRIMARY KEY (cell_id, kind, other_id)
) STRICT, WITHOUT ROWID;

-- Twins of a bad cell: the same but for one edit, and cells of their own.
CREATE TABLE IF NOT EXISTS twin (
	of_cell_id INTEGER NOT NULL REFERENCES cell (id),
	name TEXT NOT NULL,
	origin TEXT NOT NULL CHECK (origin IN ('audit', 'user')), -- an accused declaration corrected; or "twins:" of the investigation
	edit TEXT NOT NULL,            -- JSON: {"crate" | "source" | "reproducer", "promise", "edits": [...]}
	cell_id INTEGER NOT NULL REFERENCES cell (id),
	PRIMARY KEY (of_cell_id, name)
) STRICT, WITHOUT ROWID;

-- The outbox: written in the same transaction as the finding, emptied by notify.
CREATE TABLE IF NOT EXISTS delivery (
	id INTEGER PRIMARY KEY,
	finding_id INTEGER NOT NULL REFERENCES finding (id) ON DELETE CASCADE,
	webhook TEXT NOT NULL,         -- its name in the investigation
	idempotency_key TEXT NOT NULL UNIQUE,
	state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'given-up')),
	attempts INTEGER NOT NULL DEFAULT 0,
	next_at INTEGER NOT NULL,      -- Unix time in milliseconds: not before
	give_up_at INTEGER NOT NULL,   -- Unix time in milliseconds
	status INTEGER,                -- HTTP status of the latest attempt
	reason TEXT,                   -- why the latest attempt failed
	finished_at TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS delivery_pending ON delivery (next_at) WHERE state = 'pending';

-- Public views --------------------------------------------------------------------------------------------------------
-- Made anew whenever a database of an older version is opened.

DROP VIEW IF EXISTS twins;
DROP VIEW IF EXISTS evidence;
DROP VIEW IF EXISTS deliveries;
DROP VIEW IF EXISTS flaky;
DROP VIEW IF EXISTS verdicts;
DROP VIEW IF EXISTS boundaries;
DROP VIEW IF EXISTS boundary_pairs;
DROP VIEW IF EXISTS first_bad;
DROP VIEW IF EXISTS investigations;
DROP VIEW IF EXISTS matrix;

-- Every combination in walk order.  outcome is '' while it is not decided.
CREATE VIEW matrix AS
SELECT i.name AS investigation,
	p.walk_index AS walk_index,
	p.combination AS combination,
	CASE WHEN p.cell_id IS NULL THEN 'skip' ELSE coalesce(c.outcome, '') END AS outcome,
	coalesce(p.skip_reason, c.reason) AS reason,
	c.signature AS signature,
	coalesce(c.confirmed, 0) AS confirmed,
	c.decided_at AS decided_at,
	p.cell_id AS cell
FROM place p
JOIN investigation i ON i.id = p.investigation_id
LEFT JOIN cell c ON c.id = p.cell_id;

-- One row an investigation.
CREATE VIEW investigations AS
SELECT i.name AS name,
	i.state AS state,
	i.question AS question,
	count(m.walk_index) AS cells,
	coalesce(sum(m.outcome <> ''), 0) AS decided,
	coalesce(sum(m.outcome IN (SELECT outcome FROM bad_outcome b WHERE b.investigation_id = i.id)), 0) AS bad,
	coalesce(sum(m.outcome = 'pass'), 0) AS good,
	i.started_at AS started_at,
	i.finished_at AS finished_at
FROM investigation i
LEFT JOIN matrix m ON m.investigation = i.name
GROUP BY i.id;

-- The first bad combination in walk order of each investigation that has one.  It is final when every earlier cell is decided
-- ("error" does not decide), and confirmed when a clean build and further runs gave the same.
CREATE VIEW first_bad AS
SELECT f.investigation AS investigation,
	f.combination AS combination,
	f.outcome AS outcome,
	f.reason AS reason,
	NOT EXISTS (SELECT 1 FROM matrix e
		WHERE e.investigation = f.investigation AND e.walk_index < f.walk_index AND e.outcome IN ('', 'error')) AS final,
	f.confirmed AS confirmed,
	f.decided_at AS decided_at,
	coalesce((SELECT a.log FROM attempt a WHERE a.cell_id = f.cell AND a.outcome = f.outcome ORDER BY a.id DESC LIMIT 1),
		(SELECT a.log FROM attempt a WHERE a.cell_id = f.cell ORDER BY a.id DESC LIMIT 1)) AS log,
	(SELECT c.commands FROM cell c WHERE c.id = f.cell) AS commands,
	f.walk_index AS walk_index,
	f.cell AS cell
FROM (SELECT q.investigation_id AS investigation_id, min(q.walk_index) AS walk_index
	FROM place q
	JOIN cell c ON c.id = q.cell_id
	JOIN bad_outcome b ON b.investigation_id = q.investigation_id AND b.outcome = c.outcome
	GROUP BY q.investigation_id) p
JOIN investigation i ON i.id = p.investigation_id
JOIN matrix f ON f.investigation = i.name AND f.walk_index = p.walk_index;

-- Pairs of neighbours on an ordered axis, one good (pass) and one bad, all else equal.  Values between them that gave no
-- evidence (build-fail, skip, excluded ...) are passed over and counted in "gap".  One row a pair.
CREATE VIEW boundary_pairs AS
WITH evidence AS (
	SELECT i.name AS investigation, a.id AS axis_id, a.name AS axis, a.position AS axis_position,
		p.walk_index,
		(p.walk_index / a.stride) % a.size AS position,
		p.walk_index - (p.walk_index / a.stride) % a.size * a.stride AS line,
		p.cell_id, b.outcome IS NOT NULL AS is_bad
	FROM axis a
	JOIN investigation i ON i.id = a.investigation_id
	JOIN place p ON p.investigation_id = a.investigation_id
	JOIN cell c ON c.id = p.cell_id
	LEFT JOIN bad_outcome b ON b.investigation_id = p.investigation_id AND b.outcome = c.outcome
	WHERE a.ordered = 1 AND (c.outcome = 'pass' OR b.outcome IS NOT NULL)
), pairs AS ( -- "investigation" is a part of the window so that a query for one looks at no other
	SELECT *,
		lag(position) OVER along AS from_position, lag(is_bad) OVER along AS from_bad,
		lag(walk_index) OVER along AS from_walk_index, lag(cell_id) OVER along AS from_cell
	FROM evidence
	WINDOW along AS (PARTITION BY investigation, axis_id, line ORDER BY position)
)
SELECT p.investigation AS investigation,
	p.axis AS axis,
	CASE WHEN p.is_bad THEN 'introduced' ELSE 'fixed' END AS change,
	f.label AS from_value,
	t.label AS to_value,
	t.detail AS to_detail,
	p.position - p.from_position - 1 AS gap,
	(SELECT o.combination FROM place o WHERE o.investigation_id = i.id AND o.walk_index = p.from_walk_index) AS from_combination,
	(SELECT o.combination FROM place o WHERE o.investigation_id = i.id AND o.walk_index = p.walk_index) AS to_combination,
	p.axis_position AS axis_position,
	p.from_position AS from_position,
	p.position AS to_position,
	p.from_walk_index AS from_walk_index,
	p.walk_index AS to_walk_index,
	p.from_cell AS from_cell,
	p.cell_id AS to_cell
FROM pairs p
JOIN investigation i ON i.name = p.investigation
JOIN value f ON f.axis_id = p.axis_id AND f.position = p.from_position
JOIN value t ON t.axis_id = p.axis_id AND t.position = p.position
WHERE p.is_bad <> p.from_bad;

-- The boundaries, one row for all pairs that cross between the same two values the same way.  "pairs" counts them; the
-- combination is the first in walk order, and "confirmed" says that both of its cells were built clean and gave the same again.
CREATE VIEW boundaries AS
SELECT b.investigation AS investigation,
	b.axis AS axis,
	b.change AS change,
	b.from_value AS from_value,
	b.to_value AS to_value,
	b.to_detail AS to_detail,
	b.gap AS gap,
	count(*) AS pairs,
	f.confirmed AND t.confirmed AS confirmed,
	b.from_combination AS from_combination,
	b.to_combination AS to_combination,
	min(b.from_walk_index) AS from_walk_index, -- SQLite takes the bare columns from the row with the minimum
	b.to_walk_index AS to_walk_index,
	b.axis_position AS axis_position,
	b.from_cell AS from_cell,
	b.to_cell AS to_cell
FROM boundary_pairs b
JOIN cell f ON f.id = b.from_cell
JOIN cell t ON t.id = b.to_cell
GROUP BY b.investigation, b.axis_position, b.from_position, b.to_position, b.change
ORDER BY b.investigation, b.axis_position, b.from_position;

-- The latest verdict of each investigation that has one.
CREATE VIEW verdicts AS
SELECT i.name AS investigation,
	f.verdict AS verdict,
	f.title AS title,
	f.text AS text,
	f.created_at AS created_at
FROM finding f
JOIN investigation i ON i.id = f.investigation_id
WHERE f.kind = 'verdict' AND f.id = (SELECT l.id FROM finding l WHERE l.kind = 'verdict' AND l.investigation_id = i.id
	ORDER BY l.seen DESC, l.id DESC LIMIT 1);

-- What is known beyond outcomes, one row a job; "data" is JSON as docs/evidence.md describes it.
CREATE VIEW evidence AS
SELECT m.investigation AS investigation,
	m.combination AS combination,
	e.kind AS kind,
	o.combination AS other_combination,
	e.outcome AS outcome,
	e.reason AS reason,
	e.data AS data,
	e.created_at AS created_at,
	e.cell_id AS cell,
	e.other_id AS other_cell
FROM evidence_row e
JOIN matrix m ON m.cell = e.cell_id
JOIN matrix o ON o.cell = e.other_id AND o.investigation = m.investigation;

-- The twins of bad cells and what became of them ('' while that is not decided).
CREATE VIEW twins AS
SELECT m.investigation AS investigation,
	m.combination AS combination,
	t.name AS name,
	t.origin AS origin,
	coalesce(c.outcome, '') AS outcome,
	c.reason AS reason,
	t.edit AS edit,
	c.commands AS commands,
	t.of_cell_id AS of_cell,
	t.cell_id AS cell
FROM twin t
JOIN matrix m ON m.cell = t.of_cell_id
JOIN cell c ON c.id = t.cell_id;

-- Cells whose runs disagreed.
CREATE VIEW flaky AS
SELECT m.investigation AS investigation,
	m.combination AS combination,
	(SELECT count(*) FROM attempt a JOIN run r ON r.attempt_id = a.id WHERE a.cell_id = m.cell AND r.outcome <> 'pass') AS bad_runs,
	(SELECT count(*) FROM attempt a JOIN run r ON r.attempt_id = a.id WHERE a.cell_id = m.cell) AS runs,
	m.reason AS reason,
	m.cell AS cell
FROM matrix m
WHERE m.outcome = 'flaky';

-- Webhook deliveries, the newest first.
CREATE VIEW deliveries AS
SELECT i.name AS investigation,
	f.kind AS event,
	f.title AS title,
	d.webhook AS webhook,
	d.state AS state,
	d.attempts AS attempts,
	d.status AS status,
	d.reason AS reason,
	strftime('%Y-%m-%dT%H:%M:%fZ', d.next_at / 1000.0, 'unixepoch') AS next_at,
	d.finished_at AS finished_at,
	d.idempotency_key AS idempotency_key
FROM delivery d
JOIN finding f ON f.id = d.finding_id
JOIN investigation i ON i.id = f.investigation_id
ORDER BY d.id DESC;
