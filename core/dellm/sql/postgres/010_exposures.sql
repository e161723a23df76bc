-- What was sent where, beyond what contexts say: see exposure_rows.

-- Who got to see something: a model or an embedder, "provider/name".
create table outsider(
  ws bigint not null,
  id bigint not null,
  name text collate "C" not null,
  embeds smallint not null,                   -- 1: an embedder, 0: a model that replies
  primary key (ws, id)
);
create unique index outsider_name on outsider(ws, name, embeds);

create table exposure(
  ws bigint not null,
  node bigint not null,                       -- a record; below 0 a sequence; 0: queries
  outsider bigint not null,
  day bigint not null,                        -- of queries, since 1970; else 0
  calls bigint not null,                      -- queries of that day; else 0
  first_at bigint not null,
  last_at bigint not null,
  primary key (ws, node, outsider, day)
);

-- No statistics, for the reasons given in 001.
do $$
declare one record;
begin
  for one in
    select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and c.relname in ('outsider', 'exposure') and a.attnum > 0 and not a.attisdropped
  loop
    execute format('alter table %I alter column %I set statistics 0', one.relname, one.attname);
  end loop;
end $$;

do $$
declare one text;
begin
  foreach one in array array['outsider','exposure'] loop
    execute format('alter table %I enable row level security', one);
    execute format('alter table %I force row level security', one);
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', one, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', one);
  end loop;
end $$;
