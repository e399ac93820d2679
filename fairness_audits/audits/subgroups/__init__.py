"""Find the worst subgroup: a rate in every intersection of columns, with one family of tests."""
