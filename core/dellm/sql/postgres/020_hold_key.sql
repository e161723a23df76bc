-- The subject of a hold as records about it are found: see concerns.
alter table hold add column key bigint;
alter table hold alter column key set statistics 0;
