-- Whom records are for inside a workspace: see audiences. 0 is everybody, -1 nobody but an overseer.

create table audience(
  ws integer not null,
  id integer not null,
  user_name text,                             -- these four as records store threads; null does not limit it
  channel text,                               -- '': no channel, which is one user alone
  project text,
  organisation text,
  primary key (ws, id)
) without rowid;

alter table record add column audience integer not null default 0;
create index record_audience on record(ws, audience, id) where audience <> 0;
