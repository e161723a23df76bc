-- What is said of records besides what follows from themselves, and whether there is any: see governed.

create table governed(
  ws bigint not null,
  id bigint not null,
  created_by text,                            -- these three are words of governance and of the policy
  basis text,
  class text,
  source text,                                -- what the caller calls the event it came from
  primary key (ws, id)
);
create index governed_class on governed(ws, class) where class is not null;

alter table workspace add column governed bigint not null default 0;      -- 1: records that end; 2: rows here
alter table workspace add column policy bigint not null default 0;        -- moves with it; 0: none of its own
alter table workspace add column policy_text text;                        -- JSON

-- The owner sees rows of every workspace for as long as that takes.
alter table record no force row level security;
update workspace set governed = 1 where exists
  (select 1 from record r where r.ws = workspace.ws and r.retention_until is not null);
alter table record force row level security;

-- No statistics, for the reasons given in 001.
do $$
declare one text;
begin
  foreach one in array array['ws','id','created_by','basis','class','source'] loop
    execute format('alter table governed alter column %I set statistics 0', one);
  end loop;
  alter table workspace alter column policy_text set statistics 0;
  alter table governed enable row level security;
  alter table governed force row level security;
  execute format('create policy app on governed to dellm_app, %I using '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint) with check '
    '(ws = nullif(current_setting(''dellm.ws'', true), '''')::bigint)', current_user);
  grant select, insert, update, delete on governed to dellm_app;
end $$;
