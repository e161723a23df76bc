-- Whom records are about, by keyed digest, so that what is known of somebody is found: see concerns.

create table concerns(
  ws integer not null,
  key integer not null,                       -- keyed digest of a subject
  record integer not null,
  primary key (ws, key, record)
) without rowid;
create index concerns_record on concerns(ws, record);

alter table workspace add column concerns integer not null default 0;     -- 1: all records are in
