-- Values kept by name: items of long-term stores, entries of caches. Each one's value is a record.

create table item(
  ws bigint not null,
  family text collate "C" not null,                       -- "store", "llm", "node": whose names these are
  space text collate "C" not null,                        -- JSON list of the labels of its namespace
  name text collate "C" not null,
  record bigint not null,
  ttl double precision,                                   -- minutes it lives after it was written or read
  expires_at bigint,
  created_at bigint not null,
  updated_at bigint not null,
  primary key (ws, family, space, name)
);
create index item_record on item(ws, record);

-- One vector for each indexed field of an item, numbered in the order of the fields.
create table item_vector(
  ws bigint not null,
  record bigint not null,
  field bigint not null,
  data bytea not null,                         -- float32, little-endian, unit length
  primary key (ws, record, field)
);

-- No statistics on keys and names, for the reasons given in 001.
do $$
declare one record;
begin
  for one in
    select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and c.relname in ('item', 'item_vector') and a.attnum > 0 and not a.attisdropped
  loop
    execute format('alter table %I alter column %I set statistics 0', one.relname, one.attname);
  end loop;
end $$;

do $$
declare one text;
begin
  foreach one in array array['item','item_vector'] loop
    execute format('alter table %I enable row level security', one);
    execute format('alter table %I force row level security', one);
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', one, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', one);
  end loop;
end $$;
