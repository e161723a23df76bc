-- What of a record the policy gives to some roles only, and whether memory is switched off.

alter table audience add column limits text;                              -- JSON, see Policy.limits_of
alter table audience alter column limits set statistics 0;
alter table workspace add column memory_off bigint not null default 0;
