-- Nothing to do here: SQLite keeps a vector with its row.

select 1;
