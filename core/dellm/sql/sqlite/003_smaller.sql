-- Sequences count down; an index in that order is filled page by page, in the other one every page is
-- split in half.
drop index sequence_thread;
create index sequence_thread on sequence(ws, thread, id desc) where dead_at is null;
