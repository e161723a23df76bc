-- Legal holds: what they cover, and what was asked to be forgotten and waits for their end. See holding.

create table hold(
  ws bigint not null,
  id bigint not null,
  kind text not null,                         -- 'ids', 'subject', 'thread' or 'workspace'
  target text,                                -- the subject or thread as records store it; null once released
  basis text not null,                        -- a reference, no content
  placed_by text not null,
  placed_at bigint not null,
  upto bigint not null,                       -- the newest record then: what came later stays in use
  released_at bigint,
  primary key (ws, id)
);

-- Records that an open hold names by id, or that hold the same content as one it covers.
create table hold_record(
  ws bigint not null,
  id bigint not null,
  hold bigint not null,
  primary key (ws, id, hold)
);

create table hold_wait(
  ws bigint not null,
  id bigint not null,
  mode text not null,                         -- as of a plan; 'replace': a value that another took the place of
  alone smallint not null,                    -- 1: without what was made of it
  spans text not null,                        -- JSON: what of its text, for 'redact'
  receipt bigint not null,                    -- of the forget that was refused; 0: none
  primary key (ws, id)
);

alter table workspace add column holds bigint not null default 0;         -- how many are open

-- No statistics, for the reasons given in 001.
do $$
declare one text; named text;
begin
  for one, named in select table_name, column_name from information_schema.columns
      where table_schema = current_schema() and table_name in ('hold', 'hold_record', 'hold_wait') loop
    execute format('alter table %I alter column %I set statistics 0', one, named);
  end loop;
  foreach one in array array['hold', 'hold_record', 'hold_wait'] loop
    execute format('alter table %I enable row level security', one);
    execute format('alter table %I force row level security', one);
    execute format('create policy app on %I to dellm_app, %I using '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
      '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', one, current_user);
    execute format('grant select, insert, update, delete on %I to dellm_app', one);
  end loop;
end $$;
