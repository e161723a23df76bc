-- Which database this is: another one made at the same place later is not it.

insert into setting(name, value) values ('origin', lower(hex(randomblob(16))));
