-- Whom records are about, by keyed digest, so that what is known of somebody is found: see concerns.

create table concerns(
  ws bigint not null,
  key bigint not null,                        -- keyed digest of a subject
  record bigint not null,
  primary key (ws, key, record)
);
create index concerns_record on concerns(ws, record);

alter table workspace add column concerns smallint not null default 0;    -- 1: all records are in

-- No statistics, for the reasons given in 001.
do $$
declare one text;
begin
  foreach one in array array['ws','key','record'] loop
    execute format('alter table concerns alter column %I set statistics 0', one);
  end loop;
  alter table concerns enable row level security;
  alter table concerns force row level security;
  execute format('create policy app on concerns to dellm_app, %I using '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', current_user);
  grant select, insert, update, delete on concerns to dellm_app;
end $$;
