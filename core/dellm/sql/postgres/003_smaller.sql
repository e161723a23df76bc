-- Smaller indexes, above all of checkpoints.

-- Sequences count down; as 002 says of the other indexes, in that order it is filled page by page.
drop index sequence_thread;
create index sequence_thread on sequence(ws, thread, id desc) where dead_at is null;

-- What is counted up or down is added at the end of its index, where no room is needed in between.
-- (An index of a partitioned table has no pages of its own.)
do $$
declare one record;
begin
  for one in
    select relname from pg_class
    where relkind = 'i' and relnamespace = current_schema()::regnamespace
      and relname in ('record_pkey', 'record_thread', 'keyword_pkey', 'sequence_key',
                      'sequence_thread', 'edge_key', 'checkpoint_pkey', 'task_write_pkey')
  loop
    execute format('alter index %I set (fillfactor = 100)', one.relname);
  end loop;
end $$;
