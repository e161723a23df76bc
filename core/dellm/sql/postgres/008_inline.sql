-- Vectors of 500 to 2,000 numbers stay in their rows: else each is fetched from elsewhere by a search.
-- Those stored before stay where they are until they are made anew.

alter table embedding alter column data set storage main;
alter table item_vector alter column data set storage main;
