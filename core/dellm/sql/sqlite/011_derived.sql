-- Derived records that are to be made anew, each by the id of the erased one: no content.

create table rebuild_job(
  ws integer not null,
  id integer not null,
  receipt integer not null,
  name text not null,                         -- of the derivation
  version integer not null,
  kind text not null,
  role text not null,
  thread text not null,
  place integer not null,
  until integer,                            -- how long the erased record was kept
  created_at integer not null,
  hidden integer,
  places text not null,                       -- JSON: where it stood in values of channels
  needles text not null,                      -- JSON: keyed digests of what its text must not say
  attempts integer not null,
  calls integer not null,                   -- of models, in attempts that failed
  error text,                                 -- class of the last failure
  primary key (ws, id)
) without rowid;

-- The sources it has left, in order: records, or jobs by the same ids.
create table rebuild_source(
  ws integer not null,
  job integer not null,
  pos integer not null,
  source integer not null,
  primary key (ws, job, pos)
) without rowid;
create index rebuild_source_of on rebuild_source(ws, source);
