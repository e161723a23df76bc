-- Messages that their thread no longer shows: what was made from them still depends on them.

create table hidden(
  ws integer not null,
  record integer not null,
  how integer not null,                       -- 1: dropped, in no prompt; 2: archived, may be found
  primary key (ws, record)
) without rowid;
