-- The subject of a hold as records about it are found: see concerns.
alter table hold add column key integer;
