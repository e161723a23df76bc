-- Records have positive ids per workspace, sequences negative ones; one relation holds all edges.

create table workspace(
  ws integer primary key,
  name text not null unique,
  secret blob not null,                       -- key of this workspace's digests
  last_record integer not null default 0,
  last_sequence integer not null default 0,   -- counts down
  version integer not null default 0,         -- moves with every write
  generation integer not null default 0,      -- moves when vectors must be read anew
  documents integer not null default 0,       -- living records and their terms, for ranking
  tokens integer not null default 0,
  embedder text,                              -- the one model all vectors of the workspace are from
  dimensions integer,
  indexed_to integer not null default 0,      -- every record up to this id has its vector
  created_at integer not null
);

create table record(
  ws integer not null,
  id integer not null,
  place integer not null,
  thread text not null,
  kind text not null,
  role text not null,
  fid text,
  version integer not null,
  text text not null,
  payload blob,
  metadata text,
  subject text,
  purpose text,
  sensitivity text,
  retention_until integer,
  status integer not null,
  model text,
  tokens integer not null,
  created_at integer not null,
  primary key (ws, id)
);
create index record_thread on record(ws, thread, place);
create unique index record_fid on record(ws, thread, fid, version) where fid is not null;
-- the few that a search must leave out
create index record_unusable on record(ws, id) where status <> 0 or retention_until is not null;

create table embedding(
  ws integer not null,
  id integer not null,
  data blob not null,                         -- float32, little-endian, unit length
  primary key (ws, id)
);

create table sequence(
  ws integer not null,
  id integer not null,
  thread text not null,
  length integer not null,
  dead_at integer,
  primary key (ws, id)
) without rowid;
create index sequence_thread on sequence(ws, thread, id) where dead_at is null;

-- child < 0 (a sequence): pos < 0 prefix records, pos = 0 its base, pos > 0 appended records
-- child > 0 (a record):   pos < 0 copies, pos = 0 its context sequence, pos > 0 direct parents
create table edge(
  ws integer not null,
  child integer not null,
  pos integer not null,
  parent integer not null,
  primary key (ws, child, pos)
) without rowid;
create index edge_parent on edge(ws, parent, child);

create table tombstone(
  ws integer not null,
  id integer not null,
  receipt integer not null,
  erased_at integer not null,
  fid_digest blob,                            -- keyed; refuses late writes of the same object
  primary key (ws, id)
) without rowid;
create index tombstone_fid on tombstone(ws, fid_digest) where fid_digest is not null;

create table ledger(
  ws integer not null,
  seq integer not null,
  at integer not null,
  action text not null,
  body text not null,                         -- JSON: ids, counts, codes; never content
  previous text not null,
  digest text not null,
  primary key (ws, seq)
) without rowid;

-- keyed windows of erased content, kept only until the files have been read and found clean
create table residue(
  ws integer not null,
  receipt integer not null,
  probe integer not null,
  primary key (ws, receipt, probe)
) without rowid;

-- keyed digests of executed plans and selectors, so that a repeated forget finds its receipt
create table repeat(
  ws integer not null,
  digest blob not null,
  receipt integer not null,
  expires_at integer not null,
  primary key (ws, digest)
) without rowid;

create virtual table keyword using fts5(
  terms, content='', detail=none, tokenize="ascii tokenchars '_'"
);
insert into keyword(keyword, rank) values ('secure-delete', 1);

create table setting(name text primary key, value text not null) without rowid;
