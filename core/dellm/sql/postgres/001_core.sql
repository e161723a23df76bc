-- Records have positive ids per workspace, sequences negative ones; one relation holds all edges.

create table workspace(
  ws bigint generated always as identity primary key,
  name text collate "C" not null unique,
  secret bytea not null,                      -- key of this workspace's digests
  last_record bigint not null default 0,
  last_sequence bigint not null default 0,    -- counts down
  version bigint not null default 0,          -- moves with every write
  generation bigint not null default 0,       -- moves when vectors must be read anew
  documents bigint not null default 0,        -- living records and their terms, for ranking
  tokens bigint not null default 0,
  embedder text,                              -- the one model all vectors of the workspace are from
  dimensions bigint,
  indexed_to bigint not null default 0,       -- every record up to this id has its vector
  created_at bigint not null
);

create table record(
  ws bigint not null,
  id bigint not null,
  place bigint not null,
  thread text collate "C" not null,
  kind text not null,
  role text not null,
  fid text collate "C",
  version bigint not null,
  text text not null,
  payload bytea,
  metadata text,
  subject text,
  purpose text,
  sensitivity text,
  retention_until bigint,
  status smallint not null,
  model text,
  tokens bigint not null,
  created_at bigint not null,
  primary key (ws, id)
);
create index record_thread on record(ws, thread, place);
create unique index record_fid on record(ws, thread, fid, version) where fid is not null;
-- the few that a search must leave out
create index record_unusable on record(ws, id) where status <> 0 or retention_until is not null;

-- Uncompressed, so that the scan can read the files; no statistics, so that no value of an erased
-- record stays behind in pg_statistic.
alter table record alter column text set storage external;
alter table record alter column payload set storage external;
alter table record alter column metadata set storage external;
alter table record alter column text set statistics 0;
alter table record alter column payload set statistics 0;
alter table record alter column metadata set statistics 0;
alter table record alter column subject set statistics 0;
alter table record alter column fid set statistics 0;
alter table record alter column role set statistics 0;

create table embedding(
  ws bigint not null,
  id bigint not null,
  data vector not null,                       -- unit length
  primary key (ws, id)
);
alter table embedding alter column data set statistics 0;

create table sequence(
  ws bigint not null,
  id bigint not null,
  thread text collate "C" not null,
  length bigint not null,
  dead_at bigint,
  primary key (ws, id)
);
create index sequence_thread on sequence(ws, thread, id) where dead_at is null;

-- child < 0 (a sequence): pos < 0 prefix records, pos = 0 its base, pos > 0 appended records
-- child > 0 (a record):   pos < 0 copies, pos = 0 its context sequence, pos > 0 direct parents
create table edge(
  ws bigint not null,
  child bigint not null,
  pos bigint not null,
  parent bigint not null,
  primary key (ws, child, pos)
);
create index edge_parent on edge(ws, parent, child);

create table tombstone(
  ws bigint not null,
  id bigint not null,
  receipt bigint not null,
  erased_at bigint not null,
  fid_digest bytea,                           -- keyed; refuses late writes of the same object
  primary key (ws, id)
);
create index tombstone_fid on tombstone(ws, fid_digest) where fid_digest is not null;

create table ledger(
  ws bigint not null,
  seq bigint not null,
  at bigint not null,
  action text not null,
  body text not null,                         -- JSON: ids, counts, codes; never content
  previous text not null,
  digest text not null,
  primary key (ws, seq)
);

-- keyed windows of erased content, kept only until the files have been read and found clean
create table residue(
  ws bigint not null,
  receipt bigint not null,
  probe bigint not null,
  primary key (ws, receipt, probe)
);

-- keyed digests of executed plans and selectors, so that a repeated forget finds its receipt
create table repeat(
  ws bigint not null,
  digest bytea not null,
  receipt bigint not null,
  expires_at bigint not null,
  primary key (ws, digest)
);

-- No GIN index: row level security would not let a query use it (the operator is not leakproof),
-- and GIN keeps the terms of deleted rows until it is rebuilt.
create table keyword(
  ws bigint not null,
  id bigint not null,
  part bigint not null,
  terms tsvector not null,
  primary key (ws, id, part)
);
alter table keyword alter column terms set statistics 0;
alter table keyword alter column terms set storage external;

create table setting(name text primary key, value text not null);

-- No statistics on keys either. Statistics taken before a workspace was filled say that it holds one
-- row; the planner then thinks every index on ws alone as good as the primary key, and reads the whole
-- workspace to find five records. Without them it always takes the index that has all the keys.
do $$
declare one record;
begin
  for one in
    select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and a.attname in ('ws', 'id', 'child', 'parent', 'thread', 'status', 'dead_at')
  loop
    execute format('alter table %I alter column %I set statistics 0', one.relname, one.attname);
  end loop;
end $$;

-- The role every statement of ours runs as; the owner only migrates, scrubs and reads files.
-- An administrator may have made and granted it before, for an owner who may not.
do $$ begin
  if to_regrole('dellm_app') is null then
    create role dellm_app nologin nosuperuser nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end $$;
do $$ begin
  if not pg_has_role(current_user, 'dellm_app', 'member') then
    execute format('grant dellm_app to %I', current_user);
  end if;
  execute format('grant usage on schema %I to dellm_app', current_schema());
end $$;

do $$
declare one text;
begin
  foreach one in array array['record','embedding','sequence','edge','tombstone','ledger','residue',
                             'repeat','keyword'] loop
    execute format('alter table %I enable row level security', one);
    execute format('alter table %I force row level security', one);
    -- also to the owner, who is no exception where row level security is forced
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', one, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', one);
  end loop;
end $$;

-- A workspace is found by its name before its number is known.
alter table workspace enable row level security;
alter table workspace force row level security;
do $$ begin
  execute format('create policy app on workspace to dellm_app, %I '
    'using (name = current_setting(''dellm.name'', true)) '
    'with check (name = current_setting(''dellm.name'', true))', current_user);
end $$;
grant select, insert, update on workspace to dellm_app;
grant select on setting to dellm_app;
