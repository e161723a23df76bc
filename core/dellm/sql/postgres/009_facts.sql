-- Facts: each statement of a value is a record; these rows say of what, and from when until when.

create table fact(
  ws bigint not null,
  record bigint not null,
  name bigint not null,                      -- keyed digests of the key, of whom it is about, of the value
  subject bigint not null,
  value bigint not null,
  since bigint not null,                     -- from when it is stated to hold
  until bigint not null,                     -- until when it held, by all that is stated and in use
  shown smallint not null,                     -- 1: stands for its fact; 0: states the same again, or is not in use
  confidence double precision not null,
  said_in bigint not null,                   -- the message it was extracted from, or 0
  primary key (ws, record)
);
create index fact_of on fact(ws, name, subject, since);
create index fact_about on fact(ws, subject);
create index fact_until on fact(ws, until);

-- When a statement was said to hold no longer, and the record that says so (0: the program itself).
create table fact_end(
  ws bigint not null,
  record bigint not null,
  closer bigint not null,
  at bigint not null,
  primary key (ws, record, closer)
);
create index fact_end_closer on fact_end(ws, closer);

-- The keys that the program declared.
create table fact_key(
  ws bigint not null,
  name bigint not null,
  key text collate "C" not null,
  many smallint not null,
  primary key (ws, name)
);

-- The messages that an extractor has been through, and what was forgotten of what they still say.
create table fact_seen(
  ws bigint not null,
  record bigint not null,
  extractor text collate "C" not null,
  primary key (ws, record, extractor)
);
create table fact_refused(
  ws bigint not null,
  record bigint not null,
  name bigint not null,
  subject bigint not null,
  value bigint not null,
  primary key (ws, record, name, subject, value)
);

-- No statistics on what comes from content, for the reasons given in 001; row level security as ever.
do $$
declare one record; named text;
begin
  for one in
    select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
      and c.relname in ('fact', 'fact_end', 'fact_key', 'fact_seen', 'fact_refused')
      and a.attnum > 0 and not a.attisdropped
  loop
    execute format('alter table %I alter column %I set statistics 0', one.relname, one.attname);
  end loop;
  foreach named in array array['fact','fact_end','fact_key','fact_seen','fact_refused'] loop
    execute format('alter table %I enable row level security', named);
    execute format('alter table %I force row level security', named);
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', named, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', named);
  end loop;
end $$;
