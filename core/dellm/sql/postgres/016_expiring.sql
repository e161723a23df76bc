-- What expires, in the order in which it does: see expiry.
create index record_expiring on record(ws, retention_until, id) where retention_until is not null;
