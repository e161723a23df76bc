-- Copies of records that other systems keep, such as the vectors of a document, by their ids there.

create table elsewhere(
  ws integer not null,
  place text not null,                        -- the name that the other system goes by here
  name text not null,                         -- the copy's id there; gone when that copy is
  record integer not null,                    -- 0: a copy of what was erased before it was found
  primary key (ws, place, name, record)
) without rowid;
create index elsewhere_record on elsewhere(ws, record);
