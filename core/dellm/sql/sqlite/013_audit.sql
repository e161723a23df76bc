-- Both ends of a workspace's audit chain, so that an end that was cut off is missed: see ledger.

alter table workspace add column audit_from integer not null default 0;   -- the last entry pruned
alter table workspace add column audit_anchor text;                      -- and its digest
alter table workspace add column audit_to integer;                        -- the newest entry; null: none since
alter table workspace add column audit_head text;                        -- and its digest
