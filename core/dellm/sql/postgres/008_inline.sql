-- Vectors of 500 to 2,000 numbers stay in their rows: else each is fetched from elsewhere by a search.
-- Those stored before stay where they are until they are made anew.

alter table embedding set (toast_tuple_target = 8160);
alter table item_vector set (toast_tuple_target = 8160);
