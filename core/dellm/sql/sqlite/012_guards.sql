-- Keyed digests of what was forgotten and is not to come in again unawares: see guarding.

create table guard(
  ws integer not null,
  digest blob not null,                       -- keyed, of a normal form
  receipt integer not null,
  made_at integer not null,
  until integer,
  kind text not null,                         -- 'words', 'whole' or a kind of value
  chars integer not null,                     -- how much of a text is to be digested
  words integer not null,
  primary key (ws, digest)
) without rowid;

alter table workspace add column guards integer not null default 0;       -- moves with them; 0: none
alter table workspace add column guards_always integer not null default 0;
