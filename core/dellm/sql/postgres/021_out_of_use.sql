-- What is out of use for its status: found without all that only ends some day. See database.UNUSABLE.
create index record_status on record(ws, id) where status <> 0;
