-- Checkpoints of agent graphs. They hold references to records and sequences, never content.

-- A listed sequence is the value of a channel: it keeps its surviving records when one is erased.
alter table sequence add column listed integer not null default 0;
-- The ledger entry of the last forget that took a record from it.
alter table sequence add column dead_by integer;
-- Tells a reader that the result of a tool call was erased, not that it has yet to come.
alter table tombstone add column call_digest blob;
-- The redacted version that stands where the record stood.
alter table tombstone add column successor integer;
create index tombstone_call on tombstone(ws, call_digest) where call_digest is not null;

-- One history of checkpoints: a thread and a namespace in it.
create table line(
  ws integer not null,
  id integer not null,
  thread text not null,
  ns text not null,
  primary key (ws, id)
) without rowid;
create unique index line_name on line(ws, thread, ns);

-- Names of channels and nodes, so that checkpoints need not repeat them.
create table label(
  ws integer not null,
  id integer not null,
  name text not null,
  primary key (ws, id)
) without rowid;
create unique index label_name on label(ws, name);

create table checkpoint(
  ws integer not null,
  line integer not null,
  cid blob not null,
  parent blob,
  run text,
  body text not null,                         -- JSON: numbers and labels; see checkpoint_rows
  primary key (ws, line, cid)
) without rowid;
create index checkpoint_run on checkpoint(ws, run) where run is not null;

create table task_write(
  ws integer not null,
  line integer not null,
  cid blob not null,
  task blob not null,
  path text not null,
  body text not null,                         -- JSON: [index, label, cell] of each write
  primary key (ws, line, cid, task)
) without rowid;

-- Keyed digests of deleted threads and of what they were refused since.
create table ended(
  ws integer not null,
  digest blob not null,
  at integer not null,
  primary key (ws, digest)
) without rowid;
