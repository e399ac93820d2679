"""Transport maps that only the studies have; the others are the library's."""
