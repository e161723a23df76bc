-- Copies of records that other systems keep, such as the vectors of a document, by their ids there.

create table elsewhere(
  ws bigint not null,
  place text collate "C" not null,            -- the name that the other system goes by here
  name text collate "C" not null,             -- the copy's id there; gone when that copy is
  record bigint not null,                     -- 0: a copy of what was erased before it was found
  primary key (ws, place, name, record)
);
create index elsewhere_record on elsewhere(ws, record);

-- No statistics on names, for the reasons given in 001.
do $$
declare one text;
begin
  foreach one in array array['ws','place','name','record'] loop
    execute format('alter table elsewhere alter column %I set statistics 0', one);
  end loop;
  alter table elsewhere enable row level security;
  alter table elsewhere force row level security;
  execute format('create policy app on elsewhere to dellm_app, %I using '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', current_user);
  grant select, insert, update, delete on elsewhere to dellm_app;
end $$;
