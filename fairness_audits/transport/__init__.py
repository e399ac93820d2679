"""Transport maps from the rows of one group to the rows of another. Each kind of map has a module of its own."""
