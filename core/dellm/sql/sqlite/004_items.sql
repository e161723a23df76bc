-- Values kept by name: items of long-term stores, entries of caches. Each one's value is a record.

create table item(
  ws integer not null,
  family text not null,                       -- "store", "llm", "node": whose names these are
  space text not null,                        -- JSON list of the labels of its namespace
  name text not null,
  record integer not null,
  ttl real,                                   -- minutes it lives after it was written or read
  expires_at integer,
  created_at integer not null,
  updated_at integer not null,
  primary key (ws, family, space, name)
) without rowid;
create index item_record on item(ws, record);

-- One vector for each indexed field of an item, numbered in the order of the fields.
create table item_vector(
  ws integer not null,
  record integer not null,
  field integer not null,
  data blob not null,                         -- float32, little-endian, unit length
  primary key (ws, record, field)
);
