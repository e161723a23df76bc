-- Legal holds: what they cover, and what was asked to be forgotten and waits for their end. See holding.

create table hold(
  ws integer not null,
  id integer not null,
  kind text not null,                         -- 'ids', 'subject', 'thread' or 'workspace'
  target text,                                -- the subject or thread as records store it; null once released
  basis text not null,                        -- a reference, no content
  placed_by text not null,
  placed_at integer not null,
  upto integer not null,                      -- the newest record then: what came later stays in use
  released_at integer,
  primary key (ws, id)
) without rowid;

-- Records that an open hold names by id, or that hold the same content as one it covers.
create table hold_record(
  ws integer not null,
  id integer not null,
  hold integer not null,
  primary key (ws, id, hold)
) without rowid;

create table hold_wait(
  ws integer not null,
  id integer not null,
  mode text not null,                         -- as of a plan; 'replace': a value that another took the place of
  alone integer not null,                     -- 1: without what was made of it
  spans text not null,                        -- JSON: what of its text, for 'redact'
  receipt integer not null,                   -- of the forget that was refused; 0: none
  primary key (ws, id)
) without rowid;

alter table workspace add column holds integer not null default 0;        -- how many are open
