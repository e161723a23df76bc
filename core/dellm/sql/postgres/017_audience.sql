-- Whom records are for inside a workspace: see audiences. 0 is everybody, -1 nobody but an overseer.

create table audience(
  ws bigint not null,
  id bigint not null,
  user_name text,                             -- these four as records store threads; null does not limit it
  channel text,                               -- '': no channel, which is one user alone
  project text,
  organisation text,
  primary key (ws, id)
);

alter table record add column audience bigint not null default 0;
create index record_audience on record(ws, audience, id) where audience <> 0;

-- No statistics, for the reasons given in 001.
do $$
declare one text;
begin
  foreach one in array array['ws','id','user_name','channel','project','organisation'] loop
    execute format('alter table audience alter column %I set statistics 0', one);
  end loop;
  alter table audience enable row level security;
  alter table audience force row level security;
  execute format('create policy app on audience to dellm_app, %I using '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', current_user);
  grant select, insert, update, delete on audience to dellm_app;
end $$;
