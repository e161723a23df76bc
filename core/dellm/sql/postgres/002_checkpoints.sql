-- Checkpoints of agent graphs. They hold references to records and sequences, never content.

-- A listed sequence is the value of a channel: it keeps its surviving records when one is erased.
alter table sequence add column listed bigint not null default 0;
-- The ledger entry of the last forget that took a record from it.
alter table sequence add column dead_by bigint;
-- Tells a reader that the result of a tool call was erased, not that it has yet to come.
alter table tombstone add column call_digest bytea;
-- The redacted version that stands where the record stood.
alter table tombstone add column successor bigint;
create index tombstone_call on tombstone(ws, call_digest) where call_digest is not null;

-- Sequences count down. An index in that order is filled page by page; in the other one every page
-- is split in half.
alter table sequence drop constraint sequence_pkey;
create unique index sequence_key on sequence(ws, id desc);
alter table edge drop constraint edge_pkey;
create unique index edge_key on edge(ws, child desc, pos);

-- One history of checkpoints: a thread and a namespace in it.
create table line(
  ws bigint not null,
  id bigint not null,
  thread text collate "C" not null,
  ns text collate "C" not null,
  primary key (ws, id)
);
create unique index line_name on line(ws, thread, ns);

-- Names of channels and nodes, so that checkpoints need not repeat them.
create table label(
  ws bigint not null,
  id bigint not null,
  name text collate "C" not null,
  primary key (ws, id)
);
create unique index label_name on label(ws, name);

create table checkpoint(
  ws bigint not null,
  line bigint not null,
  cid bytea not null,
  parent bytea,
  run text collate "C",
  body text not null,                         -- JSON: numbers and labels; see checkpoint_rows
  primary key (ws, line, cid)
);
create index checkpoint_run on checkpoint(ws, run) where run is not null;

create table task_write(
  ws bigint not null,
  line bigint not null,
  cid bytea not null,
  task bytea not null,
  path text not null,
  body text not null,                         -- JSON: [index, label, cell] of each write
  primary key (ws, line, cid, task)
);

-- Keyed digests of deleted threads and of what they were refused since.
create table ended(
  ws bigint not null,
  digest bytea not null,
  at bigint not null,
  primary key (ws, digest)
);

-- No statistics on keys and names, for the reasons given in 001.
do $$
declare one record;
begin
  for one in
    select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and c.relname in ('line', 'label', 'checkpoint', 'task_write', 'ended')
      and a.attnum > 0 and not a.attisdropped
  loop
    execute format('alter table %I alter column %I set statistics 0', one.relname, one.attname);
  end loop;
end $$;
alter table tombstone alter column call_digest set statistics 0;

do $$
declare one text;
begin
  foreach one in array array['line','label','checkpoint','task_write','ended'] loop
    execute format('alter table %I enable row level security', one);
    execute format('alter table %I force row level security', one);
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', one, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', one);
  end loop;
end $$;
