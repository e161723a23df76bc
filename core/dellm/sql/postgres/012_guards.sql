-- Keyed digests of what was forgotten and is not to come in again unawares: see guarding.

create table guard(
  ws bigint not null,
  digest bytea not null,                      -- keyed, of a normal form
  receipt bigint not null,
  made_at bigint not null,
  until bigint,
  kind text not null,                         -- 'words', 'whole' or a kind of value
  chars bigint not null,                      -- how much of a text is to be digested
  words bigint not null,
  primary key (ws, digest)
);

alter table workspace add column guards bigint not null default 0;        -- moves with them; 0: none
alter table workspace add column guards_always smallint not null default 0;

-- No statistics, for the reasons given in 001.
do $$
declare one text;
begin
  foreach one in array
    array['ws','digest','receipt','made_at','until','kind','chars','words'] loop
    execute format('alter table guard alter column %I set statistics 0', one);
  end loop;
  alter table guard enable row level security;
  alter table guard force row level security;
  execute format('create policy app on guard to dellm_app, %I using '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', current_user);
  grant select, insert, update, delete on guard to dellm_app;
end $$;
