-- What is said of records besides what follows from themselves, and whether there is any: see governed.

create table governed(
  ws integer not null,
  id integer not null,
  created_by text,                            -- these three are words of governance and of the policy
  basis text,
  class text,
  source text,                                -- what the caller calls the event it came from
  primary key (ws, id)
) without rowid;
create index governed_class on governed(ws, class) where class is not null;

alter table workspace add column governed integer not null default 0;     -- 1: records that end; 2: rows here
alter table workspace add column policy integer not null default 0;       -- moves with it; 0: none of its own
alter table workspace add column policy_text text;                        -- JSON

update workspace set governed = 1 where exists
  (select 1 from record r where r.ws = workspace.ws and r.retention_until is not null);
