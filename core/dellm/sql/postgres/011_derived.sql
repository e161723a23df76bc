-- Derived records that are to be made anew, each by the id of the erased one: no content.

create table rebuild_job(
  ws bigint not null,
  id bigint not null,
  receipt bigint not null,
  name text collate "C" not null,                         -- of the derivation
  version bigint not null,
  kind text collate "C" not null,
  role text collate "C" not null,
  thread text collate "C" not null,
  place bigint not null,
  until bigint,                            -- how long the erased record was kept
  created_at bigint not null,
  hidden bigint,
  places text collate "C" not null,                       -- JSON: where it stood in values of channels
  needles text collate "C" not null,                      -- JSON: keyed digests of what its text must not say
  attempts bigint not null,
  calls bigint not null,                   -- of models, in attempts that failed
  error text collate "C",                                 -- class of the last failure
  primary key (ws, id)
);

-- The sources it has left, in order: records, or jobs by the same ids.
create table rebuild_source(
  ws bigint not null,
  job bigint not null,
  pos bigint not null,
  source bigint not null,
  primary key (ws, job, pos)
);
create index rebuild_source_of on rebuild_source(ws, source);

-- No statistics on keys and names, for the reasons given in 001.
do $$
declare one record;
begin
  for one in
    select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and c.relname in ('rebuild_job', 'rebuild_source') and a.attnum > 0 and not a.attisdropped
  loop
    execute format('alter table %I alter column %I set statistics 0', one.relname, one.attname);
  end loop;
end $$;

do $$
declare one text;
begin
  foreach one in array array['rebuild_job','rebuild_source'] loop
    execute format('alter table %I enable row level security', one);
    execute format('alter table %I force row level security', one);
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', one, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', one);
  end loop;
end $$;
