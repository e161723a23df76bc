-- What was sent where, beyond what contexts say: see exposure_rows.

-- Who got to see something: a model or an embedder, "provider/name".
create table outsider(
  ws integer not null,
  id integer not null,
  name text not null,
  embeds integer not null,                    -- 1: an embedder, 0: a model that replies
  primary key (ws, id)
) without rowid;
create unique index outsider_name on outsider(ws, name, embeds);

create table exposure(
  ws integer not null,
  node integer not null,                      -- a record; below 0 a sequence; 0: queries
  outsider integer not null,
  day integer not null,                       -- of queries, since 1970; else 0
  calls integer not null,                     -- queries of that day; else 0
  first_at integer not null,
  last_at integer not null,
  primary key (ws, node, outsider, day)
) without rowid;
