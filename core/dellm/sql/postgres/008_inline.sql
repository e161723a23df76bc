-- Vectors of 500 to 2,000 numbers stay in their rows: else each is fetched from elsewhere by a search.
-- Those stored before stay where they are until they are made anew. A partitioned table has no such
-- setting of its own: its parts have.

do $$
declare one regclass;
begin
  for one in
    select c.oid::regclass from pg_class c
    where c.relkind = 'r' and (
      c.oid in ('embedding'::regclass, 'item_vector'::regclass)
      or c.oid in (
        select inhrelid from pg_inherits
        where inhparent in ('embedding'::regclass, 'item_vector'::regclass)
      )
    )
  loop
    execute format('alter table %s set (toast_tuple_target = 8160)', one);
  end loop;
end $$;
