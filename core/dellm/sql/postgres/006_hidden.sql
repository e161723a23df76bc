-- Messages that their thread no longer shows: what was made from them still depends on them.

create table hidden(
  ws bigint not null,
  record bigint not null,
  how smallint not null,                      -- 1: dropped, in no prompt; 2: archived, may be found
  primary key (ws, record)
);

-- No statistics, for the reasons given in 001.
do $$
declare one text;
begin
  foreach one in array array['ws','record','how'] loop
    execute format('alter table hidden alter column %I set statistics 0', one);
  end loop;
  alter table hidden enable row level security;
  alter table hidden force row level security;
  execute format('create policy app on hidden to dellm_app, %I using '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', current_user);
  grant select, insert, update, delete on hidden to dellm_app;
end $$;
