-- Facts: each statement of a value is a record; these rows say of what, and from when until when.

create table fact(
  ws integer not null,
  record integer not null,
  name integer not null,                      -- keyed digests of the key, of whom it is about, of the value
  subject integer not null,
  value integer not null,
  since integer not null,                     -- from when it is stated to hold
  until integer not null,                     -- until when it held, by all that is stated and in use
  shown integer not null,                     -- 1: stands for its fact; 0: states the same again, or is not in use
  confidence real not null,
  said_in integer not null,                   -- the message it was extracted from, or 0
  primary key (ws, record)
);                                            -- with rowids: else SQLite would go through all by ws
create index fact_of on fact(ws, name, subject, since);
create index fact_about on fact(ws, subject);
create index fact_until on fact(ws, until);

-- When a statement was said to hold no longer, and the record that says so (0: the program itself).
create table fact_end(
  ws integer not null,
  record integer not null,
  closer integer not null,
  at integer not null,
  primary key (ws, record, closer)
);
create index fact_end_closer on fact_end(ws, closer);

-- The keys that the program declared.
create table fact_key(
  ws integer not null,
  name integer not null,
  key text not null,
  many integer not null,
  primary key (ws, name)
) without rowid;

-- The messages that an extractor has been through, and what was forgotten of what they still say.
create table fact_seen(
  ws integer not null,
  record integer not null,
  extractor text not null,
  primary key (ws, record, extractor)
) without rowid;
create table fact_refused(
  ws integer not null,
  record integer not null,
  name integer not null,
  subject integer not null,
  value integer not null,
  primary key (ws, record, name, subject, value)
) without rowid;
